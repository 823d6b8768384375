//! `zombie-write`, stated again: of every write, whether what came of a later grant had come
//! before it.

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::prelude::*;

use crate::noise::{Call, May, Noise, calls, moves};
use crate::storage_safety::is_again;
use crate::{Shares, compare_many, header, verdict_of};

/// The grant that a call belongs to: its process's latest, with no acquire since that may
/// have been granted unanswered.
fn grant_of<'a>(all: &'a [Call<'a>], call: &Call<'_>) -> Option<&'a Call<'a>> {
    let own = |other: &&Call<'_>| {
        let same = other.process == call.process && other.op.lease() == call.op.lease();
        same && other.op.f() == F::Acquire && other.invoke < call.invoke
    };
    let told = |other: &&Call<'_>| other.ok().is_some_and(|at| at < call.invoke);
    let latest = all
        .iter()
        .filter(own)
        .filter(told)
        .max_by_key(|other| other.ok())?;
    let open =
        |other: &Call<'_>| Some(other.invoke) > latest.ok() && !other.is_settled(call.invoke);
    (!all.iter().filter(own).any(open)).then_some(latest)
}

/// Whether a call is made under its grant: with its token.
fn is_under(call: &Call<'_>, grant: &Call<'_>) -> bool {
    call.op.token() == grant.granted()
}

/// Whether one grant came after another: it was asked for when the other had been answered.
fn is_later(grant: &Call<'_>, other: &Call<'_>) -> bool {
    Some(grant.invoke) > other.ok()
}

/// Whether a call of a grant later than this was answered before an event.
fn was_succeeded(all: &[Call<'_>], grant: &Call<'_>, before: usize) -> bool {
    all.iter().any(|call| {
        call.op.holder().is_none()
            && call.op.lease() == grant.op.lease()
            && call.ok().is_some_and(|at| at < before)
            && grant_of(all, call).is_some_and(|its| is_under(call, its) && is_later(its, grant))
    })
}

fn clients_keep(all: &[Call<'_>]) -> bool {
    let acknowledged = |call: &&Call<'_>| call.changes() && call.ok().is_some();
    all.iter().filter(acknowledged).all(|call| {
        let zombie =
            grant_of(all, call).is_some_and(|grant| was_succeeded(all, grant, call.invoke));
        !zombie || is_again(all, call)
    })
}

/// The call that a storage node's account is of; each value is written once.
fn landed<'a>(all: &'a [Call<'a>], events: &[Event], at: usize) -> Option<&'a Call<'a>> {
    let Body::Observed(Observation::Applied(applied)) = &events[at].body else {
        return None;
    };
    all.iter().find(|call| match call.op {
        Op::Write(op) => {
            call.invoke < at && !call.is_settled(at) && Some(&op.value) == applied.value.as_ref()
        }
        _ => false,
    })
}

/// In the order of the one storage node there is.
fn node_keeps(all: &[Call<'_>], events: &[Event]) -> bool {
    let grant = |at: usize| {
        let call = landed(all, events, at)?;
        Some((call, grant_of(all, call)?))
    };
    (0..events.len()).all(|at| {
        let Some((_, own)) = grant(at) else {
            return true;
        };
        let before = (0..at).filter_map(grant).any(|(call, its)| {
            call.op.lease() == own.op.lease() && is_under(call, its) && is_later(its, own)
        });
        !before && !was_succeeded(all, own, at)
    })
}

#[test]
fn zombie_write_is_the_rule() {
    use May::*;
    let may = [
        Again, Acquire, Acquire, Write, Write, Write, Write, Fence, Read, Delete, Lost, Done, Done,
        Done, Done, Done, Done, Done, Done, Done, Done, Applied, Applied,
    ];
    // Which of two tries landed cannot be told.
    let sides = [&may[..21], &may[1..]];
    let cases = (0..2usize, 4..30u8, moves(34..100));
    compare_many(cases, |(side, wrong, moves), shares: &Shares| {
        let noise = Noise {
            may: sides[side],
            leases: 1,
            at_once: 1,
            wrong,
            instant: 1,
        };
        let mut events = noise.history(&moves);
        for event in &mut events {
            if let Body::Observed(_) = event.body {
                event.process = "storage".into();
            }
        }
        let all = calls(&events);
        let found = verdict_of(Check::ZombieWrite, &header(), &events);
        let granted = all.iter().any(|call| call.granted().is_some());
        if !granted || !all.iter().any(Call::changes) {
            prop_assert_eq!(found.word(), "not-claimed");
            return Result::Ok(());
        }
        let told = |event: &Event| matches!(event.body, Body::Observed(_));
        let kept = match events.iter().any(told) {
            true => node_keeps(&all, &events),
            false => clients_keep(&all),
        };
        shares.compare(&found, kept, &events)
    });
}

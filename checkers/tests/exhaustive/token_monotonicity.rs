//! `token-monotonicity`, stated again: each grant against every earlier one, each use of a
//! token against every grant.

use std::collections::BTreeSet;

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::prelude::*;

use crate::noise::{Call, May, Noise, calls, crashed, moves};
use crate::{Shares, compare_many, header, verdict_of};

fn granted(event: &Event) -> Option<(&Granted, Token)> {
    match &event.body {
        Body::Observed(Observation::Granted(granted)) => Some((granted, granted.token?)),
        _ => None,
    }
}

/// Whether a call carries a token that its process was granted since it last crashed, as
/// the store tells.
pub fn is_own(events: &[Event], call: &Call<'_>, token: Token) -> bool {
    let since = crashed(events, call.process, call.invoke);
    events[since..call.invoke]
        .iter()
        .filter_map(granted)
        .any(|(granted, its)| {
            let process = granted.holder.split('#').next();
            process == Some(call.process) && granted.lease == *call.op.lease() && its == token
        })
}

/// The same as clients tell it: an acquire without an answer may have been granted one token.
pub fn may_be_own(events: &[Event], all: &[Call<'_>], call: &Call<'_>, token: Token) -> bool {
    let since = crashed(events, call.process, call.invoke);
    let own =
        |other: &&Call<'_>| other.process == call.process && other.op.lease() == call.op.lease();
    let acquires = || {
        all.iter()
            .filter(own)
            .filter(|other| other.op.f() == F::Acquire && other.invoke >= since)
    };
    let told = |by: usize, token: Token| {
        acquires()
            .any(|other| other.ok().is_some_and(|at| at < by) && other.granted() == Some(token))
    };
    if told(call.invoke, token) {
        return true;
    }
    // What was used before it was told, and has not been told since.
    let mut used = BTreeSet::new();
    let uses = all
        .iter()
        .filter(own)
        .filter(|other| (since..=call.invoke).contains(&other.invoke));
    for user in uses {
        let Some(its) = user.op.token() else { continue };
        let unanswered =
            acquires().filter(|other| other.invoke < user.invoke && !other.is_settled(user.invoke));
        used.retain(|before| !told(user.invoke, *before));
        if !told(user.invoke, its) && used.len() < unanswered.count() {
            used.insert(its);
        }
    }
    used.contains(&token)
}

fn returned(event: &Event, lease: &Name) -> Option<Token> {
    match &event.body {
        Body::Observed(Observation::StoreRecovered(found)) => {
            Some(found.leases.get(lease).map_or(0, |found| found.counter))
        }
        Body::Observed(Observation::Restored(found)) => {
            let counter = found.leases.get(lease).map_or(0, |found| found.counter);
            Some(found.floor.max(counter))
        }
        _ => None,
    }
}

fn store_keeps(events: &[Event]) -> bool {
    events.iter().enumerate().all(|(at, event)| {
        let before = &events[..at];
        if let Some((grant, token)) = granted(event) {
            let of_lease = |other: &&Event| {
                granted(other).is_some_and(|(other, _)| other.lease == grant.lease)
            };
            let last = before.iter().rposition(|other| of_lease(&other));
            let back = before
                .iter()
                .rposition(|other| returned(other, &grant.lease).is_some());
            let tokens = before
                .iter()
                .filter(of_lease)
                .filter_map(|other| Some(granted(other)?.1));
            let found = before
                .iter()
                .filter_map(|other| returned(other, &grant.lease));
            let highest = tokens.chain(found).max();
            let again = last.is_some_and(|last| {
                let (other, its) = granted(&before[last]).expect("a grant");
                let nothing_higher = highest == Some(its);
                (&other.holder, other.request, its) == (&grant.holder, grant.request, token)
                    && nothing_higher
            });
            // Who asks again after a restart is told what it was told: that is no new grant, and
            // the next one may still leave a gap.
            let new = last.and_then(|last| {
                let its = granted(&before[last])?.1;
                let same = |other: &Event| granted(other).is_some_and(|(_, token)| token == its);
                before
                    .iter()
                    .position(|other| of_lease(&other) && same(other))
            });
            return again
                || match (new, back) {
                    (None, None) => true,
                    (Some(_), None) => token == highest.unwrap_or(0) + 1,
                    (Some(new), Some(back)) if back < new => {
                        Some(token) == highest.map(|highest| highest + 1)
                    }
                    (_, Some(_)) => Some(token) > highest,
                };
        }
        let Body::Observed(Observation::StoreRecovered(found)) = &event.body else {
            return true;
        };
        let is_restored =
            |event: &Event| matches!(event.body, Body::Observed(Observation::Restored(_)));
        let since = before.iter().rposition(is_restored).map_or(0, |at| at + 1);
        found.leases.iter().all(|(lease, found)| {
            before[since..].iter().all(|other| match granted(other) {
                Some((grant, token)) => grant.lease != *lease || token <= found.counter,
                None => returned(other, lease).is_none_or(|before| before <= found.counter),
            })
        })
    })
}

fn clients_are_told_rising_tokens(all: &[Call<'_>]) -> bool {
    let acquires: Vec<&Call<'_>> = all
        .iter()
        .filter(|call| call.op.f() == F::Acquire)
        .collect();
    let request = |call: &Call<'_>| match call.op {
        Op::Acquire(op) => (op.lease.clone(), op.holder.clone(), op.request),
        _ => unreachable!("an acquire"),
    };
    acquires.iter().all(|call| {
        let Some(token) = call.granted() else {
            return true;
        };
        let same = |other: &&&Call<'_>| request(other) == request(call);
        let first = acquires.iter().find(same).expect("at least itself").invoke;
        acquires.iter().all(|other| {
            let (Some(at), Some(its)) = (other.ok(), other.granted()) else {
                return true;
            };
            let mine = request(other) == request(call);
            other.op.lease() != call.op.lease()
                || (at > first || its < token) && (mine || its != token)
        })
    })
}

#[test]
fn token_monotonicity_is_the_rule() {
    use May::*;
    let may = [
        Granted, Granted, Granted, Granted, StoreBack, StoreBack, Restored, Write, Renew, Crash,
        Acquire, Done, Done, Acquire, Lost, Fails, Fence, Release,
    ];
    let sides = [&may[..10], &may[7..], &may[..]];
    let cases = (0..3usize, 8..40u8, moves(4..16));
    compare_many(cases, |(side, wrong, moves), shares: &Shares| {
        let noise = Noise {
            may: sides[side],
            leases: 2,
            at_once: 2,
            wrong,
            instant: 1,
        };
        let events = noise.history(&moves);
        let all = calls(&events);
        let tokens = || all.iter().filter_map(|call| Some((call, call.op.token()?)));
        let kept = match events.iter().any(|event| granted(event).is_some()) {
            true => {
                store_keeps(&events) && tokens().all(|(call, token)| is_own(&events, call, token))
            }
            false if all.iter().all(|call| call.granted().is_none()) => {
                let found = verdict_of(Check::TokenMonotonicity, &header(), &events);
                prop_assert_eq!(found.word(), "not-claimed");
                return Result::Ok(());
            }
            false => {
                clients_are_told_rising_tokens(&all)
                    && tokens().all(|(call, token)| may_be_own(&events, &all, call, token))
            }
        };
        shares.compare(
            &verdict_of(Check::TokenMonotonicity, &header(), &events),
            kept,
            &events,
        )
    });
}

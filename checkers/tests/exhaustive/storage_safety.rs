//! `storage-safety`, stated again: of all pairs of events, none where the later lands below
//! a token that the earlier shows was seen.

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::prelude::*;

use crate::noise::{Call, May, Noise, calls, moves};
use crate::{Shares, compare_many, verdict_of};

/// What a node's event shows it to have seen: node, lease, token.
fn seen(event: &Event) -> Vec<(&Name, &Name, Token)> {
    match &event.body {
        Body::Observed(Observation::StorageRecovered(found)) => {
            let found = found.highest.iter();
            found
                .map(|(lease, token)| (&event.process, lease, *token))
                .collect()
        }
        _ => landed(event).into_iter().collect(),
    }
}

fn landed(event: &Event) -> Option<(&Name, &Name, Token)> {
    match &event.body {
        Body::Observed(Observation::Applied(applied)) => {
            Some((&event.process, &applied.lease, applied.token?))
        }
        Body::Observed(Observation::Fenced(fenced)) => {
            Some((&event.process, &fenced.lease, fenced.token))
        }
        _ => None,
    }
}

fn node_keeps(events: &[Event]) -> bool {
    let before = |at: usize| events[..at].iter().flat_map(seen);
    events.iter().enumerate().all(|(at, event)| {
        let above = match &event.body {
            Body::Observed(Observation::StorageRecovered(found)) => {
                before(at).any(|(node, lease, token)| {
                    *node == event.process && token > found.highest.get(lease).copied().unwrap_or(0)
                })
            }
            _ => landed(event).is_some_and(|(node, lease, token)| {
                before(at).any(|other| other.0 == node && other.1 == lease && other.2 > token)
            }),
        };
        !above
    })
}

/// Storage may give it the answer of an earlier try, whose outcome is not known.
pub fn is_again(all: &[Call<'_>], call: &Call<'_>) -> bool {
    let own = |other: &&Call<'_>| {
        let same = other.process == call.process && other.op.lease() == call.op.lease();
        same && other.changes() && other.invoke < call.invoke
    };
    let newest = all
        .iter()
        .filter(own)
        .filter(|other| !other.is_settled(call.invoke))
        .collect::<Vec<_>>();
    newest.iter().any(|other| {
        let since = newest
            .iter()
            .filter(|between| between.invoke > other.invoke);
        other.op == call.op
            && since
                .into_iter()
                .all(|between| between.op.token() == call.op.token())
    })
}

fn lands(call: &Call<'_>) -> bool {
    matches!(call.op.f(), F::Write | F::Delete | F::Fence)
}

fn clients_keep(events: &[Event]) -> bool {
    let all = calls(events);
    let acknowledged = |call: &&Call<'_>| lands(call) && call.ok().is_some();
    all.iter().filter(acknowledged).all(|call| {
        let higher = all.iter().filter(acknowledged).any(|other| {
            other.op.lease() == call.op.lease()
                && other.op.token() > call.op.token()
                && other.ok().is_some_and(|at| at < call.invoke)
        });
        !higher || is_again(&all, call)
    })
}

#[test]
fn storage_safety_is_the_rule() {
    use May::*;
    let may = [
        Fence,
        Write,
        Write,
        Delete,
        Again,
        Done,
        Done,
        Done,
        Lost,
        Fails,
        Acquire,
        Applied,
        Fenced,
        StorageBack,
    ];
    let sides = [&may[..11], &may[11..], &may[..]];
    let cases = (0..3usize, 2..5u8, moves(6..26));
    compare_many(cases, |(side, wrong, moves), shares: &Shares| {
        let noise = Noise {
            may: sides[side],
            leases: 2,
            at_once: 2,
            wrong,
            instant: 1,
        };
        let events = noise.history(&moves);
        let found = verdict_of(Check::StorageSafety, &crate::header(), &events);
        let judged = events.iter().any(|event| landed(event).is_some())
            || calls(&events)
                .iter()
                .any(|call| lands(call) && call.ok().is_some());
        let kept = node_keeps(&events) && clients_keep(&events);
        if !judged && kept {
            prop_assert_eq!(found.word(), "not-claimed");
            return Ok(());
        }
        shares.compare(&found, kept, &events)
    });
}

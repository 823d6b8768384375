//! `election-barrier`, stated again: before each read and write a fence that was answered.

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::prelude::*;
use serde_json::json;

use crate::noise::{Call, May, Noise, calls, moves};
use crate::token_monotonicity::{is_own, may_be_own};
use crate::{Shares, compare_many, header, verdict_of};

fn is_fenced(all: &[Call<'_>], call: &Call<'_>) -> bool {
    all.iter().any(|fence| {
        let same = (fence.op.lease(), fence.op.token()) == (call.op.lease(), call.op.token());
        same && fence.op.f() == F::Fence && fence.ok().is_some_and(|at| at < call.invoke)
    })
}

/// Of a history that only storage tells.
fn storage_fences_first(events: &[Event]) -> bool {
    events
        .iter()
        .enumerate()
        .all(|(at, event)| match &event.body {
            Body::Observed(Observation::Applied(applied)) => events[..at].iter().any(|other| {
                matches!(&other.body, Body::Observed(Observation::Fenced(fenced))
                if fenced.lease == applied.lease && Some(fenced.token) == applied.token)
            }),
            _ => true,
        })
}

#[test]
fn election_barrier_is_the_rule() {
    use May::*;
    let may = [
        Fenced, Fenced, Applied, Granted, Acquire, Acquire, Done, Done, Done, Done, Done, Fence,
        Fence, Fence, Write, Fails, Lost, Read, Crash,
    ];
    let sides = [&may[..3], &may[3..], &may[4..], &may[..]];
    let cases = (0..4usize, 4..14u8, 0..4u8, moves(3..13));
    compare_many(cases, |(side, wrong, kind, moves), shares: &Shares| {
        let noise = Noise {
            may: sides[side],
            leases: 1 + wrong % 2,
            at_once: 2,
            wrong,
            instant: 1,
        };
        let events = noise.history(&moves);
        let mut header = header();
        let grant_is_barrier = kind == 0;
        let sets_barriers = kind == 1;
        if grant_is_barrier || sets_barriers {
            let storage = if grant_is_barrier {
                "compare-and-swap"
            } else {
                "fenced"
            };
            let cluster = json!({"storage": storage});
            header.rest.insert("cluster".into(), cluster);
        }
        let all = calls(&events);
        let is_granted =
            |event: &Event| matches!(event.body, Body::Observed(Observation::Granted(_)));
        let told = events.iter().any(is_granted);
        let any_grant = told || all.iter().any(|call| call.granted().is_some());
        let work = |call: &&Call<'_>| call.changes() || call.op.f() == F::Read;
        let fences = || all.iter().filter(|call| call.op.f() == F::Fence);
        let own = !any_grant
            || fences().all(|call| {
                let token = call.op.token().expect("a fence has one");
                match told {
                    true => is_own(&events, call, token),
                    false => may_be_own(&events, &all, call, token),
                }
            });
        let by_clients = fences().next().is_some() || all.iter().any(|call| work(&call));
        let fenced = match by_clients {
            true => all.iter().filter(work).all(|call| is_fenced(&all, call)),
            false => {
                let any = |is_it: fn(&Observation) -> bool| {
                    events
                        .iter()
                        .any(|event| matches!(&event.body, Body::Observed(seen) if is_it(seen)))
                };
                let fenced = any(|seen| matches!(seen, Observation::Fenced(_)));
                let applied = any(|seen| matches!(seen, Observation::Applied(_)));
                if !(fenced && applied) {
                    return Result::Ok(());
                }
                storage_fences_first(&events)
            }
        };
        let found = verdict_of(Check::ElectionBarrier, &header, &events);
        // Where the header tells nothing of the system, one in which nobody fences sets none.
        let fence_seen = |event: &Event| {
            matches!(event.body, Body::Observed(Observation::Fenced(_)))
                || matches!(&event.body, Body::Invoke(op) if op.f() == F::Fence)
        };
        let no_barrier = grant_is_barrier || !(sets_barriers || events.iter().any(fence_seen));
        let kept = own && (no_barrier || fenced);
        if kept && no_barrier {
            prop_assert_eq!(found.word(), "not-claimed");
            return Result::Ok(());
        }
        shares.compare(&found, kept, &events)
    });
}

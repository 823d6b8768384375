//! `failover`, stated again: from calm on, whether what is owed came in time.

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::prelude::*;
use serde_json::json;

use crate::noise::{Call, May, Noise, calls, moves};
use crate::{Shares, compare_many, verdict_of};

const MS: Nanos = 1_000_000;
const TTL: Nanos = 7 * MS;
const DELAY: Nanos = 2 * MS;
const TRY: Nanos = 3 * MS;
const BACKOFF: Nanos = MS;
const LATENCY: Nanos = MS / 2;
/// What the docs call slack.
const SLACK: Nanos = 10 * MS;
/// A wait for what is free, and how long a try and a backoff take.
const FREE: Nanos = TRY + BACKOFF + 14 * LATENCY + SLACK;
const GAP: Nanos = TRY + BACKOFF + SLACK;

fn calm(events: &[Event]) -> Option<usize> {
    let is_calm = |event: &Event| matches!(&event.body, Body::Nemesis(f, _) if f == "calm");
    events.iter().position(is_calm)
}

/// The end of the history: its last event, or the end of the calm that was planned.
fn end(events: &[Event], calm: usize, planned: Nanos) -> Nanos {
    let last = events.last().map_or(0, |event| event.time);
    last.max(events[calm].time + planned)
}

/// Where leaders write all the time. `None`: too short to tell.
fn writes_come(events: &[Event], calm: usize, planned: Nanos) -> Option<bool> {
    let all = calls(events);
    let end = end(events, calm, planned);
    let mut in_time = Some(true);
    for lease in ["leader", "shard"] {
        let of_lease = |call: &&Call<'_>| call.op.lease() == lease;
        let asked = all
            .iter()
            .filter(of_lease)
            .find(|call| call.op.f() == F::Acquire);
        let Some(asked) = asked.map(|call| call.invoke) else {
            continue;
        };
        let due = events[asked].time.max(events[calm].time) + TTL + DELAY + FREE;
        let writes = all.iter().filter(of_lease).filter(|call| call.changes());
        let written = writes
            .filter_map(Call::ok)
            .filter(|at| *at > calm.max(asked))
            .min();
        match written.map(|at| events[at].time) {
            Some(at) if at <= due => {}
            Some(_) => return Some(false),
            None if end > due => return Some(false),
            None => in_time = None,
        }
    }
    in_time
}

/// Whether an event asks for the lease: an acquire that is sent, or answered in vain.
fn asks(events: &[Event], all: &[Call<'_>], at: usize, lease: &str) -> bool {
    all.iter().any(|call| {
        let ends_in_vain = call
            .end
            .is_some_and(|(end, event)| end == at && event.kind != Kind::Ok);
        call.op.lease() == lease
            && call.op.f() == F::Acquire
            && (call.invoke == at || ends_in_vain)
            && at < events.len()
    })
}

/// Whether it shows a leader, or will: an answer of the store or of storage, or a renewal.
fn shows_a_leader(all: &[Call<'_>], at: usize, lease: &str) -> bool {
    all.iter().any(|call| {
        let renews = call.op.f() == F::Renew && call.invoke == at;
        let answered = call.op.f() != F::Release && call.ok() == Some(at);
        call.op.lease() == lease && (renews || answered)
    })
}

/// Where nobody need write: no lease is asked for in vain for the whole bound, with no break.
fn who_asks_is_granted(events: &[Event], calm: usize) -> bool {
    let all = calls(events);
    ["leader", "shard"].into_iter().all(|lease| {
        (calm + 1..events.len()).all(|last| {
            let asked = |at: &usize| asks(events, &all, *at, lease);
            if !asked(&last) {
                return true;
            }
            let renewed = all.iter().any(|call| {
                call.op.lease() == lease && call.op.f() == F::Renew && call.invoke < last
            });
            // Sent in calm, and open for longer than a try: its client is gone.
            let gone = all.iter().any(|call| {
                call.op.lease() == lease
                    && call.op.f() == F::Acquire
                    && (calm + 1..last).contains(&call.invoke)
                    && call.end.is_none_or(|(end, _)| end >= last)
                    && events[last].time - events[call.invoke].time > GAP
            });
            let mut since = last;
            for at in (calm + 1..last).rev() {
                if shows_a_leader(&all, at, lease) {
                    break;
                }
                if asked(&at) {
                    if events[since].time - events[at].time > GAP {
                        break;
                    }
                    since = at;
                }
            }
            let waited = events[last].time - events[since].time;
            !renewed || gone || waited <= TTL + DELAY + FREE
        })
    })
}

#[test]
fn failover_is_the_rule() {
    use May::*;
    let may = [
        Acquire, Acquire, Acquire, Fails, Fails, Done, Done, Done, Calm, Renew, Write, Write, Lost,
        Release,
    ];
    let planned = prop_oneof![1 => Just(0), 1 => Just(60 * MS)];
    let cases = (any::<bool>(), planned, moves(6..40));
    compare_many(cases, |(owed, planned, moves), shares: &Shares| {
        let noise = Noise {
            may: &may,
            leases: 1 + moves.len() as u8 % 2,
            at_once: 1,
            wrong: 8,
            instant: 2 * MS,
        };
        let events = noise.history(&moves);
        let mut header = json!({
            "deposed": 1,
            "lease": {
                "ttl": TTL, "lock_delay": DELAY, "try_timeout": TRY, "backoff_max": BACKOFF,
            },
            "network": {"min_latency": 0, "max_latency": LATENCY},
            "calm": planned,
        });
        if owed {
            header["traffic"] = json!({"write_every": MS});
        }
        let header: Header = serde_json::from_value(header).unwrap();
        let found = verdict_of(Check::Failover, &header, &events);
        let Some(calm) = calm(&events) else {
            prop_assert_eq!(found.word(), "not-claimed");
            return Result::Ok(());
        };
        let kept = match owed {
            true => writes_come(&events, calm, planned),
            false => Some(who_asks_is_granted(&events, calm)),
        };
        // What is too short to tell, or was not asked for long enough.
        if kept != Some(false) && found.word() == "not-claimed" {
            return Result::Ok(());
        }
        shares.compare(&found, kept == Some(true), &events)
    });
}

//! `belief-safety`, stated again: at every instant, who believes, or by its promises may.

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::prelude::*;
use serde_json::json;

use crate::noise::{Call, May, Noise, TTL, calls, moves};
use crate::{Shares, compare_many, verdict_of};

fn lead(event: &Event) -> Option<&Lead> {
    match &event.body {
        Body::Observed(Observation::Lead(lead)) => Some(lead),
        _ => None,
    }
}

/// Whether this event, of this process, is the end of what a `lead` began.
fn ends(event: &Event, process: &Name, begun: &Lead) -> bool {
    match &event.body {
        Body::Observed(Observation::Lead(lead)) => {
            event.process == *process && lead.lease == begun.lease
        }
        Body::Observed(Observation::Follow(follow)) => {
            event.process == *process
                && (&follow.lease, follow.token) == (&begun.lease, begun.token)
        }
        Body::Nemesis(f, fault) => f == "crash" && fault["node"] == process.as_str(),
        _ => false,
    }
}

/// The beliefs of a lease at an instant, when all that happens then has: by token.
fn beliefs<'a>(events: &'a [Event], lease: &Name, now: Nanos) -> Vec<(&'a Event, &'a Lead)> {
    let happened = &events[..events.partition_point(|event| event.time <= now)];
    let leads = happened.iter().enumerate();
    let lives = leads.filter_map(|(at, event)| {
        let lead = lead(event).filter(|lead| lead.lease == *lease)?;
        let ended = happened[at + 1..]
            .iter()
            .any(|other| ends(other, &event.process, lead));
        let lives = !ended && lead.until.is_none_or(|until| until > now);
        lives.then_some((event, lead))
    });
    let mut lives: Vec<_> = lives.collect();
    lives.sort_by_key(|(event, lead)| (lead.token, lead.sent, event.index));
    lives
}

/// What two beliefs at one instant are: wrong, or excused by the deposed one's clock, which
/// runs at half the rate of all others where `slow`.
fn overlaps(events: &[Event], slow: Option<&str>) -> (bool, bool) {
    let (mut wrong, mut excused) = (false, false);
    for (event, lead) in events
        .iter()
        .filter_map(|event| Some((event, lead(event)?)))
    {
        let now = event.time;
        let beliefs = beliefs(events, &lead.lease, now);
        for (at, (deposed, lead)) in beliefs.iter().enumerate() {
            for (other, _) in &beliefs[at + 1..] {
                if other.process != deposed.process {
                    let counts = lead.sent.is_some_and(|sent| sent < now);
                    let is_slow = counts && slow == Some(deposed.process.as_str());
                    wrong |= !is_slow;
                    excused |= is_slow;
                }
            }
        }
    }
    (wrong, excused)
}

#[test]
fn belief_safety_is_the_rule() {
    use May::*;
    let may = [
        Lead, Lead, Lead, Follow, Follow, Crash, Acquire, Done, Granted,
    ];
    let cases = (any::<bool>(), 2..8u8, moves(3..16));
    compare_many(cases, |(slow, wrong, moves), shares: &Shares| {
        let noise = Noise {
            may: &may,
            leases: 1 + wrong % 2,
            at_once: 1,
            wrong,
            instant: 1,
        };
        let events = noise.history(&moves);
        if events.iter().all(|event| lead(event).is_none()) {
            return Result::Ok(());
        }
        let mut header = json!({"deposed": 1});
        if slow {
            header["clocks"] = json!({"a": TRUE_RATE / 2});
        }
        let header: Header = serde_json::from_value(header).unwrap();
        let found = verdict_of(Check::BeliefSafety, &header, &events);
        let (wrong, excused) = overlaps(&events, slow.then_some("a"));
        if excused && !wrong {
            prop_assert_eq!(found.word(), "not-claimed");
            return Result::Ok(());
        }
        shares.compare(&found, !wrong, &events)
    });
}

/// By what it was answered a process may believe on a lease at an instant, until when: no
/// clock has counted the ttl since the send. Nothing has ended it.
fn may_believe(events: &[Event], process: &str, lease: &str, now: Nanos) -> Option<Name> {
    let happened = &events[..events.partition_point(|event| event.time <= now)];
    let all = calls(happened);
    let own = |call: &&Call<'_>| call.process == process && call.op.lease() == lease;
    let (mut whose, mut from, mut begun): (Option<&Call<'_>>, Nanos, bool) = (None, 0, false);
    for (at, event) in happened.iter().enumerate() {
        let crashes = |fault: &serde_json::Value| fault["node"] == process;
        match &event.body {
            Body::Nemesis(_, fault) if crashes(fault) => whose = None,
            _ => {}
        }
        let sent = all.iter().filter(own).find(|call| call.invoke == at);
        match sent.map(|call| call.op) {
            Some(Op::Release(op)) => whose = whose.filter(|term| term.granted() != op.token),
            // Each is another request.
            Some(Op::Acquire(_)) => whose = None,
            _ => {}
        }
        let Some(call) = all
            .iter()
            .filter(own)
            .find(|call| call.end.is_some_and(|(end, _)| end == at))
        else {
            continue;
        };
        let of_term = whose.is_some_and(|term| term.granted() == call.op.token());
        let first = events[call.invoke].time;
        match (call.op.f(), event.kind) {
            (F::Acquire, Kind::Ok) => {
                // A release that is under way may end it.
                let released = all.iter().filter(own).any(|other| {
                    other.op.f() == F::Release
                        && other.op.holder() == call.op.holder()
                        && other.invoke < at
                        && !other.is_settled(at)
                        && other.op.token() >= call.granted()
                });
                (whose, from, begun) = (Some(call).filter(|_| !released), first, false);
            }
            (F::Renew, Kind::Ok) if of_term && !(begun && event.time - from >= TTL) => from = first,
            // It was over before, or is of another term.
            (F::Renew, Kind::Ok) => whose = None,
            (F::Renew, Kind::Fail) if of_term => whose = None,
            (_, Kind::Fail) => {
                let stale = event
                    .error
                    .as_ref()
                    .is_some_and(|error| error.kind == STALE_TOKEN);
                whose = whose.filter(|_| !(stale && of_term));
            }
            _ => continue,
        }
        begun |= whose.is_some() && event.time - from < TTL;
    }
    let Op::Acquire(op) = whose?.op else {
        return None;
    };
    (begun && now - from < TTL).then(|| op.holder.clone())
}

/// No two at any instant; the instants are those of answers.
fn one_may_believe(events: &[Event]) -> bool {
    events.iter().all(|event| {
        ["leader", "shard"].into_iter().all(|lease| {
            let both = ["a", "b"].map(|process| may_believe(events, process, lease, event.time));
            both.into_iter().flatten().count() < 2
        })
    })
}

#[test]
fn belief_safety_from_outside_is_the_rule() {
    use May::*;
    let may = [
        Acquire, Acquire, Acquire, Renew, Renew, Done, Done, Done, Done, Done, Done, Done, Fails,
        IsStale, Lost, Release, Write, Crash,
    ];
    compare_many(
        (4..20u8, moves(12..48)),
        |(wrong, moves), shares: &Shares| {
            let noise = Noise {
                may: &may,
                leases: 1 + wrong % 2,
                at_once: 1,
                wrong,
                instant: 1,
            };
            let events = noise.history(&moves);
            let header = json!({"deposed": 1, "lease": {"ttl": TTL}});
            let header: Header = serde_json::from_value(header).unwrap();
            let all = calls(&events);
            let mut requests: Vec<(&Name, u64)> = Vec::new();
            for call in &all {
                let Op::Acquire(op) = call.op else { continue };
                if requests.contains(&(&op.holder, op.request)) {
                    return Result::Ok(());
                }
                requests.push((&op.holder, op.request));
            }
            if all.iter().all(|call| call.granted().is_none()) {
                return Result::Ok(());
            }
            let found = verdict_of(Check::BeliefSafety, &header, &events);
            shares.compare(&found, one_may_believe(&events), &events)
        },
    );
}

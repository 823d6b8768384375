//! `well-formed`, stated again: each line against all that came before it.

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::prelude::*;

use crate::noise::{May, Noise, moves};
use crate::{Shares, compare_many, header, verdict_of};

/// The calls of a well-formed beginning that are open after it, by the places of their
/// invokes; `None` if it is not well-formed.
fn open(events: &[Event]) -> Option<Vec<usize>> {
    let mut open: Vec<usize> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let before = &events[..at];
        let in_order =
            event.index == at as u64 && before.iter().all(|other| other.time <= event.time);
        let is_invoke = |event: &Event| matches!(event.body, Body::Invoke(_));
        match &event.body {
            _ if !in_order => return None,
            Body::Invoke(_) => {
                let used = |other: &Event| is_invoke(other) && other.call == event.call;
                if event.call.is_some() && before.iter().any(used) {
                    return None;
                }
                open.push(at);
            }
            Body::Complete(f, _) => {
                let meant = open.iter().copied().filter(|invoke| match event.call {
                    Some(_) => events[*invoke].call == event.call,
                    None => events[*invoke].process == event.process,
                });
                let meant: Vec<usize> = meant.collect();
                let [invoke] = meant[..] else { return None };
                let Body::Invoke(op) = &events[invoke].body else {
                    unreachable!("only calls are open")
                };
                if events[invoke].process != event.process || op.f() != *f {
                    return None;
                }
                open.retain(|other| *other != invoke);
            }
            _ => {}
        }
    }
    Some(open)
}

/// One line is not as it was written: where, and what of it.
fn garbled(events: &mut Vec<Event>, at: u8, what: u8) {
    if events.is_empty() {
        return;
    }
    let at = usize::from(at) % events.len();
    let other = events[at / 2].clone();
    let event = &mut events[at];
    match what {
        0 => event.index = other.index,
        1 => event.index += 1,
        2 => event.time = other.time,
        3 => event.call = other.call.or(event.call),
        4 => event.call = event.call.map(|call| call + 40),
        5 => event.process = other.process,
        6 if event.call.is_some() => (event.body, event.kind) = (other.body, other.kind),
        7 => drop(events.remove(at)),
        _ => {}
    }
}

#[test]
fn well_formed_is_the_rule() {
    use May::*;
    let may = [Acquire, Write, Read, Done, Done, Lost, Granted];
    let garbling = (any::<u8>(), 0..12u8);
    let cases = (any::<bool>(), 0..4u8, garbling, moves(2..20));
    compare_many(
        cases,
        |(nameless, others, (at, what), moves), shares: &Shares| {
            let noise = Noise {
                may: &may,
                leases: 1,
                at_once: 2,
                wrong: 4,
                instant: 1,
            };
            let mut events = noise.history(&moves);
            garbled(&mut events, at, what);
            if nameless {
                // Some lines name no call, of which a process has one at a time then, mostly.
                let calls = events.iter_mut().filter(|event| event.call.is_some());
                for event in calls
                    .filter(|event| event.call.is_none_or(|call| call % 4 >= u64::from(others)))
                {
                    event.call = None;
                }
            }
            // A completion without a body of one is no completion.
            let fits = |event: &Event| match event.body {
                Body::Invoke(_) => event.kind == Kind::Invoke,
                Body::Complete(..) => event.kind != Kind::Invoke,
                _ => event.kind == Kind::Info,
            };
            prop_assume!(events.iter().all(fits));
            let found = verdict_of(Check::WellFormed, &header(), &events);
            shares.compare(&found, open(&events).is_some(), &events)
        },
    );
}

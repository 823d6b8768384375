//! Faults that wait for an event.

use deposed::{
    checkers::history::{Body, F, Nanos},
    fault::{Fault, Injection, Moment, Trigger},
    workload::MS,
};

use crate::probe::{A, B, Sight, header, see_header};

/// When pauses struck, ms, each waiting for its trigger.
fn strikes(triggers: &[Trigger]) -> (Sight, Vec<Nanos>) {
    let mut header = header(vec![]);
    header.schedule = triggers
        .iter()
        .map(|&when| Injection {
            when,
            fault: Fault::Latency {
                a: A,
                b: B,
                min: MS,
                max: MS,
                length: 1,
            },
        })
        .collect();
    let sight = see_header(&header);
    let strikes = sight.nemesis("latency");
    let strikes = strikes.into_iter().map(|(at, _)| at).collect();
    (sight, strikes)
}

/// When calls of a kind began, ms.
fn begun(sight: &Sight, f: F) -> Vec<Nanos> {
    let history = sight.outcome.history.iter();
    let of_kind = history.filter(|event| matches!(&event.body, Body::Invoke(op) if op.f() == f));
    of_kind.map(|event| event.time / MS).collect()
}

const READING: Moment = Moment::invoking(F::Read);

#[test]
fn on_waits_for_the_nth_event_of_the_run_and_never_strikes_without_it() {
    let on = |nth, plus| Trigger::On {
        moment: READING,
        nth,
        plus,
    };
    let (sight, struck) = strikes(&[on(1, 0), on(5, 0), on(5, 7 * MS), on(100_000, 0)]);
    let read = begun(&sight, F::Read);
    // A call is seen at the end of its tick.
    let end = |nth: usize| read[nth - 1] + 1;
    assert_eq!(struck.len(), 3);
    assert!(
        struck[0] <= end(1) && struck[1] <= end(5),
        "{struck:?} {read:?}"
    );
    assert!((read[4] + 7..=read[4] + 8).contains(&struck[2]));
}

#[test]
fn next_waits_for_the_first_event_from_a_time_on() {
    let next = |after: Nanos, plus| Trigger::Next {
        moment: READING,
        after: after * MS,
        plus,
    };
    // Two from one time on, one with an offset, one after the last event before calm.
    let triggers = [
        next(0, 0),
        next(333, 0),
        next(333, 9 * MS),
        next(333, 0),
        next(998, 0),
    ];
    let (sight, struck) = strikes(&triggers);
    let read = begun(&sight, F::Read);
    let first = read[0];
    let third = *read.iter().find(|at| **at >= 333).expect("they go on");
    assert!(third < 360, "there is one soon: {third}");
    assert_eq!(struck.len(), 4, "nothing strikes in calm: {struck:?}");
    assert!((first..=first + 1).contains(&struck[0]));
    for at in &struck[1..3] {
        assert!(
            (third..=third + 1).contains(at),
            "{struck:?}, read at {third}"
        );
    }
    assert!((third + 9..=third + 10).contains(&struck[3]), "{struck:?}");
}

//! What is said of a lock that no order explains.

use super::{FREE, Stuck, does};
use crate::budget::Budget;
use crate::linearizable::mutex::Step;
use crate::linearizable::states::States;
use crate::linearizable::surplus::{Shown, among, fewer};
use crate::linearizable::witness::Part;
use crate::linearizable::{Limit, NEVER, NOBODY_STOPS, Operation, owned};
use crate::model::calls::Calls;
use crate::model::registers::WITNESS_STEPS;
use crate::verdict::Evidence;

pub(super) fn of_owned(lock: &str, wrong: owned::Wrong, calls: &Calls) -> Evidence {
    let name = |call: owned::Call| calls.process(call.process);
    let events = |call: owned::Call| [call.invoke, call.complete];
    match wrong {
        owned::Wrong::Overlap(before, call) if before.process == call.process => Evidence::new(
            format!(
                "{} acquired {lock} again, and had not released it",
                name(call)
            ),
            [events(before), events(call)].concat(),
            call.complete,
            "failed, or no answer",
        ),
        owned::Wrong::Overlap(before, call) => Evidence::new(
            format!(
                "{} acquired {lock} while {} held it",
                name(call),
                name(before)
            ),
            [events(before), events(call)].concat(),
            call.complete,
            format!("no answer before {} releases", name(before)),
        ),
        owned::Wrong::Unreleased(before, call, release) => Evidence::new(
            format!(
                "{} acquired {lock} while {} held it, whose release failed",
                name(call),
                name(before)
            ),
            [events(before), events(call), events(release)].concat(),
            call.complete,
            format!("no answer before {} releases", name(before)),
        ),
        owned::Wrong::NotHolder(Some(before), release) => Evidence::new(
            format!(
                "{} released {lock} again, and had not acquired it since",
                name(release)
            ),
            [events(before), events(release)].concat(),
            release.complete,
            "failed: it did not hold it",
        ),
        owned::Wrong::NotHolder(None, release) => Evidence::new(
            format!(
                "{} released {lock}, which it had not acquired",
                name(release)
            ),
            events(release),
            release.complete,
            "failed: it did not hold it",
        ),
        owned::Wrong::NotAbove(before, highest, call, token) => Evidence::new(
            format!(
                "{} acquired {lock} with token {token}, though {} had acquired it with token \
                 {highest} before",
                name(call),
                name(before)
            ),
            [events(before), events(call)].concat(),
            call.complete,
            format!("a token above {highest}"),
        ),
    }
}

pub(super) fn of_anybody(lock: &str, stuck: Stuck, calls: &Calls, budget: Budget) -> Evidence {
    let operations: Vec<(Step, Operation)> = (stuck.operations.iter())
        .map(|operation| (step(operation), *operation))
        .collect();
    // Of what completed before the first of those that are left nothing is known.
    let since = match stuck.whole {
        true => None,
        false => stuck.operations.iter().map(|one| one.complete).min(),
    };
    let counted = fewer(stuck.since_start.clone(), among(&operations, since));
    let many = counted
        .as_ref()
        .is_none_or(|shown| shown.operations.len() > FEW);
    let searched = if many { searched(&stuck, budget) } else { None };
    let told = match (counted, searched) {
        (Some(counted), Some(searched)) if searched.len() < counted.operations.len() => {
            by_search(lock, searched, calls)
        }
        (Some(counted), _) => by_count(lock, counted, calls),
        (None, Some(searched)) => by_search(lock, searched, calls),
        (None, None) => return of_failed(lock, stuck.failed, calls),
    };
    let Told {
        mut sentence,
        operations,
        last,
    } = told;
    let mut events: Vec<u64> = (operations.iter())
        .flat_map(|operation| [operation.invoke, operation.complete])
        .filter(|event| *event != NEVER)
        .collect();
    if let Some((failed, _)) = stuck.failed {
        sentence += &format!(", as one of {} failed", calls.process(failed.process));
        events.extend([failed.invoke, failed.complete]);
    }
    let expected = match step(&last) {
        Step::Acquire => "no answer while it was held",
        Step::Release => "failed, as it was free",
    };
    Evidence::new(sentence, events, last.complete, expected)
}

fn step(operation: &Operation) -> Step {
    match operation.does == does(Step::Acquire) {
        true => Step::Acquire,
        false => Step::Release,
    }
}

/// So few that it is not worth a search for fewer.
const FEW: usize = 8;

/// What is said, and the operation that is wrong.
struct Told {
    sentence: String,
    operations: Vec<Operation>,
    last: Operation,
}

/// What an operation did, what it is, and what must come before the next of its kind.
fn words(step: Step) -> (&'static str, &'static str, &'static str) {
    match step {
        Step::Acquire => ("acquired", "acquire", "release"),
        Step::Release => ("released", "release", "acquire"),
    }
}

/// Of operations that do not cancel out.
fn by_count(lock: &str, shown: Shown, calls: &Calls) -> Told {
    let need = shown.operations.iter().copied();
    let mut need: Vec<Operation> = need.filter(|one| step(one) == shown.step).collect();
    need.sort_unstable_by_key(|operation| operation.complete);
    let (did, kind, other) = words(shown.step);
    let name = |operation: &Operation| calls.process(operation.process);
    let place = match shown.from_start && shown.step == Step::Release {
        true => "before",
        false => "in between",
    };
    let last = need[need.len() - 1];
    let who = name(&last);
    let mut sentence = match need[..need.len() - 1] {
        [] if shown.serve == 0 => format!("{who} {did} {lock}"),
        [before] if shown.serve == 0 && before.process == last.process => {
            format!("{who} {did} {lock} again")
        }
        [before] if shown.serve == 0 => {
            format!("{who} {did} {lock}, which {} had {did}", name(&before))
        }
        _ => format!(
            "{who} {did} {lock}: that is the last of {} that {did} it",
            need.len()
        ),
    };
    sentence += &match (shown.serve, shown.pairs) {
        (0, 0) => format!(", and no {other} can have come {place}"),
        (0, 1) => format!(
            ", and no {other} is left to come {place}: the one that could is needed by another \
             {kind}, of its own process"
        ),
        (0, pairs) => format!(
            ", and no {other} is left to come {place}: each of the {pairs} that could is needed \
             by another {kind}, of its own process"
        ),
        (serve, pairs) => {
            let count = match serve {
                1 => format!("one {other}"),
                _ => format!("{serve} {other}s"),
            };
            let beside = match pairs {
                0 => String::new(),
                1 => format!(", beside one that another {kind} of its own process needs"),
                _ => format!(", beside {pairs} that other {kind}s of their own processes need"),
            };
            format!(", and only {count} can have come {place}{beside}")
        }
    };
    Told {
        sentence,
        operations: shown.operations,
        last,
    }
}

/// Of operations that no order explains, whatever else happened. The last is the one that
/// no order can hold any more.
fn searched(stuck: &Stuck, budget: Budget) -> Option<Vec<Operation>> {
    let mut states = States::default();
    let limit = Limit {
        steps: budget.steps.min(WITNESS_STEPS),
        bytes: budget.bytes,
        stop: &NOBODY_STOPS,
    };
    let part = Part {
        operations: &stuck.operations,
        start: stuck.whole.then_some(FREE),
    };
    let culprit = match stuck.now {
        Some(now) => (stuck.operations.iter()).position(|operation| operation.complete == now),
        None => part.culprit(&mut states, limit),
    }?;
    let witness = part.witness(culprit, &mut states, limit);
    let shown = witness.iter().map(|at| stuck.operations[*at]);
    Some(shown.collect())
}

fn by_search(lock: &str, operations: Vec<Operation>, calls: &Calls) -> Told {
    let last = operations[operations.len() - 1];
    let (did, ..) = words(step(&last));
    let who = calls.process(last.process);
    let sentence = format!(
        "{who} {did} {lock}: no order explains the {} operations shown, whatever else happened \
         meanwhile",
        operations.len()
    );
    Told {
        sentence,
        operations,
        last,
    }
}

/// Of one that failed too long after what it would have explained.
fn of_failed(lock: &str, failed: Option<(Operation, Step)>, calls: &Calls) -> Evidence {
    let (failed, what) = failed.map_or((None, "operation"), |(operation, step)| {
        (Some(operation), words(step).1)
    });
    let events = failed.map_or([0, 0], |failed| [failed.invoke, failed.complete]);
    let name = failed.map_or("somebody", |failed| calls.process(failed.process));
    let sentence = format!(
        "{name}'s {what} of {lock} failed, though the operations answered since it began have no \
         order without it"
    );
    Evidence::new(sentence, events, events[1], "ok, or no answer")
}

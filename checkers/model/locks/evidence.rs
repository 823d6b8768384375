//! What is said of a lock that no order explains.

use super::{FREE, does};
use crate::budget::Budget;
use crate::linearizable::mutex::Step;
use crate::linearizable::states::States;
use crate::linearizable::witness::Part;
use crate::linearizable::{Limit, NOBODY_STOPS, Operation, owned};
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

pub(super) fn of_anybody(
    lock: &str,
    operations: &[Operation],
    whole: bool,
    failed: Option<(Operation, Step)>,
    now: Option<u64>,
    calls: &Calls,
    budget: Budget,
) -> Evidence {
    let mut states = States::default();
    let limit = Limit {
        steps: budget.steps.min(WITNESS_STEPS),
        bytes: budget.bytes,
        stop: &NOBODY_STOPS,
    };
    let part = Part {
        operations,
        start: whole.then_some(FREE),
    };
    let completed = |now| {
        let mut all = operations.iter();
        all.position(|operation| operation.complete == now)
    };
    let culprit = match now {
        Some(now) => completed(now),
        None => part.culprit(&mut states, limit),
    };
    let Some(culprit) = culprit else {
        // Only an operation that failed too long after what it would have explained.
        let (failed, what) = failed.map_or((None, "operation"), |(operation, step)| {
            let what = if step == Step::Acquire {
                "acquire"
            } else {
                "release"
            };
            (Some(operation), what)
        });
        let events = failed.map_or([0, 0], |failed| [failed.invoke, failed.complete]);
        let name = failed.map_or("somebody", |failed| calls.process(failed.process));
        let sentence = format!(
            "{name}'s {what} of {lock} failed, though the operations answered since it began have \
             no order without it"
        );
        return Evidence::new(sentence, events, events[1], "ok, or no answer");
    };
    let witness = part.witness(culprit, &mut states, limit);
    let shown: Vec<&Operation> = witness.iter().map(|at| &operations[*at]).collect();
    let culprit = &operations[culprit];
    let name = calls.process(culprit.process);
    let alike = |operation: &&&Operation| {
        operation.does == culprit.does && operation.complete != culprit.complete
    };
    let before = shown
        .iter()
        .rev()
        .find(alike)
        .map(|operation| calls.process(operation.process));
    let (did, other) = match culprit.does == does(Step::Acquire) {
        true => ("acquired", "release"),
        false => ("released", "acquire"),
    };
    let mut sentence = match (before, shown.len()) {
        (Some(before), 2) => format!(
            "{name} {did} {lock}, which {before} had {did}, and no {other} can have come in between"
        ),
        (Some(_), _) => {
            let same = shown.iter().filter(|one| one.does == culprit.does).count();
            let needed = same - 1;
            format!(
                "{name} {did} {lock}: that is the last of {same} that {did} it, and fewer than \
                 the {needed} {other}s that must come in between them can have happened"
            )
        }
        (None, _) => format!("{name} {did} {lock}, and no {other} can have come before"),
    };
    let mut events: Vec<u64> = (shown.iter())
        .flat_map(|operation| [operation.invoke, operation.complete])
        .collect();
    if let Some((failed, _)) = failed {
        sentence += &format!(", as one of {} failed", calls.process(failed.process));
        events.extend([failed.invoke, failed.complete]);
    }
    let expected = match culprit.does == does(Step::Acquire) {
        true => "no answer while it was held",
        false => "failed, as it was free",
    };
    Evidence::new(sentence, events, culprit.complete, expected)
}

//! What is wrong with a register, in words.

use super::order::{Act, Conflict, Stay};
use super::register::Wrong;
use crate::history::{F, Name};
use crate::verdict::Evidence;

/// The shortest set of events, and a sentence.
pub(super) fn of(key: &Name, wrong: Wrong) -> Evidence {
    match wrong {
        Wrong::NoOrder(Conflict::Between(around, stay)) => stale(key, &around, &stay),
        Wrong::NoOrder(Conflict::NotAbsent(read, there, before)) => {
            not_absent(key, &read.last, &there, before.as_deref())
        }
        Wrong::NeverWritten(read, value) => Evidence::new(
            format!(
                "{} read {value} of {key}, which nobody had written by then",
                read.process
            ),
            [read.invoke],
            read.complete,
            "a value that was written",
        ),
        Wrong::NotThere(read, value) => Evidence::new(
            format!(
                "{} read {value} of {key}, which was overwritten long before, or never written",
                read.process
            ),
            [read.invoke],
            read.complete,
            "a value that could still be read",
        ),
        Wrong::Failed(write, value, read) => Evidence::new(
            format!(
                "{} read {value} of {key}, and its write by {} failed, which says that it did not \
                 happen",
                read.process, write.process
            ),
            events(&read).chain([write.invoke]),
            write.complete,
            "unknown, or ok",
        ),
    }
}

/// A value came back after another had taken its place.
fn stale(key: &Name, around: &Stay, stay: &Stay) -> Evidence {
    let (value, read) = (name(around), &around.last);
    let since = match (&stay.value, stay.first.f) {
        (Some(newer), F::Write) => format!(
            "which {} had overwritten with {newer} before the read began",
            stay.first.process
        ),
        (Some(newer), _) => format!(
            "though {} had read {newer} of it since, before the read began",
            stay.first.process
        ),
        (None, F::Delete) => format!(
            "which {} had deleted before the read began",
            stay.first.process
        ),
        (None, _) => format!(
            "though {} had found it absent since, before the read began",
            stay.first.process
        ),
    };
    let mut shown = vec![around.shown(), stay.until(), stay.shown(), read.invoke];
    shown.retain(|event| *event != u64::MAX);
    let expected = match &stay.value {
        Some(newer) => format!("{newer}, or what was written later"),
        None => "absent, or what was written later".to_owned(),
    };
    Evidence::new(
        format!("{} read {value} of {key}, {since}", read.process),
        shown,
        read.complete,
        expected,
    )
}

fn not_absent(key: &Name, read: &Act, there: &Stay, before: Option<&Stay>) -> Evidence {
    let value = name(there);
    let mut shown = vec![read.invoke];
    shown.extend(events(&there.first));
    let mut sentence = format!(
        "{} found {key} absent, though {value} was there and no delete can have come in between",
        read.process
    );
    if let Some(before) = before {
        sentence += &format!(" and before {}", name(before));
        shown.extend([before.shown(), before.until()]);
    }
    Evidence::new(
        sentence,
        shown,
        read.complete,
        format!("{value}, or what was written later"),
    )
}

fn events(act: &Act) -> impl Iterator<Item = u64> {
    [act.invoke, act.complete]
        .into_iter()
        .filter(|event| *event != u64::MAX)
}

fn name(stay: &Stay) -> String {
    match &stay.value {
        Some(value) => value.to_string(),
        None => "absence".to_owned(),
    }
}

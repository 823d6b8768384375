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
    let mut shown = vec![around.shown(), read.invoke];
    // One operation that lies between shows it; else one that began after and one
    // that had ended before.
    let since = if around.first.precedes(&stay.first) {
        shown.extend(events(&stay.first));
        taken_by(stay, &stay.first)
    } else if stay.last.precedes(read) {
        shown.extend(events(&stay.last));
        taken_by(stay, &stay.last)
    } else {
        shown.extend([stay.shown()]);
        shown.extend(events(&stay.last));
        format!("though {} had taken its place", name(stay))
    };
    let expected = match &stay.value {
        Some(newer) => format!("{newer}, or what was written later"),
        None => "absent, or what was written later".to_owned(),
    };
    Evidence::new(
        format!(
            "{} read {value} of {key}, {since} before the read began",
            read.process
        ),
        shown,
        read.complete,
        expected,
    )
}

fn taken_by(stay: &Stay, act: &Act) -> String {
    let process = &act.process;
    match (&stay.value, act.f) {
        (Some(newer), F::Write) => format!("which {process} had overwritten with {newer}"),
        (Some(newer), _) => format!("though {process} had read {newer} of it since,"),
        (None, F::Delete) => format!("which {process} had deleted"),
        (None, _) => format!("though {process} had found it absent since,"),
    }
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

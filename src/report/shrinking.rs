//! What shrinking came to: from what to what, and the failure that is left; of planted
//! flaws, a table.

use std::{path::Path, time::Duration};

use super::{campaign::failure, failure::Next, text::counted, words::span};
use crate::{
    hunt::Hunt,
    run::{Header, Outcome},
    shrink::{End, Shrunk, Size},
};

/// The most faults that are shown as their schedule has them.
const FAULTS_SHOWN: usize = 10;

/// `38 faults → 1, 3 clients → 2, 12s → 1.1s, 143 runs`, and why it ended if not by itself.
pub fn sum(before: &Header, shrunk: &Shrunk) -> String {
    let (old, new) = (Size::of(before), Size::of(&shrunk.header));
    let changes = [
        became(counted(old.faults as u64, "fault"), old.faults, new.faults),
        became(
            counted(old.clients.into(), "client"),
            old.clients,
            new.clients,
        ),
        became(span(old.length), span(old.length), span(new.length)),
        counted(shrunk.runs, "run"),
    ];
    let end = match shrunk.end {
        End::Smallest => "",
        End::OutOfTime => "; time was up: --for gives it more",
        End::Stopped => "; interrupted",
    };
    format!("{}{end}", changes.join(", "))
}

fn became<T: PartialEq + std::fmt::Display>(words: String, old: T, new: T) -> String {
    match old == new {
        true => words,
        false => format!("{words} → {new}"),
    }
}

/// The smaller run's failure: what it was made of, its schedule, its evidence, and the
/// next commands.
pub fn text(before: &Header, shrunk: &Shrunk, outcome: &Outcome, file: Option<&Path>) -> String {
    let mut text = format!("shrunk  {}\n", sum(before, shrunk));
    let schedule = &shrunk.header.schedule;
    if schedule.len() <= FAULTS_SHOWN {
        for entry in schedule {
            // A schedule is plain data.
            let entry = serde_json::to_string(entry).unwrap_or_default();
            text += &format!("  {entry}\n");
        }
    }
    let file = file.map(|file| file.display().to_string());
    text + "\n" + &failure(outcome, file.as_deref(), Next::Keep)
}

/// A planted flaw, shrunk from the first seed that convicted it.
pub struct Row<'w> {
    /// What was hunted.
    pub hunt: Hunt<'w>,
    /// The run that convicted it, and what became of it; `None`: it escaped.
    pub shrunk: Option<(Header, Shrunk)>,
    /// How long that took.
    pub took: Duration,
}

/// The table's head.
pub fn head(hunts: &[Hunt<'_>]) -> String {
    let names = names(hunts, "flaw", "workload", "check");
    format!(
        "{names}  {:>10}  clients         length   runs   time",
        "faults"
    )
}

/// A row of it.
pub fn row(hunts: &[Hunt<'_>], row: &Row<'_>) -> String {
    let Hunt {
        flaw,
        workload,
        check,
        ..
    } = row.hunt;
    let names = names(hunts, flaw.name(), workload.name, check.name());
    let Some((before, shrunk)) = &row.shrunk else {
        return format!("{names}  ESCAPED");
    };
    let (old, new) = (Size::of(before), Size::of(&shrunk.header));
    let end = match shrunk.end {
        End::Smallest => "",
        End::OutOfTime => "  time was up",
        End::Stopped => "  interrupted",
    };
    format!(
        "{names}  {:>4} → {:<3}  {:>3} → {:<2}  {:>6} → {:<6} {:>5} {:>4.1} s{end}",
        old.faults,
        new.faults,
        old.clients,
        new.clients,
        span(old.length),
        span(new.length),
        shrunk.runs,
        row.took.as_secs_f64(),
    )
}

/// The line below the rows.
pub fn median(rows: &[Row<'_>]) -> String {
    let shrunk: Vec<_> = rows.iter().filter_map(|row| row.shrunk.as_ref()).collect();
    let mut faults: Vec<usize> = shrunk
        .iter()
        .map(|(_, shrunk)| shrunk.header.schedule.len())
        .collect();
    faults.sort_unstable();
    let slowest = rows.iter().map(|row| row.took).max().unwrap_or_default();
    let Some(most) = faults.last() else {
        return "nothing was shrunk".to_owned();
    };
    let timed_out = shrunk
        .iter()
        .filter(|(_, shrunk)| shrunk.end == End::OutOfTime);
    format!(
        "{}: {} left at the median, {most} at the worst; {:.1} s at the longest, {} out of time",
        counted(rows.len() as u64, "row"),
        counted(faults[(faults.len() - 1) / 2] as u64, "fault"),
        slowest.as_secs_f64(),
        match timed_out.count() {
            0 => "none".to_owned(),
            some => some.to_string(),
        },
    )
}

fn names(hunts: &[Hunt<'_>], flaw: &str, workload: &str, check: &str) -> String {
    let widest = |name: fn(&Hunt<'_>) -> &'static str| {
        hunts.iter().map(|hunt| name(hunt).len()).max().unwrap_or(0)
    };
    let f = widest(|hunt| hunt.flaw.name());
    let w = widest(|hunt| hunt.workload.name);
    let c = widest(|hunt| hunt.check.name());
    format!("{flaw:<f$}  {workload:<w$}  {check:<c$}")
}

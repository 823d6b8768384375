//! A comparison as a table, or as JSON: a row an arm, the same seeds in each.

use std::fmt::Write as _;

use deposed_checkers::history::Nanos;
use serde::Serialize;

use super::text::counted;
use crate::{
    cluster::StorageKind,
    compare::{Arm, Measures, middle_and_longest},
    workload::Workload,
};

/// What came of a workload's arms, each over the same seeds.
pub struct Comparison<'w> {
    /// Which workload.
    pub workload: &'w Workload,
    /// Over how many seeds.
    pub seeds: u64,
    /// Each arm, with what its histories show together.
    pub arms: Vec<(Arm, Measures)>,
}

/// What the columns mean; to be printed once.
pub const LEGEND: &str = "\
tried     a deposed leader's write that reached storage after its successor was granted
refused   ... and that storage refused, or dropped by its idempotency key
early     ... and that landed before the successor had done anything, which harms nobody
landed    ... and that landed after that
doubled   an effect of a job that had been done before
window    from the successor's grant to where storage can refuse its predecessor
failover  from a leader's last acknowledged write to the first of the next
";

/// The heads of the columns; the first is left-aligned.
const HEAD: [&str; 11] = [
    "", "tried", "refused", "early", "landed", "doubled", "p50", "max", "changes", "p50", "max",
];
/// What stands above them: from which column, over how many.
const GROUPS: [(usize, usize, &str); 4] = [
    (1, 4, "deposed leaders' writes"),
    (6, 2, "window"),
    (8, 1, "leader"),
    (9, 2, "failover"),
];

impl Comparison<'_> {
    /// The table, a hundred columns wide at most where no arm's name is past 28.
    pub fn text(&self) -> String {
        let rows: Vec<[String; 11]> = self.arms.iter().map(row).collect();
        let widths: Vec<usize> = (0..HEAD.len())
            .map(|column| {
                let cells = rows.iter().map(|row| row[column].chars().count());
                cells.chain([HEAD[column].len()]).max().unwrap_or(0)
            })
            .collect();
        let mut text = format!(
            "{}  the same {} in each row\n",
            self.workload.name,
            counted(self.seeds, "seed")
        );
        line(&mut text, &groups(&widths));
        line(&mut text, &cells(&HEAD, &widths));
        for row in &rows {
            line(&mut text, &cells(row, &widths));
        }
        text
    }

    /// One JSON object, on one line.
    ///
    /// # Errors
    /// Those of serde_json; there are none for what is in it.
    pub fn json(&self) -> serde_json::Result<String> {
        let arms = self.arms.iter().map(|(arm, measures)| JsonArm {
            name: arm.name,
            storage: arm.storage,
            without_barrier: arm.without_barrier,
            lock_delay: arm.lock_delay,
            tried: measures.tried,
            refused: measures.refused,
            early: measures.early,
            landed: measures.landed,
            doubled: (!checks_tokens(arm)).then_some(measures.doubled),
            window: Durations::of(&measures.windows),
            leader_changes: measures.leader_changes,
            failover: Durations::of(&measures.failovers),
        });
        serde_json::to_string(&Json {
            workload: self.workload.name,
            seeds: self.seeds,
            arms: arms.collect(),
        })
    }
}

/// What `--json` prints of a workload. Durations are ns.
#[derive(Serialize)]
struct Json {
    workload: &'static str,
    seeds: u64,
    arms: Vec<JsonArm>,
}

#[derive(Serialize)]
struct JsonArm {
    name: &'static str,
    storage: StorageKind,
    without_barrier: bool,
    lock_delay: Nanos,
    tried: u64,
    refused: u64,
    early: u64,
    landed: u64,
    /// Null where writes are no effects.
    doubled: Option<u64>,
    /// Null where storage cannot refuse, or nothing was measured.
    window: Option<Durations>,
    leader_changes: u64,
    failover: Option<Durations>,
}

#[derive(Serialize)]
struct Durations {
    p50: Nanos,
    max: Nanos,
}

impl Durations {
    fn of(durations: &[Nanos]) -> Option<Self> {
        middle_and_longest(durations).map(|(p50, max)| Self { p50, max })
    }
}

fn checks_tokens(arm: &Arm) -> bool {
    !matches!(arm.storage, StorageKind::Effects { .. })
}

fn row((arm, measures): &(Arm, Measures)) -> [String; 11] {
    let durations = |of: &[Nanos]| match middle_and_longest(of) {
        Some((middle, longest)) => [middle, longest].map(milliseconds),
        None => ["-", "-"].map(str::to_owned),
    };
    let doubled = match checks_tokens(arm) {
        true => "-".to_owned(),
        false => measures.doubled.to_string(),
    };
    let [window, longest_window] = durations(&measures.windows);
    let [failover, longest_failover] = durations(&measures.failovers);
    [
        arm.name.to_owned(),
        measures.tried.to_string(),
        measures.refused.to_string(),
        measures.early.to_string(),
        measures.landed.to_string(),
        doubled,
        window,
        longest_window,
        measures.leader_changes.to_string(),
        failover,
        longest_failover,
    ]
}

/// `12ms`, rounded up: a window that was open is not shown as none.
fn milliseconds(nanos: Nanos) -> String {
    format!("{}ms", nanos.div_ceil(1_000_000))
}

fn cells(row: &[impl AsRef<str>], widths: &[usize]) -> String {
    let mut text = String::new();
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        let cell = cell.as_ref();
        // Writing to a string cannot fail.
        let _ = match column {
            0 => write!(text, "{cell:<width$}"),
            _ => write!(text, "  {cell:>width$}"),
        };
    }
    text
}

/// The heads of several columns, each over the right end of its own.
fn groups(widths: &[usize]) -> String {
    let mut text = String::new();
    for (from, over, name) in GROUPS {
        let end: usize = widths[..from + over].iter().map(|width| width + 2).sum();
        let _ = write!(
            text,
            "{name:>width$}",
            width = end - 2 - text.chars().count()
        );
    }
    text
}

fn line(text: &mut String, line: &str) {
    let _ = writeln!(text, "  {}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(workload: &Workload) -> Comparison<'_> {
        let fenced = Arm {
            name: "highest-seen without barrier",
            storage: StorageKind::Fenced,
            without_barrier: true,
            lock_delay: 0,
        };
        let effects = Arm {
            name: "neither",
            storage: StorageKind::Effects { keys: false },
            ..fenced
        };
        let measures = Measures {
            tried: 123_456,
            refused: 100_000,
            early: 20_000,
            landed: 3_456,
            doubled: 1_234,
            leader_changes: 98_765,
            windows: vec![8_000_001, 31_000_000],
            failovers: vec![400_000_000, 12_345_000_000],
        };
        let none = Measures {
            windows: vec![],
            ..measures.clone()
        };
        Comparison {
            workload,
            seeds: 50,
            arms: vec![(fenced, measures), (effects, none)],
        }
    }

    #[test]
    fn a_table_has_a_row_an_arm_and_fits_a_hundred_columns() {
        let workload = Workload::named("w");
        let text = comparison(&workload).text();
        let expected = "\
w  the same 50 seeds in each row
                                      deposed leaders' writes                  window   leader       failover
";
        assert_eq!(text.lines().next(), expected.lines().next());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(
            lines.iter().all(|line| line.chars().count() <= 120),
            "{text}"
        );
    }
}

//! A comparison as a table, or as JSON: a row an arm, the same seeds in each.

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
window    from the successor's grant to where storage, told of it, can refuse its predecessor
failover  from a leader's last acknowledged write to the first of the next
";

/// The columns after the arm's name: what stands above, and the head. What stands above
/// several is the last one's.
const COLUMNS: [(&str, &str); 10] = [
    ("", "tried"),
    ("", "refused"),
    ("", "early"),
    ("deposed leaders' writes", "landed"),
    ("", DOUBLED),
    ("", "p50"),
    ("window", "max"),
    ("leader", "changes"),
    ("", "p50"),
    ("failover", "max"),
];
/// Left out where no arm's writes are effects.
const DOUBLED: &str = "doubled";

impl Comparison<'_> {
    /// The table, a hundred columns wide at most where no arm's name is past 28.
    pub fn text(&self) -> String {
        let effects = self.arms.iter().any(|(arm, _)| !checks_tokens(arm));
        let shown = |head: &str| effects || head != DOUBLED;
        let mut lines = vec![vec![String::new()], vec![String::new()]];
        for (above, head) in COLUMNS.iter().filter(|(_, head)| shown(head)) {
            lines[0].push((*above).to_owned());
            lines[1].push((*head).to_owned());
        }
        for (arm, measures) in &self.arms {
            let cells = COLUMNS.iter().zip(cells(arm, measures));
            let cells = cells.filter(|((_, head), _)| shown(head));
            let cells = cells.map(|(_, cell)| cell);
            lines.push([arm.name.to_owned()].into_iter().chain(cells).collect());
        }
        let columns = lines[1].len();
        let width = |column: usize| {
            let cells = lines[1..].iter().map(|line| line[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = format!(
            "{}  the same {} in each row\n",
            self.workload.name,
            counted(self.seeds, "seed")
        );
        for line in &lines {
            text.push_str(aligned(line, &widths).trim_end());
            text.push('\n');
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
    /// Null where storage cannot refuse or grants the leases itself, or nothing was
    /// measured.
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

fn cells(arm: &Arm, measures: &Measures) -> [String; COLUMNS.len()] {
    let durations = |of: &[Nanos]| match middle_and_longest(of) {
        Some((middle, longest)) => [middle, longest].map(short),
        None => ["-", "-"].map(str::to_owned),
    };
    let doubled = match checks_tokens(arm) {
        true => "-".to_owned(),
        false => measures.doubled.to_string(),
    };
    let [window, longest_window] = durations(&measures.windows);
    let [failover, longest_failover] = durations(&measures.failovers);
    [
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

/// `12ms` or `12.3s`, rounded up: a window that was open is never shown as 0.
fn short(nanos: Nanos) -> String {
    match nanos.div_ceil(1_000_000) {
        milliseconds @ ..10_000 => format!("{milliseconds}ms"),
        milliseconds => {
            let tenths = milliseconds.div_ceil(100);
            format!("{}.{}s", tenths / 10, tenths % 10)
        }
    }
}

/// The first cell to the left, the others to the right. A cell wider than its column
/// takes the room of the empty ones before it.
fn aligned(line: &[String], widths: &[usize]) -> String {
    let (mut text, mut end) = (String::new(), 0);
    for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
        end += 2 + width;
        let at = match column {
            0 => 2,
            _ => end - cell.chars().count(),
        };
        if !cell.is_empty() {
            text += &" ".repeat(at.saturating_sub(text.chars().count()));
            text += cell;
        }
    }
    text
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

    /// The cells of each line, told apart by two spaces.
    fn table(text: &str) -> Vec<Vec<&str>> {
        text.lines()
            .map(|line| {
                let cells = line.split("  ").map(str::trim);
                cells.filter(|cell| !cell.is_empty()).collect()
            })
            .collect()
    }

    fn widest(text: &str) -> usize {
        let widths = text.lines().map(|line| line.chars().count());
        widths.max().unwrap_or(0)
    }

    #[test]
    fn a_table_has_a_row_an_arm() {
        let workload = Workload::named("w");
        let text = comparison(&workload).text();
        let table = table(&text);
        assert_eq!(table.len(), 5, "{text}");
        assert_eq!(table[0], ["w", "the same 50 seeds in each row"]);
        let above = ["deposed leaders' writes", "window", "leader", "failover"];
        assert_eq!(table[1], above);
        assert_eq!(table[2], COLUMNS.map(|(_, head)| head));
        assert_eq!(
            table[3].join(" "),
            "highest-seen without barrier 123456 100000 20000 3456 - 31ms 31ms 98765 12.4s 12.4s"
        );
        assert_eq!(
            table[4].join(" "),
            "neither 123456 100000 20000 3456 1234 - - 98765 12.4s 12.4s"
        );
    }

    #[test]
    fn a_table_fits_a_hundred_columns() {
        let workload = Workload::named("w");
        for arm in [0, 1] {
            let mut comparison = comparison(&workload);
            comparison.arms = vec![comparison.arms.swap_remove(arm)];
            let text = comparison.text();
            assert!(widest(&text) <= 100, "{text}");
            // Doubles are of effects alone.
            assert_eq!(text.contains(DOUBLED), arm == 1, "{text}");
        }
        assert!(widest(LEGEND) <= 100);
    }

    #[test]
    fn a_window_that_was_open_is_not_shown_as_0() {
        let shown = [0, 1, 8_000_001, 9_999_000_000, 9_999_000_001].map(short);
        assert_eq!(shown, ["0ms", "1ms", "9ms", "9999ms", "10.0s"]);
    }
}

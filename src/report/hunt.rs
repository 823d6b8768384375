//! What hunting planted flaws came to: a row a flaw and workload, and the sum.

use std::{collections::BTreeMap, time::Duration};

use deposed_checkers::history::Nanos;

use super::text::counted;
use crate::{
    flaw::Flaw,
    hunt::{Hunt, Spoils},
    prove::{Expected, expected},
    workload::SECOND,
};

/// All hunts of one flaw in one workload: from each seed base, by our schedules and
/// perhaps by uniform ones.
pub struct Row<'w> {
    /// What was hunted.
    pub hunt: Hunt<'w>,
    /// From each base.
    pub ours: Vec<Spoils>,
    /// The same by uniform schedules; empty when not asked for.
    pub uniform: Vec<Spoils>,
}

impl Row<'_> {
    /// Whether some hunt came home without a conviction.
    pub fn escaped(&self) -> bool {
        self.ours.iter().any(|spoils| !spoils.convicted)
    }

    /// Whether every conviction was of harm done.
    pub fn is_manifest(&self) -> bool {
        self.ours.iter().all(|spoils| spoils.manifest)
    }

    /// How many times more CPU uniform schedules take, and whether that is a lower
    /// bound, since some of them never convicted.
    pub fn ratio(&self) -> Option<(f64, bool)> {
        let (ours, uniform) = (Sample::cpu(&self.ours), Sample::cpu(&self.uniform));
        let bound = self.uniform.iter().any(|spoils| !spoils.convicted);
        (!self.uniform.is_empty() && ours.mean() > 0.0)
            .then(|| (uniform.mean() / ours.mean(), bound))
    }
}

/// The table: its head, its rows as they come, its sum.
pub struct Table {
    flaw: usize,
    workload: usize,
    check: usize,
    bases: usize,
    uniform: bool,
    proofs: bool,
}

impl Table {
    /// Wide enough for these hunts. With `proofs` it tells what a search makes of each flaw
    /// in our own cores.
    pub fn new(hunts: &[Hunt<'_>], bases: usize, uniform: bool, proofs: bool) -> Self {
        let widest = |name: fn(&Hunt<'_>) -> &'static str| {
            hunts.iter().map(|hunt| name(hunt).len()).max().unwrap_or(0)
        };
        Self {
            flaw: widest(|hunt| hunt.flaw.name()),
            workload: widest(|hunt| hunt.workload.name),
            check: widest(|hunt| hunt.check.name()),
            bases,
            uniform,
            proofs,
        }
    }

    /// The line above the rows.
    pub fn head(&self) -> String {
        let numbers = match self.bases {
            1 => format!("{:>5} {:>9} {:>7}", "seeds", "simulated", "CPU"),
            _ => format!(
                "{:>12} {:>18} {:>14}",
                "seeds, p95", "simulated, p95", "CPU, p95"
            ),
        };
        let uniform = match self.uniform {
            true => format!(" {:>9} {:>7}", "uniform", "ratio"),
            false => String::new(),
        };
        let names = self.names("flaw", "workload", "check", "proof");
        format!("{names} {numbers}{uniform}  harm")
    }

    fn names(&self, flaw: &str, workload: &str, check: &str, proof: &str) -> String {
        let Self {
            flaw: f,
            workload: w,
            check: c,
            ..
        } = *self;
        let names = format!("{flaw:<f$}  {workload:<w$}  {check:<c$}");
        match self.proofs {
            true => format!("{names}  {proof:>PROOF_WIDTH$}"),
            false => names,
        }
    }

    /// One row.
    pub fn row(&self, row: &Row<'_>) -> String {
        let Hunt {
            flaw,
            workload,
            check,
            ..
        } = row.hunt;
        let seeds = Sample(row.ours.iter().map(|spoils| spoils.seeds as f64).collect());
        let simulated = Sample(row.ours.iter().map(|s| seconds(s.simulated)).collect());
        let cpu = Sample::cpu(&row.ours);
        let numbers = match self.bases {
            1 => format!(
                "{:>5} {:>7.1} s {:>5.2} s",
                seeds.mean(),
                simulated.mean(),
                cpu.mean()
            ),
            _ => format!(
                "{:>6.1} {:>5} {:>8.1} {:>7.1} s {:>6.2} {:>5.2} s",
                seeds.mean(),
                seeds.p95(),
                simulated.mean(),
                simulated.p95(),
                cpu.mean(),
                cpu.p95()
            ),
        };
        let uniform = match row.ratio() {
            Some((ratio, bound)) => {
                let mean = Sample::cpu(&row.uniform).mean();
                let more = if bound { ">" } else { "" };
                format!(" {mean:>7.2} s {:>7}", format!("{more}{ratio:.1}"))
            }
            None => String::new(),
        };
        let harm = match row.is_manifest() {
            _ if row.escaped() => "-",
            true => "manifest",
            false => "latent",
        };
        let names = self.names(flaw.name(), workload.name, check.name(), &proof(flaw));
        let mut line = format!("{names} {numbers}{uniform}  {harm}{}", note(row));
        line.truncate(line.trim_end().len());
        line
    }

    /// The lines below the rows.
    pub fn sum(&self, rows: &[Row<'_>]) -> Vec<String> {
        let escaped = rows.iter().filter(|row| row.escaped()).count();
        let mean = |row: &Row<'_>| {
            Sample(row.ours.iter().map(|spoils| spoils.seeds as f64).collect()).mean()
        };
        let seeds = Sample(rows.iter().map(mean).collect());
        let cpu: Duration = rows
            .iter()
            .flat_map(|row| row.ours.iter().chain(&row.uniform))
            .map(|spoils| spoils.cpu)
            .sum();
        let caught = match escaped {
            0 if rows.is_empty() => return Vec::new(),
            0 => "all convicted".to_owned(),
            some => format!("{some} ESCAPED"),
        };
        let mut lines = vec![format!(
            "{}: {caught}; seeds: median {:.1}, worst {:.1}; {:.1} s of CPU",
            counted(rows.len() as u64, "row"),
            seeds.median(),
            seeds.worst(),
            cpu.as_secs_f64(),
        )];
        if self.uniform {
            lines.push(format!(
                "CPU to conviction, uniform against ours, geometric mean over the flaws: {}; over \
                 manifest convictions alone: {}",
                times(rows.iter()),
                times(rows.iter().filter(|row| row.is_manifest())),
            ));
        }
        if self.proofs {
            lines.extend(reasons(rows));
        }
        lines
    }
}

/// As wide as `equivalent`.
const PROOF_WIDTH: usize = 10;

/// What a search of every state makes of a flaw, in a word or two.
fn proof(flaw: Flaw) -> String {
    match expected(flaw) {
        Expected::Counterexample(_, actions) => counted(actions as u64, "action"),
        Expected::Equivalent(_) => "equivalent".to_owned(),
        Expected::Outside(_) => "outside".to_owned(),
    }
}

/// What `proof` means, and why a flaw has no counterexample.
fn reasons(rows: &[Row<'_>]) -> Vec<String> {
    let mut lines = vec![
        "proof: the fewest actions to what is wrong, where every state of a small world is \
         searched; `deposed prove --flaw FLAW` shows them"
            .to_owned(),
    ];
    let mut flaws: Vec<Flaw> = rows.iter().map(|row| row.hunt.flaw).collect();
    flaws.dedup();
    let without = flaws.into_iter().filter_map(|flaw| match expected(flaw) {
        Expected::Counterexample(..) => None,
        Expected::Equivalent(why) | Expected::Outside(why) => Some((flaw, why)),
    });
    let without: Vec<_> = without.collect();
    let widest = without.iter().map(|(flaw, _)| flaw.name().len()).max();
    let width = widest.unwrap_or(0);
    lines.extend(
        without
            .into_iter()
            .map(|(flaw, why)| format!("  {:width$}  {}: {why}", flaw.name(), proof(flaw))),
    );
    lines
}

/// The geometric mean of the ratios, each flaw counted once; a lower bound where uniform
/// schedules let one escape.
fn times<'r, 'w: 'r>(rows: impl Iterator<Item = &'r Row<'w>>) -> String {
    let mut by_flaw: BTreeMap<Flaw, Vec<f64>> = BTreeMap::new();
    let mut at_least = "";
    for row in rows {
        if let Some((ratio, bound)) = row.ratio() {
            by_flaw.entry(row.hunt.flaw).or_default().push(ratio.ln());
            at_least = if bound { "at least " } else { at_least };
        }
    }
    let logs = by_flaw.into_values().map(|logs| Sample(logs).mean());
    let mean = Sample(logs.collect()).mean().exp();
    format!("{at_least}{mean:.1} times")
}

/// What else there is to say of a row.
fn note(row: &Row<'_>) -> String {
    if let Some(defect) = row.ours.iter().find_map(|spoils| spoils.defect.as_ref()) {
        return format!("  ESCAPED: the run is defective: {defect}");
    }
    let sooner = row.ours.iter().find_map(|spoils| spoils.sooner);
    match (row.escaped(), sooner) {
        (true, Some(other)) => format!("  ESCAPED, though {other} convicted"),
        (true, None) => "  ESCAPED".to_owned(),
        (false, Some(other)) => format!(", {other} sooner"),
        (false, None) => String::new(),
    }
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}

/// Figures of one kind.
struct Sample(Vec<f64>);

impl Sample {
    fn cpu(spoils: &[Spoils]) -> Self {
        Self(
            spoils
                .iter()
                .map(|spoils| spoils.cpu.as_secs_f64())
                .collect(),
        )
    }

    /// 0 when there are none.
    fn mean(&self) -> f64 {
        match self.0.len() {
            0 => 0.0,
            n => self.0.iter().sum::<f64>() / n as f64,
        }
    }

    fn p95(&self) -> f64 {
        self.rank(0.95)
    }

    fn median(&self) -> f64 {
        self.rank(0.5)
    }

    fn worst(&self) -> f64 {
        self.rank(1.0)
    }

    /// The nearest rank; 0 when there are none.
    fn rank(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let nth = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(nth.saturating_sub(1)).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hunt::Schedules, workload::Workload};
    use deposed_checkers::verdict::Check;

    fn spoils(seeds: u64, millis: u64, convicted: bool) -> Spoils {
        Spoils {
            convicted,
            seeds,
            cpu: Duration::from_millis(millis),
            ..Spoils::default()
        }
    }

    #[test]
    fn ranks_are_the_nearest() {
        let sample = Sample((1..=20).map(f64::from).collect());
        assert_eq!(
            (sample.median(), sample.p95(), sample.worst()),
            (10.0, 19.0, 20.0)
        );
        assert_eq!(Sample(Vec::new()).p95(), 0.0);
    }

    #[test]
    fn an_escape_is_told_and_makes_the_ratio_a_bound() {
        let workload = Workload::named("w");
        let hunt = Hunt {
            flaw: Flaw::NoBarrier,
            workload: &workload,
            check: Check::ElectionBarrier,
            schedules: Schedules::Workload,
        };
        let table = Table::new(&[hunt], 2, true, false);
        let row = Row {
            hunt,
            ours: vec![spoils(1, 100, true), spoils(3, 300, true)],
            uniform: vec![spoils(5, 1000, true), spoils(200, 3000, false)],
        };
        assert_eq!(row.ratio(), Some((10.0, true)));
        assert!(!row.escaped());
        assert!(
            table.sum(std::slice::from_ref(&row))[1].contains("at least 10.0 times"),
            "{:?}",
            table.sum(std::slice::from_ref(&row))
        );
        assert!(
            table.row(&row).contains(">10.0  latent"),
            "{}",
            table.row(&row)
        );
        let lost = Row {
            ours: vec![spoils(200, 100, false)],
            ..row
        };
        assert!(table.row(&lost).ends_with("ESCAPED"));
        assert!(table.sum(&[lost])[0].contains("1 row: 1 ESCAPED"));
    }

    #[test]
    fn what_a_search_makes_of_a_flaw_stands_in_its_row_and_why_it_finds_nothing_below() {
        let workload = Workload::named("workload");
        let of = |flaw| Hunt {
            flaw,
            workload: &workload,
            check: Check::Conduct,
            schedules: Schedules::Workload,
        };
        let hunts = [Flaw::NoBarrier, Flaw::StaleRetry, Flaw::TokenPerKey].map(of);
        let told = |proofs| {
            let table = Table::new(&hunts, 1, false, proofs);
            let rows = hunts.map(|hunt| Row {
                hunt,
                ours: vec![spoils(1, 100, true)],
                uniform: Vec::new(),
            });
            let mut lines = vec![table.head()];
            lines.extend(rows.iter().map(|row| table.row(row)));
            lines.extend(table.sum(&rows));
            lines
        };
        let lines = told(true);
        let at = lines[0].find("proof").expect("a column") + "proof".len();
        for (line, word) in lines[1..]
            .iter()
            .zip(["4 actions", "equivalent", "outside"])
        {
            assert!(line[..at].ends_with(word), "{lines:#?}");
        }
        let Expected::Outside(why) = expected(Flaw::TokenPerKey) else {
            panic!("it needs two keys");
        };
        assert!(lines[lines.len() - 1].contains(why), "{lines:#?}");
        let reasons = lines.iter().filter(|line| line.starts_with("  "));
        assert_eq!(
            reasons.count(),
            2,
            "what has a counterexample needs no reason"
        );
        // Of another system a search of ours says nothing.
        assert!(told(false).iter().all(|line| !line.contains("proof")));
    }
}

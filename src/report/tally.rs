//! What a workload's runs come to: one line of counts when all is well.

use std::collections::{BTreeMap, BTreeSet};

use deposed_checkers::verdict::{Check, Verdict};

use super::{
    index::{Kept, Row},
    text::{counted, printable},
};
use crate::{
    campaign::{Counts, Run},
    mark::Mark,
    workload::Workload,
};

/// How many failing seeds are listed.
const SEEDS_LISTED: usize = 20;

/// The sum of a workload's runs.
pub struct Tally<'w> {
    workload: &'w Workload,
    seeds: u64,
    counts: Counts,
    seen: BTreeSet<Mark>,
    failed: Vec<u64>,
    defective: u64,
    checks: BTreeMap<Check, Verdicted>,
    kept: Vec<Kept>,
}

/// How often a check said what, and why the first time.
#[derive(Default)]
struct Verdicted {
    violated: u64,
    not_claimed: (u64, String),
    /// Another seed gave another reason: it is not the workload's.
    reasons_differ: bool,
    unknown: (u64, String),
}

/// What to make of a workload's runs, worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// No check was violated, and what had to be seen was seen.
    Valid,
    /// A check was undecided, or a mark was never seen.
    Unknown,
    /// A check was violated, or a run was defective.
    Violated,
}

impl<'w> Tally<'w> {
    /// Of no runs yet.
    pub fn new(workload: &'w Workload) -> Self {
        Self {
            workload,
            seeds: 0,
            counts: Counts::default(),
            seen: BTreeSet::new(),
            failed: Vec::new(),
            defective: 0,
            checks: BTreeMap::new(),
            kept: Vec::new(),
        }
    }

    /// The workload.
    pub fn workload(&self) -> &'w Workload {
        self.workload
    }

    /// How many seeds were run.
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// Adds a run.
    pub fn add(&mut self, run: &Run<'_>) {
        let outcome = &run.outcome;
        self.seeds += 1;
        self.counts = self.counts + run.counts;
        self.seen.extend(&outcome.marks);
        if outcome.failed() {
            self.failed.push(run.seed);
        }
        self.defective += u64::from(!outcome.defects.is_empty());
        for (check, verdict) in &outcome.verdicts.0 {
            let verdicted = self.checks.entry(*check).or_default();
            if let Verdict::NotClaimed(why) = verdict {
                let (times, first) = &verdicted.not_claimed;
                verdicted.reasons_differ |= *times > 0 && first != why;
            }
            let (times, why) = match verdict {
                Verdict::Valid => continue,
                Verdict::Violated(_) => {
                    verdicted.violated += 1;
                    continue;
                }
                Verdict::NotClaimed(why) => (&mut verdicted.not_claimed, why),
                Verdict::Unknown(why) => (&mut verdicted.unknown, why),
            };
            times.0 += 1;
            if times.0 == 1 {
                times.1.clone_from(why);
            }
        }
    }

    /// A history was kept.
    pub fn keep(&mut self, kept: Kept) {
        self.kept.push(kept);
    }

    /// What an index says of it.
    pub fn row(&self) -> Row {
        let stories = |marks: Vec<Mark>| {
            let stories = marks.into_iter().map(|mark| mark.story().to_owned());
            stories.collect()
        };
        let counts = match self.failed.len() {
            0 => self.counts(", "),
            failed => self.failures_by_check(failed).replace('\n', ";"),
        };
        Row {
            verdict: self.word().to_owned(),
            counts: counts.split_whitespace().collect::<Vec<_>>().join(" "),
            seen: stories(self.seen.iter().copied().collect()),
            unseen: self.unmet().map(stories),
            kept: self.kept.clone(),
        }
    }

    /// How many runs failed.
    pub fn failures(&self) -> usize {
        self.failed.len()
    }

    /// The marks that were not seen; `None` where too few seeds were run to judge.
    fn unmet(&self) -> Option<Vec<Mark>> {
        let must_see = self.workload.must_see.iter().copied();
        (self.seeds >= self.workload.seeds)
            .then(|| must_see.filter(|mark| !self.seen.contains(mark)).collect())
    }

    /// What to make of it.
    pub fn standing(&self) -> Standing {
        let undecided = self.checks.values().any(|check| check.unknown.0 > 0);
        let unmet = self.unmet().is_some_and(|unmet| !unmet.is_empty());
        match () {
            () if !self.failed.is_empty() => Standing::Violated,
            () if undecided || unmet => Standing::Unknown,
            () => Standing::Valid,
        }
    }

    /// Why a check claimed nothing in any seed, where that is the workload's doing and
    /// not a run's: every seed gave the same reason.
    fn unclaimed<'v>(&self, verdicted: &'v Verdicted) -> Option<&'v str> {
        let (times, why) = &verdicted.not_claimed;
        (*times == self.seeds && !verdicted.reasons_differ).then_some(why)
    }

    /// The result line, and below it what it cannot say but [`unclaimed`] does. Names are
    /// as wide as `width`.
    pub fn text(&self, width: usize) -> String {
        let (name, word) = (self.workload.name, self.word());
        let counts = match self.failed.len() {
            0 => self.counts(" "),
            failed => self.failures_by_check(failed),
        };
        let mut text = format!("{word:<8}{name:<width$}  {counts}\n");
        let mut add = |line: String| text += &format!("        {}\n", printable(&line));
        for (check, verdicted) in &self.checks {
            let named = [
                ("not claimed", &verdicted.not_claimed),
                ("unknown", &verdicted.unknown),
            ];
            let at_the_end = self.unclaimed(verdicted).is_some();
            for (word, (times, why)) in named {
                if *times > 0 && !at_the_end {
                    add(format!(
                        "{check} {word} in {}: {why}",
                        counted(*times, "seed")
                    ));
                }
            }
        }
        match self.unmet() {
            None if self.workload.must_see.is_empty() => {}
            None => add(format!(
                "marks not judged: {} of {}",
                counted(self.seeds, "seed"),
                self.workload.seeds
            )),
            Some(unmet) => {
                for mark in unmet {
                    let seeds = counted(self.seeds, "seed");
                    add(format!("never seen in {seeds}: {}", mark.story()));
                }
            }
        }
        text
    }

    fn word(&self) -> &'static str {
        match self.standing() {
            Standing::Valid => "ok",
            Standing::Unknown => "unknown",
            Standing::Violated => "FAILED",
        }
    }

    /// Right-aligned, one below the other, with this in between.
    fn counts(&self, between: &str) -> String {
        let Counts {
            leader_changes,
            writes,
            events,
        } = self.counts;
        let all = |check: &&Verdicted| check.not_claimed.0 == 0 && check.unknown.0 == 0;
        let ok = self.checks.values().filter(all).count() as u64;
        let unclaimed = self.checks.iter();
        let unclaimed = unclaimed.filter(|(_, check)| self.unclaimed(check).is_some());
        let unclaimed: Vec<_> = unclaimed.map(|(check, _)| check.name()).collect();
        let unclaimed = match unclaimed.is_empty() {
            true => String::new(),
            false => format!(", {} not claimed", unclaimed.join(", ")),
        };
        [
            format!("{:>10}", counted(self.seeds, "seed")),
            format!("{:>20}", counted(leader_changes, "leader change")),
            format!("{:>26}", counted(writes, "acknowledged write")),
            format!("{:>16}", counted(events, "event")),
            format!("{:>11} ok{unclaimed}", counted(ok, "check")),
        ]
        .join(between)
    }

    fn failures_by_check(&self, failed: usize) -> String {
        let violated = self.checks.iter().filter(|(_, check)| check.violated > 0);
        let mut by: Vec<String> = violated
            .map(|(check, times)| format!("{check} {}", times.violated))
            .collect();
        if self.defective > 0 {
            by.push(format!("defects {}", self.defective));
        }
        let listed = self.failed.iter().take(SEEDS_LISTED).map(u64::to_string);
        let mut listed: Vec<String> = listed.collect();
        if failed > SEEDS_LISTED {
            listed.push("…".to_owned());
        }
        let (by, listed) = (by.join(", "), listed.join(" "));
        let seeds = counted(self.seeds, "seed");
        format!("{failed} of {seeds}: {by}\n        seeds {listed}")
    }
}

/// Why checks claimed nothing in whole workloads, each reason once; which workloads
/// where a check has several reasons, as the result lines tell it otherwise.
pub fn unclaimed(tallies: &[Tally<'_>]) -> String {
    let mut reasons: BTreeMap<Check, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for tally in tallies {
        for (check, verdicted) in &tally.checks {
            if let Some(why) = tally.unclaimed(verdicted) {
                let of_check = reasons.entry(*check).or_default();
                of_check.entry(why).or_default().push(tally.workload.name);
            }
        }
    }
    let mut text = String::new();
    for (check, reasons) in reasons {
        for (why, workloads) in &reasons {
            let place = match reasons.len() {
                1 => String::new(),
                _ => format!(" in {}", workloads.join(", ")),
            };
            let line = format!("{check} not claimed{place}: {why}");
            text += &format!("{}\n", printable(&line));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use deposed_checkers::verdict::{Evidence, Verdicts};

    use super::*;
    use crate::run::{Header, Outcome};

    fn workload() -> Workload {
        Workload {
            seeds: 2,
            must_see: vec![Mark::TakenOverAfterExpiry, Mark::StaleWriteRefused],
            ..Workload::named("gc-pause")
        }
    }

    fn run<'w>(workload: &'w Workload, seed: u64, marks: &[Mark], verdict: Verdict) -> Run<'w> {
        Run {
            workload,
            seed,
            counts: Counts {
                leader_changes: 1,
                writes: 400,
                events: 5000,
            },
            outcome: Outcome {
                header: Header::of(workload, seed, "deposed", None),
                history: Vec::new(),
                verdicts: Verdicts(vec![
                    (Check::StorageSafety, Verdict::Valid),
                    (Check::BeliefSafety, verdict),
                ]),
                marks: marks.iter().copied().collect(),
                defects: Vec::new(),
            },
        }
    }

    fn tally<'w>(workload: &'w Workload, runs: &[Run<'w>]) -> Tally<'w> {
        let mut tally = Tally::new(workload);
        runs.iter().for_each(|run| tally.add(run));
        tally
    }

    const BOTH: &[Mark] = &[Mark::TakenOverAfterExpiry, Mark::StaleWriteRefused];

    #[test]
    fn success_is_a_line_of_counts() {
        let workload = workload();
        let runs = [
            run(&workload, 0, &BOTH[..1], Verdict::Valid),
            run(&workload, 1, &BOTH[1..], Verdict::Valid),
        ];
        let tally = tally(&workload, &runs);
        assert_eq!(tally.standing(), Standing::Valid);
        assert_eq!(
            tally.text(10),
            "ok      gc-pause       2 seeds     2 leader changes    800 acknowledged writes     10000 events    2 checks ok\n"
        );
    }

    fn not_claimed(why: &str) -> Verdict {
        Verdict::NotClaimed(why.to_owned())
    }

    #[test]
    fn what_a_seed_does_not_claim_is_named_and_counts_as_valid() {
        let workload = workload();
        let reason = "        belief-safety not claimed in";
        let once = [
            run(&workload, 0, BOTH, Verdict::Valid),
            run(&workload, 1, BOTH, not_claimed("a slow clock")),
        ];
        let differently = [
            run(&workload, 0, BOTH, not_claimed("a slow clock")),
            run(&workload, 1, BOTH, not_claimed("a fast clock")),
        ];
        for (runs, ends) in [
            (once, format!("{reason} 1 seed: a slow clock\n")),
            (differently, format!("{reason} 2 seeds: a slow clock\n")),
        ] {
            let tally = tally(&workload, &runs);
            assert_eq!(tally.standing(), Standing::Valid);
            let text = tally.text(8);
            assert!(text.contains("  1 check ok\n"), "{text}");
            assert!(text.ends_with(&ends), "{text}");
            assert_eq!(unclaimed(&[tally]), "");
        }
    }

    #[test]
    fn what_a_workload_does_not_claim_is_on_its_line_and_the_reason_below_them_all() {
        let named = |name| Workload {
            must_see: Vec::new(),
            ..Workload::named(name)
        };
        let [one, two, other] = [named("one"), named("two"), named("other")];
        let not_claiming = |workload, why| {
            let runs = [0, 1].map(|seed| run(workload, seed, &[], not_claimed(why)));
            tally(workload, &runs)
        };
        let mut tallies = vec![
            not_claiming(&one, "no clocks"),
            not_claiming(&two, "no clocks"),
        ];
        for tally in &tallies {
            let text = tally.text(8);
            assert_eq!(tally.standing(), Standing::Valid);
            assert!(
                text.ends_with("  1 check ok, belief-safety not claimed\n"),
                "{text}"
            );
        }
        assert_eq!(
            unclaimed(&tallies),
            "belief-safety not claimed: no clocks\n"
        );
        tallies.push(not_claiming(&other, "no beliefs"));
        let expected = "\
belief-safety not claimed in other: no beliefs
belief-safety not claimed in one, two: no clocks
";
        assert_eq!(unclaimed(&tallies), expected);
    }

    #[test]
    fn a_mark_is_judged_over_the_default_seeds_and_not_over_fewer() {
        let workload = workload();
        let runs = [
            run(&workload, 0, &BOTH[..1], Verdict::Valid),
            run(&workload, 1, &[], Verdict::Valid),
        ];
        let short = tally(&workload, &runs[..1]);
        assert_eq!(short.standing(), Standing::Valid);
        let text = short.text(8);
        assert!(
            text.ends_with("        marks not judged: 1 seed of 2\n"),
            "{text}"
        );
        let full = tally(&workload, &runs);
        assert_eq!(full.standing(), Standing::Unknown);
        let text = full.text(8);
        assert!(text.starts_with("unknown gc-pause"), "{text}");
        let unmet = "        never seen in 2 seeds: a stale write was refused\n";
        assert!(text.ends_with(unmet), "{text}");
    }

    #[test]
    fn failures_are_counted_by_check_and_come_before_the_undecided() {
        let workload = workload();
        let evidence = Evidence {
            sentence: String::new(),
            events: vec![0],
            culprit: 0,
            expected: String::new(),
            reckoning: Vec::new(),
        };
        let mut defective = run(&workload, 1, BOTH, Verdict::Unknown("no budget".to_owned()));
        defective.outcome.defects.push("a panic".to_owned());
        let runs = [
            run(&workload, 0, BOTH, Verdict::Violated(evidence)),
            defective,
        ];
        let tally = tally(&workload, &runs);
        assert_eq!(tally.standing(), Standing::Violated);
        let expected = "\
FAILED  gc-pause  2 of 2 seeds: belief-safety 1, defects 1
        seeds 0 1
        belief-safety unknown in 1 seed: no budget
";
        assert_eq!(tally.text(8), expected);
    }
}

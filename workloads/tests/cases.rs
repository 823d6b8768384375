//! Reported bugs, each as a scenario: convicted by the check that its case names where
//! the flaw is planted, and harmless where it is not.
//!
//! `cargo test --test cases -- --nocapture` tells each story.

use std::{collections::BTreeMap, sync::Arc};

use deposed::{
    checkers::{
        history::{Body, NEMESIS},
        verdict::Verdict,
    },
    prelude::*,
    run::{Outcome, run},
};
use deposed_workloads::cases::{self, Case};

/// The schedule is the case's; latencies and backoffs are each seed's.
const SEEDS: u64 = 10;

#[test]
fn every_reported_bug_is_convicted_by_the_check_that_its_case_names() {
    let mut escaped = Vec::new();
    for case in cases::all() {
        let Some(check) = case.convicted_by else {
            continue;
        };
        let seed = (0..SEEDS).find(|&seed| convicts(check, &case, &outcome(&case, seed, true)));
        println!("{}: {check}, {seed:?}\n    {}", case.name, case.story);
        if seed.is_none() {
            escaped.push(case.name);
        }
    }
    assert_eq!(escaped, [""; 0], "escaped the check that their case names");
}

/// Whether the check convicts of what came after the case's faults had begun: of what was
/// wrong before they have no part in.
fn convicts(check: Check, case: &Case, outcome: &Outcome) -> bool {
    let Some(Verdict::Violated(evidence)) = outcome.verdicts.of(check) else {
        return false;
    };
    // Its story is told nowhere else.
    if case.flaw.is_none() && untold(case, outcome).next().is_some() {
        return false;
    }
    let struck = struck(outcome);
    let faults = case.schedule.iter().map(|entry| entry.fault.name());
    let first = faults.filter_map(|fault| struck.get(fault)?.first()).min();
    case.schedule.is_empty() || first.is_some_and(|first| *first < evidence.culprit)
}

#[test]
fn without_its_flaw_no_case_does_harm_though_its_story_was_told() {
    let mut wrong = Vec::new();
    for case in cases::all() {
        // What a system without the flaw is convicted of by design has none to leave out.
        if case.flaw.is_none() && case.convicted_by.is_some() {
            continue;
        }
        for seed in 0..SEEDS {
            let outcome = outcome(&case, seed, false);
            let told = format!("{} under seed {seed}", case.name);
            for (check, verdict) in &outcome.verdicts.0 {
                if !matches!(verdict, Verdict::Valid | Verdict::NotClaimed(_)) {
                    wrong.push(format!("{told}: {check}: {verdict:?}"));
                }
            }
            wrong.extend(untold(&case, &outcome).map(|what| format!("{told}: {what}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What of a case's story is missing from a run: a fault that was void or never came, one
/// that met nothing, a mark.
fn untold(case: &Case, outcome: &Outcome) -> impl Iterator<Item = String> {
    let struck = struck(outcome);
    let times = |what: &str| struck.get(what).map_or(0, Vec::len);
    let mut due: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in &case.schedule {
        let fault = entry.fault.name();
        let met = match fault {
            "lose" => "lost",
            "delay" => "delayed",
            "duplicate" => "duplicated",
            "gc-pause" => "paused",
            "crash" => "restart",
            other => other,
        };
        *due.entry(fault).or_default() += 1;
        if met != fault {
            *due.entry(met).or_default() += 1;
        }
    }
    let void = (times("void") > 0).then(|| "a fault was void".to_owned());
    let missed = due.into_iter().filter(|(what, due)| times(what) < *due);
    let missed: Vec<String> = missed
        .map(|(what, due)| format!("{} of {due} {what}", times(what)))
        .collect();
    let unseen = case
        .shows
        .iter()
        .filter(|mark| !outcome.marks.contains(mark));
    let unseen: Vec<String> = unseen
        .map(|mark| format!("never seen: {}", mark.story()))
        .collect();
    void.into_iter().chain(missed).chain(unseen)
}

/// What the nemesis did, by name: the events.
fn struck(outcome: &Outcome) -> BTreeMap<&str, Vec<u64>> {
    let mut struck: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for event in &outcome.history {
        if let Body::Nemesis(what, _) = &event.body
            && event.process == NEMESIS
        {
            struck.entry(what.as_str()).or_default().push(event.index);
        }
    }
    struck
}

#[test]
fn no_two_cases_share_a_name_and_each_says_where_it_was_reported_and_what_it_shows() {
    let mut names = std::collections::BTreeSet::new();
    for case in cases::all() {
        assert!(names.insert(case.name), "{} twice", case.name);
        assert!(!case.reports.is_empty(), "{}", case.name);
        assert!(!case.shows.is_empty(), "{}", case.name);
    }
}

fn outcome(case: &Case, seed: u64, flawed: bool) -> Outcome {
    let system: Arc<dyn System> = Arc::new(Deposed);
    let header = case.header(seed, system.name(), flawed);
    let outcome = run(&header, &system).expect("a case's header can be run");
    assert_eq!(outcome.defects, [""; 0], "{} under seed {seed}", case.name);
    outcome
}

//! Reported bugs, each as a scenario: convicted by the check that its case names where
//! the flaw is planted, and harmless where it is not.
//!
//! `cargo test --test cases -- --nocapture` tells each story.

use std::sync::Arc;

use deposed::{prelude::*, run::run};
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
        let seed = (0..SEEDS).find(|&seed| violated(&case, seed, true).contains(&check));
        println!("{}: {check}, {seed:?}\n    {}", case.name, case.story);
        if seed.is_none() {
            escaped.push(case.name);
        }
    }
    assert_eq!(escaped, [""; 0], "escaped the check that their case names");
}

#[test]
fn without_its_flaw_no_case_does_harm() {
    for case in cases::all() {
        // What a system without the flaw is convicted of by design has none to leave out.
        if case.flaw.is_none() && case.convicted_by.is_some() {
            continue;
        }
        for seed in 0..SEEDS {
            let violated = violated(&case, seed, false);
            assert_eq!(violated, [], "{} under seed {seed}", case.name);
        }
    }
}

#[test]
fn no_two_cases_share_a_name_and_each_says_where_it_was_reported() {
    let mut names = std::collections::BTreeSet::new();
    for case in cases::all() {
        assert!(names.insert(case.name), "{} twice", case.name);
        assert!(!case.reports.is_empty(), "{}", case.name);
    }
}

fn violated(case: &Case, seed: u64, flawed: bool) -> Vec<Check> {
    let system: Arc<dyn System> = Arc::new(Deposed);
    let header = case.header(seed, system.name(), flawed);
    let outcome = run(&header, &system).expect("a case's header can be run");
    assert_eq!(outcome.defects, [""; 0], "{} under seed {seed}", case.name);
    outcome
        .verdicts
        .violated()
        .map(|(check, _)| check)
        .collect()
}

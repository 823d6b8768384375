//! What every workload's test asserts.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use deposed::{
    run::{Header, run},
    system::{Deposed, System},
    workload::Workload,
};

/// Runs the default seeds. No check is violated, no run is defective, and what the
/// workload must see was seen.
pub(crate) fn holds(workload: &Workload) {
    let system: Arc<dyn System> = Arc::new(Deposed);
    let mut missing: BTreeSet<_> = workload.must_see.iter().copied().collect();
    for seed in 0..workload.seeds {
        let header = Header::of(workload, seed, system.name(), None);
        let outcome = run(&header, &system).unwrap_or_else(|error| {
            panic!("{} does not run with seed {seed}: {error}", workload.name)
        });
        let violations = outcome.verdicts.violated();
        let mut wrong: Vec<String> = violations
            .map(|(check, evidence)| format!("{check}: {}", evidence.sentence))
            .collect();
        wrong.extend(outcome.defects);
        assert!(
            wrong.is_empty(),
            "{name} failed with seed {seed}\n  {wrong}\nlook into it:\n  \
             cargo run --release -- replay {name} {seed}",
            name = workload.name,
            wrong = wrong.join("\n  "),
        );
        missing.retain(|mark| !outcome.marks.contains(mark));
    }
    let missing: Vec<_> = missing.into_iter().map(|mark| mark.story()).collect();
    assert!(
        missing.is_empty(),
        "{name} passed, but in {seeds} seeds it never saw that {missing}: it proves nothing\n\
         look at what it does:\n  cargo run --release -- run {name}",
        name = workload.name,
        seeds = workload.seeds,
        missing = missing.join(", nor that "),
    );
}

/// A file that the list forgot would never run, a name that differs from its file
/// could not be found, a workload that must see nothing could pass by doing nothing.
#[test]
fn every_file_is_listed_under_its_name() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(here).expect("the crate's own folder");
    let files: BTreeSet<String> = files
        .filter_map(|file| file.ok()?.file_name().into_string().ok())
        .filter_map(|file| Some(file.strip_suffix(".rs")?.replace('_', "-")))
        .filter(|file| !["lib", "main", "check"].contains(&file.as_str()))
        .collect();
    let all = super::all();
    let listed: BTreeSet<String> = all.iter().map(|listed| listed.name.to_owned()).collect();
    assert_eq!(listed, files);
    for workload in &all {
        assert!(!workload.story.is_empty(), "{}", workload.name);
        assert!(!workload.must_see.is_empty(), "{}", workload.name);
    }
}

/// A workload whose schedule the world refuses is found here, not by a user's seed.
#[test]
fn every_seed_makes_a_header_that_can_be_run() {
    for workload in super::all() {
        for seed in 0..1_000 {
            let header = Header::of(&workload, seed, "deposed", None);
            assert_eq!(header.validate(), Ok(()), "{} {seed}", workload.name);
        }
    }
}

/// A flaw that no workload catches is a check that nobody has seen at work.
#[test]
fn every_flaw_is_caught_by_some_workload() {
    let mut caught_by: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for workload in super::all() {
        for (flaw, check) in workload.catches {
            caught_by
                .entry(flaw)
                .or_default()
                .push((workload.name, check));
        }
    }
    for flaw in deposed::flaw::Flaw::ALL {
        assert!(caught_by.contains_key(flaw), "nothing catches {flaw}");
    }
}

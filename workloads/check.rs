//! What must hold of the workloads together.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use deposed::run::Header;

/// A file that the list forgot would never run, a name that differs from its file
/// could not be found, a workload that must see nothing could pass by doing nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "they are put into a set")]
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

//! A foreign system gets the faults, the histories and the checks unchanged.

#[path = "../examples/naive_lock.rs"]
mod naive_lock;

use std::{collections::BTreeSet, sync::Arc};

use deposed::{
    checkers::verdict::{Check, Verdict},
    prelude::*,
    run::{Header, run},
};
use naive_lock::NaiveLock;

/// Runs a workload as it is, until some seed shows the zombie; every seed leaves the
/// checks that need a token with nothing to claim.
fn is_convicted_of_zombie_writes(workload: &Workload) {
    let system: Arc<dyn System> = Arc::new(NaiveLock);
    let mut convicted = BTreeSet::new();
    for seed in 0..workload.seeds {
        let header = Header::of(workload, seed, system.name(), None);
        let outcome = run(&header, &system).expect("the run itself goes through");
        assert_eq!(outcome.defects, Vec::<String>::new(), "seed {seed}");
        for check in [
            Check::TokenMonotonicity,
            Check::StorageSafety,
            Check::ElectionBarrier,
        ] {
            let verdict = outcome.verdicts.of(check);
            let claims_nothing = matches!(verdict, Some(Verdict::NotClaimed(_)));
            assert!(claims_nothing, "seed {seed}: {check}: {verdict:?}");
        }
        convicted.extend(outcome.verdicts.violated().map(|(check, _)| check));
    }
    assert!(
        convicted.contains(&Check::ZombieWrite),
        "{} convicts it only of {convicted:?}",
        workload.name
    );
    assert!(!convicted.contains(&Check::WellFormed));
}

#[test]
fn gc_pause() {
    is_convicted_of_zombie_writes(&deposed_workloads::gc_pause::workload());
}

#[test]
fn chaos() {
    is_convicted_of_zombie_writes(&deposed_workloads::chaos::workload());
}

//! Every planted flaw is convicted, by the check that its workload names.
//!
//! `cargo test -p deposed-workloads --test flaws -- --nocapture` prints the seeds
//! that each took.

use std::{collections::BTreeMap, sync::Arc};

use deposed::{
    checkers::verdict::Check,
    flaw::Flaw,
    run::{Header, run},
    system::{Deposed, System},
    workload::Workload,
};

/// A flaw that no seed below this shows has escaped.
const SEEDS: u64 = 200;

macro_rules! flaws {
    ($($name:ident,)+) => {
        $(
            #[test]
            fn $name() {
                is_convicted(stringify!($name));
            }
        )+

        const LISTED: &[&str] = &[$(stringify!($name)),+];
    };
}

flaws![
    count_from_reply,
    count_from_last_try,
    no_drift_margin,
    lost_after_two_ttls,
    belief_is_a_flag,
    clock_stops_in_suspend,
    wall_clock_expiry,
    late_renew_extends,
    renew_call_outlives_lease,
    release_before_step_down,
    release_before_drain,
    waiter_trusts_dead_lease,
    no_barrier,
    barrier_after_write,
    reads_before_barrier,
    barrier_with_fresh_token,
    self_made_token,
    stale_retry,
    one_try_is_the_budget,
    never_contends_again,
    resume_after_restart,
    works_unfenced,
    answers_before_durable,
    counter_not_synced,
    restored_without_floor,
    forgets_counter,
    same_holder_same_token,
    same_token_again,
    release_resets_counter,
    random_tokens,
    narrow_counter,
    forgets_lease,
    grants_early,
    renews_the_dead,
    renew_by_name,
    releases_anything,
    stale_expiry,
    acquire_twice,
    lock_delay_forgotten,
    wall_clock_store,
    accepts_anything,
    fence_is_a_no_op,
    token_per_key,
    off_by_one,
    refuses_equal,
    fence_not_durable,
    value_before_token,
    compares_remote_owner,
    minority_ack,
    counts_refusals,
    no_recovery,
    reads_one_replica,
    applies_twice,
    forgets_highest,
    cleanup_drops_fence,
    check_then_act,
];

#[test]
fn every_flaw_is_listed() {
    let names = Flaw::ALL.iter().map(|flaw| flaw.name().replace('-', "_"));
    assert_eq!(names.collect::<Vec<_>>(), LISTED);
}

/// By every check of every workload that claims to catch it.
fn is_convicted(name: &str) {
    let flaw: Flaw = name.replace('_', "-").parse().expect("a flaw's name");
    let mut caught = false;
    for workload in deposed_workloads::all() {
        for &(_, check) in workload
            .catches
            .iter()
            .filter(|(caught, _)| *caught == flaw)
        {
            let seeds = seeds_to_conviction(flaw, &workload, check);
            println!("{flaw}: {check} in {}, after {seeds} seeds", workload.name);
            caught = true;
        }
    }
    assert!(caught, "no workload lists {flaw} in its catches");
}

/// How many seeds it takes, the convicting one included.
fn seeds_to_conviction(flaw: Flaw, workload: &Workload, check: Check) -> u64 {
    let system: Arc<dyn System> = Arc::new(Deposed);
    let mut others: BTreeMap<Check, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        let header = Header::of(workload, seed, system.name(), Some(flaw));
        let outcome = run(&header, &system).expect("the run itself goes through");
        assert_eq!(
            outcome.defects,
            Vec::<String>::new(),
            "{flaw} in {} breaks the harness itself, seed {seed}",
            workload.name
        );
        if outcome
            .verdicts
            .violated()
            .any(|(violated, _)| violated == check)
        {
            return seed + 1;
        }
        for (other, _) in outcome.verdicts.violated() {
            others.entry(other).or_insert(seed);
        }
    }
    let others: Vec<String> = others
        .iter()
        .map(|(other, seed)| format!("{other} did with seed {seed}"))
        .collect();
    panic!(
        "{flaw} escaped {check} in {SEEDS} seeds of {}{}\n  \
         cargo run --release -- run {} --flaw {flaw}",
        workload.name,
        if others.is_empty() {
            String::from(" and every other check")
        } else {
            format!(", though {}", others.join(", "))
        },
        workload.name,
    );
}

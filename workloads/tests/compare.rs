//! What the configurations that are compared come to is what theory demands.

use std::{collections::BTreeMap, num::NonZero, ops::ControlFlow, sync::Arc};

use deposed::{
    campaign::Campaign,
    compare::{Arm, Measures},
    run::Header,
    system::{Deposed, System},
    workload::Workload,
};

fn workload(name: &str) -> Workload {
    let mut all = deposed_workloads::all().into_iter();
    all.find(|workload| workload.name == name)
        .expect("it is listed")
}

/// Each arm's measures over the workload's default seeds, by its name.
fn measured(workload: &Workload) -> BTreeMap<&'static str, Measures> {
    let system: Arc<dyn System> = Arc::new(Deposed);
    let measure = |arm: &Arm| {
        let workload = arm.of(workload);
        let campaign = Campaign {
            system: &system,
            flaw: None,
            jobs: NonZero::new(2).expect("2 is not 0"),
            keep: true,
            stop: &false.into(),
            progress: &|| (),
        };
        let mut measures = Measures::default();
        let ran = campaign.run(&[(&workload, 0..=workload.seeds - 1)], |run| {
            measures.add(Measures::of(&run.outcome.history));
            ControlFlow::Continue(())
        });
        assert_eq!(ran, Ok(()));
        (arm.name, measures)
    };
    workload.compares.iter().map(measure).collect()
}

/// What differs between two rows is the configuration and nothing else.
#[test]
fn every_arm_of_a_seed_has_the_same_faults() {
    for workload in deposed_workloads::all() {
        for arm in &workload.compares {
            for seed in 0..100 {
                let own = Header::of(&workload, seed, "deposed", None);
                let other = Header::of(&arm.of(&workload), seed, "deposed", None);
                assert_eq!(
                    other.schedule, own.schedule,
                    "{} {}",
                    workload.name, arm.name
                );
                assert_eq!(other.clocks, own.clocks, "{} {}", workload.name, arm.name);
                assert_eq!(other.validate(), Ok(()), "{} {}", workload.name, arm.name);
            }
        }
    }
}

/// A table without the workload's own configuration would judge nothing.
#[test]
fn a_comparing_workload_has_its_own_configuration_among_its_arms() {
    for workload in deposed_workloads::all() {
        let own = |arm: &Arm| arm.is_own(&workload);
        let compares = &workload.compares;
        assert!(
            compares.is_empty() || compares.iter().any(own),
            "{}",
            workload.name
        );
    }
}

#[test]
fn the_barrier_is_what_stops_a_deposed_leaders_write() {
    let measured = measured(&workload("write-before-fence"));
    let (fenced, unfenced) = (
        &measured["highest-seen"],
        &measured["highest-seen without barrier"],
    );
    let owner_alone = &measured["compare-and-swap"];
    assert!(fenced.tried > 0 && fenced.refused > 0, "{fenced:?}");
    assert_eq!(fenced.landed, 0, "{fenced:?}");
    assert!(unfenced.landed > 0, "{unfenced:?}");
    // It knows of the grant at once.
    assert!(owner_alone.refused > 0, "{owner_alone:?}");
    assert_eq!(owner_alone.early + owner_alone.landed, 0, "{owner_alone:?}");
    assert!(owner_alone.windows.iter().all(|window| *window == 0));
    // It is set within round trips, the first write comes when there is something to write.
    let longest = |measures: &Measures| measures.windows.iter().max().copied();
    assert!(
        longest(fenced) < longest(unfenced),
        "{fenced:?} {unfenced:?}"
    );
}

#[test]
fn a_lock_delay_stops_zombies_and_keys_stop_doubles() {
    let measured = measured(&workload("unfenced-effect"));
    let harm = |arm: &str| {
        let measures = &measured[arm];
        println!(
            "{arm}: {} zombies, {} doubles",
            measures.landed, measures.doubled
        );
        (measures.landed, measures.doubled)
    };
    let (zombies, doubles) = harm("neither");
    assert!(zombies > 0 && doubles > 0);
    let (no_zombies, own_doubles) = harm("lock-delay");
    assert_eq!(no_zombies, 0, "none outlives the lock-delay");
    assert!(own_doubles > 0, "a leader repeats what was not answered");
    let (known_zombies, no_doubles) = harm("idempotency keys");
    assert!(known_zombies > 0, "a job that nobody had done yet");
    assert_eq!(no_doubles, 0);
    let all = |(zombies, doubles)| zombies + doubles;
    let either = all(harm("lock-delay")).max(all(harm("idempotency keys")));
    assert!(zombies + doubles > either, "neither is worse than either");
    assert_eq!(harm("both"), (0, 0), "and both leave none");
}

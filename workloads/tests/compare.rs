//! What the configurations that are compared come to is what theory demands, and what the
//! README shows of it.

use std::{
    num::NonZero,
    ops::ControlFlow,
    path::Path,
    sync::{Arc, LazyLock},
};

use deposed::{
    campaign::Campaign,
    compare::{Arm, Measures},
    report::comparison::{Comparison, LEGEND},
    run::Header,
    system::{Deposed, System},
    workload::Workload,
};

fn workload(name: &str) -> Workload {
    let mut all = deposed_workloads::all().into_iter();
    all.find(|workload| workload.name == name)
        .expect("it is listed")
}

/// A workload's arms over its default seeds, measured once for all tests.
struct Measured {
    workload: Workload,
    arms: Vec<(Arm, Measures)>,
}

impl Measured {
    fn of(name: &str) -> Self {
        let workload = workload(name);
        let arms = measured(&workload);
        Self { workload, arms }
    }

    fn arm(&self, name: &str) -> &Measures {
        let mut arms = self.arms.iter();
        let (_, measures) = arms
            .find(|(arm, _)| arm.name == name)
            .expect("an arm of this name");
        measures
    }

    /// The table that `deposed compare` prints.
    fn table(&self) -> String {
        let comparison = Comparison {
            workload: &self.workload,
            seeds: self.workload.seeds,
            arms: self.arms.clone(),
        };
        comparison.text()
    }
}

static WRITE_BEFORE_FENCE: LazyLock<Measured> =
    LazyLock::new(|| Measured::of("write-before-fence"));
static UNFENCED_EFFECT: LazyLock<Measured> = LazyLock::new(|| Measured::of("unfenced-effect"));

fn measured(workload: &Workload) -> Vec<(Arm, Measures)> {
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
        (*arm, measures)
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
    let fenced = WRITE_BEFORE_FENCE.arm("highest-seen");
    let unfenced = WRITE_BEFORE_FENCE.arm("highest-seen without barrier");
    assert!(fenced.tried > 0 && fenced.refused > 0, "{fenced:?}");
    assert_eq!(fenced.landed, 0, "{fenced:?}");
    assert!(unfenced.landed > 0, "{unfenced:?}");
    // It is set within round trips, the first write comes when there is something to write.
    let longest = |measures: &Measures| measures.windows.iter().max().copied();
    assert!(
        longest(fenced) < longest(unfenced),
        "{fenced:?} {unfenced:?}"
    );
}

/// Storage that must be told of a new leader takes what its predecessor sends until then;
/// storage that grants the lease knows of it at once, and takes nothing.
#[test]
fn only_storage_that_is_told_of_a_grant_has_a_window() {
    let told = WRITE_BEFORE_FENCE.arm("highest-seen");
    let grants = WRITE_BEFORE_FENCE.arm("compare-and-swap");
    assert!(told.windows.iter().min() > Some(&0), "{told:?}");
    assert!(told.early > 0, "{told:?}");
    assert!(grants.tried > 0 && grants.leader_changes > 0, "{grants:?}");
    assert_eq!(grants.refused, grants.tried, "{grants:?}");
}

#[test]
fn a_lock_delay_stops_zombies_and_keys_stop_doubles() {
    let harm = |arm: &str| {
        let measures = UNFENCED_EFFECT.arm(arm);
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

#[test]
fn the_readme_shows_these_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let readme = root.expect("a workspace").join("README.md");
    let readme = std::fs::read_to_string(readme).expect("the README");
    let comparing = deposed_workloads::all().into_iter();
    let comparing = comparing.filter(|workload| !workload.compares.is_empty());
    let mut shown = String::from("```text\n");
    for workload in comparing {
        let measured = match workload.name {
            "write-before-fence" => WRITE_BEFORE_FENCE.table(),
            "unfenced-effect" => UNFENCED_EFFECT.table(),
            other => panic!("the README shows nothing of {other}"),
        };
        shown += &(measured + "\n");
    }
    shown += LEGEND;
    assert!(
        readme.contains(&shown),
        "the README should show:\n\n{shown}"
    );
}

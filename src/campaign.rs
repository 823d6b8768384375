//! Many runs, in parallel, results in the order of the plan whatever the number of threads.

use std::{
    collections::BTreeMap,
    env,
    iter::Sum,
    num::NonZero,
    ops::{Add, ControlFlow, RangeInclusive},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use deposed_checkers::{
    history::{Body, Event, F, Kind, Name, Observation},
    verdict::{Verdict, Verdicts},
};

use crate::{
    flaw::Flaw,
    node::panic_text,
    parallel::{self, all_cores},
    report::{self, campaign::Beside, shelf::Shelf, tally::Standing},
    run::{self, Header, Outcome},
    system::System,
    workload::Workload,
};

/// What is to be run: workloads, each over its seeds.
pub type Plan<'w> = [(&'w Workload, RangeInclusive<u64>)];

/// How a plan is run.
pub struct Campaign<'a> {
    /// On which system.
    pub system: &'a Arc<dyn System>,
    /// With which planted flaw.
    pub flaw: Option<Flaw>,
    /// On how many threads, at most; never more than there are runs or [`MOST_JOBS`](parallel::MOST_JOBS).
    pub jobs: NonZero<usize>,
    /// Whether runs that passed keep their histories, too.
    pub keep: bool,
    /// Once true, no further run begins.
    pub stop: &'a AtomicBool,
    /// Called after each run, on the thread that ran it.
    pub progress: &'a (dyn Fn() + Sync),
}

/// One run of a campaign.
pub struct Run<'w> {
    /// Of which workload.
    pub workload: &'w Workload,
    /// Under which seed.
    pub seed: u64,
    /// What its history shows, in numbers.
    pub counts: Counts,
    /// What came of it. The history of a run that passed is empty unless
    /// [`Campaign::keep`] is set.
    pub outcome: Outcome,
}

impl Run<'_> {
    /// Whether there is something to look into: a failure, or a check undecided.
    pub fn is_worth_a_look(&self) -> bool {
        let unknown = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(_));
        self.outcome.failed() || self.outcome.verdicts.0.iter().any(|(_, v)| unknown(v))
    }
}

impl Campaign<'_> {
    /// Runs a plan. `each` is shown every run, on the calling thread, by workload and
    /// then by seed, as soon as all before it are done; when it breaks off, or after a
    /// stop, the runs in hand are finished and none is begun.
    ///
    /// # Errors
    /// A header that cannot be run. A run that goes wrong is not an error but a
    /// failed run.
    pub fn run<'w>(
        &self,
        plan: &Plan<'w>,
        mut each: impl FnMut(Run<'w>) -> ControlFlow<()>,
    ) -> Result<(), String> {
        let queue = plan.iter().flat_map(|(workload, seeds)| {
            let workload: &'w Workload = workload;
            seeds.clone().map(move |seed| (workload, seed))
        });
        parallel::in_order(
            queue,
            self.jobs,
            self.stop,
            |(workload, seed)| {
                let run = self.one(workload, seed);
                (self.progress)();
                run
            },
            |run| Ok(each(run?)),
        )
    }

    fn one<'w>(&self, workload: &'w Workload, seed: u64) -> Result<Run<'w>, String> {
        let header = Header::of(workload, seed, self.system.name(), self.flaw);
        header.validate().map_err(|error| error.to_string())?;
        let outcome = outcome(&header, self.system);
        let mut run = Run {
            workload,
            seed,
            counts: Counts::of(&outcome.history),
            outcome,
        };
        if !self.keep && !run.is_worth_a_look() {
            run.outcome.history = Vec::new();
        }
        Ok(run)
    }
}

/// Runs a header that is [valid](Header::validate). What goes wrong with the run as a
/// whole fails it and nothing else.
pub fn outcome(header: &Header, system: &Arc<dyn System>) -> Outcome {
    // A panic outside the nodes' tasks is the harness's own.
    match catch_unwind(AssertUnwindSafe(|| run::run(header, system))) {
        Ok(Ok(mut outcome)) => {
            let calls = |event: &Event| matches!(event.body, Body::Invoke(_));
            if !outcome.history.iter().any(calls) {
                let idle = "no client called anything: there is nothing to judge";
                outcome.defects.push(idle.to_owned());
            }
            outcome
        }
        Ok(Err(gave_up)) => broken(header, gave_up.to_string()),
        Err(panic) => broken(header, format!("the run panicked: {}", panic_text(&*panic))),
    }
}

/// A run without a history.
fn broken(header: &Header, defect: String) -> Outcome {
    Outcome {
        header: header.clone(),
        history: Vec::new(),
        verdicts: Verdicts(Vec::new()),
        marks: Default::default(),
        defects: vec![defect],
    }
}

/// What a history shows, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often a lease went to another holder.
    pub leader_changes: u64,
    /// Writes and deletes that were acknowledged.
    pub writes: u64,
    /// Lines.
    pub events: u64,
}

impl Counts {
    /// Counts. Where the store says what it granted, leader changes are counted there,
    /// otherwise by the acquires that were answered.
    pub fn of(history: &[Event]) -> Self {
        let mut granted: BTreeMap<&Name, &Name> = BTreeMap::new();
        let (mut changes, mut acquired, mut winner) = (0, 0, None);
        let mut counts = Self::default();
        for event in history {
            counts.events += 1;
            match (&event.body, event.kind) {
                (Body::Observed(Observation::Granted(grant)), _) => {
                    let before = granted.insert(&grant.lease, &grant.holder);
                    changes += u64::from(before.is_some_and(|before| *before != grant.holder));
                }
                (Body::Complete(F::Acquire, _), Kind::Ok) => {
                    let before = winner.replace(&event.process);
                    acquired += u64::from(before.is_some_and(|before| *before != event.process));
                }
                (Body::Complete(F::Write | F::Delete, _), Kind::Ok) => counts.writes += 1,
                _ => {}
            }
        }
        counts.leader_changes = if granted.is_empty() {
            acquired
        } else {
            changes
        };
        counts
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            leader_changes: self.leader_changes + other.leader_changes,
            writes: self.writes + other.writes,
            events: self.events + other.events,
        }
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Add::add)
    }
}

/// A workload as a test: [`holds`], with the history of a failure in `runs/` beside the
/// workspace's `Cargo.lock`. Prints the counts.
///
/// # Panics
/// With the report, when it does not hold.
pub fn test(workload: &Workload, system: &Arc<dyn System>) {
    match holds(workload, system, &beside_the_lock_file()) {
        Ok(text) => println!("{text}"),
        Err(text) => panic!("\n{text}"),
    }
}

/// Runs a workload over its default seeds and reports.
///
/// # Errors
/// With the report as well: a check was violated or undecided, a run was defective, a
/// mark was never seen, or `dir` cannot keep the history of a failure.
pub fn holds(workload: &Workload, system: &Arc<dyn System>, dir: &Path) -> Result<String, String> {
    let campaign = Campaign {
        system,
        flaw: None,
        jobs: all_cores(),
        keep: false,
        stop: &AtomicBool::new(false),
        progress: &|| {},
    };
    let mut text = Vec::new();
    let seeds = 0..=workload.seeds.saturating_sub(1);
    let shelf = Shelf::open(dir)?;
    let plan = [(workload, seeds)];
    let tallies = report::campaign::tell(&campaign, &plan, &shelf, Beside::default(), &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    match tallies {
        Ok(tallies)
            if tallies
                .iter()
                .all(|tally| tally.standing() == Standing::Valid) =>
        {
            Ok(text)
        }
        Ok(_) => Err(text),
        Err(halt) => Err(text + &halt.to_string()),
    }
}

/// `runs/` of the workspace that is being tested: cargo runs tests in their package.
fn beside_the_lock_file() -> PathBuf {
    let here = env::current_dir().unwrap_or_default();
    let root = here
        .ancestors()
        .find(|dir| dir.join("Cargo.lock").is_file());
    match root {
        Some(root) if root != here => root.join("runs"),
        _ => PathBuf::from("runs"),
    }
}

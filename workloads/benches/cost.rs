//! What a run costs: `cargo bench`, or `cargo bench --bench cost -- chaos` for one workload.
//!
//! First, for every workload, one seed's CPU time against an idle turmoil simulation of
//! the same hosts, tick and length, both measured in this process, in turn; the goal is
//! at most 1.3 times. Then, for chaos, leader changes by expiry per second of CPU, all
//! checks on; the goal is 500 or more. Last, a seed whose servers keep their state on
//! simulated disks against the same seed on memory; the goal is at most 1.5 times.

use std::{sync::Arc, time::Duration};

use deposed::{
    checkers::history::{Body, Event, F, Kind, Observation},
    prelude::*,
    run::{Header, run},
    world,
};
use rustix::time::{ClockId, clock_gettime};

const SEEDS: u64 = 20;

fn main() {
    let system: Arc<dyn System> = Arc::new(Deposed);
    println!(
        "{:<20} {:>12} {:>12} {:>7} {:>14} {:>22}",
        "workload", "run, ms", "idle, ms", "ratio", "writes a term", "changes a CPU second"
    );
    let only: Vec<String> = std::env::args()
        .skip(1)
        .filter(|name| !name.starts_with("--"))
        .collect();
    let all = deposed_workloads::all().into_iter();
    for workload in
        all.filter(|workload| only.is_empty() || only.iter().any(|name| name == workload.name))
    {
        let mut cost = Cost::default();
        for seed in 0..SEEDS {
            cost.add(&Header::of(&workload, seed, system.name(), None), &system);
        }
        println!("{:<20} {cost}", workload.name);
    }
    println!(
        "\n{:<20} {:>12} {:>12} {:>7}",
        "on disks", "disks, ms", "memory, ms", "ratio"
    );
    // Those whose schedules ask nothing of a disk run on either.
    for workload in deposed_workloads::all() {
        let named = only.is_empty() || only.iter().any(|name| name == workload.name);
        if named && ["calm", "resign", "store-restart", "chaos"].contains(&workload.name) {
            println!("{:<20} {}", workload.name, on_disks(&workload, &system));
        }
    }
}

/// What its seeds cost on simulated disks, on memory, and the ratio; taken in turn.
fn on_disks(workload: &Workload, system: &Arc<dyn System>) -> String {
    let mut cost = [Duration::ZERO; 2];
    for seed in 0..SEEDS {
        let mut header = Header::of(workload, seed, system.name(), None);
        for (disk, cost) in [DiskKind::Simulated, DiskKind::Memory]
            .into_iter()
            .zip(&mut cost)
        {
            header.cluster.disk = disk;
            let before = cpu_time();
            run(&header, system).expect("a workload's header can be run");
            *cost += cpu_time() - before;
        }
    }
    let [disks, memory] = cost.map(|cost| cost.as_secs_f64());
    let seeds = SEEDS as f64;
    format!(
        "{:>12.1} {:>12.1} {:>7.2}",
        disks * 1e3 / seeds,
        memory * 1e3 / seeds,
        disks / memory
    )
}

/// Sums over seeds.
#[derive(Default)]
struct Cost {
    run: Duration,
    idle: Duration,
    terms: u64,
    expiries: u64,
    writes: u64,
}

impl Cost {
    fn add(&mut self, header: &Header, system: &Arc<dyn System>) {
        let before = cpu_time();
        let outcome = run(header, system).expect("a workload's header can be run");
        let between = cpu_time();
        world::idle(header);
        self.run += between - before;
        self.idle += cpu_time() - between;
        self.count(&outcome.history);
    }

    fn count(&mut self, history: &[Event]) {
        // By lease: its last holder, and whether that released it.
        let mut last = std::collections::BTreeMap::new();
        for event in history {
            match &event.body {
                Body::Observed(Observation::Granted(granted)) => {
                    self.terms += 1;
                    let before = last.insert(&granted.lease, (&granted.holder, false));
                    if let Some((holder, released)) = before {
                        self.expiries += u64::from(!released && *holder != granted.holder);
                    }
                }
                Body::Observed(Observation::Released(freed)) => {
                    last.insert(&freed.lease, (&freed.holder, true));
                }
                Body::Complete(F::Write, _) if event.kind == Kind::Ok => self.writes += 1,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (run, idle) = (self.run.as_secs_f64(), self.idle.as_secs_f64());
        let seeds = SEEDS as f64;
        write!(
            f,
            "{:>12.1} {:>12.1} {:>7.2} {:>14.1} {:>22.0}",
            run * 1e3 / seeds,
            idle * 1e3 / seeds,
            run / idle,
            self.writes as f64 / self.terms.max(1) as f64,
            self.expiries as f64 / run,
        )
    }
}

/// The CPU time of this thread: simulations run on the thread that asks for them.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

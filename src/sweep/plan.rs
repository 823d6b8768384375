//! What a sweep runs: every setting in every environment, each over the same seeds.
//!
//! Nothing happens in most of a real hour but renewals. So a run is a row of faults, each
//! after the cluster has settled from the one before: a pause or a crash of the leader, at
//! a phase of its renewals drawn evenly, as a fault that comes at a random time meets them.
//! What one fault costs is then weighed by how many there are in an hour. A seed draws the
//! same pauses for every setting.

use std::collections::BTreeMap;

use deposed_checkers::history::{F, FORMAT_VERSION, Name, Nanos, RatePpb, TRUE_RATE};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal};
use serde::Serialize;

use super::{
    setting::{Environment, LONGEST_PAUSE, Setting},
    unit::Length,
};
use crate::{
    cluster::Cluster,
    fault::{Fault, Injection, Moment, Schedule, Target, Trigger},
    lease::LeaseConfig,
    rng::stream,
    run::{
        Header,
        limits::{HeaderError, MOST_CONNECTIONS, MOST_EVENTS},
    },
    workload::{MS, SECOND, Traffic},
};

/// Of so many faults one is a crash, the others are pauses.
const ONE_CRASH_IN: u32 = 3;

/// All that a sweep depends on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Of this program.
    pub version: &'static str,
    /// The system that is run.
    pub system: String,
    /// What there is to choose from.
    pub settings: Vec<Setting>,
    /// What each must live with.
    pub environments: Vec<Environment>,
    /// How many crashes of a leader there are in a day.
    pub crashes_per_day: f64,
    /// How long a new leader needs until it serves, ns.
    pub takeover: Nanos,
    /// How many runs a cell has: seeds 0 to one less.
    pub seeds: u64,
    /// How many faults a run has.
    pub faults: u32,
}

/// A setting in an environment.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'p> {
    /// Its place, from 0.
    pub place: usize,
    /// What was chosen.
    pub setting: &'p Setting,
    /// What it must live with.
    pub environment: &'p Environment,
}

impl Plan {
    /// Every cell: environment by environment, setting by setting.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> + Clone {
        let cells = self.environments.iter().flat_map(|environment| {
            let settings = self.settings.iter();
            settings.map(move |setting| (setting, environment))
        });
        cells
            .enumerate()
            .map(|(place, (setting, environment))| Cell {
                place,
                setting,
                environment,
            })
    }

    /// Every run, by seed and then by cell, so that what is left takes as long as what is
    /// done.
    pub fn runs(&self) -> impl Iterator<Item = (Cell<'_>, u64)> + Clone {
        (0..self.seeds).flat_map(|seed| self.cells().map(move |cell| (cell, seed)))
    }

    /// How many runs there are.
    pub fn len(&self) -> u64 {
        self.seeds
            .saturating_mul((self.settings.len() * self.environments.len()) as u64)
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether every run can be asked for; how long they are together, ns of simulated
    /// time.
    ///
    /// # Errors
    /// The first cell that cannot be run, by name, and why.
    pub fn validate(&self) -> Result<Nanos, String> {
        if self.is_empty() || self.faults == 0 {
            return Err(
                "the sweep has no cell to run: give a ttl, a part to renew after, a seed and a \
                 fault at least"
                    .to_owned(),
            );
        }
        let mut simulated: Nanos = 0;
        for cell in self.cells() {
            let cannot =
                |why: String| format!("the setting '{}' cannot be run: {why}", cell.setting.name);
            let works = cell.lease().validate();
            works.map_err(|error| cannot(error.to_string()))?;
            for seed in 0..self.seeds {
                let header = self.header(cell, seed);
                let possible = header.validate();
                possible.map_err(|error| cannot(in_options(error)))?;
                simulated = simulated.saturating_add(length(&header));
            }
        }
        Ok(simulated)
    }

    /// From a fault that ends a cell's lease until the next leader serves, at most, ns of
    /// true time.
    pub fn failover(&self, cell: Cell<'_>) -> Nanos {
        Settled::of(&cell.lease(), cell.environment, self.takeover).failover
    }

    /// The run of a cell under a seed.
    pub fn header(&self, cell: Cell<'_>, seed: u64) -> Header {
        let lease = cell.lease();
        let settled = Settled::of(&lease, cell.environment, self.takeover);
        let (schedule, chaos) = self.schedule(cell, &lease, &settled, seed);
        let cluster = Cluster::of(3);
        let (clocks, offsets) = clocks(&cluster, cell.environment, seed);
        Header {
            deposed: FORMAT_VERSION,
            workload: Name::from(format!("sweep-{}", cell.place)),
            system: Name::from(&*self.system),
            seed,
            cluster,
            traffic: Traffic {
                // What is measured are leaders; writes are there to be judged.
                write_every: (lease.ttl / 2).max(MS),
                ..Traffic::for_ttl(lease.ttl)
            },
            network: cell.environment.net.clone(),
            clocks,
            offsets,
            chaos,
            calm: settled.calm,
            schedule,
            flaw: None,
            lease,
        }
    }

    /// The faults, and when the last is over. Each waits for the first renewal that
    /// succeeds once the one before is over: there is a leader then.
    fn schedule(
        &self,
        cell: Cell<'_>,
        lease: &LeaseConfig,
        settled: &Settled,
        seed: u64,
    ) -> (Schedule, Nanos) {
        let mut lengths = stream(seed, "sweep-pauses", 0);
        let mut phases = stream(seed, "sweep-phases", 0);
        let mut after = self.takeover;
        let mut schedule = Schedule::new();
        for nth in 1..=self.faults {
            let plus = phases.random_range(0..lease.renew_after().max(1));
            let (fault, over) = match nth.is_multiple_of(ONE_CRASH_IN) {
                true => {
                    // Back sooner, it would be its own successor.
                    let (target, length) = (Target::Leader, settled.failover);
                    (Fault::Crash { target, length }, length)
                }
                false => {
                    let length = cell.environment.pauses.draw(&mut lengths);
                    let over = match length < settled.harmless {
                        true => length,
                        false => length.max(settled.failover),
                    };
                    let target = Target::Leader;
                    (Fault::Pause { target, length }, over)
                }
            };
            let moment = Moment::done(F::Renew);
            schedule.push(Injection {
                when: Trigger::Next {
                    moment,
                    after,
                    plus,
                },
                fault,
            });
            let waits = lease.renew_after().saturating_add(settled.answer);
            after = [waits, plus, over]
                .into_iter()
                .fold(after, Nanos::saturating_add);
        }
        (schedule, after)
    }
}

/// Why a run cannot be, in the words of who asked for a sweep and wrote no header.
fn in_options(error: HeaderError) -> String {
    match error {
        HeaderError::TooLong => {
            "one of its runs would be longer than an hour; give fewer --faults, a shorter --ttl or \
             --takeover, or a faster --net"
                .to_owned()
        }
        HeaderError::Ttl(ttl) => format!(
            "its ttl is {}, and every store refuses it; give a --ttl of 1ms to 1h",
            Length(ttl)
        ),
        HeaderError::TryTooShort {
            try_timeout,
            needed,
        } => format!(
            "a try would be over after {}, and a connection may take {} to be made; give a longer \
             --ttl, a smaller part with --renew, or a faster --net",
            Length(try_timeout),
            Length(needed)
        ),
        HeaderError::Connections(connections) => format!(
            "a client may try to open {connections} connections in one of its runs, and \
             {MOST_CONNECTIONS} can be had; give a longer --ttl, a faster --net, shorter pauses \
             or fewer --faults"
        ),
        HeaderError::Events(events) => format!(
            "one of its runs may make {events} events, and {MOST_EVENTS} can be kept in memory; \
             give a longer --ttl or fewer --faults"
        ),
        error => error.to_string(),
    }
}

/// How long the run of a header is, ns of simulated time.
pub fn length(header: &Header) -> Nanos {
    header.chaos.saturating_add(header.calm)
}

impl Cell<'_> {
    /// The timing that is run.
    pub fn lease(&self) -> LeaseConfig {
        self.setting.allowing_for(self.environment.drift)
    }
}

impl super::setting::Pauses {
    /// A length in whole milliseconds, so that it does not hang on the last digit of a
    /// logarithm.
    fn draw(&self, rng: &mut ChaCha8Rng) -> Nanos {
        let median = self.median as f64 / MS as f64;
        // A sigma that was validated makes a distribution.
        let drawn = LogNormal::new(median.ln(), self.sigma).map_or(median, |d| d.sample(rng));
        let longest = LONGEST_PAUSE as f64 / MS as f64;
        drawn.round().clamp(1.0, longest) as Nanos * MS
    }
}

/// How long things take to settle, at most, ns of true time.
struct Settled {
    /// An answer, with a connection to be made first.
    answer: Nanos,
    /// A pause that is shorter deposes nobody.
    harmless: Nanos,
    /// From a fault until the next leader serves.
    failover: Nanos,
    /// Until one must have written, by the `failover` check's bound.
    calm: Nanos,
}

impl Settled {
    fn of(lease: &LeaseConfig, environment: &Environment, takeover: Nanos) -> Self {
        let slow = |local: Nanos| {
            let rate = u128::from(TRUE_RATE - environment.drift.most);
            let slowest = u128::from(local) * u128::from(TRUE_RATE) / rate;
            u64::try_from(slowest).unwrap_or(Nanos::MAX)
        };
        let sum = |parts: &[Nanos]| parts.iter().copied().fold(0, Nanos::saturating_add);
        let answer = environment.net.max_latency.saturating_mul(5);
        let lease_is_over = slow(sum(&[lease.ttl, lease.lock_delay, lease.try_timeout]));
        let rest_of_window = lease.safe_window().saturating_sub(lease.renew_after());
        Self {
            answer,
            harmless: rest_of_window.saturating_sub(sum(&[answer, 10 * MS])),
            failover: sum(&[lease_is_over, slow(lease.backoff_min), answer, takeover]),
            calm: sum(&[
                lease_is_over,
                slow(lease.backoff_max),
                environment.net.max_latency.saturating_mul(20),
                SECOND / 2,
            ]),
        }
    }
}

type Rates = BTreeMap<Name, RatePpb>;

/// Each node's clock is off by as much as is drawn, fast or slow, and up to a minute ahead.
fn clocks(
    cluster: &Cluster,
    environment: &Environment,
    seed: u64,
) -> (Rates, BTreeMap<Name, Nanos>) {
    let mut rng = stream(seed, "clocks", 0);
    let drift = environment.drift;
    let mut rates = Rates::new();
    let mut offsets = BTreeMap::new();
    for node in cluster.node_names() {
        let off = rng.random_range(drift.least..=drift.most);
        let rate = match rng.random_ratio(1, 2) {
            true => TRUE_RATE + off,
            false => TRUE_RATE - off,
        };
        offsets.insert(node.clone(), rng.random_range(0..=60 * SECOND));
        rates.insert(node, rate);
    }
    (rates, offsets)
}

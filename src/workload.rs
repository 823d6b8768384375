//! Workloads are data: a cluster, its timing and traffic, what the nemesis may do,
//! and what a run must show. A seed makes a [`Header`](crate::run::Header) of one.

use deposed_checkers::{
    history::{Name, Nanos},
    verdict::Check,
};
use serde::{Deserialize, Serialize};

use crate::{
    cluster::Cluster, compare::Arm, flaw::Flaw, lease::LeaseConfig, mark::Mark, nemesis::Nemesis,
};

/// One millisecond, in ns.
pub const MS: Nanos = 1_000_000;
/// One second, in ns.
pub const SECOND: Nanos = 1_000 * MS;

/// A fault workload. Start from [`Workload::named`] and change what differs.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name on the command line, in the README and as a test.
    pub name: &'static str,
    /// What it injects, in one line.
    pub story: &'static str,
    /// The nodes.
    pub cluster: Cluster,
    /// Lease timing.
    pub lease: LeaseConfig,
    /// What leaders do.
    pub traffic: Traffic,
    /// The network when nothing is wrong with it.
    pub network: Network,
    /// How the nodes' clocks run.
    pub clocks: Clocks,
    /// What goes wrong.
    pub nemesis: Nemesis,
    /// How long things go wrong.
    pub chaos: Nanos,
    /// How long they are healed afterwards; a leader must write again.
    pub calm: Nanos,
    /// Over how many seeds, by default, it is run and its marks are looked for.
    pub seeds: u64,
    /// What must occur at least once over the default seeds, so that no run passes
    /// by doing nothing.
    pub must_see: Vec<Mark>,
    /// Planted flaws that it must convict, and by which check.
    pub catches: Vec<(Flaw, Check)>,
    /// What `deposed compare` puts side by side over its seeds.
    pub compares: Vec<Arm>,
}

impl Workload {
    /// Three clients, a ttl of 300 ms, true clocks, ten seconds in which nothing
    /// goes wrong, two of calm.
    pub fn named(name: &'static str) -> Self {
        let lease = LeaseConfig::for_ttl(300 * MS);
        Self {
            name,
            story: "",
            cluster: Cluster::of(3),
            traffic: Traffic::for_ttl(lease.ttl),
            network: Network::default(),
            clocks: Clocks::True,
            nemesis: Nemesis::none(),
            chaos: 10 * SECOND,
            calm: 2 * SECOND,
            seeds: 20,
            must_see: Vec::new(),
            catches: Vec::new(),
            compares: Vec::new(),
            lease,
        }
    }

    /// The same with another ttl: timing and traffic scale with it.
    pub fn with_ttl(self, ttl: Nanos) -> Self {
        let (lease, traffic) = (LeaseConfig::for_ttl(ttl), Traffic::for_ttl(ttl));
        Self {
            lease,
            traffic,
            ..self
        }
    }
}

/// What leaders do with their terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// How many leases there are; each client contends for all.
    pub leases: u32,
    /// How many keys each lease guards.
    pub keys: u64,
    /// The pause between two updates.
    pub write_every: Nanos,
    /// Every how manieth update is a delete, on average; 0: none.
    #[serde(default)]
    pub delete_one_in: u64,
    /// How long a leader leads before it resigns; left out: as long as it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resign_every: Option<Nanos>,
    /// A new leader works without having fenced, so that a run shows what the barrier is
    /// for. `election-barrier` convicts it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_barrier: bool,
}

impl Traffic {
    /// One lease, one key, three or four updates a ttl.
    pub fn for_ttl(ttl: Nanos) -> Self {
        Self {
            leases: 1,
            keys: 1,
            write_every: ttl / 4,
            delete_one_in: 0,
            resign_every: None,
            without_barrier: false,
        }
    }

    /// The leases' names: `leader`, or `shard-0`, `shard-1` …
    pub fn lease_names(&self) -> Vec<Name> {
        match self.leases {
            0 | 1 => vec!["leader".into()],
            many => (0..many)
                .map(|shard| Name::from(format!("shard-{shard}")))
                .collect(),
        }
    }
}

/// The simulated network when nothing is wrong with it. Latencies are one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The least latency; a tick (1 ms) at least, or messages arrive before they left.
    pub min_latency: Nanos,
    /// The greatest latency.
    pub max_latency: Nanos,
}

impl Default for Network {
    /// 1 to 4 ms.
    fn default() -> Self {
        Self {
            min_latency: MS,
            max_latency: 4 * MS,
        }
    }
}

/// How the nodes' boot clocks run. `r` is the lease's bound on relative drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// All true.
    True,
    /// Each at a rate of its own, drawn from 1 - r/2 to 1 + r/2, and up to a minute ahead.
    WithinBound,
    /// The worst that is within the bound: the store fast, the clients slow.
    AtTheBound,
    /// The clients' relative drift is this many parts per billion beyond the bound.
    Beyond(u64),
    /// True, but each client's clock is ahead of the one before by this much.
    Offset(Nanos),
}

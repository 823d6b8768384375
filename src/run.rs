//! One run: a [`Header`] on a [`System`], recorded and judged. The only way in.

pub mod limits;
mod reading;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use deposed_checkers::{
    history::{Event, FORMAT_VERSION, Name, Nanos, RatePpb, TRUE_RATE},
    verdict::Verdicts,
};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::{
    cluster::Cluster,
    fault::Schedule,
    flaw::{Flaw, Planted},
    lease::LeaseConfig,
    mark::{self, Mark},
    rng::stream,
    system::{Setup, SetupParts, System},
    workload::{Clocks, Network, SECOND, Traffic, Workload},
    world,
};
use limits::HeaderError;

/// Everything that a run depends on, and line 1 of its history: the same header
/// gives the same history, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the history format.
    pub deposed: u32,
    /// The workload's name.
    pub workload: Name,
    /// The system's name.
    pub system: Name,
    /// The seed.
    pub seed: u64,
    /// The nodes.
    pub cluster: Cluster,
    /// Lease timing.
    pub lease: LeaseConfig,
    /// What leaders do.
    pub traffic: Traffic,
    /// The network when nothing is wrong with it.
    pub network: Network,
    /// Each node's initial clock rate, parts per billion; left out: true.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clocks: BTreeMap<Name, RatePpb>,
    /// What each node's boot clock reads at the start, ns; left out: 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offsets: BTreeMap<Name, Nanos>,
    /// How long things go wrong, ns.
    pub chaos: Nanos,
    /// How long they are healed afterwards, ns.
    pub calm: Nanos,
    /// What goes wrong.
    #[serde(deserialize_with = "crate::fault::reading::deserialize")]
    pub schedule: Schedule,
    /// The planted flaw.
    pub flaw: Option<Flaw>,
}

impl Header {
    /// The header of a workload's run under a seed.
    pub fn of(workload: &Workload, seed: u64, system: &str, flaw: Option<Flaw>) -> Self {
        let (clocks, offsets) = draw_clocks(workload, seed);
        let chaos = workload.chaos;
        let mut rng = stream(seed, "schedule", 0);
        let schedule = workload.nemesis.draw(&mut rng, &workload.lease, chaos);
        let mut header = Self {
            deposed: FORMAT_VERSION,
            workload: workload.name.into(),
            system: system.into(),
            seed,
            cluster: workload.cluster.clone(),
            lease: workload.lease.clone(),
            traffic: workload.traffic.clone(),
            network: workload.network.clone(),
            clocks,
            offsets,
            chaos,
            calm: workload.calm,
            schedule,
            flaw,
        };
        let drawn = std::mem::take(&mut header.schedule);
        let strikes = drawn.into_iter().filter(|entry| header.strikes(entry));
        header.schedule = strikes.collect();
        header
    }

    /// The node's initial clock rate.
    pub fn rate_of(&self, node: &Name) -> RatePpb {
        self.clocks.get(node).copied().unwrap_or(TRUE_RATE)
    }

    /// What the node's boot clock reads at the start.
    pub fn offset_of(&self, node: &Name) -> Nanos {
        self.offsets.get(node).copied().unwrap_or(0)
    }

    /// What a system is told.
    pub fn setup(&self) -> Setup {
        Setup::new(SetupParts {
            lease: self.lease.clone(),
            leases: self.traffic.lease_names(),
            traffic: self.traffic.clone(),
            store: Cluster::STORE.into(),
            storage: self.cluster.storage,
            storages: self.cluster.storage_names(),
            planted: self.planted(),
        })
    }

    fn planted(&self) -> Planted {
        #[cfg(feature = "flaws")]
        return self.flaw.map_or(Planted::NONE, Planted::one);
        #[cfg(not(feature = "flaws"))]
        Planted::NONE
    }
}

fn draw_clocks(workload: &Workload, seed: u64) -> (BTreeMap<Name, RatePpb>, BTreeMap<Name, Nanos>) {
    let half = workload.lease.max_drift_ppb / 2;
    let (fast, slow) = (TRUE_RATE + half, TRUE_RATE - half);
    let mut rng = stream(seed, "clocks", 0);
    let nodes = workload.cluster.node_names();
    let clients = workload.cluster.client_names();
    let rates = match workload.clocks {
        Clocks::True | Clocks::Offset(_) => BTreeMap::new(),
        Clocks::WithinBound => nodes
            .into_iter()
            .map(|node| (node, rng.random_range(slow..=fast)))
            .collect(),
        Clocks::AtTheBound => {
            let rate_of = |node: &Name| if clients.contains(node) { slow } else { fast };
            nodes
                .into_iter()
                .map(|node| (node.clone(), rate_of(&node)))
                .collect()
        }
        Clocks::Beyond(beyond) => clients
            .iter()
            .map(|node| (node.clone(), slow - half - beyond))
            .collect(),
    };
    let offsets = match workload.clocks {
        // An offset must not matter, wherever rates are drawn.
        Clocks::WithinBound => workload
            .cluster
            .node_names()
            .into_iter()
            .map(|node| (node, rng.random_range(0..=60 * SECOND)))
            .collect(),
        Clocks::Offset(step) => (0..)
            .zip(clients)
            .map(|(nth, node)| (node, step * nth))
            .collect(),
        _ => BTreeMap::new(),
    };
    (rates, offsets)
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What was run.
    pub header: Header,
    /// What happened.
    pub history: Vec<Event>,
    /// What the checkers say.
    pub verdicts: Verdicts,
    /// What was seen.
    pub marks: BTreeSet<Mark>,
    /// What went wrong with the run itself: a panic in a node, a client whose
    /// `is_leader()` was not what it recorded. Such a run has failed.
    pub defects: Vec<String>,
}

impl Outcome {
    /// Whether a check was violated or the run itself was defective.
    pub fn failed(&self) -> bool {
        !self.defects.is_empty() || self.verdicts.violated().next().is_some()
    }
}

/// Runs a header on a system: chaos, calm, check.
///
/// # Errors
/// A header that cannot be run, or a simulation that gave up.
pub fn run(header: &Header, system: &Arc<dyn System>) -> Result<Outcome, RunError> {
    header.validate()?;
    let recorded = world::record(header, system).map_err(RunError::Simulation)?;
    let mut defects: Vec<String> = Vec::new();
    for (node, message) in recorded.panics {
        defects.push(format!("a task of {node} panicked: {message}"));
    }
    defects.extend(recorded.discrepancy);
    let verdicts = crate::checkers::judge::judge(&checkers_header(header), &recorded.history);
    let marks = mark::seen(&recorded.history, &verdicts);
    Ok(Outcome {
        header: header.clone(),
        history: recorded.history,
        verdicts,
        marks,
        defects,
    })
}

/// Why a run brought forth nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The header asks for what cannot be run.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The simulation gave up.
    #[error("the simulation gave up: {0}")]
    Simulation(String),
}

/// The part of a header that checkers read: no check may depend on what was to go wrong,
/// and a schedule is long.
///
/// # Panics
/// Never: a header is a JSON object with all that the checkers require.
pub fn checkers_header(header: &Header) -> crate::checkers::history::Header {
    let mut header = header.clone();
    header.schedule.clear();
    serde_json::to_value(header)
        .and_then(serde_json::from_value)
        .expect("a header of ours is one that the checkers read")
}

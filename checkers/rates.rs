//! How far each node's clock ran between two instants of true time.

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::history::{Body, Event, Header, Name, Nanos, RatePpb, TRUE_RATE};

/// The clocks' rates over a run: the header's, then what the nemesis set.
///
/// Boot clocks count through a suspended node, so only `rate` events matter.
pub(crate) struct Rates {
    initial: BTreeMap<Name, RatePpb>,
    changes: BTreeMap<Name, Vec<Change>>,
}

struct Change {
    at: Nanos,
    rate: RatePpb,
    /// What the clock had counted by then, in ns times parts per billion.
    counted: u128,
}

impl Rates {
    pub fn new(header: &Header) -> Self {
        Rates {
            initial: header.clocks.clone(),
            changes: BTreeMap::new(),
        }
    }

    /// Takes note of a nemesis's `rate {node, rate_ppb}`.
    pub fn see(&mut self, event: &Event) {
        let Body::Nemesis(f, value) = &event.body else {
            return;
        };
        if f != "rate" {
            return;
        }
        let Some(rate) = value.get("rate_ppb").and_then(serde_json::Value::as_u64) else {
            return;
        };
        for node in nodes(value) {
            let counted = self.counted(node, event.time);
            let change = Change {
                at: event.time,
                rate,
                counted,
            };
            self.changes.entry(node.into()).or_default().push(change);
        }
    }

    /// The rate now in force.
    pub fn now(&self, node: &str) -> RatePpb {
        match self.changes.get(node).and_then(|changes| changes.last()) {
            Some(change) => change.rate,
            None => self.initial(node),
        }
    }

    /// The lowest rate that any known clock has now; a clock that is not known runs true.
    pub fn slowest(&self) -> RatePpb {
        let known = self.initial.keys().chain(self.changes.keys());
        let rates = known.map(|node| self.now(node));
        rates.chain([TRUE_RATE]).min().unwrap_or(TRUE_RATE)
    }

    /// What the node's clock counts from one instant to another, in ns times
    /// parts per billion.
    pub fn elapsed(&self, node: &str, from: Nanos, to: Nanos) -> u128 {
        self.counted(node, to)
            .saturating_sub(self.counted(node, from))
    }

    /// The most that any clock can have counted from one instant to another, in ns: one
    /// that is known, or one that runs `drift` parts per billion fast.
    pub fn most_elapsed(&self, drift: u64, from: Nanos, to: Nanos) -> Nanos {
        let fast = u128::from(TRUE_RATE) + u128::from(drift);
        let known = self.initial.keys().chain(self.changes.keys());
        let most = known
            .map(|node| self.elapsed(node, from, to))
            .chain([u128::from(to.saturating_sub(from)) * fast])
            .max();
        let most = most.unwrap_or(0).div_ceil(u128::from(TRUE_RATE));
        Nanos::try_from(most).unwrap_or(Nanos::MAX)
    }

    pub fn remembered(&self) -> Remembered {
        let changes = self.changes.values().map(Vec::len).sum();
        Remembered::default()
            .and("clocks", self.initial.len() + self.changes.len())
            .and("changes of clocks' rates", changes)
    }

    fn initial(&self, node: &str) -> RatePpb {
        self.initial.get(node).copied().unwrap_or(TRUE_RATE)
    }

    fn counted(&self, node: &str, at: Nanos) -> u128 {
        let before = self.changes.get(node).and_then(|changes| {
            changes[..changes.partition_point(|change| change.at <= at)].last()
        });
        let (since, rate, counted) = match before {
            Some(change) => (change.at, change.rate, change.counted),
            None => (0, self.initial(node), 0),
        };
        counted.saturating_add(u128::from(at - since) * u128::from(rate))
    }
}

/// A node comes back with an old copy of its disk.
const RESTORE: &str = "restore";

/// The nodes a fault names, in `node` or in `nodes`.
pub(crate) fn nodes(fault: &serde_json::Value) -> impl Iterator<Item = &str> {
    let one = fault.get("node").and_then(|node| node.as_str());
    let many = fault.get("nodes").and_then(|nodes| nodes.as_array());
    one.into_iter()
        .chain(many.into_iter().flatten().filter_map(|node| node.as_str()))
}

/// The nodes whose disk a fault puts an old copy in the place of.
pub(crate) fn restored<'a>(f: &str, fault: &'a serde_json::Value) -> impl Iterator<Item = &'a str> {
    let is_it = f == RESTORE;
    nodes(fault).filter(move |_| is_it)
}

/// Whether a fault ends the nodes it names.
pub(crate) fn is_crash(fault: &str) -> bool {
    matches!(fault, "crash" | "power-loss" | RESTORE)
}

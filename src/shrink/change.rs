//! What can be left out of a run, or made plainer, at a stroke.

use deposed_checkers::history::{Name, Nanos};
use serde_json::Value;

use super::{
    Conviction,
    knob::{drop_late, in_order},
};
use crate::{
    cluster::{DiskKind, StorageKind},
    fault::{Injection, Target},
    run::Header,
    workload::{Network, SECOND},
    world::TICK,
};

/// One change. None makes anything of a run more: no fault, no client, no time is added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The run ends a quarter later than it was convicted, and a second: a fault less, and
    /// the failure may come later.
    End,
    /// The run ends at the event that is wrong.
    EndAtCulprit,
    /// The run ends where the conviction is sure.
    EndAtConviction,
    /// Only so many faults are left, the last before the conviction.
    Last(usize),
    /// These many entries, from this one on, are left out.
    Without(usize, usize),
    /// An entry is left out, and chance falls otherwise: latencies, and who is drawn.
    WithoutUnder(usize, u64),
    /// So many clients.
    Clients(u8),
    /// So many replicas.
    Replicas(u8),
    /// Servers keep their state in memory.
    Memory,
    /// All clocks run true.
    TrueClocks,
    /// This one does.
    TrueClock(Name),
    /// All clocks begin at 0.
    NoOffsets,
    /// This one does.
    NoOffset(Name),
    /// There is one lease.
    OneLease,
    /// There is one key.
    OneKey,
    /// Nothing is deleted.
    NoDeletes,
    /// Nobody resigns.
    NoResigning,
    /// Every message takes the least time.
    SteadyNetwork,
    /// A party of an entry that is the first of these is the second, a plainer one.
    Party(usize, String, [Target; 2]),
    /// Entries stand in the order of their times.
    InOrder,
}

impl Change {
    /// The header so changed; `None` where there is nothing to change.
    pub(super) fn of(&self, header: &Header, conviction: Conviction) -> Option<Header> {
        let mut changed = header.clone();
        match self {
            Change::End => {
                let later = conviction.at / 4 + SECOND;
                end_at(&mut changed, conviction.at.saturating_add(later));
            }
            Change::EndAtCulprit => end_at(&mut changed, conviction.culprit),
            Change::EndAtConviction => end_at(&mut changed, conviction.at),
            Change::Last(faults) => {
                let order = in_order(header);
                let by_then = order.iter().filter(|(time, _)| *time <= conviction.at);
                let last: Vec<usize> = by_then.rev().take(*faults).map(|(_, at)| *at).collect();
                retain(&mut changed.schedule, |place| last.contains(&place));
            }
            Change::Without(first, count) => {
                let gone = *first..first + count;
                retain(&mut changed.schedule, |place| !gone.contains(&place));
            }
            Change::WithoutUnder(_, seed) if *seed == header.seed => return None,
            Change::WithoutUnder(entry, seed) => {
                changed.seed = *seed;
                retain(&mut changed.schedule, |place| place != *entry);
            }
            Change::Clients(clients) => {
                changed.cluster.clients = *clients.min(&header.cluster.clients);
                with_nodes_that_are(&mut changed);
            }
            Change::Replicas(fewer) => match &mut changed.cluster.storage {
                StorageKind::Quorum { replicas } if fewer < replicas => {
                    *replicas = *fewer;
                    with_nodes_that_are(&mut changed);
                }
                _ => return None,
            },
            Change::Memory => changed.cluster.disk = DiskKind::Memory,
            Change::TrueClocks => changed.clocks.clear(),
            Change::TrueClock(node) => drop(changed.clocks.remove(node)),
            Change::NoOffsets => changed.offsets.clear(),
            Change::NoOffset(node) => drop(changed.offsets.remove(node)),
            Change::OneLease => changed.traffic.leases = 1,
            Change::OneKey => changed.traffic.keys = changed.traffic.keys.min(1),
            Change::NoDeletes => changed.traffic.delete_one_in = 0,
            Change::NoResigning => changed.traffic.resign_every = None,
            Change::SteadyNetwork => {
                let Network { min_latency, .. } = header.network;
                changed.network.max_latency = min_latency;
            }
            Change::Party(entry, party, targets) => {
                let entry = changed.schedule.get_mut(*entry)?;
                *entry = with_party(entry, party, *targets)?;
            }
            Change::InOrder => changed.schedule.sort_by_key(super::knob::time_of),
        }
        (changed != *header).then_some(changed)
    }

    /// The parties of an entry, and whom each could plainly be instead.
    pub(super) fn parties(header: &Header, entry: usize) -> Vec<Self> {
        let entries = header.schedule.get(entry);
        let Some(Ok(Value::Object(fields))) = entries.map(serde_json::to_value) else {
            return Vec::new();
        };
        let parties = fields.into_iter().flat_map(|(field, value)| {
            let target = serde_json::from_value(value).into_iter();
            let targets = target.flat_map(|target| {
                let plainer = plainer(target, header).into_iter();
                plainer.map(move |plain| [target, plain])
            });
            targets.map(move |targets| Change::Party(entry, field.clone(), targets))
        });
        parties.collect()
    }
}

/// Whom a target could plainly be instead: somebody named, not drawn; one, not many.
fn plainer(target: Target, header: &Header) -> Vec<Target> {
    let clients = (0..header.cluster.clients).map(Target::Client);
    let replicas = match header.cluster.storage {
        StorageKind::Quorum { replicas } => (0..replicas).map(Target::Replica).collect(),
        _ => Vec::new(),
    };
    match target {
        Target::Follower => clients.collect(),
        Target::AnyClient | Target::Clients => {
            [Target::Leader].into_iter().chain(clients).collect()
        }
        Target::Servers => vec![Target::Store, Target::Storage],
        Target::Minority => replicas,
        Target::AnyNode | Target::Everyone => {
            let named = [Target::Leader, Target::Store, Target::Storage];
            named.into_iter().chain(clients).chain(replicas).collect()
        }
        Target::Leader
        | Target::Client(_)
        | Target::Store
        | Target::Storage
        | Target::Replica(_) => Vec::new(),
    }
}

fn with_party(entry: &Injection, party: &str, [from, to]: [Target; 2]) -> Option<Injection> {
    let mut value = serde_json::to_value(entry).ok()?;
    let target = value.get_mut(party)?;
    if *target != serde_json::to_value(from).ok()? {
        return None;
    }
    *target = serde_json::to_value(to).ok()?;
    serde_json::from_value(value).ok()
}

/// Faults, clocks and offsets of nodes that there are.
fn with_nodes_that_are(header: &mut Header) {
    let cluster = &header.cluster;
    let replicas = match cluster.storage {
        StorageKind::Quorum { replicas } => replicas,
        _ => 0,
    };
    let there = |target: &Target| match *target {
        Target::Client(nth) => nth < cluster.clients,
        Target::Replica(nth) => nth < replicas,
        _ => true,
    };
    let strikes = |entry: &Injection| entry.fault.targets().iter().all(there);
    header.schedule.retain(strikes);
    let nodes = cluster.node_names();
    header.clocks.retain(|node, _| nodes.contains(node));
    header.offsets.retain(|node, _| nodes.contains(node));
}

/// Ends the run once this time is over, in chaos or in calm, rounded up to two digits; never
/// later than it ends.
fn end_at(header: &mut Header, time: Nanos) {
    let over = time.saturating_add(TICK);
    if over <= header.chaos {
        header.chaos = header.chaos.min(two_digits(over));
        header.calm = 0;
        drop_late(header);
    } else {
        header.calm = header.calm.min(two_digits(over - header.chaos));
    }
}

/// Rounded up to two digits, and to whole steps.
fn two_digits(time: Nanos) -> Nanos {
    let digits = time.checked_ilog10().unwrap_or(0);
    let unit = 10_u64.pow(digits.saturating_sub(1)).max(TICK);
    time.div_ceil(unit).saturating_mul(unit)
}

/// Keeps what stands in these places.
fn retain<T>(list: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
    let mut place = 0;
    list.retain(|_| {
        place += 1;
        keep(place - 1)
    });
}

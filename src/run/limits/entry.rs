//! What an entry of a schedule can be asked for. Refused is what the world cannot do, and
//! what would surely do nothing: somebody meant something by it.

use deposed_checkers::history::{F, Name, Nanos};

use super::{CLOCK_RATES, can_run_at};
use crate::{
    cluster::{Cluster, StorageKind},
    fault::{Fault, Injection, Target, Trigger, reading::unknown},
    nemesis::{FRAMES, FRAMES_OF_STORAGES},
    run::Header,
    system::{Deposed, System},
    world,
};

/// All of it, in parts per billion.
const WHOLE: u64 = 1_000_000_000;

impl Header {
    /// Whether a drawn entry strikes before everything is healed, and changes anything. Near
    /// the end of the chaos some are drawn that do not.
    pub(in crate::run) fn strikes(&self, injection: &Injection) -> bool {
        injection.when.earliest() <= last_strike(self.chaos)
            && !matches!(injection.fault, Fault::Step { by: 0, .. })
            && !self.is_their_own_rate(&injection.fault)
    }
}

/// The end of the tick in which the chaos ends.
fn last_strike(chaos: Nanos) -> Nanos {
    chaos
        .checked_next_multiple_of(world::TICK)
        .unwrap_or(chaos)
        .max(world::TICK)
}

impl Header {
    /// Whether the world can do this, and it would do something.
    pub(super) fn can_inject(&self, injection: &Injection) -> Result<(), String> {
        self.can_come(injection.when)?;
        self.can_find(&injection.fault)?;
        can_measure(&injection.fault)?;
        self.changes_a_clock(&injection.fault)?;
        match &injection.fault {
            Fault::Lose { kind, .. }
            | Fault::Delay { kind, .. }
            | Fault::Duplicate { kind, .. } => self.can_meddle(kind)?,
            Fault::GcPause {
                before: Some(f), ..
            } => self.can_call(*f, "its 'before' waits for")?,
            fault if fault.is_of_disks() => self.can_fail_disks(fault)?,
            _ => {}
        }
        self.does_something(&injection.fault)
    }

    fn can_come(&self, when: Trigger) -> Result<(), String> {
        if let Trigger::On { nth: 0, .. } = when {
            return Err("its 'nth' is 0, and must be 1 or more: they count from 1".to_owned());
        }
        if let Trigger::On { moment, .. } | Trigger::Next { moment, .. } = when {
            self.can_call(moment.f, "it waits for")?;
        }
        let (earliest, chaos) = (when.earliest(), self.chaos);
        if earliest <= last_strike(chaos) {
            return Ok(());
        }
        let strikes = match when {
            Trigger::At(at) => format!("its 'at' is {at}"),
            Trigger::On { plus, .. } => format!("its 'plus' is {plus}"),
            Trigger::Next { after, plus, .. } => format!("its 'after' is {after}, 'plus' {plus}"),
        };
        Err(format!(
            "{strikes}, and the run's 'chaos' is over after {chaos} ns: it would never strike"
        ))
    }

    /// Whether our clients ever make such a call. What only some storages lack is let
    /// through: a schedule that was drawn for another storage may ask for it.
    fn can_call(&self, f: F, awaits: &str) -> Result<(), String> {
        let (never, field) = match f {
            F::Delete if self.traffic.delete_one_in == 0 => ("deletes", "'delete_one_in' to 10"),
            F::Release if self.traffic.resign_every.is_none() => {
                ("releases its lease", "'resign_every' to a time in ns")
            }
            _ => return Ok(()),
        };
        match self.is_ours() {
            true => Err(format!(
                "{awaits} a {}, and nobody ever {never}: it would never strike; set {field} in \
                 the header's 'traffic'",
                f.name()
            )),
            false => Ok(()),
        }
    }

    fn can_find(&self, fault: &Fault) -> Result<(), String> {
        let clients = self.cluster.clients;
        let replicas = match self.cluster.storage {
            StorageKind::Quorum { replicas } => replicas,
            _ => 0,
        };
        for target in fault.targets() {
            match target {
                Target::Client(nth) if nth >= clients => {
                    return Err(format!(
                        "client {nth} is its target, and the last of {clients} is {}",
                        clients - 1
                    ));
                }
                Target::Replica(_) | Target::Minority if replicas == 0 => {
                    return Err("a replica is its target, and the storage has none".to_owned());
                }
                Target::Replica(nth) if nth >= replicas => {
                    return Err(format!(
                        "replica {nth} is its target, and the last of {replicas} is {}",
                        replicas - 1
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Other systems have frames of their own; of ours, all are known.
    fn can_meddle(&self, kind: &str) -> Result<(), String> {
        let mut known: Vec<&str> = FRAMES.to_vec();
        known.extend(FRAMES_OF_STORAGES);
        match self.is_ours() && !known.contains(&kind) {
            true => Err(format!(
                "its 'kind': {}",
                unknown("kind of frame", kind, &known)
            )),
            false => Ok(()),
        }
    }

    fn is_ours(&self) -> bool {
        self.system == Deposed.name()
    }

    fn can_fail_disks(&self, fault: &Fault) -> Result<(), String> {
        let has_none = |target: &Target| !is_server(target);
        if let Some(target) = fault.targets().into_iter().find(has_none) {
            return Err(format!(
                "its 'target' is {}, which has no disk that can fail: take the store or the storage",
                serde_json::to_string(&target).unwrap_or_default()
            ));
        }
        if self.cluster.disk.is_memory() {
            return Err(
                "the servers keep their state in memory, which cannot fail: set \
                 \"disk\":\"simulated\" in the header's 'cluster'"
                    .to_owned(),
            );
        }
        let storage_too = self.cluster.storage == StorageKind::CompareAndSwap;
        match fault {
            Fault::Restore { target, .. } if *target != Target::Store || storage_too => {
                Err(String::from(
                    "only a lease server can come back from an old copy: storage would lack \
                     writes that it had acknowledged, and no floor makes good for that",
                ))
            }
            _ => Ok(()),
        }
    }

    /// A clock that is given the rate that it has runs as before, unless another entry has
    /// it at yet another by then.
    fn changes_a_clock(&self, fault: &Fault) -> Result<(), String> {
        let rates = |entry: &&Injection| matches!(entry.fault, Fault::Rate { .. });
        match fault {
            Fault::Rate { rate_ppb, .. }
                if self.is_their_own_rate(fault)
                    && self.schedule.iter().filter(rates).count() <= 1 =>
            {
                Err(format!(
                    "its 'rate_ppb' is {rate_ppb}, at which the clock runs already: give another"
                ))
            }
            _ => Ok(()),
        }
    }

    fn is_their_own_rate(&self, fault: &Fault) -> bool {
        let Fault::Rate {
            target, rate_ppb, ..
        } = fault
        else {
            return false;
        };
        let nodes = match self.node(*target) {
            Some(node) => vec![node],
            None if is_client(target) => self.cluster.client_names(),
            None => self.cluster.node_names(),
        };
        nodes.iter().all(|node| self.rate_of(node) == *rate_ppb)
    }

    /// Between a node and itself nothing passes that could be lost, nor between two of our
    /// clients, or of our servers.
    fn does_something(&self, fault: &Fault) -> Result<(), String> {
        let fields = match fault {
            Fault::Partition { .. }
            | Fault::Hold { .. }
            | Fault::Latency { .. }
            | Fault::Flaky { .. } => ["a", "b"],
            Fault::PartitionOneway { .. } => ["from", "to"],
            // A system of somebody else may send frames to itself.
            Fault::Lose { .. } | Fault::Delay { .. } | Fault::Duplicate { .. }
                if self.is_ours() =>
            {
                ["from", "to"]
            }
            _ => return Ok(()),
        };
        let [one_field, other_field] = fields;
        let targets = fault.targets();
        let nodes = targets.iter().map(|party| self.node(*party));
        if let [Some(one), Some(other)] = &nodes.collect::<Vec<_>>()[..]
            && one == other
        {
            return Err(format!(
                "its '{one_field}' and '{other_field}' are both the node '{one}', which sends \
                 itself nothing: name two"
            ));
        }
        for (all, role) in [
            (is_client as fn(&Target) -> bool, "client"),
            (is_server, "server"),
        ] {
            if self.is_ours() && targets.iter().all(all) {
                return Err(format!(
                    "its '{one_field}' and '{other_field}' are both a {role}, and nothing passes \
                     between two of them: take a client and a server"
                ));
            }
        }
        Ok(())
    }

    /// The node that a target always means, if it always means the same one.
    fn node(&self, target: Target) -> Option<Name> {
        let Cluster { clients, .. } = self.cluster;
        let storages = self.cluster.storage_names();
        match target {
            Target::Client(nth) => self.cluster.client_names().get(usize::from(nth)).cloned(),
            Target::Leader | Target::Follower | Target::AnyClient | Target::Clients => (clients
                == 1)
                .then(|| self.cluster.client_names().first().cloned())
                .flatten(),
            Target::Store => Some(Cluster::STORE.into()),
            Target::Storage => match &storages[..] {
                [one] => Some(one.clone()),
                _ => None,
            },
            Target::Servers => match &storages[..] {
                [one] if one == Cluster::STORE => Some(one.clone()),
                _ => None,
            },
            Target::Replica(nth) => storages.get(usize::from(nth)).cloned(),
            Target::AnyNode | Target::Minority | Target::Everyone => None,
        }
    }
}

/// Whether it means clients, whoever they are just then.
fn is_client(target: &Target) -> bool {
    use Target::{AnyClient, Client, Clients, Follower, Leader};
    matches!(target, Leader | Follower | AnyClient | Client(_) | Clients)
}

/// The same of servers.
fn is_server(target: &Target) -> bool {
    use Target::{Minority, Replica, Servers, Storage, Store};
    matches!(target, Store | Storage | Servers | Replica(_) | Minority)
}

/// Whether its numbers are ones that the world can do, and do something.
fn can_measure(fault: &Fault) -> Result<(), String> {
    let nothing =
        |field: &str, why: &str| Err(format!("its '{field}' is 0, and must be 1 or more: {why}"));
    match *fault {
        // A cut of no length still loses what is on its way, and a crash what was in memory.
        Fault::Pause { length: 0, .. }
        | Fault::Suspend { length: 0, .. }
        | Fault::GcPause { length: 0, .. }
        | Fault::Starve { length: 0, .. }
        | Fault::Rate { length: 0, .. }
        | Fault::Latency { length: 0, .. }
        | Fault::Flaky { length: 0, .. }
        | Fault::SlowSync { length: 0, .. }
        | Fault::FullDisk { length: 0, .. } => nothing("for", "it would be over before it began"),
        Fault::Lose { count: 0, .. }
        | Fault::Delay { count: 0, .. }
        | Fault::Duplicate { count: 0, .. } => nothing("count", "it would strike no frame"),
        Fault::IoError { count: 0, .. } => nothing("count", "no operation of the disk would fail"),
        Fault::PowerCut { operations: 0, .. } => nothing("operations", "they count from 1"),
        Fault::Delay { by: 0, .. } => nothing("by", "no frame would be late"),
        Fault::SlowSync { by: 0, .. } => nothing("by", "no commit would take longer"),
        Fault::Step { by: 0, .. } => {
            Err("its 'by' is 0, and must be another number: no clock would step".to_owned())
        }
        Fault::Rate { rate_ppb, .. } if !can_run_at(rate_ppb) => Err(format!(
            "its 'rate_ppb' is {rate_ppb}, and must be {} to {}",
            CLOCK_RATES.0, CLOCK_RATES.1
        )),
        Fault::Latency { min, max, .. } if min < world::TICK || max < min => Err(format!(
            "its 'min' is {min} and its 'max' {max}: 'min' must be 1000000 (a millisecond) or \
             more, and 'max' not below it"
        )),
        Fault::Starve { one_in, .. } if one_in < 2 => Err(format!(
            "its 'one_in' is {one_in}, and must be 2 or more: a process that gets every tick is \
             not starved"
        )),
        Fault::Flaky {
            lose_ppb,
            delay_ppb,
            by,
            ..
        } => can_be_flaky(lose_ppb, delay_ppb, by),
        _ => Ok(()),
    }
}

fn can_be_flaky(lose_ppb: u32, delay_ppb: u32, by: Nanos) -> Result<(), String> {
    match (lose_ppb, delay_ppb) {
        (0, 0) => Err(
            "its 'lose_ppb' and 'delay_ppb' are 0: no frame would be lost or late; one of them \
             must be 1 or more"
                .to_owned(),
        ),
        (0, _) if by == 0 => {
            Err("its 'by' is 0, and must be 1 or more: no frame would be late".to_owned())
        }
        _ if u64::from(lose_ppb) + u64::from(delay_ppb) > WHOLE => Err(format!(
            "its 'lose_ppb' is {lose_ppb} and its 'delay_ppb' {delay_ppb}, together more than \
             {WHOLE}, which is every frame"
        )),
        _ => Ok(()),
    }
}

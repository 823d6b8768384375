//! Disks that fail, as the world handles them.

use deposed_checkers::history::{Name, Nanos};
use serde_json::{Value, json};

use super::{World, links::between, queue::Ending};
use crate::{
    cluster::{DiskKind, Role},
    disk::sim::SimDisk,
    fault::{Fault, Target},
    rng::stream,
    run::Header,
};

/// The disk of a node, where it can fail.
pub(super) fn of(role: Role, header: &Header, name: &Name) -> Option<SimDisk> {
    let kept = matches!(role, Role::Store | Role::Storage);
    let simulated = header.cluster.disk == DiskKind::Simulated;
    (kept && simulated).then(|| SimDisk::new(stream(header.seed, &format!("disk of {name}"), 0)))
}

impl World {
    /// Whether a fault of disks found whom to strike.
    pub(super) fn strike_disk(&mut self, fault: Fault, now: Nanos) -> bool {
        let name = fault.name();
        match fault {
            Fault::PowerCut {
                target,
                operations,
                length,
            } => {
                // Armed here; where it strikes is recorded as `power-loss`.
                let fields = json!({"operations": operations, "for": length});
                let cut = |disk: &SimDisk| disk.cut_inside(operations, length);
                !self.each_disk(name, target, fields, cut).is_empty()
            }
            Fault::IoError { target, count } => {
                let fail = |disk: &SimDisk| disk.fail(count);
                let fields = json!({"count": count});
                !self.each_disk(name, target, fields, fail).is_empty()
            }
            Fault::SlowSync { target, by, length } => {
                let fields = json!({"by": by, "for": length});
                let nodes = self.each_disk(name, target, fields, |disk| disk.slow(by));
                for &node in &nodes {
                    let ending = Ending::SlowSync { node, by };
                    self.injector.queue.end(now.saturating_add(length), ending);
                }
                !nodes.is_empty()
            }
            Fault::FullDisk { target, length } => {
                let nodes = self.each_disk(name, target, json!({"for": length}), SimDisk::fill);
                for &node in &nodes {
                    let ending = Ending::FullDisk { node };
                    self.injector.queue.end(now.saturating_add(length), ending);
                }
                !nodes.is_empty()
            }
            Fault::Backup { target } => {
                let nodes = self.each_disk(name, target, json!({}), SimDisk::back_up);
                !nodes.is_empty()
            }
            Fault::Restore { target, length } => self.restore(target, now, length),
            other => unreachable!("{} is no fault of disks", other.name()),
        }
    }

    /// Strikes the disks that can fail of the nodes that a target means: those nodes.
    fn each_disk(
        &mut self,
        name: &'static str,
        target: Target,
        fields: Value,
        strike: impl Fn(&SimDisk),
    ) -> Vec<usize> {
        let mut nodes = self.resolve(target);
        nodes.retain(|&node| self.actors[node].disk.is_some());
        for &node in &nodes {
            let mut value = fields.clone();
            value["target"] = json!(target);
            value["node"] = json!(self.actors[node].name);
            self.recorder.nemesis(name, value);
            self.actors[node].disk.iter().for_each(&strike);
        }
        nodes
    }

    pub(super) fn quicken_disk(&mut self, node: usize, by: Nanos) {
        self.record_heal("slow-sync", node);
        let disk = self.actors[node].disk.as_ref();
        disk.into_iter().for_each(|disk| disk.quicken(by));
    }

    pub(super) fn free_disk(&mut self, node: usize) {
        self.record_heal("full-disk", node);
        self.actors[node].disk.iter().for_each(SimDisk::free);
    }

    fn record_heal(&self, fault: &str, node: usize) {
        let nodes = self.names(&[&[node]]);
        self.recorder
            .nemesis("heal", json!({"fault": fault, "nodes": nodes}));
    }

    /// Restores the last copy, of each node that has one.
    fn restore(&mut self, target: Target, now: Nanos, length: Nanos) -> bool {
        let nodes = self.resolve_running(target);
        let mut struck = false;
        for node in nodes {
            let Some(disk) = self.actors[node].disk.clone() else {
                continue;
            };
            if !disk.has_backup() {
                continue;
            }
            struck = true;
            // What an operator would read from the clients' logs, or over-estimate.
            let floor = self.watch.highest_token;
            let mut value = self.value(target, node, length);
            value["floor"] = json!(floor);
            self.recorder.nemesis("restore", value);
            self.go_dark(node, now, length);
            disk.restore(floor);
        }
        struck
    }

    /// Cuts a node off, so that no connection is closed in an orderly way, takes its
    /// power, and restarts it after a while.
    pub(super) fn go_dark(&mut self, node: usize, now: Nanos, length: Nanos) {
        let others: Vec<usize> = (0..self.actors.len()).collect();
        let cut = between(&[node], &others);
        let names = self.all_names();
        self.injector.links.cut(&self.sim, &names, &cut);
        if let Some(disk) = &self.actors[node].disk {
            disk.lose_power();
        }
        self.take_down(node);
        self.injector
            .queue
            .end(now.saturating_add(length), Ending::Restart { node, cut });
    }

    /// The power of these nodes has gone inside an operation of their disks.
    pub(super) fn catch_power_cuts(&mut self, now: Nanos) {
        for node in 0..self.actors.len() {
            let actor = &self.actors[node];
            let Some((inside, length)) = actor.disk.as_ref().and_then(SimDisk::take_cut) else {
                continue;
            };
            let value = json!({"node": actor.name, "inside": inside, "for": length});
            self.recorder.nemesis("power-loss", value);
            self.go_dark(node, now, length);
        }
    }
}

/// Nothing of a world that is torn down touches a disk: redb would close its file.
impl Drop for World {
    fn drop(&mut self) {
        for disk in self.actors.iter().filter_map(|actor| actor.disk.as_ref()) {
            disk.kill();
        }
    }
}

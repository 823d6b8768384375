//! Injects faults when they are due; `heal` ends them. The history records what a
//! symbolic target resolved to, before the fault is applied, or that the fault was void:
//! nobody fitted its target.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use deposed_checkers::history::{Follow, NEMESIS, Name, Nanos, Observation};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::{
    World,
    links::{Link, Links, between, towards},
    queue::{Ending, Queue},
};
use crate::{
    fault::{Fault, Target},
    net::{
        Meddling,
        sim::{Cuts, Flaky, Rule},
    },
    node::gate::GcPause,
    rng::stream,
    run::Header,
    workload::Network,
};

/// What is to come, and what the faults that are in force have in common.
pub(super) struct Injector {
    pub(super) queue: Queue,
    pub(super) links: Links,
    /// How many faults have a node's clock at another rate: its own comes back with
    /// the end of the last.
    pub(super) off_rate: BTreeMap<usize, u32>,
    /// By node: one tick in how many it gets, for each fault that starves it.
    pub(super) starved: BTreeMap<usize, Vec<u32>>,
    pub(super) network: Network,
    /// Draws one of several nodes that a target may mean.
    pub(super) rng: ChaCha8Rng,
}

impl Injector {
    pub(super) fn new(header: &Header, nodes: usize, cuts: Rc<Cuts>) -> Self {
        Self {
            queue: Queue::new(&header.schedule),
            links: Links::new(nodes, cuts),
            off_rate: BTreeMap::new(),
            starved: BTreeMap::new(),
            network: header.network.clone(),
            rng: stream(header.seed, NEMESIS, 0),
        }
    }
}

impl World {
    pub(super) fn inject_due(&mut self, now: Nanos) {
        while let Some(fault) = self.injector.queue.next_due(now) {
            self.inject(fault, now);
        }
    }

    fn inject(&mut self, fault: Fault, now: Nanos) {
        let (name, targets) = (fault.name(), fault.targets());
        if !self.strike(fault, now) {
            let target = match targets[..] {
                [target] => json!(target),
                _ => json!(targets),
            };
            self.recorder
                .nemesis("void", json!({"fault": name, "target": target}));
        }
    }

    /// Whether the fault found whom to strike.
    fn strike(&mut self, fault: Fault, now: Nanos) -> bool {
        let name = fault.name();
        match fault {
            Fault::Partition { a, b, length } => {
                let (left, right) = (self.resolve(a), self.resolve(b));
                let links = between(&left, &right);
                let value = json!({"a": a, "b": b, "nodes": self.names(&[&left[..], &right]), "for": length});
                self.cut(name, value, links, now, length)
            }
            Fault::PartitionOneway { from, to, length } => {
                let (senders, receivers) = (self.resolve(from), self.resolve(to));
                let links = towards(&senders, &receivers);
                let value = json!({"from": self.names(&[&senders]), "to": self.names(&[&receivers]), "for": length});
                self.cut(name, value, links, now, length)
            }
            Fault::Isolate { target, length } => {
                let nodes = self.resolve(target);
                for &node in &nodes {
                    let others: Vec<usize> = (0..self.actors.len()).collect();
                    let value = self.value(target, node, length);
                    self.cut(name, value, between(&[node], &others), now, length);
                }
                !nodes.is_empty()
            }
            Fault::Halves { length } => {
                let everyone = self.resolve(Target::Everyone);
                self.split(name, everyone, None, now, length)
            }
            Fault::Bridge { length } => {
                let mut others = self.resolve(Target::Everyone);
                let bridge = others.remove(self.injector.rng.random_range(0..others.len()));
                self.split(name, others, Some(bridge), now, length)
            }
            Fault::Hold { a, b, length } => {
                let (left, right) = (self.resolve(a), self.resolve(b));
                let links = between(&left, &right);
                if links.is_empty() {
                    return false;
                }
                let nodes = self.names(&[&left[..], &right]);
                self.recorder
                    .nemesis(name, json!({"a": a, "b": b, "nodes": nodes, "for": length}));
                let names = self.all_names();
                self.injector.links.hold(&self.sim, &names, &links);
                self.injector
                    .queue
                    .end(now.saturating_add(length), Ending::Release { links });
                true
            }
            Fault::Latency {
                a,
                b,
                min,
                max,
                length,
            } => {
                let (left, right) = (self.resolve(a), self.resolve(b));
                let links = between(&left, &right);
                if links.is_empty() {
                    return false;
                }
                let nodes = self.names(&[&left[..], &right]);
                let value =
                    json!({"a": a, "b": b, "nodes": nodes, "min": min, "max": max, "for": length});
                self.recorder.nemesis(name, value);
                self.set_latency(&links, min, max);
                self.injector.links.slow(&links);
                self.injector
                    .queue
                    .end(now.saturating_add(length), Ending::NormalLatency { links });
                true
            }
            Fault::Flaky {
                a,
                b,
                lose_ppb,
                delay_ppb,
                by,
                length,
            } => {
                let (left, right) = (self.resolve(a), self.resolve(b));
                if between(&left, &right).is_empty() {
                    return false;
                }
                let nodes = self.names(&[&left[..], &right]);
                let value = json!({"a": a, "b": b, "nodes": nodes, "lose_ppb": lose_ppb, "delay_ppb": delay_ppb, "by": by, "for": length});
                self.recorder.nemesis(name, value);
                let flaky = self.rules.flaky(Flaky {
                    a: self.names(&[&left[..]]),
                    b: self.names(&[&right[..]]),
                    lose_ppb,
                    delay_ppb,
                    by,
                });
                self.injector
                    .queue
                    .end(now.saturating_add(length), Ending::Steady { flaky, nodes });
                true
            }
            Fault::Lose {
                kind,
                from,
                to,
                count,
            } => self.arm(name, kind, (from, to), count, Meddling::Lose),
            Fault::Delay {
                kind,
                from,
                to,
                count,
                by,
            } => {
                let meddling = Meddling::Delay(Duration::from_nanos(by));
                self.arm(name, kind, (from, to), count, meddling)
            }
            Fault::Duplicate {
                kind,
                from,
                to,
                count,
                by,
            } => {
                let meddling = Meddling::Duplicate(Duration::from_nanos(by));
                self.arm(name, kind, (from, to), count, meddling)
            }
            Fault::Pause { target, length } => {
                let nodes = self.resolve_running(target);
                for &node in &nodes {
                    self.recorder
                        .nemesis(name, self.value(target, node, length));
                    self.actors[node].gate.close();
                    self.resume_after(node, now.saturating_add(length));
                }
                !nodes.is_empty()
            }
            Fault::Suspend { target, length } => {
                let nodes = self.resolve_running(target);
                for &node in &nodes {
                    self.recorder
                        .nemesis(name, self.value(target, node, length));
                    self.suspend(node);
                    let boot = self.actors[node].boots.get();
                    self.injector
                        .queue
                        .end(now.saturating_add(length), Ending::Wake { node, boot });
                }
                !nodes.is_empty()
            }
            Fault::Starve {
                target,
                one_in,
                length,
            } => {
                let nodes = self.resolve(target);
                for &node in &nodes {
                    let mut value = self.value(target, node, length);
                    value["one_in"] = json!(one_in);
                    self.recorder.nemesis(name, value);
                    self.injector.starved.entry(node).or_default().push(one_in);
                    self.injector
                        .queue
                        .end(now.saturating_add(length), Ending::Feed { node, one_in });
                }
                !nodes.is_empty()
            }
            Fault::GcPause {
                target,
                before,
                length,
            } => {
                let nodes = self.resolve_running(target);
                for &node in &nodes {
                    // Armed here; where it lands is recorded as `paused`.
                    let mut value = self.value(target, node, length);
                    value["before"] = json!(before);
                    self.recorder.nemesis(name, value);
                    self.actors[node].gate.arm(GcPause { length, before });
                }
                !nodes.is_empty()
            }
            Fault::Crash { target, length } => {
                let nodes = self.resolve_running(target);
                for &node in &nodes {
                    self.recorder
                        .nemesis(name, self.value(target, node, length));
                    self.take_down(node);
                    let restart = Ending::Restart {
                        node,
                        cut: Vec::new(),
                    };
                    self.injector.queue.end(now.saturating_add(length), restart);
                }
                !nodes.is_empty()
            }
            Fault::PowerLoss { target, length } => {
                let nodes = self.resolve_running(target);
                for &node in &nodes {
                    self.recorder
                        .nemesis(name, self.value(target, node, length));
                    self.go_dark(node, now, length);
                }
                !nodes.is_empty()
            }
            fault @ (Fault::PowerCut { .. }
            | Fault::IoError { .. }
            | Fault::SlowSync { .. }
            | Fault::FullDisk { .. }
            | Fault::Backup { .. }
            | Fault::Restore { .. }) => self.strike_disk(fault, now),
            Fault::Rate {
                target,
                rate_ppb,
                length,
            } => {
                let nodes = self.resolve(target);
                for &node in &nodes {
                    self.set_rate(node, rate_ppb);
                    *self.injector.off_rate.entry(node).or_default() += 1;
                    self.injector
                        .queue
                        .end(now.saturating_add(length), Ending::Rate { node });
                }
                !nodes.is_empty()
            }
            Fault::Step { target, by } => {
                let nodes = self.resolve(target);
                for &node in &nodes {
                    let value = json!({"target": target, "node": self.actors[node].name, "by": by});
                    self.recorder.nemesis(name, value);
                    self.change_clock(node, |clock| clock.step_wall(by));
                }
                !nodes.is_empty()
            }
        }
    }

    fn cut(
        &mut self,
        name: &'static str,
        value: Value,
        links: Vec<Link>,
        now: Nanos,
        length: Nanos,
    ) -> bool {
        if links.is_empty() {
            return false;
        }
        self.recorder.nemesis(name, value);
        let names = self.all_names();
        self.injector.links.cut(&self.sim, &names, &links);
        self.injector.queue.end(
            now.saturating_add(length),
            Ending::Mend { fault: name, links },
        );
        true
    }

    fn arm(
        &mut self,
        name: &'static str,
        kind: Name,
        (from, to): (Target, Target),
        count: u32,
        meddling: Meddling,
    ) -> bool {
        let (senders, receivers) = (self.resolve(from), self.resolve(to));
        if senders.is_empty() || receivers.is_empty() || count == 0 {
            return false;
        }
        let (from, to) = (self.names(&[&senders]), self.names(&[&receivers]));
        let mut value = json!({"kind": kind, "from": from, "to": to, "count": count});
        if let Meddling::Delay(by) | Meddling::Duplicate(by) = meddling {
            value["by"] = json!(by.as_nanos() as u64);
        }
        self.recorder.nemesis(name, value);
        self.rules.arm(Rule {
            kind,
            from,
            to,
            meddling,
            left: count,
        });
        true
    }

    pub(super) fn set_latency(&mut self, links: &[Link], min: Nanos, max: Nanos) {
        for &(a, b) in links.iter().filter(|(a, b)| a < b) {
            let (a, b) = (self.actors[a].name.as_str(), self.actors[b].name.as_str());
            // The first sets both bounds, the second raises the upper one.
            self.sim.set_link_latency(a, b, Duration::from_nanos(min));
            self.sim
                .set_link_max_message_latency(a, b, Duration::from_nanos(max.max(min)));
        }
    }

    /// Ends a process. A crash ends belief; the node itself cannot record that.
    pub(super) fn take_down(&mut self, node: usize) {
        let actor = &self.actors[node];
        if let Some(disk) = &actor.disk {
            disk.kill();
        }
        if let Some(running) = actor.node.borrow_mut().take() {
            running.each_believer(|believer| {
                if let Some(told) = believer.told() {
                    let (lease, holder) = (believer.lease().clone(), told.holder);
                    let follow = Follow {
                        lease,
                        holder,
                        token: told.token,
                    };
                    self.recorder
                        .observe(&actor.name, Observation::Follow(follow));
                }
            });
        }
        self.sim.crash(actor.name.as_str());
        // Whatever kept it asleep, it will boot awake.
        while actor.clock.suspended() {
            actor.clock.wake();
        }
    }

    /// Gives the starved their turns in the tick that is about to begin.
    pub(super) fn ration(&self, tick: u64) {
        for (&node, rations) in &self.injector.starved {
            let scarcest = rations.iter().copied().max().unwrap_or(1);
            let turn = (tick + node as u64).is_multiple_of(u64::from(scarcest));
            self.actors[node].gate.starve(!turn);
        }
    }

    pub(super) fn feed(&mut self, node: usize, one_in: u32) {
        let Some(rations) = self.injector.starved.get_mut(&node) else {
            return;
        };
        if let Some(at) = rations.iter().position(|ration| *ration == one_in) {
            rations.remove(at);
        }
        if rations.is_empty() {
            self.injector.starved.remove(&node);
            self.actors[node].gate.starve(false);
        }
    }

    /// Cuts two drawn halves of some nodes off from each other; the bridge sees both.
    fn split(
        &mut self,
        name: &'static str,
        nodes: Vec<usize>,
        bridge: Option<usize>,
        now: Nanos,
        length: Nanos,
    ) -> bool {
        let [left, right] = self.halves(nodes);
        let halves = [self.names(&[&left[..]]), self.names(&[&right[..]])];
        let mut value = json!({"halves": halves, "for": length});
        if let Some(bridge) = bridge {
            value["bridge"] = json!(self.actors[bridge].name);
        }
        self.cut(name, value, between(&left, &right), now, length)
    }
}

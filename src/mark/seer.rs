//! Who sees them: reads a history once, event by event.

use std::collections::{BTreeMap, BTreeSet};

use deposed_checkers::{
    history::{Body, Event, F, Kind, NEMESIS, Name, Nanos, Observation, Op, Token},
    verdict::{Check, Verdict, Verdicts},
};

use super::Mark;

/// The marks that a history shows.
pub fn seen(history: &[Event], verdicts: &Verdicts) -> BTreeSet<Mark> {
    let mut seer = Seer::default();
    // What calm brings is no feat.
    let calm = |event: &Event| matches!(&event.body, Body::Nemesis(f, _) if f == "calm");
    for event in history.iter().take_while(|event| !calm(event)) {
        match &event.body {
            Body::Nemesis(fault, value) if event.process == NEMESIS => {
                seer.nemesis(event.time, fault, value);
            }
            Body::Observed(observation) => seer.observed(event, observation),
            Body::Invoke(op) => seer.invoked(event, op),
            Body::Complete(f, _) => seer.completed(event, *f),
            _ => {}
        }
    }
    let mut marks = std::mem::take(&mut seer.marks);
    // A system that does not record what its store grants is seen from its clients.
    if !seer.grants_are_recorded {
        marks.append(&mut seer.seen_by_clients);
    }
    // Where beliefs are recorded, belief safety is given up only for an overlap that
    // the clocks excuse.
    if let Some(Verdict::NotClaimed(_)) = verdicts.of(Check::BeliefSafety)
        && seer.believed
    {
        marks.insert(Mark::OverlapBeyondTheBound);
    }
    marks
}

fn taken_over(after_release: bool) -> Mark {
    match after_release {
        true => Mark::TakenOverAfterRelease,
        false => Mark::TakenOverAfterExpiry,
    }
}

#[derive(Default)]
struct Seer {
    marks: BTreeSet<Mark>,
    believed: bool,
    grants_are_recorded: bool,
    /// How far the store's clock was ahead of true time at its first grant.
    store_offset: Option<i128>,
    /// As `marks`, from the clients' calls alone.
    seen_by_clients: BTreeSet<Mark>,
    acquiring: BTreeMap<u64, (Name, Name)>,
    releasing: BTreeMap<u64, Name>,
    /// By lease: who was last told that it holds it, and whether it has released it.
    led_by: BTreeMap<Name, (Name, bool)>,
    holders: BTreeMap<Name, (Name, bool)>,
    /// By process and lease: token and end of its last recorded belief.
    beliefs: BTreeMap<(Name, Name), (Option<Token>, Nanos)>,
    /// Terms that have begun and not fenced or worked, by lease and token.
    idle: BTreeSet<(Name, Option<Token>)>,
    tried_to_fence: BTreeSet<(Name, Option<Token>)>,
    unanswered: BTreeMap<(Name, Name), u32>,
    renewing: BTreeMap<u64, (Name, Name)>,
    fencing: BTreeMap<u64, (Name, Option<Token>)>,
    /// The highest fenced token that nothing was applied under yet.
    barrier: BTreeMap<Name, Token>,
    /// The token that was last applied under.
    worked: BTreeMap<Name, Token>,
    paused: BTreeMap<Name, Vec<(Name, Option<Token>)>>,
    recovered: BTreeMap<Name, Token>,
    /// By lease: when its last term runs out on the store's clock, unless it was released,
    /// and whether the store has come back since.
    runs_out: BTreeMap<Name, (Nanos, bool)>,
    /// The nodes that have restarted and not said yet what they found.
    restarted: BTreeSet<Name>,
    restored: bool,
    /// By lease: the (token, seq) of what was applied, and the nodes that applied it.
    changes: BTreeMap<Name, BTreeMap<(Token, u64), BTreeSet<Name>>>,
    /// By storage node and lease: what was applied there last.
    last_change: BTreeMap<(Name, Name), (Token, u64)>,
}

impl Seer {
    fn nemesis(&mut self, time: Nanos, fault: &Name, value: &serde_json::Value) {
        let node = value["node"].as_str().map(Name::from);
        match (fault.as_str(), node) {
            ("lost", _) => drop(self.marks.insert(Mark::FrameLost)),
            ("delayed", _) => drop(self.marks.insert(Mark::FrameDelayed)),
            ("duplicated", _) => drop(self.marks.insert(Mark::FrameDuplicated)),
            ("restart", node) => {
                self.marks.insert(Mark::Restarted);
                self.restarted.extend(node);
            }
            ("power-loss", _) if !value["inside"].is_null() => {
                self.marks.insert(Mark::PowerCutInside);
            }
            ("power-loss", _) if value["target"] == "everyone" => {
                self.marks.insert(Mark::Blackout);
            }
            ("starve", Some(node)) if !self.believing(&node, time).is_empty() => {
                self.marks.insert(Mark::LeaderStarved);
            }
            ("step", _) if self.beliefs.values().any(|(_, until)| time < *until) => {
                self.marks.insert(Mark::WallClockStepped);
            }
            ("paused" | "pause" | "suspend", Some(node)) => {
                let believed = self.believing(&node, time);
                self.paused.insert(node, believed);
            }
            ("resume", Some(node)) => {
                let before = self.paused.remove(&node).unwrap_or_default();
                let still = self.believing(&node, time);
                let elsewhere = |(lease, _): &(Name, Option<Token>)| {
                    self.beliefs.iter().any(|((process, other), (_, until))| {
                        *process != node && other == lease && time < *until
                    })
                };
                let deposed = |belief: &_| !still.contains(belief) || elsewhere(belief);
                if before.iter().any(deposed) {
                    self.marks.insert(Mark::PausedPastItsTerm);
                }
            }
            ("isolate" | "partition" | "partition-oneway" | "halves", _) => {
                let named = ["node", "nodes", "from", "to"].map(|field| &value[field]);
                let halves = value["halves"].as_array().into_iter().flatten();
                let cut = named
                    .into_iter()
                    .chain(halves)
                    .flat_map(|value| match value {
                        serde_json::Value::Array(nodes) => nodes.clone(),
                        other => vec![other.clone()],
                    });
                let cut: Vec<Name> = cut
                    .filter_map(|node| node.as_str().map(Name::from))
                    .collect();
                if cut
                    .iter()
                    .any(|node| !self.believing(node, time).is_empty())
                {
                    self.marks.insert(Mark::LeaderCutOff);
                }
            }
            _ => {}
        }
    }

    fn believing(&self, node: &Name, time: Nanos) -> Vec<(Name, Option<Token>)> {
        let ours = self
            .beliefs
            .iter()
            .filter(|((process, _), (_, until))| process == node && time < *until);
        ours.map(|((_, lease), (token, _))| (lease.clone(), *token))
            .collect()
    }

    fn observed(&mut self, event: &Event, observation: &Observation) {
        match observation {
            Observation::Lead(lead) => {
                self.believed = true;
                let key = (event.process.clone(), lead.lease.clone());
                let begun = self
                    .beliefs
                    .get(&key)
                    .is_none_or(|(token, _)| *token != lead.token);
                if begun {
                    self.idle.insert((lead.lease.clone(), lead.token));
                    let elsewhere = self.beliefs.iter().any(|((process, lease), (_, until))| {
                        *process != event.process && *lease != lead.lease && event.time < *until
                    });
                    if elsewhere {
                        self.marks.insert(Mark::ShardsApart);
                    }
                }
                let until = lead.until.unwrap_or(Nanos::MAX);
                self.beliefs.insert(key, (lead.token, until));
            }
            Observation::Follow(follow) => {
                self.beliefs
                    .remove(&(event.process.clone(), follow.lease.clone()));
                let term = (follow.lease.clone(), follow.token);
                if self.idle.remove(&term) && self.tried_to_fence.remove(&term) {
                    self.marks.insert(Mark::IdledUnfenced);
                }
            }
            Observation::Granted(granted) => {
                self.grants_are_recorded = true;
                let end = granted.clock.saturating_add(granted.ttl);
                self.runs_out.insert(granted.lease.clone(), (end, false));
                if self.restored {
                    self.marks.insert(Mark::GrantedAfterRestore);
                }
                let offset = i128::from(granted.clock) - i128::from(event.time);
                let first = *self.store_offset.get_or_insert(offset);
                if (offset - first).unsigned_abs() >= 1_000_000 {
                    self.marks.insert(Mark::ClocksApart);
                }
                let now = (granted.holder.clone(), false);
                if let Some((before, released)) = self.holders.insert(granted.lease.clone(), now)
                    && before != granted.holder
                {
                    self.marks.insert(taken_over(released));
                }
            }
            Observation::Released(released) => {
                self.runs_out.remove(&released.lease);
                if let Some((_, is_released)) = self.holders.get_mut(&released.lease) {
                    *is_released = true;
                }
            }
            Observation::StorageRecovered(_) => self.came_back(&event.process),
            Observation::Restored(_) => {
                self.restored = true;
                self.came_back(&event.process);
            }
            Observation::StoreRecovered(recovered) => {
                self.came_back(&event.process);
                let owned = recovered
                    .leases
                    .iter()
                    .filter(|(_, lease)| lease.holder.is_some());
                let owned = owned.map(|(name, lease)| (name.clone(), lease.counter));
                self.recovered = owned.collect();
                let ends = recovered.leases.iter().filter_map(|(name, lease)| {
                    let end = recovered.clock.saturating_add(lease.ttl?);
                    lease.holder.as_ref().map(|_| (name.clone(), (end, true)))
                });
                self.runs_out = ends.collect();
            }
            Observation::Renewed(renewed) => {
                if let Some((end, _)) = self.runs_out.get_mut(&renewed.lease) {
                    *end = (*end).max(renewed.clock.saturating_add(renewed.ttl));
                }
                let before = self.recovered.get(&renewed.lease);
                if before.is_some_and(|before| Some(*before) == renewed.token) {
                    self.marks.insert(Mark::RenewedAcrossStoreRestart);
                }
            }
            // A fence repeated after work is no barrier that still stands alone.
            Observation::Fenced(fenced)
                if self.worked.get(&fenced.lease) != Some(&fenced.token) =>
            {
                self.barrier.insert(fenced.lease.clone(), fenced.token);
            }
            Observation::Denied(denied)
                if denied.f == F::Acquire && denied.error.kind == "held" =>
            {
                if let Some((end, restarted)) = self.runs_out.get(&denied.lease)
                    && denied.clock >= *end
                {
                    self.marks.insert(match restarted {
                        true => Mark::LockDelayOutlivedRestart,
                        false => Mark::RefusedInLockDelay,
                    });
                }
            }
            Observation::Dropped(_) => drop(self.marks.insert(Mark::DuplicateDropped)),
            Observation::Applied(applied) => {
                if let Some((end, _)) = self.runs_out.get(&applied.lease)
                    && applied.token.is_none()
                    && i128::from(event.time) + self.store_offset.unwrap_or(0) >= i128::from(*end)
                {
                    self.marks.insert(Mark::LandedInLockDelay);
                }
                if let (Some(token), Some(seq)) = (applied.token, applied.seq) {
                    self.changed(&event.process, &applied.lease, (token, seq));
                }
                self.barrier.remove(&applied.lease);
                if let Some(token) = applied.token {
                    self.worked.insert(applied.lease.clone(), token);
                }
                if applied.f == F::Delete {
                    self.marks.insert(Mark::Deleted);
                }
            }
            Observation::Refused(refused)
                if refused.f != F::Fence && refused.token < refused.seen =>
            {
                self.marks.insert(Mark::StaleWriteRefused);
                if self.barrier.get(&refused.lease) == Some(&refused.seen) {
                    self.marks.insert(Mark::StaleWriteRefusedByBarrier);
                }
            }
            _ => {}
        }
    }

    /// A server says what it found. One that has not restarted had an error.
    fn came_back(&mut self, process: &Name) {
        if !self.restarted.remove(process) {
            self.marks.insert(Mark::RecoveredFromDiskError);
        }
    }

    /// A replica takes a change right after the one before it, or not at all: if it never
    /// took that one, and another did, it was brought the state.
    fn changed(&mut self, node: &Name, lease: &Name, change: (Token, u64)) {
        let changes = self.changes.entry(lease.clone()).or_default();
        let takers = changes.entry(change).or_default();
        takers.insert(node.clone());
        let whose = (node.clone(), lease.clone());
        let last = self.last_change.insert(whose, change);
        let missed = last.is_some_and(|last| {
            let mut between = changes.range(last.min(change)..change);
            between.any(|(_, takers)| !takers.contains(node))
        });
        if missed {
            self.marks.insert(Mark::ReplicaRepaired);
        }
    }

    fn invoked(&mut self, event: &Event, op: &Op) {
        let Some(call) = event.call else { return };
        match op {
            Op::Renew(renew) => {
                let key = (event.process.clone(), renew.lease.clone());
                *self.unanswered.entry(key.clone()).or_default() += 1;
                self.renewing.insert(call, key);
            }
            Op::Fence(fence) => {
                let term = (fence.lease.clone(), Some(fence.token));
                self.tried_to_fence.insert(term.clone());
                self.fencing.insert(call, term);
            }
            Op::Write(write) => drop(self.idle.remove(&(write.lease.clone(), write.token))),
            Op::Read(read) => drop(self.idle.remove(&(read.lease.clone(), read.token))),
            Op::Delete(delete) => drop(self.idle.remove(&(delete.lease.clone(), delete.token))),
            // A new contest: what was not answered before it belongs to another term.
            Op::Acquire(acquire) => {
                self.unanswered
                    .remove(&(event.process.clone(), acquire.lease.clone()));
                let asked = (acquire.lease.clone(), acquire.holder.clone());
                self.acquiring.insert(call, asked);
            }
            Op::Release(release) => drop(self.releasing.insert(call, release.lease.clone())),
        }
    }

    fn completed(&mut self, event: &Event, f: F) {
        let Some(call) = event.call else { return };
        match (f, event.kind) {
            (F::Renew, Kind::Ok) => {
                if let Some(key) = self.renewing.remove(&call)
                    && self
                        .unanswered
                        .insert(key, 0)
                        .is_some_and(|tries| tries >= 3)
                {
                    self.marks.insert(Mark::OutlivedTwoLostRenewals);
                }
            }
            (F::Write, Kind::Ok) => drop(self.marks.insert(Mark::Wrote)),
            (F::Acquire, Kind::Ok) => {
                if let Some((lease, holder)) = self.acquiring.remove(&call) {
                    let before = self.led_by.insert(lease, (holder.clone(), false));
                    if let Some((_, released)) = before.filter(|(before, _)| *before != holder) {
                        self.seen_by_clients.insert(taken_over(released));
                    }
                }
            }
            (F::Release, Kind::Ok) => {
                let lease = self.releasing.remove(&call);
                if let Some((_, released)) = lease.and_then(|lease| self.led_by.get_mut(&lease)) {
                    *released = true;
                }
            }
            (F::Fence, Kind::Ok) => {
                if let Some(term) = self.fencing.remove(&call) {
                    self.idle.remove(&term);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_missed_what_another_took_was_repaired() {
        let lease = Name::from("leader");
        let repaired = |taken: &[(&str, (Token, u64))]| {
            let mut seer = Seer::default();
            for (node, change) in taken {
                seer.changed(&Name::from(*node), &lease, *change);
            }
            seer.marks.contains(&Mark::ReplicaRepaired)
        };
        // One server that takes a stale write between two others has missed nothing.
        let alone = [("s", (1, 1)), ("s", (2, 1)), ("s", (1, 2)), ("s", (2, 2))];
        assert!(!repaired(&alone));
        let missed = [
            ("s1", (1, 1)),
            ("s2", (1, 1)),
            ("s1", (1, 2)),
            ("s1", (1, 3)),
        ];
        assert!(!repaired(&missed));
        let brought = [&missed[..], &[("s2", (1, 3))]].concat();
        assert!(repaired(&brought));
    }
}

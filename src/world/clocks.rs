//! What the nemesis does to clocks. Where a belief ends at another time because of it,
//! the world rewrites its record: the node may be stopped and cannot.

use deposed_checkers::history::{Follow, Lead, Name, Nanos, Observation, RatePpb};
use serde_json::json;

use super::World;
use crate::{clock::DriftingClock, node::Told};

/// A belief of a node: of which lease, as it was told, and until when, true time, it
/// lasts by itself if it is not over.
type Standing = (Name, Told, Option<Option<Nanos>>);

impl World {
    /// Changes a clock's rate.
    pub(super) fn set_rate(&mut self, node: usize, rate: RatePpb) {
        let value = json!({"node": self.actors[node].name, "rate_ppb": rate});
        self.recorder.nemesis("rate", value);
        self.change_clock(node, |clock| clock.set_rate(rate));
    }

    /// Stops a machine and its run clock.
    pub(super) fn suspend(&mut self, node: usize) {
        self.actors[node].gate.close();
        self.change_clock(node, DriftingClock::suspend);
    }

    /// Takes one [`World::suspend`] back.
    pub(super) fn wake(&mut self, node: usize) {
        self.change_clock(node, DriftingClock::wake);
        self.actors[node].gate.open();
    }

    /// Changes a node's clocks.
    pub(super) fn change_clock(&mut self, node: usize, change: impl FnOnce(&DriftingClock)) {
        let before = self.beliefs(node);
        let actor = &self.actors[node];
        change(&actor.clock);
        let after = self.beliefs(node);
        for ((_, _, ended), (lease, told, ends)) in before.into_iter().zip(after) {
            if ended == ends {
                continue;
            }
            let (holder, token) = (told.holder, told.token);
            let changed = match ends {
                Some(until) => Observation::Lead(Lead {
                    lease,
                    holder,
                    token,
                    until,
                    sent: Some(told.sent),
                }),
                None => Observation::Follow(Follow {
                    lease,
                    holder,
                    token,
                }),
            };
            self.recorder.observe(&actor.name, changed);
        }
    }

    fn beliefs(&self, node: usize) -> Vec<Standing> {
        let Some(running) = self.actors[node].node.borrow().clone() else {
            return Vec::new();
        };
        let now = running.now();
        let mut beliefs = Vec::new();
        running.each_believer(|believer| {
            if let Some(told) = believer.told() {
                let leads = believer.is_leader(now);
                let ends = leads.then(|| believer.ends_at(&running));
                beliefs.push((believer.lease().clone(), told, ends));
            }
        });
        beliefs
    }
}

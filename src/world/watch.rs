//! What the world sees of a run: who believes to lead, whether that is what the
//! records say, and which moments have come that faults are aimed at.

use std::collections::BTreeMap;

use deposed_checkers::history::{Answer, Body, F, Name, Nanos, Observation, Token};

use super::Actor;
use crate::{cluster::Role, fault::Moment, recorder::Recorder};

/// See the module.
pub(super) struct Watch {
    read: usize,
    /// By client and lease: until when it has recorded that it believes.
    told: Vec<BTreeMap<Name, Nanos>>,
    /// The clients that believe now, by place.
    pub(super) leaders: Vec<usize>,
    /// The highest token that the store ever granted. It may have been made durable and
    /// told to nobody yet: the store comes back with it.
    pub(super) highest_token: Token,
    /// The first time at which the two differed.
    pub(super) discrepancy: Option<String>,
}

impl Watch {
    pub(super) fn new(actors: usize) -> Self {
        let told = vec![BTreeMap::new(); actors];
        Self {
            read: 0,
            told,
            leaders: Vec::new(),
            highest_token: 0,
            discrepancy: None,
        }
    }

    /// Reads what was recorded since last time, and passes on the moments in it.
    pub(super) fn read(
        &mut self,
        recorder: &Recorder,
        actors: &[Actor],
        mut moment: impl FnMut(Moment, Nanos),
    ) {
        let told = &mut self.told;
        let mut tell = |process: &Name, lease: &Name, until: Option<Nanos>| {
            if let Some(at) = actors.iter().position(|actor| actor.name == *process) {
                match until {
                    Some(until) => told[at].insert(lease.clone(), until),
                    None => told[at].remove(lease),
                };
            }
        };
        let highest = &mut self.highest_token;
        recorder.look(self.read, |event| {
            if let Some(token) = granted(&event.body) {
                *highest = token.max(*highest);
            }
            let f = match &event.body {
                Body::Invoke(op) => op.f(),
                Body::Complete(f, _) => *f,
                Body::Observed(Observation::Lead(lead)) => {
                    let until = lead.until.unwrap_or(Nanos::MAX);
                    return tell(&event.process, &lead.lease, Some(until));
                }
                Body::Observed(Observation::Follow(follow)) => {
                    return tell(&event.process, &follow.lease, None);
                }
                _ => return,
            };
            if let Some(met) = Moment::of(f, event.kind) {
                moment(met, event.time);
            }
        });
        self.read = recorder.len();
    }

    /// Asks every client, paused or not, without running it, and compares.
    pub(super) fn ask(&mut self, actors: &[Actor], now: Nanos) {
        self.leaders.clear();
        let clients = actors
            .iter()
            .enumerate()
            .filter(|(_, actor)| actor.role == Role::Client);
        for (at, actor) in clients {
            let node = actor.node.borrow();
            let Some(node) = &*node else { continue };
            let local = actor.clock.local_at(now);
            let mut leads = false;
            node.each_believer(|believer| {
                let asked = believer.is_leader(local);
                let told = self.told[at].get(believer.lease()).is_some_and(|until| now < *until);
                leads |= asked;
                if asked != told && self.discrepancy.is_none() {
                    self.discrepancy = Some(format!(
                        "at {now} ns {}'s is_leader() for '{}' is {asked}, but its records say {told}",
                        actor.name,
                        believer.lease(),
                    ));
                }
            });
            if leads {
                self.leaders.push(at);
            }
        }
    }
}

/// The highest token granted that this tells of, by the store's account or by its owner's.
fn granted(body: &Body) -> Option<Token> {
    match body {
        Body::Observed(Observation::Granted(granted)) => granted.token,
        Body::Observed(Observation::StoreRecovered(recovered)) => {
            recovered.leases.values().map(|lease| lease.counter).max()
        }
        Body::Complete(F::Acquire, Answer::Token(token)) => Some(*token),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use deposed_checkers::history::{RecoveredLease, StoreRecovered};

    use super::*;

    /// An operator whose floor were below it would have the token granted twice: its answer
    /// may be under way.
    #[test]
    fn what_the_store_made_durable_was_granted_even_if_nobody_was_told() {
        let lease = |counter| RecoveredLease {
            counter,
            holder: Some("a#1".into()),
            ttl: Some(9),
        };
        let leases = [("x".into(), lease(7)), ("y".into(), lease(5))].into();
        let found = StoreRecovered { leases, clock: 1 };
        let found = Body::Observed(Observation::StoreRecovered(found));
        assert_eq!(granted(&found), Some(7));
    }
}

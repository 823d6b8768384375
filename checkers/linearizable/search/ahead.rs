//! What answers to come say of a configuration, where texts are appended.

use std::ops::Bound;

use super::super::configs::Config;
use super::super::pending;
use super::super::states::Id;
use super::super::{Does, NEVER};
use super::{DEAD, Search};

impl Search<'_> {
    /// Whether a state can be seen, or what is appended to it, by a completion from now on.
    pub(super) fn is_alive(&mut self, state: Id, now: u64) -> bool {
        if !self.appends {
            return true;
        }
        if state == DEAD {
            return false;
        }
        let until = match self.alive.get(&state) {
            Some(until) => *until,
            None => {
                let name = self.states.name(state);
                let longer = self
                    .answers
                    .range::<str, _>((Bound::Included(name), Bound::Unbounded));
                let seen = longer.take_while(|(answer, _)| answer.starts_with(name));
                let until = seen.map(|(_, complete)| *complete).max().unwrap_or(0);
                self.alive.insert(state, until);
                until
            }
        };
        until >= now
    }

    /// Whether what is seen next can still be explained; `except` took effect.
    pub(super) fn goes_on(&mut self, config: &Config, except: Option<usize>) -> bool {
        let mut upcoming = self.sees[self.at.seen..].iter().copied();
        let next = upcoming.find(|see| {
            let slot = self.at.pending.slot(*see);
            Some(*see) != except && !slot.is_some_and(|slot| pending::has(&config.taken, slot))
        });
        let Some(see) = next else { return true };
        let Does::See(seen) = self.operations[see].does else {
            return true;
        };
        if self
            .states
            .name(seen)
            .starts_with(self.states.name(config.state))
        {
            return true;
        }
        if !self.sources.contains_key(&see) {
            let sources = self.sources_of(see, seen);
            self.sources.insert(see, sources);
        }
        let sources = &self.sources[&see];
        let can_come = |set: &usize| self.can_come(config, *set, except);
        if sources.iter().any(can_come) {
            return true;
        }
        let later =
            |blamed: usize| self.operations[blamed].complete < self.operations[see].complete;
        if self.at.blamed.is_none_or(later) {
            self.at.blamed = Some(see);
        }
        false
    }

    /// The sets that can still take effect before this see ends, and that begin it.
    pub(super) fn sources_of(&self, see: usize, seen: Id) -> Vec<usize> {
        let seen = self.states.name(seen);
        let until = self.operations[see].complete;
        let under_way = self.at.pending.slots().map(|(_, slot)| slot.op);
        let later = (self.at.begun..self.operations.len())
            .take_while(|op| self.operations[*op].invoke < until);
        let lost = self.at.lost_sets.iter().copied();
        (lost.chain(under_way).chain(later))
            .filter(|op| match self.operations[*op].does {
                Does::Set(state) => seen.starts_with(self.states.name(state)),
                _ => false,
            })
            .collect()
    }

    pub(super) fn can_come(&self, config: &Config, set: usize, except: Option<usize>) -> bool {
        let operation = self.operations[set];
        if Some(set) == except {
            return false;
        }
        if set >= self.at.begun {
            return true;
        }
        if operation.complete == NEVER {
            let mut groups = self.at.pending.groups.iter().enumerate();
            return groups.any(|(at, group)| {
                group.does == operation.does && self.at.pending.is_left(&config.used, at, NEVER)
            });
        }
        let slot = self.at.pending.slot(set);
        slot.is_some_and(|slot| !pending::has(&config.taken, slot))
    }
}

//! What a register's configuration becomes until an operation that ends took effect.
//!
//! Whatever was under way when a state was last *set*, whatever was there, may have taken
//! effect in the *room* just before that, if it begins with a set of its own: no other
//! operation can tell. It needs no place before it ends, so of the ways to an operation
//! only these are tried:
//!
//! - *ahead*: from the state that is there, by swaps;
//! - *anew*: by one set after those, and by swaps from there. What could come between
//!   the swaps and that set, beginning with another set, has its room before that set;
//! - *before*: in the room before what was set last, by a set and swaps from there. Then
//!   other swaps may go on from the operation, still in the room (*after*).
//!
//! Of operations that do the same the one that ends first goes first, though only an older
//! one may have a place in the room. For say that the room has a set, then *A*, then the rest,
//! and ahead another *A* took effect. Then the first *A* can as well go ahead, followed by that
//! rest, by that set, and by the other *A*: that is a way anew.

use std::collections::{BTreeMap, VecDeque};

use super::super::configs::{Config, Configs};
use super::super::pending::{self, Counts, Slot};
use super::super::states::Id;
use super::super::{Does, NEVER, Operation};
use super::moves::Moves;
use super::{Search, TooMuch};

/// What took effect.
enum Used {
    Slot(usize),
    /// One of a group.
    OfGroup(usize),
}

/// Where a walk is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Leg {
    Ahead,
    Anew,
    Before,
    After,
}

/// Where a walk was, with what was used of the never answered: nothing more than needed.
#[derive(Default)]
struct Met {
    used: BTreeMap<(Leg, Id, Counts), Vec<Counts>>,
    count: usize,
}

impl Met {
    fn is_new(&mut self, leg: Leg, config: &Config) -> bool {
        let at = (leg, config.state, config.taken.clone());
        let others = self.used.entry(at).or_default();
        if others
            .iter()
            .any(|used| pending::no_more(used, &config.used))
        {
            return false;
        }
        others.push(config.used.clone());
        self.count += 1;
        true
    }
}

impl Search<'_> {
    /// Adds to `next` every configuration that `from` can become by the end of an operation
    /// that has not taken effect.
    pub(super) fn walks(
        &mut self,
        from: Config,
        op: usize,
        next: &mut Configs,
    ) -> Result<(), TooMuch> {
        let target = self.operations[op];
        let moves = self.moves(&from, op);
        let mut walked = vec![(Leg::Ahead, from.clone(), false)];
        if target.invoke < from.set {
            match target.does {
                Does::Set(state) => {
                    let mut after = from.clone();
                    after.state = state;
                    self.sees_before(&mut after, op, from.set);
                    walked.push((Leg::After, after, false));
                }
                _ => self.steps_on(&from, &moves, (Leg::Before, op), true, &mut walked),
            }
        }
        let mut met = Met::default();
        // What was never answered is kept for where nothing else will do.
        let mut queue = VecDeque::new();
        let mut dear: VecDeque<(Leg, Config)> = VecDeque::new();
        let mut found = None;
        let mut spent = 0;
        loop {
            for (leg, config, costs) in walked.drain(..) {
                if met.is_new(leg, &config) {
                    let queue = if costs { &mut dear } else { &mut queue };
                    queue.push_back((leg, config));
                }
            }
            if queue.is_empty() {
                std::mem::swap(&mut queue, &mut dear);
                spent += 1;
            }
            let Some((leg, config)) = queue.pop_front() else {
                break;
            };
            let enough = found.is_some_and(|found| spent > found + self.patience);
            if self.width != usize::MAX && (enough || met.count / 64 > self.width) {
                self.at.narrow = true;
                break;
            }
            self.counts(next, met.count)?;
            match leg {
                Leg::Ahead | Leg::Anew => {
                    if let Some(met) = &mut self.met {
                        met.insert(config.state);
                    }
                    if let Some(mut after) = self.after(&config, target) {
                        self.sees_at(&mut after, op);
                        next.add(after);
                        found.get_or_insert(spent);
                    }
                    if leg == Leg::Ahead && !matches!(target.does, Does::Set(_)) {
                        self.steps_on(&config, &moves, (Leg::Anew, op), true, &mut walked);
                    }
                }
                Leg::Before => {
                    if let Some(mut after) = self.after(&config, target) {
                        self.sees_before(&mut after, op, from.set);
                        walked.push((Leg::After, after, false));
                    }
                }
                Leg::After => {
                    next.add(Config {
                        state: from.state,
                        ..config.clone()
                    });
                    found.get_or_insert(spent);
                }
            }
            self.steps_on(&config, &moves, (leg, op), false, &mut walked);
        }
        Ok(())
    }

    /// What one set, or else one swap, under way makes of a configuration on that leg, and
    /// whether that was never answered.
    fn steps_on(
        &mut self,
        config: &Config,
        moves: &Moves,
        (leg, op): (Leg, usize),
        sets: bool,
        made: &mut Vec<(Leg, Config, bool)>,
    ) {
        let target = self.operations[op];
        let in_room = matches!(leg, Leg::Before | Leg::After);
        let begun_before = if in_room { config.set } else { NEVER };
        let fits = |does: Does| match does {
            // Where the place of the operation is open, it goes before others like it.
            _ if target.must && does == target.does && leg != Leg::After => false,
            Does::Set(state) => sets && moves.lead_on(state),
            Does::Swap(from, _) => !sets && from == config.state,
            Does::See(_) | Does::Append(_) => false,
        };
        let mut steps: Vec<(Operation, Used)> = Vec::new();
        for (slot, Slot { operation, .. }) in &moves.slots {
            let does = operation.does;
            let begun = operation.invoke < begun_before;
            if !fits(does) || !begun || pending::has(&config.taken, *slot) {
                continue;
            }
            let of_use = operation.must || does.leaves().is_some_and(|state| moves.wants(state));
            let sooner =
                |other: &Operation| other.does == does && other.complete <= operation.complete;
            if of_use && !steps.iter().any(|(other, _)| sooner(other)) {
                steps.push((*operation, Used::Slot(*slot)));
            }
        }
        for group in &moves.groups {
            let does = self.at.pending.groups[*group].does;
            let left = self.at.pending.is_left(&config.used, *group, begun_before);
            if fits(does) && left && !steps.iter().any(|(other, _)| other.does == does) {
                let operation = Operation {
                    does,
                    complete: NEVER,
                    ..target
                };
                steps.push((operation, Used::OfGroup(*group)));
            }
        }
        // What must take effect soon costs the least.
        steps.sort_by_key(|(operation, _)| operation.complete);
        for (operation, used) in steps {
            let mut after = config.clone();
            let costs = matches!(used, Used::OfGroup(_));
            match used {
                Used::Slot(slot) => pending::insert(&mut after.taken, slot),
                Used::OfGroup(_) if self.endless => {}
                Used::OfGroup(group) => pending::use_one(&mut after.used, group),
            }
            let Some(mut after) = self.after(&after, operation) else {
                continue;
            };
            if in_room {
                after.set = config.set;
                self.sees_before(&mut after, op, config.set);
            } else {
                self.sees_at(&mut after, op);
            }
            made.push((leg, after, costs));
        }
    }
}

//! Every order that matters, from left to right.
//!
//! After each completion the search holds all [`Configs`] in which the object may
//! stand: its state, and which of the operations still under way took effect. At the
//! next completion each configuration that lacks the completing operation is driven on
//! until it took effect. An operation never takes effect sooner than some completion
//! makes it, which loses nothing: what comes after the completing operation can as well
//! come at the next completion (just-in-time linearization, Lowe, "Testing for
//! linearizability"). What is over is forgotten, so memory and work grow with what is
//! concurrent and not with the length.
//!
//! What keeps the configurations few, each without loss:
//!
//! - *Alike*: operations that do the same are exchanged freely, so of those under way
//!   the one that ends first goes first, and those never answered go last. They are
//!   counted, not told apart: a hundred timed-out writes of 3 are one group.
//! - *Unseen*: a set directly followed by another one is seen by nobody. It is not
//!   placed when that happens: a configuration remembers when it was last set, and a set
//!   that completes and began before that may have been just before it; so may a text
//!   that was appended, and on a register whatever follows such a set ([`walk`]). So a set
//!   takes effect before its completion only where the operation that ends needs it.
//! - *Seen*: an operation that only sees takes effect as soon as its state is there.
//! - *Wanted*: what need not have happened takes effect only if what it leaves is found
//!   by an operation under way, at once or over others like it.
//! - *Covered*: of two configurations alike in state and in what took effect, one that used
//!   no more of the never answered, and was set no sooner, makes the other needless. So it
//!   does if more took effect there that only sees, or fewer sets that may be unseen.
//! - *Ahead*: where texts are appended, the next answer that is not explained yet must
//!   begin with the state, unless a set that can still come in between begins it.
//! - *Dead*: a text that no answer to come begins with is seen by nobody until the next
//!   set, so all such texts are one state. What would only lead there takes effect when
//!   it completes, or unseen before the next set.
//!
//! Where they are many all the same, as with operations that were never answered, most are
//! not needed to find *an* order. So a few are followed, those in which the least took
//! effect, and more of them only where those come to an end ([`follow`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use super::configs::{Config, Configs, Kinds};
use super::pending::{self, Pending, Slot};
use super::states::{Id, States};
use super::{Does, Limit, NEVER, Operation};
use crate::history::Name;

mod ahead;
mod follow;
mod moves;
#[cfg(test)]
mod tests;
mod walk;

/// Any text that no answer to come begins with.
const DEAD: Id = Id::MAX - 2;

/// How many configurations are followed from one completion to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Width {
    /// At most so many, as long as they are enough.
    pub few: usize,
    /// How many completions are between two places to which there is a way back.
    pub apart: usize,
}

/// All of them.
pub(crate) const ALL: Width = Width {
    few: usize::MAX,
    apart: 64,
};
/// As many as are enough nearly always.
pub(crate) const NARROW: Width = Width { few: 8, apart: 64 };
/// So many configurations are made of one before it is enough, where few are followed.
const ENOUGH: usize = 2;

/// What a search found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Some order explains everything.
    Order,
    /// None does.
    NoOrder(NoOrder),
    /// The limit was reached at this completion; everything before it has an order.
    TooMuch(TooMuch, u64),
}

/// The first completion that no order explains.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoOrder {
    /// Its operation's place.
    pub op: usize,
    /// The states that could have been there; empty where that was not asked.
    pub could: Vec<Id>,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooMuch {
    Steps,
    Bytes,
    Time,
}

/// Searches for an order of operations, given in the order of their invokes, from any of
/// these states on, with so many configurations at a time as long as those are enough.
/// Counts its work in `steps`; stops at the first completion past `until`, with an order
/// up to there.
pub(crate) fn search(
    operations: &[Operation],
    starts: &[Id],
    states: &mut States,
    limit: Limit<'_>,
    (until, width): (&AtomicU64, Width),
    steps: &mut u64,
) -> Found {
    let mut search = Search::of(operations, states, limit, steps);
    search.strange = search.strange(starts);
    let found = search.follows(starts, until, width);
    match (found, search.strange) {
        (Found::TooMuch(..), Some(op)) => Found::NoOrder(NoOrder {
            op,
            could: Vec::new(),
        }),
        (found, _) => found,
    }
}

struct Search<'a> {
    operations: &'a [Operation],
    states: &'a mut States,
    limit: Limit<'a>,
    steps: &'a mut u64,
    at: At,
    /// What is under way before the operation that ends.
    in_turn: Vec<(usize, Slot)>,
    appends: bool,
    /// By completion.
    completions: Vec<usize>,
    /// Where texts are appended: what was seen, by completion.
    sees: Vec<usize>,
    /// For each of them, the sets that it may be explained by.
    sources: BTreeMap<usize, Vec<usize>>,
    /// Each text that was seen, and when it was last.
    answers: BTreeMap<Name, u64>,
    /// Until when a state is of use: the last completion that saw what begins with it.
    alive: BTreeMap<Id, u64>,
    /// The states met, when they are asked for.
    met: Option<BTreeSet<Id>>,
    /// How many configurations are followed.
    width: usize,
    /// How much more of what was never answered may take effect at once than has to, where few
    /// configurations are followed.
    patience: usize,
    /// Whether what was never answered may take effect any number of times.
    endless: bool,
    /// The first operation that found what nobody had begun to set: it has no order, whatever
    /// came before.
    strange: Option<usize>,
}

/// Where a search is.
#[derive(Clone, Default)]
struct At {
    /// How many operations have ended.
    ended: usize,
    /// How many have begun.
    begun: usize,
    pending: Pending,
    /// Groups never answered, by the state that they leave.
    making: BTreeMap<Id, Vec<usize>>,
    /// Where texts are appended: sets that were never answered.
    lost_sets: Vec<usize>,
    /// How many of what is seen there is over.
    seen: usize,
    /// The last of those that ruled a state out.
    blamed: Option<usize>,
    /// Whether some configurations were left out.
    narrow: bool,
}

impl<'a> Search<'a> {
    fn of(
        operations: &'a [Operation],
        states: &'a mut States,
        limit: Limit<'a>,
        steps: &'a mut u64,
    ) -> Self {
        let appends = operations
            .iter()
            .any(|operation| matches!(operation.does, Does::Append(_)));
        let mut completions: Vec<usize> = (0..operations.len())
            .filter(|op| operations[*op].complete != NEVER)
            .collect();
        completions.sort_unstable_by_key(|op| operations[*op].complete);
        let sees = match appends {
            true => (completions.iter().copied())
                .filter(|op| matches!(operations[*op].does, Does::See(_)) && operations[*op].must)
                .collect(),
            false => Vec::new(),
        };
        let mut answers: BTreeMap<Name, u64> = BTreeMap::new();
        for see in &sees {
            if let Does::See(seen) = operations[*see].does {
                answers.insert(states.name(seen).into(), operations[*see].complete);
            }
        }
        Search {
            operations,
            states,
            limit,
            steps,
            at: At::default(),
            in_turn: Vec::new(),
            appends,
            completions,
            sees,
            sources: BTreeMap::new(),
            answers,
            alive: BTreeMap::new(),
            met: None,
            width: usize::MAX,
            patience: 0,
            endless: false,
            strange: None,
        }
    }

    /// The first operation that found what nobody had begun to set.
    fn strange(&self, starts: &[Id]) -> Option<usize> {
        if self.appends {
            return None;
        }
        let mut known: BTreeSet<Id> = starts.iter().copied().collect();
        let mut begun = self.operations.iter().peekable();
        (self.completions.iter().copied()).find(|op| {
            let Operation {
                complete,
                must,
                does,
                ..
            } = self.operations[*op];
            while let Some(other) = begun.next_if(|other| other.invoke < complete) {
                known.extend(other.does.leaves());
            }
            must && does.finds().is_some_and(|state| !known.contains(&state))
        })
    }

    /// The next operation ends: every configuration in which the object may stand then.
    fn ends_one(
        &mut self,
        configs: &Configs,
        (slot, op): (usize, usize),
    ) -> Result<Configs, TooMuch> {
        let mut next = Configs::of(Kinds::of(&self.at.pending));
        self.in_turn = self.in_turn();
        for mut config in configs.each() {
            config.set = self.at.pending.as_good_as(config.set);
            self.drives(config, (slot, op), &mut next)?;
        }
        Ok(next)
    }
    fn begins_before(&mut self, now: u64) {
        while let Some(operation) = self.operations.get(self.at.begun)
            && operation.invoke < now
        {
            let idle = !operation.must && matches!(operation.does, Does::See(_));
            if !idle {
                let groups = self.at.pending.groups.len();
                self.at.pending.begins(self.at.begun, *operation);
                let lost = operation.complete == NEVER;
                if lost && self.appends && matches!(operation.does, Does::Set(_)) {
                    self.at.lost_sets.push(self.at.begun);
                }
                if self.at.pending.groups.len() > groups
                    && let Some(state) = operation.does.leaves()
                {
                    self.at.making.entry(state).or_default().push(groups);
                }
            }
            self.at.begun += 1;
        }
    }

    fn ends(&mut self, op: usize) {
        self.at.pending.ends(op);
        if self.sees.get(self.at.seen) == Some(&op) {
            self.at.seen += 1;
            self.sources.remove(&op);
        }
    }

    /// Adds to `next` every configuration that `from` can become by the end of the
    /// operation in this slot.
    fn drives(
        &mut self,
        mut from: Config,
        (slot, op): (usize, usize),
        next: &mut Configs,
    ) -> Result<(), TooMuch> {
        if pending::has(&from.taken, slot) {
            pending::remove(&mut from.taken, slot);
            next.add(from);
            return Ok(());
        }
        self.sees_at(&mut from, op);
        if self.appends {
            return self.appends_on(from, op, next);
        }
        if !self.operations[op].must {
            next.add(from.clone());
        }
        self.walks(from, op, next)
    }

    /// Where texts are appended: adds to `next` every configuration that `from` can become by
    /// the end of an operation that has not taken effect.
    fn appends_on(&mut self, from: Config, op: usize, next: &mut Configs) -> Result<(), TooMuch> {
        let target = self.operations[op];
        let hidden = matches!(target.does, Does::Set(_) | Does::Append(_));
        let unseen = hidden && from.set > target.invoke;
        if (unseen || !target.must) && self.goes_on(&from, Some(op)) {
            next.add(from.clone());
        }
        let moves = self.moves(&from, op);
        let mut visited = BTreeSet::from([from.clone()]);
        let mut queue = VecDeque::from([from]);
        let mut made = 0;
        while let Some(config) = queue.pop_front() {
            if self.width != usize::MAX && (made == ENOUGH || visited.len() / 8 > self.width) {
                self.at.narrow = true;
                break;
            }
            self.counts(next, visited.len())?;
            if !self.goes_on(&config, None) {
                continue;
            }
            if let Some(met) = &mut self.met {
                met.insert(config.state);
            }
            if let Some(mut after) = self.after(&config, target) {
                if !self.is_alive(after.state, target.complete) {
                    after.state = DEAD;
                }
                self.sees_at(&mut after, op);
                if self.goes_on(&after, Some(op)) {
                    next.add(after);
                    made += 1;
                }
            }
            for mut after in self.moved(&config, &moves, op) {
                *self.steps += 1;
                self.sees_at(&mut after, op);
                if visited.insert(after.clone()) {
                    queue.push_back(after);
                }
            }
        }
        Ok(())
    }

    /// One more configuration is looked at, if the limit allows.
    fn counts(&mut self, next: &Configs, visited: usize) -> Result<(), TooMuch> {
        *self.steps += 1;
        if *self.steps > self.limit.steps {
            return Err(TooMuch::Steps);
        }
        if self.limit.stop.load(Ordering::Relaxed) {
            return Err(TooMuch::Time);
        }
        let groups = 64 * self.at.pending.groups.len() as u64;
        let held = next.bytes() + 96 * visited as u64 + groups + self.states.bytes();
        if held > self.limit.bytes {
            return Err(TooMuch::Bytes);
        }
        Ok(())
    }

    /// Where it went wrong, and what could have been there.
    fn culprit(&mut self, configs: &Configs, (slot, op): (usize, usize)) -> NoOrder {
        let later =
            |blamed: &usize| self.operations[*blamed].complete > self.operations[op].complete;
        if let Some(blamed) = self.at.blamed.filter(later) {
            let could = Vec::new();
            return NoOrder { op: blamed, could };
        }
        self.met = Some(BTreeSet::new());
        self.limit.steps = self.limit.steps.saturating_mul(2);
        for config in configs.each() {
            // It went through before, with half the limit.
            if self
                .drives(config, (slot, op), &mut Configs::default())
                .is_err()
            {
                self.met = None;
                break;
            }
        }
        let could = self.met.take().into_iter().flatten().collect();
        NoOrder { op, could }
    }
}

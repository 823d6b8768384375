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
//!   that was appended. So a set takes effect before its completion only where something
//!   finds what it sets.
//! - *Seen*: an operation that only sees takes effect as soon as its state is there.
//! - *Wanted*: what need not have happened takes effect only if what it leaves is found
//!   by an operation under way, at once or over others like it.
//! - *Covered*: of two configurations alike in state and operations under way, one that
//!   used no more of the never answered, and was set no sooner, makes the other needless.
//! - *Ahead*: where texts are appended, the next answer that is not explained yet must
//!   begin with the state, unless a set that can still come in between begins it.
//! - *Dead*: a text that no answer to come begins with is seen by nobody until the next
//!   set, so all such texts are one state. What would only lead there takes effect when
//!   it completes, or unseen before the next set.
//!
//! Where they are many all the same, as with thirty clients that all use `cas`, most are
//! not needed to find *an* order. So a few are followed first, those in which the least
//! took effect ([`NARROW_FIRST`]): if they reach the end, there is an order. If none of
//! them does, that proves nothing, and more are followed, in the end all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use super::configs::{Config, Configs};
use super::pending::{self, Pending, Slot};
use super::states::{Id, States};
use super::{Does, Limit, NEVER, Operation};
use crate::history::Name;

/// Any text that no answer to come begins with.
const DEAD: Id = Id::MAX - 2;

/// How many configurations are followed from one completion to the next: all.
pub(crate) const ALL: [usize; 1] = [usize::MAX];
/// First few of them, then more, then all.
pub(crate) const NARROW_FIRST: [usize; 3] = [8, 256, usize::MAX];
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
/// these states on, with so many configurations at a time until one number of them is
/// enough. Counts its work in `steps`; stops at the first completion past `until`, with an
/// order up to there.
pub(crate) fn search(
    operations: &[Operation],
    starts: &[Id],
    states: &mut States,
    limit: Limit<'_>,
    (until, widths): (&AtomicU64, &[usize]),
    steps: &mut u64,
) -> Found {
    let mut furthest = 0;
    let mut found = Found::Order;
    for width in widths {
        let narrow;
        (found, narrow) = followed(operations, starts, states, limit, (until, *width), steps);
        match &mut found {
            Found::NoOrder(NoOrder { op, .. }) if narrow => {
                furthest = furthest.max(operations[*op].complete);
            }
            Found::TooMuch(_, before) => {
                *before = furthest.max(*before);
                break;
            }
            Found::Order | Found::NoOrder(_) => break,
        }
    }
    found
}

/// One search, with at most so many configurations at a time; whether any was left out.
fn followed(
    operations: &[Operation],
    starts: &[Id],
    states: &mut States,
    limit: Limit<'_>,
    (until, width): (&AtomicU64, usize),
    steps: &mut u64,
) -> (Found, bool) {
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
    let mut configs = Configs::default();
    for start in starts {
        configs.add(Config::start(*start));
    }
    let mut search = Search {
        operations,
        states,
        limit,
        steps,
        begun: 0,
        pending: Pending::default(),
        making: BTreeMap::new(),
        appending: Vec::new(),
        appends,
        lost_sets: Vec::new(),
        sees,
        seen: 0,
        sources: BTreeMap::new(),
        answers,
        alive: BTreeMap::new(),
        blamed: None,
        met: None,
        width,
        narrow: false,
    };
    for op in completions {
        let now = operations[op].complete;
        if now > until.load(Ordering::Relaxed) {
            break;
        }
        search.begins_before(now);
        let Some(slot) = search.pending.slot(op) else {
            continue;
        };
        let mut next = Configs::default();
        for config in configs.each() {
            if let Err(limit) = search.drives(config, (slot, op), &mut next) {
                return (Found::TooMuch(limit, now), search.narrow);
            }
        }
        if next.is_empty() {
            let narrow = search.narrow;
            let no_order = match narrow {
                true => NoOrder { op, could: Vec::new() },
                false => search.culprit(&configs, (slot, op)),
            };
            return (Found::NoOrder(no_order), narrow);
        }
        search.narrow |= next.narrows(width);
        configs = next;
        search.ends(op);
    }
    (Found::Order, search.narrow)
}

struct Search<'a> {
    operations: &'a [Operation],
    states: &'a mut States,
    limit: Limit<'a>,
    steps: &'a mut u64,
    /// How many operations have begun.
    begun: usize,
    pending: Pending,
    /// Groups never answered, by the state that they leave.
    making: BTreeMap<Id, Vec<usize>>,
    /// Those that append.
    appending: Vec<usize>,
    appends: bool,
    /// Sets that were never answered.
    lost_sets: Vec<usize>,
    /// Where texts are appended: what was seen, by completion.
    sees: Vec<usize>,
    /// How many of those are over.
    seen: usize,
    /// For each of them, the sets that it may be explained by.
    sources: BTreeMap<usize, Vec<usize>>,
    /// Each text that was seen, and when it was last.
    answers: BTreeMap<Name, u64>,
    /// Until when a state is of use: the last completion that saw what begins with it.
    alive: BTreeMap<Id, u64>,
    /// The last of them that ruled a state out.
    blamed: Option<usize>,
    /// The states met, when they are asked for.
    met: Option<BTreeSet<Id>>,
    /// How many configurations are followed.
    width: usize,
    /// Whether some were left out.
    narrow: bool,
}

/// What may be moved in one closure: of those that do the same, the sure ones first, and
/// those that end first before others.
struct Moves {
    slots: Vec<(usize, Slot)>,
    groups: Vec<usize>,
    /// What some operation under way finds; none if all is of use.
    wanted: Option<BTreeSet<Id>>,
}

impl Search<'_> {
    fn begins_before(&mut self, now: u64) {
        while let Some(operation) = self.operations.get(self.begun)
            && operation.invoke < now
        {
            let idle = !operation.must && matches!(operation.does, Does::See(_));
            if !idle {
                let groups = self.pending.groups.len();
                self.pending.begins(self.begun, *operation);
                if operation.complete == NEVER && matches!(operation.does, Does::Set(_)) {
                    self.lost_sets.push(self.begun);
                }
                if self.pending.groups.len() > groups {
                    match operation.does.leaves() {
                        Some(state) => self.making.entry(state).or_default().push(groups),
                        None => self.appending.push(groups),
                    }
                }
            }
            self.begun += 1;
        }
    }

    fn ends(&mut self, op: usize) {
        self.pending.ends(op);
        if self.sees.get(self.seen) == Some(&op) {
            self.seen += 1;
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
        let target = self.operations[op];
        self.sees_at(&mut from, op);
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
                self.narrow = true;
                break;
            }
            *self.steps += 1;
            if *self.steps > self.limit.steps {
                return Err(TooMuch::Steps);
            }
            if self.limit.stop.load(Ordering::Relaxed) {
                return Err(TooMuch::Time);
            }
            let groups = 64 * self.pending.groups.len() as u64;
            let held = next.bytes() + 96 * visited.len() as u64 + groups + self.states.bytes();
            if held > self.limit.bytes {
                return Err(TooMuch::Bytes);
            }
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

    /// Every configuration that one operation under way makes of this one, where that
    /// can be of use.
    fn moved(&mut self, config: &Config, moves: &Moves, op: usize) -> Vec<Config> {
        let (target, now) = (self.operations[op], self.now());
        let wanted = |state: Id| {
            let wanted = moves.wanted.as_ref();
            wanted.is_none_or(|wanted| wanted.contains(&state))
        };
        // To set again what was set just now hides nothing more.
        let again = |does| does == Does::Set(config.state) && config.set == now;
        let mut made = Vec::new();
        // What was not taken of those alike that surely happened, soonest end first.
        let mut sure: Option<(Does, u64)> = None;
        let mut tried: Option<(Does, bool)> = None;
        for (slot, Slot { operation, .. }) in &moves.slots {
            let (does, must) = (operation.does, operation.must);
            let alike = target.must && does == target.does;
            if alike || pending::has(&config.taken, *slot) || tried == Some((does, must)) {
                continue;
            }
            tried = Some((does, must));
            if must {
                sure = Some((does, operation.complete));
            } else if sure.is_some_and(|(other, end)| other == does && end <= operation.complete) {
                continue;
            }
            let useful = match does {
                Does::See(_) => false,
                Does::Set(_) if !must && again(does) => false,
                Does::Set(state) => wanted(state),
                Does::Swap(_, state) => must || wanted(state),
                Does::Append(_) => true,
            };
            if useful
                && let Some(mut after) = self.after(config, *operation)
                && self.is_alive(after.state, target.complete)
            {
                pending::insert(&mut after.taken, *slot);
                made.push((operation.complete, after));
            }
        }
        for group in &moves.groups {
            let (does, asked) = self.pending.groups[*group];
            let sooner = |(slot, other): &(usize, Slot)| {
                let other = other.operation;
                other.must && other.does == does && !pending::has(&config.taken, *slot)
            };
            let idle = again(does)
                || pending::used(&config.used, *group) >= asked
                || (target.must && does == target.does)
                || moves.slots.iter().any(sooner);
            let operation = Operation {
                does,
                complete: NEVER,
                ..target
            };
            if !idle
                && let Some(mut after) = self.after(config, operation)
                && self.is_alive(after.state, target.complete)
            {
                pending::use_one(&mut after.used, *group);
                made.push((NEVER, after));
            }
        }
        // What must take effect soon costs the least.
        made.sort_by_key(|(complete, _)| *complete);
        made.into_iter().map(|(_, after)| after).collect()
    }

    /// What becomes of the configuration if this operation takes effect now.
    fn after(&mut self, config: &Config, operation: Operation) -> Option<Config> {
        let mut after = config.clone();
        match operation.does {
            Does::See(state) if state == config.state => {}
            Does::Swap(from, to) if from == config.state => after.state = to,
            Does::See(_) | Does::Swap(..) => return None,
            Does::Set(state) => {
                after.state = state;
                after.set = self.now();
            }
            Does::Append(_) if config.state == DEAD => {}
            Does::Append(text) => after.state = self.states.append(config.state, text),
        }
        Some(after)
    }

    /// An index after all that has begun, and before all that begins.
    fn now(&self) -> u64 {
        let last = self
            .begun
            .checked_sub(1)
            .map(|op| self.operations[op].invoke);
        last.map_or(0, |invoke| invoke + 1)
    }

    /// What sees the state that is there takes effect.
    fn sees_at(&self, config: &mut Config, except: usize) {
        for (slot, Slot { op, operation }) in self.pending.slots() {
            if op != except && operation.does == Does::See(config.state) {
                pending::insert(&mut config.taken, slot);
            }
        }
    }

    fn moves(&self, from: &Config, op: usize) -> Moves {
        let not_taken =
            |(slot, other): &(usize, Slot)| other.op != op && !pending::has(&from.taken, *slot);
        let mut slots: Vec<(usize, Slot)> = self.pending.slots().filter(not_taken).collect();
        slots.sort_unstable_by_key(|(_, Slot { operation, .. })| {
            (operation.does, !operation.must, operation.complete)
        });
        if self.appends {
            let groups = (0..self.pending.groups.len()).collect();
            return Moves {
                slots,
                groups,
                wanted: None,
            };
        }
        let found = slots.iter().map(|(_, slot)| slot.operation.does);
        let found = found.chain([self.operations[op].does]);
        let mut wanted: BTreeSet<Id> = found.filter_map(Does::finds).collect();
        let mut next: Vec<Id> = wanted.iter().copied().collect();
        let mut groups = Vec::new();
        while let Some(state) = next.pop() {
            for group in self.making.get(&state).into_iter().flatten() {
                groups.push(*group);
                let finds = self.pending.groups[*group].0.finds();
                next.extend(finds.filter(|state| wanted.insert(*state)));
            }
        }
        groups.sort_unstable();
        Moves {
            slots,
            groups,
            wanted: Some(wanted),
        }
    }

    /// Whether a state can be seen, or what is appended to it, by a completion from now on.
    fn is_alive(&mut self, state: Id, now: u64) -> bool {
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
    fn goes_on(&mut self, config: &Config, except: Option<usize>) -> bool {
        let mut upcoming = self.sees[self.seen..].iter().copied();
        let next = upcoming.find(|see| {
            let slot = self.pending.slot(*see);
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
        if self.blamed.is_none_or(later) {
            self.blamed = Some(see);
        }
        false
    }

    /// The sets that can still take effect before this see ends, and that begin it.
    fn sources_of(&self, see: usize, seen: Id) -> Vec<usize> {
        let seen = self.states.name(seen);
        let until = self.operations[see].complete;
        let under_way = self.pending.slots().map(|(_, slot)| slot.op);
        let later = (self.begun..self.operations.len())
            .take_while(|op| self.operations[*op].invoke < until);
        let lost = self.lost_sets.iter().copied();
        (lost.chain(under_way).chain(later))
            .filter(|op| match self.operations[*op].does {
                Does::Set(state) => seen.starts_with(self.states.name(state)),
                _ => false,
            })
            .collect()
    }

    fn can_come(&self, config: &Config, set: usize, except: Option<usize>) -> bool {
        let operation = self.operations[set];
        if Some(set) == except {
            return false;
        }
        if set >= self.begun {
            return true;
        }
        if operation.complete == NEVER {
            let mut groups = self.pending.groups.iter().enumerate();
            return groups.any(|(at, (does, asked))| {
                *does == operation.does && pending::used(&config.used, at) < *asked
            });
        }
        let slot = self.pending.slot(set);
        slot.is_some_and(|slot| !pending::has(&config.taken, slot))
    }

    /// Where it went wrong, and what could have been there.
    fn culprit(&mut self, configs: &Configs, (slot, op): (usize, usize)) -> NoOrder {
        let later =
            |blamed: &usize| self.operations[*blamed].complete > self.operations[op].complete;
        if let Some(blamed) = self.blamed.filter(later) {
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

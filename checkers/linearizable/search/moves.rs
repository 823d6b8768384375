//! What operations under way make of a configuration.

use super::super::configs::Config;
use super::super::pending::{self, Slot};
use super::super::states::Id;
use super::super::{Does, NEVER, Operation};
use super::{DEAD, Search};

/// What may be moved in one closure, in its turn.
pub(super) struct Moves {
    pub slots: Vec<(usize, Slot)>,
    pub groups: Vec<usize>,
    /// What some operation under way finds.
    wanted: Vec<Id>,
    /// From where the operation that ends, or a swap, goes on.
    leads: Vec<Id>,
}

impl Moves {
    /// Whether some operation under way finds this state.
    pub fn wants(&self, state: Id) -> bool {
        self.wanted.contains(&state)
    }

    /// Whether the operation that ends, or a swap, goes on from this state.
    pub fn lead_on(&self, state: Id) -> bool {
        self.leads.contains(&state)
    }
}

impl Search<'_> {
    /// Where texts are appended: every configuration that one operation under way makes of
    /// this one, where that can be of use.
    pub(super) fn moved(&mut self, config: &Config, moves: &Moves, op: usize) -> Vec<Config> {
        let (target, now) = (self.operations[op], self.now());
        // To set again what was set just now hides nothing more.
        let again = |does| does == Does::Set(config.state) && config.set == now;
        let mut made = Vec::new();
        let mut tried: Vec<Operation> = Vec::new();
        for (slot, Slot { operation, .. }) in &moves.slots {
            let (does, must) = (operation.does, operation.must);
            let alike = target.must && does == target.does;
            let idle = matches!(does, Does::See(_)) || (!must && again(does));
            if alike || idle || pending::has(&config.taken, *slot) {
                continue;
            }
            // Of those alike the one that ends first goes first; but what was appended before
            // the last set may have been unseen, and so is kept where another will do.
            let needless = |other: &Operation| {
                let set = matches!(does, Does::Set(_));
                let no_less = set || other.invoke >= config.set || operation.invoke < config.set;
                other.does == does && other.complete <= operation.complete && no_less
            };
            if tried.iter().any(needless) {
                continue;
            }
            tried.push(*operation);
            if let Some(mut after) = self.after(config, *operation)
                && self.is_alive(after.state, target.complete)
            {
                pending::insert(&mut after.taken, *slot);
                made.push((operation.complete, after));
            }
        }
        for group in &moves.groups {
            let does = self.at.pending.groups[*group].does;
            let sooner = |(slot, other): &(usize, Slot)| {
                let other = other.operation;
                other.must && other.does == does && !pending::has(&config.taken, *slot)
            };
            let idle = again(does)
                || !self.at.pending.is_left(&config.used, *group, NEVER)
                || (target.must && does == target.does)
                || moves.slots.iter().any(sooner);
            let operation = Operation {
                does,
                complete: NEVER,
                ..target
            };
            let mut after = config.clone();
            pending::use_one(&mut after.used, *group);
            if !idle
                && let Some(after) = self.after(&after, operation)
                && self.is_alive(after.state, target.complete)
            {
                made.push((NEVER, after));
            }
        }
        // What must take effect soon costs the least.
        made.sort_by_key(|(complete, _)| *complete);
        made.into_iter().map(|(_, after)| after).collect()
    }

    /// What becomes of the configuration if this operation takes effect now.
    pub(super) fn after(&mut self, config: &Config, operation: Operation) -> Option<Config> {
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
    pub(super) fn now(&self) -> u64 {
        let last = self
            .at
            .begun
            .checked_sub(1)
            .map(|op| self.operations[op].invoke);
        last.map_or(0, |invoke| invoke + 1)
    }

    /// What sees the state that is there takes effect.
    pub(super) fn sees_at(&self, config: &mut Config, except: usize) {
        for (slot, Slot { op, operation }) in self.at.pending.slots() {
            if op != except && operation.does == Does::See(config.state) {
                pending::insert(&mut config.taken, slot);
            }
        }
    }

    /// The same in the room before the last set.
    pub(super) fn sees_before(&self, config: &mut Config, except: usize, set: u64) {
        for (slot, Slot { op, operation }) in self.at.pending.slots() {
            let sees = operation.does == Does::See(config.state) && operation.invoke < set;
            if sees && op != except {
                pending::insert(&mut config.taken, slot);
            }
        }
    }

    /// What is under way, in the order in which it takes effect of those that do the same: the
    /// sure ones first, and those that end first before others.
    pub(super) fn in_turn(&self) -> Vec<(usize, Slot)> {
        let mut slots: Vec<(usize, Slot)> = self.at.pending.slots().collect();
        slots.sort_unstable_by_key(|(_, Slot { operation, .. })| {
            (operation.does, !operation.must, operation.complete)
        });
        slots
    }

    pub(super) fn moves(&self, from: &Config, op: usize) -> Moves {
        let not_taken =
            |(slot, other): &(usize, Slot)| other.op != op && !pending::has(&from.taken, *slot);
        let slots: Vec<(usize, Slot)> = self.in_turn.iter().copied().filter(not_taken).collect();
        if self.appends {
            let groups = (0..self.at.pending.groups.len()).collect();
            return Moves {
                slots,
                groups,
                wanted: Vec::new(),
                leads: Vec::new(),
            };
        }
        let target = self.operations[op].does;
        let mut wanted: Vec<Id> = Vec::new();
        let mut groups = Vec::new();
        let finds = slots.iter().map(|(_, slot)| slot.operation.does.finds());
        for state in finds.chain([target.finds()]).flatten() {
            if !wanted.contains(&state) {
                wanted.push(state);
            }
        }
        let mut at = 0;
        while let Some(state) = wanted.get(at) {
            at += 1;
            for group in self.at.making.get(state).into_iter().flatten() {
                groups.push(*group);
                let finds = self.at.pending.groups[*group].does.finds();
                wanted.extend(finds.filter(|state| !wanted.contains(state)));
            }
        }
        groups.sort_unstable();
        let swaps = (slots.iter().map(|(_, slot)| slot.operation.does))
            .chain(
                groups
                    .iter()
                    .map(|group| self.at.pending.groups[*group].does),
            )
            .filter(|does| matches!(does, Does::Swap(..)));
        let leads = swaps.chain([target]).filter_map(Does::finds).collect();
        Moves {
            slots,
            groups,
            wanted,
            leads,
        }
    }
}

//! What operations under way make of a configuration.

use std::collections::BTreeSet;

use super::super::configs::Config;
use super::super::pending::{self, Slot};
use super::super::states::Id;
use super::super::{Does, NEVER, Operation};
use super::{DEAD, Search};

/// What may be moved in one closure: of those that do the same, the sure ones first, and
/// those that end first before others.
pub(super) struct Moves {
    slots: Vec<(usize, Slot)>,
    groups: Vec<usize>,
    /// What some operation under way finds; none if all is of use.
    wanted: Option<BTreeSet<Id>>,
}

impl Search<'_> {
    /// Every configuration that one operation under way makes of this one, where that
    /// can be of use.
    pub(super) fn moved(&mut self, config: &Config, moves: &Moves, op: usize) -> Vec<Config> {
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
            .begun
            .checked_sub(1)
            .map(|op| self.operations[op].invoke);
        last.map_or(0, |invoke| invoke + 1)
    }

    /// What sees the state that is there takes effect.
    pub(super) fn sees_at(&self, config: &mut Config, except: usize) {
        for (slot, Slot { op, operation }) in self.pending.slots() {
            if op != except && operation.does == Does::See(config.state) {
                pending::insert(&mut config.taken, slot);
            }
        }
    }

    pub(super) fn moves(&self, from: &Config, op: usize) -> Moves {
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
}

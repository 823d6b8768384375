//! The operations that may take effect now: those with an end have a slot each, those
//! that were never answered are counted by what they do.

use std::collections::BTreeMap;

use super::{Does, NEVER, Operation};

/// A set of slots, or a count for each group; zeros at its end are left out, so that
/// equal ones compare equal.
pub(super) type Counts = Vec<u32>;

/// One of the operations that may take effect now.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub op: usize,
    pub operation: Operation,
}

/// What may take effect now.
#[derive(Default)]
pub(super) struct Pending {
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    by_op: BTreeMap<usize, usize>,
    /// What was never answered: what it does, and how often it was asked for.
    pub groups: Vec<(Does, u32)>,
    of: BTreeMap<Does, usize>,
}

impl Pending {
    pub fn begins(&mut self, op: usize, operation: Operation) {
        if operation.complete == NEVER {
            let next = self.groups.len();
            let at = *self.of.entry(operation.does).or_insert(next);
            match self.groups.get_mut(at) {
                Some(group) => group.1 += 1,
                None => self.groups.push((operation.does, 1)),
            }
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(Slot { op, operation });
        self.by_op.insert(op, slot);
    }

    /// Its time is over; the slot that it had.
    pub fn ends(&mut self, op: usize) -> Option<usize> {
        let slot = self.by_op.remove(&op)?;
        self.slots[slot] = None;
        self.free.push(slot);
        Some(slot)
    }

    /// The slot of an operation, while it may take effect.
    pub fn slot(&self, op: usize) -> Option<usize> {
        self.by_op.get(&op).copied()
    }

    /// Those with an end, by slot.
    pub fn slots(&self) -> impl Iterator<Item = (usize, Slot)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(at, slot)| Some((at, (*slot)?)))
    }
}

/// Whether the slot is in the set.
pub(super) fn has(set: &Counts, slot: usize) -> bool {
    set.get(slot / 32)
        .is_some_and(|word| word >> (slot % 32) & 1 == 1)
}

pub(super) fn insert(set: &mut Counts, slot: usize) {
    if set.len() <= slot / 32 {
        set.resize(slot / 32 + 1, 0);
    }
    set[slot / 32] |= 1 << (slot % 32);
}

pub(super) fn remove(set: &mut Counts, slot: usize) {
    if let Some(word) = set.get_mut(slot / 32) {
        *word &= !(1 << (slot % 32));
    }
    while set.last() == Some(&0) {
        set.pop();
    }
}

/// How many of a group are used.
pub(super) fn used(counts: &Counts, group: usize) -> u32 {
    counts.get(group).copied().unwrap_or(0)
}

pub(super) fn use_one(counts: &mut Counts, group: usize) {
    if counts.len() <= group {
        counts.resize(group + 1, 0);
    }
    counts[group] += 1;
}

/// Whether the first uses no more of any group than the second.
pub(super) fn no_more(first: &Counts, second: &Counts) -> bool {
    first.len() <= second.len() && first.iter().zip(second).all(|(one, other)| one <= other)
}

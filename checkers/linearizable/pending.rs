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

/// What was never answered, and does the same.
#[derive(Clone)]
pub(super) struct Group {
    pub does: Does,
    /// When it was asked for, each time.
    asked: Vec<u64>,
}

/// What may take effect now.
#[derive(Clone, Default)]
pub(super) struct Pending {
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    by_op: BTreeMap<usize, usize>,
    pub groups: Vec<Group>,
    of: BTreeMap<Does, usize>,
    /// When any was asked for that was never answered.
    lost: Vec<u64>,
}

impl Pending {
    pub fn begins(&mut self, op: usize, operation: Operation) {
        if operation.complete == NEVER {
            let next = self.groups.len();
            let at = *self.of.entry(operation.does).or_insert(next);
            if at == next {
                self.groups.push(Group {
                    does: operation.does,
                    asked: Vec::new(),
                });
            }
            self.groups[at].asked.push(operation.invoke);
            self.lost.push(operation.invoke);
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

    /// The lowest index before which the same began as before this one.
    pub fn as_good_as(&self, index: u64) -> u64 {
        let lost = self.lost.partition_point(|asked| *asked < index);
        let lost = lost.checked_sub(1).map(|last| self.lost[last]);
        let invokes = self
            .slots
            .iter()
            .flatten()
            .map(|slot| slot.operation.invoke);
        let last = invokes.filter(|invoke| *invoke < index).chain(lost).max();
        last.map_or(0, |last| last + 1)
    }

    /// Whether one of the group is left that began before this index.
    pub fn is_left(&self, used: &Counts, group: usize, before: u64) -> bool {
        let Group { asked, .. } = &self.groups[group];
        used_of(used, group) < count(asked.partition_point(|asked| *asked < before))
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
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
    trim(set);
}

/// Those in the set of which the other has none.
pub(super) fn without<'a>(set: &'a Counts, other: &'a Counts) -> impl Iterator<Item = usize> + 'a {
    set.iter().enumerate().flat_map(|(at, word)| {
        let mut left = word & !other.get(at).copied().unwrap_or(0);
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (bit < 32).then_some(32 * at + bit)
        })
    })
}

/// Those in both.
pub(super) fn both(set: &Counts, other: &Counts) -> Counts {
    let mut both = set.iter().zip(other).map(|(one, two)| one & two).collect();
    trim(&mut both);
    both
}

fn trim(counts: &mut Counts) {
    while counts.last() == Some(&0) {
        counts.pop();
    }
}

/// How many of a group are used.
fn used_of(counts: &Counts, group: usize) -> u32 {
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

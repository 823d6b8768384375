//! A lock without owners, by counting: `acquire` when it is free, `release` when it is
//! held, whoever does it.
//!
//! The order of such a lock is acquire, release, acquire, release, …, so all that
//! there is to choose is when its points are, and which operation each belongs to. The
//! rule is lazy: a point is made only when a completion needs one.
//!
//! - An operation that completes *claims* the first unclaimed point of its kind that was
//!   made after its invoke.
//! - If there is none, a point is made now; where the lock is in the wrong state, one of
//!   the other kind is made just before, *on credit*, to be claimed later by an
//!   operation of that kind which is under way or was never answered. If all of those
//!   are taken up by credit, there is no order.
//!
//! This is exact:
//!
//! - *No order has fewer points at any time.* Say a completion at t makes its point, and
//!   by then k points of its kind were made. Let s be the invoke of the operation, and,
//!   as long as a point at or after s was claimed by one whose invoke is before s, that
//!   invoke instead. As the first point is claimed, all that were made since s are
//!   claimed, and by operations that lie within s and t. Together with the new one they
//!   need one point more since s than were made since s; and before s an order has no
//!   fewer than were made. So any order has at least k + 1 by t. Points alternate, so it
//!   has as many of the other kind as are made on credit.
//! - *Claiming the first loses nothing*: whoever could claim it can claim a later one.
//! - *Credit is good* as long as, for each point p on credit, no more points up to p are
//!   unclaimed than operations that began before p can still claim. That is Hall's
//!   condition; claims keep it. Making credit checks it for the newest point, and an
//!   operation that turns out to have failed for those since its invoke. Where it does
//!   not hold no order has enough operations for its points, which are no fewer.
//!
//! Memory: what began since the oldest operation that may still complete; what was
//! never answered before that is a number.

use std::collections::BTreeSet;

/// What an operation on a lock does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Acquire,
    Release,
}

/// No order explains what has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoOrder;

/// The operations of one kind.
#[derive(Default)]
struct Side {
    /// Invokes of those that may still complete.
    live: BTreeSet<u64>,
    /// Invokes of those never answered, since the oldest of `live`.
    open: BTreeSet<u64>,
    /// How many were never answered before.
    old: usize,
    /// Points not claimed, by when they were made.
    credit: BTreeSet<u64>,
}

impl Side {
    /// What no completion can claim any more is settled.
    fn settle(&mut self) {
        let oldest = self.live.first().copied().unwrap_or(u64::MAX);
        let later = self.open.split_off(&oldest);
        let mut open = std::mem::replace(&mut self.open, later);
        while let Some(point) = self.credit.first().copied().filter(|point| *point < oldest) {
            self.credit.remove(&point);
            // All that began before it can claim it, and only what was never answered.
            match self.old.checked_sub(1) {
                Some(old) => self.old = old,
                None => drop(open.pop_first()),
            }
        }
        self.old += open.len();
    }

    /// One more point on credit, if an operation is left for it.
    fn lends(&mut self, now: u64) -> Result<(), NoOrder> {
        if self.credit.len() == self.live.len() + self.open.len() + self.old {
            return Err(NoOrder);
        }
        self.credit.insert(now);
        Ok(())
    }

    /// Whether each point since then finds an operation.
    fn is_covered(&self, since: u64) -> bool {
        let mut points = self.credit.range(..since).count();
        let (mut live, mut open) = (self.live.iter().peekable(), self.open.iter().peekable());
        let mut begun = self.old;
        self.credit.range(since..).all(|point| {
            points += 1;
            for invokes in [&mut live, &mut open] {
                while invokes.next_if(|invoke| *invoke < point).is_some() {
                    begun += 1;
                }
            }
            points <= begun
        })
    }
}

/// One lock, free at first.
#[derive(Default)]
pub(crate) struct Mutex {
    held: bool,
    acquires: Side,
    releases: Side,
}

impl Mutex {
    fn sides(&mut self, step: Step) -> (&mut Side, &mut Side) {
        match step {
            Step::Acquire => (&mut self.acquires, &mut self.releases),
            Step::Release => (&mut self.releases, &mut self.acquires),
        }
    }

    /// An operation begins.
    pub fn begins(&mut self, step: Step, invoke: u64) {
        self.sides(step).0.live.insert(invoke);
    }

    /// An operation ended, and surely happened.
    pub fn happened(&mut self, step: Step, invoke: u64, now: u64) -> Result<(), NoOrder> {
        let wrong = self.held == (step == Step::Acquire);
        let (same, other) = self.sides(step);
        same.live.remove(&invoke);
        let claimed = same.credit.range(invoke..).next().copied();
        if let Some(point) = claimed {
            same.credit.remove(&point);
        } else if wrong {
            other.lends(now)?;
            other.settle();
        } else {
            self.held = !self.held;
        }
        self.sides(step).0.settle();
        Ok(())
    }

    /// An operation ended, and surely did not happen.
    pub fn failed(&mut self, step: Step, invoke: u64) -> Result<(), NoOrder> {
        let (same, _) = self.sides(step);
        same.live.remove(&invoke);
        let covered = same.is_covered(invoke);
        same.settle();
        if covered { Ok(()) } else { Err(NoOrder) }
    }

    /// An operation will never be answered.
    pub fn lost(&mut self, step: Step, invoke: u64) {
        let (same, _) = self.sides(step);
        same.live.remove(&invoke);
        same.open.insert(invoke);
        same.settle();
    }

    /// How many operations and points are held in memory.
    pub fn held(&self) -> usize {
        let of = |side: &Side| side.live.len() + side.open.len() + side.credit.len();
        of(&self.acquires) + of(&self.releases)
    }
}

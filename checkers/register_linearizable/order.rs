//! The order of one register's operations, found from left to right.
//!
//! An operation takes effect at a point between its invoke and its completion. What
//! belongs to one written value (its write and the reads that returned it) stands
//! together, so it is one [`Stay`]: if one of its operations began after another had
//! ended, the value was there from that end to that beginning, and nothing else can
//! take effect in between (it *stayed*); else all of it fits into the one instant that
//! its operations share. Absence is the one value that is written many times, by
//! deletes, and there from the start; which delete a read of it saw is open.
//!
//! The search is greedy, and exact:
//!
//! - A value that fits into an instant does no harm while another value is there, or
//!   just before a delete: then it is placed at once. While the key is absent it waits
//!   until its time is up, since it ends the absence.
//! - A read of absence is placed at once while the key is absent, and else waits.
//! - A delete waits: spent late it serves more reads and has let more values pass. It
//!   takes effect when its own time is up, or when a waiting read's is; then the
//!   delete that has the least time left is spent, as any other can take its later
//!   places. One that was never answered may be left out, and has all time.
//!
//! Absence is never worse than a value, as each that waits can end it. A stay is a
//! value whose place is fixed, and what must be placed inside it has to come before.

use std::collections::{BTreeMap, BTreeSet};

use super::datum::Datum;
use crate::history::{F, Name};

/// An operation in time: the indices of its invoke and of its completion.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    pub f: F,
    pub process: Name,
    pub invoke: u64,
    /// [`u64::MAX`]: never answered.
    pub complete: u64,
}

impl Act {
    /// Whether it had ended before the other began.
    pub fn precedes(&self, other: &Act) -> bool {
        self.complete < other.invoke
    }
}

/// One value's operations; or one delete, or one read that found nothing.
#[derive(Clone, Debug)]
pub(super) struct Stay {
    /// `None`: absence.
    pub value: Option<Datum>,
    /// The operation that ended first.
    pub first: Act,
    /// The operation that began last.
    pub last: Act,
}

impl Stay {
    /// A delete, or a read that found nothing.
    pub fn absence(act: Act) -> Self {
        Stay {
            value: None,
            first: act.clone(),
            last: act,
        }
    }

    /// When its first operation had ended.
    pub fn shown(&self) -> u64 {
        self.first.complete
    }

    /// When its last operation began.
    pub fn until(&self) -> u64 {
        self.last.invoke
    }

    /// Whether it was there for a time in which nothing else was.
    pub fn stayed(&self) -> bool {
        self.first.precedes(&self.last)
    }

    /// Whether the other has to be there, if only for an instant, while this one stays.
    fn has_within(&self, other: &Stay) -> bool {
        self.first.precedes(&other.last) && other.first.precedes(&self.last)
    }

    /// Where it begins to matter.
    pub fn begins(&self) -> u64 {
        self.shown().min(self.until())
    }
}

/// Why no order explains the operations.
#[derive(Debug)]
pub(super) enum Conflict {
    /// The second has to stand between operations of the first.
    Between(Box<Stay>, Box<Stay>),
    /// A read found nothing though a value was there, and no delete is left; it had
    /// to come before the third, where there is one.
    NotAbsent(Box<Stay>, Box<Stay>, Option<Box<Stay>>),
}

#[derive(Default)]
pub(super) struct Order {
    /// Not reached yet, by where they begin.
    upcoming: BTreeMap<u64, Stay>,
    /// Everything before is placed, or waits.
    swept: u64,
    /// The value that ended the last absence; `None` while the key is absent.
    holds: Option<Stay>,
    /// The last value that came after it.
    newest: Option<Stay>,
    /// The value that stayed last.
    stayed: Option<Stay>,
    /// Reads of absence that wait, by the end of their time.
    reads: BTreeMap<u64, Stay>,
    /// Values that wait, by the end of their time.
    values: BTreeMap<u64, Stay>,
    /// Deletes not spent: the end of their time, and their invoke.
    deletes: BTreeSet<(u64, u64)>,
    /// When the present absence began, or a delete was last spent.
    absent_since: u64,
}

impl Order {
    /// How many operations wait for their place.
    pub fn remembered(&self) -> usize {
        self.upcoming.len() + self.reads.len() + self.values.len() + self.deletes.len()
    }

    /// Adds what is known to its end: nothing will change it any more.
    pub fn add(&mut self, stay: Stay) {
        if stay.begins() >= self.swept {
            self.upcoming.insert(stay.begins(), stay);
        } else if self.holds.is_none() && stay.begins() >= self.absent_since {
            // A write that was tried again begins with the first try. Elsewhere it could
            // have been placed since, and was.
            self.values.insert(stay.shown(), stay);
        }
    }

    /// A delete that was never answered has been after all, at its second try.
    pub fn answered(&mut self, delete: Act) {
        let (invoke, complete) = (delete.invoke, delete.complete);
        if let Some(upcoming) = self.upcoming.get_mut(&invoke) {
            *upcoming = Stay::absence(delete);
        } else if self.deletes.remove(&(u64::MAX, invoke)) {
            self.deletes.insert((complete, invoke));
        }
    }

    /// Places all that must be placed before `limit`. What begins before is known.
    pub fn advance(&mut self, limit: u64) -> Result<(), Conflict> {
        loop {
            let upcoming = self.upcoming.first_key_value().map(|(at, _)| *at);
            let read = self.reads.first_key_value().map(|(at, _)| *at);
            let value = self.values.first_key_value().map(|(at, _)| *at);
            let delete = self.deletes.first().map(|(at, _)| *at);
            let times = [upcoming, read, value, delete];
            let Some(now) = times.into_iter().flatten().min() else {
                break;
            };
            if now >= limit {
                break;
            }
            if upcoming == Some(now) {
                if let Some((_, stay)) = self.upcoming.pop_first() {
                    self.begins(stay)?;
                }
            } else if read == Some(now) {
                self.must_be_absent(now, None)?;
            } else if value == Some(now) {
                self.holds = self.values.pop_first().map(|(_, stay)| stay);
                self.newest = None;
                self.values.clear();
            } else {
                self.deletes.pop_first();
                self.absent_at(now);
            }
        }
        self.swept = self.swept.max(limit);
        Ok(())
    }

    fn begins(&mut self, stay: Stay) -> Result<(), Conflict> {
        if let Some(around) = self.stayed.take_if(|around| around.has_within(&stay)) {
            // The one that was there last shows it.
            let mut both = [around, stay].map(Box::new);
            both.sort_by_key(|stay| stay.until());
            let [stay, around] = both;
            return Err(Conflict::Between(around, stay));
        }
        let by = stay.shown();
        match (&stay.value, stay.last.f) {
            (Some(_), _) if stay.stayed() => return self.stays(stay),
            (Some(_), _) if self.holds.is_none() => drop(self.values.insert(by, stay)),
            (Some(_), _) => self.newest = Some(stay),
            (None, F::Read) if self.holds.is_none() => {}
            (None, F::Read) => drop(self.reads.insert(by, stay)),
            (None, _) => drop(self.deletes.insert((by, stay.until()))),
        }
        Ok(())
    }

    /// Whatever has to take effect within a stay comes before it.
    fn stays(&mut self, stay: Stay) -> Result<(), Conflict> {
        let (from, until) = (stay.shown(), stay.until());
        while let Some(&delete) = self.deletes.range(..(until, 0)).next() {
            self.deletes.remove(&delete);
            self.absent_at(from);
        }
        if self.reads.range(..until).next().is_some() {
            self.must_be_absent(from, Some(&stay))?;
        }
        self.values.clear();
        self.stayed = Some(stay.clone());
        match self.holds {
            None => self.holds = Some(stay),
            // What ended the absence stays what shows that it is over: this value may
            // have come after a read that waits.
            Some(_) => self.newest = Some(stay),
        }
        Ok(())
    }

    /// A waiting read's time is up: a delete is spent.
    fn must_be_absent(&mut self, now: u64, before: Option<&Stay>) -> Result<(), Conflict> {
        if self.deletes.pop_first().is_some() {
            self.absent_at(now);
            return Ok(());
        }
        let newest = self.newest.take();
        if let (Some((_, read)), Some(holds)) = (self.reads.pop_first(), self.holds.take()) {
            let there = newest.filter(|newest| newest.first.precedes(&read.last));
            let there = Box::new(there.unwrap_or(holds));
            let before = before.map(|stay| Box::new(stay.clone()));
            return Err(Conflict::NotAbsent(Box::new(read), there, before));
        }
        Ok(())
    }

    fn absent_at(&mut self, now: u64) {
        self.reads.clear();
        self.values.clear();
        self.holds = None;
        self.newest = None;
        self.absent_since = now;
    }
}

//! `well-formed`: the rules that make lines a history, whatever system it is of.
//!
//! One implementation for both who enforce them: the [reader](crate::reader)
//! refuses a file that breaks one, the [judge](crate::judge) convicts events made
//! in memory. Calls left open at the end of a history are fine: they may have
//! happened.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::history::{Body, Event, F, Name, Nanos, Op};
use crate::verdict::Evidence;

/// A rule that an event breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The index was there already.
    #[error("index {found} comes again: an index rises by one from line to line")]
    DuplicateIndex {
        /// The index found.
        found: u64,
    },
    /// The index leaves a gap, or the first is not 0.
    #[error("index {found} where {expected} is due: lines are missing or out of order")]
    IndexJump {
        /// The index that is due.
        expected: u64,
        /// The index found.
        found: u64,
    },
    /// Time went back.
    #[error("time goes back from {before} to {now}: lines must be sorted by time")]
    TimeBack {
        /// The time of the line before, in nanoseconds.
        before: Nanos,
        /// The time of this line, in nanoseconds.
        now: Nanos,
    },
    /// A completion whose call is not open.
    #[error("{process} completes a {} that is not open: its invoke is missing", .f.name())]
    CompletionWithoutCall {
        /// Who completed.
        process: Name,
        /// What.
        f: F,
    },
    /// A completion without `call` while several calls of its process are open.
    #[error("{process} has {open} open calls and a completion names none of them in `call`")]
    AmbiguousCompletion {
        /// Who completed.
        process: Name,
        /// How many calls it has open.
        open: usize,
    },
    /// A call id that was used before: it is open, or was used lately.
    #[error("call {call} is used again: a call's id is unique in the file")]
    CallReused {
        /// The id.
        call: u64,
    },
    /// A completion by another process or of another `f` than its call.
    #[error(
        "call {call} is a {} by {process}, and a {} by {other} completes it",
        .f.name(), .other_f.name()
    )]
    OtherCall {
        /// The id.
        call: u64,
        /// What was invoked.
        f: F,
        /// By whom.
        process: Name,
        /// What the completion says it is.
        other_f: F,
        /// And by whom.
        other: Name,
    },
}

impl Malformed {
    pub(crate) fn evidence(&self, index: u64) -> Evidence {
        Evidence::new(self.to_string(), [], index, "a well-formed history")
    }
}

/// An open call, and whatever its owner keeps of it.
struct Open<K> {
    process: Name,
    f: F,
    kept: K,
}

/// The rules, applied event by event; pairs each completion with its call on
/// the way. `K` is what the caller keeps of a call until it completes.
pub(crate) struct Pairing<K> {
    next_index: u64,
    last_time: Nanos,
    /// By call id.
    open: BTreeMap<u64, Open<K>>,
    /// Calls without an id, by process.
    nameless: BTreeMap<Name, Vec<Open<K>>>,
    /// How many those are.
    nameless_open: usize,
    used: Ids,
}

impl<K> Pairing<K> {
    pub fn new() -> Self {
        Pairing {
            next_index: 0,
            last_time: 0,
            open: BTreeMap::new(),
            nameless: BTreeMap::new(),
            nameless_open: 0,
            used: Ids::default(),
        }
    }

    /// Checks one event; a completion gives back what was kept of its call.
    pub fn see(
        &mut self,
        event: &Event,
        keep: impl FnOnce(&Op) -> K,
    ) -> Result<Option<K>, Malformed> {
        self.in_order(event)?;
        self.pairs(event, keep)
    }

    /// What is remembered to pair calls with their completions.
    pub fn remembered(&self) -> Remembered {
        Remembered::default().and("open calls", self.open.len() + self.nameless_open)
    }

    /// Gives up pairing: only [`in_order`](Self::in_order) may be asked from here on.
    pub fn forget(&mut self) {
        self.open.clear();
        self.nameless.clear();
        self.nameless_open = 0;
        self.used = Ids::default();
    }

    /// The rules of index and time, which need no memory.
    pub fn in_order(&mut self, event: &Event) -> Result<(), Malformed> {
        let found = event.index;
        let expected = self.next_index;
        match found.cmp(&expected) {
            Ordering::Less => return Err(Malformed::DuplicateIndex { found }),
            Ordering::Greater => return Err(Malformed::IndexJump { expected, found }),
            Ordering::Equal => {}
        }
        if event.time < self.last_time {
            return Err(Malformed::TimeBack {
                before: self.last_time,
                now: event.time,
            });
        }
        self.next_index = self.next_index.saturating_add(1);
        self.last_time = event.time;
        Ok(())
    }

    /// The rules of calls.
    fn pairs(
        &mut self,
        event: &Event,
        keep: impl FnOnce(&Op) -> K,
    ) -> Result<Option<K>, Malformed> {
        match &event.body {
            Body::Invoke(op) => {
                let open = Open {
                    process: event.process.clone(),
                    f: op.f(),
                    kept: keep(op),
                };
                match event.call {
                    Some(call) if self.open.contains_key(&call) || !self.used.insert(call) => {
                        return Err(Malformed::CallReused { call });
                    }
                    Some(call) => drop(self.open.insert(call, open)),
                    None => {
                        self.nameless_open += 1;
                        let of_process = self.nameless.entry(event.process.clone());
                        of_process.or_default().push(open);
                    }
                }
                Ok(None)
            }
            Body::Complete(f, _) => self.complete(event, *f).map(Some),
            _ => Ok(None),
        }
    }

    fn complete(&mut self, event: &Event, f: F) -> Result<K, Malformed> {
        let missing = || Malformed::CompletionWithoutCall {
            process: event.process.clone(),
            f,
        };
        if let Some(call) = event.call {
            let open = self.open.get(&call).ok_or_else(missing)?;
            if open.process != event.process || open.f != f {
                return Err(Malformed::OtherCall {
                    call,
                    f: open.f,
                    process: open.process.clone(),
                    other_f: f,
                    other: event.process.clone(),
                });
            }
            return self
                .open
                .remove(&call)
                .map(|open| open.kept)
                .ok_or_else(missing);
        }
        // Named calls can be meant too; there are never many open.
        let named: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, open)| open.process == event.process)
            .map(|(call, _)| *call)
            .collect();
        let nameless = self.nameless.get(&event.process).map_or(0, Vec::len);
        let open = match (named.len() + nameless, named.first()) {
            (0, _) => None,
            (1, Some(call)) => self.open.remove(call),
            (1, None) => {
                self.nameless_open -= 1;
                self.nameless
                    .remove(&event.process)
                    .and_then(|mut open| open.pop())
            }
            (open, _) => {
                return Err(Malformed::AmbiguousCompletion {
                    process: event.process.clone(),
                    open,
                });
            }
        };
        match open {
            Some(open) if open.f == f => Ok(open.kept),
            _ => Err(missing()),
        }
    }
}

/// How many ranges of ids are remembered, the highest.
const RANGES: usize = 4_096;

/// A set of ids as ranges: ids given out in a row cost nothing to remember. Where they
/// leave gaps, the lowest are forgotten in the end.
#[derive(Default)]
pub(crate) struct Ids {
    /// First to last, both inclusive.
    ranges: BTreeMap<u64, u64>,
    /// The highest that was forgotten.
    forgotten: Option<u64>,
}

impl Ids {
    /// How many ranges there are.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Whether it is not known any more which ids up to this one were there.
    pub fn forgot(&self, id: u64) -> bool {
        Some(id) <= self.forgotten
    }

    pub fn contains(&self, id: u64) -> bool {
        let before = self.ranges.range(..=id).next_back();
        before.is_some_and(|(_, last)| id <= *last)
    }

    /// False if it is known to have been there already.
    pub fn insert(&mut self, id: u64) -> bool {
        if self.forgot(id) {
            return true;
        }
        let before = self
            .ranges
            .range(..=id)
            .next_back()
            .map(|(first, last)| (*first, *last));
        let joins_before = match before {
            Some((_, last)) if id <= last => return false,
            Some((first, last)) if last + 1 == id => Some(first),
            _ => None,
        };
        let last = id
            .checked_add(1)
            .and_then(|next| self.ranges.remove(&next))
            .unwrap_or(id);
        self.ranges.insert(joins_before.unwrap_or(id), last);
        if self.ranges.len() > RANGES {
            self.forgotten = self.ranges.pop_first().map(|(_, last)| last);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_remembered_in_ranges() {
        let mut ids = Ids::default();
        for id in [5, 7, 6, 0, u64::MAX, 1] {
            assert!(ids.insert(id), "{id} is new");
        }
        for id in [0, 1, 5, 6, 7, u64::MAX] {
            assert!(!ids.insert(id), "{id} was used");
        }
        assert_eq!(ids.ranges.len(), 3);
    }

    #[test]
    fn ids_with_gaps_are_remembered_for_a_while() {
        let mut ids = Ids::default();
        for nth in 0..10 * RANGES as u64 {
            assert!(ids.insert(2 * nth), "{nth} is new");
            assert!(!ids.insert(2 * nth), "{nth} was used");
        }
        assert_eq!(ids.ranges(), RANGES);
        assert!(ids.forgot(2) && ids.insert(2), "it may have been used");
        let last = 20 * RANGES as u64 - 2;
        assert!(!ids.forgot(last) && ids.contains(last) && !ids.contains(last - 1));
    }
}

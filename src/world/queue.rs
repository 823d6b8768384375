//! What is due when: faults by their time or by the moment that they wait for, and
//! what ends by time.

use std::collections::BTreeMap;

use deposed_checkers::history::{Name, Nanos};

use super::links::Link;
use crate::fault::{Fault, Moment, Schedule, Trigger};

/// See the module.
#[derive(Default)]
pub(super) struct Queue {
    due: BTreeMap<(Nanos, u64), Fault>,
    waiting: BTreeMap<(Moment, u32), Vec<(Nanos, Fault)>>,
    next: BTreeMap<Moment, Waiting>,
    met: BTreeMap<Moment, u32>,
    ending: BTreeMap<(Nanos, u64), Ending>,
    entries: u64,
    stopped: bool,
}

/// From when on faults wait for a moment, and in the order of which entry: how long after
/// it they strike, and what.
type Waiting = BTreeMap<(Nanos, u64), (Nanos, Fault)>;

/// How a fault ends.
pub(super) enum Ending {
    Mend {
        fault: &'static str,
        links: Vec<Link>,
    },
    Release {
        links: Vec<Link>,
    },
    NormalLatency {
        links: Vec<Link>,
    },
    Resume {
        node: usize,
        boot: u64,
    },
    Restart {
        node: usize,
        cut: Vec<Link>,
    },
    Steady {
        flaky: u64,
        nodes: Vec<Name>,
    },
    Wake {
        node: usize,
        boot: u64,
    },
    Feed {
        node: usize,
        one_in: u32,
    },
    Rate {
        node: usize,
    },
    SlowSync {
        node: usize,
        by: Nanos,
    },
    FullDisk {
        node: usize,
    },
}

impl Queue {
    pub(super) fn new(schedule: &Schedule) -> Self {
        let mut queue = Self::default();
        for injection in schedule {
            match injection.when {
                Trigger::At(at) => queue.put(at, injection.fault.clone()),
                Trigger::On { moment, nth, plus } => {
                    let waiting = queue.waiting.entry((moment, nth)).or_default();
                    waiting.push((plus, injection.fault.clone()));
                }
                Trigger::Next {
                    moment,
                    after,
                    plus,
                } => {
                    queue.entries += 1;
                    let waiting = queue.next.entry(moment).or_default();
                    waiting.insert((after, queue.entries), (plus, injection.fault.clone()));
                }
            }
        }
        queue
    }

    /// A moment has come; faults that wait for it become due.
    pub(super) fn on(&mut self, moment: Moment, at: Nanos) {
        let nth = self.met.entry(moment).or_default();
        *nth += 1;
        let nth = *nth;
        for (plus, fault) in self.waiting.remove(&(moment, nth)).unwrap_or_default() {
            self.put(at.saturating_add(plus), fault);
        }
        while let Some(waiting) = self.next.get_mut(&moment)
            && let Some(first) = waiting.first_entry()
            && first.key().0 <= at
        {
            let (plus, fault) = first.remove();
            self.put(at.saturating_add(plus), fault);
        }
    }

    /// No further fault is injected.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.due.clear();
        self.waiting.clear();
        self.next.clear();
    }

    fn put(&mut self, at: Nanos, fault: Fault) {
        if !self.stopped {
            self.entries += 1;
            self.due.insert((at, self.entries), fault);
        }
    }

    /// What ends at a time.
    pub(super) fn end(&mut self, at: Nanos, ending: Ending) {
        self.entries += 1;
        self.ending.insert((at, self.entries), ending);
    }

    pub(super) fn next_due(&mut self, now: Nanos) -> Option<Fault> {
        let entry = self.due.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    pub(super) fn next_ending(&mut self, now: Nanos) -> Option<Ending> {
        let entry = self.ending.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}

//! Failover as clients alone can tell it, where neither the store's account nor the
//! header says that a write is owed: whoever keeps asking for a lease in calm gets it, or
//! somebody else shows that it leads.
//!
//! Convicted: a lease that was asked for in calm without a break for the whole bound,
//! while no acquire and no renewal was answered ok, none was sent, and no work under the
//! lease was acknowledged. Asking has no break where an acquire is sent or answered at
//! least once a try and a backoff by the slowest client's clock.
//!
//! That this never convicts a correct system: whoever held the lease last was promised it
//! for no longer than a ttl, and so the lease is free, its lock-delay over, while it is
//! being asked for; the next acquire is a try and a backoff away at most, and is answered
//! ok. Two things could keep it closed all the same, and then nothing is said: an owner
//! whose lease is prolonged by what no client records, where nobody ever renews one; and
//! an acquire whose client went away before the answer, which leaves a term behind.

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::history::{Body, Event, Kind, Name, Nanos, Op};
use crate::judge::Step;

/// How a lease is asked for.
#[derive(Default)]
pub(super) struct Asked {
    /// Since when without a break and without a sign of a leader: when, and the event.
    since: Option<(Nanos, u64)>,
    last: Nanos,
    /// Acquires without an answer, by their invoke: when they were sent.
    open: BTreeMap<u64, Nanos>,
    /// Somebody renews it.
    renewed: bool,
    /// A sign of a leader was seen in calm.
    pub led: bool,
}

/// By lease.
#[derive(Default)]
pub(super) struct Asking {
    pub leases: BTreeMap<Name, Asked>,
}

impl Asking {
    /// Nothing that was before counts, but that somebody renews. What an acquire of before
    /// may leave behind is in the bound.
    pub fn calm(&mut self) {
        for asked in self.leases.values_mut() {
            asked.since = None;
            asked.led = false;
            asked.open.clear();
        }
    }

    pub fn remembered(&self) -> Remembered {
        let open = self.leases.values().map(|asked| asked.open.len()).sum();
        Remembered::default()
            .and("leases", self.leases.len())
            .and("open calls", open)
    }

    /// Looks at one event. A lease that was asked for longer than the bound: since which
    /// event. `gap`: a try and a backoff.
    pub fn see(&mut self, step: &Step<'_>, gap: Nanos, bound: Nanos) -> Option<(Name, u64)> {
        let event = step.event;
        match &event.body {
            Body::Invoke(op) => {
                let asked = self.leases.entry(op.lease().clone()).or_default();
                match op {
                    Op::Acquire(_) => {
                        asked.open.insert(event.index, event.time);
                        return asked
                            .asks(event, gap, bound)
                            .map(|since| (op.lease().clone(), since));
                    }
                    Op::Renew(_) => {
                        asked.renewed = true;
                        asked.since = None;
                    }
                    _ => {}
                }
                None
            }
            Body::Complete(..) => {
                let invoked = step.invoked?;
                let op = &invoked.op;
                let asked = self.leases.get_mut(op.lease())?;
                let ok = event.kind == Kind::Ok;
                match op {
                    Op::Acquire(_) if !ok => {
                        let since = asked.asks(event, gap, bound);
                        asked.open.remove(&invoked.index);
                        return since.map(|since| (op.lease().clone(), since));
                    }
                    Op::Acquire(_) => drop(asked.open.remove(&invoked.index)),
                    _ => {}
                }
                // An observer's read is no sign, and neither is it that somebody went.
                let leads = match op {
                    Op::Read(read) => read.token.is_some(),
                    Op::Release(_) => false,
                    _ => true,
                };
                if ok && leads {
                    (asked.since, asked.led) = (None, true);
                }
                None
            }
            _ => None,
        }
    }
}

impl Asked {
    fn asks(&mut self, event: &Event, gap: Nanos, bound: Nanos) -> Option<u64> {
        let now = event.time;
        let unbroken = now.saturating_sub(self.last) <= gap;
        self.last = now;
        let (since, first) = match self.since.filter(|_| unbroken) {
            Some(since) => since,
            None => *self.since.insert((now, event.index)),
        };
        let oldest = self.open.first_key_value().map_or(now, |(_, sent)| *sent);
        let gone = now.saturating_sub(oldest) > gap;
        let overdue = now.saturating_sub(since) > bound;
        (self.renewed && overdue && !gone).then_some(first)
    }
}

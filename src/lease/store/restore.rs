//! What a store makes of an old copy of its records.

use std::collections::BTreeMap;

use deposed_checkers::history::{Name, Nanos, Token};

use super::{Lease, LeaseStore, StoreLimits};
use crate::flaw::Planted;
use crate::lease::record::{LeaseRecord, Restoration};

impl LeaseStore {
    /// A store that comes back with an *old* copy of what it had made durable.
    ///
    /// What it granted after the copy was made is lost, so the operator supplies a
    /// `floor`, at least the highest token any lease ever had, above which every
    /// lease goes on. Whom the copy names as owner may have been replaced, and
    /// whoever replaced it may still believe, on a lease that the copy does not even
    /// name: no recorded owner is taken over, and nothing is granted for the longest
    /// ttl and the lock-delay. All records and the [`restoration`](Self::restoration)
    /// must be durable before the first answer.
    pub fn restore(
        limits: StoreLimits,
        planted: Planted,
        records: BTreeMap<Name, LeaseRecord>,
        floor: Token,
        now: Nanos,
    ) -> Self {
        // The limits may have been lowered since.
        let owners = records.values().filter_map(|record| record.owner.as_ref());
        let longest = owners.map(|owner| owner.ttl.saturating_add(owner.lock_delay));
        let closed_for = longest
            .chain([limits.max_ttl.saturating_add(limits.lock_delay)])
            .max()
            .unwrap_or(0);
        let raised = |record: LeaseRecord| Lease {
            counter: record.counter.max(floor),
            owner: None,
        };
        let leases = records
            .into_iter()
            .map(|(name, record)| (name, raised(record)))
            .collect();
        let mut store = Self {
            limits,
            planted,
            leases,
            floor: 0,
            closed_for: 0,
            closed_until: 0,
        };
        store.resume_restoration(Restoration { floor, closed_for }, now);
        store
    }

    /// What must be durable, beside the records, of a store that was once restored.
    pub fn restoration(&self, now: Nanos) -> Restoration {
        let closed = now < self.closed_until;
        Restoration {
            floor: self.floor,
            closed_for: if closed { self.closed_for } else { 0 },
        }
    }

    /// Takes up a restoration after a further restart, on a store just recovered.
    pub fn resume_restoration(&mut self, restoration: Restoration, now: Nanos) {
        self.floor = self.floor.max(restoration.floor);
        self.closed_for = self.closed_for.max(restoration.closed_for);
        let closed_until = now.saturating_add(restoration.closed_for);
        self.closed_until = self.closed_until.max(closed_until);
    }
}

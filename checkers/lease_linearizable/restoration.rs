//! What a store owes that was restored from an old copy of its disk.
//!
//! What it granted after the copy was made is lost: whoever was granted a lease then, be
//! it one that the copy does not even name, may hold it for a whole ttl, and the store
//! cannot know of it. So it grants nothing before a ttl has passed by its own clock since
//! it was declared restored. The ttl is the header's, or the longest that the copy tells
//! of; where neither tells one nothing is owed. A further copy put back begins anew, with
//! its own `restored`.

use std::collections::BTreeMap;

use crate::history::{Event, Granted, Name, Nanos, Restored};
use crate::owners::called;
use crate::units::{span, time};
use crate::verdict::Evidence;

/// Until when each store is closed, by its own clock.
#[derive(Default)]
pub(super) struct Restorations(BTreeMap<Name, Closed>);

struct Closed {
    ttl: Nanos,
    until: Nanos,
    /// The `restored`.
    shown: u64,
}

impl Restorations {
    pub fn declared(&mut self, event: &Event, restored: &Restored, ttl: Option<Nanos>) {
        let told = restored.leases.values().filter_map(|lease| lease.ttl);
        let Some(ttl) = told.chain(ttl).max() else {
            return;
        };
        let closed = Closed {
            ttl,
            until: restored.clock.saturating_add(ttl),
            shown: event.index,
        };
        self.0.insert(event.process.clone(), closed);
    }

    pub fn forgotten_by(&mut self, store: &str) {
        self.0.remove(store);
    }

    /// A machine's restart began its clock anew; what is owed moves along.
    pub fn begins_anew(&mut self, store: &Name, before: Nanos, clock: Nanos) {
        if let Some(closed) = self.0.get_mut(store) {
            closed.until = clock.saturating_add(closed.until.saturating_sub(before));
        }
    }

    /// How many stores were restored.
    pub fn remembered(&self) -> usize {
        self.0.len()
    }

    /// A grant before that time is over.
    pub fn too_early(&self, event: &Event, granted: &Granted) -> Option<Evidence> {
        let closed = self.0.get(&event.process)?;
        (granted.clock < closed.until).then(|| {
            let until = time(closed.until);
            Evidence::new(
                format!(
                    "{} was granted to {} at {} by the store's clock, {} after it had been \
                     restored from an old copy: whom the copy forgot may hold it until {until}",
                    granted.lease,
                    called(&granted.holder, ""),
                    time(granted.clock),
                    span((granted.clock + closed.ttl).saturating_sub(closed.until)),
                ),
                [closed.shown],
                event.index,
                format!("refused until {until} by its clock"),
            )
        })
    }
}

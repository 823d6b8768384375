//! A story as a history: what each node would have recorded, so that who shows and who
//! judges histories shows and judges it.
//!
//! A tick is 100 ms, and what happens between two ticks happens at one instant. A clock that
//! skips one tick in so many is one that runs slow at the bound and is read in whole ticks;
//! it is recorded as that.

mod beliefs;
mod calls;
mod pauses;
mod scribe;
mod servers;
#[cfg(test)]
mod tests;

use deposed_checkers::{
    history::{Event, FORMAT_VERSION, Header, LeaseTiming, Nanos, TRUE_RATE},
    verdict::{Check, Verdict},
};

use super::{action::Action, message::name_of, scope::Scope, story::Story};
use crate::flaw::Flaw;
use scribe::Scribe;

/// How long a tick is in a history.
pub const TICK: Nanos = 100_000_000;

/// A history: its header and its events.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// With the bounds of the search in its fields.
    pub header: Header,
    /// In order.
    pub events: Vec<Event>,
}

/// What the nodes of a story would have recorded.
pub fn history(scope: &Scope, flaw: Option<Flaw>, story: &Story) -> History {
    let mut skipped = 0;
    for action in &story.actions {
        if let Action::Tick { skips } = action {
            skipped |= skips;
        }
    }
    let mut scribe = Scribe::new(scope, skipped);
    for action in &story.actions {
        scribe.act(*action);
        scribe.tell_beliefs();
    }
    History {
        header: header(scope, flaw, skipped),
        events: scribe.events,
    }
}

fn header(scope: &Scope, flaw: Option<Flaw>, skipped: u8) -> Header {
    let config = scope.config();
    let slow = (0..scope.clients).filter(|client| skipped & 1 << client != 0);
    let rate = TRUE_RATE.saturating_sub(config.max_drift_ppb);
    let mut rest = serde_json::Map::new();
    if let Some(flaw) = flaw {
        rest.insert("flaw".to_owned(), flaw.name().into());
    }
    Header {
        deposed: FORMAT_VERSION,
        workload: "prove".into(),
        system: "deposed".into(),
        seed: 0,
        lease: Some(LeaseTiming {
            ttl: config.ttl * TICK,
            max_drift_ppb: config.max_drift_ppb,
            safety_margin: 0,
            lock_delay: config.lock_delay * TICK,
            try_timeout: TICK,
            backoff_max: 0,
        }),
        network: None,
        clocks: slow.map(|client| (name_of(client), rate)).collect(),
        rest,
    }
}

impl History {
    /// Whether a checker convicts it.
    pub fn is_convicted_by(&self, check: Check) -> bool {
        let verdicts = deposed_checkers::judge::judge(&self.header, &self.events);
        verdicts.of(check).is_some_and(Verdict::is_violated)
    }
}

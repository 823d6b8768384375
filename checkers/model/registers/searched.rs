//! A key that is kept and searched.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Asked, Kept};
use crate::history::Kind;
use crate::linearizable::search::{Found, NARROW, NoOrder, search};
use crate::linearizable::states::States;
use crate::linearizable::{Does, Limit, NEVER, Operation};
use crate::register_linearizable::Datum;

/// A key that is searched.
pub(super) struct Searched {
    pub(super) key: usize,
    pub(super) kv: bool,
    pub(super) operations: Vec<Operation>,
    pub(super) states: States,
    pub(super) start: u32,
    pub(super) found: Found,
}

impl Searched {
    pub(super) fn of(key: usize, kept: &[Kept], kv: bool) -> Self {
        let mut states = States::default();
        let name = |datum: &Option<Datum>| match datum {
            None => "nil".to_owned(),
            Some(Datum::Text(text)) if kv => text.to_string(),
            Some(Datum::Text(text)) => format!("{text:?}"),
            Some(Datum::Other(other)) => other.to_string(),
        };
        let start = if kv { states.id("") } else { states.id("nil") };
        let mut operations = Vec::with_capacity(kept.len());
        for kept in kept.iter().filter(|kept| kept.kind != Some(Kind::Fail)) {
            let does = match &kept.asked {
                Asked::Nothing => continue,
                Asked::See(seen) => Does::See(states.id(&name(seen))),
                Asked::Set(value) => Does::Set(states.id(&name(value))),
                Asked::Swap(pair) => {
                    let (from, to) = (states.id(&name(&pair.0)), states.id(&name(&pair.1)));
                    match from == to {
                        true => Does::See(from),
                        false => Does::Swap(from, to),
                    }
                }
                Asked::Append(text) => Does::Append(states.id(text)),
            };
            operations.push(Operation {
                invoke: kept.invoke,
                complete: kept.happened().unwrap_or(NEVER),
                must: kept.happened().is_some(),
                does,
                process: kept.process,
            });
        }
        Searched {
            key,
            kv,
            operations,
            states,
            start,
            found: Found::Order,
        }
    }

    /// Searches as long as no other key has gone wrong before.
    pub(super) fn search(&mut self, limit: Limit<'_>, until: &AtomicU64) {
        let starts = [self.start];
        self.found = search(
            &self.operations,
            &starts,
            &mut self.states,
            limit,
            (until, NARROW),
            &mut 0,
        );
        if let Found::NoOrder(no_order) = &self.found {
            until.fetch_min(self.ends(no_order), Ordering::Relaxed);
        }
    }

    /// The completion that has no order.
    pub(super) fn ends(&self, no_order: &NoOrder) -> u64 {
        self.operations[no_order.op].complete
    }
}

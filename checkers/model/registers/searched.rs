//! A key that is kept and searched.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Asked, Kept, WITNESS_STEPS, object};
use crate::linearizable::search::{Found, NARROW, NoOrder, search};
use crate::linearizable::states::States;
use crate::linearizable::witness::{ANOTHER, Part};
use crate::linearizable::{Does, Limit, Operation};
use crate::model::calls::Calls;
use crate::model::{Model, words};
use crate::register_linearizable::Datum;
use crate::verdict::Evidence;

/// Of what could have made a part of a text, so many are shown.
const PARTS_SHOWN: usize = 8;

/// A key that is searched.
pub(super) struct Searched {
    pub(super) key: usize,
    kv: bool,
    operations: Vec<Operation>,
    states: States,
    start: u32,
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
        for kept in kept {
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
                complete: kept.complete,
                must: kept.must,
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
        if let Some(culprit) = self.no_order() {
            until.fetch_min(culprit, Ordering::Relaxed);
        }
    }

    /// The completion that has no order.
    pub(super) fn no_order(&self) -> Option<u64> {
        match &self.found {
            Found::NoOrder(NoOrder { op, .. }) => Some(self.operations[*op].complete),
            Found::Order | Found::TooMuch(..) => None,
        }
    }

    /// What could have made a part of the text that was seen, by when it was: the last of
    /// those that began.
    fn parts(&self, culprit: &Operation) -> Vec<usize> {
        let Does::See(seen) = culprit.does else {
            return Vec::new();
        };
        let seen = self.states.name(seen);
        let began = |operation: &Operation| operation.invoke < culprit.complete;
        let numbered = self.operations.iter().enumerate().rev();
        let parts = numbered.filter(|(_, operation)| match operation.does {
            Does::Set(text) | Does::Append(text) if self.kv && began(operation) => {
                let text = self.states.name(text);
                !text.is_empty() && seen.contains(text)
            }
            _ => false,
        });
        parts.map(|(at, _)| at).take(PARTS_SHOWN).collect()
    }

    pub(super) fn evidence(
        &self,
        model: Model,
        limit: Limit<'_>,
        calls: &Calls,
    ) -> Option<Evidence> {
        let Found::NoOrder(NoOrder { op, could }) = &self.found else {
            return None;
        };
        let mut states = self.states.clone();
        let part = Part {
            operations: &self.operations,
            start: Some(self.start),
        };
        let limit = Limit {
            steps: limit.steps.min(WITNESS_STEPS),
            ..limit
        };
        let mut witness = part.witness(*op, &mut states, limit);
        let culprit = &self.operations[*op];
        let alone = witness.len() == 1;
        let parts = if alone {
            self.parts(culprit)
        } else {
            Vec::new()
        };
        let strange = alone && parts.is_empty();
        witness.extend(parts);
        let name = calls.process(culprit.process);
        let key = object(calls.key(self.key));
        let said = |id: u32| match self.kv {
            true => words::short(&format!("{:?}", self.states.name(id))),
            false => self.states.name(id).to_owned(),
        };
        // The search met what it had to try. What was not answered by then may have been there
        // as well, wherever no order of it was needed; not so what was seen, which had no order.
        let unanswered = self.operations.iter().filter(|operation| {
            operation.invoke < culprit.complete
                && (!operation.must || operation.complete > culprit.complete)
        });
        let more = unanswered.filter_map(|operation| operation.does.leaves());
        let more = more.filter(|id| culprit.does.finds() != Some(*id));
        // Where the search began in the midst anything may have been there; and what was there
        // until another operation ended it does not tell.
        let meanwhile = |other: &Operation| {
            let ended = culprit.invoke < other.complete && other.complete < culprit.complete;
            ended && other.does.leaves().is_some()
        };
        let is_open = could.is_empty()
            || could.contains(&ANOTHER)
            || (!self.kv && self.operations.iter().any(meanwhile));
        let could: BTreeSet<u32> = match is_open {
            true => BTreeSet::new(),
            false => could.iter().copied().chain(more).collect(),
        };
        let could: Vec<String> = could.iter().map(|id| said(*id)).collect();
        let only = match could.len() {
            0 => None,
            1..=5 => Some(words::either(&could)),
            more => Some(format!("one of {more} other values")),
        };
        let (sentence, expected) = match (culprit.does, &only) {
            (Does::Swap(from, to), Some(only)) => (
                format!(
                    "{name}'s cas of {key} from {} to {} succeeded, though it can only have held \
                     {only} then",
                    said(from),
                    said(to)
                ),
                "failed".to_owned(),
            ),
            (Does::See(seen), Some(only)) if !self.kv => (
                format!(
                    "{name} read {} of {key}, which can only have held {only} then",
                    said(seen)
                ),
                only.clone(),
            ),
            (Does::See(seen), _) if self.kv && strange => (
                format!(
                    "{name} got {} of {key}, and nobody had put or appended any part of it by then",
                    said(seen)
                ),
                "what the puts and appends made, in some order".to_owned(),
            ),
            (Does::See(seen), _) => (
                format!(
                    "{name} got {} of {key}, and no order of its {} explains that",
                    said(seen),
                    match model {
                        Model::Kv => "puts and appends",
                        _ => "writes",
                    }
                ),
                "what the puts and appends made, in some order".to_owned(),
            ),
            (Does::Swap(from, to), None) => (
                format!(
                    "{name}'s cas of {key} from {} to {} succeeded, and no order of its writes \
                     explains that",
                    said(from),
                    said(to)
                ),
                "failed".to_owned(),
            ),
            _ => (
                format!("{name}'s operation on {key} fits into no order"),
                "failed".to_owned(),
            ),
        };
        let events = witness.iter().flat_map(|at| {
            let operation = &self.operations[*at];
            [operation.invoke, operation.complete]
        });
        Some(Evidence::new(sentence, events, culprit.complete, expected))
    }
}

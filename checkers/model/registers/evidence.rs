//! Why a key that was searched has no order, in words and with the operations that show it.

use std::collections::BTreeSet;

use super::searched::Searched;
use super::{WITNESS_STEPS, object};
use crate::linearizable::search::NoOrder;
use crate::linearizable::witness::{ANOTHER, Part};
use crate::linearizable::{Does, Limit, NEVER, Operation};
use crate::model::calls::Calls;
use crate::model::words;
use crate::verdict::Evidence;

/// Of what could have made a part of a text, so many are shown.
const PARTS_SHOWN: usize = 8;

/// Of what could have been found, so many writes are shown, the last ones.
const WRITES_SHOWN: usize = 16;

impl Searched {
    pub(super) fn evidence(
        &self,
        NoOrder { op, could }: &NoOrder,
        limit: Limit<'_>,
        calls: &Calls,
    ) -> Evidence {
        let mut states = self.states.clone();
        let part = Part {
            operations: &self.operations,
            start: Some(self.start),
        };
        let limit = Limit {
            steps: limit.steps.min(WITNESS_STEPS),
            ..limit
        };
        let culprit = &self.operations[*op];
        let strange = self.is_strange(culprit);
        let witness = match strange {
            true => vec![*op],
            false => part.witness(*op, &mut states, limit),
        };
        let only = self.only(culprit, could);
        let because = match strange {
            true => None,
            false => self.because(culprit, &witness, calls),
        };
        let (mut sentence, expected) = self.sentence(culprit, (strange, only), calls);
        sentence.extend(because.into_iter().flat_map(|why| ["; ".to_owned(), why]));
        let shown = self.shown(*op, witness);
        let events = shown.iter().flat_map(|at| {
            let operation = &self.operations[*at];
            [operation.invoke, operation.complete]
        });
        let events = events.filter(|event| *event != NEVER);
        Evidence::new(sentence, events, culprit.complete, expected)
    }

    /// Whether nobody had begun to write what it found by then.
    fn is_strange(&self, culprit: &Operation) -> bool {
        let began = |other: &&Operation| other.invoke < culprit.complete;
        let found = culprit.does.finds();
        let mut others = self.operations.iter().filter(began);
        match found {
            Some(found) if !self.appends() && found != self.start => {
                others.all(|other| other.does.leaves() != Some(found))
            }
            Some(_) if self.appends() => {
                self.parts(culprit).is_empty() && found != Some(self.start)
            }
            _ => false,
        }
    }

    fn appends(&self) -> bool {
        let appends = |operation: &Operation| matches!(operation.does, Does::Append(_));
        self.operations.iter().any(appends)
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

    /// What could have been there instead, where that is known.
    ///
    /// The search met what it had to try. What was not answered by then may have been there
    /// as well, wherever no order of it was needed; not so what was seen, which had no order.
    fn only(&self, culprit: &Operation, could: &[u32]) -> Option<String> {
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
        let could: Vec<String> = could.iter().map(|id| self.said(*id)).collect();
        match could.len() {
            0 => None,
            1..=5 => Some(words::either(&could)),
            more => Some(format!("one of {more} other values")),
        }
    }

    fn said(&self, id: u32) -> String {
        match self.kv {
            true => words::short(&format!("{:?}", self.states.name(id))),
            false => self.states.name(id).to_owned(),
        }
    }

    /// What was found, and what should have been.
    fn sentence(
        &self,
        culprit: &Operation,
        (strange, only): (bool, Option<String>),
        calls: &Calls,
    ) -> (String, String) {
        let name = calls.process(culprit.process);
        let key = object(calls.key(self.key));
        let (read, writes) = match self.kv {
            true => ("got", "puts and appends"),
            false => ("read", "writes"),
        };
        let made = match self.kv {
            true => "what the puts and appends made, in some order",
            false => "what its writes made, in some order",
        };
        match (culprit.does, only) {
            (Does::Swap(from, to), only) => {
                let cas = format!(
                    "{name}'s cas of {key} from {} to {} succeeded",
                    self.said(from),
                    self.said(to)
                );
                let why = match only {
                    Some(only) => format!("though it can only have held {only} then"),
                    None if strange => {
                        format!("and nobody had written {} by then", self.said(from))
                    }
                    None => "and no order of its writes explains that".to_owned(),
                };
                (format!("{cas}, {why}"), "failed".to_owned())
            }
            (Does::See(seen), Some(only)) if !self.kv => (
                format!(
                    "{name} read {} of {key}, which can only have held {only} then",
                    self.said(seen)
                ),
                only,
            ),
            (Does::See(seen), _) => {
                let why = match strange {
                    true if self.appends() => {
                        "and nobody had put or appended any part of it by then".to_owned()
                    }
                    true if self.kv => "which nobody had put by then".to_owned(),
                    true => "which nobody had written by then".to_owned(),
                    false => format!("and no order of its {writes} explains that"),
                };
                let seen = self.said(seen);
                (
                    format!("{name} {read} {seen} of {key}, {why}"),
                    made.to_owned(),
                )
            }
            _ => (
                format!("{name}'s operation on {key} fits into no order"),
                "failed".to_owned(),
            ),
        }
    }

    /// Why that cannot be, where one operation before shows it: what was found had been
    /// overwritten, or an appended text is missing.
    fn because(&self, culprit: &Operation, witness: &[usize], calls: &Calls) -> Option<String> {
        let others: Vec<&Operation> = (witness.iter().map(|at| &self.operations[*at]))
            .filter(|other| other.invoke != culprit.invoke)
            .collect();
        let [other] = others[..] else { return None };
        if other.complete > culprit.invoke {
            return None;
        }
        // Between the beginning of the one and the end of the other.
        let between = |operation: &&Operation| {
            operation.invoke < culprit.complete && operation.complete > other.invoke
        };
        let who = calls.process(other.process);
        let found = culprit.does.finds()?;
        if let Does::Append(text) = other.does {
            let (seen, text) = (self.states.name(found), self.states.name(text));
            let mut between = self.operations.iter().filter(between);
            let is_put = |operation: &Operation| operation.does.leaves().is_some();
            let text_said = words::short(&format!("{text:?}"));
            return (!seen.contains(text) && !between.any(is_put)).then(|| {
                format!("{who} had appended {text_said} before, which no put can have replaced")
            });
        }
        let leaves = |operation: &&Operation| operation.does.leaves() == Some(found);
        let mut between = self.operations.iter().filter(between);
        if self.appends() || between.any(|operation| leaves(&operation)) {
            return None;
        }
        let last = (self.operations.iter().filter(leaves))
            .filter(|write| write.complete < other.invoke)
            .max_by_key(|write| write.complete);
        let since = match other.does {
            Does::Set(new) | Does::Swap(_, new) => {
                format!("had been overwritten by {who} with {}", self.said(new))
            }
            Does::See(new) if new == found => return None,
            Does::See(new) => format!("had been overwritten when {who} found {}", self.said(new)),
            Does::Append(_) => return None,
        };
        let found = self.said(found);
        Some(match last {
            Some(last) => {
                let writer = calls.process(last.process);
                format!("the last write of {found}, by {writer}, {since}")
            }
            None => format!("{found}, which was there at first, {since}"),
        })
    }

    /// The witness; with the writes of what its operations found that may lie in its time,
    /// and the last one before; and with what made a text that is wrong by itself.
    fn shown(&self, op: usize, witness: Vec<usize>) -> Vec<usize> {
        let culprit = &self.operations[op];
        let alone = witness.len() == 1;
        let mut shown: BTreeSet<usize> = witness.iter().copied().collect();
        if self.appends() {
            shown.extend(self.parts(culprit).into_iter().filter(|_| alone));
            return shown.into_iter().collect();
        }
        let from = witness.iter().map(|at| self.operations[*at].invoke).min();
        let from = from.unwrap_or(0);
        let found = |at: &usize| self.operations[*at].does.finds();
        let mut wanted: Vec<u32> = witness.iter().filter_map(found).collect();
        let mut asked: BTreeSet<u32> = BTreeSet::new();
        let mut writes: BTreeSet<usize> = BTreeSet::new();
        while let Some(value) = wanted.pop() {
            if !asked.insert(value) {
                continue;
            }
            let of_it = (self.operations.iter().enumerate()).filter(|(_, write)| {
                write.does.leaves() == Some(value) && write.invoke < culprit.complete
            });
            let (before, between): (Vec<_>, Vec<_>) =
                of_it.partition(|(_, write)| write.complete < from);
            let last = before.into_iter().max_by_key(|(_, write)| write.complete);
            writes.extend(last.map(|(at, _)| at));
            for (at, write) in between {
                writes.insert(at);
                wanted.extend(write.does.finds());
            }
        }
        shown.extend(writes.into_iter().rev().take(WRITES_SHOWN));
        shown.into_iter().collect()
    }
}

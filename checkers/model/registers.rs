//! `register-linearizable` of foreign histories: registers and texts by key.
//!
//! A register whose values are written once, as far as reads can tell, is judged in the
//! pass. One whose value is written again, one with `cas`, and a text that is appended
//! to are kept and searched at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use compact_str::ToCompactString;

use super::calls::{Call, Calls, Ended};
use super::{Budget, Model, keys, words};
use crate::history::{F, Kind, Name};
use crate::import::Value;
use crate::linearizable::search::{Found, NoOrder, TooMuch, search};
use crate::linearizable::states::States;
use crate::linearizable::witness::Part;
use crate::linearizable::{Does, Limit, NEVER, Operation};
use crate::register_linearizable::{self as unique, Act, Datum, TwiceWritten};
use crate::verdict::{Evidence, Verdict};

/// What a kept operation does; values are looked up when it is searched.
#[derive(Clone, Debug)]
enum Asked {
    /// Nothing that matters: a read without an answer, an operation that failed.
    Nothing,
    See(Option<Datum>),
    Set(Option<Datum>),
    Swap(Box<(Option<Datum>, Option<Datum>)>),
    Append(Name),
}

#[derive(Clone, Debug)]
struct Kept {
    invoke: u64,
    complete: u64,
    must: bool,
    process: u32,
    asked: Asked,
}

/// About what one kept operation takes.
const KEPT_BYTES: u64 = size_of::<Kept>() as u64 + 16;

/// About what a call or value takes that the pass holds.
const HELD_BYTES: u64 = 160;

/// What it may take to find the few operations that show a violation.
pub(super) const WITNESS_STEPS: u64 = 500_000;

/// How many calls end between two looks at the memory of the pass.
const LOOK_EVERY: u64 = 256;

#[derive(Default)]
struct Key {
    /// Whether it must be searched.
    searched: bool,
    kept: Vec<Kept>,
    /// By process.
    open: BTreeMap<u32, usize>,
    held: u64,
    looked: u64,
}

pub(super) struct Registers {
    model: Model,
    certain: bool,
    budget: Budget,
    keys: Vec<Key>,
    pass: unique::Registers,
    any: bool,
    kept: u64,
    /// The index from which on nothing is kept, as it did not fit.
    full: Option<u64>,
    held: u64,
    found: Option<Evidence>,
    unknown: Option<String>,
}

/// What is said of an operation that a model does not know.
pub(super) fn not_of(model: Model, f: &str) -> String {
    let knowing = Model::ALL
        .into_iter()
        .find(|other| other.operations().contains(&f));
    let hint = match knowing {
        Some(other) => format!("name the model {other}, or remove it"),
        None => "such a history is not judged here".to_owned(),
    };
    format!(
        "{f} is no operation of a {model}, which has {}: {hint}",
        model.operations().join(", ")
    )
}

impl Registers {
    pub fn new(model: Model, certain: bool, budget: Budget) -> Self {
        Registers {
            model,
            certain,
            budget,
            keys: Vec::new(),
            pass: unique::Registers::default(),
            any: false,
            kept: 0,
            full: None,
            held: 0,
            found: None,
            unknown: None,
        }
    }

    fn asked(&mut self, call: &Call) -> Result<Asked, String> {
        if self.model == Model::Register && call.f == "cas" && !self.certain {
            self.model = Model::CasRegister;
        }
        if !self.model.operations().contains(&call.f.as_str()) {
            return Err(not_of(self.model, &call.f));
        }
        let text = |value: &Value| match value {
            Value::Text(text) => Ok(text.clone()),
            Value::Int(_) | Value::Number(_) | Value::Bool(_) => Ok(value.to_compact_string()),
            _ => Err(format!("{} needs a text, and has {value}", call.f)),
        };
        Ok(match call.f.as_str() {
            "write" => Asked::Set(words::datum(&call.value)),
            "cas" => match untagged(&call.value) {
                Value::List(pair) if pair.len() == 2 => {
                    let (from, to) = (words::datum(&pair[0]), words::datum(&pair[1]));
                    Asked::Swap(Box::new((from, to)))
                }
                other => {
                    return Err(format!("cas needs a pair [from to], and has {other}"));
                }
            },
            "put" => Asked::Set(Some(Datum::Text(text(&call.value)?))),
            "append" => Asked::Append(text(&call.value)?),
            _ => Asked::Nothing,
        })
    }

    pub fn begins(&mut self, call: &Call) -> Result<(), String> {
        let asked = self.asked(call)?;
        if self.found.is_some() {
            return Ok(());
        }
        while self.keys.len() <= call.key {
            self.keys.push(Key {
                searched: self.model == Model::Kv,
                ..Key::default()
            });
            self.pass.add(object(call.key_name.as_deref()).into());
        }
        let key = &mut self.keys[call.key];
        if !key.searched {
            let twice = match &asked {
                Asked::Set(value) => {
                    let pass = &mut self.pass;
                    pass.writes(call.key, call.invoke, &call.name, value.clone())
                }
                Asked::Swap(_) => Err(TwiceWritten),
                _ => {
                    self.pass.reads(call.key, call.invoke);
                    Ok(())
                }
            };
            if twice == Err(TwiceWritten) {
                key.searched = true;
                self.pass.forgets(call.key);
                self.held -= key.held;
                key.held = 0;
            }
        }
        if self.full.is_none() {
            key.open.insert(call.process, key.kept.len());
            key.kept.push(Kept {
                invoke: call.invoke,
                complete: NEVER,
                must: false,
                process: call.process,
                asked,
            });
            self.kept += 1;
            if self.kept * KEPT_BYTES > self.budget.bytes {
                self.full = Some(call.invoke);
                for key in &mut self.keys {
                    key.kept = Vec::new();
                    key.open.clear();
                }
            }
        }
        Ok(())
    }

    pub fn ends(&mut self, ended: Ended<'_>) -> Result<(), String> {
        if self.found.is_some() {
            return Ok(());
        }
        let Ended {
            call,
            kind,
            complete,
            value,
            ..
        } = ended;
        let read = matches!(call.f.as_str(), "read" | "get");
        let seen = (read && kind == Kind::Ok).then(|| match (self.model, value) {
            (Model::Kv, Value::Nil) => Some(Datum::Text(Name::default())),
            (Model::Kv, value @ (Value::Int(_) | Value::Number(_) | Value::Bool(_))) => {
                Some(Datum::Text(value.to_compact_string()))
            }
            _ => words::datum(value),
        });
        self.any |= seen.is_some() || (call.f == "cas" && kind == Kind::Ok);
        let key = &mut self.keys[call.key];
        if let Some(place) = key.open.remove(&call.process) {
            let kept = &mut key.kept[place];
            match (kind, &seen) {
                (Kind::Fail, _) => kept.asked = Asked::Nothing,
                (Kind::Ok, _) => {
                    kept.complete = complete;
                    kept.must = true;
                    if let Some(seen) = &seen {
                        kept.asked = Asked::See(seen.clone());
                    }
                }
                _ => {}
            }
        }
        if key.searched {
            return Ok(());
        }
        let f = match (read, &call.value) {
            (true, _) => F::Read,
            (false, Value::Nil) => F::Delete,
            (false, _) => F::Write,
        };
        let act = Act {
            f,
            process: call.name,
            invoke: call.invoke,
            complete,
        };
        self.found = self.pass.completes(call.key, act, kind, seen).err();
        key.looked += 1;
        if key.looked.is_multiple_of(LOOK_EVERY) {
            let held = self.pass.remembered(call.key).things as u64;
            self.held = self.held + held - key.held;
            key.held = held;
            if self.held * HELD_BYTES > self.budget.bytes {
                self.unknown.get_or_insert_with(|| {
                    format!(
                        "{} operations are under way or were never answered at index {complete}, \
                         more than the budget of {} bytes holds; up to there the registers have \
                         an order",
                        self.held, self.budget.bytes
                    )
                });
            }
        }
        Ok(())
    }

    pub fn verdict(mut self, calls: &Calls) -> (Model, Verdict) {
        let verdict = self.decides(calls);
        (self.model, verdict)
    }

    fn decides(&mut self, calls: &Calls) -> Verdict {
        if let Some(evidence) = self.found.take() {
            return Verdict::Violated(evidence);
        }
        if let Some(why) = self.unknown.take() {
            return Verdict::Unknown(why);
        }
        let at_end = self.pass.ends();
        let numbered = std::mem::take(&mut self.keys).into_iter().enumerate();
        let to_search: Vec<(usize, Key)> = numbered.filter(|(_, key)| key.searched).collect();
        let count = to_search.len();
        let kept = self.kept * KEPT_BYTES;
        let at_once = self.budget.jobs.clamp(1, count.max(1)) as u64;
        let limit = Limit {
            steps: self.budget.steps,
            bytes: self.budget.bytes.saturating_sub(kept) / at_once,
        };
        let full = self.full;
        let kv = self.model == Model::Kv;
        // Where the first one goes wrong does not depend on which thread is there first.
        let until = AtomicU64::new(u64::MAX);
        let searched = match full {
            Some(_) => Vec::new(),
            None => keys::in_order(to_search, self.budget.jobs, |(at, key)| {
                let mut searched = Searched::of(at, &key.kept, kv);
                searched.search(limit, &until);
                searched
            }),
        };
        let first = (searched.iter())
            .filter_map(|key| Some((key.no_order()?, key)))
            .min_by_key(|(culprit, _)| *culprit);
        let evidence = match (at_end, first) {
            (Some(evidence), Some((culprit, _))) if evidence.culprit < culprit => Some(evidence),
            (evidence, None) => evidence,
            (_, Some((_, key))) => key.evidence(self.model, limit, calls),
        };
        if let Some(evidence) = evidence {
            return Verdict::Violated(evidence);
        }
        if let Some(full) = full.filter(|_| count > 0) {
            return Verdict::Unknown(format!(
                "the history does not fit into the budget of {} bytes from index {full} on, and \
                 {count} of its keys must be kept, as a value is written again or found by cas",
                self.budget.bytes
            ));
        }
        let undecided: Vec<&Searched> = (searched.iter())
            .filter(|key| matches!(key.found, Found::TooMuch(..)))
            .collect();
        if let Some(key) = undecided.first() {
            let Found::TooMuch(what, before) = &key.found else {
                unreachable!("only those were taken");
            };
            let budget = match what {
                TooMuch::Steps => format!("{} steps", limit.steps),
                TooMuch::Bytes => format!("{} bytes", limit.bytes),
            };
            return Verdict::Unknown(format!(
                "the operations of {} have an order up to index {before}, where the budget of \
                 {budget} ended; {} of {count} keys searched are decided, and have one",
                object(calls.key(key.key)),
                count - undecided.len()
            ));
        }
        if !self.any {
            let why = "no read was answered in this history".to_owned();
            return Verdict::NotClaimed(why);
        }
        Verdict::Valid
    }
}

fn untagged(value: &Value) -> &Value {
    match value {
        Value::Tagged(_, value) => untagged(value),
        value => value,
    }
}

/// How a key is named in a sentence.
fn object(key: Option<&str>) -> String {
    key.map_or("the register".to_owned(), |key| format!("key {key}"))
}

/// A key that is searched.
struct Searched {
    key: usize,
    kv: bool,
    operations: Vec<Operation>,
    states: States,
    start: u32,
    found: Found,
}

impl Searched {
    fn of(key: usize, kept: &[Kept], kv: bool) -> Self {
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
    fn search(&mut self, limit: Limit, until: &AtomicU64) {
        let starts = [self.start];
        self.found = search(
            &self.operations,
            &starts,
            &mut self.states,
            limit,
            until,
            &mut 0,
        );
        if let Some(culprit) = self.no_order() {
            until.fetch_min(culprit, Ordering::Relaxed);
        }
    }

    /// The completion that has no order.
    fn no_order(&self) -> Option<u64> {
        match &self.found {
            Found::NoOrder(NoOrder { op, .. }) => Some(self.operations[*op].complete),
            Found::Order | Found::TooMuch(..) => None,
        }
    }

    fn evidence(&self, model: Model, limit: Limit, calls: &Calls) -> Option<Evidence> {
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
        let witness = part.witness(*op, &mut states, limit);
        let culprit = &self.operations[*op];
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
        let could: BTreeSet<u32> = match could.is_empty() {
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

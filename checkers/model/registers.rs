//! `register-linearizable` of foreign histories: registers and texts by key.
//!
//! A register whose values are written once, as far as reads can tell, is judged in the
//! pass. One whose value is written again, one with `cas`, and a text that is appended
//! to are kept and searched at the end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};

use compact_str::ToCompactString;

use super::calls::{Call, Calls, Ended};
use super::{Model, keys, words};
use crate::budget::Budget;
use crate::history::{F, Kind, Name};
use crate::import::Value;
use crate::linearizable::search::{Found, TooMuch};
use crate::linearizable::{Limit, NEVER};
use crate::register_linearizable::{self as unique, Act, Datum, TwiceWritten};
use crate::verdict::{Evidence, Verdict};

mod searched;

use searched::Searched;

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

impl Asked {
    /// About what its values take beside it.
    fn bytes(&self) -> u64 {
        let long = |text: &Name| {
            if text.is_heap_allocated() {
                text.len()
            } else {
                0
            }
        };
        let of = |value: &Option<Datum>| match value {
            Some(Datum::Text(text) | Datum::Other(text)) => long(text),
            None => 0,
        };
        let bytes = match self {
            Asked::Nothing => 0,
            Asked::See(value) | Asked::Set(value) => of(value),
            Asked::Swap(pair) => size_of_val(&**pair) + of(&pair.0) + of(&pair.1),
            Asked::Append(text) => long(text),
        };
        bytes as u64
    }
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
    /// Bytes of what is kept, about.
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
        // Of those two alone a lock is guessed.
        _ if matches!(f, "acquire" | "release") => {
            "name the model mutex, or lease where data is written under it".to_owned()
        }
        Some(other) => format!("name the model {other}, or remove it"),
        None => "such a history is not judged here".to_owned(),
    };
    format!(
        "{f} is no operation of {}, which has {}: {hint}",
        crate::units::a(model.name()),
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
            self.kept += KEPT_BYTES + asked.bytes();
            key.open.insert(call.process, key.kept.len());
            key.kept.push(Kept {
                invoke: call.invoke,
                complete: NEVER,
                must: false,
                process: call.process,
                asked,
            });
            self.fits(call.invoke);
        }
        Ok(())
    }

    /// What is kept is forgotten once it is too much.
    fn fits(&mut self, index: u64) {
        if self.kept > self.budget.bytes {
            self.full = Some(index);
            self.kept = 0;
            for key in &mut self.keys {
                key.kept = Vec::new();
                key.open.clear();
            }
        }
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
                        self.kept += kept.asked.bytes();
                    }
                }
                _ => {}
            }
            self.fits(complete);
        }
        let key = &mut self.keys[call.key];
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
                        "{} operations are under way or were never answered at index {complete}; \
                         up to there the registers have an order: {}",
                        self.held,
                        self.budget.more_memory()
                    )
                });
            }
        }
        Ok(())
    }

    pub fn convicted(&self) -> bool {
        self.found.is_some()
    }

    pub fn gives_up(&mut self, why: String) {
        if self.found.is_none() {
            self.unknown.get_or_insert(why);
        }
    }

    pub fn verdict(mut self, calls: &Calls, stop: &AtomicBool) -> (Model, Verdict) {
        let verdict = self.decides(calls, stop);
        (self.model, verdict)
    }

    fn decides(&mut self, calls: &Calls, stop: &AtomicBool) -> Verdict {
        if let Some(evidence) = self.found.take() {
            return Verdict::Violated(evidence);
        }
        if let Some(why) = self.unknown.take() {
            return Verdict::Unknown(why);
        }
        let at_end = self.pass.ends().map(|(_, evidence)| evidence);
        let numbered = std::mem::take(&mut self.keys).into_iter().enumerate();
        let to_search: Vec<(usize, Key)> = numbered.filter(|(_, key)| key.searched).collect();
        let count = to_search.len();
        let at_once = self.budget.jobs.clamp(1, count.max(1)) as u64;
        let limit = Limit {
            steps: self.budget.steps,
            bytes: self.budget.bytes.saturating_sub(self.kept) / at_once,
            stop,
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
                "the history does not fit into memory from index {full} on, and {count} of its \
                 keys must be kept, as a value is written again, found by cas or appended to: {}",
                self.budget.more_memory()
            ));
        }
        let undecided: Vec<&Searched> = (searched.iter())
            .filter(|key| matches!(key.found, Found::TooMuch(..)))
            .collect();
        if let Some(key) = undecided.first() {
            let Found::TooMuch(what, before) = &key.found else {
                unreachable!("only those were taken");
            };
            let ended = match what {
                TooMuch::Steps => format!(
                    "{} steps were not enough: give more (--max-steps)",
                    limit.steps
                ),
                TooMuch::Bytes => format!(
                    "memory was not enough: give more than {} bytes (--max-memory)",
                    self.budget.bytes
                ),
                TooMuch::Time => "the time was over".to_owned(),
            };
            return Verdict::Unknown(format!(
                "the operations of {} have an order up to index {before}, and {} of {count} keys \
                 searched are decided, and have one; {ended}",
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

//! `register-linearizable` of foreign histories: registers and texts by key.
//!
//! A register whose values are written once, as far as reads can tell, is judged in the
//! pass. One whose value is written again, one with `cas`, and a text that is appended
//! to are kept and searched at the end. A key takes little as long as its calls are few.

use std::sync::atomic::AtomicBool;

use compact_str::ToCompactString;

use super::calls::{Call, Calls, Ended};
use super::{Model, words};
use crate::budget::Budget;
use crate::history::{F, Kind, Name};
use crate::import::Value;
use crate::register_linearizable::{self as unique, Act, Datum, TwiceWritten};
use crate::verdict::{Evidence, Verdict};

mod deciding;
mod evidence;
mod key;
mod searched;

use key::{Kept, Key, Passed, Replayed, Way, YOUNG};

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

/// About what a key takes beside its operations.
const KEY_BYTES: u64 = size_of::<Key>() as u64 + 64;

/// About what a key takes that the pass judges, beside what it holds.
const PASSED_BYTES: u64 = 6_000;

/// About what a call or value takes that the pass holds.
const HELD_BYTES: u64 = 160;

/// What it may take to find the few operations that show a violation.
pub(super) const WITNESS_STEPS: u64 = 500_000;

/// How many calls end between two looks at the memory of the pass.
const LOOK_EVERY: u64 = 256;

pub(super) struct Registers {
    model: Model,
    certain: bool,
    budget: Budget,
    keys: Vec<Key>,
    pass: unique::Registers,
    /// Processes by number, as they are named in a sentence.
    names: Vec<Name>,
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
            names: Vec::new(),
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
        while self.names.len() <= call.process as usize {
            self.names.push(Name::default());
        }
        self.names[call.process as usize].clone_from(&call.name);
        while self.keys.len() <= call.key {
            self.keys.push(match self.model {
                Model::Kv => Key::searched(),
                _ => Key::default(),
            });
        }
        let key = &mut self.keys[call.key];
        if matches!(key.way, Way::Young) && key.kept.len() == YOUNG {
            let number = self.pass.add(object(call.key_name.as_deref()).into());
            // It has an order so far, as whatever ended was judged then.
            key.replays(&mut self.pass, number, &self.names);
            key.way = Way::Passed(Box::new(Passed {
                number,
                held: 0,
                looked: 0,
            }));
            if self.full.is_some() {
                self.kept -= kept_bytes(key);
                key.forgets();
            }
        }
        let mut twice = false;
        if let Way::Passed(passed) = &key.way {
            twice = match &asked {
                Asked::Set(value) => {
                    let pass = &mut self.pass;
                    let written =
                        pass.writes(passed.number, call.invoke, &call.name, value.clone());
                    written == Err(TwiceWritten)
                }
                Asked::Swap(_) => true,
                _ => {
                    self.pass.reads(passed.number, call.invoke);
                    false
                }
            };
            if twice {
                self.pass.forgets(passed.number);
                self.held -= passed.held;
            }
        }
        if self.full.is_none() || matches!(key.way, Way::Young) {
            self.kept += KEPT_BYTES + asked.bytes();
            let swaps = matches!(asked, Asked::Swap(_));
            key.keeps(call.process, call.invoke, asked);
            if matches!(key.way, Way::Young) {
                let name = || object(call.key_name.as_deref()).into();
                let replayed = || key.judges(name, &self.names, false);
                twice = swaps || (key.repeats() && matches!(replayed(), Replayed::Twice));
            }
        }
        if twice {
            key.way = Way::Searched;
            if self.full.is_some() {
                self.kept -= kept_bytes(key);
                key.forgets();
            }
        }
        Ok(())
    }

    /// About what it all takes.
    pub fn bytes(&self) -> u64 {
        self.kept + self.keys.len() as u64 * KEY_BYTES + self.pass.count() as u64 * PASSED_BYTES
    }

    /// Forgets what was kept to be searched, as it is too much from this index on.
    pub fn sheds(&mut self, index: u64) {
        if self.full.is_some() {
            return;
        }
        self.full = Some(index);
        for key in &mut self.keys {
            if !matches!(key.way, Way::Young) {
                self.kept -= kept_bytes(key);
                key.forgets();
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
        if let Some(kept) = key.ends(call.process) {
            (kept.complete, kept.kind) = (complete, Some(kind));
            if let Some(seen) = &seen {
                kept.asked = Asked::See(seen.clone());
                self.kept += kept.asked.bytes();
            }
        }
        let passed = match &mut key.way {
            Way::Passed(passed) => passed,
            Way::Young => {
                let name = || object(call.key_name.as_deref()).into();
                if let Replayed::Wrong(evidence) = key.judges(name, &self.names, false) {
                    self.found = Some(evidence);
                }
                return Ok(());
            }
            Way::Searched => return Ok(()),
        };
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
        self.found = self.pass.completes(passed.number, act, kind, seen).err();
        passed.looked += 1;
        if passed.looked.is_multiple_of(LOOK_EVERY) {
            let held = self.pass.remembered(passed.number).things as u64;
            self.held = self.held + held - passed.held;
            passed.held = held;
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
}

/// About what is kept of a key.
fn kept_bytes(key: &Key) -> u64 {
    let bytes = |kept: &Kept| KEPT_BYTES + kept.asked.bytes();
    key.kept.iter().map(bytes).sum()
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

//! Which model a history is of, told by its first operations.

use std::collections::VecDeque;

use super::{JudgeError, Model, misfit};
use crate::history::Kind;
use crate::import::{Entry, Value};

/// How many lines are read ahead at most.
const AHEAD: usize = 1_024;

/// A history whose model is known, from its first line on.
pub struct Opening<I> {
    /// The model.
    pub model: Model,
    /// Whether it was named; a register that was not may turn out to know `cas`.
    pub certain: bool,
    /// All of its lines.
    pub entries: I,
}

/// Tells a history's model by its first operations, reading no more of it than that
/// takes, at most 1,024 lines; `named` is taken as it is.
///
/// `renew` and `fence` tell a lease, `get`, `put` and `append` a kv, `cas` a
/// cas-register, `read` and `write` alone a register; `acquire` and `release` a mutex,
/// or a fenced one where an answered acquire brings a token; these and writes a lease.
///
/// # Errors
///
/// What the entries' reader reports; an operation of no model; no operation at all.
pub fn opening<E, I: Iterator<Item = Result<Entry, E>>>(
    mut entries: I,
    named: Option<Model>,
) -> Result<Opening<impl Iterator<Item = Result<Entry, E>>>, JudgeError<E>> {
    let mut read = VecDeque::new();
    let mut told = named;
    let mut probably = None;
    while told.is_none()
        && read.len() < AHEAD
        && let Some(entry) = entries.next()
    {
        let entry = entry.map_err(JudgeError::Read)?;
        if entry.process != "nemesis" {
            told = tells(&entry, &mut probably)?;
        }
        read.push_back(Ok(entry));
    }
    let model = told.or(probably).ok_or(JudgeError::NoModel)?;
    Ok(Opening {
        model,
        certain: named.is_some(),
        entries: read.into_iter().chain(entries),
    })
}

/// The model, if this line tells it; else what it may be.
fn tells<E>(entry: &Entry, probably: &mut Option<Model>) -> Result<Option<Model>, JudgeError<E>> {
    let lock = matches!(probably, Some(Model::Mutex | Model::FencedMutex));
    Ok(match (entry.kind, entry.f.as_str()) {
        (_, "renew" | "fence") => Some(Model::Lease),
        (_, "cas") => Some(Model::CasRegister),
        (_, "get" | "put" | "append") => Some(Model::Kv),
        (Kind::Ok, "acquire") => {
            if let Some(why) = no_token(entry.token.as_ref(), &entry.value) {
                return Err(misfit(entry, why));
            }
            // A lease's first write may be a while away.
            if token(entry.token.as_ref().unwrap_or(&entry.value)).is_some() {
                *probably = Some(Model::FencedMutex);
            }
            None
        }
        // Who writes under a lock has a lease.
        (_, "read" | "write" | "delete") if lock => Some(Model::Lease),
        (_, "acquire" | "release") if *probably == Some(Model::Register) => Some(Model::Lease),
        (_, "acquire" | "release") => {
            probably.get_or_insert(Model::Mutex);
            None
        }
        (_, "read" | "write") => {
            *probably = Some(Model::Register);
            None
        }
        (Kind::Invoke, f) => return Err(misfit(entry, unsupported(f))),
        _ => None,
    })
}

/// What is said of an operation that no model knows.
pub(super) fn unsupported(f: &str) -> String {
    let models = Model::ALL.map(|model| format!("{model} ({})", model.operations().join(", ")));
    format!(
        "{f} is an operation of no model that is judged here: {}",
        models.join(", ")
    )
}

/// What is said where an acquire brings a token that cannot be read: a lock whose tokens are
/// passed over would be judged as one without.
pub(super) fn no_token(apart: Option<&Value>, value: &Value) -> Option<String> {
    let is_number = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_digit()) && text.parse::<f64>().is_ok()
    };
    let (given, value) = match (apart, value) {
        (Some(apart), _) => (true, apart),
        (None, Value::Tagged(_, value)) => return no_token(None, value),
        (None, Value::List(pair)) if pair.len() == 2 => return no_token(None, &pair[1]),
        (None, Value::Map(map)) => (true, TOKEN_KEYS.into_iter().find_map(|key| map.get(key))?),
        (None, Value::Text(text)) => (is_number(text), value),
        (None, value) => (matches!(value, Value::Number(_) | Value::Int(..0)), value),
    };
    (given && *value != Value::Nil && token(value).is_none()).then(|| {
        format!(
            "{value} is no fencing token: they are whole numbers from 0 to {}; write it so, or \
             leave it out and name the model mutex",
            i64::MAX
        )
    })
}

const TOKEN_KEYS: [&str; 4] = ["token", "fence", "fencing-token", "fencing_token"];

/// The token that an acquire was answered with.
pub(super) fn token(value: &Value) -> Option<i64> {
    match value {
        Value::Int(token @ 0..) => Some(*token),
        Value::Tagged(_, value) => token(value),
        Value::List(pair) if pair.len() == 2 => token(&pair[1]),
        Value::Map(map) => TOKEN_KEYS
            .into_iter()
            .find_map(|name| token(map.get(name)?)),
        _ => None,
    }
}

//! Which lock an acquire or a release is of, as its value says.

use std::collections::BTreeMap;

use crate::history::{Kind, Name};
use crate::import::{Entry, Value};

/// The fields of a map that name a lock or lease, the first that is there.
const NAMES: [&str; 3] = ["lease", "lock", "key"];

/// The fields that tell of who asks, and how: not of what.
const OTHERS: [&str; 13] = [
    "client",
    "fence",
    "fencing-token",
    "fencing_token",
    "holder",
    "node",
    "owner",
    "process",
    "request",
    "thread",
    "token",
    "ttl",
    "uid",
];

pub(super) fn named(fields: &BTreeMap<Name, Value>) -> Option<&Value> {
    let mut there = NAMES.iter().filter_map(|name| fields.get(*name));
    there.find(|value| **value != Value::Nil)
}

/// A lock's name stands apart.
pub(super) fn name(entry: &mut Entry) {
    if entry.key.is_none()
        && let Value::Map(fields) = &entry.value
    {
        entry.key = named(fields).cloned();
    }
}

/// What the calls of a history without keys say beside, which may be which lock they mean.
#[derive(Default)]
pub(super) struct Said(Option<(Value, Name, u64)>);

impl Said {
    pub fn asks(&mut self, entry: &Entry) -> Result<(), String> {
        let is_acquire = entry.f == "acquire";
        let said = match &entry.value {
            // A token stands there in the others.
            Value::Int(_) | Value::Number(_) | Value::List(_) | Value::Set(_) if is_acquire => {
                entry.value.clone()
            }
            Value::Text(text) | Value::Word(text) if *text != entry.process => entry.value.clone(),
            Value::Map(fields) if is_acquire => {
                let others = |name: &Name| OTHERS.contains(&name.as_str());
                let rest = fields.iter().filter(|(name, _)| !others(name));
                Value::Map(rest.map(|(k, v)| (k.clone(), v.clone())).collect())
            }
            _ => return Ok(()),
        };
        self.says(said, entry)
    }

    /// The answer may name it alone.
    pub fn answered(&mut self, entry: &Entry) -> Result<(), String> {
        match (entry.kind, &entry.value) {
            (Kind::Ok, Value::Map(fields)) if entry.f == "acquire" => match named(fields) {
                Some(lock) => self.says(lock.clone(), entry),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn says(&mut self, said: Value, entry: &Entry) -> Result<(), String> {
        let (first, f, line) = self
            .0
            .get_or_insert_with(|| (said.clone(), entry.f.clone(), entry.place.line));
        if *first == said {
            return Ok(());
        }
        Err(format!(
            "this {} says {said}, and the {f} of line {line} says {first}: locks are told apart \
             by their keys; name each by its key (the field or column 'key', or :lock in a map), \
             or leave out what names no lock",
            entry.f
        ))
    }
}

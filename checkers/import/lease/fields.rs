//! What an entry carries: its lease, token, key, data and error.

use serde_json::json;

use crate::history::{F, Failure, Kind, Name, Token};
use crate::import::{Entry, Problem, Value};

/// The lease of an entry that names none.
pub(super) const LEASE: &str = "lease";
/// The key of an entry that names none.
const KEY: &str = "value";

/// The lease that it names itself.
pub(super) fn lease(entry: &Entry) -> Option<Name> {
    let of_data = matches!(&*entry.f, "read" | "write" | "delete");
    let named = match &entry.value {
        Value::Map(fields) => fields.get("lease"),
        _ => None,
    };
    let named = named.or(entry.key.as_ref().filter(|_| !of_data));
    named.map(text)
}

pub(super) fn token(entry: &Entry, f: F) -> Result<Option<Token>, Problem> {
    let alone = match f {
        F::Acquire => entry.kind == Kind::Ok,
        F::Renew | F::Release | F::Fence => true,
        F::Write | F::Delete | F::Read => false,
    };
    let given = match (&entry.token, &entry.value) {
        (Some(token), _) => Some(token),
        (None, Value::Map(fields)) => fields.get("token").or(fields.get("fence")),
        (None, value @ (Value::Int(_) | Value::Number(_))) if alone => Some(value),
        _ => None,
    };
    match given {
        None | Some(Value::Nil) => Ok(None),
        Some(value) => match whole(value) {
            Some(token) => Ok(Some(token)),
            None => {
                let what = format!(
                    "{value} is no fencing token: they are whole numbers from 0 to {}",
                    Token::MAX
                );
                Err(Problem::field("token", what))
            }
        },
    }
}

pub(super) fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Number(number) => number.parse().ok(),
        _ => None,
    }
}

/// The key of data, and the data.
pub(super) fn datum(entry: &Entry) -> (Name, &Value) {
    match (&entry.key, &entry.value) {
        (key, Value::Map(fields)) if fields.contains_key("value") || fields.contains_key("key") => {
            let key = key.as_ref().or(fields.get("key"));
            (
                key.map_or_else(|| KEY.into(), text),
                fields.get("value").unwrap_or(&Value::Nil),
            )
        }
        (Some(key), value) => (text(key), value),
        (None, value) => (KEY.into(), value),
    }
}

pub(super) fn text(value: &Value) -> Name {
    value.name().unwrap_or_else(|| value.to_string().into())
}

pub(super) fn failure(error: &Value) -> Result<Failure, Problem> {
    Ok(match error {
        Value::Map(fields) => {
            let number = |name: &'static str| match fields.get(name) {
                None | Some(Value::Nil) => Ok(None),
                Some(value) => whole(value).map(Some).ok_or_else(|| {
                    Problem::field("error", format!("{name} {value} is no fencing token"))
                }),
            };
            let kind = fields.get("kind").or(fields.get("type"));
            Failure {
                kind: kind.map_or_else(|| error.to_string().into(), text),
                presented: number("presented")?,
                seen: number("seen")?,
            }
        }
        // [:retry-failure "…"]
        Value::List(items) => Failure::new(items.first().map_or_else(Name::default, text)),
        word => Failure::new(text(word)),
    })
}

/// A value as JSON has it. Different values stay different.
pub(super) fn plain(value: &Value) -> serde_json::Value {
    match value {
        Value::Nil => serde_json::Value::Null,
        Value::Bool(value) => json!(value),
        Value::Int(number) => json!(number),
        Value::Text(text) => json!(text),
        // JSON has one kind of text.
        Value::Word(word) => json!(format!(":{word}")),
        Value::Number(number) => match number.parse::<u64>() {
            Ok(number) => json!(number),
            Err(_) => json!({"number": number}),
        },
        Value::List(items) => items.iter().map(plain).collect(),
        Value::Set(items) => json!({"set": items.iter().map(plain).collect::<Vec<_>>()}),
        Value::Map(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| (key.to_string(), plain(value)));
            serde_json::Value::Object(fields.collect())
        }
        Value::Tagged(tag, value) => json!({tag.as_str(): plain(value)}),
    }
}

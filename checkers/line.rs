//! One line of JSON to one event.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::history::{
    Answer, Body, Event, F, Failure, Kind, NEMESIS, Name, Observation, Op, Token,
};
use crate::reader::Problem;

/// The fields of a line; `value` waits until `f` tells what it is.
#[derive(Deserialize)]
struct Line<'a> {
    index: u64,
    time: u64,
    process: Name,
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    call: Option<u64>,
    #[serde(borrow)]
    f: Cow<'a, str>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Failure>,
}

/// Reads one event; whether it fits into its history is not judged here.
pub(crate) fn event(text: &str) -> Result<Event, Problem> {
    let line: Line<'_> = serde_json::from_str(text).map_err(|error| {
        if error.classify() != Category::Data {
            let said = error.to_string();
            // The line is ours to count: to serde there is but one.
            let what = said
                .rsplit_once(" at line ")
                .map_or(&*said, |(what, _)| what);
            let column = error.column();
            return Problem::NotJson(format!(
                "{what} at column {column}; mend or remove the line"
            ));
        }
        match number_too_large(text) {
            Some(number) => Problem::NumberTooLarge(number.to_owned()),
            None => Problem::Field(what_is_wrong(text, &error)),
        }
    })?;
    let value = line.value.map_or("null", RawValue::get);
    let body = if line.process == NEMESIS {
        Body::Nemesis(line.f.as_ref().into(), any(&line.f, value)?)
    } else if let Some(f) = F::of_name(&line.f) {
        match line.kind {
            Kind::Invoke => Body::Invoke(op(f, value)?),
            _ => Body::Complete(f, answer(f, value)?),
        }
    } else {
        match observation(&line.f, value)? {
            Some(seen) if line.kind != Kind::Info => {
                return Err(Problem::ObservationType(seen.name()));
            }
            Some(seen) => Body::Observed(seen),
            None if line.kind != Kind::Info => {
                return Err(Problem::UnknownCall(line.f.into_owned()));
            }
            None => Body::Foreign(line.f.as_ref().into(), any(&line.f, value)?),
        }
    };
    Ok(Event {
        index: line.index,
        time: line.time,
        process: line.process,
        kind: line.kind,
        call: line.call,
        body,
        error: line.error,
    })
}

fn op(f: F, value: &str) -> Result<Op, Problem> {
    let op = match f {
        F::Acquire => Op::Acquire(typed(f.name(), value)?),
        F::Renew => Op::Renew(typed(f.name(), value)?),
        F::Release => Op::Release(typed(f.name(), value)?),
        F::Fence => Op::Fence(typed(f.name(), value)?),
        F::Write => {
            check_numbers(value)?;
            Op::Write(typed(f.name(), value)?)
        }
        F::Delete => Op::Delete(typed(f.name(), value)?),
        F::Read => Op::Read(typed(f.name(), value)?),
    };
    Ok(op)
}

fn answer(f: F, value: &str) -> Result<Answer, Problem> {
    #[derive(Deserialize)]
    struct Acquired {
        #[serde(default)]
        token: Option<Token>,
    }
    #[derive(Deserialize)]
    struct Found<'a> {
        #[serde(borrow, default)]
        value: Maybe<'a>,
    }
    /// Tells a null value from a missing one.
    #[derive(Default)]
    struct Maybe<'a>(Option<&'a RawValue>);
    impl<'de: 'a, 'a> Deserialize<'de> for Maybe<'a> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            <&'a RawValue>::deserialize(deserializer).map(|raw| Maybe(Some(raw)))
        }
    }
    /// Some systems echo the call; there is nothing in it to keep.
    #[derive(Deserialize)]
    struct Echo {}

    if value == "null" {
        return Ok(Answer::None);
    }
    match f {
        F::Acquire => {
            let acquired: Acquired = typed(f.name(), value)?;
            Ok(acquired.token.map_or(Answer::None, Answer::Token))
        }
        F::Read => {
            let found: Found<'_> = typed(f.name(), value)?;
            let Some(raw) = found.value.0 else {
                return Ok(Answer::None);
            };
            Ok(Answer::Value(any(f.name(), raw.get())?))
        }
        _ => {
            let Echo {} = typed(f.name(), value)?;
            Ok(Answer::None)
        }
    }
}

fn observation(f: &str, value: &str) -> Result<Option<Observation>, Problem> {
    let seen = match f {
        "lead" => Observation::Lead(typed(f, value)?),
        "follow" => Observation::Follow(typed(f, value)?),
        "granted" => Observation::Granted(typed(f, value)?),
        "renewed" => Observation::Renewed(typed(f, value)?),
        "released" => Observation::Released(typed(f, value)?),
        "expired" => Observation::Expired(typed(f, value)?),
        "denied" => Observation::Denied(typed(f, value)?),
        "recovered" => recovered(value)?,
        "restored" => Observation::Restored(typed(f, value)?),
        "applied" => {
            check_numbers(value)?;
            Observation::Applied(typed(f, value)?)
        }
        "fenced" => Observation::Fenced(typed(f, value)?),
        "refused" => Observation::Refused(typed(f, value)?),
        "dropped" => Observation::Dropped(typed(f, value)?),
        _ => return Ok(None),
    };
    Ok(Some(seen))
}

/// The store's and storage's share a name; what they hold tells them apart.
fn recovered(value: &str) -> Result<Observation, Problem> {
    #[derive(Deserialize)]
    struct Shape<'a> {
        #[serde(borrow, default)]
        leases: Option<&'a RawValue>,
        #[serde(borrow, default)]
        highest: Option<&'a RawValue>,
    }
    let f = "recovered";
    let shape: Shape<'_> = typed(f, value)?;
    match (shape.leases, shape.highest) {
        (Some(_), None) => Ok(Observation::StoreRecovered(typed(f, value)?)),
        (None, Some(_)) => Ok(Observation::StorageRecovered(typed(f, value)?)),
        _ => Err(Problem::Value {
            f: f.to_owned(),
            what: "it holds `leases` (a store's) or `highest` (storage's), one of them".to_owned(),
        }),
    }
}

fn typed<'a, T: Deserialize<'a>>(f: &str, value: &'a str) -> Result<T, Problem> {
    serde_json::from_str(value).map_err(|error| match number_too_large(value) {
        Some(number) => Problem::NumberTooLarge(number.to_owned()),
        None => Problem::Value {
            f: f.to_owned(),
            what: what_is_wrong(value, &error),
        },
    })
}

fn any(f: &str, value: &str) -> Result<Value, Problem> {
    check_numbers(value)?;
    typed(f, value)
}

/// serde_json would make floats of them, and two large values might become one.
fn check_numbers(value: &str) -> Result<(), Problem> {
    match number_too_large(value) {
        Some(number) => Err(Problem::NumberTooLarge(number.to_owned())),
        None => Ok(()),
    }
}

/// The first integer in a JSON text that fits neither u64 nor i64.
pub(crate) fn number_too_large(json: &str) -> Option<&str> {
    // Shorter texts have no room for one.
    if json.len() < 20 {
        return None;
    }
    let bytes = json.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let rest = &bytes[at..];
                let in_number =
                    |b: &u8| matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let length = rest
                    .iter()
                    .position(|b| !in_number(b))
                    .unwrap_or(rest.len());
                let number = &json[at..at + length];
                let integer = !number.contains(['.', 'e', 'E']);
                if integer
                    && length >= 20
                    && number.parse::<u64>().is_err()
                    && number.parse::<i64>().is_err()
                {
                    return Some(number);
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

/// The index after the string that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() {
        match bytes[end] {
            b'"' => return end + 1,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    end
}

/// serde's message, with the name of the field at which it was found.
pub(crate) fn what_is_wrong(json: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message
        .rsplit_once(" at line ")
        .map_or(message.as_str(), |(what, _)| what);
    if message.starts_with("missing field") {
        return message.to_owned();
    }
    match last_key(json, error.column()) {
        Some(key) => format!("field `{key}`: {message}"),
        None => message.to_owned(),
    }
}

/// The last key of a JSON text that begins before a column.
fn last_key(json: &str, column: usize) -> Option<&str> {
    let bytes = json.as_bytes();
    let (mut at, mut key) = (0, None);
    while at < bytes.len() && at < column {
        if bytes[at] != b'"' {
            at += 1;
            continue;
        }
        let end = end_of_string(bytes, at).min(bytes.len());
        let after = bytes[end..].iter().find(|b| !b.is_ascii_whitespace());
        if after == Some(&b':') {
            key = json.get(at + 1..end - 1);
        }
        at = end;
    }
    key
}

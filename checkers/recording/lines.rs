//! The fields of a span or an event to one event of a history, or to a sentence that says
//! what is wrong with them. What a field must be is the reader's to say.

use serde_json::{Map, Value, json};

use super::TARGET;
use crate::history::{Body, Event, F, NEMESIS, Name, Observation};
use crate::line;
use crate::writer::event_line;

/// The field that completes a call.
pub(super) const OUTCOME: &str = "outcome";

type Fields = Map<String, Value>;

/// What a call asks for. Index, time and call are the log's to give.
pub(super) fn invoke(f: &str, mut fields: Fields) -> Result<Event, String> {
    let span = format!("the span `{f}`");
    if F::of_name(f).is_none() {
        let calls = "acquire, renew, release, fence, write, delete and read";
        return Err(format!(
            "{span} of target {TARGET} is no call: the calls are {calls}"
        ));
    }
    if fields.contains_key(OUTCOME) {
        return Err(format!(
            "{span} is opened with an `{OUTCOME}`: record it when the answer is there"
        ));
    }
    let process = process(&span, &mut fields)?;
    event(&span, &process, "invoke", f, fields, None)
}

/// A span that cannot take its call's outcome.
pub(super) fn no_outcome(f: &str) -> String {
    format!(
        "the span `{f}` has no field `{OUTCOME}`, and tracing drops what is recorded into a \
         field that is not there: open it with `{OUTCOME} = tracing::field::Empty`"
    )
}

/// How a call ended, with what it brought back.
pub(super) fn completion(f: F, process: &Name, mut fields: Fields) -> Result<Event, String> {
    let span = format!("the span `{}`", f.name());
    let outcome = fields.remove(OUTCOME).unwrap_or_default();
    let Some(kind @ ("ok" | "fail" | "info")) = outcome.as_str() else {
        return Err(format!(
            "{span} has the `{OUTCOME}` {outcome}: it is ok, fail or info"
        ));
    };
    let error = failure(&span, &mut fields)?;
    if f == F::Read && fields.remove("absent") == Some(true.into()) {
        fields.insert("value".to_owned(), Value::Null);
    }
    let brought = match f {
        F::Acquire => Some("token"),
        F::Read => Some("value"),
        _ => None,
    };
    if let Some(field) = fields.keys().find(|field| Some(field.as_str()) != brought) {
        return Err(format!(
            "{span} records `{field}` after it was opened, and that is no part of its answer: \
             open it with all that is asked for"
        ));
    }
    event(&span, process, kind, f.name(), fields, error)
}

/// What a node tells of itself, or a fault.
pub(super) fn observation(f: &str, mut fields: Fields) -> Result<Event, String> {
    let told = format!("the event `{f}`");
    if f.starts_with("event ") {
        return Err(format!(
            "{told} of target {TARGET} has no name: give it one, as `name: \"granted\"`"
        ));
    }
    let process = process(&told, &mut fields)?;
    if process != NEMESIS {
        if F::of_name(f).is_some() {
            return Err(format!("{told} is a call: open a span of that name"));
        }
        if !Observation::NAMES.contains(&f) {
            return Err(format!(
                "{told} of target {TARGET} is no observation: those are {}",
                Observation::NAMES.join(", ")
            ));
        }
        for nested in ["leases", "highest"] {
            if let Some(Value::String(text)) = fields.get(nested) {
                let value = serde_json::from_str(text).map_err(|error| {
                    format!("{told} has `{nested}`, which is text in JSON, and is not: {error}")
                })?;
                fields.insert(nested.to_owned(), value);
            }
        }
        if f == "denied"
            && let Some(error) = failure(&told, &mut fields)?
        {
            fields.insert("error".to_owned(), error);
        }
    }
    event(&told, &process, "info", f, fields, None)
}

/// Takes the process out of the fields; a number will do.
fn process(told: &str, fields: &mut Fields) -> Result<Name, String> {
    match fields.remove("process") {
        Some(Value::String(name)) => Ok(name.into()),
        Some(Value::Number(number)) => Ok(number.to_string().into()),
        _ => Err(format!(
            "{told} names no process: give it the field `process`, the node's name"
        )),
    }
}

/// Takes an error out of the fields: its kind, and of a stale token what storage had seen.
fn failure(told: &str, fields: &mut Fields) -> Result<Option<Value>, String> {
    let Some(kind) = fields.remove("error") else {
        return Ok(None);
    };
    if !kind.is_string() {
        return Err(format!(
            "{told} has the `error` {kind}: it is a word, as \"held\" or \"timeout\""
        ));
    }
    let mut error = json!({"kind": kind});
    for field in ["presented", "seen"] {
        if let Some(token) = fields.remove(field) {
            error[field] = token;
        }
    }
    Ok(Some(error))
}

/// The event as the reader would read it.
fn event(
    told: &str,
    process: &Name,
    kind: &str,
    f: &str,
    value: Fields,
    error: Option<Value>,
) -> Result<Event, String> {
    let given: Vec<String> = value.keys().cloned().collect();
    let value = match value.is_empty() {
        true => Value::Null,
        false => Value::Object(value),
    };
    let line = json!({
        "index": 0, "time": 0, "process": process, "type": kind, "f": f, "value": value,
        "error": error,
    });
    let event = line::event(&line.to_string()).map_err(|problem| format!("{told}: {problem}"))?;
    if !matches!(event.body, Body::Nemesis(..)) {
        // What the reader ignores is misspelt: a token that no check sees.
        let kept: Value = serde_json::from_str(&event_line(&event)).unwrap_or_default();
        let unknown = given
            .iter()
            .find(|field| kept["value"].get(field).is_none());
        if let Some(field) = unknown {
            return Err(format!("{told} has the field `{field}`, which no {f} has"));
        }
    }
    Ok(event)
}

//! Reads a schedule that somebody may have written or edited by hand. What cannot be
//! read is told in one sentence: which entry, what is wrong with it, what is known.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};
use serde_json::{Map, Value, json};

use super::{Fault, Injection, Moment, Schedule, Target, Trigger};

/// Fields that say whom a fault strikes.
const PARTIES: [&str; 5] = ["target", "a", "b", "from", "to"];

/// A schedule, entry by entry.
///
/// # Errors
/// The first entry that cannot be read, by its number from 0 and its fault's name.
pub(crate) fn schedule(value: &Value) -> Result<Schedule, String> {
    let Value::Array(entries) = value else {
        return Err("the header's schedule is no list of faults".to_owned());
    };
    let read = |(at, entry): (usize, &Value)| {
        injection(entry).map_err(|why| {
            let fault = entry["fault"].as_str().unwrap_or("no fault");
            cannot(at, fault, &why)
        })
    };
    entries.iter().enumerate().map(read).collect()
}

/// The sentence about an entry.
pub(crate) fn cannot(entry: usize, fault: &str, why: &str) -> String {
    format!("entry {entry} of the header's schedule ({fault}) cannot be injected: {why}")
}

/// For a header's `schedule`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Schedule, D::Error> {
    schedule(&Value::deserialize(from)?).map_err(D::Error::custom)
}

impl<'de> Deserialize<'de> for Injection {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        injection(&Value::deserialize(from)?).map_err(D::Error::custom)
    }
}

fn injection(entry: &Value) -> Result<Injection, String> {
    let Value::Object(fields) = entry else {
        return Err("it is no object with a 'when' and a 'fault'".to_owned());
    };
    let mut fields = fields.clone();
    let when = fields.remove("when").ok_or("it has no 'when'")?;
    let fault = fault(&fields)?;
    let when = trigger(&when)?;
    Ok(Injection { when, fault })
}

fn fault(fields: &Map<String, Value>) -> Result<Fault, String> {
    let name = match fields.get("fault") {
        None => return Err("it has no 'fault'".to_owned()),
        Some(Value::String(name)) => name,
        Some(other) => return Err(format!("its 'fault' is {other}, and must be a name")),
    };
    // A fault that is known has fields that are missing here.
    if let Err(error) = serde_json::from_value::<Fault>(json!({"fault": name}))
        && let Some(known) = variants(&error.to_string())
    {
        return Err(unknown("fault", name, &known));
    }
    for party in PARTIES {
        if let Some(named) = fields.get(party) {
            target(party, named)?;
        }
    }
    read(fields, &["fault"], &format!("field of the fault '{name}'"))
}

fn target(field: &str, named: &Value) -> Result<(), String> {
    let Err(error) = serde_json::from_value::<Target>(named.clone()) else {
        return Ok(());
    };
    // A target is a name, or one name with a number: {"client": 0}.
    let name = match named {
        Value::String(name) => Some(name),
        Value::Object(one) if one.len() == 1 => one.keys().next(),
        _ => None,
    };
    Err(match (name, variants(&error.to_string())) {
        (Some(name), Some(known)) => format!("its '{field}': {}", unknown("target", name, &known)),
        _ => format!(
            "its '{field}' is {named}, and must be a target: a name, or {{\"client\": 0}}, \
             {{\"client\": 1}} …"
        ),
    })
}

fn trigger(when: &Value) -> Result<Trigger, String> {
    let one = when.as_object().filter(|one| one.len() == 1);
    let Some((name, value)) = one.and_then(|one| one.iter().next()) else {
        return Err(format!(
            "its 'when' is {when}, and must be one trigger: {{\"at\": 5000000}}, {{\"on\": …}} or \
             {{\"next\": …}}"
        ));
    };
    let own: &[&str] = match name.as_str() {
        "at" => return read(one.unwrap_or(&Map::new()), &[], "trigger"),
        "on" => &["f", "type", "nth", "plus"],
        "next" => &["f", "type", "after", "plus"],
        _ => return Err(unknown("trigger", name, &["at", "on", "next"])),
    };
    let Value::Object(fields) = value else {
        return Err(format!("its '{name}' is {value}, and must be an event"));
    };
    let kind = format!("field of '{name}'");
    if let Some(field) = fields.keys().find(|field| !own.contains(&field.as_str())) {
        return Err(unknown(&kind, field, own));
    }
    let moment = Map::from_iter(fields.clone().into_iter().filter(|(field, _)| {
        // What says which event, apart from which of them and how long after it.
        ["f", "type"].contains(&field.as_str())
    }));
    let inside = |why| format!("its '{name}': {why}");
    read::<Moment>(&moment, &[], &kind).map_err(inside)?;
    read_as(fields, &[], &kind, |fields| {
        serde_json::from_value(json!({ name: fields }))
    })
    .map_err(inside)
}

/// An object as a `T`; what is wrong with it is told of "it". `kept` are the fields that
/// say which others there are, `kind` is what a field of it is called.
///
/// # Errors
/// A field that is missing, unknown, or has a value that does not fit.
pub(crate) fn read<T: DeserializeOwned>(
    fields: &Map<String, Value>,
    kept: &[&str],
    kind: &str,
) -> Result<T, String> {
    read_as(fields, kept, kind, serde_json::from_value)
}

fn read_as<T>(
    fields: &Map<String, Value>,
    kept: &[&str],
    kind: &str,
    read: impl Fn(Value) -> serde_json::Result<T>,
) -> Result<T, String> {
    let told = match read(Value::Object(fields.clone())) {
        Ok(read) => return Ok(read),
        Err(error) => error.to_string(),
    };
    if let (Some(field), Some(known)) = (between(&told, "unknown field `", "`"), variants(&told)) {
        return Err(unknown(kind, field, &known));
    }
    // A message names a value, and not where it stands: each is read without the others.
    let wrong = fields.iter().find_map(|(field, value)| {
        let alone = fields
            .iter()
            .filter(|(other, _)| *other == field || kept.contains(&other.as_str()))
            .map(|(other, value)| (other.clone(), value.clone()));
        let told = read(Value::Object(alone.collect())).err()?.to_string();
        (!told.contains("missing field")).then(|| misfit(field, value, &told))
    });
    Err(match (wrong, between(&told, "missing field `", "`")) {
        (Some(wrong), _) => wrong,
        (None, Some(field)) => format!("it has no '{field}'"),
        (None, None) => told,
    })
}

/// A value that does not fit its field, and what would.
pub(crate) fn misfit(field: &str, value: &Value, told: &str) -> String {
    if let (Some(given), Some(known)) = (between(told, "unknown variant `", "`"), variants(told)) {
        let kind = match field {
            "f" | "type" | "before" => "event",
            field => field,
        };
        return format!("its '{field}': {}", unknown(kind, given, &known));
    }
    let past = |most: f64| {
        value
            .as_f64()
            .is_some_and(|given| given.fract() == 0.0 && given > most)
    };
    let expected = told.rsplit_once("expected ").map(|(_, expected)| expected);
    let must = match expected.unwrap_or_default() {
        _ if field == "storage" => {
            "\"fenced\", \"compare-and-swap\", {\"quorum\": {\"replicas\": 3}} or \
             {\"effects\": {\"keys\": true}}"
        }
        "u64" if past(u64::MAX as f64) => "a whole number, 18446744073709551615 or less",
        "u64" => "a whole number, 0 or more",
        "u32" => "a whole number from 0 to 4294967295",
        "u8" => "a whole number from 0 to 255",
        "i64" if past(i64::MAX as f64) => "a whole number, 9223372036854775807 or less",
        "i64" => "a whole number",
        "a boolean" => "true or false",
        "a map" => "an object",
        expected if expected.starts_with("struct ") => "an object",
        // A name of ours, or one of a few.
        "a string" | "string or map" | "variant identifier" => "a name",
        _ => return format!("its '{field}' is {value}, and does not fit: {told}"),
    };
    format!("its '{field}' is {value}, and must be {must}")
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(found, _)| found)
}

/// What serde says that it knows: "expected one of `a`, `b`", "expected `a` or `b`".
fn variants(error: &str) -> Option<Vec<&str>> {
    if !error.contains("unknown variant") && !error.contains("unknown field") {
        return None;
    }
    let (_, known) = error.split_once(", expected ")?;
    Some(known.split('`').skip(1).step_by(2).collect())
}

/// More names than this are not told: a list of them says less than its nearest.
const NAMES_TOLD: usize = 40;

pub(crate) fn unknown(kind: &str, given: &str, known: &[&str]) -> String {
    let all = match known.len() {
        ..=NAMES_TOLD => format!("known: {}", known.join(", ")),
        _ => "`deposed list` shows them all".to_owned(),
    };
    match nearest(given, known.iter().copied()) {
        Some(near) => {
            format!("no {kind} is called '{given}'; did you mean '{near}'? ({all})")
        }
        None => format!("no {kind} is called '{given}' ({all})"),
    }
}

/// The known name that a given one most likely stands for.
pub(crate) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::normalized_damerau_levenshtein(name, given), name))
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{run::Header, workload::Workload};

    /// Every fault of every trigger comes back as it was written.
    #[test]
    fn what_is_written_is_read() {
        let entries = json!([
            {"when": {"at": 0}, "fault": "halves", "for": 1},
            {"when": {"on": {"f": "renew", "type": "ok", "nth": 3, "plus": 2}},
             "fault": "gc-pause", "target": {"client": 1}, "before": "write", "for": 5},
            {"when": {"next": {"f": "write", "type": "invoke", "after": 7, "plus": 0}},
             "fault": "flaky", "a": "leader", "b": "store", "lose_ppb": 1, "delay_ppb": 2,
             "by": 3, "for": 4},
            {"when": {"at": u64::MAX}, "fault": "step", "target": "any-node", "by": -5},
        ]);
        let read = schedule(&entries).expect("they are right");
        assert_eq!(serde_json::to_value(&read).expect("plain data"), entries);
        let mut header = Header::of(&Workload::named("w"), 1, "deposed", None);
        header.schedule = read;
        let line = serde_json::to_string(&header).expect("plain data");
        assert_eq!(
            serde_json::from_str::<Header>(&line).expect("it is right"),
            header
        );
    }

    #[test]
    fn what_cannot_be_read_is_told_with_what_is_known() {
        let (at, pause) = (json!({"at": 1}), "pause");
        let whom = |target: Value| json!({"when": at, "fault": pause, "target": target, "for": 1});
        let when = |when: Value| json!({"when": when, "fault": pause, "target": "store", "for": 1});
        for (entry, why) in [
            (
                json!(7),
                "(no fault) cannot be injected: it is no object with a 'when' and a 'fault'",
            ),
            (
                json!({"fault": pause}),
                "(pause) cannot be injected: it has no 'when'",
            ),
            (json!({"when": at}), "it has no 'fault'"),
            (
                json!({"when": at, "fault": "puase"}),
                "(puase) cannot be injected: no fault is called 'puase'; did you mean 'pause'? (known: partition, partition-oneway, ",
            ),
            (
                json!({"when": at, "fault": "zebra"}),
                "no fault is called 'zebra' (known: partition, ",
            ),
            (
                json!({"when": at, "fault": 3}),
                "its 'fault' is 3, and must be a name",
            ),
            (
                json!({"when": at, "fault": pause, "target": "store"}),
                "it has no 'for'",
            ),
            (
                json!({"when": at, "fault": pause, "target": "store", "fro": 1}),
                "no field of the fault 'pause' is called 'fro'; did you mean 'for'? (known: target, for)",
            ),
            (
                json!({"when": at, "fault": pause, "target": "store", "for": -5}),
                "its 'for' is -5, and must be a whole number, 0 or more",
            ),
            (
                json!({"when": at, "fault": pause, "target": "store", "for": 1.5}),
                "its 'for' is 1.5, and must be a whole number, 0 or more",
            ),
            (
                json!({"when": at, "fault": pause, "target": "store", "for": "long"}),
                "its 'for' is \"long\", and must be a whole number, 0 or more",
            ),
            (
                json!({"when": at, "fault": pause, "target": "store", "for": null}),
                "its 'for' is null, and must be",
            ),
            (
                json!({"when": at, "fault": "gc-pause", "target": "store", "for": 1, "before": "wirte"}),
                "no event is called 'wirte'; did you mean 'write'? (known: acquire, ",
            ),
            (
                whom(json!("laeder")),
                "its 'target': no target is called 'laeder'; did you mean 'leader'? (known: leader, ",
            ),
            (
                whom(json!({"clinet": 1})),
                "no target is called 'clinet'; did you mean 'client'?",
            ),
            (
                whom(json!({"client": -1})),
                "its 'target' is {\"client\":-1}, and must be a target",
            ),
            (
                whom(json!(null)),
                "its 'target' is null, and must be a target",
            ),
            (
                when(json!({"att": 1})),
                "no trigger is called 'att'; did you mean 'at'? (known: at, on, next)",
            ),
            (
                when(json!(5)),
                "its 'when' is 5, and must be one trigger: {\"at\": 5000000}",
            ),
            (
                when(json!({"at": -1})),
                "its 'at' is -1, and must be a whole number, 0 or more",
            ),
            (
                when(json!({"at": "noon"})),
                "its 'at' is \"noon\", and must be a whole number",
            ),
            (
                when(json!({"on": 3})),
                "its 'on' is 3, and must be an event",
            ),
            (
                when(json!({"on": {"f": "renw", "type": "ok", "nth": 1}})),
                "no event is called 'renw'; did you mean 'renew'? (known: acquire, renew, ",
            ),
            (
                when(json!({"on": {"f": "renew", "type": "oke", "nth": 1}})),
                "no event is called 'oke'; did you mean 'ok'? (known: invoke, ok)",
            ),
            (
                when(json!({"on": {"f": "renew", "type": "ok"}})),
                "it has no 'nth'",
            ),
            (
                when(json!({"on": {"f": "renew", "type": "ok", "nth": -2}})),
                "its 'nth' is -2, and must be a whole number from 0 to 4294967295",
            ),
            (
                when(json!({"next": {"f": "renew", "type": "ok", "nth": 2}})),
                "no field of 'next' is called 'nth' (known: f, type, after, plus)",
            ),
            (
                json!({"when": at, "fault": "lose", "kind": 3, "from": "store", "to": "clients", "count": 3}),
                "its 'kind' is 3, and must be a name",
            ),
            (
                json!({"when": at, "fault": "delay", "kind": "renew", "from": "store", "to": "clients", "count": 5, "by": -5}),
                "its 'by' is -5, and must be a whole number, 0 or more",
            ),
            (
                json!({"when": at, "fault": pause, "target": "store", "for": 1e30}),
                "its 'for' is 1e+30, and must be a whole number, 18446744073709551615 or less",
            ),
            (
                when(json!({"next": {"f": "renew", "type": "ok", "after": 2, "plus": -3}})),
                "its 'plus' is -3, and must be",
            ),
        ] {
            let told = schedule(&json!([when(json!({"at": 1})), entry])).expect_err(why);
            assert!(
                told.starts_with("entry 1 of the header's schedule ("),
                "{told}"
            );
            assert!(told.contains(why), "{told}\n  not {why}");
        }
        let told = schedule(&json!("none")).expect_err("no list");
        assert_eq!(told, "the header's schedule is no list of faults");
    }
}

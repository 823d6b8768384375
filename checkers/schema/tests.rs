//! The committed schema is the generated one, and says what the reader does.

use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{EVERY_LINE, HISTORY, history};
use crate::line;
use crate::reader::Reader;

fn schema() -> Validator {
    let committed = serde_json::from_str(HISTORY).unwrap();
    jsonschema::validator_for(&committed).unwrap()
}

/// The histories of this repository, kept runs and small ones, without those meant to be refused.
#[expect(clippy::disallowed_methods, reason = "each file is judged by itself")]
fn histories() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [here.join("../histories"), here.join("tests/verdicts")];
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let files = files.map(|entry| entry.unwrap().path());
    let mut histories: Vec<PathBuf> = files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    histories.sort();
    histories
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn the_committed_file_is_what_the_types_say() {
    let generated = format!("{:#}\n", history().as_value());
    assert!(
        generated == HISTORY,
        "the types say otherwise now; write the file anew, and read what changes in it:\n  \
         cargo run -p deposed-checkers --features schema --example schema > checkers/history.schema.json"
    );
}

#[test]
fn it_is_a_schema_by_the_rules_of_schemas() {
    let committed = serde_json::from_str(HISTORY).unwrap();
    if let Err(error) = jsonschema::draft202012::meta::validate(&committed) {
        panic!("{error} at {}", error.instance_path());
    }
}

#[test]
fn every_recorded_line_is_valid() {
    let schema = schema();
    let mut judged = 0;
    for path in histories() {
        for (at, line) in lines(&path).iter().enumerate() {
            if let Err(error) = schema.validate(line) {
                panic!("{}:{}: {error}", path.display(), at + 1);
            }
            judged += 1;
        }
    }
    assert!(judged > 1_000, "the histories are found");
}

#[test]
fn the_examples_are_a_history_that_breaks_no_rule_and_leave_no_kind_of_line_out() {
    let (header, events) = Reader::new(EVERY_LINE.as_bytes(), "every-line.jsonl").unwrap();
    let events: Vec<_> = events.collect::<Result<_, _>>().unwrap();
    let verdicts = crate::judge::judge(&header, &events);
    assert_eq!(verdicts.violated().next(), None);
    let schema: Value = serde_json::from_str(HISTORY).unwrap();
    for variant in schema["$defs"]["Event"]["oneOf"].as_array().unwrap() {
        let examples = variant["examples"].as_array().unwrap();
        assert!(!examples.is_empty(), "{}", variant["title"]);
    }
}

#[test]
fn every_field_is_described() {
    let schema: Value = serde_json::from_str(HISTORY).unwrap();
    for (name, defined) in schema["$defs"].as_object().unwrap() {
        let properties = defined["properties"].as_object().into_iter().flatten();
        for (field, described) in properties {
            // A property that is another type has that one's description.
            let told = described["description"].is_string() || described["$ref"].is_string();
            assert!(told, "{name}.{field}");
        }
    }
}

/// Lines that recorders write at their first try.
#[test]
fn what_recorders_get_wrong_is_refused() {
    let schema = schema();
    let good = json!({"index": 0, "time": 5, "process": "a", "type": "invoke", "call": 1,
        "f": "acquire", "value": {"lease": "leader", "holder": "a#1"}});
    assert!(schema.is_valid(&good));
    let with = |pointer: &str, value: Value| {
        let mut line = good.clone();
        *line.pointer_mut(pointer).unwrap() = value;
        line
    };
    let without = |field: &str| {
        let mut line = good.clone();
        line.as_object_mut().unwrap().remove(field);
        line
    };
    for (why, line) in [
        ("no process", without("process")),
        ("no time", without("time")),
        ("no value", without("value")),
        ("seconds as a float", with("/time", json!(0.25))),
        ("time as text", with("/time", json!("2026-12-01T00:00:00Z"))),
        ("a process that is a number", with("/process", json!(3))),
        ("another system's word", with("/type", json!("return"))),
        ("in capitals", with("/type", json!("INVOKE"))),
        ("a negative index", with("/index", json!(-1))),
        ("a call that is text", with("/call", json!("a-1"))),
        (
            "a lease that is missing",
            with("/value", json!({"holder": "a#1"})),
        ),
        ("a value that is text", with("/value", json!("leader"))),
        ("a holder that is a number", with("/value/holder", json!(1))),
        (
            "a fence without its token",
            json!({"index": 0, "time": 0, "process": "a",
            "type": "invoke", "f": "fence", "value": {"lease": "leader"}}),
        ),
        (
            "an observation that is ok",
            json!({"index": 0, "time": 0, "process": "storage",
            "type": "ok", "f": "fenced", "value": {"lease": "leader", "token": 1}}),
        ),
        (
            "an error that is text",
            json!({"index": 0, "time": 0, "process": "a", "type": "fail",
            "call": 1, "f": "acquire", "error": "held"}),
        ),
        (
            "a header without a version that is a number",
            json!({"deposed": "1"}),
        ),
        (
            "a header whose ttl is text",
            json!({"deposed": 1, "lease": {"ttl": "300ms"}}),
        ),
        (
            "a header whose clocks may stand still",
            json!({"deposed": 1, "lease": {"ttl": 1, "max_drift_ppb": 1_000_000_000}}),
        ),
        ("a call that nobody knows", with("/f", json!("aquire"))),
    ] {
        assert!(!schema.is_valid(&line), "{why}: {line}");
    }
}

/// Each line of the examples, with each of its fields left out or of another type: the schema
/// refuses it if and only if the reader does.
#[test]
fn the_schema_and_the_reader_agree() {
    let schema = schema();
    let (mut taken, mut refused) = (0, 0);
    for original in EVERY_LINE.lines().skip(1) {
        let original: Value = serde_json::from_str(original).unwrap();
        for pointer in pointers(&original) {
            let others = [
                json!("text"),
                json!(7),
                json!(-7),
                json!(true),
                json!({}),
                Value::Null,
            ];
            let changed = others.into_iter().map(Some).chain([None]);
            for line in changed.map(|other| changed_at(&original, &pointer, other)) {
                // A schema for recorders is stricter in this: a fault is recorded as `info`.
                if line["process"] == "nemesis" && line["type"] != "info" {
                    continue;
                }
                let read = line::event(&line.to_string());
                assert_eq!(
                    schema.is_valid(&line),
                    read.is_ok(),
                    "{pointer} of {original} as in {line}: {read:?}"
                );
                match read.is_ok() {
                    true => taken += 1,
                    false => refused += 1,
                }
            }
        }
    }
    assert!(
        taken > 300 && refused > 300,
        "{taken} taken, {refused} refused"
    );
}

/// Every place in a JSON object.
fn pointers(value: &Value) -> Vec<String> {
    let fields = value.as_object().into_iter().flatten();
    let below = fields.flat_map(|(field, value)| {
        let deeper = pointers(value).into_iter();
        let deeper = deeper.map(move |pointer| format!("/{field}{pointer}"));
        [format!("/{field}")].into_iter().chain(deeper)
    });
    below.collect()
}

fn changed_at(original: &Value, pointer: &str, other: Option<Value>) -> Value {
    let mut line = original.clone();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = line.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match other {
        Some(other) => drop(parent.insert(field.to_owned(), other)),
        None => drop(parent.remove(field)),
    }
    line
}

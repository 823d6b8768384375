//! Entries, written in each format that can hold them, come back as they were.

use std::collections::BTreeMap;
use std::fmt::Write;

use deposed_checkers::history::Kind;
use deposed_checkers::import::{Entry, Format, Place, Value};
use proptest::prelude::*;

use super::entries;

/// Words as keywords may have them.
fn word() -> impl Strategy<Value = String> {
    "[a-zé][a-z0-9é_?!*-]{0,8}(/[a-z][a-z0-9]{0,3})?"
}

/// Any text, with what is special to some format.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "[\"\\\\,;\n\r\t éλ😀\\[\\]{}:#0-9]{0,8}",
        Just("\u{7f}\u{1}".to_owned()),
        Just("nil".to_owned()),
    ]
}

/// Values that JSON has, too: no words, sets, tags, and no numbers as they were written.
fn plain() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        ((1 << 63)..=u64::MAX).prop_map(|number| Value::Number(number.to_string().into())),
        text().prop_map(|text| Value::Text(text.into())),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            prop::collection::btree_map(text().prop_map(Into::into), inner, 0..5)
                .prop_map(Value::Map),
        ]
    })
}

/// Values that EDN has.
fn any_value() -> impl Strategy<Value = Value> {
    let number = "-?[1-9][0-9]{19,30}|[0-9]\\.[0-9]{1,5}(E-?[0-9]{1,3})?M?|[1-9][0-9]?/[1-9]";
    let leaf = prop_oneof![
        plain(),
        word().prop_map(|word| Value::Word(word.into())),
        number.prop_map(|number: String| Value::Number(number.into())),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Set),
            prop::collection::btree_map(word().prop_map(Into::into), inner.clone(), 0..4)
                .prop_map(Value::Map),
            ("[a-z][a-z.]{0,6}", inner)
                .prop_map(|(tag, value)| Value::Tagged(tag.into(), Box::new(value))),
        ]
    })
}

/// Without places, indices as counted, no completions: those are not what is written.
fn history(value: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Vec<Entry>> {
    let some = prop::option::of(
        value
            .clone()
            .prop_filter("there is one", |value| *value != Value::Nil),
    );
    let entry = (
        prop::option::of(0..=i64::MAX as u64),
        word(),
        word(),
        (some.clone(), some.clone(), some),
        value,
    );
    prop::collection::vec(entry, 0..6).prop_map(|entries| {
        let numbered = entries.into_iter().zip(0..);
        let entry = |((time, process, f, (key, token, error), value), index)| Entry {
            index,
            time,
            process: Name::from(process),
            kind: Kind::Info,
            f: Name::from(f),
            key,
            token,
            value,
            error,
            place: Place { line: 1, column: 1 },
        };
        numbered.map(entry).collect()
    })
}

type Name = deposed_checkers::history::Name;

/// What a format has for each field that is there.
fn fields(entry: &Entry) -> Vec<(&'static str, Value)> {
    let time = entry.time.map(|time| Value::Int(time as i64));
    let fields = [
        ("time", time),
        ("process", Some(Value::Word(entry.process.clone()))),
        ("type", Some(Value::Word("info".into()))),
        ("f", Some(Value::Word(entry.f.clone()))),
        ("token", entry.token.clone()),
        ("key", entry.key.clone()),
        ("value", Some(entry.value.clone())),
        ("error", entry.error.clone()),
    ];
    fields
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn edn(history: &[Entry]) -> String {
    let mut text = "[".to_owned();
    for entry in history {
        text += "{";
        for (name, value) in fields(entry) {
            write!(text, ":{name} {value} ").unwrap();
        }
        text += "}\n";
    }
    text + "]"
}

fn as_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Nil => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(number) => (*number).into(),
        Value::Number(number) => number.parse::<u64>().unwrap().into(),
        Value::Text(text) | Value::Word(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(as_json).collect(),
        Value::Map(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| (key.to_string(), as_json(value)));
            serde_json::Value::Object(fields.collect())
        }
        Value::Set(_) | Value::Tagged(..) => unreachable!("not in plain values"),
    }
}

fn json(history: &[Entry]) -> String {
    let object = |entry| {
        let fields: BTreeMap<_, _> = fields(entry)
            .into_iter()
            .map(|(name, value)| (name, as_json(&value)))
            .collect();
        serde_json::to_string(&fields).unwrap()
    };
    format!(
        "[{}]",
        history.iter().map(object).collect::<Vec<_>>().join(",\n")
    )
}

fn csv(history: &[Entry]) -> String {
    let columns = [
        "error", "value", "key", "token", "f", "type", "process", "time",
    ];
    let mut text = columns.join(",") + "\n";
    for entry in history {
        let fields: BTreeMap<_, _> = fields(entry).into_iter().collect();
        let cell = |column| {
            let cell = fields
                .get(column)
                .map_or(String::new(), |value: &Value| value.to_string());
            format!("\"{}\"", cell.replace('"', "\"\""))
        };
        text += &(columns.map(cell).join(",") + "\n");
    }
    text
}

/// As they were written: where does not matter.
fn read(format: Format, text: &str) -> Vec<Entry> {
    let mut entries = entries(format, text);
    for entry in &mut entries {
        entry.place = Place { line: 1, column: 1 };
    }
    entries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn edn_comes_back(history in history(any_value().boxed())) {
        prop_assert_eq!(read(Format::Edn, &edn(&history)), history);
    }

    #[test]
    fn json_comes_back(history in history(plain().boxed())) {
        prop_assert_eq!(read(Format::Json, &json(&history)), history);
    }

    #[test]
    fn csv_comes_back(history in history(any_value().boxed())) {
        prop_assert_eq!(read(Format::Csv, &csv(&history)), history);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC*") {
        for format in Format::ALL {
            let _ = super::read(format, &bytes);
            let _ = super::read(format, &text);
        }
    }
}

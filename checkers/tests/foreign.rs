//! Other tools' histories: what each format says, and what is refused, in which words.

#[path = "foreign/bad_input.rs"]
mod bad_input;
#[path = "foreign/edn.rs"]
mod edn;
#[path = "foreign/etcd.rs"]
mod etcd;
#[path = "foreign/json_log_table.rs"]
mod json_log_table;
#[path = "foreign/keys.rs"]
mod keys;
#[path = "foreign/lease.rs"]
mod lease;
#[path = "foreign/misread.rs"]
mod misread;
#[path = "foreign/opening.rs"]
mod opening;
#[path = "foreign/round_trip.rs"]
mod round_trip;

use deposed_checkers::history::Kind;
use deposed_checkers::import::{Entries, Entry, Format, ReadError, Value};

/// The entries of a text.
fn read(format: Format, text: impl AsRef<[u8]>) -> Result<Vec<Entry>, ReadError> {
    Entries::new(format, text.as_ref(), "f").collect()
}

fn entries(format: Format, text: impl AsRef<[u8]>) -> Vec<Entry> {
    read(format, text).unwrap_or_else(|error| panic!("{error}"))
}

/// What is said of a text that cannot be read.
fn refused(format: Format, text: impl AsRef<[u8]>) -> String {
    match read(format, text) {
        Ok(entries) => panic!("read: {entries:?}"),
        Err(error) => error.to_string(),
    }
}

fn int(number: i64) -> Value {
    Value::Int(number)
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn word(word: &str) -> Value {
    Value::Word(word.into())
}

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::List(items.into_iter().collect())
}

/// Who, what kind, what, in a line: `3 invoke cas [0 1]`.
fn told(entry: &Entry) -> String {
    let kind = match entry.kind {
        Kind::Invoke => "invoke",
        Kind::Ok => "ok",
        Kind::Fail => "fail",
        Kind::Info => "info",
    };
    let key = entry
        .key
        .as_ref()
        .map_or(String::new(), |key| format!("{key} "));
    format!("{} {kind} {} {key}{}", entry.process, entry.f, entry.value)
}

fn all_told(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(told).collect()
}

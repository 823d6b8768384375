//! A map of fields as one operation, whatever it was written in.

use std::collections::BTreeMap;

use super::{Entry, Place, Problem, Value, fault::Fault};
use crate::history::{Kind, Name, Nanos};
use crate::units::a;

/// An operation as it stands in the file: its index is not counted, and it is not paired yet.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) index: Option<u64>,
    pub(super) time: Option<Nanos>,
    pub(super) process: Name,
    pub(super) kind: Kind,
    pub(super) f: Name,
    pub(super) key: Option<Value>,
    pub(super) token: Option<Value>,
    pub(super) value: Value,
    pub(super) error: Option<Value>,
    pub(super) place: Place,
}

impl Operation {
    /// What is named otherwise stays unread: `:node`, `:retries`.
    pub(super) fn of_fields(
        mut fields: BTreeMap<Name, Value>,
        place: Place,
    ) -> Result<Operation, Fault> {
        let at = |problem| Fault::at(place, problem);
        let has_value = fields.contains_key("value");
        let keys: Vec<String> = match has_value {
            true => Vec::new(),
            false => fields.keys().map(Name::to_string).collect(),
        };
        let mut field = |name: &'static str| match fields.remove(name) {
            Some(Value::Nil) => None,
            value => value,
        };
        let required = |name: &'static str, value: Option<Value>| {
            let missing = "missing; every operation has one";
            let value = value.ok_or_else(|| at(Problem::field(name, missing)))?;
            value.name().ok_or_else(|| {
                at(Problem::field(
                    name,
                    format!("{value} is neither a word nor a number"),
                ))
            })
        };
        let process = required("process", field("process"))?;
        let kind = kind(&required("type", field("type"))?).map_err(at)?;
        let f = required("f", field("f"))?;
        if !has_value && unasked(kind, &f) {
            let what = format!(
                "missing; {} has one (nil where it is to be absent), and this has the keys {}",
                a(&f),
                keys.join(", ")
            );
            return Err(at(Problem::field("value", what)));
        }
        Ok(Operation {
            index: index(field("index")).map_err(at)?,
            time: time(field("time")).map_err(at)?,
            process,
            kind,
            f,
            key: field("key"),
            token: field("token"),
            error: field("error"),
            value: field("value").unwrap_or(Value::Nil),
            place,
        })
    }

    pub(super) fn entry(self, index: u64) -> Entry {
        Entry {
            index,
            time: self.time,
            process: self.process,
            kind: self.kind,
            f: self.f,
            key: self.key,
            token: self.token,
            value: self.value,
            error: self.error,
            place: self.place,
        }
    }
}

/// Whether a line without any value asks nothing though it should: what it writes may have
/// been given another name, and every write would be one of nil.
pub(super) fn unasked(kind: Kind, f: &str) -> bool {
    kind == Kind::Invoke && gives(f)
}

/// Whether an operation's value is what it is to leave, and not what it found.
pub(super) fn gives(f: &str) -> bool {
    matches!(f, "write" | "cas" | "append" | "put")
}

pub(super) fn kind(word: &str) -> Result<Kind, Problem> {
    match word {
        "invoke" => Ok(Kind::Invoke),
        "ok" => Ok(Kind::Ok),
        "fail" => Ok(Kind::Fail),
        "info" => Ok(Kind::Info),
        other => Err(Problem::field(
            "type",
            format!("'{other}' is none of invoke, ok, fail and info"),
        )),
    }
}

fn index(value: Option<Value>) -> Result<Option<u64>, Problem> {
    let fits = |number: &i64| u64::try_from(*number).ok();
    match value {
        None | Some(Value::Int(-1)) => Ok(None),
        Some(value) => match &value {
            Value::Int(number) if fits(number).is_some() => Ok(fits(number)),
            _ => Err(Problem::field(
                "index",
                format!(
                    "{value} is no index: they are whole numbers from 0 to {}",
                    i64::MAX
                ),
            )),
        },
    }
}

/// -1 is how Jepsen's own histories say that there is none.
fn time(value: Option<Value>) -> Result<Option<Nanos>, Problem> {
    match value {
        None | Some(Value::Int(-1)) => Ok(None),
        Some(Value::Int(time)) if time >= 0 => Ok(Some(time.unsigned_abs())),
        Some(value) => Err(Problem::field(
            "time",
            format!(
                "{value} is no time: they are whole nanoseconds from 0 to {}, or -1 for none",
                i64::MAX
            ),
        )),
    }
}

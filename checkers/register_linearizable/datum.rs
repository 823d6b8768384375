//! What a register holds, as something that can be looked up.

use std::fmt;

use compact_str::ToCompactString;
use serde_json::Value;

use crate::history::Name;

/// A JSON value other than null, which is absence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Datum {
    Text(Name),
    /// Its JSON.
    Other(Name),
}

impl Datum {
    /// `None` for null.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(Datum::Text(text.into())),
            Value::Number(number) => Some(Datum::Other(number.to_compact_string())),
            other => Some(Datum::Other(other.to_compact_string())),
        }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Text(text) | Datum::Other(text) => f.write_str(text),
        }
    }
}

//! A line of a report, as the robustness test writes it.

use serde::Deserialize;

use crate::history::Name;
use crate::import::Value;

/// One line.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Line {
    pub(super) client_id: i64,
    pub(super) input: Request,
    pub(super) call: i64,
    pub(super) output: Response,
    #[serde(default)]
    pub(super) r#return: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    pub(super) r#type: String,
    #[serde(default)]
    pub(super) range: Option<Range>,
    #[serde(default)]
    pub(super) txn: Option<Txn>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Range {
    pub(super) start: String,
    /// Before 2023: the key of a single-key range, and whether it is a prefix.
    pub(super) key: String,
    pub(super) end: String,
    pub(super) with_prefix: bool,
    pub(super) limit: i64,
    pub(super) revision: i64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Txn {
    pub(super) conditions: Option<Vec<Condition>>,
    pub(super) operations_on_success: Option<Vec<Step>>,
    pub(super) operations_on_failure: Option<Vec<Step>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Condition {
    pub(super) key: String,
    pub(super) expected_revision: i64,
    pub(super) expected_version: i64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Step {
    pub(super) r#type: String,
    pub(super) range: Range,
    pub(super) put: Put,
    pub(super) delete: Delete,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Put {
    pub(super) key: String,
    pub(super) value: Datum,
    #[serde(rename = "LeaseID")]
    pub(super) lease: i64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Delete {
    pub(super) key: String,
}

/// A short value, or the hash of a long one: the test keeps no more of it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Datum {
    pub(super) value: String,
    pub(super) hash: u32,
}

impl Datum {
    pub(super) fn value(&self) -> Value {
        match self.hash {
            0 => Value::Text(self.value.as_str().into()),
            hash => Value::Tagged("hash".into(), Box::new(Value::Int(i64::from(hash)))),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Response {
    pub(super) txn: Option<Outcome>,
    pub(super) range: Option<Found>,
    pub(super) client_error: String,
    pub(super) revision: i64,
    pub(super) error: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Outcome {
    pub(super) failure: bool,
    pub(super) results: Option<Vec<Found>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Found {
    #[serde(rename = "KVs")]
    pub(super) kvs: Option<Vec<KeyValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct KeyValue {
    pub(super) key: String,
    pub(super) value: Datum,
    pub(super) mod_revision: i64,
}

impl Range {
    pub(super) fn one_key(&self) -> Option<Name> {
        let start = if self.start.is_empty() {
            &self.key
        } else {
            &self.start
        };
        let one = self.end.is_empty() && !self.with_prefix;
        one.then(|| start.as_str().into())
    }
}

impl Found {
    pub(super) fn of(&self, key: &str) -> Option<&KeyValue> {
        self.kvs.iter().flatten().find(|found| found.key == key)
    }

    pub(super) fn value(&self, key: &str) -> Value {
        self.of(key).map_or(Value::Nil, |found| found.value.value())
    }

    pub(super) fn revision(&self, key: &str) -> i64 {
        self.of(key).map_or(0, |found| found.mod_revision)
    }
}

//! Reads a header that somebody may have written or edited by hand, to be run. (One that
//! is only checked may lack most of it, and have what this version does not know.)

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Header;
use crate::{
    cluster::Cluster,
    fault::reading::{nearest, read, schedule, unknown},
    lease::LeaseConfig,
    workload::{Network, Traffic},
};

/// What a header must hold to be run.
const NEEDED: [&str; 10] = [
    "workload", "system", "seed", "cluster", "lease", "traffic", "network", "chaos", "calm",
    "schedule",
];
/// What else it may hold.
const OTHERS: [&str; 4] = ["deposed", "clocks", "offsets", "flaw"];

impl Header {
    /// Reads a header's line as one that can be run.
    ///
    /// # Errors
    /// In one sentence: which field is missing, unknown, or holds what does not fit.
    pub(crate) fn read(line: &[u8]) -> Result<Self, String> {
        let not_replayed = |why| format!("this history can be checked, not replayed: {why}");
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| not_replayed(format!("its header is not JSON: {error}")))?;
        let Value::Object(fields) = &value else {
            return Err(not_replayed("its header is no object".to_owned()));
        };
        let missing = NEEDED
            .into_iter()
            .find(|field| !fields.contains_key(*field));
        let known: Vec<&str> = NEEDED.into_iter().chain(OTHERS).collect();
        let unknown_ones = fields
            .keys()
            .filter(|field| !known.contains(&field.as_str()));
        for field in unknown_ones {
            // A history of somebody else lacks most and has fields of its own; what is
            // missed here may be there under a name that was misspelt.
            let misspelt = nearest(field, known.iter().copied());
            if missing.is_none() || misspelt == missing {
                return Err(not_replayed(unknown("field of a header", field, &known)));
            }
        }
        if let Some(missing) = missing {
            return Err(not_replayed(format!(
                "its header has no '{missing}', as one that another tool made or somebody edited; \
                 `deposed check` judges it"
            )));
        }
        schedule(&value["schedule"])?;
        part::<LeaseConfig>("lease", fields)?;
        part::<Cluster>("cluster", fields)?;
        part::<Traffic>("traffic", fields)?;
        part::<Network>("network", fields)?;
        for clocks in ["clocks", "offsets"] {
            if fields.contains_key(clocks) {
                part::<BTreeMap<String, u64>>(clocks, fields)?;
            }
        }
        read(fields, &[], "field of a header").map_err(|why| format!("the header: {why}"))
    }
}

/// Reads a part of the header for what is wrong inside it.
fn part<T: DeserializeOwned>(name: &str, fields: &Map<String, Value>) -> Result<(), String> {
    let inside = |why| format!("the header's '{name}': {why}");
    match &fields[name] {
        Value::Object(part) => read::<T>(part, &[], &format!("field of '{name}'"))
            .map(drop)
            .map_err(inside),
        other => Err(format!(
            "the header's '{name}' is {other}, and must be an object"
        )),
    }
}

//! Counts entries and pairs completions with their calls: what any history must keep to.
//!
//! Lines stand in the order in which things happened. Times need not rise: where several
//! threads take them before the line is written, they do not, in Jepsen's own histories too.

use std::collections::BTreeMap;

use super::{
    Entry, Problem, Value,
    fault::Fault,
    operation::{Operation, gives},
};
use crate::history::{Kind, Name};

/// What is open. Memory is that of the calls that have not ended, not that of processes.
#[derive(Default)]
pub(super) struct Calls {
    last: Option<u64>,
    /// By process: what it does, and since which line.
    open: BTreeMap<Name, (Name, u64)>,
    /// By process: the key and the value of what it does, where the answer may repeat them.
    given: BTreeMap<Name, (Option<Value>, Value)>,
}

impl Calls {
    pub(super) fn see(&mut self, operation: Operation) -> Result<Entry, Fault> {
        let place = operation.place;
        let at = |problem| Fault::at(place, problem);
        let index = match (operation.index, self.last) {
            (Some(found), Some(before)) if found <= before => {
                return Err(at(Problem::Index { before, found }));
            }
            (Some(found), _) => found,
            (None, last) => last.map_or(0, |last| last.saturating_add(1)),
        };
        self.last = Some(index);
        let (process, f) = (&operation.process, &operation.f);
        let text = |name: &Name| Box::from(name.as_str());
        match (operation.kind, self.open.get(process)) {
            (Kind::Invoke, None) => {
                self.open.insert(process.clone(), (f.clone(), place.line));
                let value = match gives(f) {
                    true => operation.value.clone(),
                    false => Value::Nil,
                };
                if operation.key.is_some() || value != Value::Nil {
                    let given = (operation.key.clone(), value);
                    self.given.insert(process.clone(), given);
                }
            }
            (Kind::Invoke, Some((open, line))) => {
                return Err(at(Problem::TwoCalls {
                    process: text(process),
                    f: text(f),
                    open: text(open),
                    line: *line,
                }));
            }
            (_, Some((open, line))) if open == f => {
                let given = self.given.remove(process);
                let differs = given.filter(|_| operation.kind == Kind::Ok);
                let differs = differs.and_then(|(key, value)| differs_in(&operation, key, value));
                if let Some((what, began, ended)) = differs {
                    return Err(at(Problem::OtherValue {
                        process: text(process),
                        ended: format!("{f} with the {what} {ended}").into(),
                        began: began.into(),
                        line: *line,
                    }));
                }
                self.open.remove(process);
            }
            // The nemesis's, or what a process tells of itself while it is at work.
            (Kind::Info, _) => {}
            (Kind::Ok | Kind::Fail, None) => {
                return Err(at(Problem::NoCall {
                    process: text(process),
                    f: text(f),
                }));
            }
            (Kind::Ok | Kind::Fail, Some((open, line))) => {
                return Err(at(Problem::OtherCall {
                    process: text(process),
                    f: text(f),
                    open: text(open),
                    line: *line,
                }));
            }
        }
        Ok(operation.entry(index))
    }
}

/// In what an answer contradicts its call, with both: an answer may repeat what was given, or
/// leave it out, and a value with its key may be repeated without. Maps tell more than that.
fn differs_in(
    answer: &Operation,
    key: Option<Value>,
    value: Value,
) -> Option<(&'static str, String, String)> {
    if let (Some(began), Some(ended)) = (key, &answer.key)
        && began != *ended
    {
        return Some(("key", began.to_string(), ended.to_string()));
    }
    let ended = &answer.value;
    let is_repeated = match (&value, ended) {
        (Value::Nil | Value::Map(_), _) | (_, Value::Nil | Value::Map(_)) => true,
        (Value::List(pair), ended) => value == *ended || pair.len() == 2 && pair[1] == *ended,
        (value, ended) => value == ended,
    };
    (!is_repeated).then(|| ("value", value.to_string(), ended.to_string()))
}

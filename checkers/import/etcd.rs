//! Reports of etcd's robustness tests: a client's operations, one JSON object a line.
//!
//! A line is a whole operation: `Input`, `Output`, and the nanoseconds of `Call` and
//! `Return`. Those that failed stand behind the others, and a folder holds a file a client;
//! so the report is read whole, and put in order.
//!
//! What maps to a register a key is read as that: a range of one key at the newest revision
//! is a `read`; a transaction with one put or delete of a key is a `write` (a delete writes
//! nil), and with a condition on the key's mod revision a `cas` from the value that was
//! written at that revision, as far as the report tells it. Keys that anything else touches
//! (transactions of several operations, puts under an etcd lease, whose end deletes them)
//! are left out: registers are linearizable one by one, so the others are judged as well
//! without. Reads of several keys or of old revisions, leases and maintenance change no
//! key, and are left out too. Each kind is told with its count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::{
    Place, Problem, ReadError, Unmarked, Value,
    fault::Fault,
    json::{self, Objects},
    operation::Operation,
};
use crate::history::{Kind, Name, Nanos};

mod line;

use line::{Line, Request, Response, Step, Txn};

/// A report: read at the first operation that is asked for.
pub(super) struct Report<R> {
    input: Option<R>,
    operations: std::vec::IntoIter<Operation>,
    left_out: Vec<String>,
}

impl<R: Read> Report<R> {
    pub(super) fn new(input: R) -> Self {
        Report {
            input: Some(input),
            operations: Vec::new().into_iter(),
            left_out: Vec::new(),
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Operation>, Fault> {
        if let Some(input) = self.input.take() {
            let mut calls = Vec::new();
            read(input, &mut calls)?;
            self.put_in_order(calls);
        }
        Ok(self.operations.next())
    }

    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn put_in_order(&mut self, calls: Vec<Call>) {
        let (operations, left_out) = in_order(calls);
        self.operations = operations.into_iter();
        self.left_out = left_out;
    }
}

impl<R: Read> Report<R> {
    /// A folder with a folder `client-N` for each client, or one of these.
    pub(super) fn of_folder(folder: &Path) -> Result<Self, ReadError> {
        let file = folder.display().to_string();
        let whole = |problem| ReadError {
            file: file.clone(),
            place: None,
            problem,
        };
        let mut calls = Vec::new();
        let mut found = false;
        for path in clients(folder).map_err(|error| whole(Problem::Open(error)))? {
            let file = path.display().to_string();
            let opened = File::open(&path).map_err(|error| ReadError {
                file: file.clone(),
                place: None,
                problem: Problem::Open(error),
            })?;
            found = true;
            let input = Unmarked {
                input: BufReader::new(opened),
                begun: false,
            };
            read(input, &mut calls).map_err(|fault| fault.named(&file))?;
        }
        if !found {
            return Err(whole(Problem::Syntax {
                format: "an etcd report",
                what: "the folder holds no client-N/operations.json; name a file, or the folder \
                       of one run's clients"
                    .to_owned(),
            }));
        }
        let mut report = Report {
            input: None,
            operations: Vec::new().into_iter(),
            left_out: Vec::new(),
        };
        report.put_in_order(calls);
        Ok(report)
    }
}

/// The operations of each client, by the client's number.
fn clients(folder: &Path) -> std::io::Result<Vec<std::path::PathBuf>> {
    const OPERATIONS: &str = "operations.json";
    let own = folder.join(OPERATIONS);
    if own.is_file() {
        return Ok(vec![own]);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "sorted by the client's number below"
    )]
    let entries = folder.read_dir()?;
    let mut clients = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("client-"));
        let Some(Ok(number)) = number.map(str::parse::<u64>) else {
            continue;
        };
        // A client that only watched has none.
        let operations = entry.path().join(OPERATIONS);
        if operations.is_file() {
            clients.push((number, operations));
        }
    }
    clients.sort();
    Ok(clients.into_iter().map(|(_, path)| path).collect())
}

/// What an operation asks, where it is one of a register.
enum Asked {
    Read,
    Write(Value),
    /// From the value of a revision, 0 being none; and whether the other branch reads.
    Cas {
        revision: i64,
        to: Value,
    },
}

/// How it ended.
enum Ended {
    Ok(Option<Value>),
    /// A condition that did not hold, and what was read then.
    Unmet(Option<Value>),
    Fail(String),
    Info(String),
}

/// An operation of a line.
struct Call {
    client: i64,
    call: Nanos,
    returned: Nanos,
    place: Place,
    body: Body,
}

enum Body {
    Register {
        key: Name,
        asked: Asked,
        ended: Ended,
        /// The revision that it made, or read.
        revision: i64,
    },
    /// What is no operation of one register, and the keys that it may change.
    Other { kind: &'static str, keys: Vec<Name> },
}

fn read<R: Read>(input: R, calls: &mut Vec<Call>) -> Result<(), Fault> {
    let mut lines = Objects::new(input);
    while let Some((place, text)) = lines.next()? {
        let line: Line = json::parsed(text, place)?;
        calls.push(call(line, place)?);
    }
    Ok(())
}

fn call(line: Line, place: Place) -> Result<Call, Fault> {
    let nanos = |field, time: i64| {
        u64::try_from(time).map_err(|_| {
            let what = format!("{time} is no time: they are whole nanoseconds from 0 on");
            Fault::at(place, Problem::field(field, what))
        })
    };
    let call = nanos("Call", line.call)?;
    let returned = nanos("Return", line.r#return)?;
    let lost = !line.output.error.is_empty();
    if !lost && returned < call {
        let what = format!("{returned} is before the call, at {call}");
        return Err(Fault::at(place, Problem::field("Return", what)));
    }
    Ok(Call {
        client: line.client_id,
        call,
        returned,
        place,
        body: body(line.input, line.output, place)?,
    })
}

fn body(input: Request, output: Response, place: Place) -> Result<Body, Fault> {
    let missing = |field: &'static str| {
        Fault::at(
            place,
            Problem::field(field, "missing; the operation's type needs it"),
        )
    };
    let other = |kind, keys| Ok(Body::Other { kind, keys });
    match input.r#type.as_str() {
        "range" => {
            let range = input.range.ok_or_else(|| missing("Input.Range"))?;
            let Some(key) = range.one_key() else {
                return other("reads of several keys", vec![]);
            };
            if range.revision != 0 {
                return other("reads of old revisions", vec![]);
            }
            let revision = output
                .range
                .as_ref()
                .map_or(0, |found| found.revision(&key));
            let ended = match output.failed() {
                Some(failed) => failed,
                None => {
                    let found = output.range.ok_or_else(|| missing("Output.Range"))?;
                    Ended::Ok(Some(found.value(&key)))
                }
            };
            Ok(Body::Register {
                key,
                asked: Asked::Read,
                ended,
                revision,
            })
        }
        "txn" => {
            let txn = input.txn.ok_or_else(|| missing("Input.Txn"))?;
            let keys = txn.changed();
            let Some((key, asked)) = txn.asked() else {
                return match keys.is_empty() {
                    true => other("transactions that only read", vec![]),
                    false => other("transactions of several operations", keys),
                };
            };
            let Some((asked, lease)) = asked else {
                return other("transactions of several operations", keys);
            };
            if lease != 0 {
                return other("puts under an etcd lease", keys);
            }
            let revision = output.revision;
            let ended = match output.failed() {
                Some(failed) => failed,
                None => {
                    let outcome = output.txn.ok_or_else(|| missing("Output.Txn"))?;
                    match outcome.failure {
                        false => Ended::Ok(None),
                        true => {
                            let mut results = outcome.results.unwrap_or_default().into_iter();
                            let read = txn
                                .operations_on_failure
                                .is_some_and(|steps| !steps.is_empty());
                            let found = results.next().filter(|_| read);
                            Ended::Unmet(found.map(|found| found.value(&key)))
                        }
                    }
                }
            };
            Ok(Body::Register {
                key,
                asked,
                ended,
                revision,
            })
        }
        "leaseGrant" => other("lease grants", vec![]),
        // Its keys were put under a lease: they are left out by that.
        "leaseRevoke" => other("lease revocations", vec![]),
        "defragment" => other("defragmentations", vec![]),
        "compact" => other("compactions", vec![]),
        unknown => {
            let what = format!(
                "'{unknown}' is none of range, txn, leaseGrant, leaseRevoke, defragment and compact"
            );
            Err(Fault::at(place, Problem::field("Input.Type", what)))
        }
    }
}

impl Txn {
    /// The keys that it may change.
    fn changed(&self) -> Vec<Name> {
        let branches = [&self.operations_on_success, &self.operations_on_failure];
        let steps = branches.into_iter().flatten().flatten();
        let key = |step: &Step| match step.r#type.as_str() {
            "put-operation" => Some(step.put.key.as_str().into()),
            "delete-operation" => Some(step.delete.key.as_str().into()),
            _ => None,
        };
        steps.filter_map(key).collect()
    }

    /// The key and, where it is an operation of one register, what it asks, and under which
    /// etcd lease. None where it has no single change to make.
    fn asked(&self) -> Option<(Name, Option<(Asked, i64)>)> {
        let conditions = self.conditions.as_deref().unwrap_or_default();
        let success = self.operations_on_success.as_deref().unwrap_or_default();
        let failure = self.operations_on_failure.as_deref().unwrap_or_default();
        let [step] = success else { return None };
        let (key, to, lease) = match step.r#type.as_str() {
            "put-operation" => (&step.put.key, step.put.value.value(), step.put.lease),
            "delete-operation" => (&step.delete.key, Value::Nil, 0),
            _ => return None,
        };
        let name: Name = key.as_str().into();
        let reads_the_same = failure.iter().all(|step| {
            step.r#type == "range-operation" && step.range.one_key().as_ref() == Some(&name)
        });
        let asked = match conditions {
            [] if failure.is_empty() => Some(Asked::Write(to)),
            [only]
                if only.key == *key
                    && only.expected_version == 0
                    && failure.len() <= 1
                    && reads_the_same =>
            {
                Some(Asked::Cas {
                    revision: only.expected_revision,
                    to,
                })
            }
            _ => None,
        };
        Some((name, asked.map(|asked| (asked, lease))))
    }
}

impl Response {
    fn failed(&self) -> Option<Ended> {
        if !self.error.is_empty() {
            return Some(Ended::Info(self.error.clone()));
        }
        (!self.client_error.is_empty()).then(|| Ended::Fail(self.client_error.clone()))
    }
}

/// The operations of one register a key, by time, and what was left out.
fn in_order(calls: Vec<Call>) -> (Vec<Operation>, Vec<String>) {
    let mut others: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut touched: BTreeSet<Name> = BTreeSet::new();
    let mut values: BTreeMap<(Name, i64), Value> = BTreeMap::new();
    for call in &calls {
        match &call.body {
            Body::Other { kind, keys } => {
                *others.entry(kind).or_default() += 1;
                touched.extend(keys.iter().cloned());
            }
            Body::Register {
                key,
                asked,
                ended: Ended::Ok(read),
                revision,
            } if *revision > 0 => {
                let value = match (asked, read) {
                    (Asked::Write(value) | Asked::Cas { to: value, .. }, _) => value,
                    (Asked::Read, Some(value)) => value,
                    (Asked::Read, None) => continue,
                };
                values.insert((key.clone(), *revision), value.clone());
            }
            Body::Register { .. } => {}
        }
    }
    // By time; of one time, calls come before returns: they may have overlapped.
    let mut placed: Vec<(Nanos, bool, Operation)> = Vec::new();
    let mut unplaced = 0_u64;
    for call in calls {
        let Body::Register {
            key, asked, ended, ..
        } = call.body
        else {
            continue;
        };
        if touched.contains(&key) {
            unplaced += 1;
            continue;
        }
        let (f, asked, read) = match (asked, &ended) {
            (Asked::Read, Ended::Ok(found)) => ("read", Value::Nil, found.clone()),
            (Asked::Read, _) => ("read", Value::Nil, None),
            // What the other branch read is a read, and nothing else was done.
            (Asked::Cas { .. }, Ended::Unmet(Some(found))) => {
                ("read", Value::Nil, Some(found.clone()))
            }
            (Asked::Write(value), _) => ("write", value, None),
            (Asked::Cas { revision: 0, to }, _) => ("cas", Value::List(vec![Value::Nil, to]), None),
            (Asked::Cas { revision, to }, _) => match values.get(&(key.clone(), revision)) {
                Some(from) => ("cas", Value::List(vec![from.clone(), to]), None),
                // Nobody tells what was written at that revision: it wrote, where it did.
                None => ("write", to, None),
            },
        };
        let (kind, error) = match ended {
            Ended::Ok(_) | Ended::Unmet(Some(_)) => (Kind::Ok, None),
            Ended::Unmet(None) => (Kind::Fail, Some(Value::Word("unmet".into()))),
            Ended::Fail(why) => (Kind::Fail, Some(Value::Text(why.into()))),
            Ended::Info(why) => (Kind::Info, Some(Value::Text(why.into()))),
        };
        let operation = |kind, time, value, error| Operation {
            index: None,
            time: Some(time),
            process: call.client.to_string().into(),
            kind,
            f: f.into(),
            key: Some(Value::Text(key.clone())),
            token: None,
            value,
            error,
            place: call.place,
        };
        // Its call goes on for ever: when it is told does not matter.
        let returned = if kind == Kind::Info {
            call.call
        } else {
            call.returned
        };
        let answered = read.unwrap_or_else(|| asked.clone());
        placed.push((
            call.call,
            false,
            operation(Kind::Invoke, call.call, asked, None),
        ));
        placed.push((returned, true, operation(kind, returned, answered, error)));
    }
    placed.sort_by_key(|(time, returns, _)| (*time, *returns));
    let mut left_out: Vec<String> = Vec::new();
    if !touched.is_empty() {
        let keys: Vec<&str> = touched.iter().map(Name::as_str).collect();
        left_out.push(format!(
            "{unplaced} operations of keys that more than a register's operations touch: {}",
            keys.join(", ")
        ));
    }
    left_out.extend(others.iter().map(|(kind, count)| format!("{count} {kind}")));
    (
        placed
            .into_iter()
            .map(|(.., operation)| operation)
            .collect(),
        left_out,
    )
}

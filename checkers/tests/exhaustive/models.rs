//! Foreign histories of every model: up to four processes, two keys and eleven
//! operations, and a search of every order.

use std::collections::{BTreeMap, BTreeSet};

use deposed_checkers::budget::Budget;
use deposed_checkers::history::Kind;
use deposed_checkers::import::{Entry, Place, Value};
use deposed_checkers::model::{Model, judge};
use deposed_checkers::verdict::{Check, Evidence, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::{Shares, compare_many};

const OPERATIONS: usize = 11;

/// What an object holds: a value or text; who holds it as a lock; the last token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    value: String,
    holder: Option<usize>,
    token: i64,
}

/// What an operation asks for, and what it was answered.
#[derive(Clone, Debug, PartialEq)]
struct Operation {
    f: &'static str,
    process: usize,
    key: i64,
    argument: Value,
    answer: Value,
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Nil => String::new(),
        other => format!("{other:?}"),
    }
}

/// What the object does: its next state, and the answer; `None` if it refuses.
fn does(model: Model, operation: &Operation, state: &State) -> Option<(State, Value)> {
    let mut next = state.clone();
    let mut answer = operation.argument.clone();
    match (model, operation.f) {
        (_, "read" | "get") if state.value.is_empty() => answer = Value::Nil,
        (_, "read" | "get") => answer = Value::Text(state.value.as_str().into()),
        (_, "write" | "put") => next.value = text(&operation.argument),
        (_, "append") => next.value += &text(&operation.argument),
        (_, "cas") => {
            let Value::List(pair) = &operation.argument else {
                panic!("a cas has a pair")
            };
            if state.value != text(&pair[0]) {
                return None;
            }
            next.value = text(&pair[1]);
        }
        (_, "acquire") => {
            if state.holder.is_some() {
                return None;
            }
            next.holder = Some(operation.process);
            next.token += 1;
            answer = Value::Int(next.token);
        }
        (Model::Mutex, "release") if state.holder.is_some() => next.holder = None,
        (_, "release") if state.holder == Some(operation.process) => next.holder = None,
        _ => return None,
    }
    Some((next, answer))
}

/// Whether the object can do this and answer like that.
fn explains(model: Model, operation: &Operation, state: &State) -> Option<State> {
    let (mut next, answer) = does(model, operation, state)?;
    if model == Model::FencedMutex && operation.f == "acquire" {
        // Any token that is higher will do, and none where it is not known.
        if let Value::Int(token) = operation.answer {
            if token <= state.token {
                return None;
            }
            next.token = token;
        } else {
            next.token = state.token;
        }
        return Some(next);
    }
    if operation.f == "acquire" {
        next.token = 0;
    }
    let saw = matches!(operation.f, "read" | "get");
    (!saw || text(&answer) == text(&operation.answer)).then_some(next)
}

struct Open {
    operation: Operation,
    took_effect: Option<Option<Value>>,
}

#[derive(Default)]
struct Lines(Vec<Entry>);

impl Lines {
    fn put(&mut self, process: usize, kind: Kind, operation: &Operation, value: &Value) {
        let index = self.0.len() as u64;
        self.0.push(Entry {
            index,
            time: None,
            process: process.to_string().into(),
            kind,
            f: operation.f.into(),
            key: Some(Value::Int(operation.key)),
            token: None,
            value: value.clone(),
            error: None,
            place: Place {
                line: index + 1,
                column: 1,
            },
        });
    }
}

fn operation(model: Model, process: usize, key: i64, what: u8, started: usize) -> Operation {
    let value = |what: u8| Value::Text(["a", "b", "c"][usize::from(what) % 3].into());
    let unique = || Value::Text(format!("{started}").into());
    let (f, argument) = match (model, what % 6) {
        (Model::Mutex | Model::OwnedMutex | Model::FencedMutex, n) => {
            (["acquire", "release"][usize::from(n) % 2], Value::Nil)
        }
        (Model::Kv, 0) => ("put", value(what / 6)),
        (Model::Kv, 1 | 2) => ("append", value(what / 6)),
        (Model::Kv, _) => ("get", Value::Nil),
        (Model::CasRegister, 0 | 1) => {
            let pair = vec![value(what / 6), value(what / 18)];
            ("cas", Value::List(pair))
        }
        (Model::CasRegister, 2) => ("write", value(what / 6)),
        // Most values are written once, and a few again.
        (_, 0..3) if what > 30 => ("write", unique()),
        (_, 0..3) => ("write", value(what / 6)),
        _ => ("read", Value::Nil),
    };
    Operation {
        f,
        process,
        key,
        argument,
        answer: Value::Nil,
    }
}

type Move = (u8, u8, u8);

/// What an object does, or one that lies: it answers what it likes, or does nothing.
fn play(model: Model, keys: i64, moves: &[Move], lies: u8) -> Vec<Entry> {
    let mut lines = Lines::default();
    let mut open: [Option<Open>; 4] = Default::default();
    let mut process = [0, 1, 2, 3];
    let mut states: BTreeMap<i64, State> = BTreeMap::new();
    let mut answers = vec![Value::Nil];
    let mut started = 0;
    for &(who, how, what) in moves {
        let at = usize::from(who % 4);
        let lie = how % 100 < lies;
        let Some(mut now) = open[at].take() else {
            if started == OPERATIONS {
                continue;
            }
            started += 1;
            let key = i64::from(what) % keys;
            let operation = operation(model, process[at], key, what, started);
            lines.put(process[at], Kind::Invoke, &operation, &operation.argument);
            open[at] = Some(Open {
                operation,
                took_effect: None,
            });
            continue;
        };
        let operation = &now.operation;
        match (now.took_effect.take(), how % 12) {
            (None, 0..9) => {
                let state = states.entry(operation.key).or_insert(State {
                    value: String::new(),
                    holder: None,
                    token: 0,
                });
                let mut effect = does(model, operation, state);
                if lie {
                    let any = answers[usize::from(what) % answers.len()].clone();
                    effect = Some((state.clone(), any));
                }
                now.took_effect = Some(effect.map(|(next, answer)| {
                    *state = next;
                    answers.push(answer.clone());
                    answer
                }));
                open[at] = Some(now);
            }
            (Some(None), 1..) | (None, 9) => {
                lines.put(process[at], Kind::Fail, operation, &Value::Nil);
            }
            (_, 0) | (None, _) => {
                lines.put(process[at], Kind::Info, operation, &Value::Nil);
                process[at] += 4;
            }
            (Some(Some(answer)), _) => {
                // A token that its client did not get to know.
                let answer = if how > 250 && operation.f == "acquire" {
                    Value::Nil
                } else {
                    answer
                };
                lines.put(process[at], Kind::Ok, operation, &answer);
            }
        }
    }
    lines.0
}

/// An operation in its time.
struct Placed {
    from: u64,
    to: Option<u64>,
    /// Whether it may be left out.
    may_be_out: bool,
    operation: Operation,
}

/// The operations of a history, with those released that are not in `sure`, where it
/// is given.
fn placed(entries: &[Entry], sure: Option<&BTreeSet<u64>>) -> Vec<Placed> {
    let mut open: BTreeMap<String, Placed> = BTreeMap::new();
    let mut all = Vec::new();
    for entry in entries {
        let process = entry.process.to_string();
        if entry.kind == Kind::Invoke {
            let Some(Value::Int(key)) = entry.key else {
                panic!("every entry has a key")
            };
            let f = [
                "read", "write", "cas", "get", "put", "append", "acquire", "release",
            ]
            .into_iter()
            .find(|f| entry.f == *f);
            let operation = Operation {
                f: f.expect("an operation of a model"),
                process: process.parse().expect("processes are numbers"),
                key,
                argument: entry.value.clone(),
                answer: Value::Nil,
            };
            let from = entry.index;
            let begun = Placed {
                from,
                to: None,
                may_be_out: true,
                operation,
            };
            open.insert(process, begun);
            continue;
        }
        let mut ended = open.remove(&process).expect("what ends began");
        match entry.kind {
            Kind::Ok => {
                let is_sure = sure.is_none_or(|sure| sure.contains(&entry.index));
                ended.to = Some(entry.index);
                ended.may_be_out = !is_sure;
                ended.operation.answer = entry.value.clone();
                all.push(ended);
            }
            Kind::Info => all.push(ended),
            _ => {}
        }
    }
    all.extend(open.into_values());
    all.retain(|placed| !placed.may_be_out || !matches!(placed.operation.f, "read" | "get"));
    all
}

/// Whether some order of all operations on each key explains the answers.
fn has_order(model: Model, all: Vec<Placed>) -> bool {
    let keys: BTreeSet<i64> = all.iter().map(|placed| placed.operation.key).collect();
    let start = State {
        value: String::new(),
        holder: None,
        token: 0,
    };
    keys.into_iter().all(|key| {
        let of_key: Vec<&Placed> = (all.iter())
            .filter(|placed| placed.operation.key == key)
            .collect();
        places(model, &of_key, 0, &start, &mut BTreeSet::new())
    })
}

fn places(
    model: Model,
    all: &[&Placed],
    done: u32,
    state: &State,
    dead_ends: &mut BTreeSet<(u32, State)>,
) -> bool {
    let left = |n: &usize| done & (1 << n) == 0;
    let sure = (0..all.len()).filter(left).filter(|n| !all[*n].may_be_out);
    let Some(soonest) = sure.filter_map(|n| all[n].to).min() else {
        return true;
    };
    if !dead_ends.insert((done, state.clone())) {
        return false;
    }
    (0..all.len())
        .filter(left)
        .filter(|n| all[*n].from < soonest)
        .any(|n| {
            // What is placed after another began is not placed after its end.
            let released = all[n].may_be_out;
            let next = match released && all[n].to.is_some() {
                true => does(model, &all[n].operation, state).map(|(next, _)| State {
                    token: state.token,
                    ..next
                }),
                false => explains(model, &all[n].operation, state),
            };
            let over = (0..all.len())
                .filter(|other| all[*other].to.is_some_and(|to| to < all[n].from))
                .fold(0, |over, other| over | 1 << other);
            next.is_some_and(|next| places(model, all, done | over | 1 << n, &next, dead_ends))
        })
}

/// What a lock without owners did in these lines alone, and what it is said to have done.
fn is_violated(lines: Vec<Entry>) -> Result<bool, TestCaseError> {
    let lines = lines.into_iter().map(Ok::<_, std::convert::Infallible>);
    let judged = judge(lines, Some(Model::Mutex), Budget::default())
        .map_err(|error| TestCaseError::fail(format!("{error}")))?;
    let verdict = judged.verdicts.of(Check::MutexLinearizable);
    Ok(verdict.is_some_and(Verdict::is_violated))
}

/// The witness of a lock without owners is one by itself, and no longer one without any
/// of the operations that need another in between.
fn is_shortest(entries: &[Entry], evidence: &Evidence) -> TestCaseResult {
    let shown = entries
        .iter()
        .filter(|entry| evidence.events.contains(&entry.index));
    let mut lines: Vec<Entry> = shown.cloned().collect();
    let culprit = &entries[evidence.culprit as usize];
    if culprit.f == "release" && evidence.sentence.contains(" in between") {
        // The lock was held then.
        let mut before = lines[0].clone();
        (before.process, before.f) = ("before".into(), "acquire".into());
        for kind in [Kind::Ok, Kind::Invoke] {
            before.kind = kind;
            lines.insert(0, before.clone());
        }
        for (index, line) in lines.iter_mut().enumerate() {
            line.index = index as u64;
        }
    }
    prop_assert!(is_violated(lines.clone())?, "{evidence:?} shows nothing");
    for (at, line) in lines.iter().enumerate() {
        let needs = line.f == culprit.f && line.kind == Kind::Invoke && line.process != "before";
        if needs {
            let later = lines[at + 1..]
                .iter()
                .position(|end| end.process == line.process);
            let mut fewer = lines.clone();
            if let Some(end) = later {
                fewer.remove(at + 1 + end);
            }
            fewer.remove(at);
            prop_assert!(!is_violated(fewer)?, "{evidence:?} shows more than it must");
        }
    }
    Ok(())
}

/// Runs the comparison, and of what is violated that its evidence shows it.
fn compare(model: Model, keys: i64) {
    let moves = vec((0..4u8, any::<u8>(), any::<u8>()), 20..90);
    let lies = prop_oneof![2 => Just(0), 3 => 10..70u8];
    compare_many((moves, lies), |(moves, lies), shares: &Shares| {
        let entries = play(model, keys, &moves, lies);
        let explained = has_order(model, placed(&entries, None));
        prop_assert!(
            lies > 0 || explained,
            "an object's own history has an order"
        );
        let given = entries
            .iter()
            .cloned()
            .map(Ok::<_, std::convert::Infallible>);
        let judged = judge(given, Some(model), Budget::default())
            .map_err(|error| TestCaseError::fail(format!("{error}")))?;
        let check = model.check().expect("a model with a check");
        let found = judged.verdicts.of(check).expect("it was judged").clone();
        if found.word() == "not-claimed" {
            prop_assert!(explained);
            return Ok(());
        }
        let lines = || entries.iter().map(|entry| format!("{entry:?}")).collect();
        shares.compare_lines(&found, explained, lines)?;
        if let Verdict::Violated(evidence) = &found {
            let shown: BTreeSet<u64> = evidence.events.iter().copied().collect();
            if model == Model::Mutex {
                is_shortest(&entries, evidence)?;
                // What cancels out is left out together.
                if evidence.sentence.contains(" needed by ")
                    || evidence.sentence.contains(" beside ")
                {
                    return Ok(());
                }
            }
            // What one of them says of a failure is no part of the order.
            prop_assert!(
                !has_order(model, placed(&entries, Some(&shown))),
                "{evidence:?} has an order:\n{}",
                lines().join("\n")
            );
        }
        Ok(())
    });
}

#[test]
fn mutexes() {
    compare(Model::Mutex, 2);
}

#[test]
fn owned_mutexes() {
    compare(Model::OwnedMutex, 2);
}

#[test]
fn fenced_mutexes() {
    compare(Model::FencedMutex, 2);
}

#[test]
fn registers() {
    compare(Model::Register, 1);
}

#[test]
fn registers_with_cas() {
    compare(Model::CasRegister, 2);
}

#[test]
fn stores_of_texts() {
    compare(Model::Kv, 2);
}

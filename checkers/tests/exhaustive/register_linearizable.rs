//! One key, four processes, up to twelve operations, and a search of every order.

use std::collections::{BTreeMap, BTreeSet};

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Lines, Shares, compare_many, verdict_of};

const OPERATIONS: usize = 12;

/// What a process does next, and how.
type Move = (u8, u8, u8);

/// What a process is in the middle of.
#[derive(Clone)]
struct Open {
    call: u64,
    op: Op,
    /// Of a read: what it saw.
    took_effect: Option<Value>,
}

/// What a register does, or one that lies: reads return what they like, and writes
/// take effect again.
fn play(moves: &[Move], lies: u8) -> Vec<Event> {
    let mut lines = Lines::default();
    let mut open: [Option<Open>; 4] = Default::default();
    let mut retry: [Option<(Op, Kind)>; 4] = Default::default();
    let (mut register, mut written) = (Value::Null, vec![Value::Null]);
    let mut applied = BTreeSet::new();
    let (mut seq, mut started) = (0, 0);
    for &(process, how, what) in moves {
        let at = usize::from(process % 4);
        let name = ["a", "b", "c", "d"][at];
        let lie = how % 100 < lies;
        let any = written[usize::from(what) % written.len()].clone();
        let Some(mut now) = open[at].take() else {
            if started == OPERATIONS {
                continue;
            }
            started += 1;
            // Storage refuses a seq that is below one that it has seen.
            let again = retry[at].take().filter(|(op, kind)| {
                how % 2 == 0 && (*kind == Kind::Info || seq_of(op) == Some(seq))
            });
            let op = again.map(|(op, _)| op).unwrap_or_else(|| {
                seq += 1;
                operation(what, seq)
            });
            if let Op::Write(write) = &op
                && !written.contains(&write.value)
            {
                written.push(write.value.clone());
            }
            let call = lines.invoke(name, op.clone());
            open[at] = Some(Open {
                call,
                op,
                took_effect: None,
            });
            continue;
        };
        match (&now.took_effect, how % 12) {
            (None, 0..9) => {
                let once = seq_of(&now.op).is_none_or(|seq| applied.insert(seq)) || lie;
                now.took_effect = Some(match &now.op {
                    Op::Read(_) if lie => any,
                    Op::Read(_) => register.clone(),
                    Op::Write(write) if once => {
                        register = write.value.clone();
                        Value::Null
                    }
                    Op::Delete(_) if once => {
                        register = Value::Null;
                        Value::Null
                    }
                    _ => Value::Null,
                });
                open[at] = Some(now);
            }
            (Some(_), 0) | (None, _) => {
                let kind = match how % 12 {
                    9 => Kind::Fail,
                    _ => Kind::Info,
                };
                lines.complete(now.call, kind, Answer::None);
                // Without a seq another try would be another operation.
                if seq_of(&now.op).is_some() {
                    retry[at] = Some((now.op, kind));
                }
            }
            (Some(value), _) => {
                let answer = match now.op.f() {
                    F::Read => Answer::Value(value.clone()),
                    _ => Answer::None,
                };
                lines.complete(now.call, Kind::Ok, answer);
            }
        }
    }
    lines.0
}

fn operation(what: u8, seq: u64) -> Op {
    let (lease, key, token): (Name, Name, _) = ("leader".into(), "x".into(), Some(1));
    let value = json!(seq);
    let seq = Some(seq).filter(|_| !what.is_multiple_of(3));
    match what % 8 {
        0..3 => Op::Write(Write {
            lease,
            token,
            seq,
            key,
            value,
        }),
        3 => Op::Delete(Delete {
            lease,
            token,
            seq,
            key,
        }),
        _ => Op::Read(Read { lease, token, key }),
    }
}

fn seq_of(op: &Op) -> Option<u64> {
    match op {
        Op::Write(write) => write.seq,
        Op::Delete(delete) => delete.seq,
        _ => None,
    }
}

/// What all tries of one operation have in common.
fn id_of(op: &Op, invoke: u64) -> u64 {
    seq_of(op).unwrap_or(1_000 + invoke)
}

/// An operation that may have to be placed.
struct Placed {
    from: u64,
    /// `None`: it may be left out.
    to: Option<u64>,
    does: Does,
}

enum Does {
    Put(Value),
    See(Value),
}

/// Whether some order of all operations explains what was read, by trying each.
fn has_order(events: &[Event]) -> bool {
    let mut operations: BTreeMap<u64, Placed> = BTreeMap::new();
    let mut invokes = BTreeMap::new();
    let mut failed = BTreeSet::new();
    for event in events {
        if event.kind == Kind::Fail {
            failed.insert(event.call);
        }
    }
    for event in events.iter().filter(|event| !failed.contains(&event.call)) {
        match &event.body {
            Body::Invoke(op) => {
                invokes.insert(event.call, (event.index, op));
                let value = match op {
                    Op::Write(write) => Some(write.value.clone()),
                    Op::Delete(_) => Some(Value::Null),
                    _ => None,
                };
                if let Some(value) = value {
                    operations.entry(id_of(op, event.index)).or_insert(Placed {
                        from: event.index,
                        to: None,
                        does: Does::Put(value),
                    });
                }
            }
            Body::Complete(_, answer) if event.kind == Kind::Ok => {
                let (from, op) = invokes[&event.call];
                match (operations.get_mut(&id_of(op, from)), answer) {
                    (Some(change), _) => {
                        change.to = Some(change.to.unwrap_or(event.index));
                    }
                    (None, Answer::Value(value)) => {
                        let read = Placed {
                            from,
                            to: Some(event.index),
                            does: Does::See(value.clone()),
                        };
                        operations.insert(id_of(op, from), read);
                    }
                    _ => unreachable!("a read that is ok has a value"),
                }
            }
            _ => {}
        }
    }
    let operations: Vec<Placed> = operations.into_values().collect();
    let mut dead_ends = BTreeSet::new();
    places(&operations, 0, &Value::Null, &mut dead_ends)
}

fn places(
    operations: &[Placed],
    placed: u32,
    register: &Value,
    dead_ends: &mut BTreeSet<(u32, String)>,
) -> bool {
    let left = |n: &usize| placed & (1 << n) == 0;
    let all = 0..operations.len();
    let Some(soonest) = all
        .clone()
        .filter(left)
        .filter_map(|n| operations[n].to)
        .min()
    else {
        return true;
    };
    if !dead_ends.insert((placed, register.to_string())) {
        return false;
    }
    all.filter(left)
        .filter(|n| operations[*n].from < soonest)
        .any(|n| {
            let placed = placed | 1 << n;
            match &operations[n].does {
                Does::Put(value) => places(operations, placed, value, dead_ends),
                Does::See(value) => {
                    value == register && places(operations, placed, register, dead_ends)
                }
            }
        })
}

#[test]
fn every_verdict_is_that_of_the_search() {
    let header: Header = serde_json::from_value(json!({"deposed": 1})).unwrap();
    let moves = vec((0..4u8, any::<u8>(), any::<u8>()), 20..90);
    let lies = prop_oneof![1 => Just(0), 3 => 30..100u8];
    compare_many((moves, lies), |(moves, lies), shares: &Shares| {
        let events = play(&moves, lies);
        let found = verdict_of(Check::RegisterLinearizable, &header, &events);
        let explained = has_order(&events);
        prop_assert!(
            lies > 0 || explained,
            "a register's own history has an order"
        );
        if found.word() == "not-claimed" {
            prop_assert!(explained);
            return Ok(());
        }
        shares.compare(&found, explained, &events)
    });
}

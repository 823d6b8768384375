//! Random small histories of two clients: whatever may be told in any order, sensible or
//! not. A rule that is stated again, naively, says of each whether it is kept.

use deposed_checkers::history::*;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::ops::Range;

use crate::Lines;

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum May {
    Acquire,
    Renew,
    Release,
    Fence,
    Write,
    Delete,
    Read,
    /// The last write or delete is sent once more.
    Again,
    Done,
    Fails,
    /// Fails, as its token had been overtaken.
    IsStale,
    Lost,
    Granted,
    StoreBack,
    Restored,
    Applied,
    Fenced,
    StorageBack,
    Lead,
    Follow,
    Crash,
    /// All faults are healed.
    Calm,
}

/// What comes, who it is about, and how it turns out.
pub type Move = (u8, u8, u8);

pub fn moves(length: Range<usize>) -> impl Strategy<Value = Vec<Move>> {
    vec((any::<u8>(), any::<u8>(), any::<u8>()), length)
}

pub struct Noise<'a> {
    pub may: &'a [May],
    /// How many leases there are.
    pub leases: u8,
    /// How many calls a client has open at once.
    pub at_once: usize,
    /// One in so many tokens is another's, or nobody's.
    pub wrong: u8,
    /// How long an instant lasts, in nanoseconds.
    pub instant: Nanos,
}

#[derive(Default)]
struct Client {
    open: Vec<u64>,
    nonce: u32,
    request: u64,
    seq: u64,
    /// By lease.
    token: [Token; 2],
    last_write: Option<Op>,
}

/// How long each lease lasts, in nanoseconds.
pub const TTL: Nanos = 20;

const PROCESSES: [&str; 2] = ["a", "b"];
const LEASES: [&str; 2] = ["leader", "shard"];

impl Noise<'_> {
    pub fn history(&self, moves: &[Move]) -> Vec<Event> {
        let mut lines = Lines::default();
        let mut clients: [Client; 2] = Default::default();
        let mut highest: [Token; 2] = [0; 2];
        let mut now = 0;
        for &(what, who, how) in moves {
            let before = lines.0.len();
            now += u64::from(how % 3) * self.instant;
            let may = self.may[usize::from(what) % self.may.len()];
            let at = usize::from(who % 2);
            let one = usize::from(who / 2 % self.leases);
            let (process, lease) = (PROCESSES[at], Name::from(LEASES[one]));
            let client = &mut clients[at];
            let holder: Name = format!("{process}#{}", client.nonce).into();
            let wrong = who / 4 % self.wrong == 0;
            let token = match wrong {
                true => 1 + u64::from(how / 3 % 4),
                false => client.token[one].max(1),
            };
            // The next one, mostly; its own again; or any.
            let fresh = match who / 4 % (2 * self.wrong) {
                0 => 1 + u64::from(how / 3 % 5),
                1 => highest[one].max(1),
                _ => highest[one] + 1,
            };
            let key = Name::from("x");
            let seq = Some(client.seq);
            let op = match may {
                May::Acquire => {
                    client.request += u64::from(how / 3 % 4 > 0 || client.request == 0);
                    Some(Op::Acquire(Acquire {
                        lease: lease.clone(),
                        holder: holder.clone(),
                        request: client.request,
                        ttl: TTL,
                    }))
                }
                May::Renew => Some(Op::Renew(Renew {
                    lease: lease.clone(),
                    holder: holder.clone(),
                    token: Some(token),
                    attempt: 1,
                    ttl: TTL,
                })),
                May::Release => Some(Op::Release(Release {
                    lease: lease.clone(),
                    holder: holder.clone(),
                    token: Some(token),
                })),
                May::Fence => Some(Op::Fence(Fence {
                    lease: lease.clone(),
                    token,
                })),
                May::Write => Some(Op::Write(Write {
                    lease: lease.clone(),
                    token: Some(token),
                    seq,
                    key,
                    value: json!(lines.0.len()),
                })),
                May::Delete => Some(Op::Delete(Delete {
                    lease: lease.clone(),
                    token: Some(token),
                    seq,
                    key,
                })),
                May::Read => Some(Op::Read(Read {
                    lease: lease.clone(),
                    token: Some(token),
                    key,
                })),
                May::Again => client.last_write.clone(),
                _ => None,
            };
            // Nobody uses a token before it has one, unless it does wrong.
            let waits = |op: &Op| {
                let granted = self.may.contains(&May::Acquire) || self.may.contains(&May::Granted);
                granted && !wrong && op.f() != F::Acquire && client.token[one] == 0
            };
            if let Some(op) = op {
                if client.open.len() < self.at_once && !waits(&op) {
                    if matches!(op, Op::Write(_) | Op::Delete(_)) {
                        client.seq += u64::from(may != May::Again);
                        client.last_write = Some(op.clone());
                    }
                    client.open.push(lines.invoke(process, op));
                }
            } else if let Some(kind) = ends(may) {
                if !client.open.is_empty() {
                    let nth = usize::from(how / 3) % client.open.len();
                    let call = client.open.remove(nth);
                    let Body::Invoke(op) = lines.0[call as usize].body.clone() else {
                        unreachable!("a call begins with its invoke")
                    };
                    let answer = match &op {
                        Op::Acquire(op) if kind == Kind::Ok => {
                            let one = usize::from(op.lease == LEASES[1]);
                            client.token[one] = fresh;
                            highest[one] = highest[one].max(fresh);
                            Answer::Token(fresh)
                        }
                        Op::Read(_) if kind == Kind::Ok => Answer::Value(Value::Null),
                        _ => Answer::None,
                    };
                    lines.complete(call, kind, answer);
                    let works = op.holder().is_none();
                    let stale = may == May::IsStale && works;
                    lines.0.last_mut().unwrap().error = match (stale, op.token()) {
                        (true, Some(token)) => Some(Failure::stale_token(token, token + 1)),
                        _ => (kind == Kind::Fail).then(|| Failure::new("held")),
                    };
                }
            } else if may == May::Crash {
                client.nonce += 1;
                client.open.clear();
                client.last_write = None;
                let node = Body::Nemesis("crash".into(), json!({"node": process}));
                lines.put("nemesis", Kind::Info, None, node);
            } else if may == May::Again {
                // Nothing was sent yet.
            } else if may == May::Calm {
                let calm = Body::Nemesis("calm".into(), Value::Null);
                lines.put("nemesis", Kind::Info, None, calm);
            } else {
                let (node, seen) = self.observes(
                    (may, how, wrong),
                    (lease.clone(), holder, token, fresh, now),
                    client.request,
                    highest[one],
                    client.open.iter().map(|call| &lines.0[*call as usize].body),
                );
                if let Observation::Granted(_) = seen {
                    client.token[one] = fresh;
                    highest[one] = highest[one].max(fresh);
                }
                let node = if matches!(may, May::Lead | May::Follow) {
                    process
                } else {
                    node
                };
                lines.put(node, Kind::Info, None, Body::Observed(seen));
            }
            for line in &mut lines.0[before..] {
                line.time = now;
            }
        }
        lines.0
    }

    fn observes<'a>(
        &self,
        (may, how, wrong): (May, u8, bool),
        (lease, holder, token, fresh, now): (Name, Name, Token, Token, Nanos),
        request: u64,
        highest: Token,
        open: impl Iterator<Item = &'a Body>,
    ) -> (&'static str, Observation) {
        // A node forgets, or it finds what it had.
        let found = match wrong {
            true => highest.saturating_sub(u64::from(how / 3 % 2)),
            false => highest,
        };
        let leases = || {
            let lease = RecoveredLease {
                counter: found,
                holder: None,
                ttl: None,
            };
            [(LEASES[0].into(), lease)].into()
        };
        let storage = ["storage", "replica"][usize::from(how / 3 % 5 == 0)];
        match may {
            May::Granted => (
                "store",
                Observation::Granted(Granted {
                    lease,
                    holder,
                    request,
                    token: Some(fresh),
                    ttl: TTL,
                    clock: now,
                }),
            ),
            May::StoreBack => (
                "store",
                Observation::StoreRecovered(StoreRecovered {
                    leases: leases(),
                    clock: now,
                }),
            ),
            May::Restored => (
                "store",
                Observation::Restored(Restored {
                    floor: highest + u64::from(how / 3 % 2),
                    leases: leases(),
                    clock: now,
                }),
            ),
            May::Applied => {
                let mut calls = open.filter_map(|body| match body {
                    Body::Invoke(Op::Write(op)) => Some((F::Write, op.clone())),
                    _ => None,
                });
                let (f, write) = calls.next().unwrap_or_else(|| {
                    let value = json!("of nobody");
                    let key = "x".into();
                    let (token, seq) = (Some(token), None);
                    let write = Write {
                        lease,
                        token,
                        seq,
                        key,
                        value,
                    };
                    (F::Write, write)
                });
                (
                    storage,
                    Observation::Applied(Applied {
                        f,
                        lease: write.lease,
                        token: write.token,
                        seq: write.seq,
                        key: write.key,
                        value: Some(write.value),
                    }),
                )
            }
            May::Fenced => (storage, Observation::Fenced(Fenced { lease, token })),
            May::StorageBack => (
                storage,
                Observation::StorageRecovered(StorageRecovered {
                    highest: [(lease, found)].into(),
                }),
            ),
            May::Lead => (
                "client",
                Observation::Lead(Lead {
                    lease,
                    holder,
                    token: Some(token),
                    until: (how % 8 > 0).then(|| now + u64::from(how / 8 % 8)),
                    sent: Some(now),
                }),
            ),
            May::Follow => (
                "client",
                Observation::Follow(Follow {
                    lease,
                    holder,
                    token: Some(token),
                }),
            ),
            _ => unreachable!("no node tells of that"),
        }
    }
}

fn ends(may: May) -> Option<Kind> {
    match may {
        May::Done => Some(Kind::Ok),
        May::Fails | May::IsStale => Some(Kind::Fail),
        May::Lost => Some(Kind::Info),
        _ => None,
    }
}

/// A call, as it came out.
pub struct Call<'a> {
    pub invoke: usize,
    pub process: &'a Name,
    pub op: &'a Op,
    /// The event that ends it.
    pub end: Option<(usize, &'a Event)>,
}

impl Call<'_> {
    /// When it was answered ok.
    pub fn ok(&self) -> Option<usize> {
        let (at, end) = self.end?;
        (end.kind == Kind::Ok).then_some(at)
    }

    /// The token that it was granted.
    pub fn granted(&self) -> Option<Token> {
        match self.end?.1.body {
            Body::Complete(F::Acquire, Answer::Token(token)) => Some(token),
            _ => None,
        }
    }

    /// Whether it surely happened, or surely did not, by then.
    pub fn is_settled(&self, by: usize) -> bool {
        let settles = |(at, end): (usize, &Event)| at < by && end.kind != Kind::Info;
        self.end.is_some_and(settles)
    }

    pub fn changes(&self) -> bool {
        matches!(self.op.f(), F::Write | F::Delete)
    }
}

pub fn calls(events: &[Event]) -> Vec<Call<'_>> {
    let invokes = events.iter().enumerate();
    let invokes = invokes.filter_map(|(at, event)| match &event.body {
        Body::Invoke(op) => Some((at, event, op)),
        _ => None,
    });
    invokes
        .map(|(invoke, event, op)| {
            let ends =
                |end: &&Event| end.call == event.call && matches!(end.body, Body::Complete(..));
            let end = events.iter().find(ends);
            Call {
                invoke,
                process: &event.process,
                op,
                end: end.map(|end| (end.index as usize, end)),
            }
        })
        .collect()
}

/// When a process crashed last before an event; 0 if it never did.
pub fn crashed(events: &[Event], process: &str, before: usize) -> usize {
    let crashes = |event: &Event| match &event.body {
        Body::Nemesis(f, fault) => f == "crash" && fault["node"] == process,
        _ => false,
    };
    events[..before].iter().rposition(crashes).unwrap_or(0)
}

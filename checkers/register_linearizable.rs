//! `register-linearizable`: each key behaves like one register, at one place: some
//! order of all reads, writes and deletes, each between its invoke and its completion,
//! explains what every read returned. A key is absent at first. Needs the client side
//! alone, and takes any process's word, a deposed leader's too: a late read that some
//! order explains is fine.
//!
//! Exact, in time near-linear in the history's length, as long as no value is written
//! again while it can still be read; then it is Unknown. Deletes (and writes of null)
//! may be many: they are matched with the reads that found nothing, exactly. A write or
//! delete without an answer may take effect at any later time, or never; one that
//! failed never does. Invokes of one key under one (token, seq) are tries of one
//! operation, which takes effect once, unless all of them failed. Any other repetition
//! of a seq within a token, or one that goes back, is Unknown: storage refuses or
//! repeats it.
//!
//! What order means is the order of the lines, which is that of true time.
//!
//! Memory: per key the values that can still be read, what is concurrent with the
//! oldest open call, and the writes and deletes that were never answered; and some of
//! the values that were overwritten last, so as to say by what.

use std::collections::{BTreeMap, VecDeque};

use crate::budget::Remembered;
use crate::history::{Answer, Applied, Body, Event, F, Kind, Name, Nanos, Observation, Op, Token};
use crate::judge::{Checker, Invoked, Step};
use crate::units::time;
use crate::verdict::{Evidence, Verdict};

mod datum;
mod evidence;
mod order;
mod register;
mod registers;
mod written;

pub(crate) use datum::Datum;
pub(crate) use order::Act;
pub(crate) use register::TwiceWritten;
pub(crate) use registers::Registers;
use written::Id;

/// How many tokens of a lease are remembered with their last write, the highest.
const TOKENS_REMEMBERED: usize = 4_096;

#[derive(Default)]
pub(crate) struct RegisterLinearizable {
    leases: BTreeMap<Name, Lease>,
    registers: Registers,
    /// What storage nodes applied last.
    landed: VecDeque<Landed>,
    any_read: bool,
    unknown: Option<String>,
    found: Option<Evidence>,
}

#[derive(Default)]
struct Lease {
    registers: BTreeMap<Name, usize>,
    /// The highest seq of each token, and the register that it changed.
    highest: BTreeMap<Option<Token>, (u64, usize, Option<Datum>)>,
    /// The highest token that was forgotten.
    forgotten: Option<Token>,
}

/// How many of the last that storage applied are remembered, of all keys together.
const LANDED: usize = 256;

/// A write or delete that a storage node applied.
struct Landed {
    register: usize,
    event: u64,
    at: Nanos,
    node: Name,
    f: F,
    token: Option<Token>,
}

impl RegisterLinearizable {
    pub fn new() -> Self {
        Self::default()
    }

    fn register(&mut self, lease: &Name, key: &Name) -> usize {
        if let Some(at) = self.leases.get(lease).and_then(|l| l.registers.get(key)) {
            return *at;
        }
        let at = self.registers.add(key.clone());
        let lease = self.leases.entry(lease.clone()).or_default();
        lease.registers.insert(key.clone(), at);
        at
    }

    fn invoked(&mut self, event: &Event, op: &Op) {
        match op {
            Op::Read(read) => {
                let at = self.register(&read.lease, &read.key);
                self.registers.at(at).reads(event.index);
            }
            Op::Write(write) => {
                let at = self.register(&write.lease, &write.key);
                let id = write.seq.map(|seq| (write.token, seq));
                self.changes(event, op, at, id, Datum::of(&write.value));
            }
            Op::Delete(delete) => {
                let at = self.register(&delete.lease, &delete.key);
                let id = delete.seq.map(|seq| (delete.token, seq));
                self.changes(event, op, at, id, None);
            }
            _ => {}
        }
    }

    fn changes(&mut self, event: &Event, op: &Op, at: usize, id: Option<Id>, value: Option<Datum>) {
        let (index, process) = (event.index, &event.process);
        if let Some(id) = id
            && !self.registers.at(at).knows(id, value.as_ref())
        {
            let (token, seq) = id;
            let lease = self.leases.entry(op.lease().clone()).or_default();
            match lease.highest.get_mut(&token) {
                Some(highest) if seq < highest.0 => return self.cannot_tell(seq, token),
                Some(highest) if seq == highest.0 => {
                    // The same again, of what was answered and is over.
                    if highest.1 != at || highest.2 != value {
                        self.cannot_tell(seq, token);
                    }
                    return;
                }
                Some(highest) => {
                    let before = std::mem::replace(highest, (seq, at, value.clone()));
                    let (seq, at, value) = before;
                    self.registers.at(at).forget((token, seq), value);
                }
                None if token.is_some() && token <= lease.forgotten => {
                    return self.cannot_tell(seq, token);
                }
                None => {
                    lease.highest.insert(token, (seq, at, value.clone()));
                    if lease.highest.len() > TOKENS_REMEMBERED {
                        self.forget_a_token(op.lease());
                    }
                }
            }
        }
        match value {
            None => self.registers.at(at).deletes(index, process, id),
            Some(value) => {
                let written = self
                    .registers
                    .at(at)
                    .writes(index, process, id, value.clone());
                if written == Err(TwiceWritten) {
                    let key = self.registers.key(at);
                    self.unknown.get_or_insert_with(|| {
                        format!(
                            "{value} is written to {key} again while it can still be read: which \
                             write a read saw is not known"
                        )
                    });
                }
            }
        }
    }

    /// The lowest of a lease: whoever writes under it again came too late to be judged.
    fn forget_a_token(&mut self, lease: &Name) {
        let Some(lease) = self.leases.get_mut(lease) else {
            return;
        };
        let lowest = lease.highest.keys().find(|token| token.is_some()).copied();
        if let Some(token) = lowest
            && let Some((seq, at, value)) = lease.highest.remove(&token)
        {
            lease.forgotten = lease.forgotten.max(token);
            self.registers.at(at).forget((token, seq), value);
        }
    }

    fn cannot_tell(&mut self, seq: u64, token: Option<Token>) {
        self.unknown.get_or_insert_with(|| {
            let token = token.map_or("no token".to_owned(), |token| format!("token {token}"));
            format!(
                "seq {seq} under {token} does not rise: whether storage applied the write again \
                 is not known"
            )
        });
    }

    fn completed(&mut self, event: &Event, invoked: &Invoked, answer: &Answer) {
        let (lease, key) = match &invoked.op {
            Op::Read(op) => (&op.lease, &op.key),
            Op::Write(op) => (&op.lease, &op.key),
            Op::Delete(op) => (&op.lease, &op.key),
            _ => return,
        };
        let at = self.register(lease, key);
        let act = Act {
            f: invoked.op.f(),
            process: event.process.clone(),
            invoke: invoked.index,
            complete: event.index,
        };
        let found = match answer {
            Answer::Value(value) => Some(Datum::of(value)),
            _ => None,
        };
        self.any_read |= event.kind == Kind::Ok && found.is_some();
        let wrong = self.registers.completes(at, act, event.kind, found).err();
        self.found = wrong.map(|evidence| self.with_what_landed(at, evidence));
    }

    fn landed(&mut self, event: &Event, applied: &Applied) {
        let lease = self.leases.get(&applied.lease);
        let Some(at) = lease.and_then(|lease| lease.registers.get(&applied.key)) else {
            return;
        };
        let register = *at;
        if self.landed.len() == LANDED {
            self.landed.pop_front();
        }
        self.landed.push_back(Landed {
            register,
            event: event.index,
            at: event.time,
            node: event.process.clone(),
            f: applied.f,
            token: applied.token,
        });
    }

    /// With the last that storage says it applied between what is shown and the read that
    /// does not go with it.
    fn with_what_landed(&self, at: usize, evidence: Evidence) -> Evidence {
        let Evidence {
            sentence,
            events,
            culprit,
            expected,
            ..
        } = &evidence;
        let [.., since, _, last] = events[..] else {
            return evidence;
        };
        let between =
            |landed: &&Landed| landed.register == at && since < landed.event && landed.event < last;
        let mut landed = self.landed.iter().rev().filter(|_| last == *culprit);
        let Some(landed) = landed.find(between) else {
            return evidence;
        };
        let token = landed.token.map(|token| format!(" with token {token}"));
        let sentence = format!(
            "{sentence}; {} applied a {}{} at {}",
            landed.node,
            landed.f.name(),
            token.unwrap_or_default(),
            time(landed.at)
        );
        let shown = events.iter().copied().chain([landed.event]);
        Evidence::new(sentence, shown, *culprit, expected.clone())
    }
}

impl Checker for RegisterLinearizable {
    fn see(&mut self, step: &Step<'_>) {
        if self.unknown.is_some() {
            return;
        }
        match &step.event.body {
            Body::Invoke(op) => self.invoked(step.event, op),
            Body::Complete(_, answer) => {
                let Some(invoked) = step.invoked else { return };
                self.completed(step.event, invoked, answer);
            }
            Body::Observed(Observation::Applied(applied)) => self.landed(step.event, applied),
            _ => {}
        }
    }

    fn remembered(&self) -> Remembered {
        let tokens = self.leases.values().map(|lease| lease.highest.len()).sum();
        let keys = self.registers.count();
        (0..keys)
            .map(|at| self.registers.remembered(at))
            .fold(Remembered::default(), Remembered::with)
            .and("keys", 2 * keys + self.leases.len())
            .and("writes that storage applied", self.landed.len())
            .and("tokens and their last write", tokens)
    }

    fn found(&self) -> bool {
        self.found.is_some()
    }

    fn verdict(mut self: Box<Self>) -> Verdict {
        if let Some(evidence) = self.found {
            return Verdict::Violated(evidence);
        }
        if let Some(why) = self.unknown {
            return Verdict::Unknown(why);
        }
        match self.registers.ends() {
            Some((at, evidence)) => Verdict::Violated(self.with_what_landed(at, evidence)),
            None if !self.any_read => {
                Verdict::NotClaimed("no read was answered in this history".to_owned())
            }
            None => Verdict::Valid,
        }
    }
}

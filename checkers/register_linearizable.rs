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
use crate::history::{Answer, Body, Event, Kind, Name, Op, Token};
use crate::judge::{Checker, Invoked, Step};
use crate::verdict::{Evidence, Verdict};

mod datum;
mod evidence;
mod order;
mod register;
mod written;

use datum::Datum;
use order::{Act, Conflict, Stay};
use register::{Overwritten, Register, Wrong};
use written::Id;

/// How many tokens of a lease are remembered with their last write, the highest.
const TOKENS_REMEMBERED: usize = 4_096;

/// How many overwritten values are remembered, of all keys together.
const REMEMBERED: usize = 16_384;

#[derive(Default)]
pub(crate) struct RegisterLinearizable {
    leases: BTreeMap<Name, Lease>,
    registers: Vec<(Name, Register)>,
    /// By register and value.
    overwritten: BTreeMap<(usize, Datum), Overwritten>,
    /// Those, oldest first.
    oldest: VecDeque<(usize, Datum)>,
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

impl RegisterLinearizable {
    pub fn new() -> Self {
        Self::default()
    }

    fn register(&mut self, lease: &Name, key: &Name) -> usize {
        if let Some(at) = self.leases.get(lease).and_then(|l| l.registers.get(key)) {
            return *at;
        }
        let at = self.registers.len();
        self.registers.push((key.clone(), Register::default()));
        let lease = self.leases.entry(lease.clone()).or_default();
        lease.registers.insert(key.clone(), at);
        at
    }

    fn invoked(&mut self, event: &Event, op: &Op) {
        match op {
            Op::Read(read) => {
                let at = self.register(&read.lease, &read.key);
                self.registers[at].1.reads(event.index);
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
            && !self.registers[at].1.knows(id, value.as_ref())
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
                    self.registers[at].1.forget((token, seq), value);
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
        let (key, register) = &mut self.registers[at];
        match value {
            None => register.deletes(index, process, id),
            Some(value) => {
                if let Err(register::TwiceWritten) =
                    register.writes(index, process, id, value.clone())
                {
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
            self.registers[at].1.forget((token, seq), value);
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
        let (overwritten, oldest) = (&mut self.overwritten, &mut self.oldest);
        let mut over = |gone: Overwritten| {
            if oldest.len() == REMEMBERED
                && let Some(first) = oldest.pop_front()
            {
                overwritten.remove(&first);
            }
            oldest.push_back((at, gone.value.clone()));
            overwritten.insert((at, gone.value.clone()), gone);
        };
        let result = self.registers[at]
            .1
            .completes(act, event.kind, found, &mut over);
        if let Err(wrong) = result {
            let wrong = self.with_what_is_remembered(at, wrong);
            self.found = Some(evidence::of(&self.registers[at].0, wrong));
        }
    }

    /// A value that nobody can have read any more may have been overwritten.
    fn with_what_is_remembered(&mut self, at: usize, wrong: Wrong) -> Wrong {
        let Wrong::NeverWritten(read, value) = wrong else {
            return wrong;
        };
        match self.overwritten.remove(&(at, value.clone())) {
            Some(gone) => {
                let around = Stay {
                    value: Some(value),
                    first: gone.first,
                    last: read,
                };
                Wrong::NoOrder(Conflict::Between(Box::new(around), Box::new(gone.by)))
            }
            None if self.oldest.len() == REMEMBERED => Wrong::NotThere(read, value),
            None => Wrong::NeverWritten(read, value),
        }
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
            _ => {}
        }
    }

    fn remembered(&self) -> Remembered {
        let tokens = self.leases.values().map(|lease| lease.highest.len()).sum();
        let of_keys = self
            .registers
            .iter()
            .map(|(_, register)| register.remembered());
        of_keys
            .fold(Remembered::default(), Remembered::with)
            .and("keys", 2 * self.registers.len() + self.leases.len())
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
        let ends = self.registers.iter_mut().filter_map(|(key, register)| {
            let wrong = register.ends().err()?;
            Some(evidence::of(key, wrong))
        });
        match ends.min_by_key(|evidence| evidence.culprit) {
            Some(evidence) => Verdict::Violated(evidence),
            None if !self.any_read => {
                Verdict::NotClaimed("no read was answered in this history".to_owned())
            }
            None => Verdict::Valid,
        }
    }
}

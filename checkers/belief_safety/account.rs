//! What was told of a lease, as far as the evidence of an overlap may name it: what clients
//! sent, and what the store said of it.

use std::collections::{BTreeMap, VecDeque};

use super::Belief;
use crate::history::{
    Event, Granted, Kind, Lead, Name, Nanos, Op, RecoveredLease, Released, Renewed, Token,
};
use crate::judge::Invoked;

/// How many of the latest of each kind are remembered. What overlaps is among them, unless
/// a whole row of owners came and went within one belief.
const REMEMBERED: usize = 16;

/// A call that was sent.
struct Send {
    at: Nanos,
    event: u64,
    holder: Name,
    /// An acquire has none yet.
    token: Option<Token>,
    is_acquire: bool,
}

/// What a process asked of the store.
#[derive(Default)]
struct Sends {
    /// Acquires and renewals.
    latest: VecDeque<Send>,
    /// The one that was last answered ok, and when.
    answered: Option<(Nanos, u64)>,
}

/// What the store last said of a term.
pub(super) struct Promise {
    pub holder: Name,
    pub token: Option<Token>,
    pub granted: Nanos,
    pub event: u64,
    /// When it began to count, in true time: the grant, the last renewal, or a restart that
    /// found the owner.
    pub from: Nanos,
    pub ttl: Nanos,
}

/// A release that the store took.
pub(super) struct Taken {
    pub holder: Name,
    pub token: Option<Token>,
    pub at: Nanos,
    pub event: u64,
    /// The call that it was, where its answer tells.
    pub sent: Option<(Nanos, u64)>,
}

/// A store that came back.
pub(super) struct Return {
    pub at: Nanos,
    pub event: u64,
    /// Whether it found an owner that it had granted the lease.
    pub found: bool,
}

/// What was told of one lease.
#[derive(Default)]
pub(super) struct Account {
    /// The node that last granted it.
    pub store: Option<Name>,
    terms: VecDeque<Promise>,
    taken: VecDeque<Taken>,
    returns: VecDeque<Return>,
    sends: BTreeMap<Name, Sends>,
    releases: VecDeque<Send>,
    /// Acquires answered ok: of which process, with which token, by which event.
    answers: VecDeque<(Name, Option<Token>, u64)>,
}

impl Account {
    /// How many calls and promises are remembered.
    pub fn remembered(&self) -> usize {
        let sends: usize = self
            .sends
            .values()
            .map(|sends| 1 + sends.latest.len())
            .sum();
        let told = self.terms.len() + self.taken.len() + self.returns.len();
        sends + told + self.releases.len() + self.answers.len()
    }

    pub fn sent(&mut self, event: &Event, op: &Op) {
        let (token, is_acquire) = match op {
            Op::Acquire(_) => (None, true),
            Op::Renew(_) | Op::Release(_) => (op.token(), false),
            _ => return,
        };
        let Some(holder) = op.holder() else { return };
        let send = Send {
            at: event.time,
            event: event.index,
            holder: holder.clone(),
            token,
            is_acquire,
        };
        match op {
            Op::Release(_) => remember(&mut self.releases, send),
            _ => {
                let sends = self.sends.entry(event.process.clone()).or_default();
                remember(&mut sends.latest, send);
            }
        }
    }

    pub fn answered(&mut self, event: &Event, invoked: &Invoked, token: Option<Token>) {
        if event.kind != Kind::Ok {
            return;
        }
        match &invoked.op {
            Op::Acquire(_) | Op::Renew(_) => {
                if let Op::Acquire(_) = invoked.op {
                    let answer = (event.process.clone(), token, event.index);
                    remember(&mut self.answers, answer);
                }
                if let Some(sends) = self.sends.get_mut(&event.process) {
                    sends.answered = Some((event.time, invoked.index));
                }
            }
            Op::Release(op) => {
                let send = self
                    .releases
                    .iter()
                    .find(|send| send.event == invoked.index);
                let theirs = |taken: &&mut Taken| {
                    taken.holder == op.holder && taken.token == op.token && taken.sent.is_none()
                };
                let taken = self.taken.iter_mut().find(theirs);
                if let (Some(taken), Some(send)) = (taken, send) {
                    taken.sent = Some((send.at, send.event));
                }
            }
            _ => {}
        }
    }

    /// The send behind a belief: the one that it counts from; or, where it counts from
    /// something else, the one that was answered, or the last that the store can have
    /// granted or renewed it for.
    pub fn behind(&self, event: &Event, lead: &Lead) -> Option<u64> {
        let Sends { latest, answered } = self.sends.get(&event.process)?;
        let from = lead.sent.unwrap_or(event.time);
        let promised = self.promised(&lead.holder, lead.token);
        let promised = promised.map_or(from, |promise| promise.from);
        let may = |send: &&Send| {
            let theirs = send.is_acquire || send.token == lead.token;
            send.holder == lead.holder && theirs && send.at <= promised
        };
        let exact = latest.iter().filter(may).find(|send| send.at == from);
        let answered = answered.filter(|(at, _)| *at == event.time);
        let answered = answered.and_then(|(_, invoke)| {
            let mut sends = latest.iter().filter(may);
            sends.find(|send| send.event == invoke)
        });
        let before = latest.iter().rev().filter(may).find(|send| send.at <= from);
        exact.or(answered).or(before).map(|send| send.event)
    }

    pub fn granted(&mut self, event: &Event, granted: &Granted) {
        if self.store.as_ref() != Some(&event.process) {
            self.store = Some(event.process.clone());
        }
        let promise = Promise {
            holder: granted.holder.clone(),
            token: granted.token,
            granted: event.time,
            event: event.index,
            from: event.time,
            ttl: granted.ttl,
        };
        remember(&mut self.terms, promise);
    }

    pub fn renewed(&mut self, now: Nanos, renewed: &Renewed) {
        if let Some(promise) = self.to(&renewed.holder, renewed.token) {
            (promise.from, promise.ttl) = (now, renewed.ttl);
        }
    }

    pub fn released(&mut self, event: &Event, released: &Released) {
        let taken = Taken {
            holder: released.holder.clone(),
            token: released.token,
            at: event.time,
            event: event.index,
            sent: None,
        };
        remember(&mut self.taken, taken);
    }

    /// The owner that it found, it owes its whole ttl again.
    pub fn came_back(&mut self, event: &Event, found: Option<&RecoveredLease>) {
        let owed = found.and_then(|found| Some((found.holder.as_ref()?, found)));
        let promise = owed.and_then(|(owner, found)| {
            let promise = self.to(owner, Some(found.counter))?;
            promise.from = event.time;
            promise.ttl = found.ttl.unwrap_or(promise.ttl);
            Some(())
        });
        let back = Return {
            at: event.time,
            event: event.index,
            found: promise.is_some(),
        };
        remember(&mut self.returns, back);
    }

    /// What the store last promised to who believes this.
    pub fn promise(&self, belief: &Belief) -> Option<&Promise> {
        self.promised(&belief.holder, belief.token)
    }

    fn promised(&self, holder: &Name, token: Option<Token>) -> Option<&Promise> {
        let theirs = |promise: &&Promise| promise.holder == *holder && promise.token == token;
        self.terms.iter().rev().find(theirs)
    }

    /// The event that tells of the grant behind a belief: the store's, or else its answer.
    pub fn grant(&self, belief: &Belief) -> Option<u64> {
        let promise = self.promise(belief).map(|promise| promise.event);
        promise.or_else(|| {
            let theirs = |(process, token, _): &&(Name, Option<Token>, u64)| {
                *process == belief.process && *token == belief.token
            };
            let answer = self.answers.iter().rev().find(theirs);
            answer.map(|(_, _, event)| *event)
        })
    }

    /// The first release that the store took in this stretch: it freed the lease.
    pub fn taken(&self, from: Nanos, to: Nanos) -> Option<&Taken> {
        let within = |taken: &&Taken| (from..=to).contains(&taken.at);
        self.taken.iter().find(within)
    }

    /// The last time in this stretch that the store came back.
    pub fn returned(&self, from: Nanos, to: Nanos) -> Option<&Return> {
        let within = |back: &&Return| (from..=to).contains(&back.at);
        self.returns.iter().rev().find(within)
    }

    /// The last release that a holder sent for this belief, and when.
    pub fn release_of(&self, belief: &Belief) -> Option<(Nanos, u64)> {
        let theirs = |send: &&Send| send.holder == belief.holder && send.token == belief.token;
        let send = self.releases.iter().rev().find(theirs);
        send.map(|send| (send.at, send.event))
    }

    fn to(&mut self, holder: &Name, token: Option<Token>) -> Option<&mut Promise> {
        let theirs = |promise: &&mut Promise| promise.holder == *holder && promise.token == token;
        self.terms.iter_mut().rev().find(theirs)
    }
}

fn remember<T>(told: &mut VecDeque<T>, one: T) {
    if told.len() == REMEMBERED {
        told.pop_front();
    }
    told.push_back(one);
}

//! Who was granted which token, as the store recorded it or as clients were told.

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::history::{Answer, Body, Event, Kind, Name, Observation, Op, Token};
use crate::judge::Step;
use crate::rates::{is_crash, nodes};

/// How many of a holder's tokens on a lease are remembered, the highest.
const REMEMBERED: usize = 1_024;

/// Which account of the grants is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The store's `granted` events: complete.
    Node,
    /// Acquires answered ok: an acquire that is open or indefinite may have been granted.
    Client,
}

/// The tokens granted, by holder and by the process that holds them.
///
/// A process is the holder's name before `#`; a process that acquires under a
/// name of another form is learned from its acquire. A crash ends a process's
/// holders: what it was granted before is not its own afterwards.
#[derive(Default)]
pub(crate) struct Grants {
    node: Account,
    client: Account,
    /// Holders that are not called after their process.
    aliases: BTreeMap<Name, Name>,
    /// Acquires of which a grant may be unknown to the history, by (lease, process).
    unanswered: BTreeMap<(Name, Name), Unanswered>,
    /// A token was seen, granted or used.
    pub any_token: bool,
    /// Somebody was seen to be granted a token.
    pub any_grant: bool,
    /// The store's own account was seen.
    pub granted_seen: bool,
}

#[derive(Default)]
struct Account {
    /// By (lease, holder), [`REMEMBERED`] of each, with the event that tells of it: older
    /// ones are taken for granted.
    tokens: BTreeMap<(Name, Name), BTreeMap<Token, u64>>,
    /// The holders that a process has been since it last crashed.
    holders: BTreeMap<Name, Vec<Name>>,
}

impl Account {
    fn add(&mut self, process: &Name, lease: &Name, holder: &Name, token: Token, event: u64) {
        let tokens = self
            .tokens
            .entry((lease.clone(), holder.clone()))
            .or_default();
        tokens.entry(token).or_insert(event);
        if tokens.len() > REMEMBERED {
            tokens.pop_first();
        }
        let holders = self.holders.entry(process.clone()).or_default();
        if !holders.contains(holder) {
            holders.push(holder.clone());
        }
    }

    fn has(&self, lease: &Name, holder: &Name, token: Token) -> bool {
        let tokens = self.tokens.get(&(lease.clone(), holder.clone()));
        tokens.is_some_and(|tokens| {
            let forgotten = tokens.len() == REMEMBERED
                && tokens.first_key_value().map(|(first, _)| first) > Some(&token);
            forgotten || tokens.contains_key(&token)
        })
    }
}

/// Whose a token is.
pub(crate) struct Owned<'a> {
    pub holder: &'a str,
    pub process: &'a str,
    /// The event that tells of the grant.
    pub event: u64,
}

/// A process's name, from its holder's: what comes before `#`.
pub(crate) fn process_of(holder: &str) -> &str {
    holder
        .split_once('#')
        .map_or(holder, |(process, _)| process)
}

impl Grants {
    pub fn remembered(&self) -> Remembered {
        let sides = [&self.node, &self.client];
        let (holders, tokens) = sides.into_iter().fold((0, 0), |(holders, tokens), side| {
            let more: usize = side.tokens.values().map(|tokens| tokens.len()).sum();
            (
                holders + side.tokens.len() + side.holders.len(),
                tokens + more,
            )
        });
        let used = self
            .unanswered
            .values()
            .map(|unanswered| unanswered.used.len());
        Remembered::default()
            .and("holders and their requests", holders + self.aliases.len())
            .and("tokens that were granted", tokens + used.sum::<usize>())
            .and("processes", self.unanswered.len())
    }

    /// Takes note of grants, acquires and crashes.
    pub fn see(&mut self, step: &Step<'_>) {
        let Event {
            process,
            body,
            index,
            ..
        } = step.event;
        match body {
            Body::Invoke(Op::Acquire(op)) => {
                if process_of(&op.holder) != process {
                    self.aliases.insert(op.holder.clone(), process.clone());
                }
                let key = (op.lease.clone(), process.clone());
                self.unanswered.entry(key).or_default().acquires += 1;
            }
            Body::Invoke(op) => self.any_token |= op.token().is_some(),
            Body::Complete(_, answer) => self.complete(step, answer),
            Body::Observed(Observation::Granted(granted)) => {
                let Some(token) = granted.token else { return };
                self.any_token = true;
                self.any_grant = true;
                self.granted_seen = true;
                let holder = &granted.holder;
                let process = self.aliases.get(holder).cloned();
                let process = process.unwrap_or_else(|| process_of(holder).into());
                self.node
                    .add(&process, &granted.lease, holder, token, *index);
            }
            // A store that went down between making a grant durable and recording it
            // shows by what it finds that it was made.
            Body::Observed(Observation::StoreRecovered(found)) => {
                for (lease, found) in &found.leases {
                    if let Some(holder) = &found.holder
                        && !self.node.has(lease, holder, found.counter)
                    {
                        let process = self.aliases.get(holder).cloned();
                        let process = process.unwrap_or_else(|| process_of(holder).into());
                        self.node
                            .add(&process, lease, holder, found.counter, *index);
                    }
                }
            }
            Body::Nemesis(f, fault) if is_crash(f) => {
                for node in nodes(fault) {
                    self.node.holders.remove(node);
                    self.client.holders.remove(node);
                    self.unanswered.retain(|(_, process), _| process != node);
                }
            }
            _ => {}
        }
    }

    fn complete(&mut self, step: &Step<'_>, answer: &Answer) {
        let Some(Op::Acquire(op)) = step.invoked.map(|invoked| &invoked.op) else {
            return;
        };
        let process = &step.event.process;
        let key = (op.lease.clone(), process.clone());
        if step.event.kind != Kind::Info
            && let Some(unanswered) = self.unanswered.get_mut(&key)
        {
            unanswered.acquires = unanswered.acquires.saturating_sub(1);
        }
        if let Answer::Token(token) = *answer
            && step.event.kind == Kind::Ok
        {
            // It was used before its answer was recorded.
            if let Some(unanswered) = self.unanswered.get_mut(&key) {
                unanswered.used.retain(|used| *used != token);
            }
            self.any_token = true;
            self.any_grant = true;
            self.client
                .add(process, &op.lease, &op.holder, token, step.event.index);
        }
    }

    /// To whom a token was granted last, as far as is known.
    pub fn granted_to(&self, side: Side, lease: &Name, token: Token) -> Option<Owned<'_>> {
        let account = match side {
            Side::Node => &self.node,
            Side::Client => &self.client,
        };
        let granted = account.tokens.iter().filter_map(|((of, holder), tokens)| {
            let event = *tokens.get(&token).filter(|_| of == lease)?;
            let process = self.aliases.get(holder).map(Name::as_str);
            Some(Owned {
                holder,
                process: process.unwrap_or_else(|| process_of(holder)),
                event,
            })
        });
        granted.max_by_key(|owned| owned.event)
    }

    /// Whether a call that carries a token carries one that was granted to its
    /// holder, or to its process where it names no holder. To be asked at the
    /// call's invoke.
    ///
    /// On the client side an acquire without an answer may have been granted the
    /// token, and its answer read late: each excuses one token.
    pub fn own(&mut self, side: Side, process: &Name, op: &Op, token: Token) -> bool {
        let lease = op.lease();
        let account = match side {
            Side::Node => &self.node,
            Side::Client => &self.client,
        };
        let own = match op.holder() {
            Some(holder) => account.has(lease, holder, token),
            None => account.holders.get(process).is_some_and(|holders| {
                holders
                    .iter()
                    .rev()
                    .any(|holder| account.has(lease, holder, token))
            }),
        };
        if own || side == Side::Node {
            return own;
        }
        match self.unanswered.get_mut(&(lease.clone(), process.clone())) {
            Some(unanswered) => unanswered.excuses(token),
            None => false,
        }
    }
}

/// The acquires of a process that a grant may hide behind.
#[derive(Default)]
struct Unanswered {
    acquires: usize,
    /// The tokens that were used as if granted by them.
    used: Vec<Token>,
}

impl Unanswered {
    fn excuses(&mut self, token: Token) -> bool {
        if self.used.contains(&token) {
            return true;
        }
        let left = self.used.len() < self.acquires;
        if left {
            self.used.push(token);
        }
        left
    }
}

//! `token-monotonicity`: tokens rise, and only their holders use them.
//!
//! Convicted, per lease: a grant that is not the token before plus one; after
//! the store came back (`recovered`, `restored`), a grant that is not above all
//! that was found and all that had been granted; a store node that came back
//! (`recovered`) with a lease's counter below a token that it had granted or found;
//! and a call that carries a token that was never granted to its holder. A lease
//! that a store does not list when it comes back waits for its next grant: a store
//! with one counter for all need not list leases that have run out. A repeated answer (same holder, request
//! and token as the grant in force) is one grant, not two.
//!
//! Without `granted` events the acquires answered ok stand in for them. Gaps are
//! then allowed (an acquire without an answer may have been granted), an answer is
//! compared with those that came before its request was first sent, and two
//! requests may not share a token.

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::grants::{Grants, Owned, Side};
use crate::history::{
    Acquire, Answer, Body, Event, Granted, Kind, Name, Observation, Op, RecoveredLease, Token,
};
use crate::judge::{Checker, Step};
use crate::owners::called;
use crate::verdict::{Evidence, Verdict};

/// How many tokens of a lease are remembered with whom they were granted to.
const REMEMBERED: usize = 1_024;

pub(crate) struct TokenMonotonicity {
    grants: Grants,
    node: NodeSide,
    client: ClientSide,
}

impl TokenMonotonicity {
    pub fn new() -> Self {
        TokenMonotonicity {
            grants: Grants::default(),
            node: NodeSide::default(),
            client: ClientSide::default(),
        }
    }
}

impl Checker for TokenMonotonicity {
    fn see(&mut self, step: &Step<'_>) {
        self.grants.see(step);
        let event = step.event;
        match &event.body {
            Body::Invoke(Op::Acquire(op)) => self.client.invoked(event, op),
            Body::Invoke(op) => {
                let Some(token) = op.token() else { return };
                for (side, found) in [
                    (Side::Node, &mut self.node.found),
                    (Side::Client, &mut self.client.found),
                ] {
                    if found.is_none() && !self.grants.own(side, &event.process, op, token) {
                        let owner = self.grants.granted_to(side, op.lease(), token);
                        *found = Some(never_granted(event, op, token, owner));
                    }
                }
            }
            Body::Complete(_, answer) => {
                let Some(invoked) = step.invoked else { return };
                let Op::Acquire(op) = &invoked.op else { return };
                let token = match *answer {
                    Answer::Token(token) if event.kind == Kind::Ok => Some(token),
                    _ => None,
                };
                self.client.completed(event, invoked.index, op, token);
            }
            Body::Observed(Observation::Granted(granted)) => {
                self.node.granted(event, granted);
            }
            Body::Observed(Observation::StoreRecovered(found)) => {
                self.node.recovered(event, &found.leases);
                self.node.came_back(event, &found.leases, 0);
            }
            Body::Observed(Observation::Restored(found)) => {
                self.node
                    .durable
                    .retain(|(store, _), _| *store != event.process);
                self.node.came_back(event, &found.leases, found.floor);
            }
            _ => {}
        }
    }

    fn remembered(&self) -> Remembered {
        let told = self.client.leases.values();
        let (open, requests, answers) = told.fold((0, 0, 0), |(open, requests, answers), told| {
            let answered = answers + told.recent.len();
            (
                open + told.open.len(),
                requests + told.requests.len(),
                answered,
            )
        });
        let leases = self.node.leases.len() + self.node.durable.len() + self.client.leases.len();
        self.grants
            .remembered()
            .and("leases", leases)
            .and("open calls", open)
            .and("holders and their requests", requests)
            .and("grants", answers)
    }

    fn found(&self) -> bool {
        // The client side alone does not decide: `granted` events may follow.
        self.grants.granted_seen && self.node.found.is_some()
    }

    fn verdict(self: Box<Self>) -> Verdict {
        if !self.grants.any_token {
            return Verdict::NotClaimed("no token in this history".to_owned());
        }
        if !self.grants.any_grant {
            return Verdict::NotClaimed("nobody is granted a token in this history".to_owned());
        }
        let found = match self.grants.granted_seen {
            true => self.node.found,
            false => self.client.found,
        };
        found.map_or(Verdict::Valid, Verdict::Violated)
    }
}

fn never_granted(event: &Event, op: &Op, token: Token, owner: Option<Owned<'_>>) -> Evidence {
    let process = &event.process;
    let holder = op.holder().unwrap_or(process);
    let who = called(holder, owner.as_ref().map_or("", |owner| owner.holder));
    let whose = match &owner {
        // What a process was granted before it crashed is not its own.
        Some(owner) if op.holder().is_none() && owner.process == process => {
            let before = owner.holder;
            format!("which was granted it before it crashed, as {before}, and not since")
        }
        Some(owner) => {
            let owner = match owner.process == process {
                true => called(owner.holder, holder),
                false => owner.process,
            };
            format!("which was never granted it: {owner} was")
        }
        None => "which was never granted it".to_owned(),
    };
    Evidence::new(
        format!("a {} with token {token} by {who}, {whose}", op.f().name()),
        owner.map(|owner| owner.event),
        event.index,
        format!("a token that {who} was granted"),
    )
}

/// The grants as the store recorded them.
#[derive(Default)]
struct NodeSide {
    leases: BTreeMap<Name, Counter>,
    /// The highest token granted or found by one node, and the event that shows
    /// it, by (store node, lease): other nodes may lag.
    durable: BTreeMap<(Name, Name), (Token, u64)>,
    /// The least every counter may have been found at, and where it was recorded.
    floor: Option<(Token, u64)>,
    found: Option<Evidence>,
}

struct Counter {
    /// The highest token granted or found, and the event that shows it.
    highest: (Token, u64),
    holder: Name,
    request: u64,
    /// Where the store came back since the last grant.
    back: Option<u64>,
}

impl NodeSide {
    fn granted(&mut self, event: &Event, granted: &Granted) {
        let Some(token) = granted.token else { return };
        self.made_durable(event, &granted.lease, token);
        let Some(counter) = self.leases.get_mut(&granted.lease) else {
            if let Some((floor, shown)) = self.floor.filter(|(floor, _)| token <= *floor) {
                self.found
                    .get_or_insert_with(|| not_above(event, granted, token, floor, (shown, None)));
            }
            let counter = Counter {
                highest: (token, event.index),
                holder: granted.holder.clone(),
                request: granted.request,
                back: None,
            };
            self.leases.insert(granted.lease.clone(), counter);
            return;
        };
        let (highest, shown) = counter.highest;
        let again = token == highest
            && counter.holder == granted.holder
            && counter.request == granted.request;
        if again {
            return;
        }
        let evidence = match counter.back {
            Some(back) if token <= highest => Some(not_above(
                event,
                granted,
                token,
                highest,
                (shown, Some(back)),
            )),
            Some(_) => None,
            None if highest.checked_add(1) == Some(token) => None,
            None => Some(Evidence::new(
                format!(
                    "token {token} was granted to {}, after token {highest} to {}",
                    called(&granted.holder, &counter.holder),
                    called(&counter.holder, &granted.holder)
                ),
                [shown],
                event.index,
                format!("token {}", u128::from(highest) + 1),
            )),
        };
        if self.found.is_none() {
            self.found = evidence;
        }
        counter.highest = (token.max(highest), event.index);
        counter.holder = granted.holder.clone();
        counter.request = granted.request;
        counter.back = None;
    }

    fn made_durable(&mut self, event: &Event, lease: &Name, token: Token) {
        let key = (event.process.clone(), lease.clone());
        let durable = self.durable.entry(key).or_insert((token, event.index));
        if token > durable.0 {
            *durable = (token, event.index);
        }
    }

    /// What a node finds of its own disk is no less than what it had granted.
    fn recovered(&mut self, event: &Event, leases: &BTreeMap<Name, RecoveredLease>) {
        for (lease, found) in leases {
            let key = (event.process.clone(), lease.clone());
            if let Some(&(before, shown)) = self.durable.get(&key)
                && found.counter < before
            {
                self.found.get_or_insert_with(|| {
                    Evidence::new(
                        format!(
                            "the store came back with {lease} at token {}, and {before} had been \
                             granted",
                            found.counter
                        ),
                        [shown],
                        event.index,
                        format!("{before} or more"),
                    )
                });
            }
            self.made_durable(event, lease, found.counter);
        }
    }

    fn came_back(&mut self, event: &Event, leases: &BTreeMap<Name, RecoveredLease>, floor: Token) {
        for counter in self.leases.values_mut() {
            counter.back = Some(event.index);
            if floor > counter.highest.0 {
                counter.highest = (floor, event.index);
                counter.holder = Name::default();
            }
        }
        // A later restore with a lower floor takes nothing back.
        if floor > self.floor.map_or(0, |(before, _)| before) {
            self.floor = Some((floor, event.index));
        }
        for (lease, found) in leases {
            let counter = self.leases.entry(lease.clone()).or_insert_with(|| Counter {
                highest: (floor, event.index),
                holder: Name::default(),
                request: 0,
                back: Some(event.index),
            });
            if found.counter > counter.highest.0 {
                counter.highest = (found.counter, event.index);
                counter.holder = Name::default();
            }
        }
    }
}

fn not_above(
    event: &Event,
    granted: &Granted,
    token: Token,
    highest: Token,
    (shown, back): (u64, Option<u64>),
) -> Evidence {
    Evidence::new(
        format!(
            "after a restart token {token} was granted to {}, and {highest} had been granted \
             before",
            called(&granted.holder, "")
        ),
        [shown].into_iter().chain(back),
        event.index,
        format!("a token above {highest}"),
    )
}

/// The grants as clients were told of them.
#[derive(Default)]
struct ClientSide {
    leases: BTreeMap<Name, Told>,
    found: Option<Evidence>,
}

/// The highest token answered by some point, and the answer.
type Answered = Option<(Token, u64)>;

#[derive(Default)]
struct Told {
    /// The highest token answered, and the answer.
    highest: Answered,
    /// Open acquires, by their invoke: what had been answered when their request was first sent.
    open: BTreeMap<u64, Answered>,
    /// Each process's newest request, and what had been answered when it was first sent.
    requests: BTreeMap<Name, (Name, u64, Answered)>,
    /// The highest tokens answered, [`REMEMBERED`] of them: whose, and the answer. A
    /// request that was first sent before may be tried again at any time.
    recent: BTreeMap<Token, (Name, u64, u64)>,
}

impl ClientSide {
    fn invoked(&mut self, event: &Event, op: &Acquire) {
        let told = self.leases.entry(op.lease.clone()).or_default();
        let before = match told.requests.get(&event.process) {
            // The same request again: an answer may be of its first try.
            Some((holder, request, before)) if *holder == op.holder && *request == op.request => {
                *before
            }
            _ => told.highest,
        };
        told.requests.insert(
            event.process.clone(),
            (op.holder.clone(), op.request, before),
        );
        told.open.insert(event.index, before);
    }

    fn completed(&mut self, event: &Event, invoke: u64, op: &Acquire, token: Option<Token>) {
        let told = self.leases.entry(op.lease.clone()).or_default();
        let before = told.open.remove(&invoke).flatten();
        if let Some(token) = token {
            if let Some((highest, shown)) = before.filter(|(highest, _)| token <= *highest) {
                let owner = told.recent.get(&highest).map(|(owner, ..)| owner);
                let (who, owner) = match owner {
                    Some(owner) => (called(&op.holder, owner), called(owner, &op.holder)),
                    None => (called(&op.holder, ""), "somebody"),
                };
                let again = if token == highest { ", too," } else { "" };
                let evidence = Evidence::new(
                    format!(
                        "{who} was granted token {token}{again} by a request sent after {owner} \
                         had been granted token {highest}"
                    ),
                    [shown, invoke],
                    event.index,
                    format!("a token above {highest}"),
                );
                self.found.get_or_insert(evidence);
            }
            let mine = (op.holder.clone(), op.request, event.index);
            let (holder, request, shown) = told.recent.entry(token).or_insert(mine);
            if *holder != op.holder || *request != op.request {
                let evidence = Evidence::new(
                    format!(
                        "{} and {} were both granted token {token}",
                        called(holder, &op.holder),
                        called(&op.holder, holder)
                    ),
                    [*shown],
                    event.index,
                    "a token of its own",
                );
                self.found.get_or_insert(evidence);
            }
            if told.highest.is_none_or(|(highest, _)| token > highest) {
                told.highest = Some((token, event.index));
            }
            // A request tried again after so many grants is old.
            if told.recent.len() > REMEMBERED {
                told.recent.pop_first();
            }
        }
    }
}

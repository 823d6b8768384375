//! `zombie-write`: no write or delete of a deposed leader lands after its
//! successor's first completed fence, read or write.
//!
//! Needs no tokens, and a write or delete that carries none, to a resource that could not
//! check it, is judged like any other. An operation belongs to its process's latest grant (an acquire
//! answered ok) before its invoke. Of two grants the later is the one that the
//! store recorded later, or, where it recorded none, the one whose acquire was
//! sent after the other had been answered; of others nothing is claimed. Nor is it
//! of an operation sent while an acquire of its process may have been granted
//! without an answer.
//!
//! Node side, convicted when `applied` is recorded: in that storage node's order;
//! the call behind it is the one of the same lease, token, seq, key and value, and
//! must not be in doubt. Client side: an acknowledged operation that was invoked
//! after the successor's operation had been acknowledged, and is no retry.
//!
//! Of several replicas each has an order of its own, and each is judged by it: a write
//! that lands where the successor has not been yet is no zombie there, and what a
//! majority acknowledged is judged on the client side. What its caller gave up may land
//! on each. A copy that lands on a further replica after its call was answered is
//! nobody's open call any more; whether that replica should have refused it is
//! storage-safety's to tell.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::budget::Remembered;
use crate::grants::process_of;
use crate::history::{Applied, Body, Event, F, Header, Kind, Name, Observation, Op, Token};
use crate::judge::{Checker, Invoked, Step};
use crate::retries::Retries;
use crate::verdict::{Evidence, Verdict};

/// A grant, by the events that show it.
#[derive(Clone, Copy)]
struct Grant {
    /// Whose, among the processes that were granted a lease.
    process: usize,
    invoke: u64,
    complete: u64,
    /// The store's `granted`.
    granted: Option<u64>,
    token: Option<Token>,
}

impl Grant {
    fn later_than(&self, other: &Grant) -> bool {
        match (self.granted, other.granted) {
            (Some(mine), Some(its)) => mine > its,
            _ => self.invoke > other.complete,
        }
    }
}

/// The grants under which something landed: enough of them to tell whether one
/// was later than a given grant.
#[derive(Default)]
struct Marks {
    last_granted: Option<(Grant, u64)>,
    last_invoked: Option<(Grant, u64)>,
}

impl Marks {
    fn add(&mut self, grant: Grant, event: u64) {
        let later = |mark: Option<(Grant, u64)>, of: fn(&Grant) -> Option<u64>| {
            mark.is_none_or(|(marked, _)| of(&grant) > of(&marked))
        };
        if later(self.last_granted, |grant| grant.granted) {
            self.last_granted = Some((grant, event));
        }
        if later(self.last_invoked, |grant| Some(grant.invoke)) {
            self.last_invoked = Some((grant, event));
        }
    }

    fn later_than(&self, grant: &Grant) -> Option<(Grant, u64)> {
        let marks = [self.last_granted, self.last_invoked].into_iter().flatten();
        marks
            .into_iter()
            .find(|(marked, _)| marked.later_than(grant))
    }
}

/// A call that may land.
struct Pending {
    invoke: u64,
    /// None when it cannot be told.
    grant: Option<Grant>,
    value: Option<Value>,
    /// Its outcome is indefinite: it is nobody's open call any more.
    abandoned: bool,
}

/// What a call and the node's account of it have in common, but for the value.
type Landing = (F, Name, Option<Token>, Option<u64>, Name);

#[derive(Default)]
pub(crate) struct ZombieWrite {
    /// By (process, lease).
    candidates: BTreeMap<(Name, Name), Candidate>,
    pending: BTreeMap<Landing, Vec<Pending>>,
    /// What landed first, by (storage node, lease).
    landed: BTreeMap<(Name, Name), Marks>,
    /// What was acknowledged first, by lease.
    acknowledged: BTreeMap<Name, Marks>,
    /// Open calls of which the client side knows that they belong to a deposed
    /// leader, and open calls that may mark a successor, by their invoke.
    open: BTreeMap<u64, (Grant, Option<(Grant, u64)>)>,
    storage_nodes: BTreeSet<Name>,
    /// Who was granted a lease, in the order of their first grants.
    processes: Vec<Name>,
    /// The header tells of replicas: what one of them took says nothing of the others.
    replicas: bool,
    /// Something landed that could be one of several calls.
    in_doubt: bool,
    retries: Retries,
    any_work: bool,
    any_grant: bool,
    found_in_node_order: Option<Evidence>,
    found_after_answer: Option<Evidence>,
    found_by_client: Option<Evidence>,
}

#[derive(Default)]
struct Candidate {
    latest: Option<Grant>,
    /// Acquires since then that may have been granted.
    unanswered: usize,
    /// The newest `granted`: holder, request, event.
    granted: Option<(Name, u64, u64)>,
}

impl Candidate {
    /// The grant that a call invoked now belongs to, on either side.
    fn grant(&self) -> (Option<Grant>, Option<Grant>) {
        let client = self.latest.filter(|_| self.unanswered == 0);
        let known = |grant: &Grant| match (grant.granted, &self.granted) {
            (Some(mine), Some((_, _, newest))) => mine == *newest,
            _ => false,
        };
        (client, client.or(self.latest.filter(known)))
    }
}

impl ZombieWrite {
    pub fn new(header: &Header) -> Self {
        Self {
            replicas: header.has_replicas(),
            ..Self::default()
        }
    }

    fn invoked(&mut self, event: &Event, op: &Op) {
        let key = (event.process.clone(), op.lease().clone());
        if let Op::Acquire(_) = op {
            self.candidates.entry(key).or_default().unanswered += 1;
            return;
        }
        if let Op::Renew(_) | Op::Release(_) = op {
            return;
        }
        let retry = self.retries.invoked(event, op);
        let candidate = self.candidates.get(&key);
        let (client, node) = candidate.map_or((None, None), Candidate::grant);
        if let Some(grant) = client {
            let deposed = match op {
                Op::Write(_) | Op::Delete(_) if !retry => self
                    .acknowledged
                    .get(op.lease())
                    .and_then(|marks| marks.later_than(&grant)),
                _ => None,
            };
            self.open.insert(event.index, (grant, deposed));
        }
        let Some(landing) = landing(op) else { return };
        let value = match op {
            Op::Write(op) => Some(op.value.clone()),
            _ => None,
        };
        let pending = Pending {
            invoke: event.index,
            grant: node,
            value,
            abandoned: false,
        };
        self.pending.entry(landing).or_default().push(pending);
    }

    fn completed(&mut self, event: &Event, invoked: &Invoked) {
        if let Op::Acquire(_) = invoked.op {
            return self.acquired(event, invoked);
        }
        self.retries.completed(event, invoked.index, &invoked.op);
        if let Some(landing) = landing(&invoked.op)
            && let Some(pending) = self.pending.get_mut(&landing)
        {
            match event.kind {
                Kind::Info => pending
                    .iter_mut()
                    .filter(|pending| pending.invoke == invoked.index)
                    .for_each(|pending| pending.abandoned = true),
                _ => pending.retain(|pending| pending.invoke != invoked.index),
            }
            if pending.is_empty() {
                self.pending.remove(&landing);
            }
        }
        let Some((grant, deposed)) = self.open.remove(&invoked.index) else {
            return;
        };
        if event.kind != Kind::Ok {
            return;
        }
        if let Some((successor, mark)) = deposed
            && self.found_by_client.is_none()
        {
            let evidence = zombie(
                &self.processes,
                invoked.op.f(),
                grant,
                successor,
                [mark, invoked.index],
                event.index,
            );
            self.found_by_client = Some(evidence);
        }
        if under(&grant, invoked.op.f(), invoked.op.token()) {
            let marks = self
                .acknowledged
                .entry(invoked.op.lease().clone())
                .or_default();
            marks.add(grant, event.index);
        }
    }

    fn acquired(&mut self, event: &Event, invoked: &Invoked) {
        let Op::Acquire(op) = &invoked.op else { return };
        let key = (event.process.clone(), op.lease.clone());
        let candidate = self.candidates.entry(key).or_default();
        match event.kind {
            Kind::Info | Kind::Invoke => {}
            Kind::Fail => candidate.unanswered = candidate.unanswered.saturating_sub(1),
            Kind::Ok => {
                self.any_grant = true;
                let granted = candidate.granted.as_ref();
                let granted = granted
                    .filter(|(holder, request, _)| *holder == op.holder && *request == op.request)
                    .map(|(_, _, event)| *event);
                let token = match event.body {
                    Body::Complete(_, crate::history::Answer::Token(token)) => Some(token),
                    _ => None,
                };
                let of_process = |process: &Name| *process == event.process;
                let process = self.processes.iter().position(of_process);
                let process = process.unwrap_or_else(|| {
                    self.processes.push(event.process.clone());
                    self.processes.len() - 1
                });
                let grant = Grant {
                    process,
                    invoke: invoked.index,
                    complete: event.index,
                    granted,
                    token,
                };
                candidate.unanswered = 0;
                candidate.latest = Some(grant);
            }
        }
    }

    /// A storage node took a call.
    fn land(&mut self, event: &Event, landing: &Landing, value: Option<&Value>) {
        if landing.0 != F::Fence && !self.storage_nodes.contains(&event.process) {
            self.storage_nodes.insert(event.process.clone());
        }
        let Some(pending) = self.pending.get_mut(landing) else {
            return;
        };
        let same = |pending: &Pending| pending.value.as_ref() == value;
        let mut matching = pending.iter().filter(|pending| same(pending));
        let Some(first) = matching.next() else { return };
        let alone = matching.next().is_none();
        self.in_doubt |= !alone;
        let lease = &landing.1;
        let marks = self
            .landed
            .entry((event.process.clone(), lease.clone()))
            .or_default();
        if landing.0 != F::Fence {
            let convict = |marks: &Marks| {
                let mut zombies = pending
                    .iter()
                    .filter(|pending| same(pending))
                    .map(|pending| {
                        pending
                            .grant
                            .and_then(|grant| Some((pending, grant, marks.later_than(&grant)?)))
                    });
                // Any of them may be the one that landed.
                let (pending, grant, (successor, mark)) = zombies.next()??;
                if zombies.any(|other| other.is_none()) {
                    return None;
                }
                Some(zombie(
                    &self.processes,
                    landing.0,
                    grant,
                    successor,
                    [mark, pending.invoke],
                    event.index,
                ))
            };
            if self.found_in_node_order.is_none() {
                self.found_in_node_order = convict(marks);
            }
            if self.found_after_answer.is_none() {
                self.found_after_answer = self.acknowledged.get(lease).and_then(convict);
            }
        }
        if alone {
            let (invoke, abandoned) = (first.invoke, first.abandoned);
            if let Some(grant) = first.grant
                && under(&grant, landing.0, landing.2)
            {
                marks.add(grant, event.index);
            }
            // On replicas the others' copies are still under way.
            if abandoned && !self.replicas {
                pending.retain(|pending| pending.invoke != invoke);
                if pending.is_empty() {
                    self.pending.remove(landing);
                }
            }
        }
    }
}

/// Whether a call that carries this token is made under the grant: with the grant's
/// token, or with none where there are none. A write or delete without a token is made
/// under it, too: some resources cannot check one. A read without a token may be an
/// observer's.
fn under(grant: &Grant, f: F, token: Option<Token>) -> bool {
    let unchecked = token.is_none() && matches!(f, F::Write | F::Delete);
    unchecked || grant.token.is_none() || grant.token == token
}

/// Of a call that storage nodes give an account of.
fn landing(op: &Op) -> Option<Landing> {
    let (token, lease) = (op.token(), op.lease().clone());
    Some(match op {
        Op::Fence(_) => (F::Fence, lease, token, None, Name::default()),
        Op::Write(op) => (F::Write, lease, token, op.seq, op.key.clone()),
        Op::Delete(op) => (F::Delete, lease, token, op.seq, op.key.clone()),
        Op::Read(_) | Op::Acquire(_) | Op::Renew(_) | Op::Release(_) => return None,
    })
}

/// `shown` are the successor's operation and the invoke of the one that came after it.
fn zombie(
    processes: &[Name],
    f: F,
    grant: Grant,
    successor: Grant,
    shown: [u64; 2],
    culprit: u64,
) -> Evidence {
    let (f, who) = (f.name(), &processes[grant.process]);
    let whose = match successor.process == grant.process {
        true => "its own next term".to_owned(),
        false => format!("its successor {}", processes[successor.process]),
    };
    Evidence::new(
        format!("a {f} by {who}, deposed since, landed after the first operation of {whose}"),
        shown
            .into_iter()
            .chain([grant.complete, successor.complete]),
        culprit,
        "refused, the lease had passed on",
    )
}

impl Checker for ZombieWrite {
    fn see(&mut self, step: &Step<'_>) {
        let event = step.event;
        match &event.body {
            Body::Invoke(op) => {
                self.any_work |= matches!(op, Op::Write(_) | Op::Delete(_));
                self.invoked(event, op);
            }
            Body::Complete(..) => {
                let Some(invoked) = step.invoked else { return };
                self.completed(event, invoked);
            }
            Body::Observed(Observation::Granted(granted)) => {
                let process = process_of(&granted.holder).into();
                let key = (process, granted.lease.clone());
                let newest = (granted.holder.clone(), granted.request, event.index);
                self.candidates.entry(key).or_default().granted = Some(newest);
            }
            Body::Observed(Observation::Applied(applied)) => {
                let Applied {
                    f,
                    lease,
                    token,
                    seq,
                    key,
                    value,
                } = applied;
                let landing = (*f, lease.clone(), *token, *seq, key.clone());
                let null = (*f == F::Write).then_some(&Value::Null);
                self.land(event, &landing, value.as_ref().or(null));
            }
            Body::Observed(Observation::Fenced(fenced)) => {
                let landing = (
                    F::Fence,
                    fenced.lease.clone(),
                    Some(fenced.token),
                    None,
                    Name::default(),
                );
                self.land(event, &landing, None);
            }
            _ => {}
        }
    }

    fn remembered(&self) -> Remembered {
        let leases = self.landed.len() + self.acknowledged.len();
        let pending = self.pending.values().map(Vec::len).sum();
        Remembered::default()
            .and(
                "processes",
                self.candidates.len() + self.storage_nodes.len() + self.processes.len(),
            )
            .and("leases", leases)
            .and("open calls", self.open.len())
            .and("writes that may yet land", pending)
            .and("writes without an answer", self.retries.remembered())
    }

    fn found(&self) -> bool {
        self.found_in_node_order.is_some()
    }

    fn verdict(self: Box<Self>) -> Verdict {
        let one_node = self.storage_nodes.len() == 1 && !self.replicas;
        // One node's order is the order of all: an answer came after its operation.
        let after_answer = self.found_after_answer.filter(|_| one_node);
        // Each replica has an order of its own; what was acknowledged binds them all.
        let by_client = self.found_by_client.filter(|_| !one_node || self.in_doubt);
        let found = [self.found_in_node_order, after_answer, by_client]
            .into_iter()
            .flatten();
        match found.min_by_key(|found| found.culprit) {
            Some(evidence) => Verdict::Violated(evidence),
            None if !self.any_grant => {
                Verdict::NotClaimed("no acquire answered ok in this history".to_owned())
            }
            None if !self.any_work => {
                Verdict::NotClaimed("no write or delete in this history".to_owned())
            }
            None => Verdict::Valid,
        }
    }
}

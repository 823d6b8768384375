//! What a history says of its deposed leaders, in numbers.
//!
//! A write belongs to the grant of its token, or, where it carries none, to its process's
//! latest grant before it was sent. It is a deposed leader's if the store had recorded a
//! later grant of the lease when it reached storage. There it was refused (or dropped by
//! its idempotency key); or it landed before any successor had completed an operation,
//! which harms nobody, as the successor reads after it; or it landed after one, which is
//! what `zombie-write` convicts.

use std::collections::{BTreeMap, BTreeSet};

use deposed_checkers::history::{
    Acquire, Applied, Body, Event, F, Kind, Name, Nanos, Observation, Op, Token,
};

/// What one history shows, or several added up. Durations are ns of true time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Writes and deletes of a deposed leader that reached storage after its successor
    /// was granted the lease: the sum of the next three.
    pub tried: u64,
    /// Of these, those that storage refused or dropped.
    pub refused: u64,
    /// Of these, those that landed before any successor had completed an operation.
    pub early: u64,
    /// Of these, those that landed after one had.
    pub landed: u64,
    /// Effects of a job that had been done before. Only where writes carry no token.
    pub doubled: u64,
    /// How often a lease went to another holder.
    pub leader_changes: u64,
    /// From a successor's grant to the first moment from which storage could refuse its
    /// predecessors: its first fence or write there. One a leader change that came so far;
    /// none where storage cannot refuse, and none where it grants the lease itself: it
    /// refuses from the grant on, and there is nothing to measure.
    pub windows: Vec<Nanos>,
    /// From a leader's last acknowledged write or delete to the first of the next, who is
    /// another holder.
    pub failovers: Vec<Nanos>,
}

impl Measures {
    /// Measures a history.
    pub fn of(history: &[Event]) -> Self {
        let mut ledger = Ledger::default();
        history.iter().for_each(|event| ledger.see(event));
        ledger.measures
    }

    /// Adds those of another history.
    pub fn add(&mut self, other: Measures) {
        self.tried += other.tried;
        self.refused += other.refused;
        self.early += other.early;
        self.landed += other.landed;
        self.doubled += other.doubled;
        self.leader_changes += other.leader_changes;
        self.windows.extend(other.windows);
        self.failovers.extend(other.failovers);
    }
}

/// The middle of some durations (the upper of two middles) and the longest.
pub fn middle_and_longest(durations: &[Nanos]) -> Option<(Nanos, Nanos)> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    Some((*sorted.get(sorted.len() / 2)?, *sorted.last()?))
}

struct Grant {
    holder: Name,
    request: u64,
    token: Option<Token>,
    time: Nanos,
    /// The node that granted it.
    by: Name,
    /// It took the lease over from another holder.
    takes_over: bool,
    /// An operation under it has completed.
    worked: bool,
    /// Storage has taken a fence or a write under it.
    seen_by_storage: bool,
}

/// A call that is open.
enum Open {
    Acquire {
        holder: Name,
        request: u64,
    },
    /// Under which grant, by its place; none that the store recorded.
    Work(Option<usize>),
}

/// One lease's grants, and what belongs to them. Grants go by their place.
#[derive(Default)]
struct Lease {
    grants: Vec<Grant>,
    /// The grant that each process last learnt of.
    latest: BTreeMap<Name, usize>,
    /// Whose the writes without a token are, by key and value.
    unmarked: BTreeMap<(Name, String), usize>,
    /// The last acknowledged write: its grant and its time.
    written: Option<(usize, Nanos)>,
    /// Jobs done, by key and number.
    jobs: BTreeSet<(Name, String)>,
}

#[derive(Default)]
struct Ledger {
    leases: BTreeMap<Name, Lease>,
    open: BTreeMap<u64, (Name, Open)>,
    measures: Measures,
}

impl Lease {
    fn of_token(&self, token: Token) -> Option<usize> {
        self.grants
            .iter()
            .rposition(|grant| grant.token == Some(token))
    }

    fn deposed(&self, grant: usize) -> bool {
        grant + 1 < self.grants.len()
    }

    /// Whether somebody granted the lease later has completed an operation.
    fn succeeded(&self, grant: usize) -> bool {
        self.grants[grant + 1..].iter().any(|later| later.worked)
    }
}

impl Ledger {
    fn see(&mut self, event: &Event) {
        match (&event.body, event.call) {
            (Body::Invoke(op), Some(call)) => self.invoked(event, call, op),
            (Body::Complete(f, _), Some(call)) => self.completed(event, call, *f),
            (Body::Observed(observation), _) => self.observed(event, observation),
            _ => {}
        }
    }

    fn invoked(&mut self, event: &Event, call: u64, op: &Op) {
        let lease = self.leases.entry(op.lease().clone()).or_default();
        let open = match op {
            Op::Acquire(Acquire {
                holder, request, ..
            }) => Open::Acquire {
                holder: holder.clone(),
                request: *request,
            },
            Op::Renew(_) | Op::Release(_) => return,
            Op::Fence(_) | Op::Write(_) | Op::Delete(_) | Op::Read(_) => {
                let grant = match op.token() {
                    Some(token) => lease.of_token(token),
                    None => lease.latest.get(&event.process).copied(),
                };
                if let (Op::Write(write), None, Some(grant)) = (op, op.token(), grant) {
                    let what = (write.key.clone(), write.value.to_string());
                    lease.unmarked.insert(what, grant);
                }
                Open::Work(grant)
            }
        };
        self.open.insert(call, (op.lease().clone(), open));
    }

    fn completed(&mut self, event: &Event, call: u64, f: F) {
        let Some((lease, open)) = self.open.remove(&call) else {
            return;
        };
        let lease = self.leases.entry(lease).or_default();
        if event.kind != Kind::Ok {
            return;
        }
        match open {
            Open::Acquire { holder, request } => {
                let granted = lease
                    .grants
                    .iter()
                    .rposition(|grant| grant.holder == holder && grant.request == request);
                if let Some(granted) = granted {
                    lease.latest.insert(event.process.clone(), granted);
                }
            }
            Open::Work(Some(grant)) => {
                lease.grants[grant].worked = true;
                if let F::Write | F::Delete = f {
                    match lease.written {
                        // It was answered late: others have written since.
                        Some((before, _)) if before > grant => return,
                        Some((before, time))
                            if lease.grants[before].holder != lease.grants[grant].holder =>
                        {
                            self.measures.failovers.push(event.time - time);
                        }
                        _ => {}
                    }
                    lease.written = Some((grant, event.time));
                }
            }
            Open::Work(None) => {}
        }
    }

    fn observed(&mut self, event: &Event, observation: &Observation) {
        match observation {
            Observation::Granted(granted) => {
                let lease = self.leases.entry(granted.lease.clone()).or_default();
                let before = lease.grants.last();
                let takes_over = before.is_some_and(|before| before.holder != granted.holder);
                self.measures.leader_changes += u64::from(takes_over);
                lease.grants.push(Grant {
                    holder: granted.holder.clone(),
                    request: granted.request,
                    token: granted.token,
                    time: event.time,
                    by: event.process.clone(),
                    takes_over,
                    worked: false,
                    seen_by_storage: false,
                });
            }
            Observation::Fenced(fenced) => {
                let lease = self.leases.entry(fenced.lease.clone()).or_default();
                if let Some(grant) = lease.of_token(fenced.token) {
                    self.storage_has_seen(event, &fenced.lease, grant);
                }
            }
            Observation::Applied(applied) => self.applied(event, applied),
            Observation::Refused(refused) if refused.f != F::Fence => {
                let lease = self.leases.entry(refused.lease.clone()).or_default();
                let grant = lease.of_token(refused.token);
                if grant.is_some_and(|grant| lease.deposed(grant)) {
                    self.measures.tried += 1;
                    self.measures.refused += 1;
                }
            }
            Observation::Dropped(dropped) => {
                let lease = self.leases.entry(dropped.lease.clone()).or_default();
                let what = (dropped.key.clone(), dropped.value.to_string());
                let grant = lease.unmarked.get(&what).copied();
                if grant.is_some_and(|grant| lease.deposed(grant)) {
                    self.measures.tried += 1;
                    self.measures.refused += 1;
                }
            }
            _ => {}
        }
    }

    fn applied(&mut self, event: &Event, applied: &Applied) {
        let lease = self.leases.entry(applied.lease.clone()).or_default();
        let value = applied.value.as_ref();
        let grant = match applied.token {
            Some(token) => lease.of_token(token),
            None => {
                let value = value.map_or(String::new(), ToString::to_string);
                lease.unmarked.get(&(applied.key.clone(), value)).copied()
            }
        };
        if applied.token.is_none()
            && let Some(job) = value.and_then(|value| value.as_str()?.split('/').next())
            && !lease.jobs.insert((applied.key.clone(), job.to_owned()))
        {
            self.measures.doubled += 1;
        }
        let Some(grant) = grant else { return };
        if lease.deposed(grant) {
            self.measures.tried += 1;
            match lease.succeeded(grant) {
                true => self.measures.landed += 1,
                false => self.measures.early += 1,
            }
        }
        match applied.token {
            Some(_) => self.storage_has_seen(event, &applied.lease, grant),
            None => lease.grants[grant].worked = true,
        }
    }

    /// Storage has taken a fence or a write with the grant's token.
    fn storage_has_seen(&mut self, event: &Event, lease: &Name, grant: usize) {
        let lease = self.leases.entry(lease.clone()).or_default();
        let grant = &mut lease.grants[grant];
        grant.worked = true;
        let elsewhere = grant.by != event.process;
        if grant.takes_over && !grant.seen_by_storage && elsewhere {
            self.measures.windows.push(event.time - grant.time);
        }
        grant.seen_by_storage = true;
    }
}

#[cfg(test)]
mod tests;

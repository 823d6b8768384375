//! A story as a history: what each node would have recorded, so that who shows and who
//! judges histories shows and judges it.
//!
//! A tick is 100 ms, and what happens between two ticks happens at one instant. A clock that
//! skips one tick in so many is one that runs slow at the bound and is read in whole ticks;
//! it is recorded as that.

use std::collections::BTreeMap;

use deposed_checkers::{
    history::{
        Acquire, Answer, Applied, Body, Delete, Denied, Event, F, FORMAT_VERSION, Failure, Fence,
        Fenced, Follow, Granted, Header, Kind, Lead, LeaseTiming, NEMESIS, Name, Nanos,
        Observation, Op, Read, RecoveredLease, Refused, Release, Released, Renew, Renewed,
        StorageRecovered, StoreRecovered, TRUE_RATE, Token, Write,
    },
    verdict::Check,
};
use serde_json::{Value, json};

use super::{
    action::Action,
    candidate::{Candidate, CandidateStep},
    message::{Message, Process, Reader, Says, name_of},
    scope::Scope,
    storage_node::{KEY, SEQ, StorageAccount, StorageNode, StorageStep, call_of},
    store_node::{StoreAccount, StoreNode, StoreStep, lease},
    story::Story,
};
use crate::{flaw::Flaw, lease::LeaseRecord};

/// How long a tick is in a history.
pub const TICK: Nanos = 100_000_000;

/// A history: its header and its events.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// With the bounds of the search in its fields.
    pub header: Header,
    /// In order.
    pub events: Vec<Event>,
}

/// What the nodes of a story would have recorded.
pub fn history(scope: &Scope, flaw: Option<Flaw>, story: &Story) -> History {
    let mut skipped = 0;
    for action in &story.actions {
        if let Action::Tick { skips } = action {
            skipped |= skips;
        }
    }
    let mut scribe = Scribe {
        scope: scope.clone(),
        skipped,
        now: 0,
        store: StoreNode::new(scope),
        storage: StorageNode::new(scope),
        clients: (0..scope.clients)
            .map(|_| Candidate::new(scope, 0))
            .collect(),
        told: vec![None; scope.clients],
        open: Vec::new(),
        calls: 0,
        events: Vec::new(),
    };
    for action in &story.actions {
        scribe.act(*action);
        scribe.tell_beliefs();
    }
    History {
        header: header(scope, flaw, skipped),
        events: scribe.events,
    }
}

fn header(scope: &Scope, flaw: Option<Flaw>, skipped: u8) -> Header {
    let config = scope.config();
    let slow = (0..scope.clients).filter(|client| skipped & 1 << client != 0);
    let rate = TRUE_RATE.saturating_sub(config.max_drift_ppb);
    let mut rest = serde_json::Map::new();
    if let Some(flaw) = flaw {
        rest.insert("flaw".to_owned(), flaw.name().into());
    }
    Header {
        deposed: FORMAT_VERSION,
        workload: "prove".into(),
        system: "deposed".into(),
        seed: 0,
        lease: Some(LeaseTiming {
            ttl: config.ttl * TICK,
            max_drift_ppb: config.max_drift_ppb,
            safety_margin: 0,
            lock_delay: config.lock_delay * TICK,
            try_timeout: TICK,
            backoff_max: 0,
        }),
        network: None,
        clocks: slow.map(|client| (name_of(client), rate)).collect(),
        rest,
    }
}

/// A belief as it was last recorded.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    holder: Name,
    token: Token,
    until: Option<Nanos>,
}

/// A call that is open: what was sent, or a read.
struct Open {
    what: Message,
    call: u64,
}

struct Scribe {
    scope: Scope,
    /// Clients whose clocks skip ticks, a bit each.
    skipped: u8,
    now: Nanos,
    store: StoreNode,
    storage: StorageNode,
    clients: Vec<Candidate>,
    told: Vec<Option<Told>>,
    open: Vec<Open>,
    calls: u64,
    events: Vec<Event>,
}

impl Scribe {
    fn record(&mut self, process: Name, kind: Kind, call: Option<u64>, body: Body) -> &mut Event {
        self.events.push(Event {
            index: self.events.len() as u64,
            time: self.now,
            process,
            kind,
            call,
            body,
            error: None,
        });
        self.events.last_mut().expect("it was just recorded")
    }

    fn observe(&mut self, process: Name, seen: Observation) {
        self.record(process, Kind::Info, None, Body::Observed(seen));
    }

    fn crash(&mut self, node: Name) {
        let value = json!({ "node": node });
        let body = Body::Nemesis("crash".into(), value);
        self.record(NEMESIS.into(), Kind::Info, None, body);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Tick { skips } => {
                self.now += TICK;
                self.store = self.store.step(&self.scope, StoreStep::Tick).0;
                for client in 0..self.clients.len() {
                    let skips = skips & 1 << client != 0;
                    self.client(client, CandidateStep::Tick { skips });
                }
            }
            Action::Wake(client) => self.client(client, CandidateStep::Wake),
            Action::Look(client) => self.client(client, CandidateStep::Look),
            Action::Act { client, deletes } => {
                if self.clients[client].may(&self.scope, CandidateStep::Look) {
                    self.client(client, CandidateStep::Look);
                }
                self.client(client, CandidateStep::Act { deletes });
            }
            Action::Resign(client) => self.client(client, CandidateStep::Resign),
            Action::CrashClient(client) => {
                self.crash(name_of(client));
                self.told[client] = None;
                self.open
                    .retain(|open| open.what.process().client != client);
                self.client(client, CandidateStep::Crash);
            }
            Action::CrashStore => {
                self.crash("store".into());
                let (next, says) = self.store.step(&self.scope, StoreStep::Crash);
                self.store = next;
                if let StoreAccount::Recovered(found) = says.account {
                    let leases = found.map(|record| (lease(), recovered(&record)));
                    let recovered = StoreRecovered {
                        leases: leases.into_iter().collect(),
                        clock: self.now,
                    };
                    self.observe("store".into(), Observation::StoreRecovered(recovered));
                }
            }
            Action::CrashStorage => {
                self.crash("storage".into());
                let (next, says) = self.storage.step(&self.scope, StorageStep::Crash);
                self.storage = next;
                if let StorageAccount::Recovered(token) = says.account {
                    let highest = BTreeMap::from([(lease(), token)]);
                    let recovered = StorageRecovered { highest };
                    self.observe("storage".into(), Observation::StorageRecovered(recovered));
                }
            }
            Action::Lose(_) => {}
            Action::LookAhead(message) => {
                let step = StorageStep::Check(message);
                self.storage = self.storage.step(&self.scope, step).0;
            }
            Action::Deliver(message) | Action::Duplicate(message) => self.arrive(message),
        }
    }

    fn client(&mut self, client: usize, step: CandidateStep) {
        let (next, says) = self.clients[client].step(&self.scope, client, step);
        // What it waits for, it may have waited for: see `Rules::waits`.
        self.clients[client] = next.waited();
        if let Some(token) = says.reads {
            let op = Op::Read(Read {
                lease: lease(),
                token: Some(token),
                key: KEY.into(),
            });
            self.calls += 1;
            let call = Some(self.calls);
            self.record(name_of(client), Kind::Invoke, call, Body::Invoke(op));
        }
        let Some(message) = says.sent else { return };
        if message.says() == Says::Release {
            self.give_up_work(client);
        }
        self.calls += 1;
        let call = self.calls;
        let op = self.op(message);
        self.record(name_of(client), Kind::Invoke, Some(call), Body::Invoke(op));
        self.open.push(Open {
            what: message,
            call,
        });
    }

    /// Calls to storage time out before their term is released.
    fn give_up_work(&mut self, client: usize) {
        let (over, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|open| {
                let of_client = open.what.process().client == client;
                of_client && open.what.says().reader() == Reader::Storage
            });
        self.open = open;
        let over: Vec<Open> = over;
        for open in over {
            let body = Body::Complete(call_of(open.what.says()), Answer::None);
            let event = self.record(name_of(client), Kind::Info, Some(open.call), body);
            event.error = Some(Failure::new("timeout"));
        }
    }

    fn op(&self, message: Message) -> Op {
        let (holder, token) = (message.process().holder(), message.token());
        let ttl = self.scope.ttl * TICK;
        match message.says() {
            Says::Acquire => Op::Acquire(Acquire {
                lease: lease(),
                holder,
                request: message.id(),
                ttl,
            }),
            Says::Renew => Op::Renew(Renew {
                lease: lease(),
                holder,
                token: Some(token),
                attempt: message.id(),
                ttl,
            }),
            Says::Release => Op::Release(Release {
                lease: lease(),
                holder,
                token: Some(token),
            }),
            Says::Fence => Op::Fence(Fence {
                lease: lease(),
                token,
            }),
            Says::Delete => Op::Delete(Delete {
                lease: lease(),
                token: Some(token),
                seq: Some(SEQ),
                key: KEY.into(),
            }),
            _ => Op::Write(Write {
                lease: lease(),
                token: Some(token),
                seq: Some(SEQ),
                key: KEY.into(),
                value: value(token),
            }),
        }
    }

    fn arrive(&mut self, message: Message) {
        match message.says().reader() {
            Reader::Store => self.at_store(message),
            Reader::Storage => self.at_storage(message),
            Reader::Client => self.at_client(message),
        }
    }

    fn at_store(&mut self, message: Message) {
        let (next, says) = self.store.step(&self.scope, StoreStep::Read(message));
        self.store = next;
        let (lease, holder) = (lease(), message.process().holder());
        let (ttl, clock) = (self.scope.ttl * TICK, self.now);
        let token = Some(message.token());
        let seen = match says.account {
            StoreAccount::Silent | StoreAccount::Recovered(_) => return,
            StoreAccount::Granted { token } => Observation::Granted(Granted {
                lease,
                holder,
                request: message.id(),
                token: Some(token),
                ttl,
                clock,
            }),
            StoreAccount::Renewed => Observation::Renewed(Renewed {
                lease,
                holder,
                token,
                ttl,
                clock,
            }),
            StoreAccount::Released => Observation::Released(Released {
                lease,
                holder,
                token,
                clock,
            }),
            StoreAccount::Denied { f, kind } => {
                let acquire = message.says() == Says::Acquire;
                Observation::Denied(Denied {
                    lease,
                    f,
                    holder,
                    request: acquire.then(|| message.id()),
                    token: token.filter(|_| !acquire),
                    clock,
                    error: Failure::new(kind),
                })
            }
        };
        self.observe("store".into(), seen);
    }

    fn at_storage(&mut self, message: Message) {
        let (next, says) = self.storage.step(&self.scope, StorageStep::Read(message));
        self.storage = next;
        let (lease, token, f) = (lease(), message.token(), call_of(message.says()));
        let change = message.says() != Says::Fence;
        let seen = match says.account {
            StorageAccount::Silent | StorageAccount::Recovered(_) => return,
            StorageAccount::Fenced => Some(Observation::Fenced(Fenced { lease, token })),
            StorageAccount::Repeated => None,
            StorageAccount::Applied => Some(Observation::Applied(Applied {
                f,
                lease,
                token: Some(token),
                seq: Some(SEQ),
                key: KEY.into(),
                value: (message.says() == Says::Write).then(|| value(token)),
            })),
            StorageAccount::Refused { seen } => Some(Observation::Refused(Refused {
                f,
                lease,
                token,
                seq: change.then_some(SEQ),
                seen,
            })),
        };
        let done = change && says.answer.is_none();
        if let Some(seen) = seen {
            self.observe("storage".into(), seen);
        }
        // That a change was done changes nothing at the client: it may hear of it at once.
        if done && self.lives(message.process()) {
            self.complete(|what| what == message, Kind::Ok, Answer::None, None);
        }
    }

    fn lives(&self, process: Process) -> bool {
        self.clients[process.client].life == process.life
    }

    fn at_client(&mut self, message: Message) {
        let (process, token) = (message.process(), message.token());
        if !self.lives(process) {
            return;
        }
        let of = |says: Says| move |what: Message| what.process() == process && what.says() == says;
        let id = message.id();
        let denied = || Some(Failure::new("refused"));
        match message.says() {
            Says::Granted | Says::Denied => {
                let granted = message.says() == Says::Granted;
                let asked = |what: Message| of(Says::Acquire)(what) && what.id() == id;
                match granted {
                    true => self.complete(asked, Kind::Ok, Answer::Token(token), None),
                    false => self.complete(asked, Kind::Fail, Answer::None, denied()),
                }
            }
            Says::Renewed | Says::RenewDenied => {
                let asked = |what: Message| of(Says::Renew)(what) && what.id() == id;
                match message.says() {
                    Says::Renewed => self.complete(asked, Kind::Ok, Answer::None, None),
                    _ => self.complete(asked, Kind::Fail, Answer::None, denied()),
                }
            }
            Says::Released | Says::ReleaseDenied => {
                let asked = |what: Message| of(Says::Release)(what) && what.token() == token;
                match message.says() {
                    Says::Released => self.complete(asked, Kind::Ok, Answer::None, None),
                    _ => self.complete(asked, Kind::Fail, Answer::None, denied()),
                }
            }
            Says::Fenced => {
                let asked = |what: Message| of(Says::Fence)(what) && what.token() == token;
                self.complete(asked, Kind::Ok, Answer::None, None);
            }
            _ => {
                let asked = |what: Message| {
                    what.process() == process
                        && what.says().reader() == Reader::Storage
                        && what.token() == token
                };
                let error = Failure::stale_token(token, self.storage.highest());
                self.complete(asked, Kind::Fail, Answer::None, Some(error));
            }
        }
        self.client(process.client, CandidateStep::Read(message));
    }

    /// Completes the first open call of these, if one is open still.
    fn complete(
        &mut self,
        which: impl Fn(Message) -> bool,
        kind: Kind,
        answer: Answer,
        error: Option<Failure>,
    ) {
        let Some(at) = self.open.iter().position(|open| which(open.what)) else {
            return;
        };
        let open = self.open.remove(at);
        let f = match open.what.says().reader() {
            Reader::Storage => call_of(open.what.says()),
            _ => self.op(open.what).f(),
        };
        let client = open.what.process().client;
        let call = Some(open.call);
        let event = self.record(name_of(client), kind, call, Body::Complete(f, answer));
        event.error = error;
    }

    /// Each belief that began, moved or ended.
    fn tell_beliefs(&mut self) {
        for client in 0..self.clients.len() {
            let candidate = &self.clients[client];
            let life = candidate.life;
            let holder = Process { client, life }.holder();
            let remaining = candidate.core.remaining(0);
            let ticks = match self.skipped & 1 << client {
                0 => remaining,
                _ => self.scope.drift.longest(remaining, candidate.since_skip),
            };
            let belief = candidate.core.belief();
            let now = belief.map(|belief| Told {
                holder,
                token: belief.token,
                until: belief.until.map(|_| self.now + ticks * TICK),
            });
            let before = self.told[client].clone();
            // One that is over by itself is not told of again.
            if now == before || (remaining == 0 && now.is_some() && before.is_some()) {
                continue;
            }
            let token = |told: &Option<Told>| told.as_ref().map(|told| told.token);
            if let Some(before) = before.filter(|_| token(&now) != token(&self.told[client])) {
                let follow = Follow {
                    lease: lease(),
                    holder: before.holder,
                    token: Some(before.token),
                };
                self.observe(name_of(client), Observation::Follow(follow));
            }
            if let Some(told) = &now {
                let sent = self.send_behind(client);
                let lead = Lead {
                    lease: lease(),
                    holder: told.holder.clone(),
                    token: Some(told.token),
                    until: told.until,
                    sent,
                };
                self.observe(name_of(client), Observation::Lead(lead));
            }
            self.told[client] = now;
        }
    }

    /// When the call was sent whose answer made a belief begin or move.
    fn send_behind(&self, client: usize) -> Option<Nanos> {
        let completed = self.events.iter().rev().find(|event| {
            event.process == name_of(client)
                && event.kind == Kind::Ok
                && matches!(event.body, Body::Complete(F::Acquire | F::Renew, _))
        })?;
        let invoked = self
            .events
            .iter()
            .find(|event| event.kind == Kind::Invoke && event.call == completed.call)?;
        Some(invoked.time)
    }
}

/// Unique, by its token.
fn value(token: Token) -> Value {
    Value::from(format!("1/{token}.{SEQ}"))
}

fn recovered(record: &LeaseRecord) -> RecoveredLease {
    let owner = record.owner.as_ref().filter(|_| !record.released);
    RecoveredLease {
        counter: record.counter,
        holder: owner.map(|owner| owner.holder.clone()),
        ttl: owner.map(|owner| owner.ttl * TICK),
    }
}

impl History {
    /// Whether a checker convicts it.
    pub fn is_convicted_by(&self, check: Check) -> bool {
        let verdicts = deposed_checkers::judge::judge(&self.header, &self.events);
        verdicts
            .of(check)
            .is_some_and(deposed_checkers::verdict::Verdict::is_violated)
    }
}

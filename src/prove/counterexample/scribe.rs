//! Who writes a story down: the nodes, stepped by its actions in order.

use std::collections::BTreeMap;

use deposed_checkers::history::{
    Body, Event, Kind, NEMESIS, Name, Nanos, Observation, RecoveredLease, StorageRecovered,
    StoreRecovered,
};
use serde_json::{Value, json};

use super::{
    super::{
        action::Action,
        candidate::{Candidate, CandidateStep},
        message::{Message, Reader, Says, name_of},
        scope::Scope,
        storage_node::{StorageAccount, StorageNode, StorageStep},
        store_node::{StoreAccount, StoreNode, StoreStep, lease},
    },
    TICK,
    beliefs::Told,
    calls::Open,
};
use crate::lease::LeaseRecord;

pub(super) struct Scribe {
    pub(super) scope: Scope,
    /// Clients whose clocks skip ticks, a bit each.
    pub(super) skipped: u8,
    pub(super) now: Nanos,
    pub(super) store: StoreNode,
    pub(super) storage: StorageNode,
    pub(super) clients: Vec<Candidate>,
    /// By client: the event that told so, a place in `events`.
    pub(super) stands_still: Vec<Option<usize>>,
    pub(super) told: Vec<Option<Told>>,
    pub(super) open: Vec<Open>,
    pub(super) calls: u64,
    pub(super) events: Vec<Event>,
}

impl Scribe {
    pub(super) fn new(scope: &Scope, skipped: u8) -> Self {
        let mut scribe = Self {
            scope: scope.clone(),
            skipped,
            now: 0,
            store: StoreNode::new(scope),
            storage: StorageNode::new(scope),
            clients: (0..scope.clients)
                .map(|_| Candidate::new(scope, 0))
                .collect(),
            stands_still: vec![None; scope.clients],
            told: vec![None; scope.clients],
            open: Vec::new(),
            calls: 0,
            events: Vec::new(),
        };
        // Nobody owes it a leader: it may do whatever it likes, and only what it comes to is told.
        scribe.nemesis("adversary", json!({}));
        scribe
    }

    pub(super) fn record(
        &mut self,
        process: Name,
        kind: Kind,
        call: Option<u64>,
        body: Body,
    ) -> &mut Event {
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

    pub(super) fn observe(&mut self, process: Name, seen: Observation) {
        self.record(process, Kind::Info, None, Body::Observed(seen));
    }

    pub(super) fn nemesis(&mut self, fault: &str, value: Value) {
        let body = Body::Nemesis(fault.into(), value);
        self.record(NEMESIS.into(), Kind::Info, None, body);
    }

    fn crash(&mut self, node: Name) {
        self.nemesis("crash", json!({ "node": node }));
    }

    fn lost(&mut self, message: Message) {
        let client = name_of(message.process().client);
        let (from, to) = match message.says().reader() {
            Reader::Store => (client, "store".into()),
            Reader::Storage => (client, "storage".into()),
            Reader::Client => match message.says() {
                Says::Fenced | Says::Stale => ("storage".into(), client),
                _ => ("store".into(), client),
            },
        };
        let kind = message.says().kind();
        self.nemesis("lost", json!({ "from": from, "kind": kind, "to": to }));
    }

    pub(super) fn act(&mut self, action: Action) {
        if let Action::Wake(client)
        | Action::Look(client)
        | Action::Act { client, .. }
        | Action::Resign(client) = action
        {
            self.goes_on(client);
        }
        match action {
            Action::Tick { skips } => {
                self.note_who_stands_still();
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
                (self.told[client], self.stands_still[client]) = (None, None);
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
            Action::Lose(message) => self.lost(message),
            Action::LookAhead(message) => {
                let step = StorageStep::Check(message);
                self.storage = self.storage.step(&self.scope, step).0;
            }
            Action::Deliver(message) | Action::Duplicate(message) => self.arrive(message),
        }
    }

    pub(super) fn arrive(&mut self, message: Message) {
        match message.says().reader() {
            Reader::Store => self.at_store(message),
            Reader::Storage => self.at_storage(message),
            Reader::Client => self.at_client(message),
        }
    }
}

fn recovered(record: &LeaseRecord) -> RecoveredLease {
    let owner = record.owner.as_ref().filter(|_| !record.released);
    RecoveredLease {
        counter: record.counter,
        holder: owner.map(|owner| owner.holder.clone()),
        ttl: owner.map(|owner| owner.ttl * TICK),
    }
}

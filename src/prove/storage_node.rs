//! Storage's node: the real core, what of it is durable, and what it has taken.

use std::collections::BTreeMap;

use deposed_checkers::{
    history::{F, Name, Token},
    verdict::Check,
};

use super::{
    message::{Message, Says},
    scope::Scope,
    store_node::lease,
};
use crate::{
    flaw::Flaw,
    storage::{FencedStorage, ShardRecord, Value},
};

/// The one key there is.
pub(super) const KEY: &str = "k0";
/// The place of a term's one change.
pub(super) const SEQ: u64 = 1;

/// Storage between two steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StorageNode {
    pub(super) core: FencedStorage,
    /// What a restart finds, where a planted flaw makes that another than the core's record.
    disk: Option<ShardRecord>,
    /// The highest token of which anything was taken.
    pub(super) seen: Token,
}

/// What happens to storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StorageStep {
    /// It crashes and comes back with what was durable.
    Crash,
    /// It reads a request.
    Read(Message),
    /// It checks a change's token ahead of the change. Only with a planted flaw.
    Check(Message),
}

/// What it says of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageSays {
    /// The answer.
    pub answer: Option<Message>,
    /// Its own account.
    pub account: StorageAccount,
    /// The check that what it did breaks.
    pub breaks: Option<Check>,
}

/// What storage tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageAccount {
    /// Nothing.
    Silent,
    /// The fence was taken.
    Fenced,
    /// The change was applied.
    Applied,
    /// The change was applied before, and the answer is repeated.
    Repeated,
    /// What was asked was refused.
    Refused {
        /// The highest token seen.
        seen: Token,
    },
    /// It came back with this highest token.
    Recovered(Token),
}

impl StorageNode {
    /// Storage that has seen nothing.
    pub fn new(scope: &Scope) -> Self {
        Self {
            core: FencedStorage::new(scope.planted),
            disk: None,
            seen: 0,
        }
    }

    /// The highest token that the core knows of.
    pub fn highest(&self) -> Token {
        self.core.shard(&lease()).map_or(0, |shard| shard.highest)
    }

    /// Whether the change under the highest token was applied.
    pub fn changed(&self) -> bool {
        let shard = self.core.shard(&lease());
        shard.is_some_and(|shard| {
            let last = shard.terms.last();
            last.is_some_and(|term| term.token == shard.highest && term.last_seq.is_some())
        })
    }

    /// Storage after a step, and what it says.
    pub fn step(&self, scope: &Scope, step: StorageStep) -> (Self, StorageSays) {
        let mut node = self.clone();
        let mut says = StorageSays {
            answer: None,
            account: StorageAccount::Silent,
            breaks: None,
        };
        match step {
            StorageStep::Crash => node.crash(scope, &mut says),
            StorageStep::Check(message) => node.core.check(&lease(), message.token(), SEQ),
            StorageStep::Read(message) => node.read(scope, message, &mut says),
        }
        (node, says)
    }

    fn read(&mut self, scope: &Scope, message: Message, says: &mut StorageSays) {
        let (process, token) = (message.process(), message.token());
        let before = self.core.record(&lease());
        let key = Name::from(KEY);
        let taken = match message.says() {
            Says::Fence => self.core.fence(&lease(), token).map(|()| None),
            Says::Write => {
                let value = Value::from("w");
                let written = self.core.write(&lease(), token, SEQ, &key, value);
                written.map(Some)
            }
            _ => self.core.delete(&lease(), token, SEQ, &key).map(Some),
        };
        match taken {
            Ok(None) => {
                if !scope.planted.has(Flaw::FenceNotDurable) {
                    self.commit(scope, before);
                }
                says.answer = Some(Message::new(Says::Fenced, process, 0, token));
                says.account = StorageAccount::Fenced;
            }
            Ok(Some(applied)) if applied.fresh => {
                self.commit(scope, before);
                says.account = StorageAccount::Applied;
            }
            Ok(Some(_)) => {
                says.account = StorageAccount::Repeated;
                return;
            }
            Err(_) => {
                let seen = self.highest();
                says.account = StorageAccount::Refused { seen };
                says.answer = (token < seen).then(|| Message::new(Says::Stale, process, 0, token));
                return;
            }
        }
        if token < self.seen {
            says.breaks = Some(Check::StorageSafety);
        }
        self.seen = self.seen.max(token);
    }

    fn crash(&mut self, scope: &Scope, says: &mut StorageSays) {
        let found = match lags(scope) {
            true => self.disk.clone(),
            false => self.core.record(&lease()),
        };
        let records = found.map(|record| (lease(), record));
        let records: BTreeMap<Name, ShardRecord> = records.into_iter().collect();
        self.core = FencedStorage::recover(scope.planted, records);
        let highest = self.highest();
        if highest < self.seen {
            says.breaks = Some(Check::StorageSafety);
        }
        says.account = StorageAccount::Recovered(highest);
    }

    /// What is durable once the answer leaves: all of it, but for the planted flaws.
    fn commit(&mut self, scope: &Scope, before: Option<ShardRecord>) {
        if !lags(scope) {
            return;
        }
        let mut record = self.core.record(&lease()).unwrap_or_default();
        if scope.planted.has(Flaw::ValueBeforeToken) {
            let before = before.unwrap_or_default();
            record = ShardRecord {
                values: record.values,
                ..before
            };
        }
        self.disk = Some(record);
    }

    /// The same with tokens by other names: see [`FencedStorage::renamed`].
    pub fn renamed(&self, mut token: impl FnMut(Token) -> Token) -> Self {
        let mut node = self.clone();
        node.core = self.core.renamed(&mut token);
        if let Some(record) = &mut node.disk {
            record.highest = token(record.highest);
            for term in &mut record.terms {
                term.token = token(term.token);
            }
            record.forgotten = record.forgotten.map(&mut token);
        }
        node.seen = token(node.seen);
        node
    }

    /// See [`FencedStorage::forgetting_overtaken_terms`].
    pub fn forgetting_overtaken_terms(&self) -> Self {
        Self {
            core: self.core.forgetting_overtaken_terms(),
            ..self.clone()
        }
    }
}

/// Whether the disk says other than the core's record.
fn lags(scope: &Scope) -> bool {
    let planted = scope.planted;
    planted.has(Flaw::FenceNotDurable) || planted.has(Flaw::ValueBeforeToken)
}

/// Which call a message to storage is.
pub(super) fn call_of(says: Says) -> F {
    match says {
        Says::Fence => F::Fence,
        Says::Delete => F::Delete,
        _ => F::Write,
    }
}

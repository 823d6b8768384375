//! The lease store's node: the real core, what of it is durable, and what it has promised.

use std::collections::BTreeMap;

use deposed_checkers::{
    history::{F, Name, Token},
    verdict::Check,
};

use super::{
    message::{Message, Process, Says},
    scope::Scope,
};
use crate::{
    flaw::Flaw,
    lease::{LeaseRecord, LeaseStore},
};

/// The one lease there is.
pub(super) fn lease() -> Name {
    Name::from("leader")
}

/// The store between two steps. Its clock reads 0: see [`LeaseStore::rebased`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreNode {
    pub(super) core: LeaseStore,
    /// What a restart finds, where a planted flaw makes that another than the core's record.
    disk: Option<LeaseRecord>,
    /// The highest token that was ever granted.
    pub(super) granted: Token,
    pub(super) promise: Promise,
}

/// What the last owner was told, apart from what the core makes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Promise {
    /// Its token.
    pub token: Token,
    /// For how long yet.
    pub left: u64,
    /// For how long the lease is closed to others yet.
    pub closed: u64,
}

/// What happens to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreStep {
    /// A tick of its clock.
    Tick,
    /// It crashes and comes back with what was durable.
    Crash,
    /// It reads a request.
    Read(Message),
}

/// What it says of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSays {
    /// The answer.
    pub answer: Option<Message>,
    /// Its own account.
    pub account: StoreAccount,
    /// The check that what it did breaks.
    pub breaks: Option<Check>,
}

/// What the store tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAccount {
    /// Nothing.
    Silent,
    /// A lease was granted anew.
    Granted {
        /// The token.
        token: Token,
    },
    /// A lease was extended.
    Renewed,
    /// A lease was taken back.
    Released,
    /// What was asked was refused.
    Denied {
        /// What.
        f: F,
        /// The error's name.
        kind: &'static str,
    },
    /// It came back with this.
    Recovered(Option<LeaseRecord>),
}

impl StoreNode {
    /// A store that never granted anything.
    pub fn new(scope: &Scope) -> Self {
        Self {
            core: LeaseStore::new(scope.limits(), scope.planted),
            disk: None,
            granted: 0,
            promise: Promise::default(),
        }
    }

    /// What a restart would find.
    pub fn durable(&self, scope: &Scope) -> Option<LeaseRecord> {
        match lags(scope) {
            true => self.disk.clone(),
            false => self.core.record(&lease()),
        }
    }

    /// The store after a step, and what it says.
    pub fn step(&self, scope: &Scope, step: StoreStep) -> (Self, StoreSays) {
        let mut node = self.clone();
        let mut says = StoreSays {
            answer: None,
            account: StoreAccount::Silent,
            breaks: None,
        };
        match step {
            StoreStep::Tick => {
                node.core = node.core.rebased(1);
                node.promise.left = node.promise.left.saturating_sub(1);
                node.promise.closed = node.promise.closed.saturating_sub(1);
            }
            StoreStep::Crash => node.crash(scope, &mut says),
            StoreStep::Read(message) => {
                let (process, holder) = (message.process(), message.process().holder());
                match message.says() {
                    Says::Acquire => node.acquire(scope, process, &holder, message, &mut says),
                    Says::Renew => node.renew(scope, &holder, message, &mut says),
                    _ => node.release(scope, &holder, message, &mut says),
                }
            }
        }
        (node, says)
    }

    fn acquire(
        &mut self,
        scope: &Scope,
        process: Process,
        holder: &Name,
        message: Message,
        says: &mut StoreSays,
    ) {
        let before = self.core.record(&lease());
        let request = message.id();
        let answer = self.core.acquire(0, &lease(), holder, request, scope.ttl);
        match answer {
            Ok(grant) => {
                says.answer = Some(Message::new(Says::Granted, process, request, grant.token));
                if !grant.fresh {
                    return;
                }
                self.commit(scope, before);
                let token = grant.token;
                says.account = StoreAccount::Granted { token };
                says.breaks = self.wrong_grant(token);
                self.granted = self.granted.max(token);
                self.promise = Promise {
                    token,
                    left: scope.ttl,
                    closed: scope.ttl + scope.lock_delay,
                };
            }
            Err(denial) => {
                says.answer = Some(Message::new(Says::Denied, process, request, 0));
                let (f, kind) = (F::Acquire, denial.kind());
                says.account = StoreAccount::Denied { f, kind };
                let owner = before.and_then(|record| record.owner);
                let granted = owner.is_some_and(|owner| {
                    owner.holder == *holder
                        && owner.request == request
                        && owner.token == self.promise.token
                });
                if granted && self.promise.left > 0 {
                    says.breaks = Some(Check::LeaseLinearizable);
                }
            }
        }
    }

    fn wrong_grant(&self, token: Token) -> Option<Check> {
        // A store that forgot may grant one request the same token twice: to a checker that
        // is one grant, but for its time.
        if self.promise.left > 0 {
            return Some(Check::LeaseLinearizable);
        }
        let first = self.granted == 0;
        if !first && token != self.granted + 1 {
            return Some(Check::TokenMonotonicity);
        }
        (self.promise.closed > 0).then_some(Check::LockDelay)
    }

    fn renew(&mut self, scope: &Scope, holder: &Name, message: Message, says: &mut StoreSays) {
        let before = self.core.record(&lease());
        let (token, attempt) = (message.token(), message.id());
        let answer = self
            .core
            .renew(0, &lease(), holder, token, attempt, scope.ttl);
        let word = match answer {
            Ok(extension) => {
                if extension.durable_changed {
                    self.commit(scope, before);
                }
                says.account = StoreAccount::Renewed;
                let owes = self.promise.left > 0 && self.promise.token == token;
                says.breaks = (!owes).then_some(Check::LeaseLinearizable);
                if self.promise.token == token {
                    self.promise.left = self.promise.left.max(scope.ttl);
                    self.promise.closed = self.promise.left + scope.lock_delay;
                }
                Says::Renewed
            }
            Err(denial) => {
                let (f, kind) = (F::Renew, denial.kind());
                says.account = StoreAccount::Denied { f, kind };
                Says::RenewDenied
            }
        };
        says.answer = Some(Message::new(word, message.process(), attempt, 0));
    }

    fn release(&mut self, scope: &Scope, holder: &Name, message: Message, says: &mut StoreSays) {
        let before = self.core.record(&lease());
        let token = message.token();
        let word = match self.core.release(0, &lease(), holder, token) {
            Ok(release) => {
                if release.fresh {
                    self.commit(scope, before);
                    says.account = StoreAccount::Released;
                    let own = self.promise.token == token;
                    says.breaks = (!own).then_some(Check::LeaseLinearizable);
                    (self.promise.left, self.promise.closed) = (0, 0);
                }
                Says::Released
            }
            Err(denial) => {
                let (f, kind) = (F::Release, denial.kind());
                says.account = StoreAccount::Denied { f, kind };
                Says::ReleaseDenied
            }
        };
        says.answer = Some(Message::new(word, message.process(), 0, token));
    }

    fn crash(&mut self, scope: &Scope, says: &mut StoreSays) {
        let found = self.durable(scope);
        let records = found.clone().map(|record| (lease(), record));
        let records: BTreeMap<Name, LeaseRecord> = records.into_iter().collect();
        self.core = LeaseStore::recover(scope.limits(), scope.planted, records, 0);
        let owns = found.as_ref().is_some_and(|record| {
            let owner = record.owner.as_ref().filter(|_| !record.released);
            owner.is_some_and(|owner| owner.token == self.promise.token)
        });
        if self.promise.left > 0 && !owns {
            says.breaks = Some(Check::LeaseLinearizable);
        }
        if let Some(record) = &found {
            if record.counter < self.granted {
                says.breaks = Some(Check::TokenMonotonicity);
            }
            // It owes the owner that it found its whole ttl again.
            let owner = record.owner.as_ref().filter(|_| !record.released);
            if let Some(owner) = owner.filter(|owner| owner.token == self.promise.token) {
                self.promise.left = self.promise.left.max(owner.ttl);
                self.promise.closed = self.promise.left + owner.lock_delay;
            }
        }
        says.account = StoreAccount::Recovered(found);
    }

    /// What is durable once the answer leaves: all of it, but for the planted flaws.
    fn commit(&mut self, scope: &Scope, before: Option<LeaseRecord>) {
        if scope.planted.has(Flaw::AnswersBeforeDurable) {
            self.disk = before;
        } else if scope.planted.has(Flaw::ForgetsLease) {
            self.disk = self.core.record(&lease());
        }
    }

    /// The answer to a renewal or a release that can change nothing any more.
    pub fn settled(&self, scope: &Scope, message: Message) -> Option<Message> {
        let process = message.process();
        let open = matches!(message.says(), Says::Acquire)
            || self
                .core
                .heeds(&lease(), &process.holder(), message.token());
        match open {
            true => None,
            false => self.step(scope, StoreStep::Read(message)).1.answer,
        }
    }

    /// The same with tokens, holders and requests by other names: see
    /// [`LeaseStore::renamed`].
    pub fn renamed(
        &self,
        mut token: impl FnMut(Token) -> Token,
        mut asked: impl FnMut(&Name, u64) -> (Name, u64),
    ) -> Self {
        let mut node = self.clone();
        node.core = self.core.renamed(&mut token, &mut asked);
        if let Some(record) = &mut node.disk {
            record.counter = token(record.counter);
            if let Some(owner) = &mut record.owner {
                owner.token = token(owner.token);
                (owner.holder, owner.request) = asked(&owner.holder, owner.request);
            }
        }
        node.granted = token(node.granted);
        node.promise.token = token(node.promise.token);
        node
    }
}

/// Whether the disk says other than the core's record.
fn lags(scope: &Scope) -> bool {
    let planted = scope.planted;
    planted.has(Flaw::AnswersBeforeDurable)
        || planted.has(Flaw::CounterNotSynced)
        // Whoever forgets what it reads from its disk does not wipe it.
        || planted.has(Flaw::ForgetsLease)
}

//! What the store and storage make of a request, and tell of it.

use deposed_checkers::history::{
    Answer, Applied, Denied, Failure, Fenced, Granted, Kind, Observation, Refused, Released,
    Renewed,
};

use super::{
    super::{
        message::{Message, Says},
        storage_node::{KEY, SEQ, StorageAccount, StorageStep, call_of},
        store_node::{StoreAccount, StoreStep, lease},
    },
    TICK,
    calls::value,
    scribe::Scribe,
};

impl Scribe {
    pub(super) fn at_store(&mut self, message: Message) {
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

    pub(super) fn at_storage(&mut self, message: Message) {
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
}

//! The store and the storage node of the model.

use deposed_checkers::history::*;
use serde_json::json;

use super::{LEASE, Model};

impl Model {
    /// One of the servers comes back with what was durable, or with less.
    pub(super) fn restart(&mut self) {
        if self.random.percent(50) {
            if self.random.percent(self.errors.forgets_highest) {
                self.highest = self.highest.saturating_sub(self.random.below(3));
            }
            let highest = match self.highest {
                0 => [].into(),
                highest => [(LEASE.into(), highest)].into(),
            };
            return self.observe(
                "storage",
                Observation::StorageRecovered(StorageRecovered { highest }),
            );
        }
        if self.random.percent(self.errors.forgets_owner) {
            self.owner = None;
        }
        if self.random.percent(self.errors.forgets_counter) {
            self.counter = self.counter.saturating_sub(2);
        }
        let clock = self.now;
        if let Some((_, _, _, until)) = &mut self.owner {
            *until = clock + 30;
        }
        let leases = match self.counter {
            0 => [].into(),
            counter => {
                let owner = self.owner.as_ref();
                let found = RecoveredLease {
                    counter,
                    holder: owner.map(|(holder, ..)| holder.clone()),
                    ttl: owner.map(|_| 30),
                };
                [(LEASE.into(), found)].into()
            }
        };
        let found = StoreRecovered { leases, clock };
        self.observe("store", Observation::StoreRecovered(found));
    }

    pub(super) fn store(&mut self, op: &Acquire) -> (Kind, Answer, Option<Failure>) {
        let told = |token: Option<Token>| token.map_or(Answer::None, Answer::Token);
        if let Some((holder, request, token, until)) = self.owner.clone()
            && self.now < until
        {
            if holder == op.holder && request == op.request {
                return (Kind::Ok, told(token), None);
            }
            if !self.random.percent(self.errors.grants_early) {
                return (Kind::Fail, Answer::None, Some(Failure::new("held")));
            }
        }
        if self.random.percent(self.errors.forgets_counter) {
            self.counter = self.counter.saturating_sub(2);
            let found = RecoveredLease {
                counter: self.counter,
                holder: None,
                ttl: None,
            };
            let leases = [(LEASE.into(), found)].into();
            let clock = self.now;
            self.observe(
                "store",
                Observation::StoreRecovered(StoreRecovered { leases, clock }),
            );
        }
        self.counter += 1;
        if self.random.percent(self.errors.token_off) {
            self.counter = (self.counter + self.random.below(3))
                .saturating_sub(1)
                .max(1);
        }
        let token = self.errors.tokens.then_some(self.counter);
        self.owner = Some((op.holder.clone(), op.request, token, self.now + 30));
        let (lease, holder, request) = (op.lease.clone(), op.holder.clone(), op.request);
        let granted = Granted {
            lease,
            holder,
            request,
            token,
            ttl: 30,
            clock: self.now,
        };
        self.observe("store", Observation::Granted(granted));
        (Kind::Ok, told(token), None)
    }

    pub(super) fn storage(&mut self, op: &Op) -> (Kind, Answer, Option<Failure>) {
        if let Op::Read(_) = op {
            return (Kind::Ok, Answer::Value(json!(null)), None);
        }
        // The same again gets the same answer, whatever was seen since.
        if let Some((last, kind)) = &self.last
            && last == op
            && op.f() != F::Fence
        {
            return (*kind, Answer::None, None);
        }
        if let Some(token) = op.token() {
            if token < self.highest && !self.random.percent(self.errors.storage_accepts) {
                let error = Failure::stale_token(token, self.highest);
                return (Kind::Fail, Answer::None, Some(error));
            }
            self.highest = self.highest.max(token);
        }
        let seen = match op.clone() {
            Op::Fence(Fence { lease, token }) => Observation::Fenced(Fenced { lease, token }),
            Op::Write(Write {
                lease,
                token,
                seq,
                key,
                value,
            }) => {
                let (f, value) = (F::Write, Some(value));
                Observation::Applied(Applied {
                    f,
                    lease,
                    token,
                    seq,
                    key,
                    value,
                })
            }
            Op::Delete(Delete {
                lease,
                token,
                seq,
                key,
            }) => {
                let (f, value) = (F::Delete, None);
                Observation::Applied(Applied {
                    f,
                    lease,
                    token,
                    seq,
                    key,
                    value,
                })
            }
            _ => unreachable!("the store's calls go to the store"),
        };
        self.observe("storage", seen);
        if op.f() != F::Fence {
            self.last = Some((op.clone(), Kind::Ok));
        }
        (Kind::Ok, Answer::None, None)
    }
}

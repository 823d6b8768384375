//! The store and the storage of the correct system, and what a broken one does instead.

use deposed_checkers::history::*;
use serde_json::Value;

use super::{Broken, CALM, System, TTL, clock, counted};

impl System {
    pub(super) fn serve(&mut self, op: &Op) -> (Kind, Answer, Option<Failure>) {
        let clock = clock(self.now, self.store_rate);
        let refused = |why: &str| (Kind::Fail, Answer::None, Some(Failure::new(why)));
        let told = |token| {
            if self.kind.tokens {
                Answer::Token(token)
            } else {
                Answer::None
            }
        };
        match op {
            Op::Acquire(op) => {
                if self.kind.broken == Some(Broken::GrantsNothing) && self.now >= CALM {
                    return refused("held");
                }
                if let Some((holder, request, token, expiry, released)) = &self.owner {
                    let own = *holder == op.holder && *request == op.request;
                    let live = !released && clock < *expiry;
                    if own && op.request != 0 && !*released {
                        return (Kind::Ok, told(*token), None);
                    }
                    if own && op.request != 0 {
                        return refused("superseded");
                    }
                    if own && live && self.kind.told_again {
                        return (Kind::Ok, told(*token), None);
                    }
                    let closed = *expiry + counted(self.kind.lock_delay);
                    let closed = match self.kind.broken {
                        Some(Broken::GrantsEarly) => closed - counted(2 * TTL / 3),
                        Some(Broken::TwoHolders) => 0,
                        _ => closed,
                    };
                    if !released && clock < closed {
                        return refused("held");
                    }
                }
                self.counter += 1;
                let expiry = clock + counted(TTL);
                self.owner = Some((op.holder.clone(), op.request, self.counter, expiry, false));
                (Kind::Ok, told(self.counter), None)
            }
            Op::Renew(_) | Op::Release(_) => {
                let owner = self.owner.as_mut().filter(|(holder, _, token, ..)| {
                    Some(holder) == op.holder() && op.token().is_none_or(|own| own == *token)
                });
                match (owner, op) {
                    (Some((.., released)), Op::Release(_)) => *released = true,
                    (Some((.., expiry, false)), _) if clock < *expiry => {
                        *expiry = clock + counted(TTL);
                    }
                    _ => return refused("not-owner"),
                }
                (Kind::Ok, Answer::None, None)
            }
            _ => self.store_data(op),
        }
    }

    fn store_data(&mut self, op: &Op) -> (Kind, Answer, Option<Failure>) {
        if let Op::Read(op) = op {
            let value = self.values.get(&op.key).cloned().unwrap_or(Value::Null);
            return (Kind::Ok, Answer::Value(value), None);
        }
        let token = op.token().unwrap();
        if token < self.highest {
            let error = Failure::stale_token(token, self.highest);
            return (Kind::Fail, Answer::None, Some(error));
        }
        self.highest = token;
        if let Op::Write(write) = op {
            let late = self.last.as_ref().is_some_and(|(last, _)| {
                matches!(last, Op::Write(last) if last.token == write.token && last.seq >= write.seq)
            });
            if late {
                return (Kind::Info, Answer::None, Some(Failure::new("late")));
            }
            self.values.insert(write.key.clone(), write.value.clone());
            self.last = Some((op.clone(), Kind::Ok));
        }
        (Kind::Ok, Answer::None, None)
    }
}

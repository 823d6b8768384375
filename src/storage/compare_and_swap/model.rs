//! Compare-and-swap storage against a naive model that keeps the whole log.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::storage::Certainty;

const TTL: Nanos = 1_000_000;
const HOLDERS: [&str; 2] = ["a#1", "b#1"];
const KEYS: [&str; 2] = ["j", "k"];

#[derive(Clone, Debug)]
enum Step {
    Acquire {
        who: usize,
    },
    Renew {
        who: usize,
        late: Token,
    },
    Release {
        who: usize,
        late: Token,
    },
    Change {
        late: Token,
        seq: u64,
        key: usize,
        deletes: bool,
    },
    Wait {
        for_: Nanos,
    },
    Restart,
}

fn stories() -> impl Strategy<Value = Vec<Step>> {
    let who = || 0..HOLDERS.len();
    // Mostly the newest token, sometimes an older one, sometimes one never granted.
    let late = || prop_oneof![6 => Just(1u64), 2 => 2..4u64, 1 => Just(0u64)];
    let change = (
        late(),
        0..6u64,
        0..KEYS.len(),
        proptest::bool::weighted(0.2),
    );
    let step = prop_oneof![
        4 => who().prop_map(|who| Step::Acquire { who }),
        2 => (who(), late()).prop_map(|(who, late)| Step::Renew { who, late }),
        1 => (who(), late()).prop_map(|(who, late)| Step::Release { who, late }),
        9 => change.prop_map(|(late, seq, key, deletes)| Step::Change { late, seq, key, deletes }),
        3 => (0..TTL + TTL / 2).prop_map(|for_| Step::Wait { for_ }),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..60)
}

/// What a lease server and a log would say.
#[derive(Default)]
struct Model {
    now: Nanos,
    granted: Token,
    owner: Option<usize>,
    expiry: Nanos,
    log: Vec<(Token, u64, usize, Option<Value>)>,
}

impl Model {
    fn owns(&self, token: Token) -> bool {
        self.owner.is_some() && self.now < self.expiry && token == self.granted
    }

    fn change(
        &mut self,
        token: Token,
        seq: u64,
        key: usize,
        value: Option<Value>,
    ) -> Result<bool, Refusal> {
        let under = self.log.iter().filter(|entry| entry.0 == token);
        let last = under.map(|entry| entry.1).max();
        if !self.owns(token) {
            let applied_before = match last.is_some_and(|last| seq <= last) {
                true => Certainty::MayHaveApplied,
                false => Certainty::NotApplied,
            };
            let (presented, granted) = (token, self.granted);
            return Err(match presented < granted {
                true => Refusal::StaleToken {
                    presented,
                    seen: granted,
                    applied_before,
                },
                false => Refusal::NotOwner {
                    presented,
                    granted,
                    applied_before,
                },
            });
        }
        match last {
            Some(last_seq) if seq < last_seq => {
                return Err(Refusal::OldSeq {
                    presented_seq: seq,
                    last_seq,
                });
            }
            Some(last_seq) if seq == last_seq => return Ok(false),
            _ => self.log.push((token, seq, key, value)),
        }
        Ok(true)
    }

    fn read(&self, key: usize) -> Option<&Value> {
        let mut newest_first = self.log.iter().rev();
        newest_first.find(|entry| entry.2 == key)?.3.as_ref()
    }
}

#[test]
fn storage_answers_as_the_model_does() {
    let lease = Name::from("leader");
    let (landed, stale, expired) = <(Cell<u32>, Cell<u32>, Cell<u32>)>::default();
    let count = |cell: &Cell<u32>, hit: bool| cell.set(cell.get() + u32::from(hit));
    let check = |steps: Vec<Step>| {
        let limits = StoreLimits::default();
        let mut storage = CompareAndSwapStorage::new(limits.clone(), Planted::NONE);
        let mut model = Model::default();
        for (at, step) in steps.into_iter().enumerate() {
            let now = model.now;
            let token = |late: Token| (model.granted + 1).saturating_sub(late);
            match step {
                Step::Wait { for_ } => model.now += for_,
                Step::Restart => {
                    let records = storage.record(&lease).map(|record| (lease.clone(), record));
                    let records = BTreeMap::from_iter(records);
                    storage =
                        CompareAndSwapStorage::recover(limits.clone(), Planted::NONE, records, now);
                    model.expiry = now + TTL;
                }
                Step::Acquire { who } => {
                    let (holder, request) = (HOLDERS[who].into(), at as u64);
                    let got = storage
                        .leases_mut()
                        .acquire(now, &lease, &holder, request, TTL);
                    let free = model.owner.is_none() || now >= model.expiry;
                    prop_assert_eq!(got.is_ok(), free);
                    if free {
                        model.granted += 1;
                        (model.owner, model.expiry) = (Some(who), now + TTL);
                    }
                }
                Step::Renew { who, late } => {
                    let (holder, token) = (HOLDERS[who].into(), token(late));
                    let got = storage
                        .leases_mut()
                        .renew(now, &lease, &holder, token, 0, TTL);
                    let own = model.owner == Some(who) && model.owns(token);
                    prop_assert_eq!(got.is_ok(), own);
                    if own {
                        model.expiry = now + TTL;
                    }
                }
                Step::Release { who, late } => {
                    let (holder, token) = (HOLDERS[who].into(), token(late));
                    let _ = storage.leases_mut().release(now, &lease, &holder, token);
                    if model.owner == Some(who) && token == model.granted {
                        model.owner = None;
                    }
                }
                Step::Change {
                    late,
                    seq,
                    key,
                    deletes,
                } => {
                    let (token, name) = (token(late), KEYS[key].into());
                    let value = (!deletes).then(|| Value::from(format!("v{at}")));
                    let got = match value.clone() {
                        Some(value) => storage.write(now, &lease, token, seq, &name, value),
                        None => storage.delete(now, &lease, token, seq, &name),
                    };
                    let got = got.map(|applied| applied.fresh);
                    let want = model.change(token, seq, key, value);
                    count(&landed, want == Ok(true));
                    count(&stale, matches!(want, Err(Refusal::StaleToken { .. })));
                    count(&expired, matches!(want, Err(Refusal::NotOwner { .. })));
                    // Of terms long past the model remembers more.
                    if token + crate::storage::TERMS_KEPT as u64 > model.granted {
                        prop_assert_eq!(got, want);
                    } else {
                        prop_assert!(got.is_err());
                    }
                }
            }
            for (key, name) in KEYS.iter().enumerate() {
                prop_assert_eq!(storage.read(&lease, &Name::from(*name)), model.read(key));
            }
        }
        Ok(())
    };
    let config = Config {
        cases: 1_000,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config, rng).run(&stories(), check);
    result.unwrap_or_else(|failure| panic!("{failure}"));
    for (cell, what) in [
        (landed, "writes landed"),
        (stale, "stale tokens"),
        (expired, "tokens without an owner"),
    ] {
        assert!(cell.get() > 500, "only {} {what}", cell.get());
    }
}

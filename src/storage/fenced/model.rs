//! Storage against a naive model that keeps the whole log and searches it.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

pub(super) const LEASES: [&str; 2] = ["x", "y"];
pub(super) const KEYS: [&str; 3] = ["j", "k", "l"];

#[derive(Clone, Debug)]
pub(super) enum Step {
    Op { lease: usize, token: Token, op: Op },
    Restart,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Op {
    Write { seq: u64, key: usize },
    Delete { seq: u64, key: usize },
    Fence,
}

impl Op {
    fn seq(&self) -> Option<u64> {
        match *self {
            Op::Write { seq, .. } | Op::Delete { seq, .. } => Some(seq),
            Op::Fence => None,
        }
    }
}

/// Tokens mostly rise, with late ones between; the longest stories forget terms.
pub(super) fn stories() -> impl Strategy<Value = Vec<Step>> {
    let (seq, key) = (0..6u64, 0..KEYS.len());
    let op = prop_oneof![
        5 => (seq.clone(), key.clone()).prop_map(|(seq, key)| Op::Write { seq, key }),
        2 => (seq, key).prop_map(|(seq, key)| Op::Delete { seq, key }),
        3 => Just(Op::Fence),
    ];
    let step = (0..LEASES.len(), 0..6u64, op, proptest::bool::weighted(0.05));
    proptest::collection::vec(step, 1..120).prop_map(|steps| {
        let storied = steps
            .into_iter()
            .enumerate()
            .map(|(at, (lease, late, op, restart))| {
                let token = (1 + at as Token / 4).saturating_sub(late * late);
                if restart {
                    Step::Restart
                } else {
                    Step::Op { lease, token, op }
                }
            });
        storied.collect()
    })
}

/// What was accepted, in order: which lease, which token, and what.
#[derive(Default)]
struct Model {
    log: Vec<(usize, Token, Op, Value)>,
}

impl Model {
    /// Tokens of a lease in the order they were first seen.
    fn seen(&self, lease: usize) -> Vec<Token> {
        let mut seen = Vec::new();
        for (_, token, ..) in self.log.iter().filter(|entry| entry.0 == lease) {
            if !seen.contains(token) {
                seen.push(*token);
            }
        }
        seen
    }

    fn under(&self, lease: usize, token: Token) -> impl Iterator<Item = &Op> {
        self.log
            .iter()
            .filter(move |entry| (entry.0, entry.1) == (lease, token))
            .map(|entry| &entry.2)
    }

    fn read(&self, lease: usize, key: usize) -> Option<&Value> {
        let of_key = |entry: &&(usize, Token, Op, Value)| match entry.2 {
            Op::Write { key: k, .. } | Op::Delete { key: k, .. } => entry.0 == lease && k == key,
            Op::Fence => false,
        };
        let last = self.log.iter().rev().find(of_key)?;
        matches!(last.2, Op::Write { .. }).then_some(&last.3)
    }

    fn take(
        &mut self,
        lease: usize,
        token: Token,
        op: &Op,
        value: &Value,
    ) -> Result<bool, Refusal> {
        let seen = self.seen(lease);
        let highest = seen.iter().max().copied().unwrap_or(0);
        if token < highest {
            let newest = &seen[seen.len().saturating_sub(TERMS_KEPT)..];
            let older = seen
                .iter()
                .any(|old| !newest.contains(old) && token <= *old);
            let copied = |taken: &Op| match op.seq() {
                Some(seq) => taken.seq() >= Some(seq),
                None => *taken == Op::Fence,
            };
            let may_have = if newest.contains(&token) {
                self.under(lease, token).any(copied)
            } else {
                older
            };
            // The point of it: whatever was applied is never said not to have been.
            assert!(may_have || !self.under(lease, token).any(|taken| taken == op));
            let applied_before = if may_have {
                Certainty::MayHaveApplied
            } else {
                Certainty::NotApplied
            };
            return Err(Refusal::StaleToken {
                presented: token,
                seen: highest,
                applied_before,
            });
        }
        if let (Some(seq), Some(last)) =
            (op.seq(), self.under(lease, token).filter_map(Op::seq).max())
        {
            if seq < last {
                return Err(Refusal::OldSeq {
                    presented_seq: seq,
                    last_seq: last,
                });
            }
            if seq == last {
                return Ok(false);
            }
        }
        self.log.push((lease, token, op.clone(), value.clone()));
        Ok(true)
    }
}

#[test]
fn storage_answers_as_the_model_does() {
    let (stale, possible, repeated, forgotten) = Default::default();
    let count = |cell: &Cell<u32>, hit: bool| cell.set(cell.get() + u32::from(hit));
    let check = |steps: Vec<Step>| {
        let mut storage = FencedStorage::new(Planted::NONE);
        let mut model = Model::default();
        for (at, step) in steps.into_iter().enumerate() {
            let Step::Op { lease, token, op } = step else {
                let record =
                    |(name, _): (&Name, Token)| (name.clone(), storage.record(name).unwrap());
                storage =
                    FencedStorage::recover(Planted::NONE, storage.highest().map(record).collect());
                continue;
            };
            let name = Name::from(LEASES[lease]);
            let value = Value::from(format!("v{at}"));
            let got = match op {
                Op::Write { seq, key } => {
                    let applied =
                        storage.write(&name, token, seq, &KEYS[key].into(), value.clone());
                    applied.map(|applied| applied.fresh)
                }
                Op::Delete { seq, key } => {
                    let applied = storage.delete(&name, token, seq, &KEYS[key].into());
                    applied.map(|applied| applied.fresh)
                }
                Op::Fence => storage.fence(&name, token).map(|()| true),
            };
            let want = model.take(lease, token, &op, &value);
            if let Err(Refusal::StaleToken { applied_before, .. }) = want {
                count(&stale, true);
                count(&possible, applied_before == Certainty::MayHaveApplied);
            }
            count(&repeated, want == Ok(false));
            prop_assert_eq!(got, want);
            let shard = storage.shard(&name).unwrap();
            count(&forgotten, shard.forgotten.is_some());
            prop_assert_eq!(Some(shard.highest), model.seen(lease).iter().max().copied());
            for (key, name_of_key) in KEYS.iter().enumerate() {
                let got = storage.read(&name, &Name::from(*name_of_key));
                prop_assert_eq!(got, model.read(lease, key));
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
        (stale, "stale tokens"),
        (possible, "refusals of what may have been applied"),
        (repeated, "repeated answers"),
        (forgotten, "operations after a term was forgotten"),
    ] {
        assert!(
            cell.get() > 500,
            "only {} {what}: the stories do not reach them",
            cell.get()
        );
    }
}

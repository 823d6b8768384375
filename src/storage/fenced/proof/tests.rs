//! Each storage that stands for another, against that other, whatever comes.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::super::{
    model::{KEYS, LEASES, Op, Step, stories},
    *,
};

/// What was answered, tokens told by these names.
fn answers(
    storage: &mut FencedStorage,
    steps: &[Step],
    token: impl Fn(Token) -> Token,
) -> Vec<Result<bool, Refusal>> {
    let mut said = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let Step::Op {
            lease,
            token: of,
            op,
        } = step
        else {
            let record = |(name, _): (&Name, Token)| (name.clone(), storage.record(name).unwrap());
            let records = storage.highest().map(record).collect();
            *storage = FencedStorage::recover(Planted::NONE, records);
            continue;
        };
        let (name, of) = (Name::from(LEASES[*lease]), token(*of));
        said.push(match *op {
            Op::Write { seq, key } => {
                let value = Value::from(format!("v{at}"));
                let applied = storage.write(&name, of, seq, &KEYS[key].into(), value);
                applied.map(|applied| applied.fresh)
            }
            Op::Delete { seq, key } => {
                let applied = storage.delete(&name, of, seq, &KEYS[key].into());
                applied.map(|applied| applied.fresh)
            }
            Op::Fence => storage.fence(&name, of).map(|()| true),
        });
    }
    said
}

fn runner() -> TestRunner {
    let config = Config {
        cases: 500,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn renamed_storage_does_the_same_under_the_names() {
    let stale = Cell::new(0);
    // In their order, and none stays none.
    let name = |token: Token| token * token + 6 * token;
    let check = |(before, after): (Vec<Step>, Vec<Step>)| {
        let mut storage = FencedStorage::new(Planted::NONE);
        answers(&mut storage, &before, |token| token);
        let mut renamed = storage.renamed(name);
        let mut expected = answers(&mut storage, &after, |token| token);
        for said in &mut expected {
            if let Err(Refusal::StaleToken {
                presented, seen, ..
            }) = said
            {
                (*presented, *seen) = (name(*presented), name(*seen));
                stale.set(stale.get() + 1);
            }
        }
        prop_assert_eq!(answers(&mut renamed, &after, name), expected);
        prop_assert_eq!(renamed, storage.renamed(name));
        Ok(())
    };
    runner()
        .run(&(stories(), stories()), check)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(stale.get() > 500, "only {} were stale", stale.get());
}

#[test]
fn storage_that_forgets_overtaken_terms_takes_and_refuses_the_same() {
    let (forgotten, otherwise) = (Cell::new(0), Cell::new(0));
    let check = |(before, after): (Vec<Step>, Vec<Step>)| {
        let mut storage = FencedStorage::new(Planted::NONE);
        answers(&mut storage, &before, |token| token);
        let mut forgetting = storage.forgetting_overtaken_terms();
        forgotten.set(forgotten.get() + u32::from(forgetting != storage));
        let expected = answers(&mut storage, &after, |token| token);
        let said = answers(&mut forgetting, &after, |token| token);
        for (mut said, mut expected) in said.into_iter().zip(expected) {
            for refused in [&mut said, &mut expected] {
                if let Err(Refusal::StaleToken { applied_before, .. }) = refused {
                    // Of an earlier copy it may tell otherwise.
                    otherwise.set(otherwise.get() + 1);
                    *applied_before = Certainty::MayHaveApplied;
                }
            }
            prop_assert_eq!(said, expected);
        }
        for lease in LEASES.map(Name::from) {
            let values = |storage: &FencedStorage| {
                KEYS.map(|key| storage.read(&lease, &key.into()).cloned())
            };
            prop_assert_eq!(values(&forgetting), values(&storage));
        }
        Ok(())
    };
    runner()
        .run(&(stories(), stories()), check)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(forgotten.get() > 100 && otherwise.get() > 500);
}

//! Each planted flaw changes what it says, beside correct storage.

use super::*;

/// A call to storage, with its token.
#[derive(Clone, Copy)]
enum Call {
    Fence(Token),
    /// With a seq and a key.
    Write(Token, u64, &'static str),
    Delete(Token, u64, &'static str),
    /// Looks ahead at a change with this seq.
    Check(Token, u64),
    /// Storage comes back with what was durable.
    Restart,
}
use Call::{Check, Delete, Fence, Restart, Write};

/// The last call's answer: done, or the kind of refusal.
fn last_answer(planted: Planted, calls: &[Call]) -> Result<(), &'static str> {
    let mut storage = FencedStorage::new(planted);
    let lease = Name::from("leader");
    let mut answer = Ok(());
    for call in calls {
        let given = match *call {
            Fence(token) => storage.fence(&lease, token),
            Write(token, seq, key) => storage
                .write(&lease, token, seq, &key.into(), "v".into())
                .map(drop),
            Delete(token, seq, key) => storage.delete(&lease, token, seq, &key.into()).map(drop),
            Check(token, seq) => {
                storage.check(&lease, token, seq);
                Ok(())
            }
            Restart => {
                let record = storage.record(&lease).expect("it was named");
                storage = FencedStorage::recover(planted, [(lease.clone(), record)].into());
                Ok(())
            }
        };
        answer = given.map_err(|refusal| refusal.kind());
    }
    answer
}

type Row = (
    Flaw,
    &'static [Call],
    Result<(), &'static str>,
    Result<(), &'static str>,
);

const STALE: Result<(), &str> = Err("stale-token");
const OLD: Result<(), &str> = Err("old-seq");

/// The flaw, the calls, the correct answer to the last, the flawed one.
const TABLE: &[Row] = &[
    (
        Flaw::AcceptsAnything,
        &[Write(2, 1, "k"), Write(1, 1, "k")],
        STALE,
        Ok(()),
    ),
    (Flaw::AcceptsAnything, &[Fence(2), Fence(1)], STALE, Ok(())),
    (
        Flaw::AcceptsAnything,
        &[Write(2, 2, "k"), Write(2, 1, "k")],
        OLD,
        OLD,
    ),
    (
        Flaw::FenceIsANoOp,
        &[Fence(2), Write(1, 1, "k")],
        STALE,
        Ok(()),
    ),
    (
        Flaw::FenceIsANoOp,
        &[Write(2, 1, "k"), Fence(1)],
        STALE,
        Ok(()),
    ),
    (
        Flaw::FenceIsANoOp,
        &[Write(2, 1, "k"), Write(1, 1, "k")],
        STALE,
        STALE,
    ),
    (
        Flaw::TokenPerKey,
        &[Fence(2), Write(1, 1, "k")],
        STALE,
        Ok(()),
    ),
    (
        Flaw::TokenPerKey,
        &[Write(2, 1, "k"), Write(1, 1, "other")],
        STALE,
        Ok(()),
    ),
    (
        Flaw::TokenPerKey,
        &[Write(2, 1, "k"), Write(1, 1, "k")],
        STALE,
        STALE,
    ),
    (Flaw::OffByOne, &[Fence(2), Write(1, 1, "k")], STALE, Ok(())),
    (Flaw::OffByOne, &[Fence(3), Write(1, 1, "k")], STALE, STALE),
    (
        Flaw::RefusesEqual,
        &[Fence(1), Write(1, 1, "k")],
        Ok(()),
        STALE,
    ),
    (
        Flaw::RefusesEqual,
        &[Write(1, 1, "k"), Write(2, 1, "k")],
        Ok(()),
        Ok(()),
    ),
    (
        Flaw::AppliesTwice,
        &[Write(1, 2, "k"), Write(1, 3, "k"), Write(1, 1, "k")],
        OLD,
        Ok(()),
    ),
    (
        Flaw::AppliesTwice,
        &[Write(1, 1, "k"), Fence(2), Write(1, 1, "k")],
        STALE,
        STALE,
    ),
    (
        Flaw::ForgetsHighest,
        &[Fence(2), Restart, Write(1, 1, "k")],
        STALE,
        Ok(()),
    ),
    (
        Flaw::CleanupDropsFence,
        &[Write(2, 1, "k"), Delete(2, 2, "k"), Write(1, 1, "k")],
        STALE,
        Ok(()),
    ),
    (
        Flaw::CleanupDropsFence,
        &[
            Write(2, 1, "k"),
            Write(2, 2, "other"),
            Delete(2, 3, "k"),
            Write(1, 1, "k"),
        ],
        STALE,
        STALE,
    ),
    (
        Flaw::CheckThenAct,
        &[Check(1, 1), Fence(2), Write(1, 1, "k")],
        STALE,
        Ok(()),
    ),
    (
        Flaw::CheckThenAct,
        &[Check(1, 1), Fence(2), Write(1, 2, "k")],
        STALE,
        STALE,
    ),
    (
        Flaw::CheckThenAct,
        &[Fence(2), Check(1, 1), Write(1, 1, "k")],
        STALE,
        STALE,
    ),
];

#[test]
fn each_flaw_changes_the_answer_it_says() {
    for (row, (flaw, calls, correct, flawed)) in TABLE.iter().enumerate() {
        assert_eq!(
            last_answer(Planted::NONE, calls),
            *correct,
            "row {row}, correct"
        );
        assert_eq!(
            last_answer(Planted::one(*flaw), calls),
            *flawed,
            "row {row}, {flaw}"
        );
    }
}

#[test]
fn every_other_flaw_leaves_storage_correct() {
    let of_storage = |flaw: &Flaw| TABLE.iter().any(|row| row.0 == *flaw);
    for flaw in Flaw::ALL.iter().filter(|flaw| !of_storage(flaw)) {
        for (row, (_, calls, correct, _)) in TABLE.iter().enumerate() {
            assert_eq!(
                last_answer(Planted::one(*flaw), calls),
                *correct,
                "row {row}, {flaw}"
            );
        }
    }
}

#[test]
fn anything_accepted_is_written_and_lowers_nothing() {
    let mut storage = FencedStorage::new(Planted::one(Flaw::AcceptsAnything));
    let (lease, key) = (Name::from("leader"), Name::from("k"));
    storage.write(&lease, 2, 1, &key, "new".into()).unwrap();
    storage.write(&lease, 1, 1, &key, "zombie".into()).unwrap();
    assert_eq!(storage.read(&lease, &key).unwrap(), "zombie");
    assert_eq!(storage.highest().collect::<Vec<_>>(), [(&lease, 2)]);
}

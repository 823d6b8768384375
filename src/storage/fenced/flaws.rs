//! Each planted flaw changes what it says, beside correct storage.

use super::*;

/// A token and either a write's seq or, with none, a fence.
type Call = (Token, Option<u64>);

fn last_answer(planted: Planted, calls: &[Call]) -> Result<(), &'static str> {
    let mut storage = FencedStorage::new(planted);
    let (lease, key) = (Name::from("leader"), Name::from("k"));
    let mut answer = Ok(());
    for (token, seq) in calls {
        let given = match seq {
            Some(seq) => storage
                .write(&lease, *token, *seq, &key, "v".into())
                .map(|_| ()),
            None => storage.fence(&lease, *token),
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

/// The flaw, the calls, the correct answer to the last, the flawed one.
const TABLE: &[Row] = &[
    (
        Flaw::AcceptsAnything,
        &[(2, Some(1)), (1, Some(1))],
        Err("stale-token"),
        Ok(()),
    ),
    (
        Flaw::AcceptsAnything,
        &[(2, None), (1, None)],
        Err("stale-token"),
        Ok(()),
    ),
    (
        Flaw::AcceptsAnything,
        &[(2, Some(2)), (2, Some(1))],
        Err("old-seq"),
        Err("old-seq"),
    ),
    (
        Flaw::FenceIsANoOp,
        &[(2, None), (1, Some(1))],
        Err("stale-token"),
        Ok(()),
    ),
    (
        Flaw::FenceIsANoOp,
        &[(2, Some(1)), (1, None)],
        Err("stale-token"),
        Ok(()),
    ),
    (
        Flaw::FenceIsANoOp,
        &[(2, Some(1)), (1, Some(1))],
        Err("stale-token"),
        Err("stale-token"),
    ),
    (
        Flaw::RefusesEqual,
        &[(1, None), (1, Some(1))],
        Ok(()),
        Err("stale-token"),
    ),
    (
        Flaw::RefusesEqual,
        &[(1, Some(1)), (2, Some(1))],
        Ok(()),
        Ok(()),
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

//! Each planted flaw changes what it says, beside the correct store, and nothing
//! that the others change.

use super::*;

const TTL: Nanos = 100;

/// A call to the store, with its time; tokens and requests are given outright.
#[derive(Clone, Copy)]
enum Call {
    Acquire(Nanos, &'static str, u64),
    Renew(Nanos, &'static str, Token),
    Release(Nanos, &'static str, Token),
    /// The store comes back with what was durable.
    Restart(Nanos),
}
use Call::{Acquire, Release as LetGo, Renew, Restart};

/// The last call's answer: the token, the expiry, or the kind of refusal.
fn last_answer(planted: Planted, calls: &[Call]) -> Result<u64, &'static str> {
    let lease = Name::from("leader");
    let limits = StoreLimits {
        min_ttl: 1,
        ..StoreLimits::default()
    };
    let mut store = LeaseStore::new(limits.clone(), planted);
    let mut answer = Ok(0);
    for call in calls {
        let given = match *call {
            Acquire(now, who, request) => store
                .acquire(now, &lease, &who.into(), request, TTL)
                .map(|grant| grant.token),
            Renew(now, who, token) => store
                .renew(now, &lease, &who.into(), token, 1, TTL)
                .map(|_| store.holding(now, &lease).map_or(0, |held| held.expiry)),
            LetGo(now, who, token) => store
                .release(now, &lease, &who.into(), token)
                .map(|release| u64::from(release.fresh)),
            Restart(now) => {
                let records = store.records();
                let records = records
                    .map(|(name, record)| (name.clone(), record))
                    .collect();
                store = LeaseStore::recover(limits.clone(), planted, records, now);
                Ok(0)
            }
        };
        answer = given.map_err(|denial| denial.kind());
    }
    answer
}

type Row = (
    Flaw,
    &'static [Call],
    Result<u64, &'static str>,
    Result<u64, &'static str>,
);

/// The flaw, the calls, the correct answer to the last, the flawed one.
const TABLE: &[Row] = &[
    (
        Flaw::ForgetsCounter,
        &[Acquire(0, "a#1", 1), Restart(10), Acquire(110, "b#1", 1)],
        Ok(2),
        Ok(1),
    ),
    (
        Flaw::ForgetsCounter,
        &[Acquire(0, "a#1", 1), Restart(10), Renew(20, "a#1", 1)],
        Ok(120),
        Ok(120),
    ),
    (Flaw::NarrowCounter, &[Acquire(0, "a#1", 1)], Ok(1), Ok(250)),
    (
        Flaw::NarrowCounter,
        &[
            Acquire(0, "a#1", 1),
            Acquire(100, "b#1", 1),
            Acquire(200, "a#1", 2),
            Acquire(300, "b#1", 2),
            Acquire(400, "a#1", 3),
            Acquire(500, "b#1", 3),
            Acquire(600, "a#1", 4),
            Acquire(700, "b#1", 4),
        ],
        Ok(8),
        Ok(1),
    ),
    (
        Flaw::RandomTokens,
        &[Acquire(0, "a#1", 1)],
        Ok(1),
        Ok(0x9e37_79b9_7f4a),
    ),
    (
        Flaw::ForgetsLease,
        &[Acquire(0, "a#1", 1), Restart(10), Acquire(20, "b#1", 1)],
        Err("held"),
        Ok(2),
    ),
    (
        Flaw::ForgetsLease,
        &[Acquire(0, "a#1", 1), Restart(10), Renew(20, "a#1", 1)],
        Ok(120),
        Err("not-owner"),
    ),
    (
        Flaw::RenewsTheDead,
        &[Acquire(0, "a#1", 1), Renew(100, "a#1", 1)],
        Err("expired"),
        Ok(200),
    ),
    (
        Flaw::RenewsTheDead,
        &[
            Acquire(0, "a#1", 1),
            Acquire(100, "b#1", 1),
            Renew(150, "a#1", 1),
        ],
        Err("not-owner"),
        Ok(250),
    ),
    // Sweeps at 50 and at 100.
    (
        Flaw::StaleExpiry,
        &[
            Acquire(0, "a#1", 1),
            Renew(50, "a#1", 1),
            Acquire(100, "b#1", 1),
        ],
        Err("held"),
        Ok(2),
    ),
    (
        Flaw::StaleExpiry,
        &[
            Acquire(0, "a#1", 1),
            Renew(49, "a#1", 1),
            Acquire(100, "b#1", 1),
        ],
        Err("held"),
        Err("held"),
    ),
    (
        Flaw::SameHolderSameToken,
        &[Acquire(0, "a#1", 1), Acquire(100, "a#1", 2)],
        Ok(2),
        Ok(1),
    ),
    (
        Flaw::SameHolderSameToken,
        &[
            Acquire(0, "a#1", 1),
            LetGo(10, "a#1", 1),
            Acquire(20, "a#1", 2),
        ],
        Ok(2),
        Ok(1),
    ),
    (
        Flaw::SameHolderSameToken,
        &[
            Acquire(0, "a#1", 1),
            Acquire(100, "b#1", 1),
            Acquire(200, "a#1", 2),
        ],
        Ok(3),
        Ok(3),
    ),
    (
        Flaw::SameTokenAgain,
        &[Acquire(0, "a#1", 1), Acquire(50, "a#1", 2)],
        Err("held"),
        Ok(1),
    ),
    (
        Flaw::SameTokenAgain,
        &[
            Acquire(0, "a#1", 1),
            Acquire(50, "a#1", 2),
            Acquire(120, "b#1", 1),
        ],
        Ok(2),
        Err("held"),
    ),
    (
        Flaw::ReleaseResetsCounter,
        &[
            Acquire(0, "a#1", 1),
            LetGo(10, "a#1", 1),
            Acquire(20, "b#1", 1),
        ],
        Ok(2),
        Ok(1),
    ),
    (
        Flaw::GrantsEarly,
        &[Acquire(0, "a#1", 1), Acquire(90, "b#1", 1)],
        Err("held"),
        Ok(2),
    ),
    (
        Flaw::GrantsEarly,
        &[Acquire(0, "a#1", 1), Acquire(89, "b#1", 1)],
        Err("held"),
        Err("held"),
    ),
    (
        Flaw::RenewByName,
        &[Acquire(0, "a#1", 1), Renew(50, "a#2", 9)],
        Err("not-owner"),
        Ok(150),
    ),
    (
        Flaw::RenewByName,
        &[
            Acquire(0, "a#1", 1),
            Acquire(100, "a#2", 1),
            Renew(150, "a#1", 1),
        ],
        Err("not-owner"),
        Ok(250),
    ),
    (
        Flaw::RenewByName,
        &[Acquire(0, "a#1", 1), Renew(50, "b#1", 1)],
        Err("not-owner"),
        Err("not-owner"),
    ),
    (
        Flaw::ReleasesAnything,
        &[Acquire(0, "a#1", 1), LetGo(10, "b#1", 7)],
        Err("not-owner"),
        Ok(1),
    ),
    (
        Flaw::ReleasesAnything,
        &[
            Acquire(0, "a#1", 1),
            LetGo(10, "b#1", 7),
            Acquire(20, "c#1", 1),
        ],
        Err("held"),
        Ok(2),
    ),
    (
        Flaw::AcquireTwice,
        &[Acquire(0, "a#1", 1), Acquire(50, "a#1", 1)],
        Ok(1),
        Err("held"),
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
fn a_forgotten_lock_delay_is_missed_after_a_restart_alone() {
    let limits = StoreLimits {
        min_ttl: 1,
        lock_delay: 50,
        ..StoreLimits::default()
    };
    let (lease, a, b) = ("leader".into(), "a#1".into(), "b#1".into());
    for (planted, granted) in [
        (Planted::NONE, false),
        (Planted::one(Flaw::LockDelayForgotten), true),
    ] {
        let mut store = LeaseStore::new(limits.clone(), planted);
        assert!(store.acquire(0, &lease, &a, 1, TTL).is_ok());
        assert!(store.clone().acquire(100, &lease, &b, 1, TTL).is_err());
        let records = store
            .records()
            .map(|(name, record)| (name.clone(), record))
            .collect();
        let mut back = LeaseStore::recover(limits.clone(), planted, records, 10);
        assert!(back.acquire(109, &lease, &b, 1, TTL).is_err());
        assert_eq!(back.acquire(110, &lease, &b, 2, TTL).is_ok(), granted);
    }
}

#[test]
fn every_other_flaw_leaves_the_store_correct() {
    let of_the_store = |flaw: &Flaw| TABLE.iter().any(|row| row.0 == *flaw);
    for flaw in Flaw::ALL.iter().filter(|flaw| !of_the_store(flaw)) {
        for (row, (_, calls, correct, _)) in TABLE.iter().enumerate() {
            assert_eq!(
                last_answer(Planted::one(*flaw), calls),
                *correct,
                "row {row}, {flaw}"
            );
        }
    }
}

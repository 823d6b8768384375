//! Each store that stands for another, against that other, in whatever order it is asked.

use std::cell::Cell;

use proptest::prelude::*;

use super::super::{
    model::{HOLDERS, LEASES, Step, limits, runner, steps},
    *,
};

/// By which names it is asked.
struct Names {
    /// The highest token that has another name; from there on they go up by one.
    highest: Token,
    other: bool,
}

impl Names {
    const OWN: Names = Names {
        highest: 0,
        other: false,
    };

    fn token(&self, token: Token) -> Token {
        match (self.other, token) {
            (false, _) | (_, 0) => token,
            (true, token) if token <= self.highest => 3 * token + 2,
            (true, token) => 3 * self.highest + 2 * self.highest.min(1) + (token - self.highest),
        }
    }

    fn request(&self, request: u64) -> u64 {
        if self.other { 2 * request + 1 } else { request }
    }

    fn holder(&self, holder: &str) -> Name {
        match self.other {
            true => format!("o-{holder}").into(),
            false => holder.into(),
        }
    }
}

fn counter(store: &LeaseStore) -> Token {
    let record = store.record(&LEASES[0].into());
    record.map_or(0, |record| record.counter)
}

/// The token that was granted, for how long, and whether anything changed by it.
type Told = (Option<Token>, Nanos, bool);
const NOTHING: Told = (None, 0, false);

/// One lease's steps, but for a restart's clock; what was answered, tokens by their own names.
fn answers(
    store: &mut LeaseStore,
    mut now: Nanos,
    steps: &[Step],
    names: &Names,
    // The highest token before each step, by its own name: steps tell others relative to it.
    counters: &mut Vec<Token>,
) -> Vec<Result<Told, Denial>> {
    let mut said = Vec::new();
    let lease = Name::from(LEASES[0]);
    for (at, step) in steps.iter().enumerate() {
        if !names.other {
            counters.push(counter(store));
        }
        let token = |behind: u64| names.token(counters[at].saturating_sub(behind));
        said.push(match *step {
            Step::Acquire {
                holder,
                request,
                ttl,
                ..
            } => {
                let holder = names.holder(HOLDERS[holder]);
                let grant = store.acquire(now, &lease, &holder, names.request(request), ttl);
                grant.map(|grant| (Some(grant.token), grant.ttl, grant.fresh))
            }
            Step::Renew {
                holder,
                behind,
                ttl,
                ..
            } => {
                let holder = names.holder(HOLDERS[holder]);
                let extension = store.renew(now, &lease, &holder, token(behind), 1, ttl);
                extension.map(|extension| (None, extension.ttl, extension.durable_changed))
            }
            Step::Release { holder, behind, .. } => {
                let holder = names.holder(HOLDERS[holder]);
                let release = store.release(now, &lease, &holder, token(behind));
                release.map(|release| (None, 0, release.fresh))
            }
            Step::Wait(time) => {
                now += time;
                Ok(NOTHING)
            }
            Step::Restart(_) => {
                let records = store.records().map(|(name, record)| (name.clone(), record));
                let records = records.collect();
                *store = LeaseStore::recover(limits(15), Planted::NONE, records, now);
                Ok(NOTHING)
            }
        });
    }
    said
}

#[test]
fn a_renamed_store_does_the_same_under_the_names() {
    let granted = Cell::new(0);
    let check = |(before, after): (Vec<Step>, Vec<Step>)| {
        let mut store = LeaseStore::new(limits(15), Planted::NONE);
        answers(&mut store, 0, &before, &Names::OWN, &mut Vec::new());
        let now = before.iter().map(|step| match step {
            Step::Wait(time) => *time,
            _ => 0,
        });
        let now = now.sum();
        let names = Names {
            highest: counter(&store),
            other: true,
        };
        let mut renamed = store.renamed(
            |token| names.token(token),
            |holder, request| (names.holder(holder), names.request(request)),
        );
        let mut counters = Vec::new();
        let mut expected = answers(&mut store, now, &after, &Names::OWN, &mut counters);
        for (token, ..) in expected.iter_mut().flatten() {
            granted.set(granted.get() + u32::from(token.is_some() && names.highest > 0));
            *token = token.map(|token| names.token(token));
        }
        prop_assert_eq!(
            answers(&mut renamed, now, &after, &names, &mut counters),
            expected
        );
        Ok(())
    };
    runner(1_000)
        .run(&(steps(), steps()), check)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(granted.get() > 500, "only {} were granted", granted.get());
}

#[test]
fn what_a_store_heeds_not_changes_nothing_and_never_will() {
    let unheeded = Cell::new(0);
    let check = |(before, after): (Vec<Step>, Vec<Step>)| {
        let lease = Name::from(LEASES[0]);
        let mut store = LeaseStore::new(limits(15), Planted::NONE);
        answers(&mut store, 0, &before, &Names::OWN, &mut Vec::new());
        let granted = (0..=counter(&store)).flat_map(|token| HOLDERS.map(|who| (who, token)));
        let dead: Vec<_> = granted
            .filter(|(who, token)| !store.heeds(&lease, &Name::from(*who), *token))
            .collect();
        // As it is, and after whatever comes.
        for steps in [Vec::new(), after] {
            answers(&mut store, 1_000, &steps, &Names::OWN, &mut Vec::new());
            for (who, token) in &dead {
                let who = Name::from(*who);
                prop_assert!(!store.heeds(&lease, &who, *token));
                let mut told = store.clone();
                for now in [0, 1_000] {
                    let _ = told.renew(now, &lease, &who, *token, 1, 50);
                    let _ = told.release(now, &lease, &who, *token);
                }
                prop_assert_eq!(&told, &store);
                unheeded.set(unheeded.get() + 1);
            }
        }
        Ok(())
    };
    runner(500)
        .run(&(steps(), steps()), check)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(
        unheeded.get() > 500,
        "only {} went unheeded",
        unheeded.get()
    );
}

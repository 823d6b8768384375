//! The store against a naive model that keeps every grant and searches them all.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

pub(super) const LEASES: [&str; 2] = ["x", "y"];
pub(super) const HOLDERS: [&str; 3] = ["a#1", "a#2", "b#1"];

/// One step. Tokens and request ids are told relative to what there is, so that
/// hits and near misses are common.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Acquire {
        lease: usize,
        holder: usize,
        request: u64,
        ttl: Nanos,
    },
    Renew {
        lease: usize,
        holder: usize,
        behind: u64,
        ttl: Nanos,
    },
    Release {
        lease: usize,
        holder: usize,
        behind: u64,
    },
    Wait(Nanos),
    /// The store restarts and its clock reads this.
    Restart(Nanos),
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (lease, holder) = (0..LEASES.len(), 0..HOLDERS.len());
    let ttl = prop_oneof![8 => 10..60u64, 1 => Just(9u64), 1 => Just(61u64)];
    let behind = prop_oneof![6 => Just(0u64), 1 => 1..3u64];
    let step = prop_oneof![
        6 => (lease.clone(), holder.clone(), 0..6u64, ttl.clone())
            .prop_map(|(lease, holder, request, ttl)| Step::Acquire { lease, holder, request, ttl }),
        5 => (lease.clone(), holder.clone(), behind.clone(), ttl)
            .prop_map(|(lease, holder, behind, ttl)| Step::Renew { lease, holder, behind, ttl }),
        2 => (lease, holder, behind)
            .prop_map(|(lease, holder, behind)| Step::Release { lease, holder, behind }),
        6 => (1..40u64).prop_map(Step::Wait),
        1 => (0..200u64).prop_map(Step::Restart),
    ];
    proptest::collection::vec(step, 1..80)
}

/// Everything that was ever granted, in order.
#[derive(Default)]
struct Model {
    grants: Vec<Granted>,
    lock_delay: Nanos,
}

struct Granted {
    lease: usize,
    holder: usize,
    request: u64,
    /// When its time began anew, since the last restart, and for how long.
    armed: Vec<(Nanos, Nanos)>,
    /// Every ttl it was ever promised.
    promised: Vec<Nanos>,
    released: bool,
}

impl Granted {
    fn expiry(&self) -> Nanos {
        self.armed.iter().map(|(at, ttl)| at + ttl).max().unwrap()
    }
}

impl Model {
    fn of(&self, lease: usize) -> Vec<usize> {
        (0..self.grants.len())
            .filter(|at| self.grants[*at].lease == lease)
            .collect()
    }

    fn acquire(
        &mut self,
        now: Nanos,
        lease: usize,
        holder: usize,
        request: u64,
        ttl: Nanos,
    ) -> Result<(Token, bool), &'static str> {
        if !(10..=60).contains(&ttl) {
            return Err("ttl-out-of-bounds");
        }
        let before = self.of(lease);
        if let Some(last) = before.last().map(|at| &self.grants[*at]) {
            if last.holder == holder && request == last.request && !last.released {
                return Ok((before.len() as Token, false));
            }
            if last.holder == holder && request <= last.request {
                return Err("superseded");
            }
            if !last.released && now < last.expiry() + self.lock_delay {
                return Err("held");
            }
        }
        let armed = vec![(now, ttl)];
        let promised = vec![ttl];
        self.grants.push(Granted {
            lease,
            holder,
            request,
            armed,
            promised,
            released: false,
        });
        Ok((before.len() as Token + 1, true))
    }

    /// The grant of this lease, holder and token, unless it was replaced.
    fn last(&mut self, lease: usize, holder: usize, token: Token) -> Option<&mut Granted> {
        let before = self.of(lease);
        let last = &mut self.grants[*before.last()?];
        (before.len() as Token == token && last.holder == holder).then_some(last)
    }

    fn renew(
        &mut self,
        now: Nanos,
        lease: usize,
        holder: usize,
        token: Token,
        ttl: Nanos,
    ) -> Result<(), &'static str> {
        if !(10..=60).contains(&ttl) {
            return Err("ttl-out-of-bounds");
        }
        let last = self
            .last(lease, holder, token)
            .filter(|last| !last.released)
            .ok_or("not-owner")?;
        if now >= last.expiry() {
            return Err("expired");
        }
        last.armed.push((now, ttl));
        last.promised.push(ttl);
        Ok(())
    }

    fn release(&mut self, lease: usize, holder: usize, token: Token) -> Result<bool, &'static str> {
        let last = self.last(lease, holder, token).ok_or("not-owner")?;
        Ok(!std::mem::replace(&mut last.released, true))
    }

    fn restart(&mut self, now: Nanos) {
        for granted in &mut self.grants {
            granted.armed = vec![(now, *granted.promised.iter().max().unwrap())];
        }
    }
}

pub(super) fn limits(lock_delay: Nanos) -> StoreLimits {
    StoreLimits {
        min_ttl: 10,
        max_ttl: 60,
        max_name_len: 8,
        lock_delay,
    }
}

/// A test runner that runs the same cases every time and leaves no files.
pub(super) fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn the_store_answers_as_the_model_does() {
    let (repeated, expired, replaced) = Default::default();
    let count = |cell: &Cell<u32>| cell.set(cell.get() + 1);
    let input = (steps(), prop_oneof![Just(0u64), Just(15u64)]);
    let check = |(steps, lock_delay): (Vec<Step>, Nanos)| {
        let mut store = LeaseStore::new(limits(lock_delay), Planted::NONE);
        let mut model = Model {
            lock_delay,
            ..Model::default()
        };
        let mut now = 0;
        for step in steps {
            let name = |lease: usize| Name::from(LEASES[lease]);
            let who = |holder: usize| Name::from(HOLDERS[holder]);
            match step {
                Step::Acquire {
                    lease,
                    holder,
                    request,
                    ttl,
                } => {
                    let got = store.acquire(now, &name(lease), &who(holder), request, ttl);
                    let want = model.acquire(now, lease, holder, request, ttl);
                    match want {
                        Ok((2.., true)) => count(&replaced),
                        Ok((_, false)) => count(&repeated),
                        _ => {}
                    }
                    let got = got.map(|grant| (grant.token, grant.fresh));
                    prop_assert_eq!(got.map_err(|denial| denial.kind()), want);
                }
                Step::Renew {
                    lease,
                    holder,
                    behind,
                    ttl,
                } => {
                    let token = (model.of(lease).len() as Token).saturating_sub(behind);
                    let got = store.renew(now, &name(lease), &who(holder), token, 1, ttl);
                    let want = model.renew(now, lease, holder, token, ttl);
                    if want == Err("expired") {
                        count(&expired);
                    }
                    prop_assert_eq!(got.map(|_| ()).map_err(|denial| denial.kind()), want);
                }
                Step::Release {
                    lease,
                    holder,
                    behind,
                } => {
                    let token = (model.of(lease).len() as Token).saturating_sub(behind);
                    let got = store.release(now, &name(lease), &who(holder), token);
                    let want = model.release(lease, holder, token);
                    let got = got.map(|release| release.fresh);
                    prop_assert_eq!(got.map_err(|denial| denial.kind()), want);
                }
                Step::Wait(time) => now += time,
                Step::Restart(clock) => {
                    let records = store.records().map(|(name, record)| (name.clone(), record));
                    store = LeaseStore::recover(
                        limits(lock_delay),
                        Planted::NONE,
                        records.collect(),
                        clock,
                    );
                    now = clock;
                    model.restart(now);
                }
            }
            for lease in 0..LEASES.len() {
                let last = model.of(lease).last().map(|at| &model.grants[*at]);
                let want = last.filter(|last| !last.released && now < last.expiry());
                let got = store.holding(now, &name(lease));
                prop_assert_eq!(
                    got.map(|held| (held.holder.as_str(), held.expiry)),
                    want.map(|last| (HOLDERS[last.holder], last.expiry()))
                );
            }
        }
        Ok(())
    };
    runner(4_000)
        .run(&input, check)
        .unwrap_or_else(|failure| panic!("{failure}"));
    for (cell, what) in [
        (repeated, "repeated answers"),
        (expired, "renewals after expiry"),
        (replaced, "changes of ownership"),
    ] {
        assert!(
            cell.get() > 500,
            "only {} {what}: the steps do not reach them",
            cell.get()
        );
    }
}

/// Runs the steps but for restarts, and returns what was answered.
fn answers(store: &mut LeaseStore, mut now: Nanos, steps: &[Step]) -> Vec<String> {
    let mut said = Vec::new();
    for step in steps {
        let counter = |store: &LeaseStore, lease: usize| {
            store
                .record(&LEASES[lease].into())
                .map_or(0, |record| record.counter)
        };
        said.push(match *step {
            Step::Acquire {
                lease,
                holder,
                request,
                ttl,
            } => {
                let (lease, holder) = (LEASES[lease].into(), HOLDERS[holder].into());
                format!("{:?}", store.acquire(now, &lease, &holder, request, ttl))
            }
            Step::Renew {
                lease,
                holder,
                behind,
                ttl,
            } => {
                let token = counter(store, lease).saturating_sub(behind);
                let (lease, holder) = (LEASES[lease].into(), HOLDERS[holder].into());
                format!("{:?}", store.renew(now, &lease, &holder, token, 1, ttl))
            }
            Step::Release {
                lease,
                holder,
                behind,
            } => {
                let token = counter(store, lease).saturating_sub(behind);
                let (lease, holder) = (LEASES[lease].into(), HOLDERS[holder].into());
                format!("{:?}", store.release(now, &lease, &holder, token))
            }
            Step::Wait(time) | Step::Restart(time) => {
                now += time;
                String::new()
            }
        });
    }
    said
}

#[test]
fn a_rebased_store_behaves_as_it_did() {
    let check = |(before, after, begin): (Vec<Step>, Vec<Step>, Nanos)| {
        let mut store = LeaseStore::new(limits(15), Planted::NONE);
        answers(&mut store, begin, &before);
        let waited = before.iter().map(|step| match step {
            Step::Wait(time) | Step::Restart(time) => *time,
            _ => 0,
        });
        let now = begin + waited.sum::<Nanos>();
        let mut rebased = store.rebased(now);
        prop_assert_eq!(
            &rebased,
            &rebased.rebased(0),
            "rebasing twice is rebasing once"
        );
        prop_assert_eq!(
            answers(&mut rebased, 0, &after),
            answers(&mut store, now, &after)
        );
        Ok(())
    };
    let input = (steps(), steps(), 0..1_000_000u64);
    runner(500)
        .run(&input, check)
        .unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn no_clock_reading_and_no_number_makes_the_store_panic() {
    let edge = prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(u64::MAX - 1),
        any::<u64>()
    ];
    let call = (0..3u8, edge.clone(), edge.clone(), edge);
    let check = |calls: Vec<(u8, u64, u64, u64)>| {
        let limits = StoreLimits {
            max_ttl: u64::MAX,
            min_ttl: 1,
            max_name_len: 8,
            lock_delay: u64::MAX,
        };
        let mut store = LeaseStore::new(limits, Planted::NONE);
        let (lease, holder) = (Name::from("x"), Name::from("a"));
        for (call, now, id, ttl) in calls {
            match call {
                0 => _ = store.acquire(now, &lease, &holder, id, ttl),
                1 => _ = store.renew(now, &lease, &holder, id, 1, ttl),
                _ => _ = store.release(now, &lease, &holder, id),
            }
            store = store.rebased(now / 2);
        }
        Ok(())
    };
    let input = proptest::collection::vec(call, 1..40);
    runner(300)
        .run(&input, check)
        .unwrap_or_else(|failure| panic!("{failure}"));
}

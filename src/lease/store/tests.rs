//! The store's rules, one test each.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::*;

mod restore;

const TTL: Nanos = 100;
const DELAY: Nanos = 30;

/// A store of one lease, spoken to in short.
struct Desk(LeaseStore);

fn limits() -> StoreLimits {
    StoreLimits {
        min_ttl: 10,
        max_ttl: 1_000,
        max_name_len: 8,
        lock_delay: 0,
    }
}

fn desk() -> Desk {
    Desk(LeaseStore::new(limits(), Planted::NONE))
}

fn desk_with_delay() -> Desk {
    Desk(LeaseStore::new(
        StoreLimits {
            lock_delay: DELAY,
            ..limits()
        },
        Planted::NONE,
    ))
}

fn lease() -> Name {
    "leader".into()
}

impl Desk {
    fn ask(&mut self, now: Nanos, holder: &str, request: u64) -> Result<Grant, Denial> {
        self.0.acquire(now, &lease(), &holder.into(), request, TTL)
    }

    /// The token, or the kind of refusal.
    fn acquire(&mut self, now: Nanos, holder: &str, request: u64) -> Result<Token, &'static str> {
        self.ask(now, holder, request)
            .map(|grant| grant.token)
            .map_err(|denial| denial.kind())
    }

    fn renew(&mut self, now: Nanos, holder: &str, token: Token) -> Result<(), &'static str> {
        self.renew_for(now, holder, token, TTL).map(|_| ())
    }

    fn renew_for(
        &mut self,
        now: Nanos,
        holder: &str,
        token: Token,
        ttl: Nanos,
    ) -> Result<Extension, &'static str> {
        self.0
            .renew(now, &lease(), &holder.into(), token, 1, ttl)
            .map_err(|denial| denial.kind())
    }

    fn release(&mut self, now: Nanos, holder: &str, token: Token) -> Result<bool, &'static str> {
        let released = self.0.release(now, &lease(), &holder.into(), token);
        released
            .map(|release| release.fresh)
            .map_err(|denial| denial.kind())
    }

    fn holder(&self, now: Nanos) -> Option<(&str, Token)> {
        self.0
            .holding(now, &lease())
            .map(|held| (held.holder.as_str(), held.token))
    }

    fn record(&self) -> LeaseRecord {
        self.0.record(&lease()).unwrap()
    }

    /// The store goes away and comes back at `now` with what was durable, written
    /// and read as a file would be.
    fn restart(&mut self, now: Nanos) {
        let written = serde_json::to_string(&self.records()).unwrap();
        let read = serde_json::from_str(&written).unwrap();
        self.0 = LeaseStore::recover(self.0.limits.clone(), Planted::NONE, read, now);
    }

    fn records(&self) -> BTreeMap<Name, LeaseRecord> {
        self.0
            .records()
            .map(|(name, record)| (name.clone(), record))
            .collect()
    }
}

#[test]
fn the_first_token_is_one() {
    assert_eq!(desk().acquire(0, "a", 1), Ok(1));
}

#[test]
fn a_held_lease_is_refused_and_says_for_how_long() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.ask(40, "b", 1), Err(Denial::Held { remaining: 60 }));
}

#[test]
fn a_lease_is_free_at_exactly_its_expiry_and_not_before() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.acquire(99, "b", 1), Err("held"));
    assert_eq!(desk.holder(99), Some(("a", 1)));
    assert_eq!(desk.holder(100), None);
    assert_eq!(desk.acquire(100, "b", 1), Ok(2));
}

#[test]
fn each_change_of_ownership_gets_the_next_token_and_so_does_a_returning_holder() {
    let mut desk = desk();
    assert_eq!(desk.acquire(0, "a", 1), Ok(1));
    assert_eq!(desk.acquire(100, "a", 2), Ok(2));
    assert_eq!(desk.acquire(200, "b", 1), Ok(3));
    assert_eq!(desk.release(210, "b", 3), Ok(true));
    assert_eq!(desk.acquire(210, "b", 2), Ok(4));
}

#[test]
fn the_owners_own_request_again_gets_the_same_answer_and_extends_nothing() {
    let mut desk = desk();
    let granted = desk.ask(0, "a", 7).unwrap();
    assert!(granted.fresh);
    assert_eq!(
        desk.ask(60, "a", 7),
        Ok(Grant {
            fresh: false,
            ..granted
        })
    );
    assert_eq!(desk.acquire(99, "b", 1), Err("held"));
    assert_eq!(desk.acquire(100, "b", 1), Ok(2));
}

#[test]
fn the_owners_own_request_is_repeated_after_expiry_too_but_brings_nothing_back_to_life() {
    let mut desk = desk();
    let granted = desk.ask(0, "a", 7).unwrap();
    assert_eq!(
        desk.ask(500, "a", 7),
        Ok(Grant {
            fresh: false,
            ..granted
        })
    );
    assert_eq!(desk.holder(500), None);
    assert_eq!(desk.renew(500, "a", 1), Err("expired"));
}

#[test]
fn a_request_whose_grant_was_released_is_superseded() {
    let mut desk = desk();
    desk.acquire(0, "a", 7).unwrap();
    desk.release(10, "a", 1).unwrap();
    assert_eq!(desk.acquire(20, "a", 7), Err("superseded"));
    assert_eq!(desk.acquire(20, "a", 8), Ok(2));
}

#[test]
fn a_request_older_than_the_owners_recorded_one_is_superseded() {
    let mut desk = desk();
    desk.acquire(0, "a", 7).unwrap();
    assert_eq!(desk.acquire(10, "a", 6), Err("superseded"));
    assert_eq!(
        desk.acquire(500, "a", 6),
        Err("superseded"),
        "after the expiry too"
    );
}

#[test]
fn a_new_request_from_the_live_holder_is_refused() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.acquire(50, "a", 2), Err("held"));
    assert_eq!(desk.acquire(100, "a", 2), Ok(2));
}

#[test]
fn two_processes_of_one_name_are_two_holders() {
    let mut desk = desk();
    desk.acquire(0, "a#1", 1).unwrap();
    assert_eq!(desk.acquire(50, "a#2", 1), Err("held"));
    assert_eq!(desk.renew(50, "a#2", 1), Err("not-owner"));
    assert_eq!(desk.release(50, "a#2", 1), Err("not-owner"));
}

#[test]
fn a_renewal_lasts_its_ttl_from_when_it_is_applied() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.renew(60, "a", 1), Ok(()));
    assert_eq!(desk.holder(159), Some(("a", 1)));
    assert_eq!(desk.holder(160), None);
}

#[test]
fn a_renewal_never_shortens() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    let extension = desk.renew_for(10, "a", 1, 20).unwrap();
    assert_eq!(
        extension,
        Extension {
            ttl: 20,
            durable_changed: false
        }
    );
    assert_eq!(desk.holder(99), Some(("a", 1)));
}

#[test]
fn a_renewal_at_expiry_is_too_late() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.renew(100, "a", 1), Err("expired"));
    assert_eq!(desk.acquire(100, "b", 1), Ok(2));
    assert_eq!(desk.renew(101, "a", 1), Err("not-owner"));
}

#[test]
fn a_renewal_is_by_holder_and_token() {
    let mut desk = desk();
    assert_eq!(desk.renew(0, "a", 1), Err("not-owner"), "never granted");
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.renew(10, "b", 1), Err("not-owner"));
    assert_eq!(desk.renew(10, "a", 2), Err("not-owner"));
    desk.acquire(100, "a", 2).unwrap();
    assert_eq!(
        desk.renew(110, "a", 1),
        Err("not-owner"),
        "the same holder's term before"
    );
    assert_eq!(desk.renew(110, "a", 2), Ok(()));
}

#[test]
fn a_release_frees_at_once_and_its_token_stays_spent() {
    let mut desk = desk_with_delay();
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.release(10, "a", 1), Ok(true));
    assert_eq!(desk.holder(10), None);
    assert_eq!(desk.renew(10, "a", 1), Err("not-owner"));
    assert_eq!(
        desk.acquire(10, "b", 1),
        Ok(2),
        "no lock-delay after a release"
    );
}

#[test]
fn a_release_is_the_owners_alone() {
    let mut desk = desk();
    assert_eq!(desk.release(0, "a", 1), Err("not-owner"), "never granted");
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.release(10, "b", 1), Err("not-owner"));
    assert_eq!(desk.release(10, "a", 2), Err("not-owner"));
    desk.acquire(100, "b", 1).unwrap();
    assert_eq!(
        desk.release(110, "a", 1),
        Err("not-owner"),
        "a delayed one, of a term replaced"
    );
    assert_eq!(desk.holder(110), Some(("b", 2)));
}

#[test]
fn a_release_after_expiry_ends_the_lock_delay() {
    let mut desk = desk_with_delay();
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.acquire(110, "b", 1), Err("held"));
    assert_eq!(desk.release(110, "a", 1), Ok(true));
    assert_eq!(desk.acquire(110, "b", 1), Ok(2));
}

#[test]
fn a_repeated_release_is_answered_alike_and_does_nothing() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.release(10, "a", 1), Ok(true));
    let released = desk.0.clone();
    assert_eq!(desk.release(20, "a", 1), Ok(false));
    assert_eq!(desk.0, released);
}

#[test]
fn the_lock_delay_closes_the_lease_to_everyone_after_an_expiry() {
    let mut desk = desk_with_delay();
    desk.acquire(0, "a", 1).unwrap();
    assert_eq!(desk.ask(110, "b", 1), Err(Denial::Held { remaining: 20 }));
    assert_eq!(desk.acquire(110, "a", 2), Err("held"));
    assert_eq!(desk.renew(110, "a", 1), Err("expired"));
    assert_eq!(desk.acquire(129, "b", 1), Err("held"));
    assert_eq!(desk.acquire(130, "b", 1), Ok(2));
}

#[test]
fn a_ttl_outside_the_bounds_is_refused() {
    let mut store = LeaseStore::new(limits(), Planted::NONE);
    let refused = Denial::TtlOutOfBounds {
        min: 10,
        max: 1_000,
    };
    for ttl in [0, 9, 1_001, u64::MAX] {
        assert_eq!(
            store.acquire(0, &lease(), &"a".into(), 1, ttl),
            Err(refused.clone())
        );
        assert_eq!(
            store.renew(0, &lease(), &"a".into(), 1, 1, ttl),
            Err(refused.clone())
        );
    }
    assert!(store.acquire(0, &lease(), &"a".into(), 1, 10).is_ok());
    assert!(store.renew(0, &lease(), &"a".into(), 1, 1, 1_000).is_ok());
}

#[test]
fn an_empty_or_over_long_name_is_refused_and_remembered_nowhere() {
    let mut store = LeaseStore::new(limits(), Planted::NONE);
    for bad in ["", "ninechars"] {
        assert_eq!(
            store.acquire(0, &bad.into(), &"a".into(), 1, TTL),
            Err(Denial::BadName)
        );
        assert_eq!(
            store.acquire(0, &lease(), &bad.into(), 1, TTL),
            Err(Denial::BadName)
        );
    }
    assert_eq!(store, LeaseStore::new(limits(), Planted::NONE));
    assert!(
        store
            .acquire(0, &"eightchr".into(), &"a".into(), 1, TTL)
            .is_ok()
    );
}

#[test]
fn refused_requests_leave_nothing_behind() {
    let mut desk = desk();
    desk.acquire(0, "a", 5).unwrap();
    let before = desk.0.clone();
    let _ = desk.acquire(50, "b", 1);
    let _ = desk.acquire(50, "a", 6);
    let _ = desk.acquire(50, "a", 4);
    let _ = desk.renew(50, "b", 1);
    let _ = desk.release(50, "a", 9);
    assert_eq!(desk.0, before);
}

#[test]
fn the_last_token_is_granted_and_then_they_are_spent() {
    let counted = LeaseRecord {
        counter: u64::MAX - 1,
        owner: None,
        released: false,
    };
    let records = BTreeMap::from([(lease(), counted)]);
    let mut desk = Desk(LeaseStore::recover(limits(), Planted::NONE, records, 0));
    assert_eq!(desk.acquire(0, "a", 1), Ok(u64::MAX));
    assert_eq!(desk.acquire(50, "b", 1), Err("held"));
    assert_eq!(desk.acquire(100, "b", 1), Err("tokens-spent"));
}

#[test]
fn leases_do_not_know_each_other() {
    let mut store = LeaseStore::new(limits(), Planted::NONE);
    for name in ["x", "y"] {
        let granted = store.acquire(0, &name.into(), &"a".into(), 1, TTL).unwrap();
        assert_eq!(granted.token, 1);
    }
    store.release(10, &"x".into(), &"a".into(), 1).unwrap();
    assert!(store.holding(10, &"x".into()).is_none());
    assert!(store.holding(10, &"y".into()).is_some());
}

#[test]
fn a_restart_rearms_the_recorded_owner_for_its_whole_ttl_even_if_it_had_expired() {
    let mut desk = desk_with_delay();
    desk.acquire(0, "a", 7).unwrap();
    // The machine was rebooted: its clock begins anew.
    desk.restart(5);
    assert_eq!(
        desk.ask(50, "b", 1),
        Err(Denial::Held { remaining: 85 }),
        "ttl and lock-delay whole"
    );
    assert_eq!(
        desk.acquire(50, "a", 7),
        Ok(1),
        "the same request, the same answer"
    );
    assert_eq!(desk.renew(104, "a", 1), Ok(()));

    desk.restart(900);
    assert_eq!(
        desk.renew(999, "a", 1),
        Ok(()),
        "expired unreplaced and re-armed: legal"
    );
    assert_eq!(desk.acquire(999 + TTL + DELAY, "b", 1), Ok(2));
}

#[test]
fn a_restart_keeps_a_release() {
    let mut desk = desk_with_delay();
    desk.acquire(0, "a", 7).unwrap();
    desk.release(10, "a", 1).unwrap();
    let before = desk.0.clone();
    desk.restart(11);
    assert_eq!(desk.0, before);
    assert_eq!(desk.acquire(11, "a", 7), Err("superseded"));
    assert_eq!(desk.renew(11, "a", 1), Err("not-owner"));
    assert_eq!(desk.acquire(11, "b", 1), Ok(2));
}

#[test]
fn a_restart_rearms_for_the_longest_ttl_that_was_promised() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    assert!(desk.renew_for(10, "a", 1, 300).unwrap().durable_changed);
    assert!(!desk.renew_for(10, "a", 1, 300).unwrap().durable_changed);
    assert!(!desk.renew_for(20, "a", 1, 50).unwrap().durable_changed);
    assert_eq!(desk.record().owner.unwrap().ttl, 300);
    desk.restart(30);
    assert_eq!(
        desk.acquire(309, "b", 1),
        Err("held"),
        "the second renewal left 290 ns"
    );
}

#[test]
fn a_restart_keeps_the_lock_delay_that_was_promised() {
    let mut desk = desk_with_delay();
    desk.acquire(0, "a", 1).unwrap();
    let records = desk.records();
    let mut desk = Desk(LeaseStore::recover(limits(), Planted::NONE, records, 0));
    assert_eq!(desk.acquire(TTL + DELAY - 1, "b", 1), Err("held"));
}

#[test]
fn equal_situations_at_different_times_are_equal_and_hash_alike() {
    let (mut early, mut late) = (desk_with_delay(), desk_with_delay());
    early.acquire(100, "a", 1).unwrap();
    late.acquire(9_000, "a", 1).unwrap();
    assert_ne!(early.0, late.0);
    for after in [0, 40, 110, 130, 500] {
        let (a, b) = (early.0.rebased(100 + after), late.0.rebased(9_000 + after));
        assert_eq!(a, b);
        let hasher = BuildHasherDefault::<DefaultHasher>::new();
        assert_eq!(hasher.hash_one(&a), hasher.hash_one(&b));
    }
    assert_eq!(
        early.0.rebased(300),
        early.0.rebased(400),
        "nothing is left to run out"
    );
    assert_ne!(
        early.0.rebased(210),
        early.0.rebased(220),
        "the lock-delay still runs"
    );
}

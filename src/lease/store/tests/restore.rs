//! Coming back with an old copy.

use super::*;
use crate::lease::Restoration;

#[test]
fn a_restore_from_an_old_copy_goes_on_above_the_floor() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    let mut store = LeaseStore::restore(limits(), Planted::NONE, desk.records(), 40, 0);
    let granted = store.acquire(1_000, &lease(), &"b".into(), 1, TTL);
    assert_eq!(granted.unwrap().token, 41);
    let unknown = store.acquire(1_000, &"other".into(), &"b".into(), 1, TTL);
    assert_eq!(
        unknown.unwrap().token,
        41,
        "a lease that the copy did not know"
    );
}

#[test]
fn a_restore_waits_for_the_longest_lease_that_the_copy_names() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    let lowered = StoreLimits {
        max_ttl: TTL / 2,
        ..limits()
    };
    let mut store = LeaseStore::restore(lowered, Planted::NONE, desk.records(), 40, 0);
    let early = store.acquire(TTL - 1, &lease(), &"b".into(), 1, TTL / 2);
    assert_eq!(early, Err(Denial::Held { remaining: 1 }));
    assert_eq!(store.restoration(0).closed_for, TTL, "over restarts, too");
}

#[test]
fn a_restore_never_lowers_a_counter() {
    let counted = LeaseRecord {
        counter: 90,
        owner: None,
        released: false,
    };
    let records = BTreeMap::from([(lease(), counted)]);
    let mut desk = Desk(LeaseStore::restore(limits(), Planted::NONE, records, 40, 0));
    assert_eq!(desk.acquire(1_000, "a", 1), Ok(91));
}

#[test]
fn a_floor_holds_for_a_lease_whose_record_is_below_it() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    desk.0.resume_restoration(
        Restoration {
            floor: 40,
            closed_for: 0,
        },
        0,
    );
    assert_eq!(desk.acquire(100, "b", 1), Ok(41));
}

#[test]
fn a_restore_waits_for_owners_it_cannot_know() {
    let mut desk = desk();
    desk.acquire(0, "a", 1).unwrap();
    let mut desk = Desk(LeaseStore::restore(
        limits(),
        Planted::NONE,
        desk.records(),
        40,
        0,
    ));
    assert_eq!(
        desk.renew(10, "a", 1),
        Err("not-owner"),
        "it may have been replaced"
    );
    assert_eq!(desk.ask(10, "b", 1), Err(Denial::Held { remaining: 990 }));
    let other = desk.0.acquire(10, &"other".into(), &"b".into(), 1, TTL);
    assert_eq!(other, Err(Denial::Held { remaining: 990 }));

    // It restarts meanwhile: the wait begins anew, the floor stays.
    let restoration = desk.0.restoration(500);
    assert_eq!(
        restoration,
        Restoration {
            floor: 40,
            closed_for: 1_000
        }
    );
    desk.restart(0);
    desk.0.resume_restoration(restoration, 0);
    assert_eq!(desk.acquire(999, "b", 1), Err("held"));
    assert_eq!(
        desk.0.restoration(1_000),
        Restoration {
            floor: 40,
            closed_for: 0
        }
    );
    assert_eq!(desk.acquire(1_000, "b", 1), Ok(41));
}

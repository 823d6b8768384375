use deposed_checkers::history::{Body, Observation, RecoveredLease, Restored, StoreRecovered};
use deposed_checkers::verdict::Check::LeaseLinearizable;

use serde_json::json;

use crate::tale::*;

mod outside;

#[test]
fn a_lease_is_free_at_its_expiry_and_not_before() {
    tale()
        .grants("a", 1, 1, 0)
        .grants("b", 1, 2, 100)
        .passes(LeaseLinearizable);
    tale().grants("a", 1, 1, 0).grants("b", 1, 2, 99).convicts(
        LeaseLinearizable,
        "held it",
        &[0, 1],
    );
    let evidence = tale()
        .grants("a", 1, 1, 0)
        .renews("a", 1, 50)
        .grants("b", 1, 2, 149)
        .convicts(LeaseLinearizable, "for another 1ms", &[0, 1, 2]);
    assert_eq!(
        evidence.reckoning,
        [
            "by its clock the store owed a 100ms from 0.050s on, until 0.150s: it granted the lease \
             at 0.149s (0.002s in truth), 1ms too early"
        ]
    );
    tale()
        .grants("a", 1, 1, 0)
        .releases("a", 1, 10)
        .grants("b", 1, 2, 10)
        .passes(LeaseLinearizable);
}

#[test]
fn one_request_is_granted_once_and_not_refused_afterwards() {
    let granted = || tale().grants("a", 1, 1, 0);
    granted().grants("a", 1, 1, 50).passes(LeaseLinearizable);
    granted()
        .grants("a", 2, 1, 50)
        .convicts(LeaseLinearizable, "held it", &[0, 1]);
    granted()
        .denies("a", 1, 99)
        .convicts(LeaseLinearizable, "was refused", &[0, 1]);
    granted().denies("a", 1, 100).passes(LeaseLinearizable);
    granted().denies("a", 2, 50).passes(LeaseLinearizable);
    granted().denies("b", 1, 50).passes(LeaseLinearizable);
    granted()
        .releases("a", 1, 10)
        .denies("a", 1, 50)
        .passes(LeaseLinearizable);
}

#[test]
fn a_renewal_is_the_live_owners() {
    let granted = || tale().grants("a", 1, 1, 0);
    granted()
        .renews("a", 1, 99)
        .renews("a", 1, 198)
        .passes(LeaseLinearizable);
    granted()
        .renews("a", 1, 100)
        .convicts(LeaseLinearizable, "had run out", &[0, 1]);
    granted().releases("a", 1, 10).renews("a", 1, 20).convicts(
        LeaseLinearizable,
        "after its release",
        &[0, 1, 2],
    );
    let followed = || granted().grants("a", 2, 2, 150);
    followed().renews("a", 2, 200).passes(LeaseLinearizable);
    followed()
        .renews("a", 1, 200)
        .convicts(LeaseLinearizable, "had followed", &[1, 2]);
    granted()
        .grants("b", 1, 2, 150)
        .renews("a", 2, 200)
        .convicts(LeaseLinearizable, "had followed", &[1, 2]);
}

#[test]
fn a_renewal_never_shortens() {
    let mut tale = tale()
        .grants("a", 1, 1, 0)
        .renews("a", 1, 50)
        .grants("b", 1, 2, 99);
    let deposed_checkers::history::Body::Observed(Observation::Renewed(renewed)) =
        &mut tale.events[1].body
    else {
        panic!()
    };
    renewed.ttl = 10 * MS;
    tale.convicts(LeaseLinearizable, "for another 1ms", &[0, 2]);
}

#[test]
fn a_release_is_the_owners() {
    let followed = || tale().grants("a", 1, 1, 0).grants("b", 1, 2, 150);
    followed().releases("b", 2, 160).passes(LeaseLinearizable);
    followed()
        .releases("a", 1, 160)
        .convicts(LeaseLinearizable, "was the owner", &[1, 2]);
    followed()
        .releases("b", 1, 160)
        .convicts(LeaseLinearizable, "was the owner", &[1, 2]);
}

#[test]
fn a_restart_gives_the_owner_its_whole_ttl() {
    let back = |clock| tale().grants("a", 1, 1, 0).recovers(1, Some("a"), clock);
    back(500).renews("a", 1, 599).passes(LeaseLinearizable);
    back(500).grants("b", 1, 2, 600).passes(LeaseLinearizable);
    back(500)
        .grants("b", 1, 2, 599)
        .convicts(LeaseLinearizable, "held it", &[0, 1, 2]);
    back(90).grants("a", 1, 1, 150).passes(LeaseLinearizable);
    back(90)
        .denies("a", 1, 150)
        .convicts(LeaseLinearizable, "was refused", &[0, 1, 2]);
}

/// A release that may have been made durable excuses a restart that forgot its sender,
/// until a later grant shows that it cannot meet that term any more.
#[test]
fn a_release_of_before_the_next_grant_ends_no_later_term() {
    let forgotten = |tale: Tale, clock| {
        tale.grants("b", 1, 2, 200)
            .grants("a", 2, 3, 400)
            .recovers(3, None, clock)
    };
    for token in [None, Some(1)] {
        let released = tale()
            .grants("a", 1, 1, 0)
            .times_out("a", release("a", token));
        forgotten(released, 450).convicts(LeaseLinearizable, "came back without", &[4, 5]);
    }
    // One that is sent within the term may have ended it.
    for token in [None, Some(3)] {
        tale()
            .grants("b", 1, 2, 200)
            .grants("a", 2, 3, 400)
            .times_out("a", release("a", token))
            .recovers(3, None, 450)
            .passes(LeaseLinearizable);
    }
    // As may one with the token that a store without a memory hands out again.
    let twice = tale()
        .grants("a", 1, 3, 0)
        .times_out("a", release("a", 3))
        .grants("b", 1, 2, 200)
        .grants("a", 2, 3, 400)
        .recovers(3, None, 450);
    twice.passes(LeaseLinearizable);
}

#[test]
fn a_disk_that_forgets_breaks_the_promise_it_made() {
    let back = |clock| tale().grants("a", 1, 1, 0).recovers(1, None, clock);
    let evidence = back(99).convicts(LeaseLinearizable, "came back without", &[0, 1]);
    assert_eq!(
        evidence.sentence,
        "the store came back without the owner of leader: a (token 1) held it for another \
         1ms by the store's clock"
    );
    assert_eq!(evidence.culprit, 1);
    assert_eq!(evidence.expected, "a (token 1) is the owner");
    // Stores may drop an owner whose time is over.
    back(100).grants("b", 1, 2, 100).passes(LeaseLinearizable);
    let nothing = |clock: u64| {
        let (leases, clock) = ([].into(), clock * MS);
        Observation::StoreRecovered(StoreRecovered { leases, clock })
    };
    let renewed = tale().grants("a", 1, 1, 0).renews("a", 1, 50);
    renewed
        .clone()
        .saw("store", nothing(150))
        .passes(LeaseLinearizable);
    renewed.clone().saw("store", nothing(149)).convicts(
        LeaseLinearizable,
        "came back without",
        &[0, 1, 2],
    );
    let mut other = renewed.saw("store", nothing(149));
    other.events[2].process = "other-store".into();
    other.passes(LeaseLinearizable);
    // Somebody else under the same token is not the owner; under a higher one,
    // a grant was made durable and not recorded.
    let granted = || tale().grants("a", 1, 1, 0);
    granted()
        .recovers(1, Some("b"), 50)
        .convicts(LeaseLinearizable, "came back without", &[0, 1]);
    granted()
        .recovers(2, Some("b"), 50)
        .renews("b", 2, 60)
        .passes(LeaseLinearizable);
    // The machine's clock began anew: a had 20 ms left.
    let anew = || {
        tale()
            .grants("a", 1, 1, 0)
            .denies("b", 1, 80)
            .grants("b", 9, 2, 100)
    };
    anew()
        .recovers(2, None, 5)
        .grants("c", 1, 3, 104)
        .convicts(LeaseLinearizable, "held", &[2, 4]);
    anew()
        .recovers(2, None, 5)
        .grants("c", 1, 3, 105)
        .passes(LeaseLinearizable);
}

#[test]
fn a_release_may_be_durable_and_not_recorded() {
    let granted = || tale().grants("a", 1, 1, 0);
    granted()
        .times_out("a", release("a", 1))
        .recovers(1, None, 50)
        .grants("b", 1, 2, 60)
        .passes(LeaseLinearizable);
    granted()
        .times_out("b", release("b", 1))
        .recovers(1, None, 50)
        .convicts(LeaseLinearizable, "came back without", &[0, 3]);
    // The release was of the grant before.
    granted()
        .times_out("a", release("a", 1))
        .grants("a", 2, 2, 150)
        .recovers(2, None, 160)
        .convicts(LeaseLinearizable, "came back without", &[3, 4]);
}

#[test]
fn a_release_that_was_sent_may_be_of_a_later_grant() {
    // Without a token it is of whatever its holder has.
    let asked_again = |token: Option<u64>| {
        tale()
            .grants("a", 1, 1, 0)
            .times_out("a", release("a", token))
            .grants("a", 2, 2, 150)
            .recovers(2, None, 160)
    };
    asked_again(None).passes(LeaseLinearizable);
    asked_again(Some(1)).convicts(LeaseLinearizable, "came back without", &[3, 4]);
    // A store that hands a token out again to whom it may concern.
    let handed_out_again = |token| {
        tale()
            .grants("a", 1, 1, 0)
            .times_out("a", release("a", 1))
            .grants("b", 1, token, 100)
            .grants("a", 2, token, 200)
            .recovers(token, None, 250)
    };
    handed_out_again(1).passes(LeaseLinearizable);
    handed_out_again(2).convicts(LeaseLinearizable, "came back without", &[4, 5]);
}

#[test]
fn a_release_outlives_a_restart() {
    let released = || tale().grants("a", 1, 1, 0).releases("a", 1, 10);
    released()
        .recovers(1, None, 50)
        .grants("b", 1, 2, 50)
        .passes(LeaseLinearizable);
    released()
        .recovers(1, Some("a"), 50)
        .convicts(LeaseLinearizable, "after its release", &[1, 2]);
    // The machine's, too, whose clock begins anew.
    released()
        .recovers(1, Some("a"), 5)
        .convicts(LeaseLinearizable, "after its release", &[1, 2]);
    released()
        .recovers(1, None, 5)
        .grants("b", 1, 2, 5)
        .passes(LeaseLinearizable);
    // A grant of which only the restart tells.
    released()
        .recovers(2, Some("a"), 50)
        .renews("a", 2, 60)
        .passes(LeaseLinearizable);
}

#[test]
fn after_a_restart_the_owner_is_still_the_owner() {
    let back = || tale().grants("a", 1, 1, 0).recovers(1, Some("a"), 500);
    back()
        .renews("a", 1, 550)
        .releases("a", 1, 560)
        .grants("b", 1, 2, 560)
        .passes(LeaseLinearizable);
    back()
        .renews("b", 1, 550)
        .convicts(LeaseLinearizable, "had followed", &[0, 2]);
    // What its successor did later does not show it any better.
    tale()
        .grants("a", 1, 1, 0)
        .grants("b", 1, 2, 150)
        .renews("b", 2, 200)
        .renews("a", 1, 210)
        .convicts(LeaseLinearizable, "had followed", &[1, 3]);
    back()
        .releases("b", 1, 550)
        .convicts(LeaseLinearizable, "was the owner", &[0, 2]);
    back()
        .renews("a", 1, 600)
        .convicts(LeaseLinearizable, "had run out", &[0, 1, 2]);
    // Found with a shorter ttl, it keeps what it was promised.
    let mut short = tale()
        .grants("a", 1, 1, 0)
        .recovers(1, Some("a"), 20)
        .grants("b", 1, 2, 99);
    let deposed_checkers::history::Body::Observed(Observation::StoreRecovered(found)) =
        &mut short.events[1].body
    else {
        panic!()
    };
    found.leases.get_mut("leader").unwrap().ttl = Some(10 * MS);
    short.convicts(LeaseLinearizable, "for another 1ms", &[0, 1, 2]);
}

#[test]
fn an_old_copy_is_its_operators() {
    let restored = Restored {
        floor: 9,
        leases: [].into(),
        clock: 30,
    };
    tale()
        .grants("a", 1, 1, 0)
        .renews("a", 1, 50)
        .saw("store", Observation::Restored(restored))
        .grants("b", 1, 10, 130)
        .passes(LeaseLinearizable);
}

#[test]
fn without_a_store_or_its_clients_nothing_is_claimed() {
    tale()
        .ok("a", fence(1))
        .claims_nothing(LeaseLinearizable, "no events of a lease store");
    let mut untimed = tale().acquires("a", 1);
    untimed.header.lease = None;
    untimed.claims_nothing(LeaseLinearizable, "no lease timing in the header");
}

#[test]
fn each_stores_clock_is_its_own() {
    // One store's machine begins anew; what another promised is as it was.
    let granted = |clock| {
        let mut tale = tale()
            .grants("a", 1, 1, 0)
            .denies("z", 1, 500)
            .denies("z", 2, 5)
            .grants("b", 1, 2, clock);
        for event in [0, 3] {
            tale.events[event].process = "other".into();
        }
        tale
    };
    granted(100).passes(LeaseLinearizable);
    granted(99).convicts(LeaseLinearizable, "held it", &[0, 3]);
}

#[test]
fn a_clock_that_begins_anew_leaves_an_owner_what_it_had_left() {
    // A refusal, or another lease's release, showed the clock last: 20 ms were left.
    let refused = tale().grants("a", 1, 1, 0).denies("b", 1, 80);
    let mut released = tale().grants("a", 1, 1, 0).releases("z", 1, 80);
    let Body::Observed(Observation::Released(release)) = &mut released.events[1].body else {
        panic!()
    };
    release.lease = "other".into();
    for shown in [refused, released] {
        let anew = |clock| {
            let back = shown.clone().recovers(1, None, 5);
            back.grants("b", 2, 2, clock)
        };
        anew(25).passes(LeaseLinearizable);
        anew(24).convicts(LeaseLinearizable, "held it for another 1ms", &[0, 3]);
    }
}

/// The power can go again between a copy's declaration and its record.
#[test]
fn a_copy_that_was_put_back_answers_for_nobody_from_then_on() {
    let restored = |node: &str| {
        tale()
            .grants("a", 1, 6, 0)
            .at(10)
            .nemesis("restore", json!({"node": node, "for": 1}))
            .recovers(6, None, 40)
    };
    restored("store").passes(LeaseLinearizable);
    restored("storage").convicts(LeaseLinearizable, "came back without", &[0, 2]);
    tale()
        .grants("a", 1, 6, 0)
        .at(10)
        .nemesis("crash", json!({"node": "store", "for": 1}))
        .recovers(6, None, 40)
        .convicts(LeaseLinearizable, "came back without", &[0, 2]);
}

/// What it granted after the copy was made it does not know, and owes all the same: on
/// leases, too, that the copy does not name.
#[test]
fn a_restored_store_grants_nothing_for_a_ttl() {
    let restored = |ttl: Option<u64>, clock: u64| {
        let ttl = ttl.map(|ms| ms * MS);
        let (counter, holder) = (1, None);
        let found = RecoveredLease {
            counter,
            holder,
            ttl,
        };
        Observation::Restored(Restored {
            floor: 9,
            leases: [("elsewhere".into(), found)].into(),
            clock: clock * MS,
        })
    };
    let then = |clock| {
        let tale = tale().grants("a", 1, 5, 0).saw("store", restored(None, 10));
        tale.grants("b", 1, 10, clock)
    };
    let evidence = then(109).convicts(
        LeaseLinearizable,
        "99ms after it had been restored from an old copy",
        &[1, 2],
    );
    assert_eq!(evidence.expected, "refused until 0.110s by its clock");
    then(110).passes(LeaseLinearizable);
    // The copy tells of a longer one.
    let longer = tale().saw("store", restored(Some(150), 10));
    let longer = |clock| longer.clone().grants("b", 1, 10, clock);
    longer(159).convicts(LeaseLinearizable, "restored", &[0, 1]);
    longer(160).passes(LeaseLinearizable);
    // Its clock begins anew, and what was left is owed still.
    let anew = |clock| {
        let restarted = tale().saw("store", restored(None, 50)).denies("c", 1, 90);
        restarted.recovers(9, None, 5).grants("b", 1, 10, clock)
    };
    anew(64).convicts(LeaseLinearizable, "restored", &[0, 3]);
    anew(65).passes(LeaseLinearizable);
    // Another store was, or another copy is being put back.
    tale()
        .saw("elsewhere", restored(None, 10))
        .grants("b", 1, 10, 20)
        .passes(LeaseLinearizable);
    tale()
        .saw("store", restored(None, 10))
        .nemesis("restore", json!({"node": "store"}))
        .grants("b", 1, 10, 20)
        .passes(LeaseLinearizable);
}

/// By its own clock it never stepped: what did, it should not have read.
#[test]
fn a_step_of_the_stores_wall_clock_that_explains_it_is_told_and_shown() {
    let stepped = |node: &str, at: u64, by: i64| {
        tale()
            .grants("a", 1, 1, 0)
            .at(20)
            .renews("a", 1, 20)
            .at(at)
            .nemesis("step", json!({"node": node, "by": by * MS as i64}))
            .at(60)
            .grants("b", 1, 2, 60)
    };
    let evidence =
        stepped("store", 50, 70).convicts(LeaseLinearizable, "another 60ms", &[0, 1, 2, 3]);
    assert_eq!(
        evidence.reckoning[1],
        "its wall clock was stepped by +70ms since it began to count, the last time at 0.050s: \
         by that one the lease had run out"
    );
    // Too short a step, one back, somebody else's, or one of before it counted.
    for (node, at, by) in [
        ("store", 50, 59),
        ("store", 50, -70),
        ("a", 50, 70),
        ("store", 20, 70),
    ] {
        let evidence =
            stepped(node, at, by).convicts(LeaseLinearizable, "another 60ms", &[0, 1, 3]);
        assert_eq!(evidence.reckoning.len(), 1, "{node} {at} {by}");
    }
}

#[test]
fn a_holder_is_called_by_its_process_unless_two_of_one_are_told_of() {
    let granted_to = |holder: &str| {
        let mut tale = tale().grants("a", 1, 1, 0).grants("b", 1, 2, 10);
        let Body::Observed(Observation::Granted(granted)) = &mut tale.events[1].body else {
            panic!()
        };
        granted.holder = holder.into();
        tale
    };
    for (holder, told) in [
        ("b#7", "granted to b at 0.001s, while a (token 1) held"),
        ("a#1", "granted to a at 0.001s, while a (token 1) held"),
        ("a#7", "granted to a#7 at 0.001s, while a#1 (token 1) held"),
        ("#7", "granted to #7 at 0.001s, while a (token 1) held"),
    ] {
        granted_to(holder).convicts(LeaseLinearizable, told, &[0, 1]);
    }
}

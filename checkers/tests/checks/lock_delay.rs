use deposed_checkers::history::{Body, Observation, Restored, StoreRecovered};
use deposed_checkers::verdict::{
    Check::{LeaseLinearizable, LockDelay},
    Verdict,
};

use serde_json::json;

use crate::tale::*;

/// The ttl is 100, the lock-delay 50.
fn closed() -> Tale {
    tale().lock_delay(50)
}

#[test]
fn after_an_expiry_the_lease_stays_closed_for_the_delay() {
    let granted = || closed().grants("a", 1, 1, 0);
    granted().grants("b", 1, 2, 150).passes(LockDelay);
    let evidence =
        granted()
            .grants("b", 1, 2, 149)
            .convicts(LockDelay, "inside the lock-delay", &[0, 1]);
    assert_eq!(
        evidence.sentence,
        "leader was granted to b at 0.001s, inside the lock-delay: the lease of a had run out \
         49ms before by the store's clock, and nobody released it"
    );
    assert_eq!(evidence.expected, "refused for another 1ms");
    assert_eq!(
        evidence.reckoning,
        [
            "by its clock the lease ran out at 0.100s, and stays closed for the lock-delay of \
             50ms, until 0.150s: it was granted at 0.149s (0.001s in truth), 1ms too early"
        ]
    );
    granted()
        .grants("b", 1, 2, 100)
        .convicts(LockDelay, "inside", &[0, 1]);
    // Before the expiry it is another check's.
    let early = granted().grants("b", 1, 2, 99);
    early.clone().passes(LockDelay);
    early.convicts(LeaseLinearizable, "held it", &[0, 1]);
    // The delay follows every term.
    granted()
        .grants("b", 1, 2, 150)
        .grants("c", 1, 3, 299)
        .convicts(LockDelay, "the lease of b", &[1, 2]);
}

#[test]
fn a_renewal_moves_the_delay() {
    let renewed = || closed().grants("a", 1, 1, 0).renews("a", 1, 50);
    renewed().grants("b", 1, 2, 200).passes(LockDelay);
    renewed()
        .grants("b", 1, 2, 199)
        .convicts(LockDelay, "run out 49ms before", &[0, 1, 2]);
    let mut short = renewed().grants("b", 1, 2, 149);
    let Body::Observed(Observation::Renewed(renewal)) = &mut short.events[1].body else {
        panic!()
    };
    renewal.ttl = 10 * MS;
    short.convicts(LockDelay, "run out 49ms before", &[0, 2]);
    // Somebody else's renewal moves nothing.
    closed()
        .grants("a", 1, 1, 0)
        .renews("b", 1, 50)
        .grants("b", 1, 2, 160)
        .passes(LockDelay);
}

#[test]
fn after_a_release_there_is_no_delay() {
    let released = || closed().grants("a", 1, 1, 0).releases("a", 1, 10);
    released().grants("b", 1, 2, 10).passes(LockDelay);
    released().grants("b", 1, 2, 120).passes(LockDelay);
    // A release after the expiry opens it as well.
    closed()
        .grants("a", 1, 1, 0)
        .releases("a", 1, 110)
        .grants("b", 1, 2, 110)
        .passes(LockDelay);
}

#[test]
fn the_last_owner_waits_like_anybody() {
    let granted = || closed().grants("a", 1, 1, 0);
    granted()
        .grants("a", 2, 2, 120)
        .convicts(LockDelay, "granted to a", &[0, 1]);
    // Its own request answered again is one grant.
    granted()
        .grants("a", 1, 1, 120)
        .grants("b", 1, 2, 150)
        .passes(LockDelay);
    granted()
        .grants("a", 1, 1, 120)
        .grants("b", 1, 2, 149)
        .convicts(LockDelay, "inside", &[0, 2]);
}

#[test]
fn a_restart_re_arms_ttl_and_delay_whole() {
    let back = |clock| closed().grants("a", 1, 1, 0).recovers(1, Some("a"), clock);
    back(130).grants("b", 1, 2, 280).passes(LockDelay);
    back(130)
        .grants("b", 1, 2, 279)
        .convicts(LockDelay, "run out 49ms before", &[0, 1, 2]);
    // A grant of which only the restart tells.
    closed()
        .recovers(7, Some("a"), 10)
        .grants("b", 1, 8, 159)
        .convicts(LockDelay, "run out 49ms before", &[0, 1]);
    closed()
        .recovers(7, Some("a"), 10)
        .grants("b", 1, 8, 160)
        .passes(LockDelay);
    closed()
        .grants("a", 1, 1, 0)
        .recovers(2, Some("b"), 10)
        .grants("c", 1, 3, 159)
        .convicts(LockDelay, "the lease of b", &[1, 2]);
    // Found with a shorter ttl, it keeps what it was promised.
    let mut short = back(20).grants("b", 1, 2, 149);
    let Body::Observed(Observation::StoreRecovered(found)) = &mut short.events[1].body else {
        panic!()
    };
    found.leases.get_mut("leader").unwrap().ttl = Some(10 * MS);
    short.convicts(LockDelay, "run out 49ms before", &[0, 2]);
    // Found without a ttl, the owner has the one that it had.
    let mut bare = back(20).grants("b", 1, 2, 169);
    let Body::Observed(Observation::StoreRecovered(found)) = &mut bare.events[1].body else {
        panic!()
    };
    found.leases.get_mut("leader").unwrap().ttl = None;
    bare.convicts(LockDelay, "run out 49ms before", &[0, 1, 2]);
}

#[test]
fn a_restart_that_forgets_the_owner_is_still_bound() {
    let forgot = |clock| closed().grants("a", 1, 1, 0).recovers(1, None, clock);
    forgot(120)
        .grants("b", 1, 2, 149)
        .convicts(LockDelay, "inside", &[0, 1, 2]);
    forgot(120).grants("b", 1, 2, 150).passes(LockDelay);
    let nothing = Observation::StoreRecovered(StoreRecovered {
        leases: [].into(),
        clock: 120 * MS,
    });
    let mut elsewhere = closed()
        .grants("a", 1, 1, 0)
        .saw("store", nothing)
        .grants("b", 1, 1, 130);
    elsewhere.clone().convicts(LockDelay, "inside", &[0, 1, 2]);
    // Another store's restart and grants are its own.
    elsewhere.events[2].process = "other".into();
    elsewhere.passes(LockDelay);
    // A grant that was durable, not recorded, and released since.
    closed()
        .grants("a", 1, 1, 0)
        .recovers(2, None, 50)
        .grants("c", 1, 3, 120)
        .passes(LockDelay);
    // A release that may be durable and was not recorded.
    let released = |who| {
        closed()
            .grants("a", 1, 1, 0)
            .times_out(who, release(who, 1))
            .recovers(1, None, 50)
            .grants("b", 1, 2, 120)
    };
    released("a").passes(LockDelay);
    released("b").convicts(LockDelay, "inside", &[0, 3, 4]);
    // Granted again it lives, whatever became of the release.
    let granted_again = |clock| {
        closed()
            .grants("a", 1, 1, 0)
            .times_out("a", release("a", 1))
            .recovers(1, None, 20)
            .grants("a", 1, 1, 30)
            .grants("b", 1, 2, clock)
    };
    granted_again(149).convicts(LockDelay, "inside", &[0, 4, 5]);
    granted_again(150).passes(LockDelay);
    // A store that hands a token out again to whom it may concern.
    let handed_out_again = |token| {
        closed()
            .grants("a", 1, 1, 0)
            .times_out("a", release("a", 1))
            .grants("b", 1, token, 150)
            .grants("a", 2, token, 300)
            .recovers(token, None, 350)
            .grants("b", 2, token + 1, 420)
    };
    handed_out_again(1).passes(LockDelay);
    handed_out_again(2).convicts(LockDelay, "inside", &[4, 5, 6]);
    closed()
        .grants("a", 1, 1, 0)
        .times_out("a", release("a", 1))
        .grants("a", 2, 2, 150)
        .recovers(2, None, 160)
        .grants("b", 1, 3, 299)
        .convicts(LockDelay, "inside", &[3, 4, 5]);
}

/// Without a token it is of whatever its holder has.
#[test]
fn a_release_that_was_sent_may_be_of_a_later_grant() {
    let asked_again = |token: Option<u64>| {
        closed()
            .grants("a", 1, 1, 0)
            .times_out("a", release("a", token))
            .grants("a", 2, 2, 150)
            .recovers(2, None, 160)
            .grants("b", 1, 3, 260)
    };
    asked_again(None).passes(LockDelay);
    asked_again(Some(1)).convicts(LockDelay, "inside", &[3, 4, 5]);
}

#[test]
fn a_clock_that_begins_anew_takes_the_delay_along() {
    // Of the delay, 20 ms were left.
    let anew = |clock| {
        closed()
            .grants("a", 1, 1, 0)
            .denies("b", 1, 130)
            .recovers(1, None, 5)
            .grants("b", 2, 2, clock)
    };
    anew(24).convicts(LockDelay, "inside", &[0, 2, 3]);
    anew(25).passes(LockDelay);
    // Nothing was left.
    closed()
        .grants("a", 1, 1, 0)
        .denies("b", 1, 150)
        .recovers(1, None, 5)
        .grants("b", 2, 2, 5)
        .passes(LockDelay);
}

#[test]
fn an_old_copy_is_its_operators() {
    let restored = Restored {
        floor: 9,
        leases: [].into(),
        clock: 0,
    };
    closed()
        .grants("a", 1, 1, 0)
        .saw("store", Observation::Restored(restored))
        .grants("b", 1, 10, 120)
        .passes(LockDelay);
}

#[test]
fn without_a_delay_or_a_store_nothing_is_claimed() {
    tale()
        .grants("a", 1, 1, 0)
        .grants("b", 1, 2, 100)
        .claims_nothing(LockDelay, "no lock-delay in the header");
    closed()
        .ok("a", fence(1))
        .claims_nothing(LockDelay, "no granted events");
}

#[test]
fn from_outside_a_grant_too_soon_is_told_by_true_time() {
    // Asked for at 0, so in force until 99 at least (a clock may run 1 % fast), and
    // closed until 148.5.
    let asked = || closed().acquires("a", 1);
    asked().at(149).acquires("b", 2).passes(LockDelay);
    asked()
        .at(140)
        .acquires("b", 2)
        .convicts(LockDelay, "inside the lock-delay", &[0, 1, 2, 3]);
    asked().at(90).acquires("b", 2).passes(LockDelay);
    asked()
        .ok("a", release("a", 1))
        .at(140)
        .acquires("b", 2)
        .passes(LockDelay);
    asked()
        .at(50)
        .ok("a", renew("a", 1))
        .at(190)
        .acquires("b", 2)
        .convicts(LockDelay, "inside the lock-delay", &[1, 2, 3, 4, 5]);
}

#[test]
fn from_outside_the_bounds_are_exact() {
    let asked = || {
        let mut tale = closed();
        tale.header.lease.as_mut().unwrap().max_drift_ppb = 0;
        tale.acquires("a", 1)
    };
    // Answered one ms after it was asked for: in force until 100, closed until 150.
    asked().at(98).acquires("b", 2).passes(LockDelay);
    asked()
        .at(99)
        .acquires("b", 2)
        .convicts(LockDelay, "at most 100ms", &[0, 1, 2, 3]);
    asked()
        .at(148)
        .acquires("b", 2)
        .convicts(LockDelay, "at most 149ms", &[0, 1, 2, 3]);
    asked().at(149).acquires("b", 2).passes(LockDelay);
    // Of many the first is told.
    asked()
        .at(120)
        .acquires("b", 2)
        .at(240)
        .acquires("c", 3)
        .convicts(LockDelay, "a (token 1)", &[0, 1, 2, 3]);
}

#[test]
fn a_request_answered_again_once_the_lease_is_free_begins_a_new_term() {
    let again = |clock| closed().grants("a", 1, 1, 0).grants("a", 1, 1, clock);
    again(149).grants("b", 1, 2, 150).passes(LockDelay);
    again(150)
        .grants("b", 1, 2, 299)
        .convicts(LockDelay, "run out 49ms before", &[1, 2]);
}

#[test]
fn a_request_answered_again_moves_nothing_after_a_release_that_did_not_last() {
    // Found without its owner, whose release may be durable.
    let again = |clock, then| {
        closed()
            .grants("a", 1, 1, 0)
            .times_out("a", release("a", 1))
            .recovers(1, None, 0)
            .grants("a", 1, 1, clock)
            .grants("b", 1, 2, then)
    };
    again(0, 149).convicts(LockDelay, "inside", &[0, 3, 5]);
    again(0, 150).passes(LockDelay);
}

#[test]
fn each_stores_clock_is_its_own() {
    // One store's machine begins anew; another's promise is what it was.
    let mut other = closed()
        .grants("a", 1, 1, 0)
        .denies("z", 1, 500)
        .denies("z", 2, 5)
        .grants("b", 1, 2, 120);
    for event in [0, 3] {
        other.events[event].process = "other".into();
    }
    other.convicts(LockDelay, "inside", &[0, 3]);
}

#[test]
fn a_lease_that_was_free_when_its_clock_began_anew_is_its_next_owners() {
    closed()
        .grants("a", 1, 1, 0)
        .denies("b", 1, 150)
        .recovers(1, Some("a"), 5)
        .grants("b", 2, 2, 154)
        .convicts(LockDelay, "run out 49ms before", &[2, 3]);
}

#[test]
fn a_restart_that_finds_somebody_else_believes_the_higher_token() {
    let found = |held, token, clock| {
        closed()
            .grants("a", 1, held, 0)
            .recovers(token, Some("b"), 10)
            .grants("c", 1, 9, clock)
    };
    // One token for two: what is on the disk is whose it is now.
    for (held, token) in [(1, 2), (1, 1)] {
        found(held, token, 159).convicts(LockDelay, "the lease of b", &[1, 2]);
        found(held, token, 160).passes(LockDelay);
    }
    // What it forgot it had promised.
    found(2, 1, 149).convicts(LockDelay, "the lease of a", &[0, 1, 2]);
    found(2, 1, 150).passes(LockDelay);
}

#[test]
fn a_copy_that_was_put_back_keeps_nobody_out() {
    let struck_by = |f: &str| {
        closed()
            .grants("a", 1, 6, 0)
            .at(10)
            .nemesis(f, json!({"node": "store", "for": 1}))
            .recovers(6, None, 40)
            .grants("b", 1, 7, 120)
    };
    struck_by("restore").passes(LockDelay);
    struck_by("crash").convicts(LockDelay, "inside the lock-delay", &[0, 2, 3]);
}

#[test]
fn a_restart_that_armed_the_delay_anew_or_forgot_it_is_told() {
    let told = |owner: Option<&str>| {
        let back = closed()
            .grants("a", 1, 1, 0)
            .at(120)
            .recovers(1, owner, 120);
        let granted = back.at(149).grants("b", 1, 2, 149);
        match granted.verdict(LockDelay) {
            Verdict::Violated(evidence) => evidence.reckoning,
            verdict => panic!("{verdict:?}"),
        }
    };
    let forgotten = "store came back at 0.120s and had forgotten a: what it had promised binds all \
                     the same, the lock-delay too";
    assert_eq!(told(None)[1..], [forgotten]);
    // Found, it has its whole ttl again: then the grant is too early for this check.
    let back = closed()
        .grants("a", 1, 1, 0)
        .at(20)
        .recovers(1, Some("a"), 20);
    let evidence = back.clone().at(130).grants("b", 1, 2, 130).convicts(
        LockDelay,
        "run out 10ms before",
        &[0, 1, 2],
    );
    let armed = "store came back at 0.020s and found a as the owner: from then on it owed a whole \
                 ttl of 100ms, and the whole lock-delay after it";
    assert_eq!(evidence.reckoning[1..], [armed]);
    // A renewal since makes the restart beside the point.
    let renewed = back
        .at(30)
        .renews("a", 1, 30)
        .at(140)
        .grants("b", 1, 2, 140);
    let evidence = renewed.convicts(LockDelay, "run out 10ms before", &[0, 2, 3]);
    assert_eq!(evidence.reckoning.len(), 1);
}

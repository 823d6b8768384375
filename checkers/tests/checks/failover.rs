use deposed_checkers::history::{Answer, F, Failure, Kind, Observation, Refused};
use deposed_checkers::verdict::Check::Failover;
use serde_json::json;

use crate::tale::*;

/// ttl 100, try time-out 10, back-off 10, 14 latencies of 1, slack 10.
const BOUND: u64 = 144;
const WITHOUT_EXPIRY: u64 = 44;

fn calm() -> Tale {
    tale()
        .acquires("a", 1)
        .writes("a", 1)
        .at(1000)
        .nemesis("calm", json!({}))
}

#[test]
fn calm_brings_a_write_within_the_bound() {
    calm()
        .at(1000 + BOUND - 1)
        .writes("b", 2)
        .with_a_store()
        .passes(Failover);
    let evidence = calm()
        .at(1000 + BOUND)
        .writes("b", 2)
        .with_a_store()
        .convicts(Failover, "in calm", &[4]);
    assert_eq!(
        evidence.reckoning,
        [
            "144ms are a ttl of 100ms and a lock-delay of 0s by the store's clock, a try of 10ms \
             and a backoff of 10ms by the slowest client's, 14 messages of at most 1ms, and 10ms \
             of slack"
        ]
    );
    calm()
        .at(1000 + BOUND + 1)
        .acquires("b", 2)
        .with_a_store()
        .convicts(Failover, "in calm", &[4]);
    calm()
        .at(1010)
        .times_out("b", write(2, 9))
        .at(2000)
        .nemesis("end", json!({}))
        .with_a_store()
        .convicts(
            Failover,
            "in calm: b's write with token 2 was not answered",
            &[4, 6],
        );
}

/// The bound is over with what is told of a write under token 2 in calm.
fn kept_away(told: impl FnOnce(Tale) -> Tale) -> Tale {
    let tale = told(calm().at(1010));
    tale.at(1000 + BOUND + 1)
        .invoke("c", acquire("c", 9))
        .with_a_store()
}

fn refused(token: u64, seen: u64) -> Observation {
    Observation::Refused(Refused {
        f: F::Write,
        lease: "leader".into(),
        token,
        seq: Some(9),
        seen,
    })
}

#[test]
fn what_kept_a_write_away_is_told() {
    let storage = kept_away(|tale| {
        tale.invoke("b", write(2, 9))
            .saw("s", refused(2, 2))
            .complete(
                5,
                Kind::Fail,
                Answer::None,
                Some(Failure::stale_token(2, 2)),
            )
            .denies("c", 1, 1013)
    });
    let words = "in calm: s refused a write with token 2, when it had seen 2";
    let evidence = storage.convicts(Failover, words, &[4, 6]);
    assert_eq!(
        (evidence.culprit, evidence.expected.as_str()),
        (6, "a write acknowledged by 1.144s")
    );
    let client = kept_away(|tale| tale.stale("b", fence(2), 2));
    let words = "in calm: b's fence with token 2 failed: stale-token";
    assert_eq!(client.convicts(Failover, words, &[4, 6]).culprit, 6);
    // Refusals that are right keep nothing away that was owed; the last is shown.
    let right = kept_away(|tale| {
        tale.stale("b", write(1, 9), 2)
            .saw("s", refused(1, 2))
            .denies("c", 1, 1013)
    });
    let evidence = right.convicts(
        Failover,
        "in calm: the last acquire, by c, was refused: held",
        &[4, 8],
    );
    assert_eq!(evidence.culprit, 4);
    // It was written, and what keeps the next write away comes after the release.
    let again = calm()
        .saw("s", refused(1, 1))
        .writes("a", 1)
        .releases("a", 1, 1003)
        .invoke("b", acquire("b", 1))
        .at(1100)
        .invoke("c", acquire("c", 9));
    again
        .with_a_store()
        .convicts(Failover, "after a release", &[8]);
}

#[test]
fn a_term_that_is_over_before_it_begins_is_reckoned_by_wall_clocks() {
    let led = |until| {
        tale()
            .acquires("a", 1)
            .nemesis("step", json!({"node": "a", "by": 500 * MS}))
            .nemesis("step", json!({"node": "a", "by": 250 * MS}))
            .at(1000)
            .nemesis("calm", json!({}))
            .grants("a", 1, 1, 1000)
            .at(1010)
            .leads_counting_from(1000, "a", 1, until)
            .at(1000 + BOUND + 1)
            .invoke("c", acquire("c", 9))
    };
    let words = "in calm: a led from 1.010s until 0.348s, which was over when it began to";
    let evidence = led(348).convicts(Failover, words, &[4, 6]);
    assert_eq!(evidence.culprit, 6);
    assert_eq!(
        evidence.reckoning[1],
        "a's belief of 1.010s ended 662ms before it began, by true time; a's wall clock was stepped \
         by +750ms in all, the last time at 0.003s"
    );
    led(1098).convicts(Failover, "in calm", &[4]);
}

/// A fence has two steps there, and a lagging replica may have to be repaired first.
#[test]
fn replicas_take_four_latencies_more() {
    let on_replicas = |at| {
        let tale = calm().storage(json!({"quorum": 3})).at(at);
        tale.writes("b", 2).with_a_store()
    };
    on_replicas(1000 + BOUND + 3).passes(Failover);
    on_replicas(1000 + BOUND + 4).convicts(Failover, "in calm", &[4]);
}

#[test]
fn a_lease_first_asked_for_in_calm_counts_from_then() {
    let asked = |written: u64| {
        tale()
            .at(1000)
            .nemesis("calm", json!({}))
            .at(2000)
            .acquires("a", 1)
            .at(written)
    };
    asked(2100).writes("a", 1).with_a_store().passes(Failover);
    asked(2000 + BOUND)
        .writes("a", 1)
        .with_a_store()
        .convicts(Failover, "in calm", &[0]);
}

#[test]
fn slow_clocks_stretch_the_bound() {
    let slow = |node| calm().clock(node, 50).at(1000 + BOUND).writes("b", 2);
    slow("store").with_a_store().passes(Failover);
    slow("a").with_a_store().passes(Failover);
    // Which node is the store is not known: it may be the slow one.
    slow("b").with_a_store().passes(Failover);
    let known = |node, at| {
        let granted = calm().grants("a", 1, 1, 0);
        granted.clock(node, 50).at(at).writes("b", 2)
    };
    known("b", 1000 + BOUND)
        .with_a_store()
        .convicts(Failover, "in calm", &[4]);
    known("a", 1000 + BOUND).with_a_store().passes(Failover);
    let evidence = known("a", 1000 + BOUND + 20)
        .with_a_store()
        .convicts(Failover, "in calm", &[4]);
    assert!(evidence.reckoning[0].contains(
        "a backoff of 10ms by the slowest client's at a rate of 0.5 (40ms in truth), 14 messages"
    ));
    let evidence =
        known("store", 1000 + BOUND + 100)
            .with_a_store()
            .convicts(Failover, "in calm", &[4]);
    assert!(evidence.reckoning[0].contains(
        "a lock-delay of 0s by the store's clock at a rate of 0.5 (200ms in truth), a try"
    ));
    // The slowest client counts, one that joins in calm too.
    let joined = |node: &str| {
        calm()
            .grants("a", 1, 1, 0)
            .times_out("b", acquire("b", 9))
            .clock(node, 50)
            .at(1000 + BOUND)
            .writes("b", 2)
    };
    joined("a").with_a_store().passes(Failover);
    joined("b").with_a_store().passes(Failover);
    joined("c")
        .with_a_store()
        .convicts(Failover, "in calm", &[4]);
    // Healed by then.
    tale()
        .clock("a", 50)
        .acquires("a", 1)
        .at(1000)
        .nemesis("calm", json!({}))
        .at_once()
        .nemesis("rate", json!({"node": "a", "rate_ppb": 1_000_000_000}))
        .at(1000 + BOUND)
        .writes("b", 2)
        .with_a_store()
        .convicts(Failover, "in calm", &[2]);
}

#[test]
fn a_history_that_ends_before_its_bound_is_too_short() {
    calm()
        .at(1000 + BOUND)
        .nemesis("end", json!({}))
        .with_a_store()
        .claims_nothing(Failover, "within the bound");
    // Nothing happened any more in a calm that was to be long.
    let mut silent = calm();
    silent
        .header
        .rest
        .insert("calm".to_owned(), json!(1000 * MS));
    silent.with_a_store().convicts(Failover, "in calm", &[4]);
}

#[test]
fn a_release_needs_no_expiry() {
    let freed = || calm().writes("a", 1).at(1100).releases("a", 1, 1100);
    let wanted = || freed().at(1100).invoke("b", acquire("b", 1));
    wanted()
        .at(1100 + WITHOUT_EXPIRY - 1)
        .writes("b", 2)
        .with_a_store()
        .passes(Failover);
    wanted()
        .at(1100 + WITHOUT_EXPIRY)
        .writes("b", 2)
        .with_a_store()
        .convicts(Failover, "after a release", &[7]);
    // Nobody asks for it again: nothing is owed.
    freed()
        .at(1100 + 2 * WITHOUT_EXPIRY)
        .nemesis("end", json!({}))
        .with_a_store()
        .passes(Failover);
    // Granted to a request whose answer was lost: that term must run out first.
    let granted = || freed().invoke("b", acquire("b", 1)).grants("b", 1, 2, 1101);
    granted()
        .at(1150)
        .writes("b", 2)
        .with_a_store()
        .passes(Failover);
    granted()
        .ends_ok(8)
        .at(1150)
        .writes("b", 2)
        .with_a_store()
        .convicts(Failover, "after a release", &[7]);
    // Granted to a copy of a request of which another had been refused: given up.
    let granted = |refused| {
        let held = calm().writes("a", 1).denies("b", refused, 1000);
        held.at(1100)
            .releases("a", 1, 1100)
            .invoke("b", acquire("b", 1))
            .grants("b", 1, 2, 1101)
            .ends_ok(9)
            .at(1150)
            .writes("b", 2)
    };
    granted(1).with_a_store().passes(Failover);
    granted(0)
        .with_a_store()
        .convicts(Failover, "after a release", &[8]);
    // A delete is progress, too.
    freed()
        .ok("b", delete(2))
        .at(1150)
        .writes("b", 2)
        .with_a_store()
        .passes(Failover);
    // Before calm nothing is promised.
    tale()
        .acquires("a", 1)
        .releases("a", 1, 1)
        .at(1000)
        .nemesis("calm", json!({}))
        .writes("b", 2)
        .with_a_store()
        .passes(Failover);
}

#[test]
fn what_is_missing_is_named() {
    calm()
        .at(1000 + BOUND)
        .times_out("b", acquire("b", 2))
        .claims_nothing(Failover, "no granted");
    tale()
        .acquires("a", 1)
        .writes("a", 1)
        .claims_nothing(Failover, "no calm");
    for field in ["lease", "network"] {
        let mut without = calm().writes("a", 1);
        match field {
            "lease" => without.header.lease = None,
            _ => without.header.network = None,
        }
        without.claims_nothing(Failover, field);
    }
}

/// A term until 99 that was renewed once, and then loses its renewals.
fn loses_renewals(lost: usize) -> Tale {
    let mut tale = tale()
        .acquires("a", 1)
        .leads("a", 1, 99)
        .at(33)
        .ok("a", renew("a", 1))
        .at_once()
        .leads("a", 1, 132)
        .nemesis("lose", json!({"kind": "renew-reply", "count": lost}));
    for _ in 0..lost {
        tale = tale
            .times_out("a", renew("a", 1))
            .nemesis("lost", json!({"kind": "renew-reply"}));
    }
    tale
}

fn ends_in_calm(tale: Tale) -> Tale {
    tale.at(200).nemesis("calm", json!({})).writes("b", 2)
}

#[test]
fn two_lost_renewals_end_no_term() {
    ends_in_calm(loses_renewals(2).at(132).follows("a", 1))
        .with_a_store()
        .convicts(Failover, "after 2 lost renewals", &[2, 5, 7, 10, 13]);
    let evidence = ends_in_calm(loses_renewals(1)).with_a_store().convicts(
        Failover,
        "after one lost renewal",
        &[2, 5, 7],
    );
    assert_eq!(
        evidence.reckoning,
        [
            "a counted from 0.034s until 0.132s: 98ms of true time, in which 9 tries of at most \
             10ms fit; of a ttl of 100ms less drift and margin, 98ms are safe"
        ]
    );
    ends_in_calm(loses_renewals(0)).with_a_store().convicts(
        Failover,
        "no renewal had been lost",
        &[2, 5],
    );
    ends_in_calm(loses_renewals(3))
        .with_a_store()
        .passes(Failover);
    ends_in_calm(loses_renewals(2).ok("a", renew("a", 1)).leads("a", 1, 999))
        .with_a_store()
        .passes(Failover);
}

#[test]
fn the_tries_that_count_are_those_after_the_last_that_was_answered() {
    // The answer to the first comes after the later ones are lost.
    let late = |lost| {
        let mut tale = loses_renewals(0).invoke("a", renew("a", 1));
        for _ in 0..lost {
            tale = tale.times_out("a", renew("a", 1));
        }
        ends_in_calm(tale.ends_ok(7)).with_a_store()
    };
    late(2).convicts(Failover, "after 2 lost renewals", &[2, 5, 8, 10]);
    late(3).passes(Failover);
    // One that is sent when the term is over could not have kept it.
    ends_in_calm(loses_renewals(2).at(132).invoke("a", renew("a", 1)))
        .with_a_store()
        .convicts(Failover, "after 2 lost renewals", &[2, 5, 7, 10]);
}

#[test]
fn only_what_befell_the_term_itself_excuses_it() {
    for (who, token) in [("b", 1), ("a", 9), ("b", 9)] {
        let told = loses_renewals(1).stale(who, write(token, 1), 10);
        ends_in_calm(told)
            .with_a_store()
            .convicts(Failover, "after one lost renewal", &[2, 5, 7]);
    }
}

#[test]
fn a_term_that_ends_otherwise_is_not_judged() {
    ends_in_calm(loses_renewals(1).at(100).follows("a", 1))
        .with_a_store()
        .passes(Failover);
    ends_in_calm(loses_renewals(1).ok("a", release("a", 1)))
        .with_a_store()
        .passes(Failover);
    ends_in_calm(loses_renewals(1).stale("a", write(1, 1), 2))
        .with_a_store()
        .passes(Failover);
    ends_in_calm(loses_renewals(1).nemesis("pause", json!({"node": "a"})))
        .with_a_store()
        .passes(Failover);
    // It ends after the record does.
    loses_renewals(1)
        .at(50)
        .nemesis("calm", json!({}))
        .writes("a", 1)
        .with_a_store()
        .passes(Failover);
}

#[test]
fn a_window_that_was_spent_on_retries_of_the_acquire_is_not_judged() {
    let granted_at = |ms| {
        let term = tale()
            .acquires("a", 1)
            .at(ms)
            .leads_counting_from(0, "a", 1, 99)
            .ok("a", renew("a", 1));
        ends_in_calm(term)
    };
    granted_at(10)
        .with_a_store()
        .convicts(Failover, "no renewal had been lost", &[2]);
    granted_at(11).with_a_store().passes(Failover);
    // Where nobody says how long a try takes, none is late.
    let mut untimed = granted_at(11).with_a_store();
    untimed.header.lease.as_mut().unwrap().try_timeout = 0;
    untimed.convicts(Failover, "no renewal had been lost", &[2]);
}

#[test]
fn calm_is_quiet_again() {
    let term = |began| {
        tale()
            .nemesis("pause", json!({"node": "a"}))
            .acquires("a", 1)
            .at(200)
            .nemesis("calm", json!({}))
            .writes("a", 1)
            .at(began)
            .leads("a", 1, began + 50)
            .line("a", Kind::Invoke, None, renewal(), None)
            .at(900)
            .nemesis("end", json!({}))
    };
    term(250).with_a_store().passes(Failover);
    term(299)
        .with_a_store()
        .convicts(Failover, "after one lost renewal", &[6, 7]);
}

#[test]
fn nothing_is_quiet_after_a_fault_until_calm() {
    let faulted = || {
        tale()
            .nemesis("pause", json!({"node": "a"}))
            .acquires("a", 1)
            .at(300)
            .leads("a", 1, 350)
            .line("a", Kind::Invoke, None, renewal(), None)
    };
    for tale in [faulted(), faulted().at(360).follows("a", 1)] {
        tale.at(900)
            .nemesis("calm", json!({}))
            .writes("a", 1)
            .with_a_store()
            .passes(Failover);
    }
}

#[test]
fn healing_disturbs_once_more() {
    let term = |began| {
        tale()
            .nemesis("pause", json!({"node": "a"}))
            .acquires("a", 1)
            .at(200)
            .nemesis("calm", json!({}))
            .nemesis("restart", json!({"node": "b"}))
            .writes("a", 1)
            .at(began)
            .leads("a", 1, began + 50)
            .ok("a", renew("a", 1))
            .at(900)
            .nemesis("end", json!({}))
    };
    term(299).with_a_store().passes(Failover);
    term(300)
        .with_a_store()
        .convicts(Failover, "no renewal had been lost", &[7]);
}

fn renewal() -> deposed_checkers::history::Body {
    deposed_checkers::history::Body::Invoke(renew("a", 1))
}

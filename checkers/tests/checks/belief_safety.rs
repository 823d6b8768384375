use deposed_checkers::history::{Body, Observation};
use deposed_checkers::verdict::{Check::BeliefSafety, Verdict};
use serde_json::json;

use crate::tale::*;

#[test]
fn beliefs_are_half_open() {
    tale()
        .leads("a", 1, 100)
        .at(100)
        .leads("b", 2, 200)
        .passes(BeliefSafety);
    tale()
        .leads("a", 1, 101)
        .at(100)
        .leads("b", 2, 200)
        .convicts(BeliefSafety, "b#1", &[0, 1]);
    tale()
        .leads("a", 1, None)
        .at(900)
        .leads("b", 2, 999)
        .convicts(BeliefSafety, "b#1", &[0, 1]);
}

#[test]
fn a_follow_ends_a_belief_in_any_order_at_its_instant() {
    tale()
        .leads("a", 1, 100)
        .at(50)
        .follows("a", 1)
        .at(50)
        .leads("b", 2, 90)
        .passes(BeliefSafety);
    tale()
        .leads("a", 1, 100)
        .at(50)
        .leads("b", 2, 90)
        .at(50)
        .follows("a", 1)
        .passes(BeliefSafety);
    tale()
        .leads("a", 1, 100)
        .at(50)
        .leads("b", 2, 90)
        .at(51)
        .follows("a", 1)
        .convicts(BeliefSafety, "b#1", &[0, 1]);
}

#[test]
fn a_lead_moves_the_end_of_the_one_before() {
    tale()
        .leads("a", 1, 100)
        .at(50)
        .leads("a", 1, 60)
        .at(70)
        .leads("b", 2, 90)
        .passes(BeliefSafety);
    tale()
        .leads("a", 1, 60)
        .at(50)
        .leads("a", 1, 100)
        .at(70)
        .leads("b", 2, 90)
        .convicts(BeliefSafety, "b#1", &[1, 2]);
}

#[test]
fn a_crash_ends_belief() {
    let crashed = |node| {
        tale()
            .leads("a", 1, 100)
            .nemesis("crash", json!({"node": node}))
    };
    crashed("a").at(50).leads("b", 2, 90).passes(BeliefSafety);
    crashed("b")
        .at(50)
        .leads("b", 2, 90)
        .convicts(BeliefSafety, "b#1", &[0, 2]);
}

#[test]
fn leases_have_nothing_to_do_with_each_other() {
    let mut tale = tale().leads("a", 1, 100).at(50).leads("b", 2, 90);
    let deposed_checkers::history::Body::Observed(deposed_checkers::history::Observation::Lead(
        lead,
    )) = &mut tale.events[1].body
    else {
        panic!()
    };
    lead.lease = "other".into();
    tale.passes(BeliefSafety);
}

#[test]
fn only_drift_beyond_the_bound_excuses() {
    // The bound is 1 %; a's clock is the deposed one's.
    let overlap = || tale().leads("a", 1, 120).at(110).leads("b", 2, 200);
    overlap()
        .clock("a", 98)
        .claims_nothing(BeliefSafety, "drift");
    overlap()
        .clock("a", 99)
        .convicts(BeliefSafety, "b#1", &[0, 1]);
    overlap()
        .clock("a", 102)
        .convicts(BeliefSafety, "b#1", &[0, 1]);
    overlap()
        .clock("store", 102)
        .claims_nothing(BeliefSafety, "drift");
    overlap()
        .clock("b", 50)
        .convicts(BeliefSafety, "b#1", &[0, 1]);
    overlap()
        .grants("b", 1, 2, 0)
        .clock("store", 102)
        .claims_nothing(BeliefSafety, "drift");
}

#[test]
fn drift_counts_from_the_send_to_the_overlap() {
    let slow = |from: u64| {
        tale()
            .leads("a", 1, 120)
            .at(from)
            .nemesis("rate", json!({"node": "a", "rate_ppb": 900_000_000}))
            .at(110)
            .leads("b", 2, 200)
    };
    slow(50).claims_nothing(BeliefSafety, "drift");
    slow(105).convicts(BeliefSafety, "b#1", &[0, 2]);
}

#[test]
fn the_store_whose_drift_excuses_is_the_one_that_granted() {
    let granted_by = |store: &str| {
        let mut tale = tale()
            .grants("a", 1, 1, 0)
            .leads("a", 1, 120)
            .at(110)
            .leads("b", 2, 200);
        tale.events[0].process = store.into();
        tale
    };
    let drifts = |granted: Tale| granted.clock("s1", 102).clock("s2", 100);
    drifts(granted_by("s1")).claims_nothing(BeliefSafety, "drift");
    drifts(granted_by("s2")).convicts(BeliefSafety, "b#1", &[1, 2]);
    // The last that granted it, where it moved.
    let moved = |first: &str, last: &str| {
        let mut tale = tale()
            .grants("z", 1, 1, 0)
            .grants("a", 1, 2, 0)
            .leads("a", 2, 120)
            .at(110)
            .leads("b", 3, 200);
        tale.events[0].process = first.into();
        tale.events[1].process = last.into();
        tale
    };
    drifts(moved("s2", "s1")).claims_nothing(BeliefSafety, "drift");
    drifts(moved("s1", "s2")).convicts(BeliefSafety, "b#1", &[2, 3]);
}

#[test]
fn without_a_send_drift_counts_from_where_the_belief_began() {
    // a's clock is slow from 10 to 50 only.
    let slow_at_first = |first: (&str, u64, u64)| {
        let (holder_of, token, until) = first;
        let mut tale = tale()
            .leads(holder_of, token, until)
            .at(10)
            .nemesis("rate", json!({"node": "a", "rate_ppb": 900_000_000}))
            .at(50)
            .nemesis("rate", json!({"node": "a", "rate_ppb": 1_000_000_000}))
            .at(50)
            .leads("a", 2, 120)
            .at(110)
            .leads("b", 3, 200);
        for event in &mut tale.events {
            if let Body::Observed(Observation::Lead(lead)) = &mut event.body {
                lead.sent = None;
                event.process = if lead.token == Some(3) { "b" } else { "a" }.into();
            }
        }
        tale
    };
    slow_at_first(("a", 2, 60)).claims_nothing(BeliefSafety, "drift");
    // Another belief before it, or one that was over: it began at 50.
    for other in [("a", 1, 60), ("c", 2, 60), ("a", 2, 40)] {
        slow_at_first(other).convicts(BeliefSafety, "b#1", &[3, 4]);
    }
}

#[test]
fn a_follow_ends_nobody_elses_belief() {
    tale()
        .leads("a", 1, 100)
        .at(50)
        .follows("b", 1)
        .leads("b", 2, 90)
        .convicts(BeliefSafety, "b#1", &[0, 2]);
    tale()
        .leads("a", 2, 100)
        .at(50)
        .follows("a", 1)
        .leads("b", 3, 90)
        .convicts(BeliefSafety, "b#1", &[0, 2]);
}

#[test]
fn an_excuse_does_not_cover_a_later_overlap() {
    tale()
        .clock("a", 90)
        .leads("a", 1, 120)
        .at(110)
        .leads("b", 2, 200)
        .at(150)
        .leads("c", 3, 300)
        .convicts(BeliefSafety, "c#1", &[1, 2]);
}

#[test]
fn without_beliefs_or_grants_nothing_is_claimed() {
    tale()
        .invoke("a", acquire("a", 1))
        .claims_nothing(BeliefSafety, "no lead");
}

/// The clocks' arithmetic of an overlap, where the tale has one.
fn reckoning(tale: Tale) -> Vec<String> {
    match tale.verdict(BeliefSafety) {
        Verdict::Violated(evidence) => evidence.reckoning,
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn who_counts_from_later_than_its_send_is_told_so() {
    let tale = tale()
        .grants("a", 1, 1, 0)
        .at(20)
        .renews("a", 1, 20)
        .at(30)
        .leads("a", 1, 128)
        .at(122)
        .grants("b", 1, 2, 122)
        .leads("b", 2, 200);
    assert_eq!(
        reckoning(tale),
        [
            "both led from 0.123s on, and by their own clocks would have until 0.128s: 5ms of \
             true time",
            "a counted from 0.030s until 0.128s: 98ms; of a ttl of 100ms less drift and margin, \
             98ms are safe",
            "that is later than the store began to, at 0.020s: a did not count from the send of \
             what it was granted",
            "store granted b the lease at 0.122s, when it had counted 102ms, all of the 100ms \
             it owed a from 0.020s on",
        ]
    );
}

#[test]
fn a_store_that_grants_too_early_is_told_what_it_owed() {
    let tale = tale()
        .grants("a", 1, 1, 0)
        .leads_counting_from(0, "a", 1, 98)
        .at(60)
        .grants("b", 1, 2, 60)
        .leads("b", 2, 150);
    let reckoning = reckoning(tale);
    let told = "store granted b the lease at 0.060s, when it had counted only 60ms of the 100ms \
                it owed a from 0.000s on";
    assert_eq!(reckoning.last().map(String::as_str), Some(told));
    assert!(!reckoning.iter().any(|line| line.contains("did not count")));
}

#[test]
fn who_released_and_believes_on_is_told_so() {
    let tale = tale()
        .grants("a", 1, 1, 0)
        .leads_counting_from(0, "a", 1, 98)
        .at(40)
        .releases("a", 1, 40)
        .grants("b", 1, 2, 41)
        .leads("b", 2, 130);
    let told = "store granted b the lease at 0.041s: a had released it at 0.040s, and went on \
                believing";
    assert_eq!(reckoning(tale).last().map(String::as_str), Some(told));
}

#[test]
fn a_store_that_takes_somebody_elses_release_is_told_so() {
    let tale = tale()
        .grants("a", 1, 1, 0)
        .leads_counting_from(0, "a", 1, 98)
        .at(40)
        .releases("c", 0, 40)
        .grants("b", 1, 2, 41)
        .leads("b", 2, 130);
    let told = "store granted b the lease at 0.041s: it had taken a release by c#1 at 0.040s, \
                though a#1 held it";
    assert_eq!(reckoning(tale).last().map(String::as_str), Some(told));
}

/// Somebody else's history need not say what a belief counts from.
#[test]
fn who_does_not_say_what_it_counted_from_is_not_blamed_for_it() {
    let mut tale = tale()
        .grants("a", 1, 1, 0)
        .leads("a", 1, 98)
        .at(60)
        .grants("b", 1, 2, 60)
        .leads("b", 2, 150);
    for event in &mut tale.events {
        if let Body::Observed(Observation::Lead(lead)) = &mut event.body {
            lead.sent = None;
        }
    }
    let reckoning = reckoning(tale);
    assert_eq!(reckoning.len(), 2, "{reckoning:?}");
    assert!(
        reckoning[1].contains("had counted only 60ms"),
        "{reckoning:?}"
    );
}

#[test]
fn a_clock_that_is_not_true_is_told_beside_the_truth() {
    let tale = tale()
        .clock("a", 99)
        .clock("store", 101)
        .grants("a", 1, 1, 0)
        .leads_counting_from(0, "a", 1, 150)
        .at(10)
        .grants("b", 1, 2, 10)
        .leads("b", 2, 200);
    let mut tale = tale;
    tale.header.lease.as_mut().unwrap().max_drift_ppb = 50_000_000;
    assert_eq!(
        reckoning(tale)[1..],
        [
            "a counted from 0.000s until 0.150s: 148.5ms by its own clock (150ms in truth); of a \
             ttl of 100ms less drift and margin, 94ms are safe",
            "store granted b the lease at 0.010s, when it had counted only 10.1ms by its own \
             clock (10ms in truth) of the 100ms it owed a from 0.000s on",
        ]
    );
}

#[test]
fn without_a_stores_word_the_believers_are_reckoned_alone() {
    let tale = tale().leads("a", 1, None).at(50).leads("b", 2, None);
    assert_eq!(
        reckoning(tale),
        ["both led from 0.050s on, and neither had an end"]
    );
}

use deposed_checkers::history::{Answer, Body, Kind, Nanos, Observation};
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
        .convicts(BeliefSafety, "b believed", &[0, 1]);
    tale()
        .leads("a", 1, None)
        .at(900)
        .leads("b", 2, 999)
        .convicts(BeliefSafety, "b believed", &[0, 1]);
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
        .convicts(BeliefSafety, "b believed", &[0, 1]);
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
        .convicts(BeliefSafety, "b believed", &[1, 2]);
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
        .convicts(BeliefSafety, "b believed", &[0, 2]);
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
        .convicts(BeliefSafety, "b believed", &[0, 1]);
    overlap()
        .clock("a", 102)
        .convicts(BeliefSafety, "b believed", &[0, 1]);
    overlap()
        .clock("store", 102)
        .claims_nothing(BeliefSafety, "drift");
    overlap()
        .clock("b", 50)
        .convicts(BeliefSafety, "b believed", &[0, 1]);
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
    slow(105).convicts(BeliefSafety, "b believed", &[0, 1, 2]);
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
    drifts(granted_by("s2")).convicts(BeliefSafety, "b believed", &[1, 2]);
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
    drifts(moved("s1", "s2")).convicts(BeliefSafety, "b believed", &[2, 3]);
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
        slow_at_first(other).convicts(BeliefSafety, "b believed", &[3, 4]);
    }
}

#[test]
fn a_follow_ends_nobody_elses_belief() {
    tale()
        .leads("a", 1, 100)
        .at(50)
        .follows("b", 1)
        .leads("b", 2, 90)
        .convicts(BeliefSafety, "b believed", &[0, 2]);
    tale()
        .leads("a", 2, 100)
        .at(50)
        .follows("a", 1)
        .leads("b", 3, 90)
        .convicts(BeliefSafety, "b believed", &[0, 2]);
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
        .convicts(BeliefSafety, "c believed", &[1, 2]);
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
    let told = "store granted b the lease at 0.041s: it had taken a release by c at 0.040s, \
                though a held it";
    assert_eq!(reckoning(tale).last().map(String::as_str), Some(told));
}

/// A doubled frame of an earlier term's release.
#[test]
fn a_release_of_another_token_is_told_apart_from_one_of_the_term() {
    let tale = tale()
        .grants("a", 1, 4, 0)
        .leads_counting_from(0, "a", 4, 98)
        .at(40)
        .releases("a", 2, 40)
        .grants("b", 1, 5, 41)
        .leads("b", 5, 130);
    let told = "store granted b the lease at 0.041s: it took a release of a's token 2 at 0.040s, \
                though a held it under token 4";
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

#[test]
fn a_belief_without_an_end_is_told_when_its_window_was_over() {
    let endless = |percent| {
        let tale = tale().clock("a", percent).leads("a", 1, None);
        tale.at(150).leads("b", 2, None)
    };
    assert_eq!(
        reckoning(endless(100))[1..],
        [
            "a's window of 98ms from its send at 0.000s was over at 0.098s; it believed on \
             without an end"
        ]
    );
    // By its own clock.
    assert!(says(endless(200), "was over at 0.049s"));
    // Whose end is not the one that is missing, or who never said what it counts from.
    let ended = tale().leads("a", 1, 200).at(150).leads("b", 2, None);
    assert!(!says(ended, "without an end"));
    let mut unsent = endless(100);
    let Body::Observed(Observation::Lead(lead)) = &mut unsent.events[0].body else {
        panic!()
    };
    lead.sent = None;
    assert!(!says(unsent, "without an end"));
}

/// A line of the arithmetic that begins or goes on like this.
fn says(tale: Tale, words: &str) -> bool {
    reckoning(tale).iter().any(|line| line.contains(words))
}

/// `a` was granted the lease at 0, by a call, and `b` at 102; what happens to `a` in between
/// is told from event 4 on. Its belief, whatever it is by then, is the last of it.
fn taken_over(between: impl FnOnce(Tale) -> Tale) -> Tale {
    let granted = tale()
        .invoke("a", acquire("a", 1))
        .at(0)
        .grants("a", 1, 1, 0)
        .at(1)
        .complete(0, Kind::Ok, Answer::Token(1), None)
        .at(1)
        .leads_counting_from(0, "a", 1, 98);
    between(granted)
        .at(102)
        .grants("b", 1, 2, 102)
        .at(103)
        .leads("b", 2, 200)
}

fn hit(tale: Tale, f: &str, value: serde_json::Value) -> Tale {
    tale.nemesis(f, value)
}

#[test]
fn a_run_clock_that_stood_still_is_told_against_true_time() {
    let slept = |until: u64| {
        taken_over(|tale| {
            let asleep = json!({"target": "leader", "node": "a", "for": 60 * MS});
            hit(tale.at(10), "suspend", asleep)
                .at(70)
                .nemesis("resume", json!({"fault": "suspend", "node": "a"}))
                .at(70)
                .leads_counting_from(0, "a", 1, until)
        })
    };
    let still = "its run clock stood still for 60ms while the machine slept, from 0.010s on: by \
                 it, a counted 98ms";
    let evidence = slept(158).convicts(BeliefSafety, "b believed", &[0, 4, 6, 7, 8]);
    assert_eq!(
        evidence.reckoning[1..3],
        [
            "a counted from 0.000s until 0.158s: 158ms; of a ttl of 100ms less drift and margin, \
             98ms are safe",
            still,
        ]
    );
    // A sleep within another lengthens none.
    let twice = taken_over(|tale| {
        let asleep = |ms: u64| json!({"node": "a", "for": ms * MS});
        let tale = hit(tale.at(10), "suspend", asleep(60));
        let tale = hit(tale.at(20), "suspend", asleep(20)).at(70);
        tale.leads_counting_from(0, "a", 1, 158)
    });
    let evidence = twice.convicts(BeliefSafety, "b believed", &[0, 4, 6, 7, 8]);
    assert_eq!(evidence.reckoning[2], still);
    // Who believes longer than its sleep explains counted by no such clock.
    assert!(!says(slept(200), "run clock"));
}

#[test]
fn a_run_clock_that_stands_still_has_no_end_to_tell() {
    let mut tale = taken_over(|tale| {
        hit(
            tale.at(10),
            "suspend",
            json!({"node": "a", "for": 600 * MS}),
        )
        .at(10)
        .leads_counting_from(0, "a", 1, None)
    });
    let Body::Observed(Observation::Lead(lead)) = &mut tale.events[5].body else {
        panic!()
    };
    lead.until = Some(Nanos::MAX);
    let evidence = tale.convicts(
        BeliefSafety,
        "a believed so without an end",
        &[0, 4, 5, 6, 7],
    );
    let still = "a counted from 0.000s, and its machine has slept since 0.010s: its run clock \
                 stands still at 10ms, and its belief has no end before it wakes";
    assert_eq!(evidence.reckoning[1], still);
    assert!(evidence.reckoning[0].ends_with("until 0.200s: 97ms of true time"));
}

#[test]
fn a_step_of_a_wall_clock_is_told_against_true_time() {
    let stepped = |node: &'static str, by: i64, at: u64| {
        taken_over(|tale| {
            hit(
                tale.at(at),
                "step",
                json!({"node": node, "by": by * MS as i64}),
            )
            .at(at)
            .leads_counting_from(0, "a", 1, 398)
        })
    };
    let evidence = stepped("a", -300, 20).convicts(BeliefSafety, "b believed", &[0, 4, 5, 6, 7]);
    let told = "its wall clock was stepped by -300ms at 0.020s: by wall clocks, a counted 98ms";
    assert_eq!(evidence.reckoning[2], told);
    // Forward, too short, or a clock that has no part in it.
    for (node, by) in [("a", 300), ("a", -200), ("c", -300), ("store", -300)] {
        let evidence = stepped(node, by, 20).convicts(BeliefSafety, "b believed", &[0, 5, 6, 7]);
        let told = evidence.reckoning.iter().any(|line| line.contains("wall"));
        assert!(!told, "{node} {by}");
    }
    // The store's, by the time of the grant.
    let mut ahead = tale()
        .nemesis("step", json!({"node": "store", "by": 300 * MS}))
        .at(0)
        .grants("a", 1, 1, 0)
        .at(1)
        .leads_counting_from(0, "a", 1, 398)
        .at(102)
        .grants("b", 1, 2, 102)
        .leads("b", 2, 200);
    let told = "store's wall clock was stepped by +300ms at 0.000s: by wall clocks, a counted 98ms";
    let evidence = ahead
        .clone()
        .convicts(BeliefSafety, "b believed", &[0, 2, 3, 4]);
    assert_eq!(evidence.reckoning[2], told);
    // Where both stepped alike nothing is off.
    ahead = ahead
        .at(0)
        .nemesis("step", json!({"node": "a", "by": 300 * MS}));
    let step = ahead.events.pop().unwrap();
    ahead.events.insert(1, step);
    for (index, event) in ahead.events.iter_mut().enumerate() {
        event.index = index as u64;
    }
    assert!(!says(ahead, "wall clock"));
}

#[test]
fn the_evidence_is_what_stands_behind_each_belief_and_no_more() {
    // Frames that were late or lost, and what befell others, decide nothing.
    let beside = |tale: Tale| {
        let tale = hit(
            tale,
            "delayed",
            json!({"from": "a", "to": "store", "kind": "renew"}),
        );
        let tale = hit(
            tale,
            "lost",
            json!({"from": "store", "to": "a", "kind": "renew-reply"}),
        );
        let tale = hit(tale, "pause", json!({"node": "c", "for": 90 * MS}));
        hit(tale, "crash", json!({"node": "c", "for": MS}))
    };
    let flag = |tale: Tale| tale.at(2).leads_counting_from(0, "a", 1, None);
    taken_over(|tale| beside(flag(tale))).convicts(BeliefSafety, "b believed", &[0, 4, 9, 10]);
    // What kept it from renewing does, the longest of it.
    for (f, value) in [
        ("pause", json!({"node": "a", "for": 80 * MS})),
        ("starve", json!({"node": "a", "one_in": 9, "for": 80 * MS})),
        ("isolate", json!({"node": "a", "for": 80 * MS})),
        ("isolate", json!({"node": "store", "for": 80 * MS})),
        (
            "partition",
            json!({"nodes": ["a", "store"], "for": 80 * MS}),
        ),
        ("hold", json!({"nodes": ["store", "a"], "for": 80 * MS})),
        (
            "partition-oneway",
            json!({"from": ["a"], "to": ["store"], "for": 80 * MS}),
        ),
        (
            "halves",
            json!({"halves": [["a", "c"], ["store"]], "for": 80 * MS}),
        ),
    ] {
        let tale = taken_over(|tale| {
            let short = json!({"node": "a", "for": 20 * MS});
            hit(hit(flag(tale), "paused", short), f, value)
        });
        tale.convicts(BeliefSafety, "b believed", &[0, 4, 6, 7, 8]);
    }
    for (f, value) in [
        ("isolate", json!({"node": "c", "for": 80 * MS})),
        ("partition", json!({"nodes": ["a", "c"], "for": 80 * MS})),
        (
            "halves",
            json!({"halves": [["a", "store"], ["c"]], "for": 80 * MS}),
        ),
        ("isolate", json!({"node": "a", "for": 20 * MS})),
    ] {
        let tale = taken_over(|tale| hit(flag(tale), f, value));
        tale.convicts(BeliefSafety, "b believed", &[0, 4, 6, 7]);
    }
}

/// The send is the one that the store granted, whatever its holder counts from.
#[test]
fn the_send_behind_a_belief_is_the_one_that_was_granted() {
    tale()
        .invoke("a", acquire("a", 1))
        .grants("a", 1, 1, 1)
        .at(50)
        .invoke("a", acquire("a", 1))
        .complete(2, Kind::Ok, Answer::Token(1), None)
        .at(51)
        .leads_counting_from(50, "a", 1, 148)
        .at(102)
        .grants("b", 1, 2, 102)
        .leads("b", 2, 200)
        .convicts(BeliefSafety, "b believed", &[0, 4, 5, 6]);
    // Where no store tells, the one that it counts from; and the answer is the grant.
    tale()
        .invoke("a", acquire("a", 1))
        .at(50)
        .ok("a", renew("a", 1))
        .at(51)
        .leads_counting_from(50, "a", 1, 148)
        .at(102)
        .acquires("b", 2)
        .leads("b", 2, 200)
        .convicts(BeliefSafety, "b believed", &[1, 3, 5, 6]);
}

#[test]
fn a_late_release_of_an_earlier_grant_is_told_with_the_one_that_it_ended() {
    let tale = tale()
        .grants("a", 1, 1, 0)
        .at(10)
        .invoke("a", release("a", 1))
        .at(12)
        .invoke("a", release("a", 1))
        .at(20)
        .grants("a", 2, 1, 20)
        .at(30)
        .leads_counting_from(19, "a", 1, 117)
        .at(40)
        .releases("a", 1, 40)
        .at(41)
        .complete(2, Kind::Ok, Answer::None, None)
        .at(50)
        .grants("b", 1, 2, 50)
        .leads("b", 2, 140);
    let evidence = tale.convicts(BeliefSafety, "b believed", &[2, 3, 4, 5, 7, 8]);
    let told = "store granted b the lease at 0.050s: at 0.040s it took the release that a had \
                sent at 0.012s for an earlier grant, and ended the one of 0.020s with it";
    assert_eq!(evidence.reckoning.last().map(String::as_str), Some(told));
}

#[test]
fn the_release_that_ended_the_term_is_the_first_that_was_taken() {
    let tale = tale()
        .grants("a", 1, 1, 0)
        .leads_counting_from(0, "a", 1, 98)
        .at(40)
        .releases("a", 1, 40)
        .releases("c", 0, 41)
        .grants("b", 1, 2, 42)
        .leads("b", 2, 130);
    tale.clone()
        .convicts(BeliefSafety, "b believed", &[1, 2, 4, 5]);
    assert!(says(tale, "a had released it at 0.040s"));
}

#[test]
fn a_store_that_came_back_within_what_it_owed_is_told_with_its_crash() {
    let back = |owner| {
        let down = tale()
            .grants("a", 1, 1, 0)
            .leads_counting_from(0, "a", 1, 98)
            .at(20)
            .nemesis("crash", json!({"node": "store", "for": 10 * MS}));
        down.at(30)
            .recovers(1, owner, 30)
            .at(40)
            .grants("b", 1, 2, 40)
            .leads("b", 2, 130)
    };
    back(None).convicts(BeliefSafety, "b believed", &[1, 2, 3, 4, 5]);
    let forgot = "counted only 40ms of the 100ms it owed a from 0.000s on: it came back at 0.030s \
                  and had forgotten a";
    assert!(says(back(None), forgot));
    let anew = "counted only 10ms of the 100ms it owed a from 0.030s on: it came back at 0.030s \
                and found its owner, and owed it all of that anew";
    assert!(says(back(Some("a")), anew));
}

#[test]
fn where_tokens_went_back_the_grants_tell_who_was_deposed() {
    let tale = tale()
        .grants("a", 1, 2, 0)
        .leads_counting_from(0, "a", 2, 98)
        .at(60)
        .grants("b", 1, 1, 60)
        .leads("b", 1, 150);
    assert!(says(
        tale,
        "store granted b the lease at 0.060s, when it had counted only 60ms of the 100ms it owed \
         a from 0.000s on"
    ));
}

#[test]
fn a_belief_that_outlived_a_crash_is_told_with_it() {
    let tale = tale()
        .grants("a", 1, 1, 0)
        .at(20)
        .nemesis("power-loss", json!({"node": "a", "for": 10 * MS}))
        .at(102)
        .grants("b", 1, 2, 102)
        .leads("b", 2, 200)
        .at(110)
        .leads("a", 1, 210);
    tale.clone()
        .convicts(BeliefSafety, "a believed", &[1, 2, 3, 4]);
    assert!(says(
        tale,
        "a crashed at 0.020s: what it was granted at 0.000s was no longer its own"
    ));
}

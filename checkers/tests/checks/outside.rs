//! Beliefs and failovers, where clients' calls are all there is.

use deposed_checkers::history::{Answer, Failure, Kind, Op};
use deposed_checkers::verdict::Check::{BeliefSafety, Failover};
use serde_json::json;

use crate::tale::*;

/// a's acquire is sent at 0; b's is answered at this time, in ms.
fn granted_to_b_at(ms: u64) -> Tale {
    tale().acquires("a", 1).at(ms - 1).acquires("b", 2)
}

/// Of a ttl of 100 are 98 safe, which a clock that runs 1 % fast counts in 97.03.
#[test]
fn two_may_not_be_promised_a_lease_at_once() {
    let evidence = granted_to_b_at(97).convicts(BeliefSafety, "b (token 2) could", &[0, 1, 2, 3]);
    assert_eq!(evidence.expected, "refused while a (token 1) may believe");
    assert_eq!(
        evidence.reckoning,
        [
            "inferred from calls: no lead or follow was recorded",
            "from the send at 0.000s to 0.097s no clock within the drift bound counts more than \
             97.97ms, and a holds for 98ms that are safe to believe in"
        ]
    );
    granted_to_b_at(98).passes(BeliefSafety);
    // In whatever order they were granted, and without tokens.
    let both = |first: Option<u64>, then: Option<u64>| {
        tale().acquires("a", first).at(50).acquires("b", then)
    };
    both(Some(2), Some(1)).convicts(BeliefSafety, "could believe", &[0, 1, 2, 3]);
    both(None, None).convicts(BeliefSafety, "could believe", &[0, 1, 2, 3]);
    both(Some(1), Some(1)).convicts(BeliefSafety, "could believe", &[0, 1, 2, 3]);
}

#[test]
fn a_renewal_promises_from_its_own_send() {
    let renewed = |granted: u64| {
        let renewed = tale().acquires("a", 1).at(50).ok("a", renew("a", 1));
        renewed.at(granted - 1).acquires("b", 2)
    };
    renewed(147).convicts(BeliefSafety, "a (token 1)", &[1 + 1, 3, 4, 5]);
    renewed(148).passes(BeliefSafety);
    // It is over when the answer comes, and does not come back.
    let late = |sent: u64| {
        let late = tale().acquires("a", 1).at(sent).invoke("a", renew("a", 1));
        late.at(110).ends_ok(2).acquires("b", 2)
    };
    late(90).passes(BeliefSafety);
    // Granted too late to believe, then renewed in time: it begins with that.
    let unproven = || {
        let asked = tale().invoke("a", acquire("a", 1)).at(120);
        asked.complete(0, Kind::Ok, Answer::Token(1), None).at(130)
    };
    let renewed = unproven().ok("a", renew("a", 1));
    renewed
        .at(200)
        .acquires("b", 2)
        .convicts(BeliefSafety, "a (token 1)", &[2, 3, 4, 5]);
    unproven().acquires("b", 2).passes(BeliefSafety);
}

#[test]
fn an_acquire_tried_again_counts_from_its_first_send() {
    let again = |request| {
        let tried = tale().at(10).times_out("a", acquire("a", request));
        let granted = tried.at(60).invoke("a", acquire("a", request));
        let granted = granted.complete(2, Kind::Ok, Answer::Token(1), None);
        granted.at(110).acquires("b", 2)
    };
    again(7).passes(BeliefSafety);
    // Who does not number its requests may be told of what the first was granted.
    again(0).passes(BeliefSafety);
    // A refusal ends that.
    let refused = |request| {
        let refused = tale().at(10).invoke("a", acquire("a", request));
        let refused = refused.complete(0, Kind::Fail, Answer::None, Some(Failure::new("held")));
        let granted = refused.at(60).invoke("a", acquire("a", request));
        let granted = granted.complete(2, Kind::Ok, Answer::Token(1), None);
        granted.at(110).acquires("b", 2)
    };
    refused(0).convicts(BeliefSafety, "could believe", &[2, 3, 4, 5]);
    refused(7).passes(BeliefSafety);
}

#[test]
fn whatever_ends_a_belief_is_heeded() {
    let led = || tale().acquires("a", 1).at(40);
    let then = |tale: Tale| tale.at(60).acquires("b", 2);
    then(led()).convicts(BeliefSafety, "could believe", &[0, 1, 2, 3]);
    then(led().times_out("a", release("a", 1))).passes(BeliefSafety);
    then(led().times_out("a", release("a", None))).passes(BeliefSafety);
    // An old release ends no later term.
    then(led().times_out("a", release("a", 0))).convicts(BeliefSafety, "could", &[0, 1, 4, 5]);
    then(led().invoke("a", acquire("a", 9))).passes(BeliefSafety);
    then(led().stale("a", write(1, 1), 2)).passes(BeliefSafety);
    then(led().nemesis("crash", json!({"node": "a"}))).passes(BeliefSafety);
    then(led().nemesis("pause", json!({"node": "a"}))).convicts(BeliefSafety, "", &[0, 1, 3, 4]);
    let refused = led().invoke("a", renew("a", 1));
    let refused = refused.complete(2, Kind::Fail, Answer::None, Some(Failure::new("expired")));
    then(refused).passes(BeliefSafety);
    // At the very instant at which the other may begin.
    let at_once = led().at(60).acquires("b", 2).at_once();
    at_once.invoke("a", release("a", 1)).passes(BeliefSafety);
}

/// Two processes of one holder may be one client.
#[test]
fn one_holder_is_not_two() {
    let mut tale = tale().acquires("a", 1).acquires("b", 2);
    for event in &mut tale.events {
        if let deposed_checkers::history::Body::Invoke(Op::Acquire(op)) = &mut event.body {
            op.holder = holder("a");
        }
    }
    tale.passes(BeliefSafety);
}

#[test]
fn clocks_beyond_the_bound_excuse_what_clients_could_believe() {
    // By a's clock 49 of the 98 are over; a store that runs true had counted the ttl.
    let slow = |ms| granted_to_b_at(ms).clock("a", 50);
    slow(103).claims_nothing(BeliefSafety, "the clock of a had run slower");
    slow(197).passes(BeliefSafety);
    slow(90).convicts(BeliefSafety, "could believe", &[0, 1, 2, 3]);
    // Whose clock runs fast may be the store.
    granted_to_b_at(60)
        .clock("s", 200)
        .claims_nothing(BeliefSafety, "the clock of a");
}

#[test]
fn recorded_beliefs_are_exact() {
    let both = || granted_to_b_at(50);
    both().convicts(BeliefSafety, "could believe", &[0, 1, 2, 3]);
    both().leads("b", 2, 140).passes(BeliefSafety);
    both().follows("a", 1).passes(BeliefSafety);
}

#[test]
fn how_long_a_belief_lasts_the_header_tells() {
    let mut untimed = granted_to_b_at(50);
    untimed.header.lease = None;
    untimed.claims_nothing(BeliefSafety, "lease.ttl");
    // What a request does not say.
    let mut unsaid = granted_to_b_at(50);
    for event in &mut unsaid.events {
        if let deposed_checkers::history::Body::Invoke(Op::Acquire(op)) = &mut event.body {
            op.ttl = 0;
        }
    }
    unsaid.convicts(BeliefSafety, "could believe", &[0, 1, 2, 3]);
}

/// ttl 100, try time-out 10, back-off 10, 14 latencies of 1, slack 10.
const BOUND: u64 = 144;

/// A leader that renewed, and then calm.
fn calm() -> Tale {
    let led = tale().acquires("a", 1).ok("a", renew("a", 1));
    led.at(1000).nemesis("calm", json!({}))
}

/// b asks every so many milliseconds, from 1001 until then, and is refused.
fn asks(tale: Tale, every: u64, until: u64) -> Tale {
    asks_from(1001, tale, every, until)
}

fn asks_from(mut now: u64, mut tale: Tale, every: u64, until: u64) -> Tale {
    let mut request = now;
    while now <= until {
        let call = tale.events.len() as u64;
        let refused = Some(Failure::new("held"));
        let asked = tale.at(now).invoke("b", acquire("b", request));
        tale = asked.complete(call, Kind::Fail, Answer::None, refused);
        (now, request) = (now + every, request + 1);
    }
    tale
}

#[test]
fn who_keeps_asking_gets_the_lease_within_the_bound() {
    let overdue = 1001 + BOUND + 1;
    asks(calm(), 1, overdue - 1 - 1).claims_nothing(Failover, "no granted events");
    let first = 5;
    let evidence = asks(calm(), 1, overdue).verdict(Failover);
    let deposed_checkers::verdict::Verdict::Violated(evidence) = evidence else {
        panic!("{evidence:?}")
    };
    assert_eq!((evidence.events[0], evidence.events[1]), (4, first));
    assert!(evidence.reckoning[0].contains("inferred from calls"));
    // Who looks in now and then may have come too early each time.
    asks(calm(), 40, 3000).claims_nothing(Failover, "long enough");
    asks(calm(), 20, 3000).violates(Failover);
}

#[test]
fn whoever_shows_that_it_leads_is_a_leader() {
    let until = |op: Op| asks_from(1110, asks(calm(), 5, 1100).ok("a", op), 5, 1200);
    until(renew("a", 1)).passes(Failover);
    until(write(1, 1)).passes(Failover);
    until(read(1)).passes(Failover);
    for no_sign in [read(None), release("a", 1)] {
        until(no_sign).violates(Failover);
    }
}

/// An owner whose lease is kept alive by what no client records; a client that went away.
#[test]
fn a_lease_may_be_held_by_what_clients_do_not_show() {
    let unseen = tale().acquires("a", 1).at(1000).nemesis("calm", json!({}));
    asks(unseen, 5, 3000).claims_nothing(Failover, "long enough");
    let gone = calm().at(1001).invoke("c", acquire("c", 1));
    asks(gone, 5, 3000).claims_nothing(Failover, "long enough");
}

/// The header says that somebody always wants to write: then a write is owed.
#[test]
fn where_writes_are_owed_no_node_need_tell() {
    let calm = |written| {
        let mut tale = calm();
        tale.header
            .rest
            .insert("traffic".to_owned(), json!({"write_every": 1}));
        tale.at(written).writes("b", 2)
    };
    calm(1000 + BOUND - 1).passes(Failover);
    calm(1000 + BOUND).violates(Failover);
}

/// Two lost renewals end no term, and where there is a calm mark faults are recorded.
#[test]
fn steadiness_needs_beliefs_and_a_mark_of_calm() {
    let ran_out = || {
        tale()
            .acquires("a", 1)
            .leads("a", 1, 99)
            .ok("a", renew("a", 1))
    };
    let ended = ran_out().at(200).nemesis("calm", json!({}));
    ended.convicts(Failover, "no renewal had been lost", &[2]);
    ran_out()
        .at(200)
        .follows("a", 1)
        .claims_nothing(Failover, "no calm");
}

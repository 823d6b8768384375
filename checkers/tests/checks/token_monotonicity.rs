use deposed_checkers::history::{Answer, Kind, Observation, Restored, StoreRecovered};
use deposed_checkers::verdict::Check::TokenMonotonicity;
use serde_json::json;

use crate::tale::*;

#[test]
fn a_grant_is_the_token_before_plus_one() {
    tale()
        .grants("a", 1, 5, 0)
        .grants("b", 1, 6, 200)
        .passes(TokenMonotonicity);
    for token in [4, 5, 7] {
        tale()
            .grants("a", 1, 5, 0)
            .grants("b", 1, token, 200)
            .convicts(TokenMonotonicity, "after token 5", &[0, 1]);
    }
}

#[test]
fn a_request_answered_again_is_one_grant() {
    tale()
        .grants("a", 1, 5, 0)
        .grants("a", 1, 5, 10)
        .passes(TokenMonotonicity);
    tale().grants("a", 1, 5, 0).grants("a", 2, 5, 10).convicts(
        TokenMonotonicity,
        "after token 5",
        &[0, 1],
    );
}

#[test]
fn a_restart_may_leave_a_gap_and_not_go_back() {
    let before = tale().grants("a", 1, 5, 0);
    before
        .clone()
        .recovers(5, Some("a"), 0)
        .grants("b", 1, 8, 200)
        .passes(TokenMonotonicity);
    before
        .clone()
        .recovers(7, None, 0)
        .grants("b", 1, 7, 200)
        .convicts(TokenMonotonicity, "after a restart", &[1, 2]);
    // What it does not list, its next grant shows.
    let lost = before.saw("store", nothing_found());
    lost.clone()
        .grants("b", 1, 6, 200)
        .passes(TokenMonotonicity);
    lost.grants("b", 1, 5, 200)
        .convicts(TokenMonotonicity, "after a restart", &[0, 1, 2]);
}

#[test]
fn a_store_comes_back_with_the_counter_it_had() {
    let before = tale().grants("a", 1, 4, 0).grants("b", 1, 5, 200);
    for counter in [5, 6] {
        before
            .clone()
            .recovers(counter, None, 0)
            .passes(TokenMonotonicity);
    }
    // Already by coming back, and whatever it grants afterwards.
    let back = before.recovers(4, Some("a"), 300);
    for tale in [back.clone(), back.clone().grants("c", 1, 6, 500)] {
        let evidence = tale.convicts(TokenMonotonicity, "came back", &[1, 2]);
        assert_eq!(
            evidence.sentence,
            "the store came back with leader at token 4, and 5 had been granted"
        );
        assert_eq!(evidence.culprit, 2);
        assert_eq!(evidence.expected, "5 or more");
    }
    // What was found once is found again.
    let found = tale().grants("a", 1, 4, 0).recovers(6, None, 0);
    found.clone().recovers(6, None, 0).passes(TokenMonotonicity);
    found
        .recovers(5, None, 0)
        .convicts(TokenMonotonicity, "came back", &[1, 2]);
}

#[test]
fn another_store_node_may_lag() {
    let mut tale = tale().grants("a", 1, 5, 0).recovers(4, None, 0);
    tale.events[1].process = "other-store".into();
    tale.passes(TokenMonotonicity);
}

#[test]
fn an_old_copy_may_hold_less() {
    tale()
        .grants("a", 1, 5, 0)
        .saw("store", restored(9))
        .recovers(4, None, 0)
        .grants("b", 1, 10, 200)
        .passes(TokenMonotonicity);
}

#[test]
fn a_restored_store_starts_above_its_floor() {
    let before = tale().grants("a", 1, 5, 0).saw("store", restored(100));
    before
        .clone()
        .grants("b", 1, 101, 200)
        .passes(TokenMonotonicity);
    before
        .grants("b", 1, 100, 200)
        .convicts(TokenMonotonicity, "after a restart", &[1, 2]);
    tale()
        .saw("store", restored(100))
        .grants("b", 1, 6, 200)
        .convicts(TokenMonotonicity, "after a restart", &[0, 1]);
}

#[test]
fn only_its_holder_uses_a_token() {
    tale()
        .acquires("a", 5)
        .fences("a", 5)
        .ok("a", release("a", 5))
        .passes(TokenMonotonicity);
    for op in [
        fence(6),
        write(6, 1),
        read(6),
        renew("a", 6),
        release("a", 6),
    ] {
        tale()
            .acquires("a", 5)
            .ok("a", op.clone())
            .convicts(TokenMonotonicity, "token 6", &[2]);
        tale()
            .grants("a", 0, 5, 0)
            .acquires("a", 5)
            .ok("a", op)
            .convicts(TokenMonotonicity, "token 6", &[3]);
    }
    tale()
        .acquires("a", 5)
        .acquires("b", 6)
        .fences("a", 6)
        .convicts(TokenMonotonicity, "never granted it: b was", &[3, 4]);
}

/// A holder is its process's by the acquire that named it, whatever its name.
#[test]
fn a_holder_may_be_called_otherwise_than_its_process() {
    let named = |mut tale: Tale| {
        for event in &mut tale.events {
            if event.process == "x" {
                event.process = "a".into();
            }
        }
        tale
    };
    let granted = || tale().acquires("x", 5).grants("x", 0, 5, 0);
    named(granted().ok("x", fence(5))).passes(TokenMonotonicity);
    named(granted().ok("x", fence(6))).convicts(TokenMonotonicity, "token 6", &[3]);
    let told = "token 5 by b, which was never granted it: a was";
    named(granted().ok("b", fence(5))).convicts(TokenMonotonicity, told, &[2, 3]);
}

#[test]
fn what_a_store_comes_back_with_was_granted() {
    let back = |owner| {
        tale()
            .grants("z", 1, 4, 0)
            .recovers(5, owner, 0)
            .at(300)
            .fences("a", 5)
    };
    back(Some("a")).passes(TokenMonotonicity);
    back(Some("b")).convicts(TokenMonotonicity, "token 5", &[1, 2]);
    back(None).convicts(TokenMonotonicity, "token 5", &[2]);
}

#[test]
fn only_its_own_crash_takes_a_token_away() {
    let after = |fault: &str, node: &str| {
        tale()
            .grants("a", 0, 5, 0)
            .acquires("a", 5)
            .nemesis(fault, json!({"node": node}))
            .fences("a", 5)
    };
    after("pause", "a").passes(TokenMonotonicity);
    after("crash", "b").passes(TokenMonotonicity);
    let told = "by a, which was granted it before it crashed, as a#1, and not since";
    after("crash", "a").convicts(TokenMonotonicity, told, &[0, 4]);
}

#[test]
fn an_acquire_without_an_answer_may_have_been_granted() {
    let late = tale()
        .acquires("a", 5)
        .times_out("a", acquire("a", 9))
        .fences("a", 6);
    late.clone()
        .writes("a", 6)
        .ok("a", renew("a", 6))
        .passes(TokenMonotonicity);
    late.fences("a", 7)
        .convicts(TokenMonotonicity, "token 7", &[6]);
}

#[test]
fn a_restarted_process_does_not_take_up_its_old_token() {
    let crashed = |node| {
        tale()
            .acquires("a", 5)
            .nemesis("crash", json!({"node": node}))
    };
    crashed("b").fences("a", 5).passes(TokenMonotonicity);
    crashed("a")
        .fences("a", 5)
        .convicts(TokenMonotonicity, "token 5", &[1, 3]);
}

#[test]
fn clients_are_told_rising_tokens_with_gaps() {
    tale()
        .acquires("a", 5)
        .acquires("b", 9)
        .passes(TokenMonotonicity);
    tale().acquires("a", 5).acquires("b", 4).convicts(
        TokenMonotonicity,
        "after a had been granted token 5",
        &[1, 2, 3],
    );
    // Answers may overtake each other, not share a token.
    let race = |token| {
        tale()
            .invoke("a", acquire("a", 0))
            .acquires("b", 6)
            .complete(0, Kind::Ok, Answer::Token(token), None)
    };
    race(5).passes(TokenMonotonicity);
    race(6).convicts(TokenMonotonicity, "both granted token 6", &[2, 3]);
}

#[test]
fn a_repeated_request_may_be_told_its_token_again() {
    let again = |request| {
        tale()
            .acquires("a", 5)
            .invoke("a", acquire("a", request))
            .complete(2, Kind::Ok, Answer::Token(5), None)
    };
    again(0).passes(TokenMonotonicity);
    again(1).convicts(TokenMonotonicity, "token 5", &[1, 2, 3]);
}

#[test]
fn without_tokens_nothing_is_claimed() {
    tale()
        .acquires("a", None)
        .writes("a", None)
        .claims_nothing(TokenMonotonicity, "no token");
    tale()
        .fences("a", 1)
        .claims_nothing(TokenMonotonicity, "nobody is granted");
}

/// The store went down between making the grant durable and recording it: what it
/// finds shows the grant, to the holder that it finds and to nobody else.
#[test]
fn a_grant_that_was_durable_and_not_recorded_is_one() {
    let back = tale()
        .grants("a", 1, 4, 0)
        .recovers(5, Some("b"), 200)
        .at(210);
    back.clone().fences("b", 5).passes(TokenMonotonicity);
    back.clone()
        .fences("a", 5)
        .convicts(TokenMonotonicity, "never granted it: b was", &[1, 2]);
    // A holder that was found before its process came back anew is not that process.
    back.nemesis("crash", json!({"node": "b"}))
        .recovers(5, Some("b"), 300)
        .fences("b", 5)
        .convicts(TokenMonotonicity, "before it crashed", &[1, 4]);
}

/// The evidence is what first showed the token, however often it was shown again.
#[test]
fn what_shows_a_token_again_is_not_what_showed_it() {
    let granted = || tale().grants("a", 1, 5, 0);
    granted()
        .grants("a", 1, 5, 10)
        .recovers(4, None, 20)
        .convicts(TokenMonotonicity, "5 had been granted", &[0, 2]);
    granted()
        .recovers(5, None, 0)
        .grants("b", 1, 5, 200)
        .convicts(TokenMonotonicity, "after a restart", &[0, 1, 2]);
    granted()
        .saw("store", restored(5))
        .grants("b", 1, 5, 200)
        .convicts(TokenMonotonicity, "after a restart", &[0, 1, 2]);
    tale()
        .acquires("a", 5)
        .invoke("a", acquire("a", 0))
        .complete(2, Kind::Ok, Answer::Token(5), None)
        .acquires("b", 5)
        .convicts(TokenMonotonicity, "token 5", &[1, 4, 5]);
    // A restart that finds the counter where it was leaves the grant what it was.
    granted()
        .recovers(5, Some("a"), 0)
        .grants("a", 1, 5, 10)
        .passes(TokenMonotonicity);
}

#[test]
fn a_restart_does_not_lower_a_restored_floor() {
    let back = |token| {
        tale()
            .saw("store", restored(100))
            .saw("store", nothing_found())
            .grants("b", 1, token, 200)
    };
    back(101).passes(TokenMonotonicity);
    back(100).convicts(TokenMonotonicity, "100 had been granted before", &[0, 2]);
}

#[test]
fn two_requests_never_share_a_token() {
    // Of two holders, or of one; under way at once.
    let race = |who: &str, request| {
        tale()
            .invoke("a", acquire("a", 0))
            .invoke(who, acquire(who, request))
            .complete(1, Kind::Ok, Answer::Token(6), None)
            .complete(0, Kind::Ok, Answer::Token(6), None)
    };
    race("a", 0).passes(TokenMonotonicity);
    race("b", 0).convicts(TokenMonotonicity, "b and a were both granted", &[2, 3]);
    race("a", 1).convicts(TokenMonotonicity, "a and a were both granted", &[2, 3]);
    // First sent before the other's, and tried again once nothing else is under way.
    let tried_again = |others, token| {
        let tale = tale().times_out("a", acquire("a", 0));
        let tale = (1..=others).fold(tale, |tale, token| tale.acquires("b", token));
        let call = tale.events.len() as u64;
        tale.invoke("a", acquire("a", 0))
            .complete(call, Kind::Ok, Answer::Token(token), None)
    };
    tried_again(7, 8).passes(TokenMonotonicity);
    tried_again(1, 1).convicts(TokenMonotonicity, "b and a were both granted", &[3, 5]);
    tried_again(500, 3).convicts(TokenMonotonicity, "both granted token 3", &[7, 1003]);
}

/// A token may be used before the line is written that tells of it: that spends no acquire
/// that comes later.
#[test]
fn an_answer_that_is_recorded_late_spends_no_other_acquire() {
    let used_first = |tale: Tale, token| {
        let call = tale.events.len() as u64;
        tale.invoke("a", acquire("a", token))
            .fences("a", token)
            .complete(call, Kind::Ok, Answer::Token(token), None)
    };
    used_first(used_first(tale(), 5), 6).passes(TokenMonotonicity);
    used_first(tale(), 5)
        .fences("a", 6)
        .convicts(TokenMonotonicity, "token 6", &[4]);
}

#[test]
fn a_token_is_above_the_highest_told_and_not_only_above_the_last() {
    let told = |token| {
        tale()
            .acquires("a", 5)
            .acquires("b", 9)
            .acquires("c", token)
    };
    told(10).passes(TokenMonotonicity);
    told(7).convicts(
        TokenMonotonicity,
        "after b had been granted token 9",
        &[3, 4, 5],
    );
    // An answer that comes late tells of an earlier grant.
    let late = |token| {
        tale()
            .invoke("a", acquire("a", 0))
            .acquires("b", 9)
            .complete(0, Kind::Ok, Answer::Token(5), None)
            .acquires("c", token)
    };
    late(10).passes(TokenMonotonicity);
    late(7).convicts(TokenMonotonicity, "had been granted token 9", &[2, 4, 5]);
}

fn restored(floor: u64) -> Observation {
    Observation::Restored(Restored {
        floor,
        leases: [].into(),
        clock: 0,
    })
}

fn nothing_found() -> Observation {
    let (leases, clock) = ([].into(), 0);
    Observation::StoreRecovered(StoreRecovered { leases, clock })
}

/// A call on the store is its holder's, a call on storage its process's.
#[test]
fn a_token_that_is_not_its_own_is_told_with_who_used_it() {
    let used = |op| tale().acquires("a", 5).ok("a", op);
    for op in [renew("a", 6), release("a", 6)] {
        used(op).convicts(TokenMonotonicity, "by a, which", &[2]);
    }
    for op in [fence(6), write(6, 1), read(6)] {
        assert_eq!(op.holder(), None);
        used(op).convicts(TokenMonotonicity, "by a, which", &[2]);
    }
    assert_eq!(acquire("a", 1).holder(), Some(&holder("a")));
}

#[test]
fn a_crash_ends_the_acquires_of_its_own_process() {
    let crashed = |node| {
        tale()
            .acquires("a", 5)
            .times_out("a", acquire("a", 9))
            .nemesis("crash", json!({"node": node}))
            .fences("a", 6)
    };
    crashed("b").passes(TokenMonotonicity);
    crashed("a").convicts(TokenMonotonicity, "token 6", &[5]);
}

#[test]
fn only_an_answer_that_is_ok_grants() {
    for kind in [Kind::Fail, Kind::Info] {
        tale()
            .acquires("a", 5)
            .invoke("b", acquire("b", 1))
            .complete(2, kind, Answer::Token(3), None)
            .acquires("b", 6)
            .passes(TokenMonotonicity);
    }
}

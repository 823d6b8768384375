use deposed_checkers::history::{Answer, Failure, Kind};
use deposed_checkers::verdict::Check::Conduct;
use serde_json::json;

use crate::tale::*;

#[test]
fn told_stale_a_leader_works_no_more() {
    let told = || tale().acquires("a", 1).stale("a", write(1, 1), 2);
    told().passes(Conduct);
    for op in [fence(1), write(1, 2), read(1)] {
        told()
            .ok("a", op)
            .convicts(Conduct, "after it was told", &[3, 4]);
    }
    told().ok("b", write(1, 2)).passes(Conduct);
    told().acquires("a", 3).writes("a", 3).passes(Conduct);
    // What was under way goes on.
    tale()
        .acquires("a", 1)
        .invoke("a", write(1, 2))
        .stale("a", write(1, 1), 2)
        .ends_ok(2)
        .passes(Conduct);
}

#[test]
fn a_straggler_of_an_earlier_term_says_nothing_of_this_one() {
    let straggler = |current| {
        tale()
            .acquires("a", 1)
            .invoke("a", write(1, 1))
            .acquires("a", current)
            .complete(
                2,
                Kind::Fail,
                Answer::None,
                Some(Failure::stale_token(1, 2)),
            )
    };
    straggler(2).writes("a", 2).passes(Conduct);
    straggler(2).invoke("a", write(1, 2)).passes(Conduct);
    // The term that it believes in is the later one; an earlier one restated is not.
    let late = |straggling: Tale| {
        let error = Some(Failure::stale_token(1, 2));
        let told = straggling.complete(2, Kind::Fail, Answer::None, error);
        told.invoke("a", write(1, 2)).passes(Conduct);
    };
    let sent = || tale().acquires("a", 1).invoke("a", write(1, 1));
    late(sent().leads("a", 3, 99));
    late(sent().acquires("a", 3).leads("a", 1, 99));
    straggler(1)
        .writes("a", 1)
        .convicts(Conduct, "after it was told", &[5, 6]);
}

#[test]
fn told_stale_a_leader_believes_no_more() {
    let told = || {
        tale()
            .acquires("a", 1)
            .leads("a", 1, 100)
            .stale("a", write(1, 1), 2)
    };
    told()
        .at_once()
        .follows("a", 1)
        .at(50)
        .fences("b", 2)
        .passes(Conduct);
    // On a real clock the end of belief is recorded a moment after the answer.
    told()
        .follows("a", 1)
        .at(50)
        .acquires("a", 3)
        .passes(Conduct);
    told()
        .at(50)
        .acquires("a", 3)
        .convicts(Conduct, "went on believing", &[2, 4]);
    told()
        .at(50)
        .ok("a", renew("a", 1))
        .convicts(Conduct, "went on believing", &[2, 4]);
    // It may be stopped: what others do says nothing of it.
    told().at(50).fences("b", 2).passes(Conduct);
    // It ran out by itself before the call.
    told().at(101).acquires("a", 3).passes(Conduct);
    // Asking for the lease is no work under its token.
    told()
        .follows("a", 1)
        .ok("a", renew("a", 1))
        .passes(Conduct);
    // It had followed, or run out, before.
    let over = || tale().acquires("a", 1).leads("a", 1, 4);
    over()
        .at(3)
        .follows("a", 1)
        .stale("a", write(1, 1), 2)
        .at(50)
        .fences("b", 2)
        .passes(Conduct);
    over()
        .at(3)
        .stale("a", write(1, 1), 2)
        .at(50)
        .fences("b", 2)
        .passes(Conduct);
}

#[test]
fn it_counts_from_the_first_time_that_this_token_was_told_stale() {
    let stale = |tale: Tale, call, token| {
        let error = Some(Failure::stale_token(token, 9));
        tale.complete(call, Kind::Fail, Answer::None, error)
    };
    let both_sent = tale()
        .acquires("a", 1)
        .invoke("a", write(1, 1))
        .invoke("a", write(1, 2));
    stale(stale(both_sent, 2, 1), 3, 1).writes("a", 1).convicts(
        Conduct,
        "after it was told",
        &[4, 6],
    );
    // Of another term it was told before.
    tale()
        .acquires("a", 1)
        .stale("a", write(1, 1), 2)
        .acquires("a", 3)
        .stale("a", write(3, 1), 4)
        .writes("a", 3)
        .convicts(Conduct, "after it was told", &[7, 8]);
    // It is the belief in that token which must end.
    tale()
        .acquires("a", 1)
        .leads("a", 1, 100)
        .acquires("a", 3)
        .stale("a", write(3, 1), 4)
        .at(50)
        .acquires("a", 5)
        .passes(Conduct);
}

#[test]
fn a_belief_that_has_yet_to_end_may_be_rewritten() {
    let rewritten = || {
        tale()
            .acquires("a", 1)
            .leads("a", 1, 100)
            .stale("a", write(1, 1), 2)
            .at_once()
            .leads("a", 1, 90)
    };
    rewritten()
        .follows("a", 1)
        .at(50)
        .acquires("a", 3)
        .passes(Conduct);
    rewritten()
        .at(50)
        .acquires("a", 3)
        .convicts(Conduct, "went on believing", &[4, 5]);
}

#[test]
fn a_lead_replaces_the_one_before_of_its_term_alone() {
    tale()
        .leads("a", 1, 50)
        .leads("a", 1, 20)
        .at(30)
        .ok("a", release("a", 1))
        .passes(Conduct);
    tale()
        .leads("a", 1, 50)
        .leads("a", 2, 20)
        .at(30)
        .ok("a", release("a", 1))
        .convicts(Conduct, "still believed", &[0, 2]);
}

#[test]
fn a_crash_ends_belief_and_work() {
    let crashed = |node| {
        tale()
            .acquires("a", 1)
            .leads("a", 1, 50)
            .invoke("a", write(1, 1))
            .nemesis("crash", json!({"node": node}))
            .ok("a", release("a", 1))
    };
    crashed("a").passes(Conduct);
    crashed("b").convicts(Conduct, "still believed", &[2, 5]);
    // Other faults end nothing.
    tale()
        .acquires("a", 1)
        .leads("a", 1, 50)
        .nemesis("pause", json!({"node": "a"}))
        .ok("a", release("a", 1))
        .convicts(Conduct, "still believed", &[2, 4]);
}

#[test]
fn a_follow_ends_only_the_belief_that_it_names() {
    let follows = |who: &str, token| {
        let mut tale = tale().leads("a", 1, 50).follows(who, token);
        tale.events[1].process = "a".into();
        tale.ok("a", release("a", 1))
    };
    follows("a", 1).passes(Conduct);
    follows("a", 2).convicts(Conduct, "still believed", &[0, 2]);
    follows("b", 1).convicts(Conduct, "still believed", &[0, 2]);
}

#[test]
fn told_stale_a_leader_does_not_believe_again() {
    let told = || {
        tale()
            .acquires("a", 1)
            .leads("a", 1, 9)
            .stale("a", write(1, 1), 2)
            .at_once()
            .follows("a", 1)
    };
    told().leads("a", 3, 99).fences("b", 4).passes(Conduct);
    told()
        .leads("a", 1, 99)
        .fences("b", 4)
        .convicts(Conduct, "believed in token 1", &[4, 6]);
}

#[test]
fn belief_ends_before_the_release() {
    let leads = || tale().acquires("a", 1).leads("a", 1, 50);
    leads()
        .follows("a", 1)
        .ok("a", release("a", 1))
        .passes(Conduct);
    leads().at(50).ok("a", release("a", 1)).passes(Conduct);
    leads()
        .ok("a", release("a", 1))
        .convicts(Conduct, "still believed", &[2, 3]);
    // It is the belief in that very term.
    leads().ok("a", release("a", 2)).passes(Conduct);
    leads()
        .invoke("a", release("a", 1))
        .at_once()
        .follows("a", 1)
        .convicts(Conduct, "still believed", &[2, 3]);
}

#[test]
fn work_ends_before_the_release() {
    for op in [fence(1), write(1, 1), read(1)] {
        let works = || tale().acquires("a", 1).invoke("a", op.clone());
        works().ends_ok(2).ok("a", release("a", 1)).passes(Conduct);
        works()
            .ok("a", release("a", 1))
            .convicts(Conduct, "still open", &[2, 3]);
        works()
            .acquires("a", 2)
            .ok("a", release("a", 2))
            .passes(Conduct);
    }
    tale()
        .acquires("a", 1)
        .times_out("a", write(1, 1))
        .ok("a", release("a", 1))
        .passes(Conduct);
    tale()
        .acquires("a", 1)
        .invoke("a", read(None))
        .ok("a", release("a", 1))
        .passes(Conduct);
    // Without tokens too; a read without one may be an observer's.
    let tokenless = |op| {
        tale()
            .acquires("a", None)
            .invoke("a", op)
            .ok("a", release("a", None))
    };
    tokenless(write(None, 1)).convicts(Conduct, "still open", &[2, 3]);
    tokenless(read(None)).passes(Conduct);
}

#[test]
fn without_work_nothing_is_claimed() {
    tale().acquires("a", 1).claims_nothing(Conduct, "no work");
}

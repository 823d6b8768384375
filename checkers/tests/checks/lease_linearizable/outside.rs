//! What clients alone can tell.

use deposed_checkers::history::{Answer, Body, Failure, Kind, Op};
use deposed_checkers::verdict::Check::LeaseLinearizable;

use crate::tale::*;

/// Answered at 1 ms, so in force until 99 at least: a clock may run 1 % fast.
fn asked() -> Tale {
    tale().acquires("a", 1)
}

#[test]
fn from_outside_a_grant_is_early_where_no_clock_allows_it() {
    let evidence = asked().at(97).acquires("b", 2).convicts(
        LeaseLinearizable,
        "at most 98.98ms",
        &[0, 1, 2, 3],
    );
    assert_eq!(
        evidence.sentence,
        "b (token 2) was granted the lease at most 98.98ms by the store's clock after a \
         (token 1) had asked for its 100ms, and nobody sent a release"
    );
    assert_eq!(
        evidence.reckoning,
        [
            "from the send at 0.000s to the answer at 0.098s no store's clock within the drift \
             bound counts more than 98.98ms"
        ]
    );
    // What follows takes nothing back.
    asked()
        .at(97)
        .acquires("b", 2)
        .acquires("b", 3)
        .writes("b", 3)
        .convicts(LeaseLinearizable, "98.98ms", &[0, 1, 2, 3]);
    asked().at(99).acquires("b", 2).passes(LeaseLinearizable);
    // A known clock that runs faster than the drift allows.
    asked()
        .clock("store", 110)
        .at(90)
        .acquires("b", 2)
        .passes(LeaseLinearizable);
    asked()
        .clock("store", 110)
        .at(89)
        .acquires("b", 2)
        .convicts(LeaseLinearizable, "nobody sent a release", &[0, 1, 2, 3]);
    asked()
        .nemesis(
            "rate",
            serde_json::json!({"node": "s", "rate_ppb": 2_000_000_000u64}),
        )
        .at(60)
        .acquires("b", 2)
        .passes(LeaseLinearizable);
    // A new request of the holder is another grant; its own again is not.
    asked()
        .acquires("a", 2)
        .convicts(LeaseLinearizable, "nobody sent", &[0, 1, 2, 3]);
    let again = acquire("a", 0);
    asked()
        .invoke("a", again)
        .complete(2, Kind::Ok, Answer::Token(1), None)
        .passes(LeaseLinearizable);
    // Its own again with another token is another.
    asked()
        .invoke("a", acquire("a", 0))
        .complete(2, Kind::Ok, Answer::Token(2), None)
        .convicts(LeaseLinearizable, "nobody sent", &[0, 1, 2, 3]);
}

#[test]
fn from_outside_a_grant_counts_from_its_first_send() {
    let retried = || {
        tale()
            .times_out("a", acquire("a", 0))
            .at(50)
            .invoke("a", acquire("a", 0))
            .complete(2, Kind::Ok, Answer::Token(1), None)
    };
    retried().at(100).acquires("b", 2).passes(LeaseLinearizable);
    retried()
        .at(97)
        .acquires("b", 2)
        .convicts(LeaseLinearizable, "nobody sent", &[0, 3, 4, 5]);
    // By the time that it is answered another request is out.
    tale()
        .invoke("a", acquire("a", 0))
        .invoke("a", acquire("a", 1))
        .complete(0, Kind::Ok, Answer::Token(1), None)
        .acquires("b", 2)
        .passes(LeaseLinearizable);
}

#[test]
fn from_outside_a_release_may_have_ended_any_term_of_its_holder() {
    let released = |who, token| asked().times_out(who, release(who, token)).acquires("b", 2);
    released("a", 1).passes(LeaseLinearizable);
    released("c", 1).convicts(LeaseLinearizable, "nobody sent", &[0, 1, 4, 5]);
    released("a", 7).convicts(LeaseLinearizable, "nobody sent", &[0, 1, 4, 5]);
    // Sent before the answer was read.
    tale()
        .invoke("a", acquire("a", 0))
        .times_out("a", release("a", 1))
        .complete(0, Kind::Ok, Answer::Token(1), None)
        .acquires("b", 2)
        .passes(LeaseLinearizable);
}

#[test]
fn from_outside_tokens_tell_which_grant_came_first() {
    // b's answer is late, and has the lower token.
    let late = |token| {
        tale()
            .invoke("b", acquire("b", 0))
            .acquires("a", 2)
            .complete(0, Kind::Ok, Answer::Token(token), None)
    };
    late(1).convicts(LeaseLinearizable, "a (token 2) was granted", &[0, 1, 2, 3]);
    late(3).convicts(LeaseLinearizable, "b (token 3) was granted", &[0, 1, 2, 3]);
    // Without tokens it may have been either.
    let mut untold = late(1);
    for at in [2, 3] {
        let Body::Complete(_, answer) = &mut untold.events[at].body else {
            panic!()
        };
        *answer = Answer::None;
    }
    untold.passes(LeaseLinearizable);
    tale().acquires("a", None).acquires("b", None).convicts(
        LeaseLinearizable,
        "b was granted",
        &[0, 1, 2, 3],
    );
}

#[test]
fn from_outside_a_renewal_counts_from_its_own_send() {
    let renewed = || asked().at(50).ok("a", renew("a", 1));
    renewed().at(149).acquires("b", 2).passes(LeaseLinearizable);
    renewed()
        .at(147)
        .acquires("b", 2)
        .convicts(LeaseLinearizable, "nobody sent", &[1, 2, 3, 4, 5]);
    // One that was not answered ok may not have taken effect.
    asked()
        .at(50)
        .times_out("a", renew("a", 1))
        .at(120)
        .acquires("b", 2)
        .passes(LeaseLinearizable);
    // It took effect after b's grant, or that was early.
    asked()
        .at(90)
        .invoke("a", renew("a", 1))
        .at(110)
        .acquires("b", 2)
        .ends_ok(2)
        .convicts(
            LeaseLinearizable,
            "b (token 2) was granted",
            &[1, 2, 3, 4, 5],
        );
}

#[test]
fn from_outside_a_renewal_under_a_successor_is_refused() {
    let followed = || asked().at(150).acquires("b", 2);
    followed()
        .times_out("a", renew("a", 1))
        .passes(LeaseLinearizable);
    followed().ok("b", renew("b", 2)).passes(LeaseLinearizable);
    let evidence = followed().ok("a", renew("a", 1)).convicts(
        LeaseLinearizable,
        "a renewal by a (token 1) was answered ok though token 2",
        &[3, 4, 5],
    );
    assert_eq!(evidence.expected, "refused");
    // After its expiry it may be legal: the store may have restarted.
    asked()
        .at(150)
        .ok("a", renew("a", 1))
        .passes(LeaseLinearizable);
}

#[test]
fn from_outside_what_was_granted_is_not_refused_while_it_lives() {
    let asked_as = |request| {
        tale()
            .invoke("a", acquire("a", request))
            .complete(0, Kind::Ok, Answer::Token(1), None)
    };
    let asked = || asked_as(1);
    let refused_as = |request, tale: Tale, why: &str| {
        let call = tale.events.len() as u64;
        let error = Some(Failure::new(why));
        tale.invoke("a", acquire("a", request))
            .complete(call, Kind::Fail, Answer::None, error)
    };
    let refused = |tale, why| refused_as(1, tale, why);
    // Requests that are not numbered, or another one, ask for a new term.
    refused_as(0, asked_as(0).at(50), "held").passes(LeaseLinearizable);
    refused_as(2, asked().at(50), "held").passes(LeaseLinearizable);
    refused(asked().at(50), "held").convicts(LeaseLinearizable, "was refused", &[0, 1, 2, 3]);
    refused(asked().at(99), "held").passes(LeaseLinearizable);
    refused(asked(), "connection-refused").passes(LeaseLinearizable);
    refused(asked().ok("a", release("a", 1)), "held").passes(LeaseLinearizable);
    refused(asked().at(50).ok("a", renew("a", 1)).at(120), "held").convicts(
        LeaseLinearizable,
        "was refused",
        &[1, 2, 3, 4, 5],
    );
}

/// A known clock runs exactly: bounds are instants then.
fn exact() -> Tale {
    let mut tale = tale();
    tale.header.lease.as_mut().unwrap().max_drift_ppb = 0;
    tale
}

/// An acquire under a request's number, and its answer.
fn granted_as(tale: Tale, process: &str, request: u64, token: u64) -> Tale {
    let call = tale.events.len() as u64;
    tale.invoke(process, acquire(process, request)).complete(
        call,
        Kind::Ok,
        Answer::Token(token),
        None,
    )
}

fn refused_as(tale: Tale, process: &str, request: u64) -> Tale {
    let call = tale.events.len() as u64;
    let error = Some(Failure::new("held"));
    tale.invoke(process, acquire(process, request))
        .complete(call, Kind::Fail, Answer::None, error)
}

/// A renewal for so many ms, of which the answer is yet to come.
fn asks_for(tale: Tale, process: &str, token: u64, ms: u64) -> Tale {
    let Op::Renew(mut op) = renew(process, token) else {
        unreachable!()
    };
    op.ttl = ms * MS;
    tale.invoke(process, Op::Renew(op))
}

#[test]
fn from_outside_the_bounds_are_exact() {
    // Sent at 0, answered to b one ms after it asks.
    let asked = || exact().acquires("a", 1);
    asked().at(99).acquires("b", 2).passes(LeaseLinearizable);
    asked()
        .at(98)
        .acquires("b", 2)
        .convicts(LeaseLinearizable, "at most 99ms", &[0, 1, 2, 3]);
    let refused = |at| refused_as(granted_as(exact(), "a", 1, 1).at(at), "a", 1);
    refused(99).passes(LeaseLinearizable);
    refused(98).convicts(LeaseLinearizable, "was refused", &[0, 1, 2, 3]);
}

#[test]
fn from_outside_a_refusal_is_of_its_own_request() {
    // Another holder counts its requests for itself.
    let granted = || granted_as(tale(), "a", 1, 1);
    refused_as(granted(), "b", 1).passes(LeaseLinearizable);
    refused_as(granted(), "b", 2).passes(LeaseLinearizable);
    refused_as(granted(), "a", 1).convicts(LeaseLinearizable, "was refused", &[0, 1, 2, 3]);
    // What became of its holder's earlier term, or of another's, takes nothing back.
    let again = granted_as(granted().ok("a", release("a", 1)), "a", 2, 2);
    refused_as(again, "a", 2).convicts(LeaseLinearizable, "was refused", &[4, 5, 6, 7]);
    let followed = granted_as(granted().ok("a", release("a", 1)), "b", 1, 2);
    refused_as(followed, "b", 1).convicts(LeaseLinearizable, "was refused", &[4, 5, 6, 7]);
}

#[test]
fn from_outside_a_release_may_be_of_a_term_whose_token_is_not_known() {
    let released = |tale: Tale, op| tale.times_out("a", op);
    let passes = |tale: Tale| tale.acquires("b", None).passes(LeaseLinearizable);
    passes(released(asked(), release("a", None)));
    passes(released(tale().acquires("a", None), release("a", 1)));
    // Sent before the answer was read, too.
    let before = |op, answer| {
        let tale = released(tale().invoke("a", acquire("a", 0)), op);
        tale.complete(0, Kind::Ok, answer, None)
    };
    passes(before(release("a", None), Answer::Token(1)));
    passes(before(release("a", 1), Answer::None));
    passes(before(release("a", 2), Answer::Token(1)));
    // It was of an earlier term.
    before(release("a", 1), Answer::Token(2))
        .acquires("b", 3)
        .convicts(LeaseLinearizable, "nobody sent", &[0, 3, 4, 5]);
}

#[test]
fn from_outside_a_renewal_adds_what_it_asked_for() {
    let renewed = |ms| asks_for(asked().at(50), "a", 1, ms).ends_ok(2);
    renewed(300).at(340).acquires("b", 2).convicts(
        LeaseLinearizable,
        "nobody sent",
        &[1, 2, 3, 4, 5],
    );
    renewed(300)
        .at(350)
        .acquires("b", 2)
        .passes(LeaseLinearizable);
    // A shorter one takes nothing away.
    renewed(10)
        .at(97)
        .acquires("b", 2)
        .convicts(LeaseLinearizable, "nobody sent", &[0, 1, 4, 5]);
    // Nor does one that was sent before and answered after another.
    let crossed = || {
        asks_for(asks_for(asked().at(20), "a", 1, 100).at(60), "a", 1, 100)
            .ends_ok(3)
            .ends_ok(2)
    };
    crossed()
        .at(150)
        .acquires("b", 2)
        .convicts(LeaseLinearizable, "nobody sent", &[1, 3, 4, 6, 7]);
    crossed().at(160).acquires("b", 2).passes(LeaseLinearizable);
    // Of two sent at once the longer counts.
    asks_for(asks_for(asked().at(50), "a", 1, 100).at(50), "a", 1, 300)
        .ends_ok(2)
        .ends_ok(3)
        .at(340)
        .acquires("b", 2)
        .convicts(LeaseLinearizable, "nobody sent", &[1, 3, 5, 6, 7]);
}

#[test]
fn from_outside_a_renewal_is_of_the_term_with_its_token() {
    let renewed = |who: &'static str, token| {
        asked()
            .ok("a", release("a", 1))
            .at(10)
            .acquires("a", 2)
            .at(60)
            .ok("a", renew(who, token))
            .at(150)
            .acquires("b", 3)
    };
    renewed("a", 2).convicts(LeaseLinearizable, "a (token 2)", &[5, 6, 7, 8, 9]);
    // Of a term that is unknown, or of somebody else, it prolongs none.
    renewed("a", 9).passes(LeaseLinearizable);
    renewed("c", 2).passes(LeaseLinearizable);
}

#[test]
fn from_outside_a_later_grant_is_shown_by_its_first_answer() {
    let followed = granted_as(granted_as(asked().at(150), "b", 1, 2), "b", 1, 2);
    followed
        .ok("a", renew("a", 1))
        .convicts(LeaseLinearizable, "though token 2", &[3, 6, 7]);
}

#[test]
fn from_outside_one_token_for_two_is_no_order() {
    // It is the tokens' fault, and token-monotonicity's to tell.
    tale()
        .invoke("b", acquire("b", 0))
        .acquires("a", 1)
        .complete(0, Kind::Ok, Answer::Token(1), None)
        .passes(LeaseLinearizable);
}

#[test]
fn from_outside_requests_are_numbered_by_each_holder() {
    // Without tokens, the holder and the number tell grants apart.
    let then = |process: &str, request| {
        tale()
            .ok("a", acquire("a", 1))
            .ok(process, acquire(process, request))
    };
    then("a", 1).passes(LeaseLinearizable);
    then("a", 2).convicts(LeaseLinearizable, "nobody sent", &[0, 1, 2, 3]);
    then("b", 1).convicts(LeaseLinearizable, "nobody sent", &[0, 1, 2, 3]);
}

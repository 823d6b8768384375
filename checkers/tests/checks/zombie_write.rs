use deposed_checkers::history::{Answer, Applied, F, Kind, Observation, Op, Write};
use deposed_checkers::verdict::Check::ZombieWrite;
use serde_json::{Value, json};

use crate::tale::*;

/// a leads, then b.
fn two_terms(tokens: bool) -> Tale {
    let token = |token| tokens.then_some(token);
    tale().acquires("a", token(1)).acquires("b", token(2))
}

#[test]
fn a_deposed_leaders_write_does_not_follow_its_successors() {
    for tokens in [false, true] {
        let token = |token| tokens.then_some(token);
        two_terms(tokens)
            .writes("a", token(1))
            .writes("b", token(2))
            .passes(ZombieWrite);
        for first in [write(token(2), 9), read(token(2))] {
            two_terms(tokens)
                .ok("b", first)
                .writes("a", token(1))
                .convicts(ZombieWrite, "a write by a, deposed since", &[1, 3, 5, 6, 7]);
        }
    }
    two_terms(true)
        .fences("b", 2)
        .writes("a", 1)
        .convicts(ZombieWrite, "by a", &[1, 3, 5, 6, 7]);
}

#[test]
fn the_successor_is_named() {
    let evidence = two_terms(true).fences("b", 2).writes("a", 1).convicts(
        ZombieWrite,
        "by a",
        &[1, 3, 5, 6, 7],
    );
    assert_eq!(
        evidence.sentence,
        "a write by a, deposed since, landed after the first operation of its successor b"
    );
    // By the store's account and the node's, where somebody else came before.
    tale()
        .acquires("c", 1)
        .fences("c", 1)
        .acquires("a", 2)
        .invoke("a", write(2, 1))
        .acquires("b", 3)
        .invoke("b", fence(3))
        .takes_fence("s", 3)
        .applies("s", 2, 1)
        .convicts(ZombieWrite, "of its successor b", &[5, 6, 8, 10, 11]);
}

/// A resource that cannot check tokens is sent none, though leases have them. What is
/// read without one may be an observer's, and marks nobody's term.
#[test]
fn a_write_without_a_token_is_judged_like_any_other() {
    two_terms(true)
        .writes("b", None)
        .writes("a", None)
        .convicts(ZombieWrite, "a write by a, deposed since", &[1, 3, 5, 6, 7]);
    two_terms(true)
        .ok("b", read(None))
        .writes("a", None)
        .passes(ZombieWrite);
}

#[test]
fn what_was_sent_before_may_have_landed_before() {
    two_terms(false)
        .invoke("a", write(None, 1))
        .writes("b", None)
        .ends_ok(4)
        .passes(ZombieWrite);
}

#[test]
fn a_retry_may_be_told_its_first_answer() {
    let retried = |seq| {
        two_terms(false)
            .times_out("a", write(None, 1))
            .writes("b", None)
            .ok("a", write(None, seq))
    };
    retried(1).passes(ZombieWrite);
    retried(2).convicts(ZombieWrite, "by a", &[1, 3, 7, 8, 9]);
    // What was answered is not tried again.
    two_terms(false)
        .ok("a", write(None, 9))
        .writes("b", None)
        .ok("a", write(None, 9))
        .convicts(ZombieWrite, "by a", &[1, 3, 7, 8, 9]);
}

#[test]
fn who_acquires_again_is_deposed_no_more() {
    two_terms(false)
        .writes("b", None)
        .acquires("a", None)
        .writes("a", None)
        .passes(ZombieWrite);
    // An acquire without an answer may have been granted.
    two_terms(false)
        .writes("b", None)
        .times_out("a", acquire("a", 9))
        .writes("a", None)
        .passes(ZombieWrite);
}

#[test]
fn answers_out_of_order_tell_nothing() {
    // a's acquire was sent first and answered last: it may be either's successor.
    tale()
        .invoke("a", acquire("a", 0))
        .acquires("b", None)
        .ends_ok(0)
        .writes("a", None)
        .writes("b", None)
        .writes("a", None)
        .passes(ZombieWrite);
}

#[test]
fn the_nodes_order_is_exact() {
    // Sent before the successor's first write, landed after it.
    let late = |first: u64, second: u64| {
        two_terms(false)
            .invoke("a", write(None, 1))
            .invoke("b", write(None, 2))
            .applies("s", None, first)
            .applies("s", None, second)
            .ends_ok(5)
            .ends_ok(4)
    };
    late(1, 2).passes(ZombieWrite);
    late(2, 1).convicts(ZombieWrite, "by a", &[1, 3, 4, 6, 7]);
}

#[test]
fn an_abandoned_write_may_yet_land() {
    two_terms(false)
        .times_out("a", write(None, 1))
        .invoke("b", write(None, 2))
        .applies("s", None, 2)
        .applies("s", None, 1)
        .convicts(ZombieWrite, "by a", &[1, 3, 4, 7, 8]);
}

#[test]
fn a_write_that_could_be_either_leaders_is_in_doubt() {
    two_terms(false)
        .invoke("a", write(None, 1))
        .invoke("b", write(None, 1))
        .ok("b", write(None, 2))
        .applies("s", None, 1)
        .passes(ZombieWrite);
}

#[test]
fn a_read_counts_in_the_order_of_a_single_node() {
    let read_between = |node| {
        two_terms(false)
            .invoke("a", write(None, 1))
            .ok("b", read(None))
            .applies("s1", None, 1)
            .invoke("b", write(None, 3))
            .applies(node, None, 3)
    };
    read_between("s1").convicts(ZombieWrite, "by a", &[1, 3, 4, 6, 7]);
    read_between("s2").passes(ZombieWrite);
}

#[test]
fn the_stores_order_tells_whose_term_is_later() {
    // Both acquires were under way at once; b's grant came last.
    let race = |first: &str, second: &str| {
        tale()
            .invoke("a", acquire("a", 1))
            .invoke("b", acquire("b", 1))
            .grants(first, 1, 1, 0)
            .grants(second, 1, 2, 200)
            .ends_ok(0)
            .ends_ok(1)
            .invoke("b", write(None, 1))
            .applies("s", None, 1)
            .invoke("a", write(None, 2))
            .applies("s", None, 2)
    };
    race("b", "a").passes(ZombieWrite);
    race("a", "b").convicts(ZombieWrite, "by a", &[4, 5, 7, 8, 9]);
}

#[test]
fn without_acquires_nothing_is_claimed() {
    tale()
        .applies("s", 2, 1)
        .applies("s", 1, 1)
        .claims_nothing(ZombieWrite, "no acquire");
    tale()
        .acquires("a", 1)
        .claims_nothing(ZombieWrite, "no write");
}

/// a leads, then b, over replicas.
fn two_terms_on_replicas() -> Tale {
    two_terms(true).storage(json!({"quorum": 3}))
}

#[test]
fn each_replica_has_an_order_of_its_own() {
    // s3 lags: a's write comes there before b does, though b has written elsewhere.
    let lagging = |tale: Tale| {
        tale.invoke("a", write(1, 1))
            .invoke("b", write(2, 2))
            .applies("s1", 2, 2)
            .applies("s2", 2, 2)
            .applies("s3", 1, 1)
            .applies("s3", 2, 2)
            .ends_ok(5)
    };
    lagging(two_terms_on_replicas()).passes(ZombieWrite);
    // b's write had been acknowledged, and s3 had no part in it.
    let unheard = |tale: Tale| {
        tale.invoke("a", write(1, 1))
            .ok("b", read(2))
            .applies("s3", 1, 1)
    };
    unheard(two_terms_on_replicas()).passes(ZombieWrite);
    unheard(two_terms(true)).convicts(ZombieWrite, "by a", &[1, 3, 4, 6, 7]);
}

#[test]
fn a_replica_that_took_the_successors_first_takes_no_other() {
    two_terms_on_replicas()
        .invoke("a", write(1, 1))
        .invoke("b", write(2, 2))
        .applies("s1", 2, 2)
        .applies("s1", 1, 1)
        .convicts(ZombieWrite, "by a", &[1, 3, 4, 6, 7]);
    two_terms_on_replicas()
        .invoke("a", write(1, 1))
        .invoke("b", fence(2))
        .takes_fence("s1", 2)
        .applies("s2", 1, 1)
        .applies("s1", 1, 1)
        .convicts(ZombieWrite, "by a", &[1, 3, 4, 6, 8]);
    // Given up by its caller, it lands once on each.
    two_terms_on_replicas()
        .times_out("a", write(1, 1))
        .invoke("b", write(2, 2))
        .applies("s1", 1, 1)
        .applies("s2", 2, 2)
        .applies("s2", 1, 1)
        .convicts(ZombieWrite, "by a", &[1, 3, 4, 8, 9]);
}

#[test]
fn what_a_majority_acknowledged_binds_every_replica() {
    let after = |op: deposed_checkers::history::Op| {
        two_terms_on_replicas()
            .ok("b", op)
            .invoke("a", write(1, 1))
            .applies("s3", 1, 1)
            .ends_ok(6)
    };
    after(write(2, 2)).convicts(ZombieWrite, "by a", &[1, 3, 5, 6, 8]);
    after(fence(2)).convicts(ZombieWrite, "by a", &[1, 3, 5, 6, 8]);
    after(read(None)).passes(ZombieWrite);
}

/// A write without a seq, and a node that applies it.
trait Unnumbered {
    fn puts(self, process: &str, value: Value) -> Self;
    fn applies_value(self, f: F, seq: Option<u64>, value: Option<Value>) -> Self;
}

impl Unnumbered for Tale {
    fn puts(self, process: &str, value: Value) -> Self {
        self.invoke(process, put(value))
    }

    fn applies_value(self, f: F, seq: Option<u64>, value: Option<Value>) -> Self {
        let (lease, token, key) = ("leader".into(), None, "x".into());
        self.saw(
            "s",
            Observation::Applied(Applied {
                f,
                lease,
                token,
                seq,
                key,
                value,
            }),
        )
    }
}

fn put(value: Value) -> Op {
    Op::Write(Write {
        lease: "leader".into(),
        token: None,
        seq: None,
        key: "x".into(),
        value,
    })
}

#[test]
fn a_leader_is_not_its_own_successor() {
    // However often it writes, by its clients' account and by the store's.
    tale()
        .acquires("a", 1)
        .writes("a", 1)
        .writes("a", 1)
        .passes(ZombieWrite);
    tale()
        .invoke("a", acquire("a", 1))
        .grants("a", 1, 1, 0)
        .complete(0, Kind::Ok, Answer::Token(1), None)
        .writes("a", 1)
        .writes("a", 1)
        .passes(ZombieWrite);
}

/// a's grant and b's as the store has them: 1 and 4, answered at 2 and 5.
fn two_terms_of_a_store() -> Tale {
    tale()
        .invoke("a", acquire("a", 1))
        .grants("a", 1, 1, 0)
        .ends_ok(0)
        .invoke("b", acquire("b", 1))
        .grants("b", 1, 2, 200)
        .ends_ok(3)
}

#[test]
fn the_evidence_is_the_successors_first_operation_and_not_a_later_one() {
    two_terms(false)
        .writes("b", None)
        .writes("b", None)
        .writes("a", None)
        .convicts(ZombieWrite, "by a", &[1, 3, 5, 8, 9]);
    two_terms_of_a_store()
        .writes("b", None)
        .writes("b", None)
        .writes("a", None)
        .convicts(ZombieWrite, "by a", &[2, 5, 7, 10, 11]);
}

#[test]
fn each_successor_deposes_all_before_it() {
    let third = |tale: Tale, granted: bool| {
        let call = tale.events.len() as u64;
        let tale = tale.writes("b", None).invoke("c", acquire("c", 1));
        let tale = match granted {
            true => tale.grants("c", 1, 3, 400),
            false => tale,
        };
        tale.ends_ok(call + 2).writes("b", None).writes("c", None)
    };
    for (terms, granted) in [(two_terms(false), false), (two_terms_of_a_store(), true)] {
        third(terms.clone(), granted).passes(ZombieWrite);
        let late = third(terms, granted).writes("b", None);
        let (c, last) = (late.events.len() as u64 - 3, late.events.len() as u64 - 1);
        let (b, answer) = match granted {
            true => (5, 10),
            false => (3, 7),
        };
        late.convicts(ZombieWrite, "a write by b", &[b, answer, c, last - 1, last]);
    }
}

#[test]
fn an_acquire_that_the_store_did_not_grant_leaves_its_process_deposed() {
    // a asks again and is not answered; what the store granted is on record.
    let asked_again = |granted: bool| {
        let tale = two_terms_of_a_store().times_out("a", acquire("a", 9));
        let tale = match granted {
            true => tale.grants("a", 9, 3, 400),
            false => tale,
        };
        let call = tale.events.len() as u64;
        tale.invoke("a", write(None, 1))
            .invoke("b", write(None, 2))
            .applies("s", None, 2)
            .applies("s", None, 1)
            .ends_ok(call)
    };
    asked_again(true).passes(ZombieWrite);
    asked_again(false).convicts(ZombieWrite, "by a", &[2, 5, 8, 10, 11]);
}

#[test]
fn a_grant_that_the_store_did_not_record_is_placed_by_its_calls() {
    // The store recorded what it granted a at first, and not what a leads by.
    tale()
        .times_out("a", acquire("a", 1))
        .grants("a", 1, 1, 0)
        .invoke("b", acquire("b", 1))
        .grants("b", 1, 2, 200)
        .ends_ok(3)
        .writes("b", None)
        .ok("a", acquire("a", 2))
        .writes("a", None)
        .passes(ZombieWrite);
}

#[test]
fn a_node_that_tells_only_of_fences_leaves_writes_to_their_clients() {
    two_terms(true)
        .invoke("b", fence(2))
        .takes_fence("s", 2)
        .ends_ok(4)
        .writes("a", 1)
        .convicts(ZombieWrite, "by a", &[1, 3, 6, 7, 8]);
}

#[test]
fn where_a_node_cannot_tell_whose_write_landed_its_clients_can() {
    // What landed is the same by both, and both are under way.
    let landed = |sent_before: bool| {
        let tale = two_terms(false).invoke("b", write(None, 1));
        let tale = match sent_before {
            true => tale.invoke("a", write(None, 1)).ok("b", write(None, 2)),
            false => tale.ok("b", write(None, 2)).invoke("a", write(None, 1)),
        };
        let call = if sent_before { 5 } else { 7 };
        tale.applies("s", None, 1).ends_ok(call)
    };
    landed(true).passes(ZombieWrite);
    landed(false).convicts(ZombieWrite, "by a", &[1, 3, 6, 7, 9]);
}

#[test]
fn a_write_that_was_given_up_lands_once_and_takes_no_other_along() {
    // Without seqs, values tell writes apart.
    let given_up = |second: Value| {
        two_terms(false)
            .times_out("a", put(json!("1")))
            .puts("a", second)
            .applies_value(F::Write, None, Some(json!("1")))
            .puts("b", json!("2"))
            .applies_value(F::Write, None, Some(json!("2")))
            .ends_ok(8)
    };
    given_up(json!("3")).passes(ZombieWrite);
    given_up(json!("3"))
        .applies_value(F::Write, None, Some(json!("3")))
        .convicts(ZombieWrite, "by a", &[1, 3, 6, 9, 11]);
    // It was given up after it was known to be under way, and is not who else is.
    two_terms(false)
        .times_out("a", put(json!("1")))
        .applies_value(F::Write, None, Some(json!("1")))
        .puts("a", json!("1"))
        .puts("b", json!("2"))
        .applies_value(F::Write, None, Some(json!("2")))
        .applies_value(F::Write, None, Some(json!("1")))
        .convicts(ZombieWrite, "by a", &[1, 3, 7, 9, 10]);
    // That another's was answered leaves it under way.
    two_terms(false)
        .puts("a", json!("1"))
        .puts("b", json!("2"))
        .applies_value(F::Write, None, Some(json!("2")))
        .ends_ok(5)
        .applies_value(F::Write, None, Some(json!("1")))
        .convicts(ZombieWrite, "by a", &[1, 3, 4, 6, 8]);
}

#[test]
fn what_leaves_nothing_behind_lands_like_any_write() {
    let deleted = || {
        let Op::Delete(mut op) = delete(1) else {
            unreachable!()
        };
        op.token = None;
        Op::Delete(op)
    };
    for (op, f, seq) in [
        (deleted(), F::Delete, Some(1)),
        (put(json!(null)), F::Write, None),
    ] {
        two_terms(false)
            .invoke("a", op)
            .invoke("b", write(None, 2))
            .applies("s", None, 2)
            .applies_value(f, seq, None)
            .convicts(ZombieWrite, "by a", &[1, 3, 4, 6, 7]);
    }
}

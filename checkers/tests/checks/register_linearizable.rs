use deposed_checkers::history::{
    Answer, Applied, Delete, F, Failure, Kind, Observation, Op, Write,
};
use deposed_checkers::judge::judge;
use deposed_checkers::verdict::{Check, Check::RegisterLinearizable, Verdict};
use serde_json::{Value, json};

use crate::tale::*;

trait Register {
    fn reads(self, process: &str, value: Value) -> Self;
    fn ends_reading(self, call: u64, value: Value) -> Self;
    fn cannot_tell(&self, words: &str);
}

impl Register for Tale {
    fn reads(self, process: &str, value: Value) -> Self {
        let call = self.events.len() as u64;
        self.invoke(process, read(None)).ends_reading(call, value)
    }

    fn ends_reading(self, call: u64, value: Value) -> Self {
        self.complete(call, Kind::Ok, Answer::Value(value), None)
    }

    fn cannot_tell(&self, words: &str) {
        let verdicts = judge(&self.header, &self.events);
        let Some(Verdict::Unknown(why)) = verdicts.of(RegisterLinearizable) else {
            panic!("{verdicts:?}")
        };
        assert!(why.contains(words), "{why}");
    }
}

fn deleted(seq: u64) -> Op {
    Op::Delete(Delete {
        lease: "leader".into(),
        token: Some(1),
        seq: Some(seq),
        key: "x".into(),
    })
}

/// A write without a seq.
fn put(value: Value) -> Op {
    Op::Write(Write {
        lease: "leader".into(),
        token: None,
        seq: None,
        key: "x".into(),
        value,
    })
}

fn fails(tale: Tale, call: u64) -> Tale {
    let error = Some(Failure::new("connection-refused"));
    tale.complete(call, Kind::Fail, Answer::None, error)
}

#[test]
fn a_read_sees_the_last_write() {
    tale()
        .reads("r", json!(null))
        .ok("a", write(1, 1))
        .reads("r", json!(1))
        .ok("a", write(1, 2))
        .reads("r", json!(2))
        .ok("a", deleted(3))
        .reads("r", json!(null))
        .passes(RegisterLinearizable);
}

#[test]
fn a_stale_read_is_told_with_what_had_taken_its_place() {
    let written = || tale().ok("a", write(1, 1)).ok("a", write(1, 2));
    let evidence = written().reads("r", json!(1)).convicts(
        RegisterLinearizable,
        "overwritten",
        &[1, 2, 3, 4, 5],
    );
    assert_eq!(
        evidence.sentence,
        "r read 1 of x, which a had overwritten with 2 before the read began"
    );
    assert_eq!(evidence.culprit, 5);
    assert_eq!(evidence.expected, "2, or what was written later");
    // Of many stale reads the first is told, however far back its value.
    (3..40)
        .fold(written(), |tale, seq| tale.ok("a", write(1, seq)))
        .reads("r", json!(1))
        .reads("r", json!(1))
        .convicts(RegisterLinearizable, "with 2 before", &[1, 2, 3, 78, 79]);
    tale()
        .ok("a", write(1, 1))
        .ok("a", deleted(2))
        .reads("r", json!(1))
        .reads("r", json!(1))
        .convicts(
            RegisterLinearizable,
            "which a had deleted",
            &[1, 2, 3, 4, 5],
        );
    // Neither write was answered; what was read tells.
    tale()
        .times_out("a", write(1, 1))
        .times_out("a", write(1, 2))
        .reads("r", json!(1))
        .reads("q", json!(2))
        .reads("r", json!(1))
        .convicts(
            RegisterLinearizable,
            "though q had read 2 of it since",
            &[5, 6, 7, 8, 9],
        );
    tale()
        .times_out("a", write(1, 1))
        .times_out("a", deleted(2))
        .reads("r", json!(1))
        .reads("q", json!(null))
        .reads("r", json!(1))
        .convicts(
            RegisterLinearizable,
            "though q had found it absent since",
            &[5, 6, 7, 8, 9],
        );
}

#[test]
fn a_write_that_takes_effect_twice_is_found_out() {
    let twice = || {
        tale()
            .ok("a", write(1, 1))
            .ok("a", write(1, 2))
            .reads("a", json!(2))
    };
    twice().reads("a", json!(2)).passes(RegisterLinearizable);
    twice()
        .reads("a", json!(1))
        .convicts(RegisterLinearizable, "a read 1 of x", &[1, 2, 3, 6, 7]);
}

#[test]
fn what_nobody_wrote_cannot_be_read() {
    let evidence = tale().reads("r", json!("seven")).convicts(
        RegisterLinearizable,
        "nobody had written",
        &[0, 1],
    );
    assert_eq!(
        evidence.sentence,
        "r read seven of x, which nobody had written by then"
    );
    // It was written once the read had ended.
    tale().reads("r", json!(1)).ok("a", write(1, 1)).convicts(
        RegisterLinearizable,
        "nobody had written",
        &[0, 1],
    );
    // A text is not a number.
    tale()
        .ok("a", put(json!("1")))
        .reads("r", json!(1))
        .convicts(RegisterLinearizable, "nobody had written", &[2, 3]);
}

#[test]
fn concurrent_operations_may_come_in_any_order() {
    // Both writes are open, and the read is: either value, and then the other.
    let open = || {
        tale()
            .invoke("a", write(1, 1))
            .invoke("b", write(2, 2))
            .invoke("r", read(None))
    };
    for value in [json!(null), json!(1), json!(2)] {
        open()
            .ends_reading(2, value)
            .ends_ok(0)
            .ends_ok(1)
            .passes(RegisterLinearizable);
    }
    let seen = |first: u64, then: u64| {
        open()
            .ends_ok(0)
            .ends_ok(1)
            .ends_reading(2, json!(first))
            .reads("r", json!(then))
    };
    seen(1, 2).passes(RegisterLinearizable);
    seen(2, 1).passes(RegisterLinearizable);
    seen(2, 1).reads("r", json!(2)).convicts(
        RegisterLinearizable,
        "though r had read 1 of it since",
        &[4, 6, 7, 8, 9],
    );
}

#[test]
fn a_deposed_leaders_late_read_is_fine_where_an_order_explains_it() {
    let paused = || {
        tale()
            .ok("a", write(1, 1))
            .invoke("a", read(1))
            .ok("b", write(2, 2))
    };
    paused()
        .ends_reading(2, json!(1))
        .passes(RegisterLinearizable);
    paused()
        .ends_reading(2, json!(2))
        .passes(RegisterLinearizable);
    paused()
        .ends_reading(2, json!(2))
        .reads("b", json!(1))
        .convicts(RegisterLinearizable, "b read 1", &[1, 3, 4, 6, 7]);
}

#[test]
fn a_write_without_an_answer_takes_effect_late_or_never() {
    let unanswered = || tale().times_out("a", write(1, 1)).ok("b", write(2, 2));
    unanswered()
        .reads("r", json!(2))
        .passes(RegisterLinearizable);
    let late = || unanswered().reads("r", json!(2)).reads("r", json!(1));
    late().reads("r", json!(1)).passes(RegisterLinearizable);
    late().reads("r", json!(2)).convicts(
        RegisterLinearizable,
        "though r had read 1",
        &[3, 6, 7, 8, 9],
    );
    // One that is still open at the end, too.
    tale()
        .invoke("a", write(1, 1))
        .reads("r", json!(null))
        .reads("r", json!(1))
        .passes(RegisterLinearizable);
}

#[test]
fn a_write_that_failed_did_not_happen() {
    let refused = || tale().stale("a", write(1, 1), 2);
    refused()
        .reads("r", json!(null))
        .passes(RegisterLinearizable);
    refused()
        .reads("r", json!(1))
        .convicts(RegisterLinearizable, "nobody had written", &[2, 3]);
    let read_first = tale().invoke("a", write(1, 1)).reads("r", json!(1));
    fails(read_first, 0).convicts(RegisterLinearizable, "its write by a failed", &[0, 1, 2, 3]);
    // Nor did it while another try of it came too late to have been read.
    let tried_again = tale()
        .invoke("a", write(1, 1))
        .reads("r", json!(1))
        .invoke("a", write(1, 1));
    fails(tried_again, 0).ends_ok(3).convicts(
        RegisterLinearizable,
        "its write by a failed",
        &[0, 1, 2, 4],
    );
    // Of a delete, likewise: only the other try can be what a read saw.
    let tried = || tale().ok("a", write(1, 1)).invoke("a", deleted(2));
    fails(tried().invoke("a", deleted(2)), 2)
        .ends_ok(3)
        .reads("r", json!(null))
        .passes(RegisterLinearizable);
    let read_between = tried().reads("r", json!(null)).invoke("a", deleted(2));
    fails(read_between, 2).ends_ok(5).convicts(
        RegisterLinearizable,
        "found x absent",
        &[0, 1, 3, 4],
    );
    let deleted_not = tale().ok("a", write(1, 1)).invoke("a", deleted(2));
    fails(deleted_not, 2).reads("r", json!(null)).convicts(
        RegisterLinearizable,
        "found x absent",
        &[0, 1, 4, 5],
    );
}

#[test]
fn tries_under_one_seq_are_one_write() {
    let tried = || tale().times_out("a", write(1, 1));
    tried()
        .ok("a", write(1, 1))
        .reads("r", json!(1))
        .passes(RegisterLinearizable);
    // The first try took effect, the retry's answer is that one's.
    tried()
        .reads("r", json!(1))
        .ok("b", write(2, 1_000))
        .ok("a", write(1, 1))
        .reads("r", json!(1_000))
        .passes(RegisterLinearizable);
    tried()
        .ok("a", write(1, 1))
        .ok("b", write(2, 1_000))
        .ok("a", write(1, 1))
        .reads("r", json!(1_000))
        .passes(RegisterLinearizable);
    // All that was tried had failed, and the next try is as good as the first.
    fails(tale().invoke("a", write(1, 1)), 0)
        .ok("a", write(1, 1))
        .reads("r", json!(1))
        .passes(RegisterLinearizable);
    fails(tale().ok("a", write(1, 1)).invoke("a", deleted(2)), 2)
        .ok("a", deleted(2))
        .reads("r", json!(null))
        .passes(RegisterLinearizable);
    // Once one try was answered, the next one's answer is that one's.
    fails(tale().invoke("a", write(1, 1)), 0)
        .ok("a", write(1, 1))
        .ok("b", write(2, 2))
        .ok("a", write(1, 1))
        .reads("r", json!(2))
        .passes(RegisterLinearizable);
    fails(tale().invoke("a", deleted(1)), 0)
        .ok("a", deleted(1))
        .ok("b", write(2, 2))
        .ok("a", deleted(1))
        .reads("r", json!(2))
        .passes(RegisterLinearizable);
    // The retry failed; the first try may have happened.
    let failed = tried().invoke("a", write(1, 1));
    fails(failed, 2)
        .reads("r", json!(1))
        .passes(RegisterLinearizable);
    // A delete, likewise: it serves one absence.
    let gone = || {
        tale()
            .ok("a", write(1, 1))
            .times_out("a", deleted(2))
            .ok("a", deleted(2))
            .reads("r", json!(null))
    };
    gone().passes(RegisterLinearizable);
    gone()
        .ok("a", write(1, 3))
        .reads("r", json!(null))
        .convicts(RegisterLinearizable, "no delete can", &[8, 9, 10, 11]);
}

#[test]
fn absence_needs_a_delete_that_can_have_come_in_between() {
    let evidence = tale()
        .ok("a", write(1, 1))
        .reads("r", json!(null))
        .convicts(RegisterLinearizable, "found x absent", &[0, 1, 2, 3]);
    assert_eq!(
        evidence.sentence,
        "r found x absent, though 1 was there and no delete can have come in between"
    );
    assert_eq!(evidence.expected, "1, or what was written later");
    // One delete that was never answered serves one absence.
    let once = || {
        tale()
            .times_out("a", deleted(1))
            .ok("a", write(1, 2))
            .reads("r", json!(null))
    };
    once().reads("r", json!(null)).passes(RegisterLinearizable);
    once()
        .ok("a", write(1, 3))
        .reads("r", json!(null))
        .convicts(RegisterLinearizable, "though 3 was there", &[6, 7, 8, 9]);
    // The value that was there before stays until after.
    tale()
        .ok("a", write(1, 1))
        .invoke("r", read(None))
        .ok("a", write(1, 2))
        .reads("q", json!(2))
        .ends_reading(2, json!(null))
        .reads("q", json!(2))
        .convicts(RegisterLinearizable, "was there", &[0, 1, 2, 4, 7, 8]);
    // A written null is a delete.
    tale()
        .ok("a", write(1, 1))
        .ok("a", put(json!(null)))
        .reads("r", json!(null))
        .passes(RegisterLinearizable);
}

#[test]
fn values_are_told_apart_or_nothing_is() {
    let again = tale().ok("a", put(json!(1))).ok("a", put(json!(1)));
    again
        .clone()
        .reads("r", json!(1))
        .cannot_tell("1 is written to x again");
    // Once it is surely overwritten it may come again.
    tale()
        .ok("a", put(json!(1)))
        .ok("a", put(json!(2)))
        .ok("a", put(json!(1)))
        .reads("r", json!(1))
        .passes(RegisterLinearizable);
    // One that was never answered is overwritten once it was read.
    tale()
        .times_out("a", put(json!(1)))
        .reads("r", json!(1))
        .ok("a", put(json!(2)))
        .ok("a", put(json!(1)))
        .reads("r", json!(1))
        .passes(RegisterLinearizable);
    // One seq, two writes.
    tale()
        .ok("a", write(1, 1))
        .ok("a", deleted(1))
        .reads("r", json!(1))
        .cannot_tell("seq 1 under token 1 does not rise");
    tale()
        .ok("a", write(1, 2))
        .ok("a", write(1, 1))
        .cannot_tell("seq 1 under token 1 does not rise");
}

#[test]
fn keys_and_leases_are_registers_of_their_own() {
    let elsewhere = |change: fn(&mut Write)| {
        let mut tale = tale()
            .ok("a", write(1, 1))
            .ok("a", write(1, 2))
            .reads("r", json!(1));
        let deposed_checkers::history::Body::Invoke(Op::Write(op)) = &mut tale.events[2].body
        else {
            panic!()
        };
        change(op);
        tale
    };
    elsewhere(|op| op.key = "y".into()).passes(RegisterLinearizable);
    elsewhere(|op| op.lease = "other".into()).passes(RegisterLinearizable);
}

#[test]
fn without_a_read_nothing_is_claimed() {
    tale()
        .ok("a", write(1, 1))
        .claims_nothing(RegisterLinearizable, "no read was answered");
    // A read that says nothing of what it found is none.
    tale()
        .ok("r", read(None))
        .claims_nothing(Check::RegisterLinearizable, "no read was answered");
}

#[test]
fn what_was_overwritten_long_before_is_not_told_from_what_never_was() {
    let long = || (1..=16_400).fold(tale(), |tale, seq| tale.ok("a", write(1, seq)));
    long()
        .reads("r", json!(16_400))
        .passes(RegisterLinearizable);
    long().reads("r", json!(1)).convicts(
        RegisterLinearizable,
        "overwritten long before, or never written",
        &[32_800, 32_801],
    );
    long().reads("r", json!(16_000)).convicts(
        RegisterLinearizable,
        "which a had overwritten with 16001",
        &[31_999, 32_000, 32_001, 32_800, 32_801],
    );
}

/// Told by the read that no order explains, with what was there in between; whether or
/// not another read is open all the while, so that nothing is settled before the end.
#[test]
fn of_two_values_that_take_turns_the_one_that_is_read_last_is_stale() {
    let open = |waits: bool| {
        let unanswered = |tale: Tale| tale.times_out("a", write(1, 1)).times_out("b", write(2, 2));
        match waits {
            true => unanswered(tale().invoke("z", read(None))),
            false => unanswered(tale().nemesis("noted", json!(null))),
        }
    };
    for waits in [true, false] {
        // One within the other.
        let evidence = open(waits)
            .reads("r", json!(1))
            .reads("q", json!(2))
            .reads("q", json!(2))
            .reads("r", json!(1))
            .convicts(
                RegisterLinearizable,
                "though q had read 2 of it since, before the read began",
                &[6, 7, 8, 11, 12],
            );
        assert_eq!(evidence.culprit, 12);
        // Up to the last read, 2 can have been there before 1.
        let evidence = open(waits)
            .invoke("q", read(None))
            .reads("r", json!(1))
            .ends_reading(5, json!(2))
            .reads("r", json!(1))
            .reads("q", json!(2))
            .convicts(
                RegisterLinearizable,
                "q read 2 of x, though r had read 1 of it since, before the read began",
                &[8, 9, 10, 11, 12],
            );
        assert_eq!(evidence.culprit, 12);
        // No single read lies between: the value's first had ended, its last begun.
        open(waits)
            .invoke("q", read(None))
            .reads("r", json!(1))
            .ends_reading(5, json!(2))
            .invoke("q", read(None))
            .invoke("r", read(None))
            .ends_reading(9, json!(2))
            .ends_reading(10, json!(1))
            .convicts(
                RegisterLinearizable,
                "r read 1 of x, though 2 had taken its place before the read began",
                &[7, 8, 9, 10, 11, 12],
            );
    }
}

/// Of many stale reads the first is told, whatever is still open.
#[test]
fn an_open_call_does_not_hide_the_first_stale_read() {
    // A write that was answered is tried again, and nothing is answered to that.
    tale()
        .ok("a", write(1, 1))
        .invoke("a", write(1, 1))
        .ok("b", write(2, 2))
        .reads("r", json!(1))
        .reads("r", json!(1))
        .convicts(RegisterLinearizable, "with 2", &[1, 3, 4, 5, 6]);
    // The write itself has no answer yet.
    tale()
        .ok("b", write(2, 2))
        .invoke("a", write(1, 1))
        .reads("r", json!(1))
        .reads("r", json!(2))
        .reads("r", json!(1))
        .reads("r", json!(1))
        .convicts(
            RegisterLinearizable,
            "though r had read 2 of it since",
            &[4, 5, 6, 7, 8],
        );
}

#[test]
fn an_answer_to_a_write_that_is_over_is_none_to_the_next_of_its_value() {
    tale()
        .times_out("a", write(1, 1))
        .invoke("b", write(2, 2))
        .reads("r", json!(1))
        .ends_ok(2)
        .invoke("a", write(1, 1))
        .reads("r", json!(2))
        .invoke("c", put(json!(1)))
        .ends_ok(6)
        .reads("r", json!(2))
        .reads("r", json!(1))
        .passes(RegisterLinearizable);
}

#[test]
fn the_newest_value_that_was_there_before_is_held_against_absence() {
    tale()
        .ok("a", write(1, 1))
        .ok("a", write(1, 2))
        .reads("r", json!(null))
        .convicts(RegisterLinearizable, "though 2 was there", &[2, 3, 4, 5]);
    // The newer may have come after the read.
    tale()
        .ok("a", write(1, 1))
        .invoke("a", write(1, 2))
        .invoke("r", read(None))
        .ends_ok(2)
        .ends_reading(3, json!(null))
        .convicts(RegisterLinearizable, "though 1 was there", &[0, 1, 3, 5]);
}

#[test]
fn a_write_that_is_answered_at_its_second_try_took_effect_at_either() {
    let tried = || tale().times_out("a", write(1, 1));
    // At the first, and was deleted.
    tried()
        .ok("b", deleted(2))
        .reads("r", json!(null))
        .ok("a", write(1, 1))
        .reads("r", json!(null))
        .passes(RegisterLinearizable);
    // The key was absent before and after: at neither.
    tried()
        .reads("r", json!(null))
        .ok("a", write(1, 1))
        .reads("r", json!(null))
        .convicts(RegisterLinearizable, "though 1 was there", &[0, 5, 6, 7]);
}

/// Without a seq no two are tries of one.
#[test]
fn a_delete_without_a_seq_is_one_by_itself() {
    let gone = || {
        Op::Delete(Delete {
            lease: "leader".into(),
            token: None,
            seq: None,
            key: "x".into(),
        })
    };
    let deleted = || tale().ok("a", write(1, 1)).ok("a", gone());
    deleted()
        .reads("r", json!(null))
        .passes(RegisterLinearizable);
    deleted().reads("r", json!(1)).convicts(
        RegisterLinearizable,
        "which a had deleted",
        &[1, 2, 3, 4, 5],
    );
    // Not answered, it may have happened; failed, not.
    tale()
        .ok("a", write(1, 1))
        .times_out("a", gone())
        .reads("r", json!(null))
        .passes(RegisterLinearizable);
    let refused = tale().ok("a", write(1, 1)).invoke("a", gone());
    fails(refused, 2).reads("r", json!(null)).convicts(
        RegisterLinearizable,
        "found x absent",
        &[0, 1, 4, 5],
    );
}

#[test]
fn only_an_answer_that_is_ok_was_read() {
    for kind in [Kind::Fail, Kind::Info] {
        for value in [json!(null), json!(7)] {
            tale()
                .ok("a", write(1, 1))
                .invoke("r", read(None))
                .complete(2, kind, Answer::Value(value), None)
                .reads("r", json!(1))
                .passes(RegisterLinearizable);
        }
    }
}

#[test]
fn what_storage_applied_between_the_write_and_the_read_is_shown() {
    let applied = |key: &str| {
        let (f, lease, key) = (F::Delete, "leader".into(), key.into());
        Observation::Applied(Applied {
            f,
            lease,
            token: Some(1),
            seq: Some(1),
            key,
            value: None,
        })
    };
    let between = |tale: Tale| {
        let tale = tale.ok("a", write(1, 1)).saw("s", applied("x"));
        tale.saw("s", applied("y")).reads("r", json!(null))
    };
    let evidence =
        between(tale()).convicts(RegisterLinearizable, "found x absent", &[0, 1, 2, 4, 5]);
    assert!(
        evidence
            .sentence
            .ends_with("come in between; s applied a delete with token 1 at 0.002s"),
        "{}",
        evidence.sentence
    );
    // What came before the write was answered, or after the read, tells nothing.
    tale()
        .invoke("a", write(1, 1))
        .saw("s", applied("x"))
        .ends_ok(0)
        .reads("r", json!(null))
        .saw("s", applied("x"))
        .convicts(RegisterLinearizable, "found x absent", &[0, 2, 3, 4]);
}

//! Which model a history is of, and lines that fit none.

use deposed_checkers::budget::Budget;
use deposed_checkers::model::{JudgeError, Model};

use crate::{complains, judged, try_judge};

#[test]
fn the_first_operations_tell_the_model() {
    let table = [
        ("1 invoke acquire\n1 ok acquire", Model::Mutex),
        ("1 invoke release\n1 fail release", Model::Mutex),
        ("1 invoke acquire\n1 ok acquire 3", Model::FencedMutex),
        (
            "1 invoke read\n1 ok read 3\n2 invoke write 3",
            Model::Register,
        ),
        (
            "1 invoke read\n1 ok read nil\n2 invoke cas [1 2]",
            Model::CasRegister,
        ),
        ("1 invoke get\n1 ok get nil", Model::Kv),
    ];
    for (text, model) in table {
        assert_eq!(judged(text, None).model, model, "{text}");
    }
}

/// Past what is read ahead, a cas makes a register one with cas, if it was not named.
#[test]
fn a_cas_may_come_late() {
    let reads = "1 invoke read\n1 ok read nil\n".repeat(600);
    let text = format!("{reads}1 invoke cas [nil 1]\n1 ok cas [nil 1]");
    assert_eq!(judged(&text, None).model, Model::CasRegister);
    complains(
        &text,
        Some(Model::Register),
        "1201:1: cas is no operation of a register, which has read, write: name the model \
         cas-register",
    );
}

#[test]
fn a_lease_is_left_to_the_lease_checks() {
    for text in [
        "1 invoke acquire\n1 ok acquire 1\n1 invoke renew",
        "1 invoke acquire\n1 invoke fence",
        "1 invoke acquire\n2 invoke write 3",
    ] {
        let model = if text.contains("ok") {
            Some(Model::Lease)
        } else {
            None
        };
        let error = try_judge(text, model, Budget::default()).unwrap_err();
        assert!(matches!(error, JudgeError::Lease), "{error}");
    }
}

#[test]
fn operations_that_no_model_knows_are_named() {
    complains(
        "1 invoke txn nil",
        None,
        "1:1: txn is an operation of no model",
    );
    complains(
        "1 invoke read\n1 ok read nil\n1 invoke add 3",
        Some(Model::Register),
        "3:1: add is no operation of a register",
    );
    let error = try_judge("nemesis info start", None, Budget::default()).unwrap_err();
    assert!(matches!(error, JudgeError::NoModel), "{error}");
}

#[test]
fn lines_of_the_nemesis_are_skipped() {
    let text = "nemesis info start\n1 invoke read\nnemesis invoke crash\nnemesis ok crash\n\
                1 ok read nil\n7 info stopped";
    assert_eq!(judged(text, None).calls, 1);
}

#[test]
fn lines_that_do_not_pair_are_errors() {
    let register = Some(Model::Register);
    complains(
        "1 invoke read\n1 invoke read",
        register,
        "2:1: process 1 begins read while its read at index 0 is under way",
    );
    complains(
        "1 ok read 3",
        register,
        "1:1: process 1 completes read, which it never began",
    );
    complains(
        "1 invoke read\n1 ok write 3",
        register,
        "2:1: process 1 completes write, and what it began at index 0 is read",
    );
    complains(
        "1 invoke cas 3",
        Some(Model::CasRegister),
        "cas needs a pair [from to], and has 3",
    );
}

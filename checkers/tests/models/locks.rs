//! Locks: by anybody, by their holder, with tokens.

use std::convert::Infallible;

use deposed_checkers::budget::Budget;
use deposed_checkers::import::Value;
use deposed_checkers::model::Model::{FencedMutex, Mutex, OwnedMutex};
use deposed_checkers::model::judge;
use deposed_checkers::verdict::{Check, Verdict};

use crate::{complains, convicts, history, passes, verdict};

const HANDED_OVER: &str = "1 invoke acquire\n1 ok acquire\n2 invoke acquire\n1 invoke release\n\
                           1 ok release\n2 ok acquire";

#[test]
fn a_lock_is_held_by_one_at_a_time() {
    for model in [Mutex, OwnedMutex, FencedMutex] {
        passes(HANDED_OVER, model);
    }
    let both = "1 invoke acquire\n1 ok acquire\n2 invoke acquire\n2 ok acquire";
    convicts(
        both,
        Mutex,
        "process 2 acquired the lock, which process 1 had acquired, and no release",
        &[0, 1, 2, 3],
    );
    convicts(
        both,
        OwnedMutex,
        "process 2 acquired the lock while process 1 held it",
        &[0, 1, 2, 3],
    );
}

/// Without owners, anybody's release may come in between; with them, the holder's alone.
#[test]
fn a_release_under_way_frees_the_lock() {
    let freed_by = |process| {
        format!(
            "1 invoke acquire\n1 ok acquire\n{process} invoke release\n2 invoke acquire\n\
             2 ok acquire"
        )
    };
    passes(&freed_by(1), Mutex);
    passes(&freed_by(3), Mutex);
    passes(&freed_by(1), OwnedMutex);
    convicts(
        &freed_by(3),
        OwnedMutex,
        "while process 1 held it",
        &[0, 1, 3, 4],
    );
}

#[test]
fn a_release_that_failed_frees_nothing() {
    let text = "1 invoke acquire\n1 ok acquire\n1 invoke release\n2 invoke acquire\n\
                2 ok acquire\n1 fail release";
    convicts(
        text,
        Mutex,
        "as one of process 1 failed",
        &[0, 1, 2, 3, 4, 5],
    );
    convicts(
        text,
        OwnedMutex,
        "whose release failed",
        &[0, 1, 2, 3, 4, 5],
    );
    let lost = text.replace("fail", "info");
    passes(&lost, Mutex);
    passes(&lost, OwnedMutex);
}

/// What was made on credit is claimed by the operation that was under way then.
#[test]
fn an_acquire_that_was_never_answered_may_explain_one_release() {
    let one = "1 invoke acquire\n1 info acquire\n2 invoke release\n2 ok release";
    passes(one, Mutex);
    let two = format!("{one}\n3 invoke release\n3 ok release");
    convicts(
        &two,
        Mutex,
        "process 3 released the lock: that is the last of 2 that released it, and only one \
         acquire can have come before",
        &[0, 2, 3, 4, 5],
    );
}

/// However many had held it before and let it go, two that hold it at once are shown.
#[test]
fn who_let_go_before_is_left_out() {
    let mut lines = vec!["0 invoke acquire".to_owned(), "0 ok acquire".to_owned()];
    for turn in 0..400 {
        let (now, next) = (turn % 3, (turn + 1) % 3);
        lines.extend([
            format!("{next} invoke acquire"),
            format!("{now} invoke release"),
            format!("{next} ok acquire"),
            format!("{now} ok release"),
        ]);
    }
    passes(&lines.join("\n"), Mutex);
    lines.extend(["7 invoke acquire", "7 ok acquire"].map(str::to_owned));
    let both = convicts(
        &lines.join("\n"),
        Mutex,
        "process 7 acquired the lock, which process 1 had acquired, and no release",
        &[1598, 1600, 1602, 1603],
    );
    assert!(
        both.sentence.ends_with("of its own process"),
        "{}",
        both.sentence
    );
}

/// What was under way when the two began could have come in between, but for a third.
#[test]
fn a_release_that_could_come_in_between_is_told_of() {
    let text = "1 invoke acquire\n1 ok acquire\n1 invoke release\n2 invoke acquire\n\
                2 ok acquire\n3 invoke acquire\n3 ok acquire\n1 ok release";
    convicts(
        text,
        Mutex,
        "and no release is left to come in between: the one that could is needed by another \
         acquire, of its own process",
        &[3, 4, 5, 6],
    );
    let text = text.replace("1 invoke release", "4 invoke release");
    convicts(
        &text.replace("1 ok release", "4 ok release"),
        Mutex,
        "that is the last of 3 that acquired it, and only one release can have come in between",
        &[0, 1, 2, 3, 4, 5, 6],
    );
}

/// Each release can lie in one place alone, so that counting those of one stretch of time
/// shows nothing.
#[test]
fn one_release_does_not_explain_two_pairs_of_acquires() {
    let pair = |f: &str| format!("1 invoke {f}\n2 invoke {f}\n1 ok {f}\n2 ok {f}\n");
    let open = "3 invoke release\n4 invoke acquire\n";
    let text = [open, &pair("acquire"), &pair("release"), &pair("acquire")].concat();
    convicts(
        &text,
        Mutex,
        "process 2 acquired the lock: no order explains the 4 operations shown",
        &[2, 3, 4, 5, 10, 11, 12, 13],
    );
    // Another release may have been one of those.
    passes(
        &text.replace(open, &format!("{open}5 invoke release\n")),
        Mutex,
    );
}

/// What began after a release cannot explain it, once what began before has failed.
#[test]
fn a_later_acquire_does_not_explain_an_earlier_release() {
    let before =
        "1 invoke acquire\n3 invoke acquire\n2 invoke release\n2 ok release\n1 fail acquire";
    passes(before, Mutex);
    let after =
        "1 invoke acquire\n2 invoke release\n2 ok release\n3 invoke acquire\n1 fail acquire";
    convicts(
        after,
        Mutex,
        "process 2 released the lock, and no acquire can have come before, as one of process 1 \
         failed",
        &[0, 1, 2, 4],
    );
}

#[test]
fn only_the_holder_releases() {
    let text = "1 invoke acquire\n1 ok acquire\n2 invoke release\n2 ok release";
    passes(text, Mutex);
    convicts(
        text,
        OwnedMutex,
        "process 2 released the lock, which it had not acquired",
        &[2, 3],
    );
    let again = "1 invoke acquire\n1 ok acquire\n1 invoke release\n1 ok release\n\
                 1 invoke release\n1 ok release";
    convicts(
        again,
        OwnedMutex,
        "process 1 released the lock again",
        &[2, 3, 4, 5],
    );
}

#[test]
fn tokens_rise() {
    let with = |first: &str, second: &str| {
        format!(
            "1 invoke acquire\n1 ok acquire {first}\n1 invoke release\n1 ok release\n\
             2 invoke acquire\n2 ok acquire {second}"
        )
    };
    passes(&with("7", "8"), FencedMutex);
    passes(&with("7", "nil"), FencedMutex);
    for second in ["7", "5"] {
        convicts(
            &with("7", second),
            FencedMutex,
            &format!("process 2 acquired the lock with token {second}, though process 1"),
            &[0, 1, 4, 5],
        );
    }
    // A lock without tokens makes no promise of them.
    passes(&with("7", "5"), OwnedMutex);
}

#[test]
fn locks_are_told_apart_by_their_keys() {
    let of = |key| {
        format!(
            "1 invoke acquire [a nil]\n1 ok acquire [a nil]\n2 invoke acquire [{key} nil]\n\
             2 ok acquire [{key} nil]"
        )
        .replace('a', "\"a\"")
        .replace("\"a\"cquire", "acquire")
    };
    passes(&of("4"), OwnedMutex);
    convicts(
        &of("a"),
        OwnedMutex,
        "process 2 acquired lock a while",
        &[0, 1, 2, 3],
    );
}

/// Who holds the lock is not known once a process goes on after an answer that never came.
#[test]
fn an_owner_does_not_go_on_after_a_lost_answer() {
    let text = "1 invoke acquire\n1 info acquire\n1 invoke release\n1 ok release";
    complains(
        text,
        Some(OwnedMutex),
        "3:1: process 1 goes on after a call",
    );
    passes(text, Mutex);
}

#[test]
fn where_nothing_was_answered_nothing_is_claimed() {
    let text = "1 invoke acquire\n1 fail acquire";
    assert_eq!(verdict(text, Mutex).word(), "not-claimed");
}

/// A lock whose tokens were passed over would be judged as one without.
#[test]
fn a_token_that_cannot_be_read_is_refused() {
    let number = |text: &str| Value::Number(text.into());
    let text = |text: &str| Value::Text(text.into());
    for (apart, value) in [
        (None, text("9")),
        (None, number("9.0")),
        (None, Value::Map([("fence".into(), text("9"))].into())),
        (Some(number("99999999999999999999999")), Value::Nil),
        (Some(text("abc")), Value::Nil),
        (Some(number("5.5")), Value::Nil),
        // A recorder's -1 for none is no token either: it must not be compared with one.
        (None, Value::Int(-1)),
        (Some(Value::Int(-1)), Value::Nil),
        (None, Value::List(vec![text("lock"), Value::Int(-7)])),
        (None, Value::List(vec![text("lock"), number("1e3")])),
        (None, Value::Tagged("t".into(), Box::new(number("0.5")))),
        (
            None,
            Value::Map([("token".into(), Value::Int(i64::MIN))].into()),
        ),
    ] {
        for model in [None, Some(FencedMutex)] {
            let mut lines = history("1 invoke acquire\n1 ok acquire");
            lines[1].token = apart.clone();
            lines[1].value = value.clone();
            let lines = lines.into_iter().map(Ok::<_, Infallible>);
            let said = match judge(lines, model, Budget::default()) {
                Ok(judged) => panic!("judged as {}", judged.model),
                Err(error) => error.to_string(),
            };
            let token = apart.as_ref().unwrap_or(&value);
            assert!(said.contains("is no fencing token"), "{token}: {said}");
        }
    }
}

/// Times are not what is judged, and are not called well-formed where they go back.
#[test]
fn times_that_go_back_are_told() {
    let mut lines = history("1 invoke write 1\n1 ok write 1");
    (lines[0].time, lines[1].time) = (Some(5), Some(3));
    let lines = lines.into_iter().map(Ok::<_, Infallible>);
    let judged = judge(lines, None, Budget::default()).expect("a history");
    let verdict = judged.verdicts.of(Check::WellFormed);
    assert!(
        matches!(verdict, Some(Verdict::NotClaimed(why)) if why.contains("goes back on line 2")),
        "{verdict:?}"
    );
}

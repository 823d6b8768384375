use deposed_checkers::history::{Answer, Body, F, Kind};
use deposed_checkers::judge::judge;
use deposed_checkers::verdict::Check::{StorageSafety, WellFormed};
use deposed_checkers::verdict::Verdict;

use crate::tale::*;

#[test]
fn open_calls_at_the_end_are_fine() {
    tale()
        .invoke("a", acquire("a", 1))
        .invoke("b", acquire("b", 1))
        .passes(WellFormed);
}

#[test]
fn a_completion_without_call_is_its_processes_only_open_call() {
    let mut only = tale().invoke("b", fence(1)).acquires("a", 1);
    only.events[2].call = None;
    only.clone().passes(WellFormed);
    only.events[1].call = None;
    only.passes(WellFormed);

    let mut two = tale().invoke("a", fence(1)).acquires("a", 1);
    two.events[2].call = None;
    two.clone().convicts(WellFormed, "names none", &[2]);
    // Nor can it be told where one of the calls has no id.
    two.events[0].call = None;
    two.convicts(WellFormed, "a has 2 open calls", &[2]);
}

#[test]
fn indices_rise_by_one() {
    let good = tale().acquires("a", 1).acquires("b", 2);
    for (at, index, words) in [
        (0, 1, "where 0 is due"),
        (2, 1, "again"),
        (2, 3, "where 2 is due"),
    ] {
        let mut bad = good.clone();
        bad.events[at].index = index;
        bad.convicts(WellFormed, words, &[index]);
    }
}

#[test]
fn time_does_not_go_back() {
    tale()
        .acquires("a", 1)
        .at_once()
        .acquires("b", 2)
        .passes(WellFormed);
    tale()
        .at(5)
        .acquires("a", 1)
        .at(5)
        .acquires("b", 2)
        .convicts(WellFormed, "time goes back", &[2]);
}

#[test]
fn calls_pair_up() {
    let good = tale().acquires("a", 1);
    let mut without = good.clone();
    without.events[1].call = Some(9);
    without.convicts(WellFormed, "not open", &[1]);
    good.clone()
        .complete(0, Kind::Ok, Answer::Token(1), None)
        .convicts(WellFormed, "not open", &[2]);
    let mut other = good.clone();
    other.events[1].process = "b".into();
    other.convicts(WellFormed, "completes it", &[1]);
    let mut another = good.clone();
    another.events[1].body = Body::Complete(F::Fence, Answer::None);
    another.convicts(WellFormed, "a fence by a completes it", &[1]);
    let mut reused = good.acquires("a", 2);
    reused.events[2].call = Some(0);
    reused.convicts(WellFormed, "used again", &[2]);
}

#[test]
fn what_was_convicted_before_the_malformed_event_stands() {
    let mut tale = tale()
        .takes_fence("s", 8)
        .applies("s", 7, 1)
        .acquires("a", 1);
    tale.events[3].index = 7;
    tale.clone().convicts(WellFormed, "", &[7]);
    tale.convicts(StorageSafety, "token 7", &[0, 1]);
}

#[test]
fn the_rest_of_a_malformed_history_is_unknown() {
    let mut tale = tale().acquires("a", 1).acquires("b", 2);
    tale.events[3].index = 7;
    let verdicts = judge(&tale.header, &tale.events);
    for (check, verdict) in verdicts.0.iter().filter(|(check, _)| *check != WellFormed) {
        assert_eq!(verdict.word(), "unknown", "{check}");
    }
}

/// A misspelt `granted` is judged by nobody, and must not be passed over in silence.
#[test]
fn an_observation_that_is_not_known_is_named() {
    let mut odd = tale().acquires("a", 1);
    odd.clone().passes(WellFormed);
    odd.events[1].kind = Kind::Info;
    odd.events[1].process = "store".into();
    odd.events[1].body = Body::Foreign("grantd".into(), serde_json::Value::Null);
    let verdict = judge(&odd.header, &odd.events).of(WellFormed).cloned();
    let Some(Verdict::NotClaimed(why)) = verdict else {
        panic!("{verdict:?}");
    };
    assert!(
        why.starts_with("'grantd' of store at index 1 is nothing that a check knows"),
        "{why}"
    );
}

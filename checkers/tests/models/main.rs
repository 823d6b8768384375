//! Foreign histories, small and by hand: each rule with a history that keeps it and one
//! that breaks it.

use std::convert::Infallible;

use deposed_checkers::budget::Budget;
use deposed_checkers::history::Kind;
use deposed_checkers::import::{Entry, Place, Value};
use deposed_checkers::model::{JudgeError, Judged, Model, judge};
use deposed_checkers::verdict::{Check, Evidence, Verdict};

mod locks;
mod opening;
mod registers;
mod texts;

/// A history as one writes it down: `"1 invoke write 3"`, one line each. A value is a
/// number, a quoted text, `nil`, or a pair `[3 4]`.
fn history(text: &str) -> Vec<Entry> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .enumerate()
        .map(|(index, line)| {
            let mut words = line.splitn(4, ' ');
            let mut word = || words.next().unwrap_or("nil");
            let (process, kind, f, rest) = (word(), word(), word(), word());
            Entry {
                index: index as u64,
                time: None,
                process: process.into(),
                kind: match kind {
                    "invoke" => Kind::Invoke,
                    "ok" => Kind::Ok,
                    "fail" => Kind::Fail,
                    "info" => Kind::Info,
                    other => panic!("{other} is no kind of line"),
                },
                f: f.into(),
                key: None,
                token: None,
                value: value(rest),
                error: None,
                place: Place {
                    line: index as u64 + 1,
                    column: 1,
                },
            }
        })
        .collect()
}

fn value(text: &str) -> Value {
    if text == "nil" {
        return Value::Nil;
    }
    if let Ok(int) = text.parse() {
        return Value::Int(int);
    }
    if let Some(text) = text.strip_prefix('"') {
        return Value::Text(text.trim_end_matches('"').into());
    }
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let inner = inner.unwrap_or_else(|| panic!("{text} is no value"));
    let (first, rest) = inner.split_once(' ').expect("a pair");
    Value::List(vec![value(first), value(rest)])
}

fn try_judge(
    text: &str,
    model: Option<Model>,
    budget: Budget,
) -> Result<Judged, JudgeError<Infallible>> {
    judge(history(text).into_iter().map(Ok), model, budget)
}

fn judged(text: &str, model: Option<Model>) -> Judged {
    try_judge(text, model, Budget::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn verdict(text: &str, model: Model) -> Verdict {
    let judged = judged(text, Some(model));
    let check = model.check().expect("a model with a check");
    judged.verdicts.of(check).expect("it was judged").clone()
}

fn passes(text: &str, model: Model) {
    assert_eq!(verdict(text, model), Verdict::Valid);
}

/// Convicts, with these words and these events.
fn convicts(text: &str, model: Model, words: &str, events: &[u64]) -> Evidence {
    let Verdict::Violated(evidence) = verdict(text, model) else {
        panic!("not convicted")
    };
    assert!(evidence.sentence.contains(words), "{}", evidence.sentence);
    assert_eq!(evidence.events, events, "{}", evidence.sentence);
    evidence
}

fn complains(text: &str, model: Option<Model>, words: &str) {
    let error = try_judge(text, model, Budget::default()).expect_err("it does not fit");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn checks_that_the_model_cannot_feed_claim_nothing_by_name() {
    let judged = judged("1 invoke read\n1 ok read nil", None);
    assert_eq!(judged.verdicts.0.len(), Check::ALL.len());
    for (check, verdict) in &judged.verdicts.0 {
        let word = match check {
            Check::WellFormed | Check::RegisterLinearizable => "valid",
            _ => "not-claimed",
        };
        assert_eq!(verdict.word(), word, "{check}");
    }
}

//! Checks against exhaustive searches, or against their rule stated again and naively, on
//! random small histories, valid and invalid. Both ways: what is wrong is convicted, and
//! nothing else is.
//!
//! Every check of leases has at least one such comparison, and every model has one: 6,000
//! histories each, 120,000 in all, ten times as many in a release build; `--nocapture`
//! prints how many were valid and how many were not. `PROPTEST_CASES` sets how many of each.

use std::cell::Cell;

use deposed_checkers::history::*;
use deposed_checkers::judge::Judge;
use deposed_checkers::verdict::{Check, Verdict};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestCaseResult, TestRunner};

mod belief_safety;
mod clients;
mod conduct;
mod election_barrier;
mod failover;
mod leases;
mod models;
mod noise;
mod register_linearizable;
mod storage_safety;
mod token_monotonicity;
mod well_formed;
mod zombie_write;

/// How many histories were valid, and how many not.
#[derive(Default)]
struct Shares {
    valid: Cell<u32>,
    violated: Cell<u32>,
}

impl Shares {
    /// The check must say what the search found.
    fn compare(&self, found: &Verdict, explained: bool, events: &[Event]) -> TestCaseResult {
        self.compare_lines(found, explained, || {
            let lines = events.iter().map(deposed_checkers::writer::event_line);
            lines.collect()
        })
    }

    /// The same of a history in another form.
    fn compare_lines(
        &self,
        found: &Verdict,
        explained: bool,
        lines: impl FnOnce() -> Vec<String>,
    ) -> TestCaseResult {
        let (share, agree) = match explained {
            true => (&self.valid, *found == Verdict::Valid),
            false => (&self.violated, found.is_violated()),
        };
        share.set(share.get() + 1);
        if agree {
            return Ok(());
        }
        Err(TestCaseError::fail(format!(
            "an order is {}, and the check says {found:?}:\n{}",
            if explained { "there" } else { "not there" },
            lines().join("\n")
        )))
    }
}

/// A header that tells of no timing.
fn header() -> Header {
    serde_json::from_value(serde_json::json!({"deposed": 1})).expect("a header")
}

/// What the check says of a history.
fn verdict_of(check: Check, header: &Header, events: &[Event]) -> Verdict {
    let mut judge = Judge::of(header, &[check]);
    events.iter().for_each(|event| judge.see(event));
    judge.finish().of(check).unwrap().clone()
}

/// Runs a property on many cases; of those that it compared each kind has a fair share.
fn compare_many<S: Strategy>(cases: S, property: impl Fn(S::Value, &Shares) -> TestCaseResult) {
    let mut config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = if cfg!(debug_assertions) {
            6_000
        } else {
            60_000
        };
    }
    let shares = Shares::default();
    let ran = TestRunner::new(config).run(&cases, |case| property(case, &shares));
    ran.unwrap_or_else(|error| panic!("{error}"));
    let (valid, violated) = (shares.valid.get(), shares.violated.get());
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a property");
    println!("{name}: {valid} valid, {violated} violated");
    let fair = (valid + violated) / 5;
    assert!(valid >= fair, "only {valid} of {violated} were valid");
    assert!(
        violated >= fair,
        "only {violated} were violated, {valid} valid"
    );
}

/// Lines of a history, numbered as they come.
#[derive(Default)]
struct Lines(Vec<Event>);

impl Lines {
    fn put(&mut self, process: &str, kind: Kind, call: Option<u64>, body: Body) -> u64 {
        let index = self.0.len() as u64;
        self.0.push(Event {
            index,
            time: index,
            process: process.into(),
            kind,
            call,
            body,
            error: None,
        });
        index
    }

    fn invoke(&mut self, process: &str, op: Op) -> u64 {
        let call = self.0.len() as u64;
        self.put(process, Kind::Invoke, Some(call), Body::Invoke(op))
    }

    fn complete(&mut self, call: u64, kind: Kind, answer: Answer) {
        let invoke = &self.0[call as usize];
        let Body::Invoke(op) = &invoke.body else {
            panic!("event {call} is no invoke")
        };
        let (process, f) = (invoke.process.clone(), op.f());
        self.put(&process, kind, Some(call), Body::Complete(f, answer));
    }
}

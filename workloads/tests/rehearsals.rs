//! What a search finds in the cores shows in the system around them, too: each counterexample
//! is judged as the history of its story, and as a run that is made to go the same way.
//!
//! A mismatch is a mistake in the search, in the simulation, or in the translation.

use std::{
    num::NonZero,
    sync::{Arc, atomic::AtomicBool},
};

use deposed::{
    campaign,
    checkers::verdict::{Check, Verdict},
    flaw::Flaw,
    prove::{
        Broken, End, Expected, Pace, Scope, Search, Story, expected, history, rehearse, rules_for,
        schedule, scope_of,
    },
    system::{Deposed, System},
};

/// A counterexample of the smallest bounds in which each flaw has one.
struct Counterexample {
    flaw: Flaw,
    scope: Scope,
    check: Check,
    story: Story,
}

fn counterexamples() -> Vec<Counterexample> {
    let expects = Flaw::ALL.iter().map(|&flaw| (flaw, expected(flaw)));
    let found = expects.filter_map(|(flaw, expects)| match expects {
        Expected::Counterexample(check, _) => Some((flaw, check)),
        Expected::Equivalent(_) | Expected::Outside(_) => None,
    });
    found
        .map(|(flaw, check)| {
            let bounds = Scope {
                in_flight: 2,
                ..Scope::default()
            };
            let scope = scope_of(flaw, &bounds);
            let search = Search {
                scope: scope.clone(),
                rules: rules_for(Some(flaw)),
                jobs: NonZero::<usize>::MIN,
                max_memory: 1 << 30,
                within: None,
                max_depth: usize::MAX,
                stop: &AtomicBool::new(false),
            };
            let End::Broken(broken, story) = search.run().end else {
                panic!("{flaw} escaped");
            };
            assert_eq!(broken, Broken::Check(check), "{flaw}");
            Counterexample {
                flaw,
                scope,
                check,
                story,
            }
        })
        .collect()
}

#[test]
fn each_counterexample_is_convicted_by_the_same_check_as_a_story_and_as_a_run() {
    let system: Arc<dyn System> = Arc::new(Deposed);
    let mut tries = 0;
    let all = counterexamples();
    for Counterexample {
        flaw,
        scope,
        check,
        story,
    } in &all
    {
        let told = history(scope, Some(*flaw), story);
        assert!(told.is_convicted_by(*check), "{flaw}: {story:?}");
        let rehearsed = rehearse(story, scope, Some(*flaw), *check, &system);
        tries += rehearsed.runs;
        assert!(
            rehearsed.convicted,
            "{flaw}: none of {} runs shows {check}: {story:?}",
            rehearsed.runs
        );
        let again = campaign::outcome(&rehearsed.outcome.header, &system);
        assert_eq!(
            again.history, rehearsed.outcome.history,
            "{flaw}: it replays"
        );
        let verdict = again.verdicts.of(*check);
        assert!(verdict.is_some_and(Verdict::is_violated), "{flaw}");
    }
    println!("{} counterexamples, {tries} runs", all.len());
}

#[test]
fn without_the_flaw_a_run_that_goes_the_same_way_is_convicted_of_nothing() {
    let system: Arc<dyn System> = Arc::new(Deposed);
    for Counterexample {
        flaw, scope, story, ..
    } in counterexamples()
    {
        let mut header = schedule(&story, &scope, Some(flaw), Pace::FIRST);
        header.flaw = None;
        let outcome = campaign::outcome(&header, &system);
        let violated = outcome.verdicts.violated().map(|(check, _)| check);
        let violated: Vec<_> = violated.collect();
        assert_eq!(
            (violated, &outcome.defects[..]),
            (vec![], &[][..]),
            "{flaw}"
        );
    }
}

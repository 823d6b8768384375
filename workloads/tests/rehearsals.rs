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

/// A counterexample, and the bounds in which it was found.
struct Counterexample {
    flaw: Flaw,
    scope: Scope,
    check: Check,
    story: Story,
}

/// One of each of these flaws that can have one, within the bounds.
fn counterexamples<'f>(
    flaws: &'f [Flaw],
    bounds: &'f Scope,
) -> impl Iterator<Item = Counterexample> + use<'f> {
    flaws.iter().filter_map(move |&flaw| {
        let Expected::Counterexample(check, _) = expected(flaw) else {
            return None;
        };
        let scope = scope_of(flaw, bounds);
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
        Some(Counterexample {
            flaw,
            scope,
            check,
            story,
        })
    })
}

fn bounds(ttl: u64) -> Scope {
    Scope {
        ttl,
        in_flight: 2,
        ..Scope::default()
    }
}

/// Judges each counterexample as a story, and as a run.
fn walk_through_both(flaws: &[Flaw], bounds: &Scope) {
    let system: Arc<dyn System> = Arc::new(Deposed);
    let (mut all, mut tries) = (0, 0);
    for counterexample in counterexamples(flaws, bounds) {
        let Counterexample {
            flaw,
            scope,
            check,
            story,
        } = counterexample;
        let told = history(&scope, Some(flaw), &story);
        assert!(told.is_convicted_by(check), "{flaw}: {story:?}");
        assert!(
            !told.is_convicted_by(Check::WellFormed),
            "{flaw}: {story:?}"
        );
        assert!(
            !told.is_convicted_by(Check::Failover),
            "{flaw}: nobody owes a leader in it: {story:?}"
        );
        let rehearsed = rehearse(&story, &scope, Some(flaw), check, &system);
        (all, tries) = (all + 1, tries + rehearsed.runs);
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
        let verdict = again.verdicts.of(check);
        assert!(verdict.is_some_and(Verdict::is_violated), "{flaw}");
    }
    println!("{all} counterexamples, {tries} runs");
}

#[test]
fn each_counterexample_is_convicted_by_the_same_check_as_a_story_and_as_a_run() {
    walk_through_both(Flaw::ALL, &bounds(3));
}

#[test]
fn so_is_each_with_a_shorter_ttl() {
    walk_through_both(Flaw::ALL, &bounds(2));
}

#[test]
fn so_is_each_with_a_longer_ttl() {
    walk_through_both(Flaw::ALL, &bounds(4));
}

#[test]
fn so_are_some_with_three_messages_in_flight() {
    let flaws = [
        Flaw::CountFromReply,
        Flaw::RenewCallOutlivesLease,
        Flaw::SameHolderSameToken,
        Flaw::StaleExpiry,
        Flaw::ForgetsHighest,
        Flaw::CleanupDropsFence,
    ];
    let three = Scope {
        in_flight: 3,
        ..bounds(2)
    };
    walk_through_both(&flaws, &three);
}

#[test]
fn without_the_flaw_a_run_that_goes_the_same_way_is_convicted_of_nothing() {
    let system: Arc<dyn System> = Arc::new(Deposed);
    for counterexample in counterexamples(Flaw::ALL, &bounds(3)) {
        let Counterexample {
            flaw, scope, story, ..
        } = counterexample;
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

//! The rules that reduce a search against a search without them, and the search against
//! itself on more threads.

use std::{num::NonZero, sync::atomic::AtomicBool};

use super::{
    catalogue::{Catalogue, Table, View},
    *,
};

/// A rule, and how to switch it off.
type Without = (&'static str, fn(&mut Rules));

fn small() -> Scope {
    Scope {
        ttl: 2,
        in_flight: 2,
        ..Scope::default()
    }
}

fn found(scope: &Scope, rules: Rules, jobs: usize, max_depth: usize) -> Found {
    let search = Search {
        scope: scope.clone(),
        rules,
        jobs: NonZero::new(jobs).expect("a thread"),
        max_memory: 1 << 30,
        within: None,
        max_depth,
        stop: &AtomicBool::new(false),
    };
    search.run()
}

/// Every state within so many actions, and how many it takes.
fn within(catalogue: &Catalogue, depth: usize) -> Vec<(state::State, usize)> {
    let mut view = View::new(catalogue);
    let mut met: Table<u128, ()> = Table::default();
    let start = catalogue.start();
    met.insert(start.fingerprint(), ());
    let mut states = vec![(start, 0)];
    let mut at = 0;
    while let Some(&(state, deep)) = states.get(at) {
        at += 1;
        if deep == depth {
            continue;
        }
        view.next(&state, &mut |next| {
            assert_eq!(next.broken, None, "{:?}", next.action);
            if met.insert(next.to.fingerprint(), ()).is_none() {
                states.push((next.to, deep + 1));
            }
        });
    }
    states
}

#[test]
fn every_state_of_an_unreduced_search_is_one_that_the_rules_visit() {
    // Those by which a state is covered by another, not mapped to it, are tested below.
    let rules = Rules {
        late_loss: false,
        waits: false,
        acts: false,
        ..Rules::TELLABLE
    };
    let drifting = Scope {
        ttl: 3,
        drift: "1/3".parse().expect("a drift"),
        ..small()
    };
    for (scope, depth) in [(small(), 7), (drifting, 6)] {
        let (whole, reduced) = (
            Catalogue::new(scope.clone(), Rules::NONE),
            Catalogue::new(scope, rules),
        );
        let (mut view, mut reducing) = (View::new(&whole), View::new(&reduced));
        let mut visited: Table<u128, usize> = Table::default();
        for (state, deep) in within(&reduced, depth) {
            visited.insert(state.fingerprint(), deep);
        }
        let all = within(&whole, depth);
        for (state, deep) in &all {
            let class = reducing.class_of(&mut view, state);
            let sooner = visited.get(&class.fingerprint());
            assert!(
                sooner.is_some_and(|sooner| sooner <= deep),
                "{state:?} at {deep}: {sooner:?}"
            );
        }
        assert!(all.len() > 3 * visited.len(), "the rules reduce little");
    }
}

/// The rules by which the world does more than it would, one after the other, but for the
/// loss that waits.
fn wider() -> [(&'static str, Rules); 2] {
    let base = Rules {
        late_loss: false,
        ..Rules::TELLABLE
    };
    let refusals = Rules {
        refusals: true,
        ..base
    };
    let unanswered = Rules {
        unanswered: true,
        ..refusals
    };
    [("refusals", refusals), ("unanswered", unanswered)]
}

/// Visits every state within so many actions without the rules, and asserts that the class
/// of each is visited with them, in as few actions. How many states that were.
fn assert_covered(scope: &Scope, depth: usize) -> usize {
    let base = Rules {
        late_loss: false,
        ..Rules::TELLABLE
    };
    let whole = Catalogue::new(scope.clone(), base);
    let mut view = View::new(&whole);
    let all = within(&whole, depth);
    for (name, rules) in wider() {
        let reduced = Catalogue::new(scope.clone(), rules);
        let mut reducing = View::new(&reduced);
        let mut visited: Table<u128, usize> = Table::default();
        for (state, deep) in within(&reduced, depth) {
            visited.insert(state.fingerprint(), deep);
        }
        for (state, deep) in &all {
            let class = reducing.class_of(&mut view, state);
            let sooner = visited.get(&class.fingerprint());
            assert!(
                sooner.is_some_and(|sooner| sooner <= deep),
                "{name}: {state:?} at {deep}: {sooner:?}"
            );
        }
    }
    all.len()
}

#[test]
fn a_world_that_may_do_more_visits_all_that_one_does_which_may_not() {
    let one_at_a_time = Scope {
        in_flight: 1,
        ..small()
    };
    let drifting = Scope {
        ttl: 3,
        drift: "1/3".parse().expect("a drift"),
        ..small()
    };
    let delayed = Scope {
        lock_delay: 1,
        ..small()
    };
    let three = Scope {
        clients: 3,
        ..small()
    };
    let all = usize::MAX;
    for (scope, depth) in [
        (one_at_a_time, all),
        (drifting, 9),
        (delayed, 12),
        (three, 10),
    ] {
        assert!(assert_covered(&scope, depth) > 5_000, "{scope:?}");
    }
}

#[test]
#[ignore = "minutes: cargo test --release -p deposed --lib prove -- --ignored"]
fn a_larger_world_that_may_do_more_visits_all_that_one_does_which_may_not() {
    let three = Scope {
        in_flight: 3,
        ttl: 1,
        ..small()
    };
    let drifting = Scope {
        in_flight: 1,
        ttl: 3,
        drift: "1/3".parse().expect("a drift"),
        ..small()
    };
    for scope in [small(), three, drifting] {
        assert_covered(&scope, usize::MAX);
    }
}

#[test]
fn the_smallest_worlds_hold_whichever_rule_is_off() {
    let scope = Scope {
        ttl: 1,
        in_flight: 1,
        ..small()
    };
    let all = found(&scope, Rules::ALL, 1, usize::MAX);
    assert_eq!(all.end, End::Holds);
    // One that others rest on goes with them.
    let without: [Without; 10] = [
        ("unanswered", |rules| rules.unanswered = false),
        ("refusals", |rules| *rules = rules.tellable()),
        ("over", |rules| rules.over = false),
        ("overtaken_terms", |rules| rules.overtaken_terms = false),
        ("waits", |rules| {
            *rules = rules.tellable();
            rules.waits = false;
        }),
        ("late_loss", |rules| rules.late_loss = false),
        ("dead_answers", |rules| {
            *rules = rules.tellable();
            rules.dead_answers = false;
        }),
        ("settled", |rules| {
            *rules = rules.tellable();
            rules.settled = false;
        }),
        ("acts", |rules| rules.acts = false),
        ("symmetry", |rules| rules.symmetry = false),
    ];
    for (rule, off) in without {
        let mut rules = Rules::ALL;
        off(&mut rules);
        let more = found(&scope, rules, 1, usize::MAX);
        assert_eq!(more.end, End::Holds, "without {rule}");
        assert!(more.states >= all.states, "{rule} adds states");
    }
    let tellable = Rules::TELLABLE;
    let graves = Rules {
        graves: false,
        ..tellable
    };
    let (fewer, more) = (
        found(&scope, tellable, 1, usize::MAX),
        found(&scope, graves, 1, usize::MAX),
    );
    assert_eq!(more.end, End::Holds, "without graves");
    assert!(more.states >= fewer.states, "graves adds states");
}

#[test]
fn a_small_world_holds() {
    let found = found(&small(), Rules::TELLABLE, 2, usize::MAX);
    assert_eq!(found.end, End::Holds);
    assert!(found.states > 100_000, "{} states", found.states);
}

#[test]
fn what_is_found_is_the_same_on_any_number_of_threads() {
    let alike = |found: Found| (found.ways, found.states, found.steps, found.depth);
    let one = alike(found(&small(), Rules::TELLABLE, 1, 20));
    assert!(one.1 > 50_000, "no level is worth a thread");
    for jobs in [2, 3] {
        assert_eq!(alike(found(&small(), Rules::TELLABLE, jobs, 20)), one);
    }
}

#[test]
fn a_search_that_ends_early_says_so() {
    let (going, stopped) = (AtomicBool::new(false), AtomicBool::new(true));
    let mut search = Search {
        scope: small(),
        rules: Rules::ALL,
        jobs: NonZero::<usize>::MIN,
        max_memory: 1,
        within: None,
        max_depth: usize::MAX,
        stop: &going,
    };
    assert_eq!(search.run().end, End::OutOfMemory);
    search.max_memory = 1 << 30;
    search.within = Some(std::time::Duration::ZERO);
    assert_eq!(search.run().end, End::OutOfTime);
    search.within = None;
    search.stop = &stopped;
    assert_eq!(search.run().end, End::Stopped);
}

#[test]
fn a_clock_that_skips_counts_fewer_ticks_than_pass() {
    let drift: Drift = "1/4".parse().expect("a drift");
    // It may skip at once, and then one in four.
    let longest = |ticks| drift.longest(ticks, 3);
    assert_eq!([0, 1, 3, 4, 6, 7].map(longest), [0, 2, 4, 6, 8, 10]);
    assert_eq!(drift.longest(3, 0), 3, "it has just skipped one");
    assert_eq!(Drift::NONE.longest(3, 0), 3);
    for ttl in 2..=LONGEST {
        let window = Scope {
            ttl,
            drift,
            ..Scope::default()
        }
        .config()
        .safe_window();
        assert!(drift.longest(window, 3) <= ttl, "ttl {ttl}");
    }
}

const LONGEST: u64 = 30;

#[cfg(feature = "flaws")]
mod flawed {
    use deposed_checkers::{judge::judge, verdict::Check};

    use super::*;
    use crate::flaw::{Flaw, Planted};

    /// In the bounds that the table of flaws is told for.
    fn of(flaw: Flaw) -> Scope {
        let bounds = Scope {
            in_flight: 2,
            ..Scope::default()
        };
        scope_of(flaw, &bounds)
    }

    #[test]
    fn each_flaw_is_found_as_it_is_classified_and_convicted_by_the_check_it_breaks() {
        for &flaw in Flaw::ALL {
            let (check, actions) = match expected(flaw) {
                Expected::Counterexample(check, actions) => (check, actions),
                Expected::Equivalent(_) | Expected::Outside(_) => continue,
            };
            let scope = of(flaw);
            let End::Broken(broken, story) = found(&scope, rules_for(Some(flaw)), 2, 20).end else {
                panic!("{flaw} escaped");
            };
            assert_eq!(broken, Broken::Check(check), "{flaw}");
            assert_eq!(story.actions.len(), actions, "{flaw}: {:?}", story.actions);
            let history = history(&scope, Some(flaw), &story);
            let verdicts = judge(&history.header, &history.events);
            let convicted = verdicts.violated().any(|(other, _)| other == check);
            assert!(convicted, "{flaw}: {story:?}");
            let mut correct = story.actions.clone();
            correct.pop();
            let before = history_before(&scope, flaw, correct);
            assert!(
                !before.is_convicted_by(check),
                "{flaw}: sooner than the search"
            );
        }
    }

    fn history_before(scope: &Scope, flaw: Flaw, actions: Vec<Action>) -> History {
        history(scope, Some(flaw), &Story { actions })
    }

    /// With all rules, as a proof is made: what a rule takes for granted of a core is asked
    /// of it, so that none hides what the core does.
    fn proven(flaw: Flaw) -> End {
        let search = Search {
            scope: of(flaw),
            rules: Rules::ALL,
            jobs: NonZero::<usize>::MIN,
            max_memory: 1 << 28,
            within: None,
            max_depth: 30,
            stop: &AtomicBool::new(false),
        };
        search.once().end
    }

    #[test]
    fn nothing_holds_with_all_rules_of_a_core_that_is_flawed() {
        for &flaw in Flaw::ALL {
            if let Expected::Counterexample(..) = expected(flaw) {
                let end = proven(flaw);
                assert!(matches!(end, End::Broken(..)), "{flaw}: {end:?}");
            }
        }
    }

    /// Flaws that break what a rule rests on, and that no state would show where the rule
    /// is believed.
    const RESTED_ON: [(Flaw, Premise); 10] = [
        (Flaw::StaleRetry, Premise::RefusalsSayAlike),
        (Flaw::SameHolderSameToken, Premise::TokensRise),
        (Flaw::SameTokenAgain, Premise::TokensRise),
        (Flaw::RenewByName, Premise::RefusesOthers),
        (Flaw::ReleasesAnything, Premise::RefusesOthers),
        (Flaw::AcceptsAnything, Premise::RefusesStale),
        (Flaw::OffByOne, Premise::RefusesStale),
        (Flaw::CheckThenAct, Premise::RefusesStale),
        (Flaw::ForgetsHighest, Premise::HighestStays),
        (Flaw::FenceNotDurable, Premise::HighestStays),
    ];

    #[test]
    fn what_a_rule_takes_for_granted_is_missed_where_it_is_not_so() {
        let mut other = Vec::new();
        for (flaw, premise) in RESTED_ON {
            let end = proven(flaw);
            if !matches!(end, End::Broken(Broken::Premise(missed), _) if missed == premise) {
                other.push((flaw, premise, end));
            }
        }
        assert!(other.is_empty(), "{other:#?}");
    }

    #[test]
    fn a_search_whose_rules_have_nothing_to_rest_on_goes_on_without_them() {
        let scope = of(Flaw::ReleasesAnything);
        let End::Broken(broken, story) = found(&scope, Rules::ALL, 1, 20).end else {
            panic!("it escaped");
        };
        assert_eq!(broken, Broken::Check(Check::LeaseLinearizable));
        assert_eq!(story.actions.len(), 9);
    }

    #[test]
    fn what_breaks_where_more_may_happen_is_told_as_what_may() {
        let scope = of(Flaw::CountFromReply);
        let told = found(&scope, Rules::TELLABLE, 1, 20).end;
        assert_eq!(found(&scope, Rules::ALL, 1, 20).end, told);
        assert!(matches!(told, End::Broken(_, story) if story.actions.len() == 9));
    }

    #[test]
    fn a_flaw_that_is_called_equivalent_breaks_nothing() {
        for &flaw in Flaw::ALL {
            if let Expected::Equivalent(_) = expected(flaw) {
                let scope = Scope {
                    in_flight: 1,
                    ttl: 2,
                    ..of(flaw)
                };
                let end = found(&scope, rules_for(Some(flaw)), 2, usize::MAX).end;
                assert_eq!(end, End::Holds, "{flaw}");
            }
        }
    }

    fn length(flaw: Flaw, rules: Rules) -> usize {
        match found(&of(flaw), rules, 2, 20).end {
            End::Broken(_, story) => story.actions.len(),
            end => panic!("{flaw}: {end:?}"),
        }
    }

    const VARIED: [Flaw; 5] = [
        Flaw::CountFromReply,
        Flaw::ReleasesAnything,
        Flaw::SameHolderSameToken,
        Flaw::ForgetsHighest,
        Flaw::CleanupDropsFence,
    ];

    #[test]
    fn a_rule_that_maps_states_leaves_counterexamples_as_long_as_they_are() {
        let without: [Without; 3] = [
            ("overtaken_terms", |rules| rules.overtaken_terms = false),
            ("names", |rules| rules.names = false),
            ("symmetry", |rules| rules.symmetry = false),
        ];
        for flaw in VARIED {
            let all = length(flaw, Rules::FLAWED);
            for (rule, off) in without {
                let mut rules = Rules::FLAWED;
                off(&mut rules);
                assert_eq!(length(flaw, rules), all, "{flaw} without {rule}");
            }
        }
    }

    /// Shorter they may be: nothing need be lost to make room for what goes on.
    #[test]
    fn a_rule_that_covers_states_makes_no_counterexample_longer() {
        let without: [Without; 4] = [
            ("late_loss", |rules| rules.late_loss = false),
            ("dead_answers", |rules| rules.dead_answers = false),
            ("waits", |rules| rules.waits = false),
            ("acts", |rules| rules.acts = false),
        ];
        for flaw in VARIED {
            let all = length(flaw, Rules::FLAWED);
            for (rule, off) in without {
                let mut rules = Rules::FLAWED;
                off(&mut rules);
                assert!(all <= length(flaw, rules), "{flaw} without {rule}");
            }
        }
    }

    #[test]
    fn a_story_is_the_same_on_any_number_of_threads() {
        // Its last levels are worth a second thread.
        let scope = of(Flaw::LateRenewExtends);
        let one = found(&scope, Rules::FLAWED, 1, 20).end;
        for jobs in [2, 3] {
            assert_eq!(found(&scope, Rules::FLAWED, jobs, 20).end, one);
        }
    }

    #[test]
    fn a_conviction_needs_the_flaw() {
        let planted = Planted::one(Flaw::CountFromReply);
        assert!(matches!(
            found(&Scope { planted, ..small() }, Rules::FLAWED, 1, 20).end,
            End::Broken(..)
        ));
        assert_eq!(found(&small(), Rules::FLAWED, 1, 10).end, End::Deep);
    }
}

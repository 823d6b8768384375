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
        ..Rules::ALL
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

#[test]
fn the_smallest_worlds_hold_whichever_rule_is_off() {
    let scope = Scope {
        ttl: 1,
        in_flight: 1,
        ..small()
    };
    let all = found(&scope, Rules::ALL, 1, usize::MAX);
    assert_eq!(all.end, End::Holds);
    let without: [Without; 9] = [
        ("waits", |rules| rules.waits = false),
        ("late_loss", |rules| rules.late_loss = false),
        ("dead_answers", |rules| rules.dead_answers = false),
        ("settled", |rules| rules.settled = false),
        ("memories", |rules| rules.memories = false),
        ("unreached", |rules| rules.unreached = false),
        ("acts", |rules| rules.acts = false),
        ("graves", |rules| rules.graves = false),
        ("symmetry", |rules| rules.symmetry = false),
    ];
    for (rule, off) in without {
        let mut rules = Rules::ALL;
        off(&mut rules);
        let more = found(&scope, rules, 1, usize::MAX);
        assert_eq!(more.end, End::Holds, "without {rule}");
        assert!(more.states >= all.states, "{rule} adds states");
    }
}

#[test]
fn a_small_world_holds() {
    let scope = Scope {
        in_flight: 1,
        ..small()
    };
    let found = found(&scope, Rules::ALL, 2, usize::MAX);
    assert_eq!(found.end, End::Holds);
    assert!(found.states > 10_000, "{} states", found.states);
}

#[test]
fn what_is_found_is_the_same_on_any_number_of_threads() {
    let alike = |found: Found| (found.ways, found.states, found.steps, found.depth);
    let one = alike(found(&small(), Rules::ALL, 1, 17));
    assert!(one.1 > 50_000, "no level is worth a thread");
    for jobs in [2, 3] {
        assert_eq!(alike(found(&small(), Rules::ALL, jobs, 17)), one);
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
    use deposed_checkers::judge::judge;

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

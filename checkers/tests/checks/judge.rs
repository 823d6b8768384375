use deposed_checkers::judge::Judge;
use deposed_checkers::verdict::Check::{self, *};
use serde_json::json;

use crate::tale::*;

/// The judge stops listening once a check is sure, and so does a run: neither may come
/// an event early, and both should come as early as can be.
#[test]
fn a_conviction_is_known_from_the_event_that_makes_it_sure() {
    let over_two_terms = || {
        tale()
            .grants("a", 1, 1, 0)
            .acquires("a", 1)
            .grants("b", 4, 2, 200)
            .acquires("b", 2)
    };
    let in_calm = || {
        tale()
            .acquires("a", 1)
            .nemesis("calm", json!({}))
            .at(1000)
            .follows("a", 1)
    };
    let cases: [(Check, Tale, u64); 12] = [
        (
            TokenMonotonicity,
            tale().grants("a", 1, 5, 0).grants("b", 1, 7, 200),
            1,
        ),
        (
            StorageSafety,
            tale().takes_fence("s", 8).applies("s", 7, 1),
            1,
        ),
        (
            ZombieWrite,
            over_two_terms()
                .invoke("b", write(2, 1))
                .applies("s", 2, 1)
                .ends_ok(6)
                .invoke("a", write(1, 2))
                .applies("s", 1, 2),
            10,
        ),
        (
            BeliefSafety,
            // Until the instant is over the older belief may still end at it.
            tale()
                .leads("a", 1, 100)
                .at(50)
                .leads("b", 2, 90)
                .follows("a", 1),
            2,
        ),
        (
            ElectionBarrier,
            tale()
                .storage(json!("fenced"))
                .acquires("a", 1)
                .writes("a", 1),
            2,
        ),
        (
            ElectionBarrier,
            // Whether anybody sets a barrier here is told by the first who does.
            tale()
                .acquires("a", 1)
                .writes("a", 1)
                .acquires("b", 2)
                .invoke("b", fence(2)),
            6,
        ),
        (
            ElectionBarrier,
            tale()
                .grants("a", 1, 1, 0)
                .acquires("a", 1)
                .invoke("a", fence(2)),
            3,
        ),
        (
            ElectionBarrier,
            // Whom the lease was granted to, the store alone knows.
            tale()
                .acquires("a", 1)
                .invoke("a", fence(2))
                .grants("b", 1, 3, 0),
            3,
        ),
        (
            LeaseLinearizable,
            tale().grants("a", 1, 1, 0).grants("b", 1, 2, 99),
            1,
        ),
        (
            LockDelay,
            tale()
                .lock_delay(50)
                .grants("a", 1, 1, 0)
                .grants("b", 1, 2, 149),
            1,
        ),
        // The store's own account may be yet to come.
        (Failover, in_calm().with_a_store().follows("a", 1), 4),
        (
            Conduct,
            tale()
                .acquires("a", 1)
                .stale("a", write(1, 1), 2)
                .writes("a", 1),
            4,
        ),
    ];
    for (check, tale, sure) in cases {
        let mut judge = Judge::of(&tale.header, &[check]);
        for event in &tale.events {
            judge.see(event);
            let known = judge.convicted().any(|convicted| convicted == check);
            assert_eq!(known, event.index >= sure, "{check} at {}", event.index);
        }
        assert!(judge.finish().of(check).unwrap().is_violated(), "{check}");
    }
}

#[test]
fn only_the_checks_asked_for_are_judged() {
    let tale = tale().takes_fence("s", 8).applies("s", 7, 1);
    let mut judge = Judge::of(&tale.header, &[TokenMonotonicity]);
    tale.events.iter().for_each(|event| judge.see(event));
    let verdicts = judge.finish();
    assert!(verdicts.of(TokenMonotonicity).is_some());
    for other in [WellFormed, StorageSafety] {
        assert!(verdicts.of(other).is_none(), "{other}");
    }
}

/// What a check needs tells it from every other.
#[test]
fn each_check_says_what_it_needs() {
    let mut needs: Vec<&str> = Check::ALL.iter().map(|check| check.needs()).collect();
    assert!(needs.iter().all(|needs| !needs.is_empty()));
    needs.sort_unstable();
    needs.dedup();
    assert_eq!(needs.len(), Check::ALL.len());
}

#[test]
fn only_a_violation_is_one() {
    let judged = |tale: Tale, check| {
        let mut judge = Judge::of(&tale.header, &[check]);
        tale.events.iter().for_each(|event| judge.see(event));
        judge.finish().of(check).unwrap().is_violated()
    };
    let granted = || tale().grants("a", 1, 5, 0);
    assert!(judged(granted().grants("b", 1, 7, 200), TokenMonotonicity));
    assert!(!judged(granted().grants("b", 1, 6, 200), TokenMonotonicity));
    assert!(!judged(granted(), LockDelay), "nothing is claimed");
}

//! Flaky links: what befalls a frame is drawn, from the run's seed.

use deposed::{
    checkers::history::Nanos,
    fault::{Fault, Target},
    workload::MS,
};

use crate::probe::{A, Arrival, B, PEERS, Sight, header, see, see_header};

const PERCENT: u32 = 10_000_000;

fn flaky(lose: u32, delay: u32, length: Nanos) -> Fault {
    Fault::Flaky {
        a: A,
        b: B,
        lose_ppb: lose * PERCENT,
        delay_ppb: delay * PERCENT,
        by: 40 * MS,
        length: length * MS,
    }
}

/// Of the pings of a way that arrived though they were sent between two milliseconds: how
/// late each came.
fn lateness(sight: &Sight, from: &str, to: &str, after: Nanos, before: Nanos) -> Vec<Nanos> {
    let sent = |frame: &Arrival| (after * MS..before * MS).contains(&frame.sent);
    let frames = sight.frames("ping", from, to).into_iter();
    frames
        .filter(sent)
        .map(|frame| frame.at - frame.sent)
        .collect()
}

#[test]
fn a_flaky_link_loses_and_delays_about_as_many_frames_as_it_says_both_ways() {
    let sight = see(vec![(200, flaky(30, 30, 600))]);
    for (from, to) in [("a", "b"), ("b", "a")] {
        let came = lateness(&sight, from, to, 201, 799);
        let (lost, late) = (
            sight.missing("ping", from, to).len(),
            came.iter().filter(|late| **late > 3 * MS).count(),
        );
        // Of some 120 pings.
        assert!((20..55).contains(&lost), "{lost} lost");
        assert!((15..50).contains(&late), "{late} late");
        assert!(came.iter().all(|late| *late <= 43 * MS), "{came:?}");
        let before = lateness(&sight, from, to, 100, 199);
        let after = lateness(&sight, from, to, 801, 1900);
        assert!(before.len() > 15 && after.len() > 200);
        assert!(before.iter().chain(&after).all(|late| *late <= 3 * MS));
    }
    for node in PEERS {
        for peer in PEERS.into_iter().filter(|peer| *peer != node) {
            if [node, peer] != ["a", "b"] && [node, peer] != ["b", "a"] {
                assert!(sight.missing("ping", node, peer).is_empty());
            }
        }
    }
    let told = sight.nemesis("lost").len() + sight.nemesis("delayed").len();
    assert!(told > 100, "each frame that is hit is recorded: {told}");
}

#[test]
fn the_seed_decides_which_frames_and_nothing_else_does() {
    let lost = |seed| {
        let mut header = header(vec![(200, flaky(30, 30, 600))]);
        header.seed = seed;
        let sight = see_header(&header);
        (sight.missing("ping", "a", "b"), sight.nemesis("delayed"))
    };
    assert_eq!(lost(3), lost(3));
    assert_ne!(lost(3), lost(4));
}

#[test]
fn of_two_flaky_times_that_overlap_the_last_ends_it() {
    let sight = see(vec![(200, flaky(100, 0, 200)), (300, flaky(100, 0, 200))]);
    assert_eq!(lateness(&sight, "a", "b", 201, 498), [] as [Nanos; 0]);
    assert!(lateness(&sight, "a", "b", 501, 900).len() > 70);
}

#[test]
fn a_rule_that_is_armed_beforehand_takes_its_frames_before_chance_does() {
    let lose = Fault::Lose {
        kind: "ping".into(),
        from: Target::Everyone,
        to: B,
        count: 2,
    };
    // Chance makes every frame late; the rule takes two of them all the same.
    let sight = see(vec![(200, lose), (200, flaky(0, 100, 400))]);
    assert_eq!(sight.nemesis("lost").len(), 2);
}

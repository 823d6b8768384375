//! Frames: lost, late, twice.

use deposed::{fault::Fault, workload::MS};

use super::probe::{self, A, B, see};

#[test]
fn exactly_so_many_frames_of_the_kind_and_way_are_lost() {
    let lose = Fault::Lose {
        kind: "ping".into(),
        from: A,
        to: B,
        count: 3,
    };
    let sight = see(vec![(200, lose)]);
    let lost = sight.missing("ping", "a", "b");
    assert_eq!(lost.len(), 3);
    assert_eq!(lost[2] - lost[0], 2, "the next ones: {lost:?}");
    assert!(sight.missing("pong", "a", "b").is_empty());
    assert!(sight.missing("ping", "b", "a").is_empty());
    assert!(sight.missing("ping", "a", "store").is_empty());
    assert_eq!(sight.nemesis("lost").len(), 3);
}

#[test]
fn a_delayed_frame_arrives_so_much_later_even_after_its_sender_crashed() {
    let delay = Fault::Delay {
        kind: "ping".into(),
        from: A,
        to: B,
        count: 2,
        by: 150 * MS,
    };
    let crash = Fault::Crash {
        target: A,
        length: 300 * MS,
    };
    let sight = see(vec![(200, delay), (220, crash)]);
    let down: Vec<_> = sight
        .frames("ping", "a", "b")
        .into_iter()
        .filter(|frame| (230 * MS..520 * MS).contains(&frame.at))
        .collect();
    assert_eq!(down.len(), 2);
    for frame in down {
        assert!(
            (150 * MS..155 * MS).contains(&(frame.at - frame.sent)),
            "{frame:?}"
        );
    }
    let late = |frame: &&probe::Arrival| frame.at - frame.sent > 5 * MS;
    for (kind, from, to) in [
        ("pong", "a", "b"),
        ("ping", "b", "a"),
        ("ping", "a", "store"),
    ] {
        assert_eq!(
            sight.frames(kind, from, to).iter().filter(late).count(),
            0,
            "{kind} {from} {to}"
        );
    }
}

#[test]
fn a_duplicated_frame_arrives_twice() {
    let duplicate = Fault::Duplicate {
        kind: "ping".into(),
        from: A,
        to: B,
        count: 2,
        by: 100 * MS,
    };
    let sight = see(vec![(200, duplicate)]);
    let frames = sight.frames("ping", "a", "b");
    let twice: Vec<_> = frames
        .iter()
        .filter(|one| frames.iter().filter(|other| other.n == one.n).count() == 2)
        .collect();
    assert_eq!(twice.len(), 4);
    for copy in &twice[2..] {
        let first = twice
            .iter()
            .find(|one| one.n == copy.n)
            .expect("two of each");
        assert_eq!(copy.at - first.at, 100 * MS);
    }
    let mut numbers: Vec<u64> = sight
        .frames("pong", "a", "b")
        .iter()
        .map(|frame| frame.n)
        .collect();
    numbers.dedup();
    assert_eq!(numbers.len(), sight.frames("pong", "a", "b").len());
    assert!(sight.missing("ping", "a", "b").is_empty());
}

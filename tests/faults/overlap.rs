//! Two faults of a kind at once: the last to end ends them.

use deposed::{checkers::history::TRUE_RATE, workload::MS};

use super::{hold, partition, pause, probe::see, rate, slow, steady};

#[test]
fn of_two_cuts_that_overlap_the_last_heals_the_link() {
    let sight = see(vec![(200, partition(200)), (300, partition(200))]);
    assert_eq!(sight.arrived("a", "b", 203, 500), 0);
    assert!(steady(&sight, "a", "b", 650, 950));
}

#[test]
fn of_two_holds_that_overlap_the_last_releases_the_link() {
    let sight = see(vec![(200, hold(200)), (300, hold(200))]);
    assert_eq!(sight.arrived("a", "b", 203, 500), 0);
    assert!(sight.arrived("a", "b", 500, 503) > 30);
}

#[test]
fn of_two_latencies_that_overlap_the_last_ends_the_slowness() {
    let sight = see(vec![(200, slow(200)), (300, slow(200))]);
    let frames = sight.frames("ping", "a", "b");
    let late = |sent| {
        frames
            .iter()
            .filter(move |frame| frame.sent / MS / 100 == sent)
            .map(|frame| frame.at - frame.sent)
    };
    assert!(late(4).count() > 5 && late(4).all(|late| late >= 80 * MS));
    assert!(late(7).count() > 5 && late(7).all(|late| late <= 3 * MS));
}

#[test]
fn of_two_rates_that_overlap_the_later_counts_and_the_last_gives_the_clock_its_own_back() {
    let (half, twice) = (TRUE_RATE / 2, 2 * TRUE_RATE);
    let sight = see(vec![(200, rate(half, 200)), (300, rate(twice, 200))]);
    assert_eq!(sight.rate("a", 210, 300), half);
    assert_eq!(sight.rate("a", 301, 500), twice);
    assert_eq!(sight.rate("a", 510, 950), TRUE_RATE);
}

#[test]
fn of_two_pauses_that_overlap_the_last_lets_the_process_go_on() {
    let sight = see(vec![(200, pause(200)), (300, pause(200))]);
    assert_eq!(sight.alive("a", 201, 500), 0);
    assert!(sight.alive("a", 501, 600) > 10);
}

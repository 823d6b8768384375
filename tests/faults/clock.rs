//! Clocks: another rate, a step.

use deposed::{checkers::history::TRUE_RATE, clock::WALL_EPOCH, fault::Fault, workload::MS};

use super::{
    probe::{A, EVERY, header, see, see_header},
    rate,
};

#[test]
fn a_clock_runs_at_the_rate_it_is_given_and_then_at_its_own() {
    let own = TRUE_RATE + TRUE_RATE / 10;
    let mut header = header(vec![(200, rate(TRUE_RATE / 2, 200))]);
    header.clocks = [("a".into(), own)].into();
    let sight = see_header(&header);
    assert_eq!(sight.rate("a", 0, 200), own);
    assert_eq!(sight.rate("a", 210, 400), TRUE_RATE / 2);
    assert_eq!(sight.rate("a", 410, 950), own);
    assert_eq!(sight.rate("b", 0, 950), TRUE_RATE);
    // It sleeps by that clock, too.
    let slept = sight.alive("a", 210, 400) as u64;
    assert!(
        (18..20).contains(&slept),
        "{slept} times {EVERY} ns at half the rate"
    );
}

#[test]
fn a_step_moves_the_wall_clock_alone() {
    let by = -50 * i64::try_from(MS).expect("fits");
    let sight = see(vec![(200, Fault::Step { target: A, by })]);
    for (at, now, wall) in sight.clocks("a") {
        assert_eq!(now, at);
        let behind = if at < 200 * MS { 0 } else { 50 * MS };
        assert_eq!(wall, now + WALL_EPOCH - behind, "at {at}");
    }
    let others = sight.clocks("b").into_iter();
    assert!(
        others
            .into_iter()
            .all(|(_, now, wall)| now + WALL_EPOCH == wall)
    );
}

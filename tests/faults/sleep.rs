//! Machines that sleep and processes that starve, alone and on top of other faults.

use deposed::{
    checkers::history::{Nanos, TRUE_RATE},
    fault::Fault,
    workload::MS,
};

use crate::{
    pause,
    probe::{A, EVERY, see},
    steady,
};

fn suspend(length: Nanos) -> Fault {
    Fault::Suspend {
        target: A,
        length: length * MS,
    }
}

fn starve(one_in: u32, length: Nanos) -> Fault {
    Fault::Starve {
        target: A,
        one_in,
        length: length * MS,
    }
}

fn crash(length: Nanos) -> Fault {
    Fault::Crash {
        target: A,
        length: length * MS,
    }
}

#[test]
fn a_suspended_machine_stands_still_with_its_run_clock_and_its_boot_clock_runs_on() {
    let sight = see(vec![(200, suspend(200))]);
    assert_eq!(sight.alive("a", 201, 400), 0);
    assert_eq!(sight.arrived("b", "a", 201, 400), 0);
    assert!(
        sight.missing("ping", "b", "a").is_empty(),
        "it lay in its buffers"
    );
    assert_eq!(sight.rate("a", 0, 950), TRUE_RATE);
    assert_eq!((sight.slept("a", 0), sight.slept("a", 201)), (0, 200));
    assert_eq!(sight.slept("a", 900), 200);
    assert_eq!(sight.slept("b", 900), 0);
    assert!(steady(&sight, "a", "b", 450, 950));
    // A pause stops no clock.
    assert_eq!(see(vec![(200, pause(200))]).slept("a", 400), 0);
}

#[test]
fn a_pause_and_a_suspend_that_overlap_let_the_process_go_on_when_both_are_over() {
    for faults in [
        [(200, suspend(200)), (300, pause(200))],
        [(200, pause(300)), (300, suspend(100))],
        [(200, suspend(300)), (300, pause(100))],
        [(200, pause(200)), (300, suspend(200))],
    ] {
        let sight = see(faults.to_vec());
        assert_eq!(sight.alive("a", 201, 500), 0, "{faults:?}");
        assert!(sight.alive("a", 500, 600) > 10, "{faults:?}");
        let slept = faults.iter().find_map(|(_, fault)| match fault {
            Fault::Suspend { length, .. } => Some(length / MS),
            _ => None,
        });
        assert_eq!(Some(sight.slept("a", 500)), slept, "{faults:?}");
    }
}

#[test]
fn of_two_suspends_that_overlap_the_last_wakes_the_machine() {
    let sight = see(vec![(200, suspend(200)), (300, suspend(200))]);
    assert_eq!(sight.alive("a", 201, 500), 0);
    assert_eq!(
        sight.slept("a", 500),
        300,
        "not twice what they have in common"
    );
    assert!(sight.alive("a", 501, 600) > 10);
}

#[test]
fn who_is_crashed_in_his_sleep_boots_awake_and_is_not_woken_again() {
    let sight = see(vec![
        (200, suspend(500)),
        (300, crash(100)),
        (500, suspend(50)),
    ]);
    assert_eq!(sight.boots("a"), [(0, 0), (400, 1)]);
    assert_eq!(sight.alive("a", 201, 400), 0);
    assert!(sight.alive("a", 400, 500) > 10);
    assert_eq!(sight.slept("a", 400), 100, "until the crash");
    assert_eq!(sight.alive("a", 501, 550), 0, "a suspend of the new boot");
    assert_eq!(sight.slept("a", 560), 150);
    assert!(steady(&sight, "b", "a", 650, 950));
}

#[test]
fn a_starved_process_gets_one_tick_in_so_many_and_its_clocks_run_on() {
    let sight = see(vec![(200, starve(20, 600))]);
    let ticks = sight.alive("a", 202, 800);
    assert!((28..=31).contains(&ticks), "{ticks} ticks of 600");
    let turns: Vec<Nanos> = sight.clocks("a").iter().map(|(at, ..)| at / MS).collect();
    let turns: Vec<Nanos> = turns
        .into_iter()
        .filter(|at| (230..780).contains(at))
        .collect();
    assert!(
        turns.windows(2).all(|two| two[1] - two[0] == 20),
        "{turns:?}"
    );
    assert_eq!(
        (sight.rate("a", 0, 950), sight.slept("a", 800)),
        (TRUE_RATE, 0)
    );
    assert!(sight.missing("ping", "b", "a").is_empty());
    let every = EVERY / MS;
    assert!(
        sight.alive("a", 801, 900) as u64 >= 95 / every,
        "it is fed again"
    );
    assert!(sight.alive("b", 200, 800) as u64 >= 590 / every, "it alone");
}

#[test]
fn of_two_starvations_that_overlap_the_scarcer_counts_and_the_last_ends() {
    let sight = see(vec![(200, starve(10, 600)), (400, starve(50, 200))]);
    let per_200 = |after: Nanos| sight.alive("a", after + 2, after + 200);
    assert!((18..=21).contains(&per_200(200)), "{}", per_200(200));
    assert!((3..=5).contains(&per_200(400)), "{}", per_200(400));
    assert!((18..=21).contains(&per_200(600)), "{}", per_200(600));
    assert!(per_200(800) > 35);
}

#[test]
fn a_starved_process_can_be_paused_and_crashed_and_starves_on() {
    let sight = see(vec![
        (200, starve(10, 600)),
        (300, pause(100)),
        (500, crash(100)),
    ]);
    assert_eq!(sight.alive("a", 301, 400), 0, "paused");
    let starved = sight.alive("a", 402, 500);
    assert!((8..=11).contains(&starved), "{starved}");
    assert_eq!(sight.alive("a", 501, 600), 0, "down");
    let starved = sight.alive("a", 601, 800);
    assert!((17..=21).contains(&starved), "{starved}");
    assert!(sight.alive("a", 801, 900) > 17);
    assert_eq!(sight.boots("a").len(), 2);
}

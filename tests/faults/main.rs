//! What each fault does to a system that only looks.

mod aim;
mod believer;
mod chance;
mod probe;
mod server;
mod sleep;

use deposed::{
    checkers::history::{Body, F, Nanos, RatePpb, TRUE_RATE},
    clock::WALL_EPOCH,
    fault::{Fault, Target},
    workload::MS,
};
use probe::{A, B, EVERY, LATE, PEERS, Sight, header, see, see_header};
use serde_json::json;

fn partition(length: Nanos) -> Fault {
    Fault::Partition {
        a: A,
        b: B,
        length: length * MS,
    }
}

fn hold(length: Nanos) -> Fault {
    Fault::Hold {
        a: A,
        b: B,
        length: length * MS,
    }
}

fn slow(length: Nanos) -> Fault {
    let (a, b, min, max, length) = (A, B, 80 * MS, 90 * MS, length * MS);
    Fault::Latency {
        a,
        b,
        min,
        max,
        length,
    }
}

fn pause(length: Nanos) -> Fault {
    Fault::Pause {
        target: A,
        length: length * MS,
    }
}

fn rate(rate_ppb: RatePpb, length: Nanos) -> Fault {
    Fault::Rate {
        target: A,
        rate_ppb,
        length: length * MS,
    }
}

/// Whether frames come steadily from one node to another between two milliseconds.
fn steady(sight: &Sight, from: &str, to: &str, after: Nanos, before: Nanos) -> bool {
    let slots = (after..before).step_by(50);
    slots
        .into_iter()
        .all(|slot| sight.arrived(from, to, slot, slot + 50) > 0)
}

fn others(node: &str) -> impl Iterator<Item = &'static str> {
    PEERS.into_iter().filter(move |peer| *peer != node)
}

#[test]
fn without_a_fault_everything_arrives_in_time_and_no_connection_fails() {
    let sight = see(vec![]);
    for node in PEERS {
        for peer in others(node) {
            assert!(steady(&sight, node, peer, 150, 2000), "{node} to {peer}");
            assert!(sight.missing("ping", node, peer).is_empty());
            let tried = sight.dialled(node, peer, 150, 2000);
            assert_eq!(tried, ["connected"].into());
        }
        assert_eq!(sight.rate(node, 0, 2000), TRUE_RATE);
    }
    let late = sight
        .frames("ping", "a", "b")
        .into_iter()
        .filter(|frame| frame.at - frame.sent > 3 * MS);
    assert_eq!(late.count(), 0);
}

#[test]
fn a_partition_cuts_both_ways_between_its_parties_alone() {
    let sight = see(vec![(200, partition(200))]);
    for (from, to) in [("a", "b"), ("b", "a")] {
        assert_eq!(sight.arrived(from, to, 203, 400), 0, "{from} to {to}");
        assert!(steady(&sight, from, to, 550, 950), "{from} to {to}");
        // What was in flight or sent meanwhile is lost.
        assert!(sight.missing("ping", from, to).len() > 5);
        assert!(steady(&sight, from, "store", 150, 950));
    }
}

#[test]
fn a_one_way_partition_cuts_one_way() {
    let sight = see(vec![(
        200,
        Fault::PartitionOneway {
            from: A,
            to: B,
            length: 200 * MS,
        },
    )]);
    assert_eq!(sight.arrived("a", "b", 203, 400), 0);
    assert!(steady(&sight, "a", "b", 550, 950));
    assert!(steady(&sight, "b", "a", 150, 950));
    assert!(sight.missing("ping", "b", "a").is_empty());
}

#[test]
fn an_isolated_node_is_cut_off_from_all_others() {
    let sight = see(vec![(
        200,
        Fault::Isolate {
            target: A,
            length: 200 * MS,
        },
    )]);
    for peer in others("a") {
        assert_eq!(sight.arrived("a", peer, 203, 400), 0, "to {peer}");
        assert_eq!(sight.arrived(peer, "a", 203, 400), 0, "from {peer}");
        assert!(steady(&sight, "a", peer, 550, 950) && steady(&sight, peer, "a", 550, 950));
    }
    assert!(steady(&sight, "b", "store", 150, 950));
}

#[test]
fn nobody_is_refused_across_a_cut_and_nobody_connects() {
    let (from, to, length) = (A, B, 200 * MS);
    let oneway = Fault::PartitionOneway { from, to, length };
    for fault in [partition(200), oneway, Fault::Isolate { target: A, length }] {
        let sight = see(vec![(200, fault.clone())]);
        for (from, to) in [("a", "b"), ("b", "a")] {
            let tried = sight.dialled(from, to, 203, 400);
            assert_eq!(
                tried,
                ["nothing"].into(),
                "{from} to {to}: {}",
                fault.name()
            );
            assert!(sight.dialled(from, to, 420, 950).contains("connected"));
        }
        assert_eq!(sight.dialled("b", "store", 150, 950), ["connected"].into());
    }
}

#[test]
fn a_cut_loses_the_handshake_under_way_though_it_heals_before_anybody_gives_up() {
    let slow = Fault::Latency {
        a: A,
        b: B,
        min: 10 * MS,
        max: 10 * MS,
        length: 700 * MS,
    };
    let cuts = (0..100).map(|nth| (200 + 6 * nth, partition(1)));
    let sight = see([(190, slow)].into_iter().chain(cuts).collect());
    let tried = sight.dialled("a", "b", 220, 800);
    assert_eq!(tried, ["nothing"].into());
}

#[test]
fn a_host_that_is_up_and_does_not_listen_refuses_and_one_that_is_down_says_nothing() {
    let sight = see(vec![(
        250,
        Fault::Crash {
            target: Target::Storage,
            length: 200 * MS,
        },
    )]);
    let tried = |after, before| sight.dialled("a", "storage", after, before);
    let late = LATE / MS;
    assert_eq!(tried(0, late), ["refused"].into());
    assert_eq!(tried(late + 10, 250), ["connected"].into());
    assert_eq!(tried(255, 450), ["nothing"].into());
    assert_eq!(tried(475, 450 + late), ["refused"].into());
    assert!(tried(450 + late + 10, 950).contains("connected"));
}

/// The halves of a split, and the node that sees both.
fn sides(sight: &Sight, fault: &str) -> (Vec<Vec<String>>, Option<String>) {
    let (at, value) = sight.nemesis(fault).remove(0);
    assert_eq!(at, 200);
    let halves = serde_json::from_value(value["halves"].clone()).expect("two lists");
    (halves, value["bridge"].as_str().map(str::to_owned))
}

#[test]
fn halves_see_their_own_half_alone_and_a_bridge_sees_both() {
    let length = 200 * MS;
    for fault in [Fault::Halves { length }, Fault::Bridge { length }] {
        let mut drawn = std::collections::BTreeSet::new();
        for seed in 0..8 {
            let mut header = header(vec![(200, fault.clone())]);
            header.seed = seed;
            let sight = see_header(&header);
            let (halves, bridge) = sides(&sight, fault.name());
            assert_eq!(bridge.is_some(), fault.name() == "bridge");
            let mut all = halves.concat();
            all.extend(bridge);
            all.sort();
            assert_eq!(all, ["a", "b", "storage", "store"], "each is somewhere");
            assert!(halves[0].len().abs_diff(halves[1].len()) <= 1, "{halves:?}");
            let side = |node: &str| {
                halves
                    .iter()
                    .position(|half| half.iter().any(|n| n == node))
            };
            for node in PEERS {
                for peer in others(node) {
                    let apart = side(node).is_some_and(|one| side(peer).is_some_and(|o| o != one));
                    let came = sight.arrived(node, peer, 203, 400);
                    assert_eq!(came == 0, apart, "{node} to {peer}: {halves:?}");
                    assert!(steady(&sight, node, peer, 550, 950), "{node} to {peer}");
                }
            }
            drawn.insert(halves);
        }
        assert!(drawn.len() > 2, "always the same: {drawn:?}");
    }
}

#[test]
fn what_is_held_arrives_all_at_once_and_nothing_is_lost() {
    let sight = see(vec![(200, hold(200))]);
    for (from, to) in [("a", "b"), ("b", "a")] {
        assert_eq!(sight.arrived(from, to, 203, 400), 0, "{from} to {to}");
        assert!(sight.arrived(from, to, 400, 403) > 20, "{from} to {to}");
        assert!(sight.missing("ping", from, to).is_empty());
    }
    assert!(steady(&sight, "a", "store", 150, 950));
}

#[test]
fn latency_slows_a_link_down_and_then_no_more() {
    let sight = see(vec![(200, slow(200))]);
    let frames = sight.frames("ping", "a", "b");
    let sent = |after, before| {
        let within = move |sent| (after * MS..before * MS).contains(&sent);
        frames.iter().filter(move |frame| within(frame.sent))
    };
    assert!(sent(201, 399).count() > 20);
    assert!(sent(201, 399).all(|frame| frame.at - frame.sent >= 80 * MS));
    assert!(sent(201, 399).all(|frame| frame.at - frame.sent < 150 * MS));
    assert!(sent(500, 950).count() > 50);
    assert!(sent(500, 950).all(|frame| frame.at - frame.sent <= 3 * MS));
    let elsewhere = sight.frames("ping", "a", "store");
    assert!(
        elsewhere
            .iter()
            .all(|frame| frame.at - frame.sent <= 3 * MS)
    );
}

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

#[test]
fn a_paused_process_does_nothing_while_its_clock_runs_on_and_then_catches_up() {
    let sight = see(vec![(200, pause(200))]);
    assert_eq!(sight.alive("a", 201, 400), 0);
    assert_eq!(sight.arrived("a", "b", 203, 400), 0);
    assert_eq!(sight.arrived("b", "a", 201, 400), 0);
    // What came meanwhile lay in its buffers.
    assert!(sight.arrived("b", "a", 400, 403) > 20);
    assert!(sight.missing("ping", "b", "a").is_empty());
    assert_eq!(sight.rate("a", 0, 950), TRUE_RATE);
    assert!(sight.alive("a", 400, 450) > 5);
    assert!(steady(&sight, "b", "store", 150, 950));
}

/// The calls that a node began between two milliseconds.
fn calls(sight: &Sight, node: &str, after: Nanos, before: Nanos) -> Vec<(Nanos, F)> {
    let call = |event: &deposed::checkers::history::Event| match &event.body {
        Body::Invoke(op) if event.process == node => Some((event.time / MS, op.f())),
        _ => None,
    };
    let calls = sight.outcome.history.iter().filter_map(call);
    calls
        .filter(|(at, _)| (after..before).contains(at))
        .collect()
}

#[test]
fn a_gc_pause_lands_just_before_the_named_call() {
    for f in [F::Read, F::Fence] {
        let pause = Fault::GcPause {
            target: A,
            before: Some(f),
            length: 200 * MS,
        };
        let sight = see(vec![(200, pause)]);
        let paused = sight.nemesis("paused");
        assert_eq!(paused.len(), 1);
        let (at, value) = &paused[0];
        assert!((200..225).contains(at), "the next such call: {at}");
        assert_eq!(*value, json!({"node": "a", "for": 200 * MS, "before": f}));
        assert_eq!(sight.alive("a", at + 1, at + 200), 0);
        let next = calls(&sight, "a", *at, 950)[0];
        assert!(
            (at + 200..at + 203).contains(&next.0) && next.1 == f,
            "{next:?} of {f:?}"
        );
    }
}

#[test]
fn of_two_gc_pauses_that_wait_both_land() {
    let pause = |before, length| Fault::GcPause {
        target: A,
        before: Some(before),
        length: length * MS,
    };
    let sight = see(vec![
        (200, pause(F::Read, 50)),
        (200, pause(F::Fence, 70)),
        (200, pause(F::Read, 90)),
    ]);
    let mut paused: Vec<_> = sight
        .nemesis("paused")
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    paused.sort_by_key(|value| value["for"].as_u64());
    let expected = [(50, F::Read), (70, F::Fence), (90, F::Read)];
    let expected =
        expected.map(|(length, f)| json!({"node": "a", "for": length * MS, "before": f}));
    assert_eq!(paused, expected);
}

#[test]
fn a_crash_closes_connections_at_once_and_the_node_restarts_with_its_disk() {
    let sight = see(vec![(
        250,
        Fault::Crash {
            target: A,
            length: 200 * MS,
        },
    )]);
    for peer in others("a") {
        let closed = sight.closed("a", peer);
        assert_eq!(
            closed.iter().filter(|at| (250..255).contains(*at)).count(),
            1,
            "{closed:?}"
        );
        assert_eq!(sight.arrived("a", peer, 255, 450), 0);
        assert!(steady(&sight, "a", peer, 550, 950) && steady(&sight, peer, "a", 600, 950));
    }
    assert_eq!(sight.boots("a"), [(0, 0), (450, 1)]);
    assert_eq!(sight.boots("b"), [(0, 0)]);
    assert_eq!(sight.alive("a", 251, 450), 0);
}

#[test]
fn a_power_loss_closes_no_connection_and_the_node_restarts_with_its_disk() {
    let sight = see(vec![(
        250,
        Fault::PowerLoss {
            target: A,
            length: 200 * MS,
        },
    )]);
    for peer in others("a") {
        let closed = sight.closed("a", peer);
        assert_eq!(
            closed.iter().filter(|at| (250..450).contains(*at)).count(),
            0,
            "{closed:?}"
        );
        assert_eq!(sight.arrived("a", peer, 253, 450), 0);
        assert!(steady(&sight, "a", peer, 550, 950) && steady(&sight, peer, "a", 600, 950));
    }
    assert_eq!(sight.boots("a"), [(0, 0), (450, 1)]);
    assert_eq!(sight.alive("a", 251, 450), 0);
}

#[test]
fn everyone_can_lose_power_at_once_and_all_come_back_with_their_disks() {
    let (target, length) = (Target::Everyone, 200 * MS);
    let sight = see(vec![(250, Fault::PowerLoss { target, length })]);
    assert_eq!(sight.nemesis("power-loss").len(), PEERS.len());
    for node in PEERS {
        assert_eq!(sight.boots(node), [(0, 0), (450, 1)], "{node}");
        assert_eq!(sight.alive(node, 251, 450), 0, "{node}");
        for peer in others(node) {
            // Nothing outlives it: no frame that was under way, and none from the dark.
            let frames = sight.frames("ping", node, peer).into_iter();
            let late = frames.filter(|frame| frame.at >= 251 * MS && frame.sent < 450 * MS);
            assert_eq!(late.count(), 0, "{node} to {peer}");
            assert!(steady(&sight, node, peer, 650, 950), "{node} to {peer}");
        }
    }
}

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

#[test]
fn a_fault_that_finds_nobody_is_recorded_as_void() {
    let (target, length) = (Target::Leader, 100 * MS);
    let partition = Fault::Partition {
        a: target,
        b: Target::Store,
        length,
    };
    let lose = Fault::Lose {
        kind: "ping".into(),
        from: target,
        to: B,
        count: 1,
    };
    // The second crash meets a node that is down.
    let crash = Fault::Crash { target: A, length };
    let sight = see(vec![
        (200, partition),
        (210, Fault::Pause { target, length }),
        (230, lose),
        (240, crash.clone()),
        (250, crash),
    ]);
    let void = |at: Nanos, fault: &str, target| (at, json!({"fault": fault, "target": target}));
    let expected = [
        void(200, "partition", json!(["leader", "store"])),
        void(210, "pause", json!("leader")),
        void(230, "lose", json!([target, B])),
        void(250, "crash", json!(A)),
    ];
    assert_eq!(sight.nemesis("void"), expected);
}

#[test]
fn calm_heals_everything() {
    let (long, target) = (10_000, Target::Store);
    let lose = Fault::Lose {
        kind: "pong".into(),
        from: Target::Everyone,
        to: Target::Everyone,
        count: 1_000_000,
    };
    let sight = see(vec![
        (200, partition(long)),
        (210, hold(long)),
        (220, slow(long)),
        (230, rate(TRUE_RATE / 2, long)),
        (240, lose),
        (
            250,
            Fault::Crash {
                target,
                length: long * MS,
            },
        ),
        (
            260,
            Fault::PowerLoss {
                target: Target::Storage,
                length: long * MS,
            },
        ),
        (
            270,
            Fault::Isolate {
                target: B,
                length: long * MS,
            },
        ),
        (
            280,
            Fault::Flaky {
                a: Target::Everyone,
                b: Target::Everyone,
                lose_ppb: 500_000_000,
                delay_ppb: 500_000_000,
                by: 300 * MS,
                length: long * MS,
            },
        ),
        (290, Fault::Halves { length: long * MS }),
        (300, Fault::Bridge { length: long * MS }),
        (
            310,
            Fault::Starve {
                target: Target::Everyone,
                one_in: 50,
                length: long * MS,
            },
        ),
        (
            600,
            Fault::Suspend {
                target: B,
                length: long * MS,
            },
        ),
        (700, pause(long)),
        (
            999,
            Fault::GcPause {
                target: B,
                before: Some(F::Fence),
                length: long * MS,
            },
        ),
    ]);
    assert_eq!(sight.arrived("a", "b", 300, 1000), 0, "the faults strike");
    for node in PEERS {
        for peer in others(node) {
            assert!(steady(&sight, node, peer, 1200, 2000), "{node} to {peer}");
            let frames = ["ping", "pong"].map(|kind| sight.frames(kind, node, peer));
            for frames in frames {
                let calm: Vec<_> = frames
                    .iter()
                    .filter(|frame| frame.sent > 1200 * MS)
                    .collect();
                assert!(calm.len() > 100, "{node} to {peer}");
                assert!(calm.iter().all(|frame| frame.at - frame.sent <= 3 * MS));
            }
        }
        assert_eq!(sight.rate(node, 1010, 2000), TRUE_RATE);
        assert!(sight.alive(node, 1010, 2000) > 190);
    }
    assert_eq!(sight.nemesis("calm"), [(1000, json!({}))]);
}

//! Links: cut, held, slow.

use deposed::{
    checkers::history::TRUE_RATE,
    fault::{Fault, Target},
    workload::MS,
};

use super::{
    hold, others, partition,
    probe::{A, B, LATE, PEERS, Sight, header, see, see_header},
    slow, steady,
};

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

//! Processes and machines: paused, crashed, without power.

use deposed::{
    checkers::history::{Body, F, Nanos, TRUE_RATE},
    fault::{Fault, Target},
    workload::MS,
};
use serde_json::json;

use super::{
    others, pause,
    probe::{A, PEERS, Sight, see},
    steady,
};

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

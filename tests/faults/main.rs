//! What each fault does to a system that only looks.

mod aim;
mod believer;
mod chance;
mod clock;
mod message;
mod network;
mod overlap;
mod probe;
mod process;
mod server;
mod sleep;

use deposed::{
    checkers::history::{F, Nanos, RatePpb, TRUE_RATE},
    fault::{Fault, Target},
    workload::MS,
};
use probe::{A, B, PEERS, Sight, see};
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

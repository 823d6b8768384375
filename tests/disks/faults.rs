//! What a server makes of a disk that fails.

use std::{rc::Rc, sync::Arc};

use deposed::{
    checkers::history::{Body, Event, F, Kind, Observation},
    disk::{Batch, Disk, MemoryDisk, RESTORED},
    fault::{Injection, Trigger},
    prelude::*,
    run::{Header, Outcome, run},
};
use futures_util::FutureExt;
use serde_json::Value;

/// Six seconds of leaders that resign every 200 ms, so that there is always something
/// to make durable, and of these faults, by their time in ms.
fn header(faults: Vec<(Nanos, Fault)>) -> Header {
    let mut workload = Workload {
        cluster: Cluster::of(3).on_disks(),
        chaos: 6 * SECOND,
        ..Workload::named("disks")
    };
    workload.traffic.resign_every = Some(200 * MS);
    let schedule = faults.into_iter().map(|(at, fault)| Injection {
        when: Trigger::At(at * MS),
        fault,
    });
    Header {
        schedule: schedule.collect(),
        ..Header::of(&workload, 7, "deposed", None)
    }
}

/// A run of the correct system, in which no check finds anything.
fn outcome(faults: Vec<(Nanos, Fault)>) -> Outcome {
    let system: Arc<dyn System> = Arc::new(Deposed);
    let outcome = run(&header(faults), &system).expect("the header can be run");
    assert_eq!(outcome.defects, [""; 0]);
    let violated: Vec<_> = outcome.verdicts.violated().collect();
    assert!(violated.is_empty(), "{violated:?}");
    outcome
}

fn seen(event: &Event) -> Option<&Observation> {
    match &event.body {
        Body::Observed(seen) => Some(seen),
        _ => None,
    }
}

/// The times at which something was seen.
fn times(outcome: &Outcome, is: impl Fn(&Observation) -> bool) -> Vec<Nanos> {
    let events = outcome.history.iter();
    let such = events.filter(|event| seen(event).is_some_and(&is));
    such.map(|event| event.time).collect()
}

/// What the nemesis noted under a name.
fn noted<'a>(outcome: &'a Outcome, name: &str) -> Vec<(Nanos, &'a Value)> {
    let events = outcome.history.iter();
    events
        .filter_map(|event| match &event.body {
            Body::Nemesis(fault, value) if fault == name => Some((event.time, value)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_server_whose_disk_failed_goes_on_from_what_is_durable() {
    let fail = |target| Fault::IoError { target, count: 2 };
    let outcome = outcome(vec![
        (1000, fail(Target::Store)),
        (2000, fail(Target::Storage)),
    ]);
    assert!(
        noted(&outcome, "restart").is_empty(),
        "no process went down"
    );
    let stores = times(&outcome, |seen| {
        matches!(seen, Observation::StoreRecovered(_))
    });
    let storages = times(&outcome, |seen| {
        matches!(seen, Observation::StorageRecovered(_))
    });
    assert_eq!((stores.len(), storages.len()), (1, 1));
    let granted = times(&outcome, |seen| matches!(seen, Observation::Granted(_)));
    let applied = times(&outcome, |seen| matches!(seen, Observation::Applied(_)));
    assert!(granted.last() > stores.last() && applied.last() > storages.last());
    assert!(outcome.marks.contains(&Mark::RecoveredFromDiskError));
}

#[test]
fn nothing_is_taken_while_the_disk_is_full() {
    let (target, length) = (Target::Storage, 500 * MS);
    let outcome = outcome(vec![(2000, Fault::FullDisk { target, length })]);
    let applied = times(&outcome, |seen| matches!(seen, Observation::Applied(_)));
    let during = (2001 * MS)..(2500 * MS);
    assert!(!applied.iter().any(|time| during.contains(time)));
    assert!(applied.iter().any(|time| *time < during.start));
    assert!(applied.iter().any(|time| *time > during.end));
    assert_eq!(noted(&outcome, "heal").len(), 1);
}

#[test]
fn a_slow_sync_takes_the_time_that_it_takes() {
    let slow = Fault::SlowSync {
        target: Target::Storage,
        by: 40 * MS,
        length: 2 * SECOND,
    };
    let outcome = outcome(vec![(2000, slow)]);
    let mut sent = std::collections::BTreeMap::new();
    let (mut before, mut during) = (0, 0);
    for event in &outcome.history {
        match (&event.body, event.kind) {
            (Body::Invoke(op), _) if op.f() == F::Write => {
                sent.insert(event.call, event.time);
            }
            (Body::Complete(F::Write, _), Kind::Ok) => {
                let took = event.time - sent[&event.call];
                match event.time / SECOND {
                    0 | 1 => before = took.max(before),
                    2 | 3 => during = took.max(during),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    assert!(before > 0 && during > before + 20 * MS, "{before} {during}");
}

#[test]
fn the_power_goes_inside_an_operation_of_the_disk() {
    let cut = |operations| Fault::PowerCut {
        target: Target::Storage,
        operations,
        length: 20 * MS,
    };
    let cuts = (1..=8).map(|nth| (nth * 500, cut(nth as u32 * 2)));
    let outcome = outcome(cuts.collect());
    let armed = noted(&outcome, "power-cut");
    let struck = noted(&outcome, "power-loss");
    assert_eq!((armed.len(), struck.len()), (8, 8));
    let inside: std::collections::BTreeSet<_> = struck
        .iter()
        .filter_map(|(_, value)| value["inside"].as_str())
        .collect();
    assert!(inside.is_superset(&["sync", "write"].into()), "{inside:?}");
    let found = times(&outcome, |seen| {
        matches!(seen, Observation::StorageRecovered(_))
    });
    assert_eq!(found.len(), 8);
}

#[test]
fn a_restored_store_goes_on_above_its_floor_when_all_that_it_forgot_has_run_out() {
    let target = Target::Store;
    let length = 20 * MS;
    let outcome = outcome(vec![
        (500, Fault::Restore { target, length }),
        (1000, Fault::Backup { target }),
        (3000, Fault::Restore { target, length }),
    ]);
    // There was nothing to restore at first.
    assert_eq!(noted(&outcome, "void").len(), 1);
    let (mut highest, mut restored) = (0, None);
    for event in &outcome.history {
        match seen(event) {
            Some(Observation::Restored(found)) => {
                assert_eq!(found.floor, highest);
                let counter = found.leases["leader"].counter;
                assert!((1..highest).contains(&counter), "an old copy: {counter}");
                restored = Some(event.time);
            }
            Some(Observation::Granted(granted)) => {
                let token = granted.token.expect("a token");
                assert_eq!(token, highest + 1);
                if let Some(restored) = restored.take() {
                    assert!(event.time >= restored + outcome.header.lease.ttl);
                }
                highest = token;
            }
            _ => {}
        }
    }
    assert!(outcome.marks.contains(&Mark::GrantedAfterRestore));
}

#[test]
fn a_fault_that_no_disk_can_have_is_refused_in_a_sentence() {
    let (store, storage, leader) = (Target::Store, Target::Storage, Target::Leader);
    let length = MS;
    let refused = |fault: Fault, disk| {
        let mut header = header(vec![(0, fault)]);
        header.cluster.disk = disk;
        header.validate().expect_err("no disk can").to_string()
    };
    let full = |target| Fault::FullDisk { target, length };
    let none = refused(full(store), DiskKind::Memory);
    assert!(none.contains("entry 0 of the header's schedule"), "{none}");
    assert!(none.contains("\"disk\":\"simulated\""), "{none}");
    let client = refused(full(leader), DiskKind::Simulated);
    assert!(client.contains("take the store or the storage"), "{client}");
    let restore = Fault::Restore {
        target: storage,
        length,
    };
    let forgets = refused(restore, DiskKind::Simulated);
    assert!(forgets.contains("only a lease server"), "{forgets}");
    let cut = Fault::PowerCut {
        target: store,
        operations: 0,
        length,
    };
    let nowhere = refused(cut, DiskKind::Simulated);
    assert!(nowhere.contains("they count from 1"), "{nowhere}");
}

/// Our system, with servers that find these records when they first boot.
struct Finds(&'static str, &'static str);

impl Finds {
    fn found_by(&self, node: Node) -> Node {
        let record = Some(self.1.as_bytes().to_vec());
        let disk = MemoryDisk::default();
        let batch = Batch::from([(self.0.to_owned(), record)]);
        let committed = disk.commit(batch).now_or_never().expect("it is at hand");
        committed.expect("memory does not fail");
        node.with_disk(Rc::new(disk))
    }
}

impl System for Finds {
    fn name(&self) -> &'static str {
        "deposed"
    }

    fn store(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        Deposed.store(self.found_by(node), setup)
    }

    fn storage(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        Deposed.storage(self.found_by(node), setup)
    }

    fn client(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        Deposed.client(node, setup)
    }
}

/// What was granted and what was fenced by servers that found this.
fn after_finding(name: &'static str, record: &'static str) -> (usize, usize) {
    let system: Arc<dyn System> = Arc::new(Finds(name, record));
    let outcome = run(&header(vec![]), &system).expect("the header can be run");
    assert_eq!(outcome.defects, [""; 0], "nothing panics");
    let granted = times(&outcome, |seen| matches!(seen, Observation::Granted(_)));
    let fenced = times(&outcome, |seen| matches!(seen, Observation::Fenced(_)));
    (granted.len(), fenced.len())
}

#[test]
fn a_server_does_not_start_on_a_guess() {
    let whole = r#"{"counter":7}"#;
    assert!(after_finding("lease/leader", whole).0 > 0, "it is whole");
    for (name, record) in [
        ("lease/leader", r#"{"counter":7"#),
        ("lease/leader", r#"{"counter":-7}"#),
        ("restoration", "{}"),
        ("something-else", whole),
        (RESTORED, "7"),
    ] {
        assert_eq!(after_finding(name, record).0, 0, "{name}: {record}");
    }
    // A lease server can be restored; storage cannot.
    let (granted, fenced) = after_finding(RESTORED, r#"{"floor":7}"#);
    assert!(granted > 0);
    assert_eq!(fenced, 0);
}

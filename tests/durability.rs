//! What a server answered is on its disk, whatever becomes of its process or its
//! machine; and a disk that forgets is found out by the first restart.

use std::{collections::BTreeMap, io, rc::Rc, sync::Arc};

use deposed::{
    checkers::{
        history::{Body, Event, Name, Observation},
        verdict::{Evidence, Verdict},
    },
    disk::{Batch, Disk, Records},
    fault::{Injection, Trigger},
    net::LocalFuture,
    node::Node,
    prelude::*,
    run::{Header, Outcome, run},
    system::Setup,
};

/// Both servers go down twice, by a crash and by a loss of power, apart from each
/// other, long after they granted and fenced for the first time.
fn header() -> Header {
    let at = |time, fault| Injection {
        when: Trigger::At(time),
        fault,
    };
    let length = 100 * MS;
    let (store, storage) = (Target::Store, Target::Storage);
    let crash = |target| Fault::Crash { target, length };
    let power_loss = |target| Fault::PowerLoss { target, length };
    let workload = Workload {
        chaos: 6 * SECOND,
        ..Workload::named("durability")
    };
    Header {
        schedule: vec![
            at(SECOND, crash(store)),
            at(2 * SECOND, crash(storage)),
            at(3 * SECOND, power_loss(store)),
            at(4 * SECOND, power_loss(storage)),
        ],
        ..Header::of(&workload, 7, "deposed", None)
    }
}

fn outcome(system: impl System + 'static) -> Outcome {
    outcome_on(DiskKind::Memory, system)
}

fn outcome_on(disk: DiskKind, system: impl System + 'static) -> Outcome {
    let system: Arc<dyn System> = Arc::new(system);
    let mut header = header();
    header.cluster.disk = disk;
    let outcome = run(&header, &system).expect("the header can be run");
    assert_eq!(outcome.defects, [""; 0]);
    outcome
}

fn seen(event: &Event) -> Option<&Observation> {
    match &event.body {
        Body::Observed(seen) => Some(seen),
        _ => None,
    }
}

fn raise(tokens: &mut BTreeMap<Name, u64>, lease: &Name, token: u64) {
    let highest = tokens.entry(lease.clone()).or_default();
    *highest = token.max(*highest);
}

#[test]
fn servers_come_back_with_all_they_had_answered() {
    for disk in [DiskKind::Memory, DiskKind::Simulated] {
        come_back_with_all_they_had_answered(&outcome_on(disk, Deposed));
    }
}

fn come_back_with_all_they_had_answered(outcome: &Outcome) {
    assert!(outcome.verdicts.violated().next().is_none());
    let (mut granted, mut taken) = (BTreeMap::new(), BTreeMap::new());
    let (mut stores, mut storages) = (0, 0);
    for observation in outcome.history.iter().filter_map(seen) {
        match observation {
            Observation::Granted(grant) => {
                raise(&mut granted, &grant.lease, grant.token.expect("a token"));
            }
            Observation::Fenced(fenced) => raise(&mut taken, &fenced.lease, fenced.token),
            Observation::StoreRecovered(found) => {
                let counters = found.leases.iter();
                let counters = counters.map(|(lease, found)| (lease.clone(), found.counter));
                assert_eq!(counters.collect::<BTreeMap<_, _>>(), granted);
                assert!(!granted.is_empty());
                stores += 1;
            }
            Observation::StorageRecovered(found) => {
                assert_eq!(found.highest, taken);
                assert!(!taken.is_empty());
                storages += 1;
            }
            _ => {}
        }
    }
    assert_eq!((stores, storages), (2, 2), "every boot but the first");
}

/// A disk on which nothing becomes durable.
struct Forgets;

impl Disk for Forgets {
    fn commit(&self, _: Batch) -> LocalFuture<'_, io::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn records(&self) -> LocalFuture<'_, io::Result<Records>> {
        Box::pin(std::future::ready(Ok(Records::new())))
    }
}

/// Our system, with servers whose disks may forget.
struct OnDisksThatForget {
    store: bool,
    storage: bool,
}

fn on_disk(node: Node, forgets: bool) -> Node {
    match forgets {
        true => node.with_disk(Rc::new(Forgets)),
        false => node,
    }
}

impl System for OnDisksThatForget {
    fn name(&self) -> &'static str {
        "deposed"
    }

    fn store(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        Deposed.store(on_disk(node, self.store), setup)
    }

    fn storage(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        Deposed.storage(on_disk(node, self.storage), setup)
    }

    fn client(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        Deposed.client(node, setup)
    }
}

fn evidence(outcome: &Outcome, check: Check) -> &Evidence {
    match outcome.verdicts.of(check) {
        Some(Verdict::Violated(evidence)) => evidence,
        verdict => panic!("{check}: {verdict:?}"),
    }
}

/// The first of its node's restarts.
fn first(outcome: &Outcome, is: fn(&Observation) -> bool) -> u64 {
    let mut restarts = outcome.history.iter();
    let restart = restarts.find(|event| seen(event).is_some_and(is));
    restart.expect("a server that comes back says so").index
}

#[test]
fn storage_that_forgets_is_convicted_by_its_first_restart() {
    let outcome = outcome(OnDisksThatForget {
        store: false,
        storage: true,
    });
    let back = first(&outcome, |seen| {
        matches!(seen, Observation::StorageRecovered(_))
    });
    let evidence = evidence(&outcome, Check::StorageSafety);
    assert_eq!(evidence.culprit, back, "{}", evidence.sentence);
}

#[test]
fn a_store_that_forgets_is_convicted_by_its_first_restart() {
    let outcome = outcome(OnDisksThatForget {
        store: true,
        storage: false,
    });
    let back = first(&outcome, |seen| {
        matches!(seen, Observation::StoreRecovered(_))
    });
    let owner = evidence(&outcome, Check::LeaseLinearizable);
    assert_eq!(owner.culprit, back, "{}", owner.sentence);
    // It lists no lease: the grant that follows gives the lost counter away.
    let counter = evidence(&outcome, Check::TokenMonotonicity);
    assert!(counter.events.contains(&back), "{}", counter.sentence);
}

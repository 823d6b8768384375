//! `compare-and-swap`: lease and data in one state machine.

use deposed::prelude::*;

/// Deposed leaders' writes reach storage that knows by itself whose lease it is: late,
/// after a pause, or twice. Leaders set no barrier; the next grant is one. The store
/// crashes now and then and comes back with lease and data of one moment.
pub fn workload() -> Workload {
    let calm = Workload::named("compare-and-swap");
    let (leader, store) = (Target::Leader, Target::Store);
    let writing = [Moment::invoking(F::Write)];
    let proven = [Moment::done(F::Renew), Moment::done(F::Acquire)];
    Workload {
        story: "stale writes against storage that grants the leases itself, and sets no barrier",
        cluster: Cluster::of(3)
            .with_storage(StorageKind::CompareAndSwap)
            .on_disks(),
        traffic: Traffic {
            delete_one_in: 10,
            resign_every: Some(calm.lease.ttl * 3),
            ..calm.traffic.clone()
        },
        nemesis: Nemesis::dense(
            1,
            2,
            vec![
                gc_pause(leader, Some(F::Write)).weight(3),
                gc_pause(leader, Some(F::Write)).lasting(Length::AroundTtl),
                gc_pause(leader, Some(F::Read)),
                pause(leader).aimed(&writing).lasting(Length::AroundTtl),
                delay("write")
                    .between(leader, store)
                    .aimed(&writing)
                    .lasting(Length::AroundTtl)
                    .weight(3),
                duplicate("write").lasting(Length::AroundTtl),
                isolate(leader).aimed(&proven).lasting(Length::AroundTtl),
                partition_oneway(store, leader).aimed(&writing),
                crash(store).aimed(&writing).lasting(Length::Short),
                power_cut(store).lasting(Length::Short),
                io_error(store),
                power_loss(store).aimed(&proven).lasting(Length::Short),
            ],
        ),
        must_see: vec![
            Mark::Wrote,
            Mark::Deleted,
            Mark::TakenOverAfterExpiry,
            Mark::TakenOverAfterRelease,
            Mark::PausedPastItsTerm,
            Mark::StaleWriteRefused,
            Mark::LeaderCutOff,
            Mark::Restarted,
            Mark::RenewedAcrossStoreRestart,
        ],
        catches: vec![
            (Flaw::ComparesRemoteOwner, Check::ZombieWrite),
            (Flaw::CounterNotSynced, Check::TokenMonotonicity),
        ],
        ..calm
    }
}

//! `chaos-on-disks`: everything at once, and the disks fail too.

use deposed::prelude::*;

/// The faults of `chaos`, and among them those of the servers' disks: the power goes
/// inside an operation, operations fail, commits are slow, a disk is full, the store is
/// restored from an old copy. Whatever a server loses in the middle of the rest, what it
/// had answered it still knows.
pub fn workload() -> Workload {
    let chaos = crate::chaos::workload();
    let (store, storage) = (Target::Store, Target::Storage);
    let granting = [Moment::invoking(F::Acquire), Moment::done(F::Acquire)];
    let writing = [Moment::invoking(F::Write), Moment::done(F::Fence)];
    let mut nemesis = chaos.nemesis;
    nemesis.choices.extend([
        power_cut(store)
            .aimed(&granting)
            .lasting(Length::Short)
            .weight(6),
        power_cut(storage)
            .aimed(&writing)
            .lasting(Length::Short)
            .weight(6),
        io_error(store).aimed(&granting).weight(4),
        io_error(storage).aimed(&writing).weight(4),
        slow_sync(store).weight(3),
        slow_sync(storage).weight(3),
        full_disk(store).lasting(Length::Short).weight(2),
        full_disk(storage).lasting(Length::Short).weight(2),
        backup(store).weight(3),
        restore(store).lasting(Length::Short).weight(3),
    ]);
    let disks = [
        Mark::PowerCutInside,
        Mark::RecoveredFromDiskError,
        Mark::GrantedAfterRestore,
    ];
    Workload {
        name: "chaos-on-disks",
        story: "everything above at once, and the disks fail, 2 to 5 faults a ttl",
        cluster: chaos.cluster.on_disks(),
        nemesis,
        must_see: chaos.must_see.into_iter().chain(disks).collect(),
        catches: vec![
            (Flaw::AnswersBeforeDurable, Check::TokenMonotonicity),
            (Flaw::CounterNotSynced, Check::TokenMonotonicity),
            (Flaw::RestoredWithoutFloor, Check::TokenMonotonicity),
            (Flaw::FenceNotDurable, Check::StorageSafety),
            (Flaw::ValueBeforeToken, Check::StorageSafety),
        ],
        ..chaos
    }
}

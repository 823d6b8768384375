//! `disk-errors`: servers on disks that fail and go on.

use deposed::prelude::*;

/// Operations of the servers' disks fail, commits take long, disks are full for a
/// while. A server that could not make something durable answers nothing and starts
/// over from what is; what it had answered it still knows.
pub fn workload() -> Workload {
    let (store, storage) = (Target::Store, Target::Storage);
    let granting = [Moment::invoking(F::Acquire), Moment::done(F::Acquire)];
    let writing = [Moment::invoking(F::Write), Moment::done(F::Fence)];
    Workload {
        story: "the disks of store and storage fail, are slow or full, and the power goes",
        cluster: Cluster::of(3).on_disks(),
        nemesis: Nemesis::dense(
            1,
            3,
            vec![
                io_error(store).aimed(&granting).weight(2),
                io_error(storage).aimed(&writing).weight(2),
                slow_sync(store),
                slow_sync(storage),
                full_disk(store).lasting(Length::Short),
                full_disk(storage).lasting(Length::Short),
                power_cut(store).lasting(Length::Short),
                power_cut(storage).lasting(Length::Short),
                gc_pause(Target::Leader, Some(F::Write))
                    .lasting(Length::Long)
                    .weight(2),
            ],
        ),
        must_see: vec![
            Mark::RecoveredFromDiskError,
            Mark::PowerCutInside,
            Mark::TakenOverAfterExpiry,
            Mark::StaleWriteRefused,
        ],
        catches: vec![(Flaw::AnswersBeforeDurable, Check::TokenMonotonicity)],
        ..Workload::named("disk-errors")
    }
}

//! `disk-power-loss`: servers on disks that lose what was not synced.

use deposed::prelude::*;

/// The power of store and storage goes at any time, and inside any operation of their
/// disks, also while they recover; of what was not synced any sectors survive. What
/// they had answered they still know.
pub fn workload() -> Workload {
    let granting = [Moment::invoking(F::Acquire), Moment::done(F::Acquire)];
    let writing = [Moment::invoking(F::Write), Moment::done(F::Fence)];
    Workload {
        story: "store and storage lose power, also inside a disk operation, and what was not synced",
        cluster: Cluster::of(3).on_disks(),
        nemesis: Nemesis::dense(
            0,
            2,
            vec![
                power_cut(Target::Store)
                    .aimed(&granting)
                    .lasting(Length::Short)
                    .weight(2),
                power_cut(Target::Storage)
                    .aimed(&writing)
                    .lasting(Length::Short)
                    .weight(2),
                power_loss(Target::Store)
                    .aimed(&granting)
                    .lasting(Length::Short),
                power_loss(Target::Storage)
                    .aimed(&writing)
                    .lasting(Length::Short),
                gc_pause(Target::Leader, Some(F::Write))
                    .lasting(Length::Long)
                    .weight(2),
            ],
        ),
        must_see: vec![
            Mark::PowerCutInside,
            Mark::Restarted,
            Mark::RenewedAcrossStoreRestart,
            Mark::StaleWriteRefused,
        ],
        catches: vec![
            (Flaw::AnswersBeforeDurable, Check::TokenMonotonicity),
            (Flaw::CounterNotSynced, Check::TokenMonotonicity),
            (Flaw::FenceNotDurable, Check::StorageSafety),
            (Flaw::ValueBeforeToken, Check::StorageSafety),
        ],
        ..Workload::named("disk-power-loss")
    }
}

//! `store-restart`: the servers crash and come back with what was durable.

use deposed::prelude::*;

/// Crashes and power losses of the store and of storage. Tokens go on where they
/// were, a lease of before can be renewed after, storage refuses what it refused.
pub fn workload() -> Workload {
    let granting = [Moment::invoking(F::Acquire), Moment::done(F::Acquire)];
    let writing = [Moment::invoking(F::Write), Moment::done(F::Fence)];
    Workload {
        story: "store and storage crash or lose power, and restart with durable state",
        cluster: Cluster::of(3).on_disks(),
        nemesis: Nemesis::one_in(
            2,
            vec![
                crash(Target::Store)
                    .aimed(&granting)
                    .lasting(Length::Short)
                    .weight(2),
                power_loss(Target::Store).aimed(&granting),
                crash(Target::Storage).aimed(&writing),
                power_loss(Target::Storage).aimed(&writing),
                gc_pause(Target::Leader, Some(F::Write))
                    .lasting(Length::Long)
                    .weight(2),
            ],
        ),
        must_see: vec![
            Mark::Restarted,
            Mark::RenewedAcrossStoreRestart,
            Mark::TakenOverAfterExpiry,
            Mark::StaleWriteRefused,
        ],
        catches: vec![
            (Flaw::AcceptsAnything, Check::StorageSafety),
            (Flaw::ForgetsCounter, Check::TokenMonotonicity),
            (Flaw::ForgetsLease, Check::BeliefSafety),
            (Flaw::ForgetsHighest, Check::StorageSafety),
        ],
        ..Workload::named("store-restart")
    }
}

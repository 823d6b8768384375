//! `store-restored`: the store comes back from an old copy.

use deposed::prelude::*;

/// Copies of the store's disk are taken, and the store is restored from the last of
/// them, with the highest token granted so far as the operator's floor. It jumps
/// there, and grants nothing until every lease that the copy forgot has run out.
pub fn workload() -> Workload {
    let granted = [Moment::done(F::Acquire)];
    Workload {
        story: "the store is restored from an old copy, with the floor that its operator gives",
        cluster: Cluster::of(3).on_disks(),
        nemesis: Nemesis::one_in(
            2,
            vec![
                backup(Target::Store).weight(2),
                restore(Target::Store)
                    .aimed(&granted)
                    .lasting(Length::Short)
                    .weight(2),
                power_cut(Target::Store).lasting(Length::Short),
                isolate(Target::Leader).lasting(Length::AroundTtl).weight(3),
                gc_pause(Target::Leader, Some(F::Write)).lasting(Length::Long),
            ],
        ),
        must_see: vec![
            Mark::GrantedAfterRestore,
            Mark::PowerCutInside,
            Mark::TakenOverAfterExpiry,
        ],
        catches: vec![(Flaw::RestoredWithoutFloor, Check::TokenMonotonicity)],
        ..Workload::named("store-restored")
    }
}

//! `blackout`: the power goes for everybody at once.

use deposed::prelude::*;

/// Every node loses its power in one instant, in the middle of a grant, a fence or a
/// write, and boots again. Nobody is left who remembers: what was acknowledged must be
/// on the disks, and the lease of a leader that is gone runs out in full.
pub fn workload() -> Workload {
    let moments = [
        Moment::invoking(F::Acquire),
        Moment::done(F::Acquire),
        Moment::done(F::Fence),
        Moment::invoking(F::Write),
        Moment::done(F::Write),
    ];
    Workload {
        story: "every node loses its power at once, and boots again",
        cluster: Cluster::of(3).on_disks(),
        nemesis: Nemesis::one_in(
            4,
            vec![
                power_loss(Target::Everyone)
                    .aimed(&moments)
                    .lasting(Length::Short)
                    .weight(3),
                power_loss(Target::Everyone).aimed(&moments),
                // One that is back before the others, or after them.
                power_loss(Target::Servers).aimed(&moments),
                power_loss(Target::Clients).lasting(Length::Short),
            ],
        ),
        must_see: vec![
            Mark::Blackout,
            Mark::Restarted,
            Mark::TakenOverAfterExpiry,
            Mark::Wrote,
        ],
        catches: vec![
            (Flaw::CounterNotSynced, Check::TokenMonotonicity),
            (Flaw::FenceNotDurable, Check::StorageSafety),
        ],
        ..Workload::named("blackout")
    }
}

//! `wall-clock-steps`: wall clocks step, by up to four ttls either way.

use deposed::prelude::*;

/// Somebody sets the time, on a client, on the store, on every machine, and then the
/// leader is cut off. Leases are durations on clocks that do not step: nothing may come
/// of it.
pub fn workload() -> Workload {
    let leader = Target::Leader;
    let proven = [Moment::done(F::Renew), Moment::done(F::Acquire)];
    Workload {
        story: "wall clocks step by up to four ttls either way; the leader is cut off",
        nemesis: Nemesis::one_in(
            1,
            vec![
                step(leader).aimed(&proven).weight(2),
                step(Target::AnyClient),
                step(Target::Store).aimed(&proven).weight(2),
                step(Target::Everyone),
                isolate(leader)
                    .aimed(&proven)
                    .lasting(Length::AroundTtl)
                    .weight(2),
                partition(leader, Target::Store).lasting(Length::Long),
            ],
        ),
        must_see: vec![
            Mark::WallClockStepped,
            Mark::LeaderCutOff,
            Mark::TakenOverAfterExpiry,
        ],
        catches: vec![
            (Flaw::WallClockExpiry, Check::BeliefSafety),
            (Flaw::WallClockStore, Check::LeaseLinearizable),
        ],
        ..Workload::named("wall-clock-steps")
    }
}

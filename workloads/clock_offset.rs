//! `clock-offset`: clocks that are far apart and run true.

use deposed::prelude::*;

/// Each client's clock is 42 seconds ahead of the one before, and wall clocks step.
/// Nothing may come of it: leases are durations, never instants of another
/// machine's clock.
pub fn workload() -> Workload {
    let leader = Target::Leader;
    Workload {
        story: "clocks 42 s apart, wall clocks stepping, the leader cut off",
        clocks: Clocks::Offset(42 * SECOND),
        nemesis: Nemesis::one_in(
            2,
            vec![
                isolate(leader).aimed(&[Moment::done(F::Renew)]),
                partition(leader, Target::Store),
                step(Target::Everyone),
            ],
        ),
        must_see: vec![Mark::TakenOverAfterExpiry, Mark::LeaderCutOff],
        catches: vec![(Flaw::BeliefIsAFlag, Check::BeliefSafety)],
        ..Workload::named("clock-offset")
    }
}

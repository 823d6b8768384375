//! `suspend`: machines sleep.

use deposed::prelude::*;

/// A laptop's lid, a frozen virtual machine: the leader's process stops, and so does the
/// clock that most timers read. It wakes deposed and must know it, by a clock that has
/// counted on; servers sleep, too, and their leases run on all the same.
pub fn workload() -> Workload {
    let leader = Target::Leader;
    let proven = [Moment::done(F::Renew), Moment::done(F::Acquire)];
    Workload {
        story: "leaders and servers sleep, up to two ttls; their run clocks stop",
        nemesis: Nemesis::one_in(
            2,
            vec![
                suspend(leader)
                    .aimed(&proven)
                    .lasting(Length::AroundTtl)
                    .weight(2),
                suspend(leader).aimed(&proven).lasting(Length::Long),
                suspend(Target::AnyClient),
                suspend(Target::Servers).lasting(Length::Short),
                // A pause within a sleep, and a sleep within a pause.
                pause(leader),
            ],
        ),
        must_see: vec![
            Mark::PausedPastItsTerm,
            Mark::TakenOverAfterExpiry,
            Mark::Wrote,
        ],
        catches: vec![(Flaw::ClockStopsInSuspend, Check::BeliefSafety)],
        ..Workload::named("suspend")
    }
}

//! `starvation`: processes get the processor a small part of the time.

use deposed::prelude::*;

/// A busy neighbour, a throttled container: one tick in five to in a third of a ttl.
/// Every timer fires late and every answer is read late, so that a leader renews late,
/// and the end of its belief must not wait for a timer.
pub fn workload() -> Workload {
    let leader = Target::Leader;
    Workload {
        story: "leaders, clients and servers get one tick in five to in a hundred",
        nemesis: Nemesis::one_in(
            1,
            vec![
                starve(leader).lasting(Length::Long).weight(4),
                starve(Target::AnyClient).lasting(Length::Long).weight(2),
                starve(Target::Servers),
                starve(Target::Everyone).lasting(Length::Short),
                pause(leader),
                partition(leader, Target::Store).aimed(&[Moment::done(F::Renew)]),
            ],
        ),
        must_see: vec![
            Mark::LeaderStarved,
            Mark::TakenOverAfterExpiry,
            Mark::StaleWriteRefused,
        ],
        catches: vec![(Flaw::BeliefIsAFlag, Check::BeliefSafety)],
        ..Workload::named("starvation")
    }
}

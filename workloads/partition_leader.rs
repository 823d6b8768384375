//! `partition-leader`: the leader is cut off.

use deposed::prelude::*;

/// The leader loses the store, storage or everybody, often just after a renewal, so
/// that it believes for as long as it ever can while another takes over.
pub fn workload() -> Workload {
    let leader = Target::Leader;
    let proven = [Moment::done(F::Renew), Moment::done(F::Acquire)];
    Workload {
        story: "the leader is cut off from the store, from storage, or from everybody",
        nemesis: Nemesis::one_in(
            2,
            vec![
                isolate(leader).aimed(&proven).weight(2),
                partition(leader, Target::Store).aimed(&proven).weight(2),
                partition(leader, Target::Storage).aimed(&[Moment::done(F::Write)]),
            ],
        ),
        must_see: vec![Mark::LeaderCutOff, Mark::TakenOverAfterExpiry, Mark::Wrote],
        catches: vec![
            (Flaw::LostAfterTwoTtls, Check::BeliefSafety),
            (Flaw::BeliefIsAFlag, Check::BeliefSafety),
            (Flaw::NeverContendsAgain, Check::Failover),
            (Flaw::SameHolderSameToken, Check::TokenMonotonicity),
            (Flaw::GrantsEarly, Check::LeaseLinearizable),
        ],
        ..Workload::named("partition-leader")
    }
}

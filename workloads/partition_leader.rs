//! `partition-leader`: the leader is cut off, alone or with everybody who could follow.

use deposed::prelude::*;

/// The leader loses the store, storage or everybody, often just after a renewal, so
/// that it believes for as long as it ever can while another takes over. Or all clients
/// lose the store together until the lease has run out, and whoever led may come back as
/// the first to ask: under a new token.
pub fn workload() -> Workload {
    let leader = Target::Leader;
    let proven = [Moment::done(F::Renew), Moment::done(F::Acquire)];
    Workload {
        story: "the leader is cut off from store, storage or everybody; or all from the store",
        nemesis: Nemesis::one_in(
            2,
            vec![
                isolate(leader).aimed(&proven).weight(2),
                partition(leader, Target::Store).aimed(&proven).weight(2),
                partition(leader, Target::Storage).aimed(&[Moment::done(F::Write)]),
                partition(Target::Clients, Target::Store).lasting(Length::Long),
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

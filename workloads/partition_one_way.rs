//! `partition-one-way`: one party hears, and is not heard.

use deposed::prelude::*;

/// The store hears the leader's renewals and its answers are lost, or the other way
/// round; storage applies writes that nobody hears of. What was not answered may
/// have happened.
pub fn workload() -> Workload {
    let (leader, store, storage) = (Target::Leader, Target::Store, Target::Storage);
    let asking = [Moment::invoking(F::Renew), Moment::invoking(F::Acquire)];
    let writing = [Moment::invoking(F::Write), Moment::invoking(F::Fence)];
    Workload {
        story: "the leader is heard and does not hear, or the other way round",
        nemesis: Nemesis::one_in(
            2,
            vec![
                partition_oneway(store, leader).aimed(&asking).weight(2),
                partition_oneway(leader, store).aimed(&asking).weight(2),
                partition_oneway(storage, leader).aimed(&writing),
                partition_oneway(leader, storage).aimed(&writing),
                partition_oneway(store, Target::Clients).aimed(&asking),
            ],
        ),
        must_see: vec![Mark::LeaderCutOff, Mark::TakenOverAfterExpiry],
        catches: vec![(Flaw::BeliefIsAFlag, Check::BeliefSafety)],
        ..Workload::named("partition-one-way")
    }
}

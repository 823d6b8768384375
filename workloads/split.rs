//! `split`: the network falls into halves.

use deposed::prelude::*;

/// All nodes fall into two halves, whoever is where; or into two that one node alone
/// sees both of, so that who is cut off from whom is no longer a matter of sides.
pub fn workload() -> Workload {
    let proven = [Moment::done(F::Renew), Moment::done(F::Acquire)];
    Workload {
        story: "all nodes fall into two halves, with or without a node that sees both",
        cluster: Cluster::of(4),
        nemesis: Nemesis::one_in(
            2,
            vec![
                halves().aimed(&proven).lasting(Length::AroundTtl).weight(2),
                halves().lasting(Length::Long),
                bridge().aimed(&proven).lasting(Length::AroundTtl).weight(2),
                bridge().lasting(Length::Long),
            ],
        ),
        must_see: vec![
            Mark::LeaderCutOff,
            Mark::IdledUnfenced,
            Mark::TakenOverAfterExpiry,
            Mark::Wrote,
        ],
        catches: vec![
            (Flaw::RenewCallOutlivesLease, Check::BeliefSafety),
            (Flaw::WorksUnfenced, Check::ElectionBarrier),
        ],
        ..Workload::named("split")
    }
}

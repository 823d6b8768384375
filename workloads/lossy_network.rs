//! `lossy-network`: frames of every kind are lost.

use deposed::prelude::*;

/// One to three frames of a kind vanish, a request or its answer. An acquire whose
/// answer was lost has been granted all the same: its retry gets the same grant, and
/// counts from the first send.
pub fn workload() -> Workload {
    let mut choices = each_kind(lose);
    choices.extend([
        lose_exactly("acquire-reply", 1).weight(4),
        lose_exactly("renew", 6).weight(4),
    ]);
    let calm = Workload::named("lossy-network");
    Workload {
        story: "frames of every kind are lost, requests and answers",
        // Deletes and releases, too, or their frames would not be there to suffer.
        traffic: Traffic {
            delete_one_in: 10,
            resign_every: Some(calm.lease.ttl * 3),
            ..calm.traffic.clone()
        },
        nemesis: Nemesis::dense(2, 5, choices),
        must_see: vec![
            Mark::FrameLost,
            Mark::TakenOverAfterExpiry,
            Mark::OutlivedTwoLostRenewals,
        ],
        catches: vec![
            (Flaw::CountFromLastTry, Check::BeliefSafety),
            (Flaw::StaleExpiry, Check::BeliefSafety),
            (Flaw::AcquireTwice, Check::LeaseLinearizable),
        ],
        ..calm
    }
}

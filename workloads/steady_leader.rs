//! `steady-leader`: renewals are lost, and the leader stays.

use deposed::prelude::*;

/// Two renewals in a row go unanswered, now the requests are lost and now the
/// answers; the third comes in time. Nothing else goes wrong, and the next loss is
/// far enough away: a term that ends here ended over a lost message, which is an
/// outage.
pub fn workload() -> Workload {
    Workload {
        story: "two renewals in a row are lost, and no term may end over it",
        nemesis: Nemesis::spaced(
            2,
            vec![
                lose_exactly("renew", 2),
                lose_exactly("renew-reply", 2),
                lose_exactly("renew-reply", 1),
            ],
        ),
        must_see: vec![Mark::OutlivedTwoLostRenewals, Mark::Wrote],
        catches: vec![
            (Flaw::OneTryIsTheBudget, Check::Failover),
            (Flaw::StaleExpiry, Check::BeliefSafety),
        ],
        ..Workload::named("steady-leader")
    }
}

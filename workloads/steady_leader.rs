//! `steady-leader`: renewals are lost, and the leader stays.

use deposed::prelude::*;

/// Two renewals in a row go unanswered, now the request is lost and now the answer;
/// the third comes in time. Leases that end over one lost message are an outage.
pub fn workload() -> Workload {
    let renewal = [Moment::invoking(F::Renew)];
    Workload {
        story: "two renewals in a row are lost, and no term may end over it",
        nemesis: Nemesis::one_in(
            2,
            vec![
                lose_exactly("renew", 2).only_on(&renewal),
                lose_exactly("renew-reply", 2).only_on(&renewal),
                lose_exactly("renew-reply", 1).only_on(&renewal),
            ],
        ),
        must_see: vec![Mark::OutlivedTwoLostRenewals, Mark::Wrote],
        catches: vec![(Flaw::OneTryIsTheBudget, Check::Failover)],
        ..Workload::named("steady-leader")
    }
}

//! `clock-drift-beyond`: clocks that break their promise.

use deposed::prelude::*;

use crate::clock_drift::{cut_off_on_renewal, drifting};

/// The clients' clocks run slower than the lease's bound allows, so that two leaders
/// do believe at once. Belief safety is not claimed then. Storage safety is: the
/// token does not ask what time it is, and a leader told that its token is stale
/// stops, whatever its clock says.
pub fn workload() -> Workload {
    let lease = drifting(300 * MS);
    Workload {
        story: "clients' clocks 25 % slower than the bound: two believe, one writes",
        traffic: Traffic::for_ttl(lease.ttl),
        lease,
        clocks: Clocks::Beyond(250_000_000),
        nemesis: Nemesis::one_in(
            3,
            vec![
                cut_off_on_renewal(),
                partition(Target::Leader, Target::Store)
                    .only_on(&[Moment::done(F::Renew)])
                    .lasting(Length::Long),
            ],
        ),
        must_see: vec![Mark::OverlapBeyondTheBound, Mark::StaleWriteRefused],
        catches: vec![(Flaw::StaleRetry, Check::Conduct)],
        ..Workload::named("clock-drift-beyond")
    }
}

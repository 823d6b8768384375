//! `calm`: nothing goes wrong.

use deposed::prelude::*;

/// One leader leads and writes for the whole run. What is wrong even here is wrong
/// everywhere.
pub fn workload() -> Workload {
    Workload {
        story: "nothing goes wrong",
        must_see: vec![Mark::Wrote],
        catches: vec![
            (Flaw::SelfMadeToken, Check::TokenMonotonicity),
            (Flaw::NoBarrier, Check::ElectionBarrier),
            (Flaw::BarrierAfterWrite, Check::ElectionBarrier),
            (Flaw::ReadsBeforeBarrier, Check::ElectionBarrier),
            (Flaw::RefusesEqual, Check::Failover),
        ],
        ..Workload::named("calm")
    }
}

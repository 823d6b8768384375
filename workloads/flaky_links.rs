//! `flaky-links`: links lose and delay frames by chance.

use deposed::prelude::*;

/// A twentieth to a half of a link's frames are lost and as many come late, by up to
/// two try timeouts and so out of order, for up to two ttls at a time. A late answer
/// counts from its own send, and a try without an answer ends nothing by itself.
pub fn workload() -> Workload {
    let (leader, client) = (Target::Leader, Target::AnyClient);
    let calm = Workload::named("flaky-links");
    Workload {
        story: "up to half of a link's frames lost by chance, up to half late",
        traffic: Traffic {
            delete_one_in: 10,
            resign_every: Some(calm.lease.ttl * 3),
            ..calm.traffic.clone()
        },
        nemesis: Nemesis::dense(
            1,
            2,
            vec![
                flaky(leader, Target::Store).lasting(Length::Long).weight(4),
                flaky(leader, Target::Storage).lasting(Length::Long),
                flaky(client, Target::Servers),
                flaky(Target::AnyNode, Target::Everyone),
            ],
        ),
        must_see: vec![
            Mark::FrameLost,
            Mark::FrameDelayed,
            Mark::TakenOverAfterExpiry,
            Mark::OutlivedTwoLostRenewals,
        ],
        catches: vec![(Flaw::LateRenewExtends, Check::BeliefSafety)],
        ..calm
    }
}

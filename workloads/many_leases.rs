//! `many-leases`: three shards, each with a leader of its own.

use deposed::prelude::*;

/// Each client contends for every shard. Tokens, fences and refusals belong to one
/// lease: a high token of one shard says nothing of another.
pub fn workload() -> Workload {
    let calm = Workload::named("many-leases").with_ttl(800 * MS);
    let leader = Target::Leader;
    Workload {
        story: "three leases, led by different clients, under pauses and partitions",
        traffic: Traffic {
            leases: 3,
            ..calm.traffic.clone()
        },
        nemesis: Nemesis::one_in(
            2,
            vec![
                gc_pause(leader, Some(F::Write)),
                pause(leader),
                isolate(leader).aimed(&[Moment::done(F::Renew)]),
                partition(leader, Target::Store),
                lose("renew"),
            ],
        ),
        must_see: vec![
            Mark::ShardsApart,
            Mark::TakenOverAfterExpiry,
            Mark::StaleWriteRefused,
        ],
        catches: vec![(Flaw::AcceptsAnything, Check::StorageSafety)],
        ..calm
    }
}

//! `fence-unavailable`: a new leader cannot set its barrier.

use deposed::prelude::*;

/// Storage is down, or out of the new leader's reach, from its election to its
/// resignation. It holds the lease and may believe what it likes; unfenced, it
/// neither reads nor writes.
pub fn workload() -> Workload {
    let calm = Workload::named("fence-unavailable");
    let ttl = calm.lease.ttl;
    let elected = [Moment::done(F::Acquire)];
    let for_its_term = Length::Exactly(ttl * 3);
    Workload {
        story: "storage is down or unreachable for a new leader: it takes no writes",
        cluster: Cluster::of(3).on_disks(),
        traffic: Traffic {
            resign_every: Some(ttl * 2),
            ..calm.traffic.clone()
        },
        nemesis: Nemesis::one_in(
            5,
            vec![
                partition(Target::Leader, Target::Storage)
                    .only_on(&elected)
                    .lasting(for_its_term)
                    .weight(2),
                partition(Target::Clients, Target::Storage)
                    .aimed(&elected)
                    .lasting(for_its_term),
                power_loss(Target::Storage).aimed(&elected),
                lose("fence").only_on(&[Moment::invoking(F::Fence)]),
            ],
        ),
        must_see: vec![Mark::IdledUnfenced, Mark::Restarted, Mark::Wrote],
        catches: vec![
            (Flaw::WorksUnfenced, Check::ElectionBarrier),
            (Flaw::BarrierWithFreshToken, Check::ElectionBarrier),
        ],
        ..calm
    }
}

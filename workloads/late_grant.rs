//! `late-grant`: a lease is granted to somebody who hears of it when it is over.

use deposed::prelude::*;

/// Leaders resign every ttl. Whoever asks next is granted the lease and is paused, or
/// is not reached by the answers, until another has it or is about to. What it reads
/// then is a grant, and no longer a lease: it must ask again before it believes.
pub fn workload() -> Workload {
    let calm = Workload::named("late-grant");
    let (store, asking) = (Target::Store, Target::Follower);
    let given_back = [Moment::done(F::Release)];
    Workload {
        story: "whoever asks for a lease is paused or not answered until it has run out",
        cluster: Cluster::of(2),
        traffic: Traffic {
            resign_every: Some(calm.lease.ttl),
            ..calm.traffic.clone()
        },
        // Time between the grant and its arrival, for the pause to fall into.
        network: Network {
            min_latency: 5 * MS,
            max_latency: 15 * MS,
        },
        nemesis: Nemesis::one_in(
            2,
            vec![
                pause(asking)
                    .aimed(&given_back)
                    .lasting(Length::Long)
                    .weight(2),
                partition_oneway(store, asking)
                    .lasting(Length::AroundTtl)
                    .weight(2),
                partition_oneway(store, asking).lasting(Length::Long),
            ],
        ),
        must_see: vec![
            Mark::TakenOverAfterRelease,
            Mark::TakenOverAfterExpiry,
            Mark::Wrote,
        ],
        catches: vec![(Flaw::WaiterTrustsDeadLease, Check::BeliefSafety)],
        ..calm
    }
}

//! `lock-delay`: after an expiry the store keeps a lease closed for a while.

use deposed::prelude::*;

/// A lock-delay of a whole ttl (Chubby, section 2.4): a lease that ran out stays closed
/// for so long, across crashes of the store, too, which gives the delay whole again. A
/// lease that was given back is free at once.
pub fn workload() -> Workload {
    let lease = LeaseConfig::for_ttl(300 * MS);
    let lease = LeaseConfig {
        lock_delay: lease.ttl,
        ..lease
    };
    let (leader, store) = (Target::Leader, Target::Store);
    let held = [Moment::done(F::Acquire), Moment::done(F::Renew)];
    let refused = [Moment::invoking(F::Acquire)];
    Workload {
        story: "leaders are cut off, paused or resign; the store restarts inside the lock-delay",
        cluster: Cluster::of(3).on_disks(),
        traffic: Traffic {
            resign_every: Some(lease.ttl * 5),
            ..Traffic::for_ttl(lease.ttl)
        },
        nemesis: Nemesis::dense(
            1,
            1,
            vec![
                partition(leader, store)
                    .aimed(&held)
                    .lasting(Length::Long)
                    .weight(3),
                gc_pause(leader, None).lasting(Length::Long).weight(3),
                isolate(leader).lasting(Length::AroundTtl),
                power_loss(leader),
                crash(store)
                    .aimed(&refused)
                    .lasting(Length::Short)
                    .weight(2),
                power_loss(store)
                    .aimed(&refused)
                    .lasting(Length::Short)
                    .weight(2),
            ],
        ),
        must_see: vec![
            Mark::RefusedInLockDelay,
            Mark::LockDelayOutlivedRestart,
            Mark::TakenOverAfterExpiry,
            Mark::TakenOverAfterRelease,
        ],
        lease,
        catches: vec![(Flaw::LockDelayForgotten, Check::LockDelay)],
        ..Workload::named("lock-delay")
    }
}

//! `chaos`: everything at once.

use deposed::prelude::*;

use crate::clock_drift::drifting;

/// Every fault of the other workloads but those of disks (`chaos-on-disks` adds them), 2 to
/// 5 in each ttl, against three clients with clocks of their own inside the bound, who
/// write, delete and resign.
pub fn workload() -> Workload {
    // A wide bound, so that what drift does shows above the tick.
    let lease = drifting(170 * MS);
    // The story is in the changes of leader: a lease that is held is asked for seldom, one
    // that has run out at once.
    let lease = LeaseConfig {
        backoff_min: lease.ttl / 8,
        backoff_max: lease.ttl * 3 / 4,
        ..lease
    };
    let (leader, client) = (Target::Leader, Target::AnyClient);
    let (store, storage) = (Target::Store, Target::Storage);
    let proven = [Moment::done(F::Renew), Moment::done(F::Acquire)];
    let working = [Moment::done(F::Fence), Moment::invoking(F::Write)];
    let mut choices = each_kind(lose);
    choices.extend(each_kind(delay));
    choices.extend(each_kind(duplicate));
    // Message rules are many, and most only cost time: what deposes a leader weighs more.
    choices.extend([
        gc_pause(leader, Some(F::Write)).weight(9),
        gc_pause(leader, None).lasting(Length::AroundTtl).weight(6),
        gc_pause(Target::Follower, Some(F::Fence)).weight(3),
        pause(leader).lasting(Length::Long).weight(6),
        pause(client).weight(3),
        suspend(leader).lasting(Length::AroundTtl).weight(3),
        suspend(client),
        starve(leader).weight(2),
        starve(Target::AnyNode),
        flaky(client, Target::Servers).weight(3),
        halves().aimed(&proven).weight(2),
        bridge().aimed(&proven).weight(2),
        isolate(leader)
            .aimed(&proven)
            .lasting(Length::AroundTtl)
            .weight(9),
        isolate(leader).aimed(&proven).weight(6),
        partition(leader, store)
            .aimed(&proven)
            .lasting(Length::Long)
            .weight(9),
        partition(leader, storage).aimed(&working).weight(3),
        partition_oneway(store, leader)
            .aimed(&proven)
            .lasting(Length::Long)
            .weight(6),
        partition_oneway(leader, store)
            .aimed(&proven)
            .lasting(Length::Long)
            .weight(6),
        partition_oneway(storage, leader).aimed(&working).weight(3),
        hold(client, store).weight(3),
        hold(leader, storage).weight(3),
        latency(client, store).weight(3),
        latency(client, storage).weight(3),
        crash(leader).weight(6),
        power_loss(leader).weight(6),
        pause(store).lasting(Length::Short).weight(2),
        pause(storage).lasting(Length::Short).weight(2),
        crash(store).lasting(Length::Short).weight(2),
        crash(storage).lasting(Length::Short).weight(2),
        power_loss(store).lasting(Length::Short).weight(2),
        power_loss(storage).lasting(Length::Short).weight(2),
        rate(client).weight(3),
        rate(store).weight(3),
        step(client),
        step(store),
        power_loss(Target::Everyone).lasting(Length::Short),
    ]);
    Workload {
        story: "everything above at once but failing disks, 2 to 5 faults a ttl",
        traffic: Traffic {
            keys: 3,
            delete_one_in: 10,
            resign_every: Some(lease.ttl * 3 / 2),
            ..Traffic::for_ttl(lease.ttl)
        },
        clocks: Clocks::WithinBound,
        nemesis: Nemesis::dense(2, 5, choices),
        must_see: vec![
            Mark::TakenOverAfterExpiry,
            Mark::TakenOverAfterRelease,
            Mark::PausedPastItsTerm,
            Mark::StaleWriteRefused,
            Mark::LeaderCutOff,
            Mark::FrameLost,
            Mark::FrameDelayed,
            Mark::FrameDuplicated,
            Mark::Restarted,
            Mark::ClocksApart,
            Mark::Deleted,
        ],
        lease,
        calm: SECOND,
        catches: vec![
            (Flaw::AcceptsAnything, Check::StorageSafety),
            (Flaw::WorksUnfenced, Check::ElectionBarrier),
            (Flaw::GrantsEarly, Check::LeaseLinearizable),
            (Flaw::WallClockStore, Check::LeaseLinearizable),
        ],
        ..Workload::named("chaos")
    }
}

//! `quorum`: storage on three replicas, of which two decide.

use deposed::prelude::*;

/// One replica at a time is cut off, down, paused or slow, from the leader alone or
/// from everybody, and is repaired when it comes back, while leaders are deposed in the
/// middle of their writes: paused past their term, or cut off from the store or from a
/// majority. What a majority acknowledged is never lost, and nothing stale is
/// acknowledged after a fence.
pub fn workload() -> Workload {
    let calm = Workload::named("quorum");
    let (leader, minority) = (Target::Leader, Target::Minority);
    let (store, storage) = (Target::Store, Target::Storage);
    let writing = [Moment::invoking(F::Write)];
    let elected = [Moment::done(F::Acquire)];
    let proven = [Moment::done(F::Renew), Moment::done(F::Acquire)];
    let replica_frames = ["prepare", "accept", "adopt", "query"];
    let replica_replies = ["prepare-reply", "accept-reply", "adopt-reply"];
    let mut choices: Vec<Choice> = replica_frames
        .into_iter()
        .chain(replica_replies)
        .map(lose)
        .collect();
    choices.extend([
        // One replica, cut off and healed: it lags, and is repaired.
        isolate(minority).weight(3),
        isolate(minority).lasting(Length::Long).weight(2),
        partition(leader, minority).aimed(&writing).weight(3),
        partition(Target::AnyClient, minority)
            .lasting(Length::Long)
            .weight(3),
        partition_oneway(minority, leader).aimed(&writing).weight(2),
        hold(leader, minority).aimed(&writing).weight(2),
        crash(minority).aimed(&writing).weight(2),
        power_loss(minority).aimed(&writing).weight(2),
        power_cut(minority).weight(2),
        io_error(minority).weight(2),
        pause(minority).weight(2),
        // A majority out of a leader's reach: its write is on one replica, or on none.
        partition(leader, storage).aimed(&writing),
        delay("accept")
            .between(leader, storage)
            .aimed(&writing)
            .lasting(Length::AroundTtl)
            .weight(3),
        duplicate("accept").lasting(Length::AroundTtl),
        duplicate("adopt").lasting(Length::AroundTtl),
        // Deposed leaders.
        gc_pause(leader, Some(F::Write)).weight(4),
        gc_pause(leader, Some(F::Read))
            .lasting(Length::AroundTtl)
            .weight(3),
        gc_pause(Target::Follower, Some(F::Fence)),
        partition(leader, store)
            .aimed(&proven)
            .lasting(Length::AroundTtl)
            .weight(2),
        isolate(leader).aimed(&proven).lasting(Length::AroundTtl),
        crash(leader).aimed(&elected),
        crash(leader).aimed(&writing).weight(2),
    ]);
    Workload {
        story: "one of three replicas cut off, down or lagging; leaders deposed between writes",
        cluster: Cluster::of(3)
            .with_storage(StorageKind::Quorum { replicas: 3 })
            .on_disks(),
        traffic: Traffic {
            keys: 2,
            delete_one_in: 10,
            resign_every: Some(calm.lease.ttl * 3),
            ..calm.traffic.clone()
        },
        nemesis: Nemesis::dense(1, 3, choices),
        must_see: vec![
            Mark::Wrote,
            Mark::Deleted,
            Mark::ReplicaRepaired,
            Mark::TakenOverAfterExpiry,
            Mark::TakenOverAfterRelease,
            Mark::PausedPastItsTerm,
            Mark::StaleWriteRefused,
            Mark::LeaderCutOff,
            Mark::Restarted,
        ],
        catches: vec![
            (Flaw::MinorityAck, Check::StorageSafety),
            (Flaw::MinorityAck, Check::RegisterLinearizable),
            (Flaw::CountsRefusals, Check::StorageSafety),
            (Flaw::NoRecovery, Check::RegisterLinearizable),
            (Flaw::ReadsOneReplica, Check::RegisterLinearizable),
            (Flaw::FenceNotDurable, Check::StorageSafety),
        ],
        ..calm
    }
}

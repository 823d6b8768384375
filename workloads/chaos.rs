//! `chaos`: everything at once.

use deposed::prelude::*;

/// Every fault of the other workloads, 2 to 5 in each ttl, against three clients
/// with clocks of their own inside the bound, who write, delete and resign.
pub fn workload() -> Workload {
    let calm = Workload::named("chaos");
    let (leader, client) = (Target::Leader, Target::AnyClient);
    let (store, storage) = (Target::Store, Target::Storage);
    let proven = [Moment::done(F::Renew), Moment::done(F::Acquire)];
    let working = [Moment::done(F::Fence), Moment::invoking(F::Write)];
    let mut choices = each_kind(lose);
    choices.extend(each_kind(delay));
    choices.extend(each_kind(duplicate));
    choices.extend([
        gc_pause(leader, Some(F::Write)).weight(4),
        gc_pause(leader, None).weight(2),
        pause(client).weight(2),
        isolate(leader).aimed(&proven).weight(2),
        partition(leader, store).aimed(&proven).weight(2),
        partition(leader, storage).aimed(&working),
        partition_oneway(store, leader).aimed(&proven),
        partition_oneway(leader, store).aimed(&proven),
        partition_oneway(storage, leader).aimed(&working),
        hold(client, store).weight(2),
        hold(leader, storage),
        latency(client, store),
        latency(client, storage),
        crash(client),
        crash(store).lasting(Length::Short),
        power_loss(store).lasting(Length::Short),
        power_loss(storage).lasting(Length::Short),
        rate(Target::Everyone),
        step(Target::Everyone),
    ]);
    Workload {
        story: "everything above at once, 2 to 5 faults a ttl",
        traffic: Traffic {
            keys: 3,
            delete_one_in: 10,
            resign_every: Some(calm.lease.ttl * 6),
            ..calm.traffic.clone()
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
        ..calm
    }
}

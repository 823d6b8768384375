//! What the protected storage takes and remembers.

use deposed::prelude::*;

use super::{Case, crashed, cut_off, late, on, soon, stalled};

const RENEWED: Moment = Moment::done(F::Renew);
const WRITING: Moment = Moment::invoking(F::Write);

pub(super) fn cases() -> Vec<Case> {
    // The leader stands still before a write for longer than its lease.
    let zombie = || [on(RENEWED, 4, stalled(F::Write, 700))];
    vec![
        Case::of(
            "resource-without-a-fence",
            "a plain pause, and a resource that takes whatever comes",
            &[
                "etcd-io/etcd#10811",
                "awslabs/amazon-dynamodb-lock-client#1",
            ],
        )
        .under(zombie())
        .showing([Mark::PausedPastItsTerm, Mark::StaleWriteRefused])
        .planting(Flaw::AcceptsAnything, Check::StorageSafety),
        Case::of(
            "fence-that-does-nothing",
            "the fencing command answers ok and does nothing",
            &["hortonworks/ansible-hortonworks#45"],
        )
        .under(zombie())
        // Its successor has fenced, and writes nothing yet.
        .under([on(
            Moment::done(F::Fence),
            2,
            Fault::Pause {
                target: Target::Leader,
                length: 450 * MS,
            },
        )])
        .showing([Mark::PausedPastItsTerm, Mark::StaleWriteRefusedByBarrier])
        .planting(Flaw::FenceIsANoOp, Check::StorageSafety),
        Case::of(
            "second-resource-unfenced",
            "one resource knows the new epoch, the other does not",
            &["apache/kafka pull 5101"],
        )
        .with(|workload| workload.traffic.keys = 20)
        .under(zombie())
        .showing([Mark::PausedPastItsTerm, Mark::StaleWriteRefused])
        .planting(Flaw::TokenPerKey, Check::StorageSafety),
        Case::of(
            "cleaned-up-fence",
            "the fence is a thing that cleaning up removes; the stale write then lands",
            &["slatedb/slatedb#352, #1622", "apache/bookkeeper pull 4462"],
        )
        .with(|workload| workload.traffic.delete_one_in = 2)
        .under(zombie())
        .showing([
            Mark::Deleted,
            Mark::PausedPastItsTerm,
            Mark::StaleWriteRefused,
        ])
        .planting(Flaw::CleanupDropsFence, Check::StorageSafety),
        Case::of(
            "fence-forgotten-at-a-restart",
            "storage comes back and knows nothing of the highest token",
            &["apache/bookkeeper pull 4462"],
        )
        .under([
            on(RENEWED, 4, stalled(F::Write, 700)),
            on(Moment::done(F::Fence), 2, crashed(Target::Storage, 20)),
        ])
        .showing([Mark::PausedPastItsTerm, Mark::Restarted])
        .planting(Flaw::ForgetsHighest, Check::StorageSafety),
        Case::of(
            "unfenced-effects-from-two",
            "the guarded work is outside and knows no token: with nothing to hold it back it is \
             done by two",
            &[
                "kubernetes/kubernetes pull 71490",
                "cilium/cilium pull 42920",
            ],
        )
        .with(|workload| {
            workload.cluster = Cluster::of(2).with_storage(StorageKind::Effects { keys: false });
        })
        .under(zombie())
        .showing([Mark::PausedPastItsTerm, Mark::TakenOverAfterExpiry])
        .convicted_by(Check::ZombieWrite),
        Case::of(
            "owner-asked-elsewhere",
            "who owns the lease is asked of one service, and the write goes to another",
            &["vespa-engine/vespa pull 3340"],
        )
        .with(|workload| {
            workload.cluster = Cluster::of(2).with_storage(StorageKind::CompareAndSwap);
        })
        .under([
            on(WRITING, 8, late("write", 1, 500)),
            soon(WRITING, 8, 20, cut_off(900)),
            // Its successor has read, and writes nothing yet.
            on(Moment::done(F::Acquire), 2, stalled(F::Write, 300)),
        ])
        .showing([
            Mark::FrameDelayed,
            Mark::PausedPastItsTerm,
            Mark::StaleWriteRefused,
        ])
        .planting(Flaw::ComparesRemoteOwner, Check::ZombieWrite),
        Case::of(
            "no-fence-at-election",
            "the new leader writes without having fenced",
            &["PostHog/posthog pull 76100"],
        )
        .showing([Mark::Wrote])
        .planting(Flaw::NoBarrier, Check::ElectionBarrier),
    ]
}

//! Marks: things that a workload must have seen at least once over its seeds, so
//! that no run passes by doing nothing.

mod seer;

pub use seer::seen;

/// Something that a history shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// A leader's write was acknowledged.
    Wrote,
    /// A lease went to another holder because it ran out.
    TakenOverAfterExpiry,
    /// A leader resigned and another followed.
    TakenOverAfterRelease,
    /// A term outlived two renewals in a row that were not answered.
    OutlivedTwoLostRenewals,
    /// Storage refused a write under a stale token.
    StaleWriteRefused,
    /// Storage refused a stale write after the new leader's fence and before its
    /// first write: without the barrier it would have landed.
    StaleWriteRefusedByBarrier,
    /// A term passed in which a fence was tried, none was acknowledged, and no work done.
    IdledUnfenced,
    /// A process was stopped at a gc point, having believed, and went on deposed.
    PausedPastItsTerm,
    /// A leader was cut off.
    LeaderCutOff,
    /// A leader's process was starved.
    LeaderStarved,
    /// Every node lost its power at once.
    Blackout,
    /// A node's wall clock stepped while somebody led.
    WallClockStepped,
    /// A frame was lost.
    FrameLost,
    /// A frame came late.
    FrameDelayed,
    /// A frame came twice.
    FrameDuplicated,
    /// A process came back after a crash or a power loss.
    Restarted,
    /// The power went inside an operation of a disk.
    PowerCutInside,
    /// A server's disk failed, and it went on from what was durable.
    RecoveredFromDiskError,
    /// The store came back from an old copy and granted again.
    GrantedAfterRestore,
    /// The store came back, and a lease of before was renewed.
    RenewedAcrossStoreRestart,
    /// The store's clock has run ahead of or behind true time by a millisecond or more.
    ClocksApart,
    /// Two beliefs overlapped where clocks were beyond their bound.
    OverlapBeyondTheBound,
    /// Different clients led different leases at once.
    ShardsApart,
    /// A value was deleted.
    Deleted,
    /// The store refused a candidate after an expiry, because of the lock-delay alone.
    RefusedInLockDelay,
    /// The same by a store that had come back since it granted the lease.
    LockDelayOutlivedRestart,
    /// An effect that no token could stop landed after its term had run out at the store,
    /// and before anybody else was granted the lease.
    LandedInLockDelay,
    /// An effect was dropped: its idempotency key said that the job was done.
    DuplicateDropped,
    /// A replica took a write in place after another had taken one before it that this one
    /// had missed.
    ReplicaRepaired,
}

impl Mark {
    /// What was (or was not) seen: "a leader wrote".
    pub fn story(self) -> &'static str {
        match self {
            Mark::Wrote => "a leader wrote",
            Mark::TakenOverAfterExpiry => "a lease was taken over after it ran out",
            Mark::TakenOverAfterRelease => "a lease was taken over after its leader resigned",
            Mark::OutlivedTwoLostRenewals => "a term outlived two lost renewals in a row",
            Mark::StaleWriteRefused => "a stale write was refused",
            Mark::StaleWriteRefusedByBarrier => "the barrier alone stopped a stale write",
            Mark::IdledUnfenced => "a leader that could not fence took no writes",
            Mark::PausedPastItsTerm => "a leader was paused and woke up deposed",
            Mark::LeaderCutOff => "a leader was cut off",
            Mark::LeaderStarved => "a leader was starved",
            Mark::Blackout => "every node lost its power at once",
            Mark::WallClockStepped => "a wall clock stepped while somebody led",
            Mark::FrameLost => "a frame was lost",
            Mark::FrameDelayed => "a frame came late",
            Mark::FrameDuplicated => "a frame came twice",
            Mark::Restarted => "a crashed process came back",
            Mark::PowerCutInside => "the power went inside a disk operation",
            Mark::RecoveredFromDiskError => "a server recovered from an error of its disk",
            Mark::GrantedAfterRestore => "a store that was restored from an old copy granted",
            Mark::RenewedAcrossStoreRestart => "a lease was renewed across a restart of the store",
            Mark::ClocksApart => "the store's clock ran apart from true time",
            Mark::OverlapBeyondTheBound => "two leaders believed at once, beyond the clocks' bound",
            Mark::ShardsApart => "different clients led different leases at once",
            Mark::Deleted => "a value was deleted",
            Mark::RefusedInLockDelay => "a candidate was refused inside the lock-delay",
            Mark::LockDelayOutlivedRestart => "a lock-delay outlived a restart of the store",
            Mark::LandedInLockDelay => "a deposed leader's effect landed inside the lock-delay",
            Mark::DuplicateDropped => "an effect was dropped by its idempotency key",
            Mark::ReplicaRepaired => "a replica that had missed a write was repaired",
        }
    }
}

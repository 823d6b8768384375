//! Storage that checks fencing tokens: the safety net that holds whatever clocks do.
//! And, to compare, a resource that cannot check them ([`EffectRelay`]).
//!
//! Three ways: [`FencedStorage`], one node that remembers the highest token it has
//! seen; [`CompareAndSwapStorage`], one node that grants the leases too and asks itself
//! whose lease it is; [`QuorumReplica`] and [`QuorumCoordinator`], several nodes of
//! which a majority decides.
//!
//! Pure, like [`crate::lease`]: no I/O and no clock.

mod compare_and_swap;
mod effects;
mod fenced;
mod quorum;

pub use compare_and_swap::{CompareAndSwapRecord, CompareAndSwapStorage};
pub use effects::{EffectRelay, KEYS_KEPT, OutboxRecord, Performed};
pub use fenced::{
    Applied, Certainty, FencedStorage, Refusal, ShardRecord, TERMS_KEPT, TermRecord, Value,
};
pub use quorum::{
    Answer, Heard, Message, QuorumCoordinator, QuorumOutcome, QuorumReplica, ReplicaRecord,
    Snapshot, Taken, Version, majority,
};

//! Storage that checks fencing tokens: the safety net that holds whatever clocks do.
//! And, to compare, a resource that cannot check them ([`EffectRelay`]).
//!
//! Pure, like [`crate::lease`]: no I/O and no clock.

mod effects;
mod fenced;

pub use effects::{EffectRelay, KEYS_KEPT, OutboxRecord, Performed};
pub use fenced::{
    Applied, Certainty, FencedStorage, Refusal, ShardRecord, TERMS_KEPT, TermRecord, Value,
};

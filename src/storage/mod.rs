//! Storage that checks fencing tokens: the safety net that holds whatever clocks do.
//!
//! Pure, like [`crate::lease`]: no I/O and no clock.

mod fenced;

pub use fenced::{
    Applied, Certainty, FencedStorage, Refusal, ShardRecord, TERMS_KEPT, TermRecord, Value,
};

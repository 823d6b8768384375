//! Fault-injection tests for lease-based leader election with fencing tokens.

pub use deposed_checkers as checkers;

pub mod flaw;
pub mod lease;
pub mod storage;

pub use lease::{LeaseClient, LeaseConfig, LeaseStore};
pub use storage::FencedStorage;

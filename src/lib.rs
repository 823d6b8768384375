//! Fault-injection tests for lease-based leader election with fencing tokens.

pub use deposed_checkers as checkers;

pub mod flaw;

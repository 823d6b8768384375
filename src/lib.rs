//! Fault-injection tests for lease-based leader election with fencing tokens.

pub use deposed_checkers as checkers;

pub mod campaign;
pub mod cli;
pub mod clock;
pub mod disk;
pub mod fault;
pub mod flaw;
pub mod lease;
pub mod mark;
pub mod nemesis;
pub mod net;
pub mod node;
pub mod prelude;
pub mod recorder;
pub mod report;
pub mod rng;
pub mod run;
pub mod storage;
pub mod system;
pub mod workload;
pub mod world;

pub use lease::{LeaseClient, LeaseConfig, LeaseStore};
pub use storage::FencedStorage;

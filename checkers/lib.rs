//! Recorded histories of leases, fencing tokens and fenced storage, and the
//! checkers that judge them. Knows no system, no network and no clock: a history
//! from anywhere will do.

mod belief_safety;
mod conduct;
mod election_barrier;
mod failover;
mod grants;
pub mod history;
pub mod judge;
mod lease_linearizable;
mod line;
mod rates;
pub mod reader;
mod steady;
mod storage_safety;
mod token_monotonicity;
pub mod verdict;
pub mod well_formed;
pub mod writer;
mod zombie_write;

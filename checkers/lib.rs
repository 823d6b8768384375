//! Recorded histories of leases, fencing tokens and fenced storage, and the
//! checkers that judge them. Knows no system, no network and no clock: a history
//! from anywhere will do.

pub mod history;
mod line;
pub mod reader;
pub mod verdict;
pub mod well_formed;
pub mod writer;

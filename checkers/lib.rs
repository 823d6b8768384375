//! Recorded histories of leases, fencing tokens and fenced storage, and the
//! checkers that judge them. Knows no system, no network and no clock: a history
//! from anywhere will do.
//!
//! A history is a file of JSON lines: a header, then one event a line. Here a
//! deposed leader's write lands after its successor's fence was acknowledged:
//!
//! ```
//! use deposed_checkers::judge::Judge;
//! use deposed_checkers::reader::Reader;
//! use deposed_checkers::verdict::{Check, Verdict};
//!
//! let history = r#"{"deposed":1}
//! {"index":0,"time":0,"process":"b","type":"invoke","call":1,"f":"fence","value":{"lease":"leader","token":8}}
//! {"index":1,"time":5,"process":"b","type":"ok","call":1,"f":"fence","value":null}
//! {"index":2,"time":9,"process":"a","type":"invoke","call":2,"f":"write","value":{"lease":"leader","token":7,"key":"x","value":40}}
//! {"index":3,"time":12,"process":"a","type":"ok","call":2,"f":"write","value":null}
//! "#;
//!
//! let (header, events) = Reader::new(history.as_bytes(), "a history")?;
//! let mut judge = Judge::new(&header);
//! for event in events {
//!     judge.see(&event?);
//! }
//! let verdicts = judge.finish();
//!
//! let Some(Verdict::Violated(evidence)) = verdicts.of(Check::StorageSafety) else { panic!() };
//! assert_eq!(evidence.events, [1, 2, 3]);
//! assert_eq!(evidence.expected, "refused, storage had seen 8");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The way through the crate is that of the data:
//!
//! - [`history`]: what an event is; [`reader`] and [`writer`] turn lines into events
//!   and back, plain or gzipped; [`schema`] is the format for other languages, and
//!   `recording` (feature `tracing`) records a program's own spans and events;
//! - [`import`] reads other tools' histories (Jepsen's, etcd's, tables), which a [`model`]
//!   judges, or the checks of leases;
//! - [`well_formed`]: the rules that pair calls with their completions;
//! - [`judge`]: runs the checks, one file each, over a stream of events, within a [`budget`];
//! - [`verdict`]: what they say, times and spans in the words of [`units`]. [`Check::needs`](verdict::Check::needs) tells which
//!   events a check needs; one that lacks them claims nothing, and says why.
//!
//! Node events (what a store granted, what storage applied) make a judgement exact.
//! Without them a check judges from what clients saw: it may miss, and never convicts
//! a correct system.

mod belief_safety;
pub mod budget;
mod conduct;
mod election_barrier;
mod failover;
mod faults;
mod grants;
pub mod history;
pub mod import;
pub mod judge;
mod lease_linearizable;
mod line;
mod linearizable;
mod lock_delay;
pub mod model;
mod owners;
mod rates;
pub mod reader;
#[cfg(feature = "tracing")]
pub mod recording;
mod register_linearizable;
mod requests;
mod retries;
pub mod schema;
mod steady;
mod storage_safety;
mod terms;
mod token_monotonicity;
pub mod units;
pub mod verdict;
pub mod well_formed;
pub mod writer;
mod zombie_write;

/// The README's examples are tests, with every feature that they show.
#[cfg(all(doctest, feature = "tracing"))]
#[doc = include_str!("README.md")]
struct Readme;

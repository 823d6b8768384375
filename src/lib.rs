//! A Jepsen-style fault-injection test harness for lease-based leader election with
//! fencing tokens. The README shows what it does; this is the way through the code.
//!
//! The data flows one way: a seed and a [`workload`] give a [`run::Header`] with a
//! [schedule](fault::Schedule) of faults in it; the [`world`] runs the header on a
//! [`system`] and records a history; the [`checkers`] judge it; the [`report`] says it.
//!
//! ```
//! use std::sync::Arc;
//! use deposed::{prelude::*, run::{Header, run}};
//!
//! let workload = Workload {
//!     nemesis: Nemesis::one_in(2, vec![gc_pause(Target::Leader, Some(F::Write))]),
//!     chaos: 3 * SECOND,
//!     ..Workload::named("a-first-try")
//! };
//! let system: Arc<dyn System> = Arc::new(Deposed);
//! let outcome = run(&Header::of(&workload, 42, system.name(), None), &system)?;
//! assert!(!outcome.failed());
//! assert!(outcome.history.len() > 500);
//! # Ok::<(), deposed::run::RunError>(())
//! ```
//!
//! # Where to look
//!
//! The system under test; the same code runs over real TCP:
//! - [`lease`] and [`storage`]: the pure cores. Who may lead, when a leader must stop,
//!   what storage refuses. Begin with [`LeaseConfig::safe_window`].
//! - [`node`]: the async shells over the cores: [`elector`](node::elector),
//!   [`leader`](node::leader), a server for leases and one for each kind of storage; and
//!   [`node::Node`], the one context through which they reach [`clock`], [`net`] and
//!   [`disk`].
//!
//! The harness:
//! - [`fault`]: what can go wrong, as data. [`nemesis`]: how schedules are drawn.
//! - [`workload`], its [`cluster`], [`mark`] (what a run must have shown), [`flaw`] (planted defects).
//! - [`world`]: the simulation, on turmoil. [`recorder`]: what happened.
//! - [`run`], [`campaign`] (many runs at once), [`hunt`] (how soon a planted flaw is
//!   convicted), [`shrink`] (the least that still fails), [`kept`] (histories as tests),
//!   [`compare`] (the same seeds on several configurations), [`sweep`] (which ttl to choose),
//!   [`timeline`] (a history as lanes over time), [`report`], [`cli`].
//! - [`prove`]: every state that a small world of the pure cores can reach; what is wrong in
//!   one is rehearsed as a run.
//!
//! # Where to add
//!
//! - a workload: one file in `workloads/` and one line in its list;
//! - a fault: a variant of [`fault::Fault`], an arm in `world/inject.rs` (of a disk, in
//!   `world/disks.rs`), a constructor in [`nemesis`];
//! - a planted flaw: an entry in [`flaw`], the line that differs, a workload that
//!   catches it;
//! - a check: a file in `checkers/` and a line in its list;
//! - a system of your own: [`system::System`], in your own crate.

pub use deposed_checkers as checkers;

pub mod campaign;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod compare;
pub mod disk;
pub mod fault;
pub mod flaw;
pub mod hunt;
pub mod kept;
pub mod lease;
pub mod mark;
pub mod nemesis;
pub mod net;
pub mod node;
pub mod parallel;
pub mod prelude;
pub mod prove;
pub mod recorder;
pub mod report;
pub mod rng;
pub mod run;
pub mod shrink;
pub mod storage;
pub mod sweep;
pub mod system;
pub mod timeline;
pub mod workload;
pub mod world;

pub use lease::{LeaseClient, LeaseConfig, LeaseStore};
pub use storage::FencedStorage;

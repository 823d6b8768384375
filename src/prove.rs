//! Proving at small scope: every state that a small world can reach, and in each of them
//! what must hold.
//!
//! A simulation runs one story out of very many, long and wide; this runs all of them, short
//! and narrow. A world is the real cores (`LeaseStore`, a `LeaseClient` each, `FencedStorage`;
//! the very types that run over TCP) and a network between them that may do whatever it
//! likes with a few messages at a time. Clocks tick in whole ticks, a ttl is a few of them,
//! and everything that can happen between two ticks happens, in every order. Most failures
//! of a protocol show in a small world if they show at all.
//!
//! The way through it:
//! - [`Scope`]: how large the world is.
//! - the nodes: [`StoreNode`], [`StorageNode`], [`Candidate`] (a client and its leader). Each
//!   is a core, and what a node remembers beside it; each has steps that are pure functions.
//! - [`Action`]: what can happen. [`Message`]: what is under way.
//! - the state of the world, and what follows from it: `state`. It holds numbers of nodes; the
//!   `catalogue` knows which, and takes each step of a core once.
//! - [`Rules`]: which states are one, rule by rule, with the argument for each.
//! - [`Premise`]: what these rules take for granted of the cores, asked of each node.
//! - [`Broken`]: what must hold.
//! - [`Catalogue`], [`View`]: a [`State`] and what is [`Next`], for a search of another kind.
//! - [`Search`]: breadth first, on all cores; the same result on any number of them.
//!   [`least_memory`]: with how little none gets by.
//! - [`Story`]: the shortest way to what is wrong, as data; [`history`]: as a history.
//! - [`rehearse`]: as a run of the simulated world that goes the same way.
//! - [`expected`]: what a search makes of each planted flaw.
//!
//! What it does not say: nothing of liveness, nothing of what lies beyond the bounds, nothing
//! of the async shells around the cores, and of the leader's shell only what the model's own
//! leader does.
//!
//! ```
//! use std::{num::NonZero, sync::atomic::AtomicBool};
//! use deposed::prove::{End, Rules, Scope, Search};
//!
//! let found = Search {
//!     scope: Scope { ttl: 1, in_flight: 1, ..Scope::default() },
//!     rules: Rules::ALL,
//!     jobs: NonZero::<usize>::MIN,
//!     max_memory: 100_000_000,
//!     within: None,
//!     max_depth: usize::MAX,
//!     stop: &AtomicBool::new(false),
//! }
//! .run();
//! assert_eq!(found.end, End::Holds);
//! ```

mod action;
mod candidate;
mod catalogue;
mod counterexample;
mod flaws;
mod memory;
mod message;
mod premise;
mod property;
mod reduce;
mod rehearse;
mod scope;
mod search;
mod state;
mod storage_node;
mod store_node;
mod story;

pub use action::Action;
pub use candidate::{Candidate, CandidateSays, CandidateStep, Work};
pub use catalogue::{Catalogue, Nodes, View};
pub use counterexample::{History, TICK, history};
pub use flaws::{Expected, expected, rules_for, scope as scope_of};
pub use memory::{LEAST_MEMORY, least_memory, least_states};
pub use message::{Message, Process, Reader, Says};
pub use premise::Premise;
pub use property::{Broken, Inductive, JUDGED};
pub use reduce::Rules;
pub use rehearse::{Holds, Pace, Rehearsed, rehearse, schedule};
pub use scope::{Drift, Scope};
pub use search::{End, Found, Search};
pub use state::{Next, State};
pub use storage_node::{StorageAccount, StorageNode, StorageSays, StorageStep};
pub use store_node::{Promise, StoreAccount, StoreNode, StoreSays, StoreStep};
pub use story::Story;

#[cfg(test)]
mod tests;

//! Leases: who may lead, for how long, under which fencing token.
//!
//! [`LeaseStore`] is the authority: it grants, extends and takes back. [`LeaseClient`]
//! is one candidate: it says what to send, reads the answers, and knows at any
//! moment, without asking anyone, whether it may act as the leader.
//!
//! Both are pure. They do no I/O and hold no clock and no randomness: every call
//! takes `now`, the reading of that node's *own* boot clock in nanoseconds, and
//! jitter is passed in. Offsets between clocks never matter, since only durations
//! are used; rates do, and [`LeaseConfig::safe_window`] pays for them.
//!
//! ```
//! use deposed::flaw::Planted;
//! use deposed::lease::{LeaseClient, LeaseConfig, LeaseStore, Reply, Request, StoreLimits};
//!
//! let config = LeaseConfig::for_ttl(10_000_000_000);
//! let mut store = LeaseStore::new(StoreLimits::default(), Planted::NONE);
//! let mut client = LeaseClient::new(config, 42, Planted::NONE);
//!
//! // The client speaks at its clock's 42 ns; the store's clock is elsewhere.
//! let Some(Request::Acquire { request, ttl }) = client.tick(42) else { panic!() };
//! let grant = store.acquire(7_000_000, &"leader".into(), &"a#1".into(), request, ttl)?;
//! assert_eq!(grant.token, 1);
//!
//! client.on_reply(50, &Reply::Granted { request, token: grant.token }, 0);
//! assert!(client.is_leader(50));
//! // It counts from the send: at 42 ns plus the safe window it is over.
//! assert!(!client.is_leader(42 + 9_800_000_000));
//! # Ok::<(), deposed::lease::Denial>(())
//! ```

mod client;
mod config;
mod message;
mod record;
mod store;

pub use client::{Belief, LeaseClient};
pub use config::{ConfigError, LeaseConfig, PPB};
pub use message::{Denial, Extension, Grant, Release, Reply, Request};
pub use record::{LeaseRecord, OwnerRecord, Restoration};
pub use store::{Holding, LeaseStore, StoreLimits};

//! Storage on several replicas, each fenced, of which a majority decides.
//!
//! A leader talks to all replicas at once, through a [`QuorumCoordinator`]; each
//! replica is a [`QuorumReplica`] on a node of its own. The way is that of HDFS's
//! Quorum Journal Manager, which is Paxos with the fencing token as the ballot:
//!
//! 1. `fence(n)`: every replica is asked to promise `n` ([`Message::Prepare`]) and
//!    answers with its state, or refuses because it has promised more. Of a majority's
//!    states the newest, by (token, seq), is written back under `n`
//!    ([`Message::Adopt`]); the fence is acknowledged once a majority stands there.
//!    What an earlier leader wrote to a minority is thereby either in the state that
//!    is written back, or older than it on the replicas that have it, and overwritten.
//! 2. A write goes to every replica as the successor of the state before it
//!    ([`Message::Accept`]); acknowledged once a majority stands there.
//! 3. A read asks every replica where it stands ([`Message::Query`]) and answers from
//!    the leader's newest state once a majority has said, under a promise that still
//!    holds, that it stands there. It needs no clock: where a later leader has fenced,
//!    a majority refuses.
//!
//! A replica that lacks something says so and is brought the whole state: it lags
//! until the next operation, not for ever. Only the leader of one token proposes
//! states under it, so that a (token, seq) names one state; and no state is proposed
//! twice under one name, which is why a write of which anything may have left stays in
//! the leader's state though its outcome is unknown.
//!
//! The state of a lease travels whole: it must fit into a frame
//! ([`MAX_FRAME`](crate::net::MAX_FRAME)), with its keys.

use std::collections::BTreeMap;

use deposed_checkers::history::{Name, Token};
use serde::{Deserialize, Serialize};

use super::fenced::Value;

mod coordinator;
mod replica;

pub use coordinator::{Heard, QuorumCoordinator, QuorumOutcome};
pub use replica::{QuorumReplica, ReplicaRecord, Taken};

/// Which state: the last change in it, by token, then by seq. Seq 0 is the state that
/// a leader found.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Version {
    /// Under which token it was proposed.
    pub token: Token,
    /// The last write or delete in it.
    pub seq: u64,
}

/// All keys of a lease, at a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Snapshot {
    /// Which state this is.
    pub version: Version,
    /// The keys that are there.
    pub values: BTreeMap<Name, Value>,
}

/// What a leader asks of a replica, under its token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// Promise the token, and show your state.
    Prepare,
    /// Where do you stand, and what does this key hold there?
    Query {
        /// The key.
        key: Name,
    },
    /// Take this change, if you stand right before it.
    Accept {
        /// The seq of the state that it changes, under the same token.
        after: u64,
        /// The change's own seq.
        seq: u64,
        /// The key.
        key: Name,
        /// What it is to hold; `None`: it is deleted.
        value: Option<Value>,
    },
    /// Take this state, if it is newer than yours. Its token is the leader's.
    Adopt(Snapshot),
}

/// What a replica answers when it does not refuse.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// To a prepare: the token is promised, and this is the state.
    Promised(Snapshot),
    /// To all else: where it stands now. What was asked is in there if this is no
    /// older than it.
    Stands {
        /// Which state it has.
        version: Version,
        /// To a query: what the key holds in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
}

/// Of how many replicas a majority consists.
pub fn majority(replicas: usize) -> usize {
    replicas / 2 + 1
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

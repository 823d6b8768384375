//! The frames between our clients, the lease server and the storage server.
//!
//! Every request carries an `id` of the sender's choosing and the reply repeats it,
//! so that a connection can carry several calls and answers may come in any order,
//! late or twice. The fields stand in a `body` of their own: with `kind` first a frame
//! is read in one go, which halves the cost of reading it.

use deposed_checkers::history::{Failure, Name, Nanos, Token};
use serde::{Deserialize, Serialize};

use crate::storage::{Answer, Snapshot};

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body", rename_all = "kebab-case")]
#[allow(
    missing_docs,
    reason = "the fields are those of the history's operations"
)]
pub enum Request {
    /// To the store: grant me the lease.
    Acquire {
        id: u64,
        lease: Name,
        holder: Name,
        request: u64,
        ttl: Nanos,
    },
    /// To the store: extend my lease.
    Renew {
        id: u64,
        lease: Name,
        holder: Name,
        token: Token,
        #[serde(rename = "try")]
        attempt: u64,
        ttl: Nanos,
    },
    /// To the store: I let go.
    Release {
        id: u64,
        lease: Name,
        holder: Name,
        token: Token,
    },
    /// To storage: refuse everything below this token from now on.
    Fence { id: u64, lease: Name, token: Token },
    /// To storage: write.
    Write {
        id: u64,
        lease: Name,
        token: Token,
        seq: u64,
        key: Name,
        value: Name,
    },
    /// To storage: delete.
    Delete {
        id: u64,
        lease: Name,
        token: Token,
        seq: u64,
        key: Name,
    },
    /// To storage: read.
    Read { id: u64, lease: Name, key: Name },
    /// To a resource that cannot check tokens: do this, unless you go by idempotency
    /// keys and have seen this one.
    Effect {
        id: u64,
        lease: Name,
        to: Name,
        key: Name,
        value: Name,
    },
    /// To a replica: promise this token and show your state.
    Prepare { id: u64, lease: Name, token: Token },
    /// To a replica: where do you stand, and what does this key hold?
    Query {
        id: u64,
        lease: Name,
        token: Token,
        key: Name,
    },
    /// To a replica: take this change (no value: a delete) after the one before it.
    Accept {
        id: u64,
        lease: Name,
        token: Token,
        after: u64,
        seq: u64,
        key: Name,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Name>,
    },
    /// To a replica: take this state.
    Adopt {
        id: u64,
        lease: Name,
        token: Token,
        state: Snapshot,
    },
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body", rename_all = "kebab-case")]
#[allow(
    missing_docs,
    reason = "the fields are those of the history's operations"
)]
pub enum Reply {
    /// The store's answer to an acquire.
    AcquireReply {
        id: u64,
        answer: Outcome<Token>,
        /// When the lease ends, on the store's wall clock: told only with a planted flaw,
        /// since an instant of another machine's clock says nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Nanos>,
    },
    /// The store's answer to a renewal.
    RenewReply {
        id: u64,
        answer: Outcome<()>,
        /// As in [`Reply::AcquireReply`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Nanos>,
    },
    /// The store's answer to a release.
    ReleaseReply { id: u64, answer: Outcome<()> },
    /// Storage's answer to a fence.
    FenceReply { id: u64, answer: Outcome<()> },
    /// Storage's answer to a write.
    WriteReply { id: u64, answer: Outcome<()> },
    /// Storage's answer to a delete.
    DeleteReply { id: u64, answer: Outcome<()> },
    /// Storage's answer to a read; `None`: the key is absent.
    ReadReply {
        id: u64,
        answer: Outcome<Option<Name>>,
    },
    /// The answer of a resource that cannot check tokens.
    EffectReply { id: u64, answer: Outcome<()> },
    /// A replica's answer to a prepare.
    PrepareReply { id: u64, answer: Outcome<Answer> },
    /// A replica's answer to a query.
    QueryReply { id: u64, answer: Outcome<Answer> },
    /// A replica's answer to an accept.
    AcceptReply { id: u64, answer: Outcome<Answer> },
    /// A replica's answer to an adopt.
    AdoptReply { id: u64, answer: Outcome<Answer> },
    /// The connection is about to be closed, and why.
    Error { error: Failure },
}

/// Done, or refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome<T> {
    /// It was done.
    Ok(T),
    /// It was refused.
    Refused {
        /// Why.
        error: Failure,
        /// Whether an earlier copy of the same request may have been done all the same.
        #[serde(default)]
        perhaps_done: bool,
        /// When it may be worth asking again, on the server's clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Nanos>,
    },
}

impl Request {
    /// The id that the reply will repeat.
    pub fn id(&self) -> u64 {
        match *self {
            Request::Acquire { id, .. }
            | Request::Renew { id, .. }
            | Request::Release { id, .. }
            | Request::Fence { id, .. }
            | Request::Write { id, .. }
            | Request::Delete { id, .. }
            | Request::Read { id, .. }
            | Request::Effect { id, .. }
            | Request::Prepare { id, .. }
            | Request::Query { id, .. }
            | Request::Accept { id, .. }
            | Request::Adopt { id, .. } => id,
        }
    }
}

impl Reply {
    /// The id of the request that it answers; `None` for an error.
    pub fn id(&self) -> Option<u64> {
        match *self {
            Reply::AcquireReply { id, .. }
            | Reply::RenewReply { id, .. }
            | Reply::ReleaseReply { id, .. }
            | Reply::FenceReply { id, .. }
            | Reply::WriteReply { id, .. }
            | Reply::DeleteReply { id, .. }
            | Reply::ReadReply { id, .. }
            | Reply::EffectReply { id, .. }
            | Reply::PrepareReply { id, .. }
            | Reply::QueryReply { id, .. }
            | Reply::AcceptReply { id, .. }
            | Reply::AdoptReply { id, .. } => Some(id),
            Reply::Error { .. } => None,
        }
    }

    /// When the store says that the lease ends, if it does.
    pub fn expires(&self) -> Option<Nanos> {
        match *self {
            Reply::AcquireReply { expires, .. } | Reply::RenewReply { expires, .. } => expires,
            _ => None,
        }
    }
}

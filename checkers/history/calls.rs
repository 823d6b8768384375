//! What clients ask for, and what they are answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Name, Nanos, Token};

/// The client calls, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum F {
    /// Ask the store for the lease.
    Acquire,
    /// Extend the lease.
    Renew,
    /// Give the lease back.
    Release,
    /// Tell storage the token, before any read or write under it: the barrier.
    Fence,
    /// Write a key under a token.
    Write,
    /// Delete a key under a token.
    Delete,
    /// Read a key.
    Read,
}

/// A client call as invoked. Tokens are optional where a system may have none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Op {
    /// See [`F::Acquire`].
    Acquire(Acquire),
    /// See [`F::Renew`].
    Renew(Renew),
    /// See [`F::Release`].
    Release(Release),
    /// See [`F::Fence`].
    Fence(Fence),
    /// See [`F::Write`].
    Write(Write),
    /// See [`F::Delete`].
    Delete(Delete),
    /// See [`F::Read`].
    Read(Read),
}

impl F {
    /// Every call.
    pub const ALL: [F; 7] = [
        F::Acquire,
        F::Renew,
        F::Release,
        F::Fence,
        F::Write,
        F::Delete,
        F::Read,
    ];

    /// The name in the file: `acquire`.
    pub fn name(self) -> &'static str {
        match self {
            F::Acquire => "acquire",
            F::Renew => "renew",
            F::Release => "release",
            F::Fence => "fence",
            F::Write => "write",
            F::Delete => "delete",
            F::Read => "read",
        }
    }

    /// The call of this name, if there is one.
    pub fn of_name(name: &str) -> Option<F> {
        F::ALL.into_iter().find(|f| f.name() == name)
    }
}

impl Op {
    /// Which call this is.
    pub fn f(&self) -> F {
        match self {
            Op::Acquire(_) => F::Acquire,
            Op::Renew(_) => F::Renew,
            Op::Release(_) => F::Release,
            Op::Fence(_) => F::Fence,
            Op::Write(_) => F::Write,
            Op::Delete(_) => F::Delete,
            Op::Read(_) => F::Read,
        }
    }

    /// The lease it is about.
    pub fn lease(&self) -> &Name {
        match self {
            Op::Acquire(op) => &op.lease,
            Op::Renew(op) => &op.lease,
            Op::Release(op) => &op.lease,
            Op::Fence(op) => &op.lease,
            Op::Write(op) => &op.lease,
            Op::Delete(op) => &op.lease,
            Op::Read(op) => &op.lease,
        }
    }

    /// The token it carries, if any; an acquire carries none.
    pub fn token(&self) -> Option<Token> {
        match self {
            Op::Acquire(_) => None,
            Op::Renew(op) => op.token,
            Op::Release(op) => op.token,
            Op::Fence(op) => Some(op.token),
            Op::Write(op) => op.token,
            Op::Delete(op) => op.token,
            Op::Read(op) => op.token,
        }
    }

    /// The holder it names; only calls on the store name one.
    pub fn holder(&self) -> Option<&Name> {
        match self {
            Op::Acquire(op) => Some(&op.holder),
            Op::Renew(op) => Some(&op.holder),
            Op::Release(op) => Some(&op.holder),
            _ => None,
        }
    }
}

/// A candidate asks for a lease. A retry carries the same request id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Acquire {
    /// Which lease.
    pub lease: Name,
    /// The candidate's name, with what tells its process from the one before a restart: `a#1`.
    pub holder: Name,
    /// The request's id, rising within a holder; 0 where there are none.
    #[serde(default)]
    pub request: u64,
    /// For how long, in nanoseconds of the store's clock; 0 where it is not known.
    #[serde(default)]
    pub ttl: Nanos,
}

/// A holder extends its lease. Each try has an id of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Renew {
    /// Which lease.
    pub lease: Name,
    /// Who holds it.
    pub holder: Name,
    /// The token it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// The try's id, rising within a holder; 0 where there are none.
    #[serde(default, rename = "try")]
    pub attempt: u64,
    /// For how long from when the store applies it, in nanoseconds; 0 where it is not known.
    #[serde(default)]
    pub ttl: Nanos,
}

/// A holder gives its lease back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Release {
    /// Which lease.
    pub lease: Name,
    /// Who held it.
    pub holder: Name,
    /// The token it held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
}

/// The election barrier: storage is told the new term's token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fence {
    /// The lease that the token belongs to.
    pub lease: Name,
    /// The token.
    pub token: Token,
}

/// A write under a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Write {
    /// The lease under which it is made.
    pub lease: Name,
    /// The token it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// Its place among the writes and deletes under its token, rising.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The key.
    pub key: Name,
    /// The value: any JSON. Where no value is written twice, the checks are exact.
    #[serde(default)]
    pub value: Value,
}

/// A delete under a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delete {
    /// The lease under which it is made.
    pub lease: Name,
    /// The token it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// Its place among the writes and deletes under its token, rising.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The key.
    pub key: Name,
}

/// A read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Read {
    /// The lease whose data is read.
    pub lease: Name,
    /// Its token, where it is read as leader; left out by whoever just reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// The key.
    pub key: Name,
}

/// What a completion brought back.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Nothing: `"value": null`.
    None,
    /// An acquire's token: `{"token": 7}`.
    Token(Token),
    /// A read's value, null when the key is absent: `{"value": …}`.
    Value(Value),
}

/// Why a call failed, or why its outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// `stale-token` (storage refused an overtaken token) and `held` (somebody else has the
    /// lease) are what the checks know. Any other word is for whoever reads the history:
    /// `timeout`, `refused-connection`, `duplicate`.
    pub kind: Name,
    /// `stale-token`: the token that was presented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presented: Option<Token>,
    /// `stale-token`: the highest token that storage had seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Token>,
}

/// The error kind of a write, delete or fence under an overtaken token.
pub const STALE_TOKEN: &str = "stale-token";
/// The error kind of a write whose idempotency key had been seen: the job was done already.
pub const DUPLICATE: &str = "duplicate";

impl Failure {
    /// A failure of this kind, with no further fields.
    pub fn new(kind: impl Into<Name>) -> Self {
        Self {
            kind: kind.into(),
            presented: None,
            seen: None,
        }
    }

    /// Storage had seen `seen` when `presented` came.
    pub fn stale_token(presented: Token, seen: Token) -> Self {
        Self {
            kind: STALE_TOKEN.into(),
            presented: Some(presented),
            seen: Some(seen),
        }
    }
}

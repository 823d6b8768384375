//! What happened: the events of a recorded history and its header.
//!
//! A history is JSON lines: a [`Header`], then one [`Event`] a line. The words
//! are Jepsen's (`process`, `type`, `f`, `value`), so a Jepsen user reads one at
//! sight. Times and durations are nanoseconds; `time` is true time since the
//! start of the run, the same clock for every process.
//!
//! Reading and writing lines is [`crate::reader`] and [`crate::writer`].

use std::collections::BTreeMap;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A short name: a process, a lease, a holder, a key. Inline up to 24 bytes.
pub type Name = CompactString;
/// Nanoseconds: an instant since the start of the run, or a duration.
pub type Nanos = u64;
/// A fencing token. Issued by the store, per lease, one higher at each change of ownership.
pub type Token = u64;
/// A clock's rate in parts per billion of true time: 1,000,000,000 runs true.
pub type RatePpb = u64;

/// The rate of a clock that runs true.
pub const TRUE_RATE: RatePpb = 1_000_000_000;
/// The version of the format this crate writes, and the newest it reads.
pub const FORMAT_VERSION: u32 = 1;
/// The process name under which faults are recorded.
pub const NEMESIS: &str = "nemesis";

/// Line 1 of a history: what a checker needs of it. The harness keeps far more
/// there (cluster, traffic, schedule); whatever is not listed lands in `rest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the format.
    pub deposed: u32,
    /// The workload that was run, or any title.
    #[serde(default)]
    pub workload: Name,
    /// The system under test.
    #[serde(default)]
    pub system: Name,
    /// The seed of the run.
    #[serde(default)]
    pub seed: u64,
    /// Lease timing; checks that reason about time need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseTiming>,
    /// The network's bounds in calm; `failover` needs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkTiming>,
    /// Each node's initial clock rate; a node left out runs true.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clocks: BTreeMap<Name, RatePpb>,
    /// Everything else, kept as it was read.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

impl Header {
    /// Whether the header's cluster keeps the data where the leases are granted, so
    /// that a grant is a barrier.
    pub(crate) fn grant_is_barrier(&self) -> bool {
        self.storage() == Some(&Value::from("compare-and-swap"))
    }

    /// Whether the header's cluster keeps the data on several replicas.
    pub(crate) fn has_replicas(&self) -> bool {
        self.storage()
            .is_some_and(|storage| storage.get("quorum").is_some())
    }

    fn storage(&self) -> Option<&Value> {
        self.rest.get("cluster")?.get("storage")
    }
}

/// The lease configuration that all nodes of a run share.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseTiming {
    /// How long a grant lasts on the store's clock.
    pub ttl: Nanos,
    /// The bound on *relative* clock drift that belief safety is claimed for, in parts per billion.
    #[serde(default)]
    pub max_drift_ppb: u64,
    /// Subtracted from the client's window on top of the drift margin.
    #[serde(default)]
    pub safety_margin: Nanos,
    /// After an expiry the store refuses new owners for this long.
    #[serde(default)]
    pub lock_delay: Nanos,
    /// How long a client waits for one try's answer.
    #[serde(default)]
    pub try_timeout: Nanos,
    /// The longest pause between two tries.
    #[serde(default)]
    pub backoff_max: Nanos,
}

/// What the network guarantees once all faults are healed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NetworkTiming {
    /// The least one-way latency of a message.
    #[serde(default)]
    pub min_latency: Nanos,
    /// The greatest one-way latency of a message, ticks included.
    pub max_latency: Nanos,
}

/// One line of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Rises by one from line to line.
    pub index: u64,
    /// True time since the start of the run.
    pub time: Nanos,
    /// A client, a store or storage node, or [`NEMESIS`].
    pub process: Name,
    /// What kind of line this is.
    pub kind: Kind,
    /// Pairs an invoke with its completion; unique in the file. Left out, a
    /// completion belongs to its process's open invoke.
    pub call: Option<u64>,
    /// `f` and `value`.
    pub body: Body,
    /// Why a call failed or is indefinite.
    pub error: Option<Failure>,
}

/// `type`: the four kinds of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A call begins.
    Invoke,
    /// The call happened.
    Ok,
    /// The call surely did not happen.
    Fail,
    /// The call may have happened; or, with no call, an observation.
    Info,
}

/// `f` and `value` of a line, by what kind of line it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// An invoke: the operation asked for.
    Invoke(Op),
    /// A completion (`ok`, `fail` or `info`) of a client call.
    Complete(F, Answer),
    /// What only the inside sees: a node's own account.
    Observed(Observation),
    /// A fault that was injected, healed, or the mark `calm`; `value` is the fault's own fields.
    Nemesis(Name, Value),
    /// An `f` that this format does not know: kept and ignored.
    Foreign(Name, Value),
}

/// The client calls, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
        Some(match name {
            "acquire" => F::Acquire,
            "renew" => F::Renew,
            "release" => F::Release,
            "fence" => F::Fence,
            "write" => F::Write,
            "delete" => F::Delete,
            "read" => F::Read,
            _ => return None,
        })
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
pub struct Acquire {
    /// Which lease.
    pub lease: Name,
    /// The candidate's name and its process's nonce.
    pub holder: Name,
    /// The request's id, rising within a holder.
    #[serde(default)]
    pub request: u64,
    /// For how long, on the store's clock.
    #[serde(default)]
    pub ttl: Nanos,
}

/// A holder extends its lease. Each try has an id of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Renew {
    /// Which lease.
    pub lease: Name,
    /// Who holds it.
    pub holder: Name,
    /// The token it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// The try's id, rising within a holder.
    #[serde(default, rename = "try")]
    pub attempt: u64,
    /// For how long from when the store applies it.
    #[serde(default)]
    pub ttl: Nanos,
}

/// A holder gives its lease back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
pub struct Fence {
    /// Which lease the token belongs to.
    pub lease: Name,
    /// The token.
    pub token: Token,
}

/// A write under a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// The lease under which it is made.
    pub lease: Name,
    /// The token it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// Rises within a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The key.
    pub key: Name,
    /// The value.
    #[serde(default)]
    pub value: Value,
}

/// A delete under a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delete {
    /// The lease under which it is made.
    pub lease: Name,
    /// The token it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// Rises within a token, in one row with writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The key.
    pub key: Name,
}

/// A read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// The lease whose data is read.
    pub lease: Name,
    /// Present when read as leader.
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
pub struct Failure {
    /// `stale-token`, `held`, `expired`, `timeout`, `refused-connection`, …
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

/// A node's own account of what it did or believes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Observation {
    /// A client began to believe, or its belief's end moved.
    Lead(Lead),
    /// A client ceased to believe.
    Follow(Follow),
    /// The store granted a lease.
    Granted(Granted),
    /// The store extended a lease.
    Renewed(Renewed),
    /// The store took a lease back at its holder's word.
    Released(Released),
    /// The store noticed that a lease ran out. May be left out.
    Expired(Expired),
    /// The store refused.
    Denied(Denied),
    /// The store came back with what its disk held.
    StoreRecovered(StoreRecovered),
    /// The store came back from an old copy, with an operator's floor.
    Restored(Restored),
    /// Storage applied a write or a delete.
    Applied(Applied),
    /// Storage took a fence.
    Fenced(Fenced),
    /// Storage refused.
    Refused(Refused),
    /// Storage dropped a write whose job it had done.
    Dropped(Dropped),
    /// Storage came back with what its disk held.
    StorageRecovered(StorageRecovered),
}

impl Observation {
    /// The name in the file: `granted`. Both `recovered`s have one name, and
    /// differ by what they hold.
    pub fn name(&self) -> &'static str {
        match self {
            Observation::Lead(_) => "lead",
            Observation::Follow(_) => "follow",
            Observation::Granted(_) => "granted",
            Observation::Renewed(_) => "renewed",
            Observation::Released(_) => "released",
            Observation::Expired(_) => "expired",
            Observation::Denied(_) => "denied",
            Observation::StoreRecovered(_) | Observation::StorageRecovered(_) => "recovered",
            Observation::Restored(_) => "restored",
            Observation::Applied(_) => "applied",
            Observation::Fenced(_) => "fenced",
            Observation::Refused(_) => "refused",
            Observation::Dropped(_) => "dropped",
        }
    }
}

/// `is_leader()` answers true from here until `until`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lead {
    /// Which lease.
    pub lease: Name,
    /// Who believes.
    pub holder: Name,
    /// Its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// True time at which the belief ends by itself (exclusive); null: never.
    #[serde(default)]
    pub until: Option<Nanos>,
    /// True time of the send that the belief counts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Nanos>,
}

/// `is_leader()` answers false from here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Follow {
    /// Which lease.
    pub lease: Name,
    /// Who believed.
    pub holder: Name,
    /// The token of the term that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
}

/// The store granted a lease. `clock` is the store's boot clock throughout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Granted {
    /// Which lease.
    pub lease: Name,
    /// To whom.
    pub holder: Name,
    /// The request that was granted.
    #[serde(default)]
    pub request: u64,
    /// The new term's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// For how long from `clock`.
    pub ttl: Nanos,
    /// The store's clock.
    pub clock: Nanos,
}

/// The store extended a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Renewed {
    /// Which lease.
    pub lease: Name,
    /// Whose.
    pub holder: Name,
    /// The term's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// For how long from `clock`, unless it already ran longer.
    pub ttl: Nanos,
    /// The store's clock.
    pub clock: Nanos,
}

/// A release took effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Released {
    /// Which lease.
    pub lease: Name,
    /// Who let go.
    pub holder: Name,
    /// The spent token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// The store's clock.
    pub clock: Nanos,
}

/// A lease ran out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expired {
    /// Which lease.
    pub lease: Name,
    /// The token of the term that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// The store's clock.
    pub clock: Nanos,
}

/// The store refused a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Denied {
    /// Which lease.
    pub lease: Name,
    /// What was asked: acquire, renew or release.
    pub f: F,
    /// Who asked.
    pub holder: Name,
    /// The acquire's request id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// The renewal's or release's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// The store's clock.
    pub clock: Nanos,
    /// Why.
    pub error: Failure,
}

/// What the store found on its disk after a restart; recorded before it answers anyone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreRecovered {
    /// Every lease it knows.
    pub leases: BTreeMap<Name, RecoveredLease>,
    /// The store's clock, from which the recorded owners' ttl runs anew.
    pub clock: Nanos,
}

/// One lease as found on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoveredLease {
    /// The highest token ever granted.
    pub counter: Token,
    /// The recorded owner, if the lease was not released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Name>,
    /// The owner's ttl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Nanos>,
}

/// The store came back from an old copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restored {
    /// The floor that the operator supplied: every counter jumps at least there.
    pub floor: Token,
    /// What the copy held.
    pub leases: BTreeMap<Name, RecoveredLease>,
    /// The store's clock.
    pub clock: Nanos,
}

/// Storage applied a write or a delete, durably.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// Write or delete.
    pub f: F,
    /// The lease under which it was made.
    pub lease: Name,
    /// The token it carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// Its place within the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The key.
    pub key: Name,
    /// The value written; a written null is `Some(Value::Null)`, a delete has none.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub value: Option<Value>,
}

/// Storage took a fence, durably.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fenced {
    /// Which lease.
    pub lease: Name,
    /// The token, now the highest seen.
    pub token: Token,
}

/// Storage refused a write, delete or fence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// What was refused.
    pub f: F,
    /// Which lease.
    pub lease: Name,
    /// The token that was presented.
    pub token: Token,
    /// Its place within the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The highest token that had been seen.
    pub seen: Token,
}

/// A resource that goes by idempotency keys dropped a write: the job that its key names
/// had been done, by an earlier try or by another leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    /// Which lease.
    pub lease: Name,
    /// The key.
    pub key: Name,
    /// The value that was not written.
    #[serde(default)]
    pub value: Value,
}

/// What storage found on its disk after a restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageRecovered {
    /// The highest token seen, per lease.
    pub highest: BTreeMap<Name, Token>,
}

/// A field that is there is `Some`, a null too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

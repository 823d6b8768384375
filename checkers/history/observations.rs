//! What nodes and clients tell of themselves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{F, Failure, Name, Nanos, Token};

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
    /// Every name, in the order of the variants.
    pub const NAMES: [&str; 13] = [
        "lead",
        "follow",
        "granted",
        "renewed",
        "released",
        "expired",
        "denied",
        "recovered",
        "restored",
        "applied",
        "fenced",
        "refused",
        "dropped",
    ];

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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lead {
    /// Which lease.
    pub lease: Name,
    /// Who believes.
    pub holder: Name,
    /// Its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// When the belief ends by itself (exclusive), in nanoseconds of the same time as the
    /// line's `time`; null: never.
    #[serde(default)]
    pub until: Option<Nanos>,
    /// When the request was sent that the belief counts from, in nanoseconds of the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Nanos>,
}

/// `is_leader()` answers false from here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Follow {
    /// Which lease.
    pub lease: Name,
    /// Who believed.
    pub holder: Name,
    /// The token of the term that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
}

/// The store granted a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Granted {
    /// Which lease.
    pub lease: Name,
    /// To whom.
    pub holder: Name,
    /// The id of the acquire that was granted; 0 where there are none.
    #[serde(default)]
    pub request: u64,
    /// The new term's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// For how long from `clock`, in nanoseconds.
    pub ttl: Nanos,
    /// The store's clock at that moment, in nanoseconds; any monotonic one, with any zero.
    pub clock: Nanos,
}

/// The store extended a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Renewed {
    /// Which lease.
    pub lease: Name,
    /// Whose.
    pub holder: Name,
    /// The term's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// For how long from `clock`, in nanoseconds, unless it already ran longer.
    pub ttl: Nanos,
    /// The store's clock at that moment, in nanoseconds; any monotonic one, with any zero.
    pub clock: Nanos,
}

/// A release took effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Released {
    /// Which lease.
    pub lease: Name,
    /// Who let go.
    pub holder: Name,
    /// The spent token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// The store's clock at that moment, in nanoseconds; any monotonic one, with any zero.
    pub clock: Nanos,
}

/// A lease ran out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expired {
    /// Which lease.
    pub lease: Name,
    /// The token of the term that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// The store's clock at that moment, in nanoseconds; any monotonic one, with any zero.
    pub clock: Nanos,
}

/// The store refused a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The store's clock at that moment, in nanoseconds; any monotonic one, with any zero.
    pub clock: Nanos,
    /// Why.
    pub error: Failure,
}

/// What the store found on its disk after a restart; recorded before it answers anyone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoreRecovered {
    /// Every lease it knows.
    pub leases: BTreeMap<Name, RecoveredLease>,
    /// The store's clock, in nanoseconds, from which the recorded owners' ttl runs anew.
    pub clock: Nanos,
}

/// One lease as found on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecoveredLease {
    /// The highest token ever granted.
    pub counter: Token,
    /// The recorded owner, if the lease was not released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Name>,
    /// The owner's ttl, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Nanos>,
}

/// The store came back from an old copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Restored {
    /// The floor that the operator supplied: every counter jumps at least there.
    pub floor: Token,
    /// What the copy held.
    pub leases: BTreeMap<Name, RecoveredLease>,
    /// The store's clock at that moment, in nanoseconds; any monotonic one, with any zero.
    pub clock: Nanos,
}

/// Storage applied a write or a delete, durably.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Applied {
    /// Write or delete.
    pub f: F,
    /// The lease under which it was made.
    pub lease: Name,
    /// The token it carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// Its place among the writes and deletes under its token, rising.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The key.
    pub key: Name,
    /// The value written, which may be null; a delete has none.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub value: Option<Value>,
}

/// Storage took a fence, durably.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fenced {
    /// Which lease.
    pub lease: Name,
    /// The token, now the highest seen.
    pub token: Token,
}

/// Storage refused a write, delete or fence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// What was refused.
    pub f: F,
    /// Which lease.
    pub lease: Name,
    /// The token that was presented.
    pub token: Token,
    /// Its place among the writes and deletes under its token, rising.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The highest token that had been seen.
    pub seen: Token,
}

/// A resource that goes by idempotency keys dropped a write: the job that its key names
/// had been done, by an earlier try or by another leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StorageRecovered {
    /// The highest token seen, per lease.
    pub highest: BTreeMap<Name, Token>,
}

/// A field that is there is `Some`, a null too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

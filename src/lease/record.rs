//! What a store must have made durable before it answers.

use deposed_checkers::history::{Name, Nanos, Token};
use serde::{Deserialize, Serialize};

/// What must be durable of one lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// The highest token ever granted.
    pub counter: Token,
    /// The last owner, also when its time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerRecord>,
    /// The last owner gave the lease back.
    #[serde(default)]
    pub released: bool,
}

/// What must be durable of a lease's last owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OwnerRecord {
    /// Who.
    pub holder: Name,
    /// The acquire that was granted.
    pub request: u64,
    /// The token it was granted under.
    pub token: Token,
    /// The longest ttl granted or renewed in this term, so that re-arming it after
    /// a restart never ends before what was promised.
    pub ttl: Nanos,
    /// The lock-delay that follows should it expire.
    #[serde(default)]
    pub lock_delay: Nanos,
}

/// What a restore from an old copy leaves behind, for every lease alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Restoration {
    /// Every token granted is higher than this.
    pub floor: Token,
    /// For how long from a restart nothing is granted.
    pub closed_for: Nanos,
}

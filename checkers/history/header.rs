//! Line 1: what was run, and the times that checks reason with.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{FORMAT_VERSION, Name, Nanos, RatePpb, TRUE_RATE};

/// Line 1 of a history: what a checker needs of it. The harness keeps far more
/// there (cluster, traffic, schedule); whatever is not listed lands in `rest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Header {
    /// The version of the format: 1.
    pub deposed: u32,
    /// The workload that was run, or any title.
    #[serde(default)]
    pub workload: Name,
    /// The system under test.
    #[serde(default)]
    pub system: Name,
    /// The seed of the run, if it had one.
    #[serde(default)]
    pub seed: u64,
    /// Lease timing; checks that reason about time need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseTiming>,
    /// The network's bounds in calm; `failover` needs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkTiming>,
    /// Each node's clock rate at the start, in parts per billion of true time (1000000000 runs
    /// true); a node left out runs true.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clocks: BTreeMap<Name, RatePpb>,
    /// Everything else, kept as it was read.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

impl Header {
    /// A header that says no more than what was run; the rest is for the caller to fill in.
    ///
    /// ```
    /// use deposed_checkers::history::{Header, LeaseTiming};
    ///
    /// let timing = LeaseTiming { ttl: 300_000_000, ..LeaseTiming::default() };
    /// let header = Header { lease: Some(timing), ..Header::titled("my-lock") };
    /// assert_eq!(header.deposed, 1);
    /// ```
    pub fn titled(workload: impl Into<Name>) -> Self {
        Header {
            deposed: FORMAT_VERSION,
            workload: workload.into(),
            system: Name::default(),
            seed: 0,
            lease: None,
            network: None,
            clocks: BTreeMap::new(),
            rest: serde_json::Map::new(),
        }
    }

    /// Whether the header's cluster keeps the data where the leases are granted, so
    /// that a grant is a barrier.
    pub(crate) fn grant_is_barrier(&self) -> bool {
        self.storage() == Some(&Value::from("compare-and-swap"))
    }

    /// Whether the header tells of a system that sets barriers: of deposed's own, or one that
    /// was run in its cluster.
    pub(crate) fn sets_barriers(&self) -> bool {
        self.system == "deposed" || self.rest.contains_key("cluster")
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeaseTiming {
    /// How long a grant lasts, in nanoseconds of the store's clock.
    pub ttl: Nanos,
    /// The bound on *relative* clock drift that belief safety is claimed for, in parts per
    /// billion, fewer than 1000000000: a clock that may stand still tells no time.
    #[serde(default, deserialize_with = "drift")]
    #[cfg_attr(feature = "schema", schemars(range(max = 999_999_999)))]
    pub max_drift_ppb: u64,
    /// Subtracted from the client's window on top of the drift margin, in nanoseconds.
    #[serde(default)]
    pub safety_margin: Nanos,
    /// After an expiry the store refuses new owners for this long, in nanoseconds; 0: it has no
    /// lock-delay.
    #[serde(default)]
    pub lock_delay: Nanos,
    /// How long a client waits for one try's answer, in nanoseconds.
    #[serde(default)]
    pub try_timeout: Nanos,
    /// The longest pause between two tries, in nanoseconds.
    #[serde(default)]
    pub backoff_max: Nanos,
}

/// A drift by which a window can be reckoned: of a whole one nothing would be left, and
/// every leader would be convicted.
fn drift<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let drift = u64::deserialize(deserializer)?;
    match drift < TRUE_RATE {
        true => Ok(drift),
        false => Err(D::Error::custom(format!(
            "a clock that is off by {drift} parts per billion may stand still; give fewer than \
             {TRUE_RATE}, as 10000000 for 1 %"
        ))),
    }
}

/// What the network guarantees once all faults are healed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkTiming {
    /// The least one-way latency of a message, in nanoseconds.
    #[serde(default)]
    pub min_latency: Nanos,
    /// The greatest one-way latency of a message, ticks included, in nanoseconds.
    pub max_latency: Nanos,
}

//! What a run can be asked for. A header may come from a file that somebody edited:
//! whatever is in it is refused in one sentence, never run for ever or into a panic.

pub(super) mod entry;
mod load;

use deposed_checkers::history::{Name, Nanos, RatePpb, TRUE_RATE};

use super::Header;
use crate::{
    cluster::StorageKind,
    fault::reading::{cannot, unknown},
    lease::{ConfigError, StoreLimits},
    workload::{Network, SECOND},
    world,
};

pub use load::{MOST_CONNECTIONS, MOST_EVENTS};

/// The longest run, chaos and calm together: an hour.
pub const LONGEST_RUN: Nanos = 3600 * SECOND;
/// The most leases in a run; each client has a connection to each server for each.
pub const MOST_LEASES: u32 = 100;
/// The most clients: one a letter.
pub const MOST_CLIENTS: u8 = 26;
/// How many replicas a quorum may have: odd, since one more than an odd number fails no
/// later and costs a majority more.
pub const REPLICAS: [u8; 3] = [3, 5, 7];
/// The slowest and the fastest clock, in parts per billion.
pub const CLOCK_RATES: (RatePpb, RatePpb) = (1_000_000, 1_000_000_000_000);
/// One-way latencies until a connection is made.
const HANDSHAKE: u64 = 2;
/// One-way latencies from a leader's election to its first acknowledged write: a
/// connection (3), a fence, a read and a write (2 each).
const UNTIL_WRITTEN: u64 = 9;
/// The same on replicas, where a fence has two steps and a replica may have to be repaired.
const UNTIL_WRITTEN_ON_REPLICAS: u64 = 13;
/// The farthest that a clock may be ahead at the start: a hundred years.
pub const MOST_OFFSET: Nanos = 100 * 366 * 24 * 3600 * SECOND;

/// Why a header cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// See [`LeaseConfig::validate`](crate::lease::LeaseConfig::validate).
    #[error("the header's 'lease' does not work: {0}")]
    Lease(#[from] ConfigError),
    /// See [`StoreLimits`].
    #[error(
        "the header's 'ttl' is {0} ns, and every store refuses it; a millisecond to an hour works"
    )]
    Ttl(Nanos),
    /// See [`MOST_CLIENTS`].
    #[error("the header's 'cluster' has {0} clients; 1 to {MOST_CLIENTS} can be run")]
    Clients(u8),
    /// What the leaders should write to.
    #[error("the header's 'cluster' cannot be built: {0}")]
    Storage(String),
    /// See [`MOST_LEASES`].
    #[error("the header's 'traffic' has {0} leases; 1 to {MOST_LEASES} can be run")]
    Leases(u32),
    /// See [`LONGEST_RUN`].
    #[error("the header's run is longer than an hour; shorten 'chaos' or 'calm' (both are ns)")]
    TooLong,
    /// The least latency is a tick: below it a message would arrive before it left.
    #[error(
        "the header's 'network' has a latency of {0} to {1} ns: 'min_latency' must be 1000000 (a \
         millisecond) or more, and 'max_latency' not below it, and an hour at most"
    )]
    Latency(Nanos, Nanos),
    /// A try that is over sooner comes to nothing: no leader would ever be elected, which
    /// the `failover` check asks for.
    #[error(
        "the header's 'try_timeout' is {try_timeout} ns, and a connection may take {needed} ns to \
         be made, by the fastest client's clock: take more than that, or a lower 'max_latency'"
    )]
    TryTooShort {
        /// What was asked for.
        try_timeout: Nanos,
        /// What two latencies are on the clock that counts them fastest.
        needed: Nanos,
    },
    /// A leader that resigns sooner writes nothing, which the `failover` check asks for.
    #[error(
        "the header's 'resign_every' is {resign_every} ns, and from its election to its first \
         acknowledged write a leader may take {needed} ns, by the fastest client's clock: take \
         that or more, or null"
    )]
    ResignsTooSoon {
        /// What was asked for.
        resign_every: Nanos,
        /// What the latencies until then are on the clock that counts them fastest.
        needed: Nanos,
    },
    /// See [`CLOCK_RATES`].
    #[error(
        "the header's 'clocks': that of '{node}' runs at {rate} parts per billion; {} to {} can be run",
        CLOCK_RATES.0, CLOCK_RATES.1
    )]
    ClockRate {
        /// Whose clock.
        node: Name,
        /// Its rate.
        rate: RatePpb,
    },
    /// See [`MOST_OFFSET`].
    #[error("the header's 'offsets': the clock of '{0}' is more than a hundred years ahead")]
    Offset(Name),
    /// A clock of a node that is not in the cluster.
    #[error(
        "the header's '{field}': {}",
        unknown("node", node, &known.iter().map(Name::as_str).collect::<Vec<_>>())
    )]
    NoNode {
        /// `clocks` or `offsets`.
        field: &'static str,
        /// The name given.
        node: Name,
        /// Every node of the cluster.
        known: Vec<Name>,
    },
    /// See [`MOST_CONNECTIONS`].
    #[error(
        "while faults last a client may try to open {0} connections in the header's run, each on \
         a port that nobody gives back, and there are {MOST_CONNECTIONS}: take fewer 'leases', a \
         shorter 'chaos', or a longer 'try_timeout' and 'backoff_min'"
    )]
    Connections(u64),
    /// See [`MOST_EVENTS`].
    #[error(
        "the header's run may make {0} events, and {MOST_EVENTS} can be kept in memory: take \
         fewer 'leases' or 'clients', a longer 'write_every' or 'backoff_min', or a shorter 'chaos'"
    )]
    Events(u64),
    /// One entry of the schedule.
    #[error("{}", cannot(*entry, fault, reason))]
    Entry {
        /// Which, from 0.
        entry: usize,
        /// Its fault's name.
        fault: &'static str,
        /// Why not.
        reason: String,
    },
    /// The crate feature `flaws` is off.
    #[error(
        "the header has a planted flaw, and this build has none (crate feature 'flaws'): build \
         it with that, or set 'flaw' to null"
    )]
    NoFlaws,
}

impl Header {
    /// Whether a run of this header can be asked for; checked before each run.
    ///
    /// # Errors
    /// The first value that is outside what the world can simulate.
    pub fn validate(&self) -> Result<(), HeaderError> {
        self.lease.validate()?;
        let StoreLimits {
            min_ttl, max_ttl, ..
        } = StoreLimits::default();
        if !(min_ttl..=max_ttl).contains(&self.lease.ttl) {
            return Err(HeaderError::Ttl(self.lease.ttl));
        }
        if !(1..=MOST_CLIENTS).contains(&self.cluster.clients) {
            return Err(HeaderError::Clients(self.cluster.clients));
        }
        self.can_store()?;
        if !(1..=MOST_LEASES).contains(&self.traffic.leases) {
            return Err(HeaderError::Leases(self.traffic.leases));
        }
        if self.chaos.saturating_add(self.calm) > LONGEST_RUN {
            return Err(HeaderError::TooLong);
        }
        let Network {
            min_latency,
            max_latency,
        } = self.network;
        if min_latency < world::TICK || max_latency < min_latency || max_latency > LONGEST_RUN {
            return Err(HeaderError::Latency(min_latency, max_latency));
        }
        self.has_nodes("clocks", self.clocks.keys())?;
        self.has_nodes("offsets", self.offsets.keys())?;
        let bad_rate = self.clocks.iter().find(|(_, rate)| !can_run_at(**rate));
        if let Some((node, &rate)) = bad_rate {
            return Err(HeaderError::ClockRate {
                node: node.clone(),
                rate,
            });
        }
        if let Some((node, _)) = self.offsets.iter().find(|(_, ahead)| **ahead > MOST_OFFSET) {
            return Err(HeaderError::Offset(node.clone()));
        }
        self.can_lead()?;
        for (entry, injection) in self.schedule.iter().enumerate() {
            self.can_inject(injection).map_err(|reason| {
                let fault = injection.fault.name();
                HeaderError::Entry {
                    entry,
                    fault,
                    reason,
                }
            })?;
        }
        if self.flaw.is_some() && !cfg!(feature = "flaws") {
            return Err(HeaderError::NoFlaws);
        }
        self.can_bear()
    }

    /// Whether a client can come to lead and to write once all is well, as the `failover`
    /// check asks: with one that cannot, it would convict a system that has no fault.
    fn can_lead(&self) -> Result<(), HeaderError> {
        let latencies = |count: u64| self.on_the_fastest_client(self.network.max_latency * count);
        // The client's hello and the server's; what is sent after that is heard also late.
        let needed = latencies(HANDSHAKE);
        let try_timeout = self.lease.try_timeout;
        if try_timeout <= needed {
            return Err(HeaderError::TryTooShort {
                try_timeout,
                needed,
            });
        }
        let until_written = match self.cluster.storage {
            StorageKind::Quorum { .. } => UNTIL_WRITTEN_ON_REPLICAS,
            _ => UNTIL_WRITTEN,
        };
        let needed = latencies(until_written);
        match self.traffic.resign_every {
            Some(resign_every) if resign_every < needed => Err(HeaderError::ResignsTooSoon {
                resign_every,
                needed,
            }),
            _ => Ok(()),
        }
    }

    /// What a length of true time is on the client's clock that runs fastest, when nothing
    /// is wrong.
    fn on_the_fastest_client(&self, length: Nanos) -> Nanos {
        let clients = self.cluster.client_names();
        let rates = clients.iter().map(|client| self.rate_of(client));
        let fastest = rates.fold(0, RatePpb::max);
        let counted = u128::from(length) * u128::from(fastest) / u128::from(TRUE_RATE);
        u64::try_from(counted).unwrap_or(Nanos::MAX)
    }

    /// Whether these are nodes of the cluster: what is said of others would go unnoticed.
    fn has_nodes<'n>(
        &self,
        field: &'static str,
        mut named: impl Iterator<Item = &'n Name>,
    ) -> Result<(), HeaderError> {
        let known = self.cluster.node_names();
        match named.find(|node| !known.contains(node)) {
            Some(node) => Err(HeaderError::NoNode {
                field,
                node: node.clone(),
                known,
            }),
            None => Ok(()),
        }
    }

    fn can_store(&self) -> Result<(), HeaderError> {
        match self.cluster.storage {
            StorageKind::Effects { .. } if self.traffic.delete_one_in > 0 => {
                let what =
                    "what was done cannot be deleted; its traffic's 'delete_one_in' must be 0";
                Err(HeaderError::Storage(what.to_owned()))
            }
            StorageKind::Effects { .. } | StorageKind::CompareAndSwap
                if self.traffic.without_barrier =>
            {
                let what = "leaders set no barrier there that could be left out; take \
                            'without_barrier' out of its traffic";
                Err(HeaderError::Storage(what.to_owned()))
            }
            StorageKind::Fenced | StorageKind::CompareAndSwap | StorageKind::Effects { .. } => {
                Ok(())
            }
            StorageKind::Quorum { replicas } if REPLICAS.contains(&replicas) => Ok(()),
            StorageKind::Quorum { replicas } => Err(HeaderError::Storage(format!(
                "a quorum of {replicas} replicas; 3, 5 or 7 can be run"
            ))),
        }
    }
}

fn can_run_at(rate: RatePpb) -> bool {
    (CLOCK_RATES.0..=CLOCK_RATES.1).contains(&rate)
}

#[cfg(test)]
mod tests;

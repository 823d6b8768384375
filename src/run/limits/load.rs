//! What a run would take of the machine, from above: a header may ask for more than the
//! simulator has, or than anybody would wait for.

use deposed_checkers::history::{Nanos, TRUE_RATE};

use super::HeaderError;
use crate::{fault::Fault, run::Header, world};

/// The most connections that one client may try to open in a run. Each takes a port of its
/// host, and turmoil frees a port with its stream, which one that nobody accepts never
/// becomes: the client gives up, and its port is gone to the end of the run. This leaves
/// some of [`world::PORTS`] for the connections in use.
pub const MOST_CONNECTIONS: u64 = 60_000;
/// The most events in a run. They are kept in memory while it is made, at some 400 bytes
/// each: 2 GB.
pub const MOST_EVENTS: u64 = 5_000_000;

impl Header {
    /// Whether there are ports and memory enough.
    pub(super) fn can_bear(&self) -> Result<(), HeaderError> {
        let connections = self.connections();
        if connections > MOST_CONNECTIONS {
            return Err(HeaderError::Connections(connections));
        }
        match self.events() {
            events if events > MOST_EVENTS => Err(HeaderError::Events(events)),
            _ => Ok(()),
        }
    }

    /// How many connections a client may try to open that come to nothing: for each lease
    /// one to each server a try, for as long as faults may keep a server from accepting.
    fn connections(&self) -> u64 {
        let ways = 1 + self.cluster.storage_names().len() as u64;
        let lengths = self.schedule.iter().map(|entry| entry.fault.length());
        let lengths = lengths.fold(0, |sum: Nanos, length| {
            sum.saturating_add(length.unwrap_or(0))
        });
        let stalled = self.chaos.min(lengths);
        let try_each =
            self.on_the_fastest_clock(self.lease.try_timeout.min(self.lease.backoff_min));
        let tries = stalled / try_each + 2;
        tries
            .saturating_mul(ways)
            .saturating_mul(u64::from(self.traffic.leases))
    }

    /// About how many events it makes, or more: leaders work as fast as they may, and all
    /// others ask for every lease as often as they may.
    fn events(&self) -> u64 {
        let (lease, traffic, cluster) = (&self.lease, &self.traffic, &self.cluster);
        let round_trip = self.network.min_latency.saturating_mul(2);
        let each = |pause: Nanos, round_trips: u64, events: u64| {
            let every = self
                .on_the_fastest_clock(pause)
                .saturating_add(round_trip.saturating_mul(round_trips));
            u128::from(self.length()) * u128::from(events) / u128::from(every.max(1))
        };
        // A read and a write, begun and ended, and where the write was applied.
        let updates = each(
            traffic.write_every,
            2,
            4 + cluster.storage_names().len() as u64,
        );
        let renewals = each(lease.renew_after(), 1, 4);
        let refusals = each(lease.backoff_min, 1, 3) * u128::from(cluster.clients);
        let events = (updates + renewals + refusals) * u128::from(traffic.leases);
        u64::try_from(events).unwrap_or(u64::MAX)
    }

    fn length(&self) -> Nanos {
        self.chaos.saturating_add(self.calm)
    }

    /// How long a pause on a node's clock lasts at least, true time; a tick is the least.
    fn on_the_fastest_clock(&self, pause: Nanos) -> Nanos {
        let changed = self.schedule.iter().filter_map(|entry| match entry.fault {
            Fault::Rate { rate_ppb, .. } => Some(rate_ppb),
            _ => None,
        });
        let rates = self.clocks.values().copied().chain(changed);
        let fastest = rates.fold(TRUE_RATE, u64::max);
        let true_time = u128::from(pause) * u128::from(TRUE_RATE) / u128::from(fastest);
        u64::try_from(true_time)
            .unwrap_or(Nanos::MAX)
            .max(world::TICK)
    }
}

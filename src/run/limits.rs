//! What a run can be asked for. A header may come from a file that somebody edited:
//! whatever is in it is refused in one sentence, never run for ever or into a panic.

use deposed_checkers::history::{Name, Nanos, RatePpb};

use super::Header;
use crate::{
    cluster::StorageKind,
    fault::{
        Fault, Injection, Moment, Target, Trigger,
        reading::{cannot, unknown},
    },
    lease::{ConfigError, StoreLimits},
    nemesis::{FRAMES, FRAMES_OF_STORAGES},
    system::{Deposed, System},
    workload::{Network, SECOND},
    world,
};

/// The longest run, chaos and calm together: an hour. A history is kept in memory
/// while it is made, at some 250 events a second.
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
/// The farthest that a clock may be ahead at the start: a hundred years.
pub const MOST_OFFSET: Nanos = 100 * 366 * 24 * 3600 * SECOND;

/// All of it, in parts per billion.
const WHOLE: u64 = 1_000_000_000;

/// Why a header cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// See [`LeaseConfig::validate`](crate::lease::LeaseConfig::validate).
    #[error("the header's lease timing does not work: {0}")]
    Lease(#[from] ConfigError),
    /// See [`StoreLimits`].
    #[error("the header's ttl of {0} ns is refused by every store; a millisecond to an hour works")]
    Ttl(Nanos),
    /// See [`MOST_CLIENTS`].
    #[error("the header's cluster has {0} clients; 1 to {MOST_CLIENTS} can be run")]
    Clients(u8),
    /// What the leaders should write to.
    #[error("the header's cluster cannot be built: {0}")]
    Storage(String),
    /// See [`MOST_LEASES`].
    #[error("the header's traffic has {0} leases; 1 to {MOST_LEASES} can be run")]
    Leases(u32),
    /// See [`LONGEST_RUN`].
    #[error("the header's run is longer than an hour; shorten 'chaos' or 'calm' (both are ns)")]
    TooLong,
    /// The least latency is a tick: below it a message would arrive before it left.
    #[error(
        "the header's network latency of {0} to {1} ns does not work: the least must be \
         1000000 (a millisecond) or more, and the most not below it"
    )]
    Latency(Nanos, Nanos),
    /// See [`CLOCK_RATES`].
    #[error(
        "the header's clock of '{node}' runs at {rate} parts per billion; {} to {} can be run",
        CLOCK_RATES.0, CLOCK_RATES.1
    )]
    ClockRate {
        /// Whose clock.
        node: Name,
        /// Its rate.
        rate: RatePpb,
    },
    /// See [`MOST_OFFSET`].
    #[error("the header's clock of '{0}' is more than a hundred years ahead")]
    Offset(Name),
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
    #[error("the header has a planted flaw, and this build has none (crate feature `flaws`)")]
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
        Ok(())
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

    fn can_inject(&self, injection: &Injection) -> Result<(), String> {
        if let Trigger::On { nth: 0, moment, .. } = injection.when {
            let Moment { f, .. } = moment;
            return Err(format!(
                "its trigger waits for the 0th {}; they count from 1",
                f.name()
            ));
        }
        let clients = self.cluster.clients;
        if let Some(nth) = injection
            .fault
            .targets()
            .into_iter()
            .find_map(|target| match target {
                Target::Client(nth) if nth >= clients => Some(nth),
                _ => None,
            })
        {
            return Err(format!(
                "client {nth} is its target, and the last of {clients} is {}",
                clients - 1
            ));
        }
        if injection.fault.is_of_disks() {
            self.can_fail_disks(&injection.fault)?;
        }
        let replicas = match self.cluster.storage {
            StorageKind::Quorum { replicas } => replicas,
            _ => 0,
        };
        for target in injection.fault.targets() {
            match target {
                Target::Replica(_) | Target::Minority if replicas == 0 => {
                    return Err("a replica is its target, and the storage has none".to_owned());
                }
                Target::Replica(nth) if nth >= replicas => {
                    return Err(format!(
                        "replica {nth} is its target, and the last of {replicas} is {}",
                        replicas - 1
                    ));
                }
                _ => {}
            }
        }
        match &injection.fault {
            Fault::Lose { kind, count, .. }
            | Fault::Delay { kind, count, .. }
            | Fault::Duplicate { kind, count, .. } => self.can_meddle(kind, *count)?,
            Fault::IoError { count: 0, .. } => {
                return Err("0 operations of the disk fail; give 1 or more".to_owned());
            }
            _ => {}
        }
        match injection.fault {
            Fault::Rate { rate_ppb, .. } if !can_run_at(rate_ppb) => Err(format!(
                "a clock rate of {rate_ppb} parts per billion; {} to {} can be run",
                CLOCK_RATES.0, CLOCK_RATES.1
            )),
            Fault::Latency { min, max, .. } if min < world::TICK || max < min => Err(format!(
                "a latency of {min} to {max} ns; the least must be 1000000 (a millisecond) or more, \
             and the most not below it"
            )),
            Fault::Starve { one_in: 0 | 1, .. } => Err(
                "its 'one_in' must be 2 or more: a process that gets every tick is not starved"
                    .to_owned(),
            ),
            Fault::Flaky {
                lose_ppb,
                delay_ppb,
                ..
            } if u64::from(lose_ppb) + u64::from(delay_ppb) > WHOLE => Err(format!(
                "{lose_ppb} and {delay_ppb} parts per billion of the frames are lost and late, \
                 together more than {WHOLE}"
            )),
            _ => Ok(()),
        }
    }

    /// Other systems have frames of their own; of ours, all are known.
    fn can_meddle(&self, kind: &str, count: u32) -> Result<(), String> {
        if count == 0 {
            return Err("it strikes 0 frames; give 1 or more".to_owned());
        }
        let mut known: Vec<&str> = FRAMES.to_vec();
        known.extend(FRAMES_OF_STORAGES);
        match self.system == Deposed.name() && !known.contains(&kind) {
            true => Err(unknown("kind of frame", kind, &known)),
            false => Ok(()),
        }
    }

    fn can_fail_disks(&self, fault: &Fault) -> Result<(), String> {
        let name = fault.name();
        let client = |target: &Target| {
            use Target::{Minority, Replica, Servers, Storage, Store};
            !matches!(target, Store | Storage | Servers | Minority | Replica(_))
        };
        if let Some(target) = fault.targets().into_iter().find(client) {
            return Err(format!(
                "{name} needs a server's disk, and its target {} has none: take the store or the \
                 storage",
                serde_json::to_string(&target).unwrap_or_default()
            ));
        }
        if self.cluster.disk.is_memory() {
            return Err(format!(
                "{name} needs a disk that can fail, and the servers keep their state in \
                 memory: set \"disk\":\"simulated\" in the cluster"
            ));
        }
        let storage_too = self.cluster.storage == StorageKind::CompareAndSwap;
        match fault {
            Fault::Restore { target, .. } if *target != Target::Store || storage_too => {
                Err(String::from(
                    "only a lease server can come back from an old copy: storage would lack \
                     writes that it had acknowledged, and no floor makes good for that",
                ))
            }
            Fault::PowerCut { operations: 0, .. } => Err(String::from(
                "a power-cut inside the 0th operation of the disk; they count from 1",
            )),
            _ => Ok(()),
        }
    }
}

fn can_run_at(rate: RatePpb) -> bool {
    (CLOCK_RATES.0..=CLOCK_RATES.1).contains(&rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{lease::LeaseConfig, workload::Workload};

    type Spoil = fn(&mut Header);

    #[test]
    fn what_a_world_cannot_run_is_refused_in_a_sentence_that_names_it() {
        let header = Header::of(&Workload::named("w"), 1, "deposed", None);
        assert_eq!(header.validate(), Ok(()));
        let rate = |rate_ppb| Injection {
            when: Trigger::At(0),
            fault: Fault::Rate {
                target: Target::Store,
                rate_ppb,
                length: 1,
            },
        };
        assert_eq!(header.can_inject(&rate(1_000_000)), Ok(()));
        assert!(header.can_inject(&rate(0)).is_err());
        let lose = |kind: &str, count| Injection {
            when: Trigger::At(0),
            fault: Fault::Lose {
                kind: kind.into(),
                from: Target::Everyone,
                to: Target::Everyone,
                count,
            },
        };
        assert_eq!(header.can_inject(&lose("renew", 1)), Ok(()));
        let misspelt = header
            .can_inject(&lose("renwe", 1))
            .expect_err("no such kind");
        assert!(misspelt.contains("did you mean 'renew'?"), "{misspelt}");
        assert!(header.can_inject(&lose("renew", 0)).is_err());
        let elsewhere = Header {
            system: "mine".into(),
            ..header.clone()
        };
        assert_eq!(elsewhere.can_inject(&lose("ping", 1)), Ok(()));
        let spoilt: [(Spoil, &str); 21] = [
            (|h| h.lease = LeaseConfig::for_ttl(3601 * SECOND), "ttl of"),
            (
                |h| {
                    let fault = Fault::Step {
                        target: Target::Client(3),
                        by: 1,
                    };
                    h.schedule.push(Injection {
                        when: Trigger::At(0),
                        fault,
                    });
                },
                "client 3 is its target, and the last of 3 is 2",
            ),
            (
                |h| {
                    let fault = Fault::Starve {
                        target: Target::Store,
                        one_in: 1,
                        length: 1,
                    };
                    h.schedule.push(Injection {
                        when: Trigger::At(0),
                        fault,
                    });
                },
                "entry 0 of the header's schedule (starve) cannot be injected: its 'one_in'",
            ),
            (
                |h| {
                    let fault = Fault::Flaky {
                        a: Target::Store,
                        b: Target::Clients,
                        lose_ppb: 600_000_000,
                        delay_ppb: 400_000_001,
                        by: 1,
                        length: 1,
                    };
                    h.schedule.push(Injection {
                        when: Trigger::At(0),
                        fault,
                    });
                },
                "together more than 1000000000",
            ),
            (
                |h| {
                    h.lease = LeaseConfig {
                        ttl: 0,
                        ..h.lease.clone()
                    }
                },
                "lease timing",
            ),
            (
                |h| {
                    let fault = Fault::Step {
                        target: Target::Minority,
                        by: 1,
                    };
                    let when = Trigger::At(0);
                    h.schedule.push(Injection { when, fault });
                },
                "the storage has none",
            ),
            (
                |h| {
                    h.cluster.storage = StorageKind::Quorum { replicas: 3 };
                    let fault = Fault::Step {
                        target: Target::Replica(3),
                        by: 1,
                    };
                    let when = Trigger::At(0);
                    h.schedule.push(Injection { when, fault });
                },
                "replica 3 is its target, and the last of 3 is 2",
            ),
            (
                |h| h.cluster.storage = StorageKind::Quorum { replicas: 4 },
                "a quorum of 4 replicas",
            ),
            (|h| h.cluster.clients = 0, "0 clients"),
            (|h| h.cluster.clients = 27, "27 clients"),
            (
                |h| {
                    h.cluster.storage = StorageKind::Effects { keys: true };
                    h.traffic.delete_one_in = 2;
                },
                "'delete_one_in'",
            ),
            (
                |h| {
                    h.cluster.storage = StorageKind::Effects { keys: false };
                    h.traffic.without_barrier = true;
                },
                "'without_barrier'",
            ),
            (|h| h.traffic.leases = 0, "0 leases"),
            (|h| h.traffic.leases = u32::MAX, "4294967295 leases"),
            (|h| h.chaos = u64::MAX, "longer than an hour"),
            (|h| h.network.min_latency = 999_999, "999999 to"),
            (|h| h.network.max_latency = 1, "to 1 ns"),
            (|h| h.clocks = [("a".into(), 0)].into(), "'a' runs at 0"),
            (
                |h| h.offsets = [("b".into(), u64::MAX)].into(),
                "'b' is more than",
            ),
            (
                |h| {
                    let (target, length) = (Target::Store, 1);
                    let fault = Fault::Rate {
                        target,
                        rate_ppb: 0,
                        length,
                    };
                    h.schedule.push(Injection {
                        when: Trigger::At(0),
                        fault,
                    });
                },
                "entry 0",
            ),
            (
                |h| {
                    let moment = Moment::done(deposed_checkers::history::F::Write);
                    let when = Trigger::On {
                        moment,
                        nth: 0,
                        plus: 0,
                    };
                    let fault = Fault::Step {
                        target: Target::Store,
                        by: 1,
                    };
                    h.schedule.push(Injection { when, fault });
                },
                "the 0th write",
            ),
        ];
        for (spoil, named) in spoilt {
            let mut header = header.clone();
            spoil(&mut header);
            let error = header.validate().expect_err(named).to_string();
            assert!(error.contains(named), "{named}: {error}");
        }
    }
}

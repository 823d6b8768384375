//! What a checker says of a history.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A checker's verdict on one history.
///
/// `Unknown` is never a pass: an exhausted budget, or a check asked for by name
/// that the history cannot feed. `NotClaimed` says that the check makes no claim
/// about this history, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rule held.
    Valid,
    /// The rule was broken; the shortest evidence.
    Violated(Evidence),
    /// The check claims nothing here, and why.
    NotClaimed(String),
    /// It could not be decided, and why.
    Unknown(String),
}

impl Verdict {
    /// True only for [`Verdict::Violated`].
    pub fn is_violated(&self) -> bool {
        matches!(self, Verdict::Violated(_))
    }

    /// The verdict of a check that was asked for by name: what it does not claim
    /// it leaves undecided, so that a check that judged nothing never passes.
    pub fn required(self) -> Verdict {
        match self {
            Verdict::NotClaimed(why) => Verdict::Unknown(why),
            verdict => verdict,
        }
    }

    /// The word that `check --json` prints: `valid`, `violated`, `not-claimed` or `unknown`.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Valid => "valid",
            Verdict::Violated(_) => "violated",
            Verdict::NotClaimed(_) => "not-claimed",
            Verdict::Unknown(_) => "unknown",
        }
    }
}

/// The shortest set of events that shows a violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// One sentence in the user's words: what happened.
    pub sentence: String,
    /// The indices of the events that show it, rising.
    pub events: Vec<u64>,
    /// The event that is wrong, one of `events`.
    pub culprit: u64,
    /// What should have happened instead of the culprit, in a few words:
    /// "refused, storage had seen 8".
    pub expected: String,
    /// Where clocks decide it, the arithmetic in sentences: what each of them had counted,
    /// against true time and against what it owed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reckoning: Vec<String>,
}

impl Evidence {
    /// The culprit is added to `events`, which are put in order.
    pub(crate) fn new(
        sentence: String,
        events: impl IntoIterator<Item = u64>,
        culprit: u64,
        expected: impl Into<String>,
    ) -> Self {
        let mut events: Vec<u64> = events.into_iter().chain([culprit]).collect();
        events.sort_unstable();
        events.dedup();
        Evidence {
            sentence,
            events,
            culprit,
            expected: expected.into(),
            reckoning: Vec::new(),
        }
    }

    /// With the arithmetic of the clocks that decide it.
    pub(crate) fn reckoned(mut self, reckoning: impl IntoIterator<Item = String>) -> Self {
        self.reckoning.extend(reckoning);
        self
    }
}

/// The checks, by the names that the command line, the histories and the documents use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The history itself is well formed.
    WellFormed,
    /// Each grant is the previous token plus one; no token is used that was not granted.
    TokenMonotonicity,
    /// Nothing lands below a token that storage has seen.
    StorageSafety,
    /// No operation of a deposed leader lands after its successor's first.
    ZombieWrite,
    /// At most one client believes at any instant.
    BeliefSafety,
    /// A new leader fences before its first read or write.
    ElectionBarrier,
    /// The store keeps its promises: no early grant, no revival, no foreign release.
    LeaseLinearizable,
    /// Each key behaves like one register: some order explains every read.
    RegisterLinearizable,
    /// A lock is held by one at a time: some order explains every acquire and release.
    MutexLinearizable,
    /// After an expiry a lease stays closed to new owners for the lock-delay.
    LockDelay,
    /// Once faults are healed, a leader writes within the bound.
    Failover,
    /// A leader that learns it is deposed stops; one that resigns stops first.
    Conduct,
}

impl Check {
    /// Every check, in the order in which verdicts are printed.
    pub const ALL: [Check; 12] = [
        Check::WellFormed,
        Check::TokenMonotonicity,
        Check::StorageSafety,
        Check::ZombieWrite,
        Check::BeliefSafety,
        Check::ElectionBarrier,
        Check::LeaseLinearizable,
        Check::RegisterLinearizable,
        Check::MutexLinearizable,
        Check::LockDelay,
        Check::Failover,
        Check::Conduct,
    ];

    /// Those that judge a history of leases, in that order: all but the one for plain
    /// locks, which no lease is.
    pub const OF_LEASES: [Check; 11] = [
        Check::WellFormed,
        Check::TokenMonotonicity,
        Check::StorageSafety,
        Check::ZombieWrite,
        Check::BeliefSafety,
        Check::ElectionBarrier,
        Check::LeaseLinearizable,
        Check::RegisterLinearizable,
        Check::LockDelay,
        Check::Failover,
        Check::Conduct,
    ];

    /// The check's name: `storage-safety`.
    pub fn name(self) -> &'static str {
        match self {
            Check::WellFormed => "well-formed",
            Check::TokenMonotonicity => "token-monotonicity",
            Check::StorageSafety => "storage-safety",
            Check::ZombieWrite => "zombie-write",
            Check::BeliefSafety => "belief-safety",
            Check::ElectionBarrier => "election-barrier",
            Check::LeaseLinearizable => "lease-linearizable",
            Check::RegisterLinearizable => "register-linearizable",
            Check::MutexLinearizable => "mutex-linearizable",
            Check::LockDelay => "lock-delay",
            Check::Failover => "failover",
            Check::Conduct => "conduct",
        }
    }
}

impl Check {
    /// Which events the check needs, in a few words.
    pub fn needs(self) -> &'static str {
        match self {
            Check::WellFormed => "any events",
            Check::TokenMonotonicity => "granted, or acquires answered with tokens",
            Check::StorageSafety => {
                "applied and fenced, or acknowledged fences and writes, with tokens"
            }
            Check::ZombieWrite => "acquires and writes, tokens or none; applied makes it exact",
            Check::BeliefSafety => {
                "lead and follow; or acquires, renewals and releases, with lease timing in the \
                 header; clock rates for the excuse"
            }
            Check::ElectionBarrier => {
                "a fence, reads and writes with tokens; or fenced and applied"
            }
            Check::LeaseLinearizable => {
                "granted, renewed, released, denied, with the store's clock; or acquires, renewals \
                 and releases, with lease timing in the header"
            }
            Check::RegisterLinearizable => "reads, writes and deletes as clients saw them",
            Check::MutexLinearizable => {
                "acquires and releases of a plain lock, in another tool's history"
            }
            Check::LockDelay => {
                "the header's lock_delay; granted, renewed, released, with the store's clock, or \
                 acquires, renewals and releases"
            }
            Check::Failover => {
                "a calm mark, lease timing and the network's latency in the header; granted \
                 events or the header's traffic, and writes; or acquires and renewals"
            }
            Check::Conduct => "client calls; lead and follow make it stricter",
        }
    }
}

/// No check of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no check is called '{0}'; the checks are {all}", all = Check::ALL.map(Check::name).join(", "))]
pub struct UnknownCheck(pub String);

impl FromStr for Check {
    type Err = UnknownCheck;

    fn from_str(name: &str) -> Result<Self, UnknownCheck> {
        let found = Check::ALL.into_iter().find(|check| check.name() == name);
        found.ok_or_else(|| UnknownCheck(name.to_owned()))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Every check's verdict on one history, in the order of [`Check::ALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts(pub Vec<(Check, Verdict)>);

impl Verdicts {
    /// The verdict of one check; `None` if it was not run.
    pub fn of(&self, check: Check) -> Option<&Verdict> {
        self.0.iter().find(|(c, _)| *c == check).map(|(_, v)| v)
    }

    /// The violated checks with their evidence.
    pub fn violated(&self) -> impl Iterator<Item = (Check, &Evidence)> {
        self.0.iter().filter_map(|(c, v)| match v {
            Verdict::Violated(e) => Some((*c, e)),
            _ => None,
        })
    }
}

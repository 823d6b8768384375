//! Planted flaws: defects that real systems had, switched on by name for one run,
//! so that no checker goes unproven. The line where the behaviour differs asks
//! [`Planted::has`]; without the crate feature `flaws` the answer is a constant
//! `false` and the defect is not compiled in.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, StorageKind};

macro_rules! flaws {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// A defect that can be planted in our own system.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Flaw {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Flaw {
            /// Every flaw, client first, then store, then storage.
            pub const ALL: &[Flaw] = &[$(Flaw::$variant),+];

            /// The name used on the command line and in a history's header.
            pub fn name(self) -> &'static str {
                match self { $(Flaw::$variant => $name),+ }
            }

            /// What goes wrong, in one line.
            pub fn story(self) -> &'static str {
                match self { $(Flaw::$variant => concat!($($doc),+).trim_ascii()),+ }
            }
        }
    };
}

flaws! {
    /// The window starts at the answer, not at the send.
    CountFromReply = "count-from-reply",
    /// A retried acquire counts from the retry, though the first try was applied.
    CountFromLastTry = "count-from-last-try",
    /// The drift bound and the safety margin are taken as zero.
    NoDriftMargin = "no-drift-margin",
    /// The client takes its lease for lost only two ttls after the last renewal.
    LostAfterTwoTtls = "lost-after-two-ttls",
    /// `is_leader()` reads a flag, not the clock.
    BeliefIsAFlag = "belief-is-a-flag",
    /// The lease is counted on the run clock, which stands still in suspend.
    ClockStopsInSuspend = "clock-stops-in-suspend",
    /// The store's absolute time of expiry is compared with the client's own wall clock.
    WallClockExpiry = "wall-clock-expiry",
    /// A renewal's answer that comes late or out of order extends the belief from now on.
    LateRenewExtends = "late-renew-extends",
    /// The leader steps down only after the blocked renewal's call has returned.
    RenewCallOutlivesLease = "renew-call-outlives-lease",
    /// The release is sent first, then the belief is dropped.
    ReleaseBeforeStepDown = "release-before-step-down",
    /// The release is sent while the last write is in flight.
    ReleaseBeforeDrain = "release-before-drain",
    /// An acquire that is answered when its own window is over is believed.
    WaiterTrustsDeadLease = "waiter-trusts-dead-lease",
    /// The leader never fences.
    NoBarrier = "no-barrier",
    /// The leader fences after its first write.
    BarrierAfterWrite = "barrier-after-write",
    /// The leader reads, then fences, then writes what follows from what it read.
    ReadsBeforeBarrier = "reads-before-barrier",
    /// The leader works under a token that storage has not seen, not under the lease's.
    BarrierWithFreshToken = "barrier-with-fresh-token",
    /// The client makes its own token, one higher than the granted one.
    SelfMadeToken = "self-made-token",
    /// Told that its token is stale, the leader retries and keeps leading.
    StaleRetry = "stale-retry",
    /// One renewal try may take the whole window.
    OneTryIsTheBudget = "one-try-is-the-budget",
    /// A candidate that lost once is out for good.
    NeverContendsAgain = "never-contends-again",
    /// A process that starts again takes up the token that it had.
    ResumeAfterRestart = "resume-after-restart",
    /// The leader cannot reach storage to fence, and works all the same.
    WorksUnfenced = "works-unfenced",
    /// The store answers, and makes it durable with the next.
    AnswersBeforeDurable = "answers-before-durable",
    /// The counter is written and never synced.
    CounterNotSynced = "counter-not-synced",
    /// The store comes back from an old copy and goes on from the copy's counter.
    RestoredWithoutFloor = "restored-without-floor",
    /// The store does not persist the counter of its tokens.
    ForgetsCounter = "forgets-counter",
    /// A returning holder gets its old token.
    SameHolderSameToken = "same-holder-same-token",
    /// A new acquire by the live holder gets the live token; a delayed release then kills it.
    SameTokenAgain = "same-token-again",
    /// A release frees the token too.
    ReleaseResetsCounter = "release-resets-counter",
    /// Tokens are drawn, and do not rise.
    RandomTokens = "random-tokens",
    /// Tokens have eight bits, and begin at 250.
    NarrowCounter = "narrow-counter",
    /// The store grants at once after a restart.
    ForgetsLease = "forgets-lease",
    /// The store frees a lease a margin before its expiry.
    GrantsEarly = "grants-early",
    /// A renewal after the expiry, or under a successor, succeeds.
    RenewsTheDead = "renews-the-dead",
    /// A renewal is checked by the holder's name, not by the token.
    RenewByName = "renew-by-name",
    /// A release is not checked at all.
    ReleasesAnything = "releases-anything",
    /// An expiry that was decided before a renewal happens after it.
    StaleExpiry = "stale-expiry",
    /// A retried acquire is a second acquire and is refused because of itself.
    AcquireTwice = "acquire-twice",
    /// A restart of the store drops the lock-delay.
    LockDelayForgotten = "lock-delay-forgotten",
    /// Leases are counted on the store's wall clock: a step of it ends them.
    WallClockStore = "wall-clock-store",
    /// Storage checks no token.
    AcceptsAnything = "accepts-anything",
    /// A fence answers ok and records nothing.
    FenceIsANoOp = "fence-is-a-no-op",
    /// Storage keeps the highest token for each key, not for all.
    TokenPerKey = "token-per-key",
    /// Storage takes the token before the highest it has seen, too.
    OffByOne = "off-by-one",
    /// Storage refuses a token equal to the highest it has seen.
    RefusesEqual = "refuses-equal",
    /// A fence is answered before it is durable.
    FenceNotDurable = "fence-not-durable",
    /// A value is durable when it is answered, its token only with the next.
    ValueBeforeToken = "value-before-token",
    /// Compare-and-swap asks the lease's owner first, then writes without comparing.
    ComparesRemoteOwner = "compares-remote-owner",
    /// A write is acknowledged by fewer than a majority of all replicas.
    MinorityAck = "minority-ack",
    /// A replica that refuses counts towards the majority.
    CountsRefusals = "counts-refusals",
    /// A new leader takes up the first state that it is shown, not a majority's newest.
    NoRecovery = "no-recovery",
    /// A read is answered by any one replica.
    ReadsOneReplica = "reads-one-replica",
    /// A write that comes again, or late, is applied again.
    AppliesTwice = "applies-twice",
    /// Storage comes back from a restart without its highest token.
    ForgetsHighest = "forgets-highest",
    /// With the last key that is deleted goes the highest token.
    CleanupDropsFence = "cleanup-drops-fence",
    /// Storage awaits something between the check of a token and the write.
    CheckThenAct = "check-then-act",
}

impl Flaw {
    /// Whether a cluster has what the defect can harm: elsewhere a run that passes with it
    /// says nothing of the checks.
    pub fn lives_in(self, cluster: &Cluster) -> bool {
        use StorageKind::{CompareAndSwap, Effects, Fenced, Quorum};
        let storage = cluster.storage;
        let own_store = storage != CompareAndSwap;
        match self {
            // A barrier is set where a grant is none, and storage can be fenced.
            Flaw::NoBarrier
            | Flaw::BarrierAfterWrite
            | Flaw::ReadsBeforeBarrier
            | Flaw::BarrierWithFreshToken
            | Flaw::WorksUnfenced => matches!(storage, Fenced | Quorum { .. }),
            Flaw::StaleRetry => !matches!(storage, Effects { .. }),
            Flaw::FenceIsANoOp | Flaw::ValueBeforeToken | Flaw::CheckThenAct => storage == Fenced,
            Flaw::FenceNotDurable => matches!(storage, Fenced | Quorum { .. }),
            // Where storage grants the leases too, it asks who the owner is before that.
            Flaw::AcceptsAnything | Flaw::TokenPerKey | Flaw::OffByOne | Flaw::ForgetsHighest => {
                storage == Fenced
            }
            Flaw::RefusesEqual | Flaw::AppliesTwice | Flaw::CleanupDropsFence => {
                matches!(storage, Fenced | CompareAndSwap)
            }
            Flaw::ComparesRemoteOwner => storage == CompareAndSwap,
            Flaw::MinorityAck | Flaw::CountsRefusals | Flaw::NoRecovery | Flaw::ReadsOneReplica => {
                matches!(storage, Quorum { .. })
            }
            Flaw::AnswersBeforeDurable => own_store,
            // Memory loses nothing that was not synced, and is never put back.
            Flaw::CounterNotSynced => !cluster.disk.is_memory(),
            Flaw::RestoredWithoutFloor => own_store && !cluster.disk.is_memory(),
            // The clients' and the lease store's are everywhere.
            _ => true,
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No flaw of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no flaw is called '{0}'")]
pub struct UnknownFlaw(pub String);

impl FromStr for Flaw {
    type Err = UnknownFlaw;

    fn from_str(name: &str) -> Result<Self, UnknownFlaw> {
        let found = Flaw::ALL.iter().find(|flaw| flaw.name() == name);
        found.copied().ok_or_else(|| UnknownFlaw(name.to_owned()))
    }
}

/// The flaw planted in this run, if any. Copied into every core and shell that
/// has a flaw to ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Planted {
    #[cfg(feature = "flaws")]
    flaw: Option<Flaw>,
}

impl Planted {
    /// The correct system.
    pub const NONE: Planted = Planted {
        #[cfg(feature = "flaws")]
        flaw: None,
    };

    /// Plants one flaw.
    #[cfg(feature = "flaws")]
    pub fn one(flaw: Flaw) -> Self {
        Self { flaw: Some(flaw) }
    }

    /// Whether this flaw is planted.
    #[inline]
    pub fn has(self, flaw: Flaw) -> bool {
        #[cfg(feature = "flaws")]
        return self.flaw == Some(flaw);
        #[cfg(not(feature = "flaws"))]
        {
            let _ = flaw;
            false
        }
    }
}

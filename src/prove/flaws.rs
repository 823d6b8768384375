//! What a search makes of each planted flaw.

use deposed_checkers::verdict::Check;

use super::{reduce::Rules, scope::Scope};
use crate::flaw::Flaw;

/// What is expected of the search with a flaw planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A counterexample to this check, of this many actions with two messages in flight.
    Counterexample(Check, usize),
    /// None, within the bounds of the flaw's search; and why.
    Equivalent(&'static str),
    /// The flaw lies outside of what is searched; and why.
    Outside(&'static str),
}

const NO_LIVENESS: &str = "it breaks no rule of safety: somebody leads later, or nobody does";
const OTHER_STORAGE: &str = "it is a flaw of another storage than the one that is searched";

/// What is expected of each flaw, by its own bounds: see [`scope`].
pub fn expected(flaw: Flaw) -> Expected {
    use Check::*;
    use Expected::*;
    match flaw {
        Flaw::ClockStopsInSuspend => {
            Outside("a client has one clock here, and none that stops in suspend")
        }
        Flaw::WallClockExpiry | Flaw::WallClockStore => Outside("there are no wall clocks here"),
        Flaw::ReleaseBeforeDrain => {
            Outside("it is the elector's shell that drains, and here no call is waited for")
        }
        Flaw::BarrierWithFreshToken => {
            Outside("a leader asks storage for nothing here but to fence and to change")
        }
        Flaw::OneTryIsTheBudget | Flaw::NeverContendsAgain | Flaw::RefusesEqual => {
            Outside(NO_LIVENESS)
        }
        Flaw::ResumeAfterRestart => Outside("clients have no disk here"),
        Flaw::RestoredWithoutFloor => Outside("no disk is put back here"),
        Flaw::NarrowCounter => {
            Outside("tokens are told by their order here, and wrap only after seven grants")
        }
        Flaw::TokenPerKey => Outside("it needs two keys"),
        Flaw::AppliesTwice => Outside("values are not read back here"),
        Flaw::ComparesRemoteOwner
        | Flaw::MinorityAck
        | Flaw::CountsRefusals
        | Flaw::NoRecovery
        | Flaw::ReadsOneReplica => Outside(OTHER_STORAGE),
        Flaw::CountFromReply => Counterexample(BeliefSafety, 9),
        Flaw::CountFromLastTry => Counterexample(BeliefSafety, 10),
        Flaw::NoDriftMargin => Counterexample(BeliefSafety, 9),
        Flaw::LostAfterTwoTtls => Counterexample(BeliefSafety, 9),
        Flaw::BeliefIsAFlag => Counterexample(BeliefSafety, 9),
        Flaw::LateRenewExtends => Counterexample(BeliefSafety, 14),
        Flaw::RenewCallOutlivesLease => Counterexample(BeliefSafety, 10),
        Flaw::ReleaseBeforeStepDown => Counterexample(Conduct, 5),
        Flaw::WaiterTrustsDeadLease => Counterexample(BeliefSafety, 9),
        Flaw::NoBarrier => Counterexample(ElectionBarrier, 4),
        Flaw::BarrierAfterWrite => Counterexample(ElectionBarrier, 4),
        Flaw::ReadsBeforeBarrier => Counterexample(ElectionBarrier, 4),
        Flaw::SelfMadeToken => Counterexample(TokenMonotonicity, 4),
        Flaw::WorksUnfenced => Counterexample(ElectionBarrier, 5),
        Flaw::AnswersBeforeDurable => Counterexample(LeaseLinearizable, 3),
        Flaw::CounterNotSynced => Counterexample(LeaseLinearizable, 3),
        Flaw::ForgetsCounter => Counterexample(TokenMonotonicity, 3),
        Flaw::SameHolderSameToken => Counterexample(TokenMonotonicity, 8),
        Flaw::SameTokenAgain => Counterexample(LeaseLinearizable, 7),
        Flaw::ReleaseResetsCounter => Counterexample(TokenMonotonicity, 7),
        Flaw::RandomTokens => Counterexample(TokenMonotonicity, 7),
        Flaw::ForgetsLease => Counterexample(LeaseLinearizable, 4),
        Flaw::GrantsEarly => Counterexample(LeaseLinearizable, 13),
        Flaw::RenewsTheDead => Counterexample(LeaseLinearizable, 8),
        Flaw::RenewByName => Counterexample(LeaseLinearizable, 10),
        Flaw::ReleasesAnything => Counterexample(LeaseLinearizable, 9),
        Flaw::StaleExpiry => Counterexample(LeaseLinearizable, 10),
        Flaw::AcquireTwice => Counterexample(LeaseLinearizable, 3),
        Flaw::LockDelayForgotten => Counterexample(LockDelay, 8),
        Flaw::AcceptsAnything => Counterexample(StorageSafety, 13),
        Flaw::FenceIsANoOp => Counterexample(StorageSafety, 6),
        Flaw::OffByOne => Counterexample(StorageSafety, 13),
        Flaw::FenceNotDurable => Counterexample(StorageSafety, 6),
        Flaw::ValueBeforeToken => Counterexample(StorageSafety, 6),
        Flaw::ForgetsHighest => Counterexample(StorageSafety, 6),
        Flaw::CleanupDropsFence => Counterexample(StorageSafety, 9),
        Flaw::CheckThenAct => Counterexample(StorageSafety, 15),
        Flaw::StaleRetry => Equivalent(
            "while clocks keep to their bound nobody believes any more who is told that its token \
             is stale",
        ),
    }
}

/// The rules that hold with a flaw planted: all, where nothing is, or nothing that they
/// rest on.
pub fn rules_for(flaw: Option<Flaw>) -> Rules {
    match flaw {
        None => Rules::ALL,
        // It changes what a client makes of a refusal, and nothing that the others rest on.
        Some(Flaw::StaleRetry) => Rules::TELLABLE,
        // They are too large to be told by their rank.
        Some(Flaw::RandomTokens) => Rules {
            names: false,
            ..Rules::FLAWED
        },
        Some(_) => Rules::FLAWED,
    }
}

/// The bounds in which a flaw is looked for: those given, and what it needs beside. One that
/// shows sooner with a shorter ttl is looked for in that, unless another than the default is
/// given.
///
/// Without the crate feature `flaws` nothing is planted.
pub fn scope(flaw: Flaw, bounds: &Scope) -> Scope {
    let mut scope = Scope {
        #[cfg(feature = "flaws")]
        planted: crate::flaw::Planted::one(flaw),
        ..bounds.clone()
    };
    match flaw {
        Flaw::NoDriftMargin if scope.drift.every().is_none() => {
            scope.drift = "1/4".parse().unwrap_or(scope.drift);
        }
        // A margin of a tenth of the ttl is a tick or more.
        Flaw::GrantsEarly => scope.ttl = scope.ttl.max(10),
        Flaw::LockDelayForgotten => scope.lock_delay = scope.lock_delay.max(1),
        Flaw::CleanupDropsFence => scope.deletes = true,
        // How long a term is plays no part in it, but that one ends while storage awaits.
        Flaw::CheckThenAct if scope.ttl == Scope::default().ttl => {
            scope.ttl = shortest_ttl(&scope);
        }
        _ => {}
    }
    scope
}

/// The shortest ttl, in ticks, of which clocks as bad as they may be leave anything.
fn shortest_ttl(scope: &Scope) -> u64 {
    let leaves = |ttl: &u64| {
        let shorter = Scope {
            ttl: *ttl,
            ..scope.clone()
        };
        shorter.validate().is_ok()
    };
    (1..scope.ttl).find(leaves).unwrap_or(scope.ttl)
}

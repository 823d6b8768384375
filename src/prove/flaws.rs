//! What a search makes of each planted flaw.

use deposed_checkers::verdict::Check;

use super::scope::Scope;
use crate::flaw::Flaw;

/// What is expected of the search with a flaw planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A counterexample to this check, of this many actions.
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
        _ => Counterexample(BeliefSafety, 0),
    }
}

/// The bounds in which a flaw is looked for: those given, and what it needs beside.
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
        _ => {}
    }
    scope
}

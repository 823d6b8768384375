//! What must hold in every state.
//!
//! The *invariants* are the rules that a checker judges histories by; a step that breaks one
//! tells which. The *inductive* ones are why they hold: each is about a single state, and is
//! kept by every step.

use std::fmt;

use deposed_checkers::verdict::Check;

use super::{catalogue::View, premise::Premise, state::State};

/// What is wrong in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// A rule that a checker judges by.
    Check(Check),
    /// An inductive one.
    Inductive(Inductive),
    /// What a rule of the search rests on: it is made anew without that.
    Premise(Premise),
}

/// Why the invariants hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inductive {
    /// Who believes holds the lease at the store under the same token, and for at least as
    /// long as it believes, should its clock be as slow as it may.
    BeliefInsideLease,
    /// Who knows its barrier to be set has a token that storage knows of, or a higher one.
    WriterFenced,
    /// The store's counter is at least the highest token granted.
    CounterCoversGrants,
    /// Storage's highest token is at least any of which it took anything.
    HighestCoversTaken,
}

impl Inductive {
    /// All of them.
    pub const ALL: [Inductive; 4] = [
        Inductive::BeliefInsideLease,
        Inductive::WriterFenced,
        Inductive::CounterCoversGrants,
        Inductive::HighestCoversTaken,
    ];
}

/// The rules that a step can break here.
pub const JUDGED: [Check; 7] = [
    Check::TokenMonotonicity,
    Check::StorageSafety,
    Check::BeliefSafety,
    Check::ElectionBarrier,
    Check::LeaseLinearizable,
    Check::LockDelay,
    Check::Conduct,
];

impl fmt::Display for Inductive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Inductive::BeliefInsideLease => "every belief lies inside its lease at the store",
            Inductive::WriterFenced => "every writing term is fenced at storage",
            Inductive::CounterCoversGrants => "the counter is at least the highest token granted",
            Inductive::HighestCoversTaken => {
                "the highest token seen is at least any that was taken"
            }
        })
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Check(check) => check.fmt(f),
            Broken::Inductive(inductive) => inductive.fmt(f),
            Broken::Premise(premise) => premise.fmt(f),
        }
    }
}

impl View<'_> {
    /// What is wrong in a state, whatever led there. Where a flaw is planted only what a
    /// checker can convict.
    pub(super) fn broken(&mut self, state: &State) -> Option<Broken> {
        let clients = self.all.scope.clients;
        let mut believers = 0;
        for &number in &state.clients[..clients] {
            believers += u32::from(self.candidate(number).1.believes);
        }
        if believers > 1 {
            return Some(Broken::Check(Check::BeliefSafety));
        }
        if let Some(premise) = self.unfounded(state) {
            return Some(Broken::Premise(premise));
        }
        if !self.all.inductive {
            return None;
        }
        self.uninductive(state).map(Broken::Inductive)
    }

    /// The premise of a rule that does not hold of a node.
    fn unfounded(&mut self, state: &State) -> Option<Premise> {
        let store = self.store(state.store).1.broken;
        let found = store.or(self.storage(state.storage).1.broken);
        let clients = &state.clients[..self.all.scope.clients];
        clients.iter().fold(found, |found, &client| {
            found.or(self.candidate(client).1.broken)
        })
    }

    fn uninductive(&mut self, state: &State) -> Option<Inductive> {
        let store = self.store(state.store).1.clone();
        let storage = &self.storage(state.storage).1;
        let (highest, seen) = (storage.highest, storage.seen);
        if store.counter < store.granted {
            return Some(Inductive::CounterCoversGrants);
        }
        if highest < seen {
            return Some(Inductive::HighestCoversTaken);
        }
        for client in 0..self.all.scope.clients {
            let about = &self.candidate(state.clients[client]).1;
            if about.fenced.is_some_and(|token| highest < token) {
                return Some(Inductive::WriterFenced);
            }
            if !about.believes {
                continue;
            }
            let inside = store.holding.is_some_and(|(process, token, left)| {
                (process.client, process.life) == (client, about.life)
                    && about.token == Some(token)
                    && about.longest.is_some_and(|longest| longest <= left)
            });
            if !inside {
                return Some(Inductive::BeliefInsideLease);
            }
        }
        None
    }
}

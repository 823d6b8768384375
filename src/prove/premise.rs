//! What the rules of a search take for granted of the cores, asked of each node that is met.
//!
//! A rule may leave a message out because "the store refuses it anyway". Whether it does is
//! not believed: each node, the first time that it is met, is handed every message that a
//! rule could leave out, and its next steps are looked at. It is asked with room between its
//! tokens (each is doubled), so that tokens which nobody remembers any more are asked about,
//! too: between two tokens one stands for all, as tokens are told by their order alone.
//!
//! Two kinds of premises carry a rule over any number of steps: that a message changes nothing
//! *here*, and that no step makes it mean something *again*. Both are asked of every node, so
//! both hold all along. Where one does not hold, the search ends and is made anew without the
//! rules that rest on it (`Rules::without`): what a proof says is so true of whatever cores
//! it was made with.

mod client;
mod storage;
mod store;

use std::fmt;

use super::reduce::Rules;

pub(super) use client::broken as client;
pub(super) use storage::broken as storage;
pub(super) use store::broken as store;

/// What a rule takes for granted of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Premise {
    /// The store refuses a renewal or a release of who is not the recorded owner, whatever
    /// its name, and is the same after it.
    RefusesOthers,
    /// The store grants a token above all that it granted, or the recorded request's own
    /// again; and nobody else is heeded after a step who was not before it.
    TokensRise,
    /// The store treats an acquire as one of anybody else, and a recorded owner as any other.
    TreatsAllAlike,
    /// Storage refuses a token below its highest, and is the same after it; and after what
    /// comes again under the highest.
    RefusesStale,
    /// Storage's highest token falls in no step, and the change under it stays made.
    HighestStays,
    /// An answer that a client does not await changes nothing, and it awaits later only what
    /// it asks for later.
    AwaitsWhatItAsked,
    /// All refusals of a client's renewal say what one by storage says, and one of its release
    /// no more than that it was answered; who sends a release has given its term up.
    RefusalsSayAlike,
}

impl fmt::Display for Premise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Premise::RefusesOthers => "the store refuses whoever is not the owner",
            Premise::TokensRise => "the store grants each token once, and higher than all before",
            Premise::TreatsAllAlike => "the store treats all who ask alike",
            Premise::RefusesStale => "storage refuses what is stale, and does nothing twice",
            Premise::HighestStays => "storage's highest token never falls",
            Premise::AwaitsWhatItAsked => "a client heeds only answers to what it asked",
            Premise::RefusalsSayAlike => "a client gives up alike however it is refused",
        })
    }
}

impl Rules {
    /// The same without those that rest on a premise, or on one of these.
    pub(super) fn without(self, premise: Premise) -> Rules {
        let rules = self.tellable();
        match premise {
            Premise::RefusesOthers
            | Premise::TokensRise
            | Premise::RefusesStale
            | Premise::HighestStays => Rules {
                settled: false,
                ..rules
            },
            Premise::TreatsAllAlike => Rules {
                graves: false,
                ..rules
            },
            Premise::AwaitsWhatItAsked => Rules {
                dead_answers: false,
                settled: false,
                ..rules
            },
            Premise::RefusalsSayAlike => rules,
        }
    }

    /// Whether anything is asked of nodes: where numbers are ranks, and so there are few.
    pub(super) fn has_premises(self) -> bool {
        self.names && (self.settled || self.graves || self.dead_answers || self.refusals)
    }
}

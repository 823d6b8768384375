//! Which states are one, and why that loses nothing.
//!
//! A search visits one state of each class. Each rule maps a state to another that can do
//! the same steps, to states that are mapped alike, and breaks the same rules (a
//! bisimulation), but for those at the end and `late_loss`, `waits` and `acts`: there the
//! other can do all that the first can, and perhaps more (a simulation). So where nothing is
//! broken with the rules, nothing is without them. What is broken where clients or the
//! network do more than they would (`Rules::tellable`) is looked for again where they do
//! not. Each rule has a test that compares both searches.
//!
//! Where a rule rests on what a core does with a message (`dead_answers`, `settled`, `graves`,
//! `refusals`, `unanswered`), each core is asked whether it does that ([`Premise`]). Of the
//! network nothing is taken for granted: it may do what it likes. What is left, and is argued
//! here alone:
//! - that a core compares names and numbers and does no more with them (`names`, `symmetry`,
//!   and what is said there);
//! - that it makes of a long tick what `waits` and `over` say;
//! - that storage reads of overtaken terms only what it words its refusals by
//!   (`overtaken_terms`);
//! - that what a leader does late, its message does that is late (`acts`);
//! - that a client which forgets that its token was called stale does what it did
//!   (`LeaseClient::forgetting_stale`, within `refusals`).
//!
//! [`Premise`]: super::Premise
//!
//! - **Time** is told from now on (`rebased` of the cores): only what is left of a ttl, a
//!   window or a wait matters, and it is never more than its longest. Ages so saturate by
//!   themselves: what is over is 0.
//! - **Copies.** Messages in flight are a set: of two equal ones, whatever the second does
//!   the first can do, since a message may be delivered and stay (it was duplicated). Nor
//!   need a message be duplicated before its copy arrives.
//! - **Late loss** (`late_loss`). A lost message is one that never arrives. It may as well
//!   stay in flight until its place is needed, so nothing is lost while there is room.
//! - **Dead answers** (`dead_answers`). An answer that its client does not await, or whose
//!   process is gone, never changes anything again (`LeaseClient::awaits`).
//! - **Settled requests** (`settled`). A renewal or a release of who is not the recorded
//!   owner changes nothing, now or later, and neither does a fence or a change below
//!   storage's highest token: tokens rise, and the highest outlives a restart. Such a request
//!   is its refusal already, or gone where nobody awaits that.
//! - **Waits** (`waits`). A tick is long: within it any number of moments pass, and a client
//!   that may send again a moment later may send again. So a wait before an acquire or a
//!   release is over at once. And of a release's three tries one does, since it may arrive
//!   at any time and again and again (`LeaseClient::waited`). This adds the states of clients
//!   that wait for less.
//! - **Overtaken terms** (`overtaken_terms`). What storage remembers of terms below its
//!   highest token words its refusals, and the model's leader does not read the wording
//!   (`FencedStorage::forgetting_overtaken_terms`).
//! - **Acts** (`acts`). A leader that has looked acts at once. What it sends may be under way
//!   for as long as it likes, so whatever a late act brings about a late message does. It
//!   takes a place in flight meanwhile, which one that has only looked does not: what needs
//!   that place is found with one message more.
//! - **Graves** (`graves`). Of processes that are gone it does not matter whose they were:
//!   only which of their messages is the recorded owner's.
//! - **Names** (`names`). Tokens, request ids, renewal ids and lives of a client are compared
//!   and never reckoned with, but that a new one is one more than the highest. So they are
//!   told by their rank among those that are somewhere (`renamed` of the cores). Of a
//!   renewal by a process that is gone nobody reads the id.
//! - **What is over** (`over`). A client whose belief is over, or whose unproven term is, and
//!   one that has just been told that it has none, are one: each call that could tell ends
//!   such a term first (`LeaseClient::after_a_look`).
//! - **Symmetry** (`symmetry`). Clients differ by name alone: of all ways to name them the
//!   first in a fixed order stands for all.
//!
//! By these the world does more than it would:
//!
//! - **Refusals** (`refusals`). A refusal makes a client give up what it asks for or has, and
//!   tells it nothing. So a client may be refused at any time, whether anybody refuses or not,
//!   and no refusal need be in flight. That a token was called stale is forgotten with it: a
//!   client gives the term up that it was told of, and what it is granted later is higher.
//! - **Unanswered requests** (`unanswered`). A request takes no place in flight if it may come
//!   at any time in any case. A client that asks for the lease may ask again whenever it
//!   likes, so its acquire may arrive as long as it asks. What nobody waits for is nobody's:
//!   - an acquire of a process that is gone, or by a request that its client has given up. The
//!     token that it brings nobody is told. One may arrive at any time. (Of the recorded
//!     owner it would be refused or granted again: here it is granted whenever another's is.)
//!   - a renewal or a release under the recorded owner's token, once that owner is gone or has
//!     given its term up, may arrive at any time; and such a renewal while the owner leads: it
//!     makes its lease longer, and its belief no longer.
//!   - a recorded owner that is gone, or has given up: no request tells it from another such.
//!   - a fence whose answer nobody awaits, or a change. It stays in flight.

mod exchange;
mod rename;
mod settle;

use super::{
    candidate::Candidate,
    catalogue::View,
    message::{GRAVE, Process},
    state::State,
    storage_node::StorageNode,
};

/// Which rules are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Nothing is lost while there is room.
    pub late_loss: bool,
    /// Answers that nobody awaits are gone.
    pub dead_answers: bool,
    /// Requests whose answer is settled are answered.
    pub settled: bool,
    /// What a client waits for before it sends again is over.
    pub waits: bool,
    /// Storage forgets terms below its highest token.
    pub overtaken_terms: bool,
    /// A leader that has looked acts at once.
    pub acts: bool,
    /// Processes that are gone are nobody's. Needs `names`.
    pub graves: bool,
    /// Tokens and ids are told by their rank.
    pub names: bool,
    /// A term that is over is none.
    pub over: bool,
    /// A client may be refused at any time.
    pub refusals: bool,
    /// What is asked of the store takes no place in flight where nobody waits for the
    /// answer, or it can be sent again. Needs `waits`, `dead_answers`, `settled`, `graves` and
    /// `refusals`.
    pub unanswered: bool,
    /// Clients are exchangeable.
    pub symmetry: bool,
}

/// Whose everything is that nobody waits for.
pub(super) const NOBODYS: Process = Process {
    client: GRAVE,
    life: 0,
};
/// Who asks for the lease and waits for no answer.
pub(super) const SOMEBODY: Process = Process {
    client: GRAVE,
    life: 1,
};

impl Rules {
    /// All of them.
    pub const ALL: Rules = Rules {
        late_loss: true,
        dead_answers: true,
        settled: true,
        waits: true,
        overtaken_terms: true,
        acts: true,
        graves: true,
        names: true,
        over: true,
        refusals: true,
        unanswered: true,
        symmetry: true,
    };

    /// None of them: every number is what the cores say.
    pub const NONE: Rules = Rules {
        late_loss: false,
        dead_answers: false,
        settled: false,
        waits: false,
        overtaken_terms: false,
        acts: false,
        graves: false,
        names: false,
        over: false,
        refusals: false,
        unanswered: false,
        symmetry: false,
    };

    /// Those under which each node does only what it would.
    pub const TELLABLE: Rules = Rules::ALL.tellable();

    /// Those that rest on no premise which a planted flaw breaks, so that a search with a flaw
    /// is made once.
    pub const FLAWED: Rules = Rules {
        settled: false,
        graves: false,
        ..Rules::TELLABLE
    };

    /// The same without those by which clients and the network do more than they would:
    /// whatever breaks a rule then has a story.
    pub const fn tellable(self) -> Rules {
        Rules {
            refusals: false,
            unanswered: false,
            ..self
        }
    }
}

impl Rules {
    /// The client that stands for this one.
    pub(super) fn mapped(self, client: Candidate) -> Candidate {
        let mut node = match self.waits {
            true => client.waited(),
            false => client,
        };
        if self.over {
            node = node.after_a_look();
        }
        if self.refusals {
            node.core = node.core.forgetting_stale();
        }
        node
    }

    /// The storage that stands for this one.
    pub(super) fn mapped_storage(self, storage: StorageNode) -> StorageNode {
        match self.overtaken_terms {
            true => storage.forgetting_overtaken_terms(),
            false => storage,
        }
    }
}

impl View<'_> {
    /// The state that stands for this one's class.
    pub(super) fn representative(&mut self, mut state: State) -> State {
        let rules = self.all.rules;
        if rules.settled {
            self.settle(&mut state);
        }
        if rules.dead_answers {
            self.drop_dead_answers(&mut state);
        }
        if rules.unanswered {
            self.drop_unanswered(&mut state);
        }
        if rules.names {
            self.rename(&mut state);
        }
        if rules.symmetry {
            self.exchange(&mut state);
        }
        state
    }
}

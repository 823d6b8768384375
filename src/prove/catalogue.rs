//! Every node that was met, once, under a number; and every step of one, taken once.
//!
//! A world has few different stores, storages and clients, and very many combinations of
//! them. So a state holds numbers, and a step of the real core is taken the first time that
//! it comes up and looked up from then on. Each thread remembers for itself; what is shared
//! is which number stands for which node, and numbers differ from run to run: nothing that
//! is told may depend on their order.

mod about;
mod nodes;
mod shelf;

use std::sync::{Arc, PoisonError, RwLock};

use deposed_checkers::{history::Token, verdict::Check};

use crate::flaw::Planted;

pub(super) use about::{AboutCandidate, AboutStorage, AboutStore};
pub(super) use shelf::Table;

use super::{
    candidate::{Candidate, CandidateStep},
    message::{Message, Process},
    reduce::Rules,
    scope::Scope,
    storage_node::{StorageNode, StorageStep},
    store_node::{StoreNode, StoreStep},
};
use shelf::{Copy, Shelf};

pub use nodes::Nodes;

/// What all threads share.
pub struct Catalogue {
    pub(super) scope: Scope,
    pub(super) rules: Rules,
    /// Whether the inductive properties are asked for.
    pub(super) inductive: bool,
    stores: RwLock<Shelf<StoreNode>>,
    storages: RwLock<Shelf<StorageNode>>,
    candidates: RwLock<Shelf<Candidate>>,
}

impl Catalogue {
    /// An empty one. With a planted flaw, only what a checker can convict is looked for.
    pub fn new(scope: Scope, rules: Rules) -> Self {
        Self {
            inductive: scope.planted == Planted::NONE,
            scope,
            rules,
            stores: RwLock::default(),
            storages: RwLock::default(),
            candidates: RwLock::default(),
        }
    }

    /// How much memory the nodes take, in bytes: estimated from above.
    pub(super) fn bytes(&self) -> u64 {
        let [stores, storages, candidates] = self.sizes();
        let bytes = stores * (size_of::<StoreNode>() + AROUND_A_NODE)
            + storages * (size_of::<StorageNode>() + AROUND_A_NODE)
            + candidates * (size_of::<Candidate>() + AROUND_A_NODE);
        bytes as u64
    }

    /// How many different stores, storages and clients were met.
    pub fn sizes(&self) -> [usize; 3] {
        fn size<T>(shelf: &RwLock<Shelf<T>>) -> usize {
            let shelf = shelf.read().unwrap_or_else(PoisonError::into_inner);
            shelf.size()
        }
        [
            size(&self.stores),
            size(&self.storages),
            size(&self.candidates),
        ]
    }
}

/// What a node has outside of itself at most, in bytes: a record in a tree, some names and
/// renewals, its counts and its places in the shelf.
const AROUND_A_NODE: usize = 1_024;

/// What a step comes to: the node after it, what it sends, and what it breaks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub to: u32,
    pub sends: Option<Message>,
    pub breaks: Option<Check>,
}

/// How a store is told by other names: tokens as bits, and whom it names.
pub(super) type StoreNames = (u64, [Option<(Process, u64)>; 2]);
/// How a client is: tokens, life, requests and attempts.
pub(super) type CandidateNames = (u64, u64, u64, u64);

/// One thread's view of the catalogue.
pub struct View<'a> {
    pub(super) all: &'a Catalogue,
    stores: Copy<StoreNode, AboutStore>,
    storages: Copy<StorageNode, AboutStorage>,
    candidates: Copy<Candidate, AboutCandidate>,
    store_steps: Table<(u32, StoreStep), Came>,
    storage_steps: Table<(u32, StorageStep), Came>,
    candidate_steps: Table<(u32, usize, CandidateStep), Came>,
    awaited: Table<(u32, Message), bool>,
    settled: Table<(u32, Message), Option<Message>>,
    stores_renamed: Table<(u32, StoreNames), u32>,
    storages_renamed: Table<(u32, u64), u32>,
    candidates_renamed: Table<(u32, CandidateNames), u32>,
}

impl View<'_> {
    /// How much memory its tables take, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let tables = self.store_steps.allocation_size()
            + self.storage_steps.allocation_size()
            + self.candidate_steps.allocation_size()
            + self.awaited.allocation_size()
            + self.settled.allocation_size()
            + self.stores_renamed.allocation_size()
            + self.storages_renamed.allocation_size()
            + self.candidates_renamed.allocation_size();
        let copies = self.stores.bytes() + self.storages.bytes() + self.candidates.bytes();
        (tables + copies) as u64
    }
}

impl<'a> View<'a> {
    /// Of an empty memory.
    pub fn new(all: &'a Catalogue) -> Self {
        Self {
            all,
            stores: Copy::default(),
            storages: Copy::default(),
            candidates: Copy::default(),
            store_steps: Table::default(),
            storage_steps: Table::default(),
            candidate_steps: Table::default(),
            awaited: Table::default(),
            settled: Table::default(),
            stores_renamed: Table::default(),
            storages_renamed: Table::default(),
            candidates_renamed: Table::default(),
        }
    }

    pub(super) fn number_store(&mut self, node: StoreNode) -> u32 {
        let about = |node: &StoreNode| self.all.about_store(node);
        self.stores.number(&self.all.stores, node, about)
    }

    pub(super) fn number_storage(&mut self, node: StorageNode) -> u32 {
        let node = self.all.rules.mapped_storage(node);
        let about = |node: &StorageNode| self.all.about_storage(node);
        self.storages.number(&self.all.storages, node, about)
    }

    pub(super) fn number_candidate(&mut self, node: Candidate) -> u32 {
        let node = self.all.rules.mapped(node);
        let about = |node: &Candidate| self.all.about_candidate(node);
        self.candidates.number(&self.all.candidates, node, about)
    }

    pub(super) fn store(&mut self, number: u32) -> &(Arc<StoreNode>, AboutStore) {
        let about = |node: &StoreNode| self.all.about_store(node);
        self.stores.catch_up(&self.all.stores, number, about);
        self.stores.get(number)
    }

    pub(super) fn storage(&mut self, number: u32) -> &(Arc<StorageNode>, AboutStorage) {
        let about = |node: &StorageNode| self.all.about_storage(node);
        self.storages.catch_up(&self.all.storages, number, about);
        self.storages.get(number)
    }

    pub(super) fn candidate(&mut self, number: u32) -> &(Arc<Candidate>, AboutCandidate) {
        let about = |node: &Candidate| self.all.about_candidate(node);
        self.candidates
            .catch_up(&self.all.candidates, number, about);
        self.candidates.get(number)
    }

    pub(super) fn step_store(&mut self, number: u32, step: StoreStep) -> Came {
        if let Some(came) = self.store_steps.get(&(number, step)) {
            return *came;
        }
        let node = self.store(number).0.clone();
        let (next, says) = node.step(&self.all.scope, step);
        let came = Came {
            to: self.number_store(next),
            sends: says.answer,
            breaks: says.breaks,
        };
        self.store_steps.insert((number, step), came);
        came
    }

    pub(super) fn step_storage(&mut self, number: u32, step: StorageStep) -> Came {
        if let Some(came) = self.storage_steps.get(&(number, step)) {
            return *came;
        }
        let node = self.storage(number).0.clone();
        let (next, says) = node.step(&self.all.scope, step);
        let came = Came {
            to: self.number_storage(next),
            sends: says.answer,
            breaks: says.breaks,
        };
        self.storage_steps.insert((number, step), came);
        came
    }

    /// `None` if the step cannot be taken.
    pub(super) fn step_candidate(
        &mut self,
        number: u32,
        client: usize,
        step: CandidateStep,
    ) -> Option<Came> {
        if let Some(came) = self.candidate_steps.get(&(number, client, step)) {
            return (came.to != u32::MAX).then_some(*came);
        }
        let node = self.candidate(number).0.clone();
        let mut came = Came {
            to: u32::MAX,
            sends: None,
            breaks: None,
        };
        if node.may(&self.all.scope, step) {
            let (next, says) = node.step(&self.all.scope, client, step);
            came = Came {
                to: self.number_candidate(next),
                sends: says.sent,
                breaks: says.breaks,
            };
        }
        self.candidate_steps.insert((number, client, step), came);
        (came.to != u32::MAX).then_some(came)
    }

    /// Whether a client's process awaits a message: see [`Candidate::awaits`].
    pub(super) fn awaits(&mut self, number: u32, message: Message) -> bool {
        if self.candidate(number).1.life != message.process().life {
            return false;
        }
        if let Some(awaited) = self.awaited.get(&(number, message)) {
            return *awaited;
        }
        let awaited = self.candidate(number).0.awaits(message);
        self.awaited.insert((number, message), awaited);
        awaited
    }

    /// The store's answer to a request that can change nothing any more.
    pub(super) fn settled(&mut self, number: u32, message: Message) -> Option<Message> {
        if let Some(answer) = self.settled.get(&(number, message)) {
            return *answer;
        }
        let node = self.store(number).0.clone();
        let answer = node.settled(&self.all.scope, message);
        self.settled.insert((number, message), answer);
        answer
    }

    pub(super) fn rename_store(
        &mut self,
        number: u32,
        names: StoreNames,
        token: impl Fn(Token) -> Token,
    ) -> u32 {
        if let Some(to) = self.stores_renamed.get(&(number, names)) {
            return *to;
        }
        let (node, about) = self.store(number);
        let (node, before) = (node.clone(), about.asked);
        let next = node.renamed(token, |holder, request| {
            let who = Some((Process::of(holder), request));
            let renamed = before.iter().position(|asked| *asked == who);
            let renamed = renamed.and_then(|at| names.1[at]);
            let (process, request) = renamed.expect("it was noted");
            (process.holder(), request)
        });
        let to = self.number_store(next);
        self.stores_renamed.insert((number, names), to);
        to
    }

    pub(super) fn rename_storage(
        &mut self,
        number: u32,
        tokens: u64,
        token: impl Fn(Token) -> Token,
    ) -> u32 {
        if let Some(to) = self.storages_renamed.get(&(number, tokens)) {
            return *to;
        }
        let next = self.storage(number).0.renamed(token);
        let to = self.number_storage(next);
        self.storages_renamed.insert((number, tokens), to);
        to
    }

    pub(super) fn rename_candidate(
        &mut self,
        number: u32,
        names: CandidateNames,
        token: impl Fn(Token) -> Token,
        request: impl Fn(u64) -> u64,
        attempt: impl Fn(u64) -> u64,
    ) -> u32 {
        if let Some(to) = self.candidates_renamed.get(&(number, names)) {
            return *to;
        }
        let node = self.candidate(number).0.clone();
        let next = node.renamed(token, request, attempt, names.1);
        let to = self.number_candidate(next);
        self.candidates_renamed.insert((number, names), to);
        to
    }
}

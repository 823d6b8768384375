//! Every node that was met, once, under a number; and every step of one, taken once.
//!
//! A world has few different stores, storages and clients, and very many combinations of
//! them. So a state holds numbers, and a step of the real core is taken the first time that
//! it comes up and looked up from then on. Each thread remembers for itself; what is shared
//! is which number stands for which node, and numbers differ from run to run: nothing that
//! is told may depend on their order.

mod nodes;

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, PoisonError, RwLock},
};

use deposed_checkers::{history::Token, verdict::Check};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use xxhash_rust::xxh3::Xxh3;

use crate::{flaw::Planted, lease::Reply};

use super::{
    candidate::{Candidate, CandidateStep},
    message::{Message, Process},
    reduce::Rules,
    scope::Scope,
    storage_node::{StorageNode, StorageStep},
    store_node::{StoreNode, StoreStep, lease},
};

pub use nodes::Nodes;

/// A table that nobody walks through: its order is nobody's business.
pub(super) type Table<K, V> = HashMap<K, V, FxBuildHasher>;

/// Nodes under numbers, shared by all threads.
struct Shelf<T> {
    numbers: Table<Arc<T>, u32>,
    nodes: Vec<Arc<T>>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self {
            numbers: Table::default(),
            nodes: Vec::new(),
        }
    }
}

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
            shelf.nodes.len()
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

/// One thread's copy of a shelf, with what it works out of each node.
struct Copy<T, About> {
    nodes: Vec<(Arc<T>, About)>,
}

impl<T: Hash + Eq, About> Copy<T, About> {
    fn number(&mut self, shelf: &RwLock<Shelf<T>>, node: T, about: impl Fn(&T) -> About) -> u32 {
        let number = {
            let mut shelf = shelf.write().unwrap_or_else(PoisonError::into_inner);
            match shelf.numbers.get(&node) {
                Some(number) => *number,
                None => {
                    let number = u32::try_from(shelf.nodes.len()).expect("fewer nodes than 2^32");
                    let node = Arc::new(node);
                    shelf.numbers.insert(node.clone(), number);
                    shelf.nodes.push(node);
                    number
                }
            }
        };
        self.catch_up(shelf, number, about);
        number
    }

    /// Others may have numbered nodes since.
    fn catch_up(&mut self, shelf: &RwLock<Shelf<T>>, number: u32, about: impl Fn(&T) -> About) {
        if (number as usize) < self.nodes.len() {
            return;
        }
        let shelf = shelf.read().unwrap_or_else(PoisonError::into_inner);
        let new = shelf.nodes[self.nodes.len()..].iter();
        self.nodes
            .extend(new.map(|node| (node.clone(), about(node))));
    }
}

/// What a search asks of a store again and again.
#[derive(Clone, Debug)]
pub(super) struct AboutStore {
    /// Of what it holds, by content: the same in every run.
    pub hash: u64,
    /// The tokens in it, as bits.
    pub tokens: u64,
    /// The processes in it, and their requests.
    pub asked: [Option<(Process, u64)>; 2],
    pub granted: Token,
    /// The highest token on record.
    pub counter: Token,
    /// Who holds the lease, under which token, and for how long yet.
    pub holding: Option<(Process, Token, u64)>,
}

/// What a search asks of storage again and again.
#[derive(Clone, Debug)]
pub(super) struct AboutStorage {
    pub tokens: u64,
    pub highest: Token,
    pub seen: Token,
    /// Whether the change under the highest token was applied.
    pub changed: bool,
}

/// What a search asks of a client again and again.
#[derive(Clone, Debug)]
pub(super) struct AboutCandidate {
    pub hash: u64,
    pub tokens: u64,
    pub requests: u64,
    /// Whether its last acquire is still asked.
    pub asks: bool,
    pub attempts: u64,
    pub life: u64,
    pub believes: bool,
    pub token: Option<Token>,
    /// For how many ticks of the store's clock it may believe yet; `None`: without end.
    pub longest: Option<u64>,
    /// The token whose barrier it knows to be set.
    pub fenced: Option<Token>,
    /// Whether it remembers anything that it may forget.
    pub forgets: bool,
}

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
    forgotten: Table<(u32, u64, Token), u32>,
    stores_renamed: Table<(u32, StoreNames), u32>,
    storages_renamed: Table<(u32, u64), u32>,
    candidates_renamed: Table<(u32, CandidateNames), u32>,
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = Xxh3::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A bit each. What is beyond them is not renamed: see [`Rules::names`].
fn bit(number: u64) -> u64 {
    1u64.checked_shl(u32::try_from(number).unwrap_or(u32::MAX))
        .unwrap_or(0)
}

fn about_store(node: &StoreNode) -> AboutStore {
    let mut tokens = 0;
    let mut asked = [None; 2];
    let mut note = |holder: &_, request| {
        let who = Some((Process::of(holder), request));
        let place = asked
            .iter_mut()
            .find(|place| place.is_none() || **place == who);
        *place.expect("a store and its disk name two at most") = who;
        (Clone::clone(holder), request)
    };
    node.renamed(
        |token| {
            tokens |= bit(token);
            token
        },
        &mut note,
    );
    let holding = node.core.holding(0, &lease());
    AboutStore {
        hash: hash_of(node),
        tokens: tokens & !1,
        asked,
        granted: node.granted,
        counter: node
            .core
            .record(&lease())
            .map_or(0, |record| record.counter),
        holding: holding.map(|held| (Process::of(held.holder), held.token, held.expiry)),
    }
}

fn about_storage(node: &StorageNode) -> AboutStorage {
    let mut tokens = 0;
    node.renamed(|token| {
        tokens |= bit(token);
        token
    });
    AboutStorage {
        tokens: tokens & !1,
        highest: node.highest(),
        seen: node.seen,
        changed: node.changed(),
    }
}

fn asks(node: &Candidate, requests: u64) -> bool {
    let request = u64::from(requests.trailing_zeros());
    let granted = Reply::Granted { request, token: 0 };
    node.core.awaits(&granted)
}

fn about_candidate(scope: &Scope, node: &Candidate) -> AboutCandidate {
    let (mut tokens, mut requests, mut attempts) = (0, 0, 0);
    node.renamed(
        |token| {
            tokens |= bit(token);
            token
        },
        |request| {
            requests |= bit(request);
            request
        },
        |attempt| {
            attempts |= bit(attempt);
            attempt
        },
        node.life,
    );
    let endless = node
        .core
        .belief()
        .is_some_and(|belief| belief.until.is_none());
    let longest = (!endless).then(|| scope.drift.longest(node.core.remaining(0), node.since_skip));
    AboutCandidate {
        hash: hash_of(node),
        tokens: tokens & !1,
        asks: asks(node, requests),
        requests,
        attempts,
        life: node.life,
        believes: node.core.is_leader(0),
        token: node.core.token(),
        longest,
        fenced: node.work.filter(|work| work.fenced).map(|work| work.token),
        forgets: node.core.forgetting(|_| false, Token::MAX) != node.core,
    }
}

impl View<'_> {
    /// How much memory its tables take, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let tables = self.store_steps.allocation_size()
            + self.storage_steps.allocation_size()
            + self.candidate_steps.allocation_size()
            + self.awaited.allocation_size()
            + self.settled.allocation_size()
            + self.forgotten.allocation_size()
            + self.stores_renamed.allocation_size()
            + self.storages_renamed.allocation_size()
            + self.candidates_renamed.allocation_size();
        let copies = size_of_val(self.stores.nodes.as_slice())
            + size_of_val(self.storages.nodes.as_slice())
            + size_of_val(self.candidates.nodes.as_slice());
        (tables + copies) as u64
    }
}

impl<'a> View<'a> {
    /// Of an empty memory.
    pub fn new(all: &'a Catalogue) -> Self {
        Self {
            all,
            stores: Copy { nodes: Vec::new() },
            storages: Copy { nodes: Vec::new() },
            candidates: Copy { nodes: Vec::new() },
            store_steps: Table::default(),
            storage_steps: Table::default(),
            candidate_steps: Table::default(),
            awaited: Table::default(),
            settled: Table::default(),
            forgotten: Table::default(),
            stores_renamed: Table::default(),
            storages_renamed: Table::default(),
            candidates_renamed: Table::default(),
        }
    }

    pub(super) fn number_store(&mut self, node: StoreNode) -> u32 {
        self.stores.number(&self.all.stores, node, about_store)
    }

    pub(super) fn number_storage(&mut self, node: StorageNode) -> u32 {
        let node = match self.all.rules.overtaken_terms {
            true => node.forgetting_overtaken_terms(),
            false => node,
        };
        self.storages
            .number(&self.all.storages, node, about_storage)
    }

    pub(super) fn number_candidate(&mut self, node: Candidate) -> u32 {
        let mut node = match self.all.rules.waits {
            true => node.waited(),
            false => node,
        };
        if self.all.rules.over {
            node = node.after_a_look();
        }
        if self.all.rules.refusals {
            node.core = node.core.forgetting_stale();
        }
        if self.all.rules.eager {
            node.core = node.core.eager();
        }
        let about = |node: &Candidate| about_candidate(&self.all.scope, node);
        self.candidates.number(&self.all.candidates, node, about)
    }

    pub(super) fn store(&mut self, number: u32) -> &(Arc<StoreNode>, AboutStore) {
        self.stores.catch_up(&self.all.stores, number, about_store);
        &self.stores.nodes[number as usize]
    }

    pub(super) fn storage(&mut self, number: u32) -> &(Arc<StorageNode>, AboutStorage) {
        self.storages
            .catch_up(&self.all.storages, number, about_storage);
        &self.storages.nodes[number as usize]
    }

    pub(super) fn candidate(&mut self, number: u32) -> &(Arc<Candidate>, AboutCandidate) {
        let about = |node: &Candidate| about_candidate(&self.all.scope, node);
        self.candidates
            .catch_up(&self.all.candidates, number, about);
        &self.candidates.nodes[number as usize]
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

    /// A client without what it remembers of renewals other than these, and of stale tokens
    /// below the least that it may be granted.
    pub(super) fn forgetting(&mut self, number: u32, answerable: u64, least: Token) -> u32 {
        let key = (number, answerable, least);
        if let Some(to) = self.forgotten.get(&key) {
            return *to;
        }
        let mut node = Candidate::clone(&self.candidate(number).0);
        let answerable = |attempt| answerable & bit(attempt) != 0;
        node.core = match self.all.rules.eager {
            true => node.core.forgetting_renewals(answerable),
            false => node.core.forgetting(answerable, least),
        };
        let to = self.number_candidate(node);
        self.forgotten.insert(key, to);
        to
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

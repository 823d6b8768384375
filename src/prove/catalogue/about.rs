//! What a search asks of a node again and again, worked out once.

use std::hash::{Hash, Hasher};

use deposed_checkers::history::Token;
use xxhash_rust::xxh3::Xxh3;

use super::Catalogue;
use crate::{
    lease::Reply,
    prove::{
        candidate::Candidate,
        message::Process,
        premise::{self, Premise},
        storage_node::StorageNode,
        store_node::{StoreNode, lease},
    },
};

/// What a search asks of a store again and again.
#[derive(Clone, Debug)]
pub(in crate::prove) struct AboutStore {
    /// The premise of the rules that does not hold of it.
    pub broken: Option<Premise>,
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
pub(in crate::prove) struct AboutStorage {
    /// The premise of the rules that does not hold of it.
    pub broken: Option<Premise>,
    pub tokens: u64,
    pub highest: Token,
    pub seen: Token,
    /// Whether the change under the highest token was applied.
    pub changed: bool,
}

/// What a search asks of a client again and again.
#[derive(Clone, Debug)]
pub(in crate::prove) struct AboutCandidate {
    /// The premise of the rules that does not hold of it.
    pub broken: Option<Premise>,
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

fn asks(node: &Candidate, requests: u64) -> bool {
    let request = u64::from(requests.trailing_zeros());
    let granted = Reply::Granted { request, token: 0 };
    node.core.awaits(&granted)
}

impl Catalogue {
    /// What is asked of a node where the rules have premises.
    fn asked(&self, broken: impl FnOnce() -> Option<Premise>) -> Option<Premise> {
        self.rules.has_premises().then(broken).flatten()
    }

    pub(super) fn about_store(&self, node: &StoreNode) -> AboutStore {
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
            broken: self.asked(|| premise::store(node, &self.scope, self.rules)),
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

    pub(super) fn about_storage(&self, node: &StorageNode) -> AboutStorage {
        let mut tokens = 0;
        node.renamed(|token| {
            tokens |= bit(token);
            token
        });
        AboutStorage {
            broken: self.asked(|| premise::storage(node, &self.scope, self.rules)),
            tokens: tokens & !1,
            highest: node.highest(),
            seen: node.seen,
            changed: node.changed(),
        }
    }

    pub(super) fn about_candidate(&self, node: &Candidate) -> AboutCandidate {
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
        let longest = (!endless).then(|| {
            self.scope
                .drift
                .longest(node.core.remaining(0), node.since_skip)
        });
        AboutCandidate {
            broken: self.asked(|| premise::client(node, &self.scope, self.rules)),
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
        }
    }
}

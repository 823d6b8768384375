//! Nodes under numbers: the shelf that all threads share, and each thread's copy.

use std::{
    hash::Hash,
    sync::{Arc, PoisonError, RwLock},
};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A table that nobody walks through: its order is nobody's business.
pub(in crate::prove) type Table<K, V> = HashMap<K, V, FxBuildHasher>;

/// Nodes under numbers, shared by all threads.
pub(super) struct Shelf<T> {
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

impl<T> Shelf<T> {
    /// How many nodes it holds.
    pub(super) fn size(&self) -> usize {
        self.nodes.len()
    }
}

impl<T: Hash + Eq> Shelf<T> {
    /// The number that a node stands under.
    pub(super) fn find(&self, node: &T) -> Option<u32> {
        self.numbers.get(node).copied()
    }
}

/// One thread's copy of a shelf, with what it works out of each node.
pub(super) struct Copy<T, About> {
    nodes: Vec<(Arc<T>, About)>,
}

impl<T: Hash + Eq, About> Copy<T, About> {
    pub(super) fn number(
        &mut self,
        shelf: &RwLock<Shelf<T>>,
        node: T,
        about: impl Fn(&T) -> About,
    ) -> u32 {
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
    pub(super) fn catch_up(
        &mut self,
        shelf: &RwLock<Shelf<T>>,
        number: u32,
        about: impl Fn(&T) -> About,
    ) {
        if (number as usize) < self.nodes.len() {
            return;
        }
        let shelf = shelf.read().unwrap_or_else(PoisonError::into_inner);
        let new = shelf.nodes[self.nodes.len()..].iter();
        self.nodes
            .extend(new.map(|node| (node.clone(), about(node))));
    }

    /// A node that it has caught up with.
    pub(super) fn get(&self, number: u32) -> &(Arc<T>, About) {
        &self.nodes[number as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.nodes.as_slice())
    }
}

impl<T, About> Default for Copy<T, About> {
    fn default() -> Self {
        Self { nodes: Vec::new() }
    }
}

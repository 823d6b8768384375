//! A state by its nodes instead of their numbers, for a search that keeps no catalogue.

use std::{hash::Hash, sync::PoisonError};

use super::{
    super::{
        candidate::Candidate,
        message::Message,
        scope::{MOST_CLIENTS, MOST_IN_FLIGHT},
        state::{NOBODY, State},
        storage_node::StorageNode,
        store_node::StoreNode,
    },
    RwLock, Shelf, View,
};

/// Where everything is: the nodes themselves, and what is in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nodes {
    store: StoreNode,
    storage: StorageNode,
    clients: Vec<Candidate>,
    flight: Vec<Message>,
}

/// # Panics
/// If the node was never met.
fn number<T: Hash + Eq>(shelf: &RwLock<Shelf<T>>, node: &T) -> u32 {
    let shelf = shelf.read().unwrap_or_else(PoisonError::into_inner);
    shelf.find(node).expect("a node that was met")
}

impl View<'_> {
    /// The nodes of a state.
    pub fn nodes(&mut self, state: &State) -> Nodes {
        let clients = &state.clients[..self.all.scope.clients];
        Nodes {
            store: StoreNode::clone(&self.store(state.store).0),
            storage: StorageNode::clone(&self.storage(state.storage).0),
            clients: clients
                .iter()
                .map(|&number| Candidate::clone(&self.candidate(number).0))
                .collect(),
            flight: state.in_flight().collect(),
        }
    }

    /// The state of these nodes.
    ///
    /// # Panics
    /// If they are of another catalogue.
    pub fn state_of(&self, nodes: &Nodes) -> State {
        let mut state = State {
            store: number(&self.all.stores, &nodes.store),
            storage: number(&self.all.storages, &nodes.storage),
            clients: [NOBODY; MOST_CLIENTS],
            flight: [Message::NONE; MOST_IN_FLIGHT],
        };
        for (place, client) in state.clients.iter_mut().zip(&nodes.clients) {
            *place = number(&self.all.candidates, client);
        }
        for (place, message) in state.flight.iter_mut().zip(&nodes.flight) {
            *place = *message;
        }
        state
    }
}

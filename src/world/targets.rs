//! Whom a symbolic target means just now, and what histories call them.

use deposed_checkers::history::{Name, Nanos};
use rand::RngExt;
use serde_json::{Value, json};

use super::{World, links::Link};
use crate::{cluster::Role, fault::Target};

impl World {
    /// Those of them that are up.
    pub(super) fn resolve_running(&mut self, target: Target) -> Vec<usize> {
        let resolved = self.resolve(target);
        resolved
            .into_iter()
            .filter(|&node| self.actors[node].up())
            .collect()
    }

    /// The places of the nodes that a target means just now.
    pub(super) fn resolve(&mut self, target: Target) -> Vec<usize> {
        let leaders = self.watch.leaders.clone();
        let clients = self.playing(Role::Client);
        match target {
            Target::Leader => self.one_of(&leaders),
            Target::Follower => {
                let followers: Vec<usize> = clients
                    .into_iter()
                    .filter(|node| !leaders.contains(node))
                    .collect();
                self.one_of(&followers)
            }
            Target::AnyClient => self.one_of(&clients),
            Target::Client(nth) => clients.get(usize::from(nth)).copied().into_iter().collect(),
            Target::Clients => clients,
            Target::Store => self.playing(Role::Store),
            // Where the lease server keeps the data, it is the storage.
            Target::Storage => match self.playing(Role::Storage) {
                none if none.is_empty() => self.playing(Role::Store),
                storages => storages,
            },
            Target::Replica(nth) => {
                let replicas = self.playing(Role::Storage);
                replicas
                    .get(usize::from(nth))
                    .copied()
                    .into_iter()
                    .collect()
            }
            Target::Minority => {
                let mut replicas = self.playing(Role::Storage);
                while replicas.len() > self.playing(Role::Storage).len().saturating_sub(1) / 2 {
                    replicas.remove(self.injector.rng.random_range(0..replicas.len()));
                }
                replicas
            }
            Target::Everyone => (0..self.actors.len()).collect(),
        }
    }

    /// The places of the nodes in a role.
    pub(super) fn playing(&self, role: Role) -> Vec<usize> {
        (0..self.actors.len())
            .filter(|&node| self.actors[node].role == role)
            .collect()
    }

    fn one_of(&mut self, nodes: &[usize]) -> Vec<usize> {
        match nodes {
            [] => Vec::new(),
            nodes => vec![nodes[self.injector.rng.random_range(0..nodes.len())]],
        }
    }

    /// What is recorded of a fault that strikes one node.
    pub(super) fn value(&self, target: Target, node: usize, length: Nanos) -> Value {
        json!({"target": target, "node": self.actors[node].name, "for": length})
    }

    pub(super) fn names(&self, parties: &[&[usize]]) -> Vec<Name> {
        parties
            .concat()
            .into_iter()
            .map(|node| self.actors[node].name.clone())
            .collect()
    }

    /// The nodes at either end of links.
    pub(super) fn ends(&self, links: &[Link]) -> Vec<Name> {
        let mut nodes: Vec<usize> = links.iter().flat_map(|&(a, b)| [a, b]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        self.names(&[&nodes])
    }

    pub(super) fn all_names(&self) -> Vec<Name> {
        self.actors.iter().map(|actor| actor.name.clone()).collect()
    }
}

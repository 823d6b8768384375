//! The nodes of a run, and the role that each plays.

use deposed_checkers::history::Name;
use serde::{Deserialize, Serialize};

/// The nodes of a run: one lease server, the storage, and the clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// How many clients, 1 to 26: `a`, `b`, `c` …
    pub clients: u8,
    /// What the leaders write to.
    #[serde(default, skip_serializing_if = "StorageKind::is_fenced")]
    pub storage: StorageKind,
    /// What the servers keep their durable state on.
    #[serde(default, skip_serializing_if = "DiskKind::is_memory")]
    pub disk: DiskKind,
}

/// What the servers keep their durable state on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskKind {
    /// Memory that survives every crash and never fails.
    #[default]
    Memory,
    /// A database file on a simulated disk, which loses what was not synced when the
    /// power goes, and can fail.
    Simulated,
}

impl DiskKind {
    /// Whether it is the one that headers leave out.
    pub fn is_memory(&self) -> bool {
        *self == DiskKind::Memory
    }
}

/// What the leaders write to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    /// One node that remembers the highest token it has seen.
    #[default]
    Fenced,
    /// The lease server itself, which knows whose lease it is: data and lease in one
    /// state machine.
    CompareAndSwap,
    /// A majority of so many fenced replicas.
    Quorum {
        /// How many, 3 to 7, and odd.
        replicas: u8,
    },
    /// One node that takes whatever comes, as a mail relay does: it knows no token.
    Effects {
        /// Whether it drops what carries an idempotency key that it has seen.
        keys: bool,
    },
}

impl StorageKind {
    /// Whether it is the one that headers leave out.
    pub fn is_fenced(&self) -> bool {
        *self == StorageKind::Fenced
    }
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Grants leases.
    Store,
    /// Keeps what leaders write, or a replica of it.
    Storage,
    /// A candidate.
    Client,
}

impl Cluster {
    /// The lease server's name.
    pub const STORE: &'static str = "store";
    /// The storage server's name, where there is one.
    pub const STORAGE: &'static str = "storage";

    /// So many clients, one lease server, one fenced storage server.
    pub fn of(clients: u8) -> Self {
        Self {
            clients,
            storage: StorageKind::Fenced,
            disk: DiskKind::Memory,
        }
    }

    /// The same with servers on simulated disks.
    pub fn on_disks(self) -> Self {
        let disk = DiskKind::Simulated;
        Self { disk, ..self }
    }

    /// The same with other storage.
    pub fn with_storage(self, storage: StorageKind) -> Self {
        Self { storage, ..self }
    }

    /// The clients' names.
    pub fn client_names(&self) -> Vec<Name> {
        let letters = (b'a'..=b'z').take(usize::from(self.clients));
        letters
            .map(|letter| Name::from(char::from(letter).to_string()))
            .collect()
    }

    /// The names of the nodes that hold what leaders write: `storage`; or `storage-1`,
    /// `storage-2` …; or the lease server.
    pub fn storage_names(&self) -> Vec<Name> {
        match self.storage {
            StorageKind::Fenced | StorageKind::Effects { .. } => vec![Self::STORAGE.into()],
            StorageKind::CompareAndSwap => vec![Self::STORE.into()],
            StorageKind::Quorum { replicas } => (1..=replicas)
                .map(|nth| Name::from(format!("{}-{nth}", Self::STORAGE)))
                .collect(),
        }
    }

    /// Every node, by name, with its role: store, storage, clients.
    pub fn nodes(&self) -> Vec<(Name, Role)> {
        let store = [(Self::STORE.into(), Role::Store)];
        let storages = self.storage_names().into_iter();
        let storages = storages.filter(|name| name != Self::STORE);
        let clients = self.client_names().into_iter();
        store
            .into_iter()
            .chain(storages.map(|name| (name, Role::Storage)))
            .chain(clients.map(|name| (name, Role::Client)))
            .collect()
    }

    /// Every node's name: store, storage, clients.
    pub fn node_names(&self) -> Vec<Name> {
        self.nodes().into_iter().map(|(name, _)| name).collect()
    }
}

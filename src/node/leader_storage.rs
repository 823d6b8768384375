//! A leader's way to its storage, whatever kind of storage that is.

use deposed_checkers::history::{Failure, Name, Nanos, Token};

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    quorum_client::QuorumClient,
    storage_client::{NoAnswer, StorageClient, outcome},
};
use crate::{
    cluster::StorageKind,
    flaw::{Flaw, Planted},
};

/// The storage of one lease, as its leader sees it: a barrier, reads and changes, each
/// with an outcome that says what surely happened and what did not.
pub struct LeaderStorage {
    kind: StorageKind,
    way: Way,
    planted: Planted,
}

enum Way {
    OneNode(Box<StorageClient>),
    Quorum(Box<QuorumClient>),
}

impl LeaderStorage {
    /// For storage of this kind on these nodes. No connection is made before the first
    /// call.
    ///
    /// # Panics
    /// If there is no node.
    pub fn new(
        node: Node,
        kind: StorageKind,
        storages: &[Name],
        try_timeout: Nanos,
        planted: Planted,
    ) -> Self {
        let way = match kind {
            StorageKind::Quorum { .. } => {
                let client = QuorumClient::new(node, storages, try_timeout, planted);
                Way::Quorum(Box::new(client))
            }
            StorageKind::Fenced | StorageKind::CompareAndSwap | StorageKind::Effects { .. } => {
                let peer = storages.first().expect("some node holds the data");
                let client = StorageClient::new(node, peer.clone(), try_timeout);
                Way::OneNode(Box::new(client))
            }
        };
        Self { kind, way, planted }
    }

    /// Makes the next calls on new connections, as a new leader should: see
    /// [`StorageClient::reconnect`].
    pub fn reconnect(&mut self) {
        match &mut self.way {
            Way::OneNode(client) => client.reconnect(),
            Way::Quorum(client) => client.reconnect(),
        }
    }

    /// Whether a new leader must fence before it reads or writes. Not where storage
    /// itself grants the leases: there the grant is the barrier.
    pub fn needs_barrier(&self) -> bool {
        self.kind != StorageKind::CompareAndSwap
    }

    /// The barrier.
    ///
    /// # Errors
    /// No answer.
    pub async fn fence(&mut self, lease: &Name, token: Token) -> Result<Outcome<()>, NoAnswer> {
        match &mut self.way {
            Way::OneNode(client) => {
                let lease = lease.clone();
                let request = |id| Request::Fence { id, lease, token };
                done(client.call(request).await?)
            }
            Way::Quorum(client) => client.fence(lease, token).await,
        }
    }

    /// What a key holds. Only a quorum asks under which token, and may refuse.
    ///
    /// # Errors
    /// No answer.
    pub async fn read(
        &mut self,
        lease: &Name,
        key: &Name,
    ) -> Result<Outcome<Option<Name>>, NoAnswer> {
        match &mut self.way {
            Way::OneNode(client) => {
                let (lease, key) = (lease.clone(), key.clone());
                let request = |id| Request::Read { id, lease, key };
                match client.call(request).await? {
                    Reply::ReadReply { answer, .. } => Ok(answer),
                    _ => Err(unexpected()),
                }
            }
            Way::Quorum(client) => client.read(lease, key).await,
        }
    }

    /// Writes a key or, without a value, deletes it.
    ///
    /// # Errors
    /// No answer.
    pub async fn change(
        &mut self,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
        value: Option<Name>,
    ) -> Result<Outcome<()>, NoAnswer> {
        let client = match &mut self.way {
            Way::OneNode(client) => client,
            Way::Quorum(client) => return client.change(lease, seq, key, value).await,
        };
        let (lease, key) = (lease.clone(), key.clone());
        if self.planted.has(Flaw::ComparesRemoteOwner) {
            let lease = lease.clone();
            let request = |id| Request::Fence { id, lease, token };
            match done(client.call(request).await?)? {
                Outcome::Ok(()) => {}
                refused => return Ok(refused),
            }
        }
        let request = |id| match value {
            Some(value) => Request::Write {
                id,
                lease,
                token,
                seq,
                key,
                value,
            },
            None => Request::Delete {
                id,
                lease,
                token,
                seq,
                key,
            },
        };
        done(client.call(request).await?)
    }
}

fn done(reply: Reply) -> Result<Outcome<()>, NoAnswer> {
    outcome(reply).ok_or_else(unexpected)
}

fn unexpected() -> NoAnswer {
    NoAnswer::Unknown(Failure::new("unexpected-reply"))
}

//! The lease server that keeps the data too: a [`CompareAndSwapStorage`] behind a
//! network, on a durable disk.
//!
//! It serves what the lease server and the storage server serve, one request at a
//! time, and commits a lease with its data as one record.

use std::{collections::BTreeMap, convert::Infallible, io};

use deposed_checkers::history::{Name, Nanos, Observation, StoreRecovered, Token};

use super::{
    Node,
    frame::{Reply, Request},
    lease_server::{LEASE, LeaseServer, Leases, found, make_durable},
    server::{ServerError, Service, serve},
    storage_server::{Storage, StorageServer, came_back, own_records},
};
use crate::{
    disk::{Batch, all_json, put_json},
    flaw::Planted,
    lease::{LeaseStore, StoreLimits},
    net::LocalFuture,
    storage::{Applied, CompareAndSwapRecord, CompareAndSwapStorage, Refusal},
};

/// Runs the server of this node until it cannot go on.
///
/// # Errors
/// Always, at its end: the disk may not be gone on from, or the listener broke.
pub async fn run(
    node: Node,
    limits: StoreLimits,
    planted: Planted,
) -> Result<Infallible, ServerError> {
    let recover = async |first| recover(&node, &limits, planted, first).await;
    serve(node.clone(), recover).await
}

/// Takes up what the disk holds, and records both sides of it, as the lease server
/// and the storage server do.
async fn recover(
    node: &Node,
    limits: &StoreLimits,
    planted: Planted,
    first: bool,
) -> io::Result<CompareAndSwapServer> {
    let records: BTreeMap<Name, CompareAndSwapRecord> = all_json(&own_records(node).await?, LEASE)?;
    let clock = node.now();
    let storage = if first && records.is_empty() {
        CompareAndSwapStorage::new(limits.clone(), planted)
    } else {
        let leases = records.iter();
        let leases = leases.map(|(lease, record)| (lease.clone(), record.lease.clone()));
        let leases = found(&leases.collect(), false);
        node.observe(Observation::StoreRecovered(StoreRecovered {
            leases,
            clock,
        }));
        let storage = CompareAndSwapStorage::recover(limits.clone(), planted, records, clock);
        came_back(node, storage.highest());
        storage
    };
    Ok(CompareAndSwapServer {
        node: node.clone(),
        storage: DurableStorage { storage, planted },
        planted,
    })
}

struct CompareAndSwapServer {
    node: Node,
    storage: DurableStorage,
    planted: Planted,
}

/// The storage, and how it is made durable.
struct DurableStorage {
    storage: CompareAndSwapStorage,
    planted: Planted,
}

impl Service for CompareAndSwapServer {
    fn answer(&mut self, request: Request) -> LocalFuture<'_, io::Result<Option<Reply>>> {
        Box::pin(async move {
            let (node, planted) = (self.node.clone(), self.planted);
            match request {
                Request::Acquire { .. } | Request::Renew { .. } | Request::Release { .. } => {
                    let store = &mut self.storage;
                    let mut server = LeaseServer {
                        node,
                        store,
                        planted,
                    };
                    server.answer(request).await
                }
                _ => {
                    let storage = &mut self.storage;
                    let mut server = StorageServer {
                        node,
                        storage,
                        planted,
                    };
                    server.answer(request).await
                }
            }
        })
    }
}

impl DurableStorage {
    /// One record a lease, the lease and its data together.
    async fn commit(&self, node: &Node, lease: &Name) -> io::Result<()> {
        let Some(record) = self.storage.record(lease) else {
            return Ok(());
        };
        let mut batch = Batch::new();
        put_json(&mut batch, format!("{LEASE}{lease}"), &record)?;
        make_durable(node, self.planted, batch).await
    }
}

impl Leases for &mut DurableStorage {
    fn leases(&mut self) -> &mut LeaseStore {
        self.storage.leases_mut()
    }

    async fn commit(&mut self, node: &Node, lease: &Name) -> io::Result<()> {
        DurableStorage::commit(self, node, lease).await
    }
}

impl Storage for &mut DurableStorage {
    fn change(
        &mut self,
        now: Nanos,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
        value: Option<&Name>,
    ) -> Result<Applied, Refusal> {
        let storage = &mut self.storage;
        match value {
            Some(value) => storage.write(now, lease, token, seq, key, value.clone()),
            None => storage.delete(now, lease, token, seq, key),
        }
    }

    fn fence(&mut self, now: Nanos, lease: &Name, token: Token) -> Result<(), Refusal> {
        self.storage.fence(now, lease, token)
    }

    fn read(&self, lease: &Name, key: &Name) -> Option<&Name> {
        self.storage.read(lease, key)
    }

    async fn commit(&mut self, node: &Node, lease: &Name) -> io::Result<()> {
        DurableStorage::commit(self, node, lease).await
    }
}

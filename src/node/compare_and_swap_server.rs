//! The lease server that keeps the data too: a [`CompareAndSwapStorage`] behind a
//! network, on a durable disk.
//!
//! It serves what the lease server and the storage server serve, one request at a
//! time, and commits a lease with its data as one record.

use std::{collections::BTreeMap, convert::Infallible, io};

use deposed_checkers::history::{
    Name, Nanos, Observation, StorageRecovered, StoreRecovered, Token,
};

use super::{
    Node,
    frame::{Reply, Request},
    lease_server::{LEASE, LeaseServer, Leases, found},
    server::{ServerError, Service, serve},
    storage_server::{Storage, StorageServer, own_records},
};
use crate::{
    disk::{all_json, commit_json},
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
        let highest = storage.highest();
        let highest = highest.map(|(lease, token)| (lease.clone(), token));
        let highest = highest.collect();
        node.observe(Observation::StorageRecovered(StorageRecovered { highest }));
        storage
    };
    Ok(CompareAndSwapServer {
        node: node.clone(),
        storage,
        planted,
    })
}

struct CompareAndSwapServer {
    node: Node,
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

/// One record a lease, the lease and its data together.
async fn commit(storage: &CompareAndSwapStorage, node: &Node, lease: &Name) -> io::Result<()> {
    match storage.record(lease) {
        Some(record) => commit_json(node.disk(), &format!("{LEASE}{lease}"), &record).await,
        None => Ok(()),
    }
}

impl Leases for &mut CompareAndSwapStorage {
    fn leases(&mut self) -> &mut LeaseStore {
        self.leases_mut()
    }

    async fn commit(&mut self, node: &Node, lease: &Name) -> io::Result<()> {
        commit(self, node, lease).await
    }
}

impl Storage for &mut CompareAndSwapStorage {
    fn change(
        &mut self,
        now: Nanos,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
        value: Option<&Name>,
    ) -> Result<Applied, Refusal> {
        match value {
            Some(value) => self.write(now, lease, token, seq, key, value.clone()),
            None => self.delete(now, lease, token, seq, key),
        }
    }

    fn fence(&mut self, now: Nanos, lease: &Name, token: Token) -> Result<(), Refusal> {
        CompareAndSwapStorage::fence(self, now, lease, token)
    }

    fn read(&self, lease: &Name, key: &Name) -> Option<&Name> {
        CompareAndSwapStorage::read(self, lease, key)
    }

    async fn commit(&mut self, node: &Node, lease: &Name) -> io::Result<()> {
        commit(self, node, lease).await
    }
}

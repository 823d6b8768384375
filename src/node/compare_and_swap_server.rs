//! The lease server that keeps the data too: a [`CompareAndSwapStorage`] behind a
//! network, on a durable disk.
//!
//! It serves what the lease server and the storage server serve, one request at a
//! time, and commits a lease with its data as one record.

use std::{collections::BTreeMap, io};

use deposed_checkers::history::{Name, Nanos, Observation, StorageRecovered, Token};
use serde::Serialize;

use super::{
    Node,
    frame::{Reply, Request},
    lease_server::{LeaseServer, Leases, observe_recovered},
    server::{Service, serve},
    storage_server::{Storage, StorageServer},
};
use crate::{
    disk::records_json,
    flaw::Planted,
    lease::{LeaseStore, StoreLimits},
    net::LocalFuture,
    storage::{Applied, CompareAndSwapRecord, CompareAndSwapStorage, Refusal},
};

/// Runs the server of this node until it cannot go on.
pub async fn run(node: Node, limits: StoreLimits, planted: Planted) {
    match recover(&node, limits, planted).await {
        Ok(storage) => serve(node.clone(), CompareAndSwapServer { node, storage }).await,
        Err(error) => tracing::error!(target: "deposed", "the store does not start: {error}"),
    }
}

/// Takes up what the disk holds, and records both sides of it, as the lease server
/// and the storage server do.
async fn recover(
    node: &Node,
    limits: StoreLimits,
    planted: Planted,
) -> io::Result<CompareAndSwapStorage> {
    let records = records_json::<CompareAndSwapRecord>(node.disk()).await?;
    if records.is_empty() && node.boots() == 1 {
        return Ok(CompareAndSwapStorage::new(limits, planted));
    }
    let clock = node.now();
    let leases = records.iter().map(|(lease, record)| (lease, &record.lease));
    observe_recovered(node, clock, leases);
    let records: BTreeMap<Name, CompareAndSwapRecord> = records
        .into_iter()
        .map(|(lease, record)| (Name::from(lease), record))
        .collect();
    let storage = CompareAndSwapStorage::recover(limits, planted, records, clock);
    let highest = storage
        .highest()
        .map(|(lease, token)| (lease.clone(), token))
        .collect();
    node.observe(Observation::StorageRecovered(StorageRecovered { highest }));
    Ok(storage)
}

struct CompareAndSwapServer {
    node: Node,
    storage: CompareAndSwapStorage,
}

impl Service for CompareAndSwapServer {
    fn answer(&mut self, request: Request) -> LocalFuture<'_, io::Result<Option<Reply>>> {
        Box::pin(async move {
            let (node, storage) = (self.node.clone(), &mut self.storage);
            match request {
                Request::Acquire { .. } | Request::Renew { .. } | Request::Release { .. } => {
                    let store = storage;
                    LeaseServer { node, store }.answer(request).await
                }
                _ => StorageServer { node, storage }.answer(request).await,
            }
        })
    }
}

impl Leases for &mut CompareAndSwapStorage {
    fn leases(&mut self) -> &mut LeaseStore {
        self.leases_mut()
    }

    fn record(&self, lease: &Name) -> Option<impl Serialize> {
        CompareAndSwapStorage::record(self, lease)
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

    fn record(&self, lease: &Name) -> Option<impl Serialize> {
        CompareAndSwapStorage::record(self, lease)
    }
}

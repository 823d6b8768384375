//! The storage server: a [`FencedStorage`] behind a network, on a durable disk.

use std::{collections::BTreeMap, io};

use deposed_checkers::history::{
    Applied, F, Failure, Fenced, Name, Nanos, Observation, Refused, StorageRecovered, Token,
};
use serde::Serialize;
use serde_json::Value;

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    server::{Service, serve},
};
use crate::{
    disk::{commit_json, records_json},
    flaw::Planted,
    net::LocalFuture,
    storage::{self, Certainty, FencedStorage, Refusal, ShardRecord},
};

/// Runs the storage server of this node until it cannot go on.
pub async fn run(node: Node, planted: Planted) {
    match recover(&node, planted).await {
        Ok(storage) => serve(node.clone(), StorageServer { node, storage }).await,
        Err(error) => tracing::error!(target: "deposed", "the storage does not start: {error}"),
    }
}

/// Takes up what the disk holds, and records it. A first boot that finds nothing
/// records nothing; a later one that finds nothing says so, since it forgot.
async fn recover(node: &Node, planted: Planted) -> io::Result<FencedStorage> {
    let records = records_json::<ShardRecord>(node.disk()).await?;
    if records.is_empty() && node.boots() == 1 {
        return Ok(FencedStorage::new(planted));
    }
    let records: BTreeMap<Name, ShardRecord> = records
        .into_iter()
        .map(|(lease, record)| (Name::from(lease), record))
        .collect();
    let storage = FencedStorage::recover(planted, records);
    let highest = storage
        .highest()
        .map(|(lease, token)| (lease.clone(), token))
        .collect();
    node.observe(Observation::StorageRecovered(StorageRecovered { highest }));
    Ok(storage)
}

/// Whatever takes fenced writes, at a reading of its node's clock, and what must be
/// durable before it is answered.
pub(super) trait Storage {
    /// Writes a key or, without a value, deletes it.
    fn change(
        &mut self,
        now: Nanos,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
        value: Option<&Name>,
    ) -> Result<storage::Applied, Refusal>;
    /// The barrier.
    fn fence(&mut self, now: Nanos, lease: &Name, token: Token) -> Result<(), Refusal>;
    /// What a key holds.
    fn read(&self, lease: &Name, key: &Name) -> Option<&Name>;
    /// The lease's durable record, all of it.
    fn record(&self, lease: &Name) -> Option<impl Serialize>;
}

impl Storage for FencedStorage {
    fn change(
        &mut self,
        _now: Nanos,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
        value: Option<&Name>,
    ) -> Result<storage::Applied, Refusal> {
        match value {
            Some(value) => self.write(lease, token, seq, key, value.clone()),
            None => self.delete(lease, token, seq, key),
        }
    }

    fn fence(&mut self, _now: Nanos, lease: &Name, token: Token) -> Result<(), Refusal> {
        FencedStorage::fence(self, lease, token)
    }

    fn read(&self, lease: &Name, key: &Name) -> Option<&Name> {
        FencedStorage::read(self, lease, key)
    }

    fn record(&self, lease: &Name) -> Option<impl Serialize> {
        FencedStorage::record(self, lease)
    }
}

/// Answers what is asked of storage.
pub(super) struct StorageServer<S> {
    pub(super) node: Node,
    pub(super) storage: S,
}

/// A write or a delete, as it is recorded.
struct Change {
    f: F,
    lease: Name,
    token: Token,
    seq: u64,
    key: Name,
    value: Option<Name>,
}

impl<S: Storage> Service for StorageServer<S> {
    fn answer(&mut self, request: Request) -> LocalFuture<'_, io::Result<Option<Reply>>> {
        Box::pin(async move {
            Ok(Some(match request {
                Request::Fence { id, lease, token } => Reply::FenceReply {
                    id,
                    answer: self.fence(lease, token).await?,
                },
                Request::Write {
                    id,
                    lease,
                    token,
                    seq,
                    key,
                    value,
                } => {
                    let value = Some(value);
                    let change = Change {
                        f: F::Write,
                        lease,
                        token,
                        seq,
                        key,
                        value,
                    };
                    Reply::WriteReply {
                        id,
                        answer: self.change(change).await?,
                    }
                }
                Request::Delete {
                    id,
                    lease,
                    token,
                    seq,
                    key,
                } => {
                    let change = Change {
                        f: F::Delete,
                        lease,
                        token,
                        seq,
                        key,
                        value: None,
                    };
                    Reply::DeleteReply {
                        id,
                        answer: self.change(change).await?,
                    }
                }
                Request::Read { id, lease, key } => {
                    let answer = Outcome::Ok(self.storage.read(&lease, &key).cloned());
                    Reply::ReadReply { id, answer }
                }
                _ => return Ok(None),
            }))
        })
    }
}

impl<S: Storage> StorageServer<S> {
    async fn fence(&mut self, lease: Name, token: Token) -> io::Result<Outcome<()>> {
        match self.storage.fence(self.node.now(), &lease, token) {
            Ok(()) => {
                self.commit(&lease).await?;
                self.node
                    .observe(Observation::Fenced(Fenced { lease, token }));
                Ok(Outcome::Ok(()))
            }
            Err(refusal) => Ok(self.refuse(F::Fence, lease, token, None, refusal)),
        }
    }

    async fn change(&mut self, change: Change) -> io::Result<Outcome<()>> {
        let Change {
            f,
            lease,
            token,
            seq,
            key,
            value,
        } = change;
        let now = self.node.now();
        let result = self
            .storage
            .change(now, &lease, token, seq, &key, value.as_ref());
        match result {
            Ok(applied) => {
                if applied.fresh {
                    self.commit(&lease).await?;
                    let value = value.map(|value| Value::from(value.as_str()));
                    let (token, seq) = (Some(token), Some(seq));
                    let applied = Applied {
                        f,
                        lease,
                        token,
                        seq,
                        key,
                        value,
                    };
                    self.node.observe(Observation::Applied(applied));
                }
                Ok(Outcome::Ok(()))
            }
            Err(refusal) => Ok(self.refuse(f, lease, token, Some(seq), refusal)),
        }
    }

    async fn commit(&self, lease: &Name) -> io::Result<()> {
        let Some(record) = self.storage.record(lease) else {
            return Ok(());
        };
        commit_json(self.node.disk(), lease, &record).await
    }

    fn refuse(
        &self,
        f: F,
        lease: Name,
        token: Token,
        seq: Option<u64>,
        refusal: Refusal,
    ) -> Outcome<()> {
        let refused = refused(token, &refusal);
        self.node.observe(Observation::Refused(Refused {
            f,
            lease,
            token,
            seq,
            seen: refused.seen,
        }));
        refused.answer()
    }
}

/// A refusal as it is told: the error, the highest token that storage knew of, and
/// whether an earlier copy may have been applied.
pub(super) struct RefusedWith {
    pub(super) error: Failure,
    pub(super) seen: Token,
    pub(super) perhaps_done: bool,
}

pub(super) fn refused(token: Token, refusal: &Refusal) -> RefusedWith {
    let maybe = |certainty: Certainty| certainty == Certainty::MayHaveApplied;
    let (error, seen, perhaps_done) = match *refusal {
        Refusal::StaleToken {
            presented,
            seen,
            applied_before,
        } => (
            Failure::stale_token(presented, seen),
            seen,
            maybe(applied_before),
        ),
        Refusal::NotOwner {
            granted,
            applied_before,
            ..
        } => (Failure::new(refusal.kind()), granted, maybe(applied_before)),
        Refusal::OldSeq { .. } => (Failure::new(refusal.kind()), token, true),
    };
    RefusedWith {
        error,
        seen,
        perhaps_done,
    }
}

impl RefusedWith {
    pub(super) fn answer<T>(self) -> Outcome<T> {
        Outcome::Refused {
            error: self.error,
            perhaps_done: self.perhaps_done,
            retry_after: None,
        }
    }
}

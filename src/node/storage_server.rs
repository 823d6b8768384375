//! The storage server: a [`FencedStorage`] behind a network, on a durable disk.

use std::{collections::BTreeMap, io};

use deposed_checkers::history::{
    Applied, F, Failure, Fenced, Name, Nanos, Observation, Refused, StorageRecovered, Token,
};
use serde_json::Value;

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    server::{Service, serve},
};
use crate::{
    disk::{commit_json, records_json},
    flaw::{Flaw, Planted},
    net::LocalFuture,
    storage::{Certainty, FencedStorage, Refusal, ShardRecord},
};

/// Runs the storage server of this node until it cannot go on.
pub async fn run(node: Node, planted: Planted) {
    match recover(&node, planted).await {
        Ok(storage) => {
            let server = StorageServer {
                node: node.clone(),
                planted,
                storage,
            };
            serve(node, server).await;
        }
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

struct StorageServer {
    node: Node,
    planted: Planted,
    storage: FencedStorage,
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

/// How long the planted flaw `check-then-act` awaits in between.
const BETWEEN_CHECK_AND_ACT: Nanos = 20_000_000;

impl Service for StorageServer {
    fn look_ahead(&mut self, request: &Request) -> Option<Nanos> {
        let (Request::Write {
            lease, token, seq, ..
        }
        | Request::Delete {
            lease, token, seq, ..
        }) = request
        else {
            return None;
        };
        if !self.planted.has(Flaw::CheckThenAct) {
            return None;
        }
        self.storage.check(lease, *token, *seq);
        Some(BETWEEN_CHECK_AND_ACT)
    }

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

impl StorageServer {
    async fn fence(&mut self, lease: Name, token: Token) -> io::Result<Outcome<()>> {
        match self.storage.fence(&lease, token) {
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
        let result = match &value {
            Some(value) => self.storage.write(&lease, token, seq, &key, value.clone()),
            None => self.storage.delete(&lease, token, seq, &key),
        };
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
        let (error, seen, perhaps_done) = match refusal {
            Refusal::StaleToken {
                presented,
                seen,
                applied_before,
            } => {
                let perhaps = applied_before == Certainty::MayHaveApplied;
                (Failure::stale_token(presented, seen), seen, perhaps)
            }
            Refusal::OldSeq { .. } => (Failure::new("old-seq"), token, true),
        };
        self.node.observe(Observation::Refused(Refused {
            f,
            lease,
            token,
            seq,
            seen,
        }));
        Outcome::Refused {
            error,
            perhaps_done,
            retry_after: None,
        }
    }
}

//! The storage server: a [`FencedStorage`] behind a network, on a durable disk.

use std::{collections::BTreeMap, io};

use deposed_checkers::history::{
    Applied, F, Failure, Fenced, Name, Observation, Refused, StorageRecovered, Token,
};
use serde_json::Value;

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    server::{Service, serve},
};
use crate::{
    disk::{RESTORED, all_json, commit_json},
    flaw::{Flaw, Planted},
    net::LocalFuture,
    storage::{Certainty, FencedStorage, Refusal, ShardRecord},
};

/// The record of each lease's data is called this and the lease's name.
const SHARD: &str = "shard/";

/// Runs the storage server of this node until it cannot go on.
pub async fn run(node: Node, planted: Planted) {
    serve(node.clone(), async |first| {
        recover(&node, planted, first).await
    })
    .await;
}

/// Takes up what the disk holds, and records it. A first boot that finds nothing
/// records nothing; a later one that finds nothing says so, since it forgot.
async fn recover(node: &Node, planted: Planted, first: bool) -> io::Result<StorageServer> {
    let records = node.disk().records().await?;
    if records.contains_key(RESTORED) {
        let what = "the storage's disk is an old copy: it lacks writes that were acknowledged and \
                    tokens that were seen, and no floor makes good for that; only a lease server \
                    can be restored";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let records: BTreeMap<Name, ShardRecord> = all_json(&records, SHARD)?;
    let storage = match first && records.is_empty() {
        true => FencedStorage::new(planted),
        false => {
            let storage = FencedStorage::recover(planted, records);
            let highest = storage.highest();
            let highest = highest.map(|(lease, token)| (lease.clone(), token));
            let highest = highest.collect();
            node.observe(Observation::StorageRecovered(StorageRecovered { highest }));
            storage
        }
    };
    Ok(StorageServer {
        node: node.clone(),
        storage,
        planted,
        token_to_write: BTreeMap::new(),
    })
}

struct StorageServer {
    node: Node,
    storage: FencedStorage,
    planted: Planted,
    /// Under [`Flaw::ValueBeforeToken`], what the next commit makes durable.
    token_to_write: BTreeMap<Name, ShardRecord>,
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

impl Service for StorageServer {
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
                if !self.planted.has(Flaw::FenceNotDurable) {
                    self.commit(&lease).await?;
                }
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

    /// Makes a lease's values and highest token durable together, before anybody is
    /// answered.
    async fn commit(&mut self, lease: &Name) -> io::Result<()> {
        let Some(mut record) = self.storage.record(lease) else {
            return Ok(());
        };
        if self.planted.has(Flaw::ValueBeforeToken) {
            let values = record.values.clone();
            let before = self.token_to_write.insert(lease.clone(), record);
            record = ShardRecord {
                values,
                ..before.unwrap_or_default()
            };
        }
        commit_json(self.node.disk(), &format!("{SHARD}{lease}"), &record).await
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

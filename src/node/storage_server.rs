//! The storage server: a [`FencedStorage`] behind a network, on a durable disk.

use std::{collections::BTreeMap, convert::Infallible, io};

use deposed_checkers::history::{
    Applied, F, Failure, Fenced, Name, Nanos, Observation, Refused, StorageRecovered, Token,
};
use serde_json::Value;

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    server::{ServerError, Service, serve},
};
use crate::{
    disk::{RESTORED, Records, all_json, commit_json},
    flaw::{Flaw, Planted},
    net::LocalFuture,
    storage::{self, Certainty, FencedStorage, Refusal, ShardRecord},
};

/// The record of each lease's data is called this and the lease's name.
pub(super) const SHARD: &str = "shard/";

/// Runs the storage server of this node until it cannot go on.
///
/// # Errors
/// Always, at its end: the disk may not be gone on from, or the listener broke.
pub async fn run(node: Node, planted: Planted) -> Result<Infallible, ServerError> {
    serve(node.clone(), async |first| {
        recover(&node, planted, first).await
    })
    .await
}

/// Takes up what the disk holds, and records it. A first boot that finds nothing
/// records nothing; a later one that finds nothing says so, since it forgot.
async fn recover(
    node: &Node,
    planted: Planted,
    first: bool,
) -> io::Result<StorageServer<DurableStorage>> {
    let records: BTreeMap<Name, ShardRecord> = all_json(&own_records(node).await?, SHARD)?;
    let storage = match first && records.is_empty() {
        true => FencedStorage::new(planted),
        false => {
            let storage = FencedStorage::recover(planted, records);
            came_back(node, storage.highest());
            storage
        }
    };
    let storage = DurableStorage {
        storage,
        #[cfg(feature = "flaws")]
        planted,
        #[cfg(feature = "flaws")]
        token_to_write: BTreeMap::new(),
    };
    Ok(StorageServer {
        node: node.clone(),
        storage,
        planted,
    })
}

/// Records the highest token of each lease that a node which keeps data has come back with.
pub(super) fn came_back<'a>(node: &Node, highest: impl Iterator<Item = (&'a Name, Token)>) {
    let highest = highest.map(|(lease, token)| (lease.clone(), token));
    let highest = highest.collect();
    node.observe(Observation::StorageRecovered(StorageRecovered { highest }));
}

/// What is on the disk of a node that keeps data, unless it is an old copy.
pub(super) async fn own_records(node: &Node) -> io::Result<Records> {
    let records = node.disk().records().await?;
    if records.contains_key(RESTORED) {
        let what = "the disk is an old copy: it lacks writes that were acknowledged and tokens \
                    that were seen, and no floor makes good for that; only a lease server can be \
                    restored";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(records)
}

/// Whatever takes fenced writes, at a reading of its node's clock, and makes them durable
/// before anybody is answered.
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
    /// Makes all there is to a lease durable, in one piece.
    async fn commit(&mut self, node: &Node, lease: &Name) -> io::Result<()>;
    /// Checks a change ahead of it. Only with a planted flaw.
    fn check(&mut self, _lease: &Name, _token: Token, _seq: u64) {}
}

/// Fenced storage, and what of it is not as its disk says.
struct DurableStorage {
    storage: FencedStorage,
    #[cfg(feature = "flaws")]
    planted: Planted,
    /// Under [`Flaw::ValueBeforeToken`], what the next commit makes durable.
    #[cfg(feature = "flaws")]
    token_to_write: BTreeMap<Name, ShardRecord>,
}

impl Storage for DurableStorage {
    fn change(
        &mut self,
        _now: Nanos,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
        value: Option<&Name>,
    ) -> Result<storage::Applied, Refusal> {
        let storage = &mut self.storage;
        match value {
            Some(value) => storage.write(lease, token, seq, key, value.clone()),
            None => storage.delete(lease, token, seq, key),
        }
    }

    fn fence(&mut self, _now: Nanos, lease: &Name, token: Token) -> Result<(), Refusal> {
        self.storage.fence(lease, token)
    }

    fn read(&self, lease: &Name, key: &Name) -> Option<&Name> {
        self.storage.read(lease, key)
    }

    async fn commit(&mut self, node: &Node, lease: &Name) -> io::Result<()> {
        let Some(record) = self.storage.record(lease) else {
            return Ok(());
        };
        #[cfg(feature = "flaws")]
        let record = match self.planted.has(Flaw::ValueBeforeToken) {
            true => self.value_first(lease, record),
            false => record,
        };
        commit_json(node.disk(), &format!("{SHARD}{lease}"), &record).await
    }

    fn check(&mut self, lease: &Name, token: Token, seq: u64) {
        self.storage.check(lease, token, seq);
    }
}

#[cfg(feature = "flaws")]
impl DurableStorage {
    /// The values of a record with the tokens of the one before it.
    fn value_first(&mut self, lease: &Name, record: ShardRecord) -> ShardRecord {
        let values = record.values.clone();
        let before = self.token_to_write.insert(lease.clone(), record);
        ShardRecord {
            values,
            ..before.unwrap_or_default()
        }
    }
}

/// Answers what is asked of storage.
pub(super) struct StorageServer<S> {
    pub(super) node: Node,
    pub(super) storage: S,
    pub(super) planted: Planted,
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

impl<S: Storage> Service for StorageServer<S> {
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

impl<S: Storage> StorageServer<S> {
    async fn fence(&mut self, lease: Name, token: Token) -> io::Result<Outcome<()>> {
        match self.storage.fence(self.node.now(), &lease, token) {
            Ok(()) => {
                if !self.planted.has(Flaw::FenceNotDurable) {
                    self.storage.commit(&self.node, &lease).await?;
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
        let now = self.node.now();
        let result = self
            .storage
            .change(now, &lease, token, seq, &key, value.as_ref());
        match result {
            Ok(applied) => {
                if applied.fresh {
                    self.storage.commit(&self.node, &lease).await?;
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

//! One replica: fenced, and never ahead of what some leader proposed.

use std::collections::BTreeMap;

use deposed_checkers::history::{Name, Token};
use serde::{Deserialize, Serialize};

use super::{Answer, Message, Snapshot, Version};
use crate::storage::fenced::{Refusal, ShardRecord, Value};

/// One of the replicas. Per lease it promises tokens, refuses lower ones, and stands at
/// one version of the state; it moves on to a later version only.
///
/// What [`record`](Self::record) returns must become durable before the answer that
/// changed it leaves: a promise that is forgotten lets a deposed leader back in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuorumReplica {
    shards: BTreeMap<Name, ReplicaRecord>,
}

/// All there is to one lease on one replica; the whole of it is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// Which state `shard.values` is.
    pub version: Version,
    /// The highest token promised, and the keys.
    pub shard: ShardRecord,
}

/// A message was taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Taken {
    /// What to answer, once it is durable.
    pub answer: Answer,
    /// A token was promised that is higher than all before.
    pub promised: bool,
    /// The change of an accept was applied.
    pub applied: bool,
    /// The record changed: it must become durable first.
    pub changed: bool,
}

impl QuorumReplica {
    /// A replica that has promised nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A replica that comes back with what it had made durable.
    pub fn recover(records: BTreeMap<Name, ReplicaRecord>) -> Self {
        Self { shards: records }
    }

    /// Takes a message of the leader with this token. Any message promises the token.
    /// The same message again, or an older one of the same token that comes late,
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// [`StaleToken`](Refusal::StaleToken) below the highest token promised.
    pub fn take(
        &mut self,
        lease: &Name,
        token: Token,
        message: &Message,
    ) -> Result<Taken, Refusal> {
        let ReplicaRecord { version, shard } = self.shards.entry(lease.clone()).or_default();
        let seen = shard.highest;
        if token < seen {
            return Err(Refusal::StaleToken {
                presented: token,
                seen,
                applied_before: shard.certainty(token, |term| match message {
                    Message::Prepare => term.fenced,
                    Message::Query { .. } => false,
                    Message::Accept { seq, .. } => term.last_seq.is_some_and(|last| *seq <= last),
                    Message::Adopt(state) => {
                        term.last_seq.is_some_and(|last| state.version.seq <= last)
                    }
                }),
            });
        }
        let promised = token > seen;
        shard.highest = token;
        let mut value = None;
        let moved_from = *version;
        let term = shard.term(token);
        let mut changed = promised;
        match message {
            Message::Prepare => {
                changed |= !term.fenced;
                term.fenced = true;
            }
            Message::Query { key } => value = shard.values.get(key).cloned(),
            Message::Accept {
                after,
                seq,
                key,
                value,
            } => {
                // A replica that lacks a state before it would make another state of it.
                if *version == (Version { token, seq: *after }) && seq > after {
                    *version = Version { token, seq: *seq };
                    term.last_seq = Some(*seq);
                    put(&mut shard.values, key, value.clone());
                }
            }
            Message::Adopt(state) => {
                if *version < state.version && state.version.token == token {
                    *version = state.version;
                    term.last_seq = Some(state.version.seq);
                    shard.values = state.values.clone();
                }
            }
        }
        shard.forget_old_terms();
        let moved = *version != moved_from;
        let answer = match message {
            Message::Prepare => Answer::Promised(Snapshot {
                version: *version,
                values: shard.values.clone(),
            }),
            _ => Answer::Stands {
                version: *version,
                value,
            },
        };
        Ok(Taken {
            answer,
            promised,
            applied: moved && matches!(message, Message::Accept { .. }),
            changed: changed || moved,
        })
    }

    /// What must become durable, together, before the answer that changed it leaves;
    /// `None` while the lease was never named.
    pub fn record(&self, lease: &Name) -> Option<&ReplicaRecord> {
        self.shards.get(lease)
    }

    /// The highest token promised, per lease.
    pub fn highest(&self) -> impl Iterator<Item = (&Name, Token)> {
        self.shards
            .iter()
            .map(|(lease, record)| (lease, record.shard.highest))
    }
}

/// Has a key hold a value, or nothing.
pub(super) fn put(values: &mut BTreeMap<Name, Value>, key: &Name, value: Option<Value>) {
    match value {
        Some(value) => drop(values.insert(key.clone(), value)),
        None => drop(values.remove(key)),
    }
}

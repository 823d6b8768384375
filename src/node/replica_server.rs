//! A replica of the storage: a [`QuorumReplica`] behind a network, on a durable disk.

use std::{collections::BTreeMap, convert::Infallible, io};

use deposed_checkers::history::{Applied, F, Fenced, Name, Observation, Refused, Token};

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    server::{ServerError, Service, serve},
    storage_server::{SHARD, came_back, own_records, refused},
};
use crate::{
    disk::{all_json, commit_json},
    flaw::{Flaw, Planted},
    net::LocalFuture,
    storage::{Answer, Message, QuorumReplica, ReplicaRecord},
};

/// Runs the replica of this node until it cannot go on.
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
async fn recover(node: &Node, planted: Planted, first: bool) -> io::Result<ReplicaServer> {
    let records: BTreeMap<Name, ReplicaRecord> = all_json(&own_records(node).await?, SHARD)?;
    let replica = match first && records.is_empty() {
        true => QuorumReplica::new(),
        false => {
            let replica = QuorumReplica::recover(records);
            came_back(node, replica.highest());
            replica
        }
    };
    Ok(ReplicaServer {
        node: node.clone(),
        replica,
        planted,
    })
}

struct ReplicaServer {
    node: Node,
    replica: QuorumReplica,
    planted: Planted,
}

impl Service for ReplicaServer {
    fn answer(&mut self, request: Request) -> LocalFuture<'_, io::Result<Option<Reply>>> {
        Box::pin(async move {
            Ok(Some(match request {
                Request::Prepare { id, lease, token } => Reply::PrepareReply {
                    id,
                    answer: self.take(lease, token, Message::Prepare).await?,
                },
                Request::Query {
                    id,
                    lease,
                    token,
                    key,
                } => Reply::QueryReply {
                    id,
                    answer: self.take(lease, token, Message::Query { key }).await?,
                },
                Request::Accept {
                    id,
                    lease,
                    token,
                    after,
                    seq,
                    key,
                    value,
                } => {
                    let message = Message::Accept {
                        after,
                        seq,
                        key,
                        value,
                    };
                    let answer = self.take(lease, token, message).await?;
                    Reply::AcceptReply { id, answer }
                }
                Request::Adopt {
                    id,
                    lease,
                    token,
                    state,
                } => Reply::AdoptReply {
                    id,
                    answer: self.take(lease, token, Message::Adopt(state)).await?,
                },
                _ => return Ok(None),
            }))
        })
    }
}

impl ReplicaServer {
    async fn take(
        &mut self,
        lease: Name,
        token: Token,
        message: Message,
    ) -> io::Result<Outcome<Answer>> {
        let taken = match self.replica.take(&lease, token, &message) {
            Ok(taken) => taken,
            Err(refusal) => {
                let refused = refused(token, &refusal);
                if let Some((f, seq)) = asked(&message) {
                    self.node.observe(Observation::Refused(Refused {
                        f,
                        lease,
                        token,
                        seq,
                        seen: refused.seen,
                    }));
                }
                return Ok(refused.answer());
            }
        };
        let durable = message != Message::Prepare || !self.planted.has(Flaw::FenceNotDurable);
        if taken.changed
            && durable
            && let Some(record) = self.replica.record(&lease)
        {
            commit_json(self.node.disk(), &format!("{SHARD}{lease}"), record).await?;
        }
        // A promise is the replica's part of a fence, by whatever message it came.
        if taken.promised || message == Message::Prepare {
            let lease = lease.clone();
            self.node
                .observe(Observation::Fenced(Fenced { lease, token }));
        }
        if taken.applied
            && let Message::Accept {
                seq, key, value, ..
            } = message
        {
            let f = match value {
                Some(_) => F::Write,
                None => F::Delete,
            };
            let value = value.map(|value| value.as_str().into());
            let (token, seq) = (Some(token), Some(seq));
            self.node.observe(Observation::Applied(Applied {
                f,
                lease,
                token,
                seq,
                key,
                value,
            }));
        }
        Ok(Outcome::Ok(taken.answer))
    }
}

/// The part of the leader's operation that a replica refused; a read is no business
/// of a history's `refused`.
fn asked(message: &Message) -> Option<(F, Option<u64>)> {
    match message {
        Message::Prepare | Message::Adopt(_) => Some((F::Fence, None)),
        Message::Accept { seq, value, .. } => {
            let f = if value.is_some() { F::Write } else { F::Delete };
            Some((f, Some(*seq)))
        }
        Message::Query { .. } => None,
    }
}

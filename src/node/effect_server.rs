//! The server of a resource that cannot check tokens: an [`EffectRelay`] behind a
//! network, on a durable disk.
//!
//! After a restart it records nothing: a `recovered` says which tokens were found, and it
//! knows of none.

use std::{collections::BTreeMap, convert::Infallible, io};

use deposed_checkers::history::{Applied, DUPLICATE, Dropped, F, Failure, Name, Observation};
use serde_json::Value;

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    server::{ServerError, Service, serve},
    storage_server::own_records,
};
use crate::{
    disk::{all_json, commit_json},
    net::LocalFuture,
    storage::{EffectRelay, OutboxRecord, Performed},
};

/// The record of what was done under each lease is called this and the lease's name.
const OUTBOX: &str = "outbox/";

/// Runs the resource of this node until it cannot go on; whether it goes by idempotency
/// keys.
///
/// # Errors
/// Always, at its end: the disk may not be gone on from, or the listener broke.
pub async fn run(node: Node, keys: bool) -> Result<Infallible, ServerError> {
    serve(node.clone(), async |_| recover(&node, keys).await).await
}

async fn recover(node: &Node, keys: bool) -> io::Result<EffectServer> {
    let records: BTreeMap<Name, OutboxRecord> = all_json(&own_records(node).await?, OUTBOX)?;
    Ok(EffectServer {
        node: node.clone(),
        relay: EffectRelay::recover(keys, records),
    })
}

struct EffectServer {
    node: Node,
    relay: EffectRelay,
}

impl Service for EffectServer {
    fn answer(&mut self, request: Request) -> LocalFuture<'_, io::Result<Option<Reply>>> {
        Box::pin(async move {
            Ok(Some(match request {
                Request::Effect {
                    id,
                    lease,
                    to,
                    key,
                    value,
                } => Reply::EffectReply {
                    id,
                    answer: self.perform(lease, to, key, value).await?,
                },
                Request::Read { id, lease, key } => {
                    let answer = Outcome::Ok(self.relay.last(&lease, &key).cloned());
                    Reply::ReadReply { id, answer }
                }
                _ => return Ok(None),
            }))
        })
    }
}

impl EffectServer {
    async fn perform(
        &mut self,
        lease: Name,
        to: Name,
        key: Name,
        value: Name,
    ) -> io::Result<Outcome<()>> {
        match self.relay.perform(&lease, &to, &key, value.clone()) {
            Performed::Now => {
                if let Some(record) = self.relay.record(&lease) {
                    commit_json(self.node.disk(), &format!("{OUTBOX}{lease}"), record).await?;
                }
                self.node.observe(Observation::Applied(Applied {
                    f: F::Write,
                    lease,
                    token: None,
                    seq: None,
                    key: to,
                    value: Some(Value::from(value.as_str())),
                }));
                Ok(Outcome::Ok(()))
            }
            Performed::Before => Ok(Outcome::Ok(())),
            Performed::ByAnother => {
                self.node.observe(Observation::Dropped(Dropped {
                    lease,
                    key: to,
                    value: Value::from(value.as_str()),
                }));
                Ok(Outcome::Refused {
                    error: Failure::new(DUPLICATE),
                    perhaps_done: false,
                    retry_after: None,
                })
            }
        }
    }
}

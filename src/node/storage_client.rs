//! A client's way to the storage server: one connection, one call at a time, each
//! with a time limit and an outcome that says what surely happened and what did not.

use deposed_checkers::history::{Failure, Name, Nanos};

use super::{
    Node,
    frame::{Outcome, Reply, Request},
};
use crate::net::{Connection, FrameError};

/// A connection to storage, made anew when it breaks.
pub struct StorageClient {
    node: Node,
    peer: Name,
    try_timeout: Nanos,
    connection: Option<Connection>,
    /// Calls in a row that brought no answer on the present connection.
    unanswered: u32,
    next_id: u64,
}

/// Why a call brought no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The request surely did not leave.
    NotSent(Failure),
    /// It may have arrived and may yet arrive.
    Unknown(Failure),
}

/// After this many unanswered calls the connection is taken for dead: a partition
/// that has healed leaves a stream on which nothing ever comes again.
pub const PATIENCE: u32 = 2;

impl StorageClient {
    /// For the storage node called `peer`. No connection is made before the first call.
    pub fn new(node: Node, peer: Name, try_timeout: Nanos) -> Self {
        Self {
            node,
            peer,
            try_timeout,
            connection: None,
            unanswered: 0,
            next_id: 0,
        }
    }

    /// Makes the next call on a new connection. One that lay idle may have died in a
    /// partition since healed, and [`PATIENCE`] is more than a new leader should spend
    /// on finding out.
    pub fn reconnect(&mut self) {
        self.drop_connection();
    }

    /// Sends the request that `make` builds around a fresh id, and waits for its reply.
    pub async fn call(&mut self, make: impl FnOnce(u64) -> Request) -> Result<Reply, NoAnswer> {
        self.next_id += 1;
        let request = make(self.next_id);
        let deadline = self.node.now().saturating_add(self.try_timeout);
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let connection = self.connection.insert(connection);
        let clock = self.node.clock().clone();
        let answered = tokio::select! {
            biased;
            answered = converse(connection, &request) => Some(answered),
            () = clock.sleep_until(deadline) => None,
        };
        match answered {
            Some(Ok(reply)) => {
                self.unanswered = 0;
                Ok(reply)
            }
            Some(Err(failure)) => {
                self.drop_connection();
                Err(NoAnswer::Unknown(failure))
            }
            None => {
                self.unanswered += 1;
                if self.unanswered >= PATIENCE {
                    self.drop_connection();
                }
                Err(NoAnswer::Unknown(Failure::new("timeout")))
            }
        }
    }

    async fn connect(&mut self) -> Result<Connection, NoAnswer> {
        let connecting = self.node.net().connect(&self.peer);
        match self.node.timeout(self.try_timeout, connecting).await {
            Some(Ok(connection)) => Ok(connection),
            Some(Err(_)) => Err(NoAnswer::NotSent(Failure::new("connection-refused"))),
            None => Err(NoAnswer::NotSent(Failure::new("connection-timeout"))),
        }
    }

    fn drop_connection(&mut self) {
        self.connection = None;
        self.unanswered = 0;
    }
}

/// One request and its reply; replies to earlier calls that come late are passed over.
async fn converse(connection: &mut Connection, request: &Request) -> Result<Reply, Failure> {
    let broken = |error: FrameError| Failure::new(error.kind());
    connection.send(request).await.map_err(broken)?;
    loop {
        match connection.receive::<Reply>().await.map_err(broken)? {
            Some(Reply::Error { error }) => return Err(error),
            Some(reply) if reply.id() == Some(request.id()) => return Ok(reply),
            Some(_) => {}
            None => return Err(Failure::new("connection-closed")),
        }
    }
}

/// The outcome that a reply carries, where only done or refused matters.
pub fn outcome(reply: Reply) -> Option<Outcome<()>> {
    match reply {
        Reply::FenceReply { answer, .. }
        | Reply::WriteReply { answer, .. }
        | Reply::DeleteReply { answer, .. }
        | Reply::EffectReply { answer, .. } => Some(answer),
        _ => None,
    }
}

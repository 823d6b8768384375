//! The elector's line to the lease server: connects, reconnects, and keeps reading
//! the connection before the present one, since late answers count.

use std::{collections::VecDeque, future::pending, io};

use deposed_checkers::history::{Name, Nanos};

use super::super::{
    Node,
    frame::{Reply, Request},
    storage_client::PATIENCE,
};
use crate::net::{Connection, FrameError, LocalFuture};

/// A line to one server.
pub(super) struct Line {
    node: Node,
    peer: Name,
    /// For a connection to be made, and for a frame to leave.
    connect_timeout: Nanos,
    connecting: Option<(Nanos, LocalFuture<'static, io::Result<Connection>>)>,
    present: Option<Connection>,
    previous: Option<Connection>,
    unanswered: u32,
    outbox: VecDeque<Request>,
}

/// What came over the line.
pub(super) enum Incoming {
    /// The line is up; what waited in the outbox has been sent.
    Connected,
    /// The connection was refused; these requests surely did not leave.
    Unreachable(Vec<Request>),
    /// A reply.
    Reply(Reply),
    /// A connection ended; `all` when no other is left to bring answers.
    Ended {
        /// Whether no connection is left.
        all: bool,
    },
}

impl Line {
    /// A line that connects at the first request.
    pub(super) fn new(node: Node, peer: Name, connect_timeout: Nanos) -> Self {
        Self {
            node,
            peer,
            connect_timeout,
            connecting: None,
            present: None,
            previous: None,
            unanswered: 0,
            outbox: VecDeque::new(),
        }
    }

    /// Sends a request, now or as soon as the line is up. Returns the requests that
    /// it takes the place of: they never left.
    pub(super) async fn send(&mut self, request: Request) -> Vec<Request> {
        if self.unanswered >= PATIENCE {
            self.previous = self.present.take();
            self.unanswered = 0;
        }
        let overtaken = self.outbox.drain(..).collect();
        self.outbox.push_back(request);
        if self.present.is_some() {
            self.flush().await;
        } else {
            self.connect();
        }
        overtaken
    }

    /// Begins to connect, unless an attempt is under way that is not yet too old (a
    /// crashed host never answers).
    fn connect(&mut self) {
        let now = self.node.now();
        let patience = self.connect_timeout;
        if self
            .connecting
            .as_ref()
            .is_none_or(|(since, _)| now >= since.saturating_add(patience))
        {
            self.connecting = Some((now, self.node.net().connect(&self.peer)));
        }
    }

    async fn flush(&mut self) {
        while let Some(connection) = &mut self.present
            && let Some(request) = self.outbox.front().cloned()
        {
            self.unanswered += 1;
            // A peer that does not read must not hold the elector up.
            let sending = self
                .node
                .timeout(self.connect_timeout, connection.send(&request));
            let failure = match sending.await {
                Some(Ok(())) => {
                    // Only now: a flush that is cut short sends it again, which is harmless.
                    self.outbox.pop_front();
                    continue;
                }
                Some(Err(error)) => error.to_string(),
                None => "it takes too long".to_owned(),
            };
            tracing::debug!(target: "deposed", peer = %self.peer, "cannot send: {failure}");
            // Part of it may have left: it stays open, and its try is over.
            self.outbox.pop_front();
            self.present = None;
        }
    }

    /// The next thing that comes over the line. Cancel-safe.
    pub(super) async fn next(&mut self) -> Incoming {
        tokio::select! {
            biased;
            connected = attempt(&mut self.connecting) => {
                self.connecting = None;
                match connected {
                    Ok(connection) => {
                        self.present = Some(connection);
                        self.unanswered = 0;
                        self.flush().await;
                        Incoming::Connected
                    }
                    Err(error) => {
                        tracing::debug!(target: "deposed", peer = %self.peer, "unreachable: {error}");
                        Incoming::Unreachable(self.outbox.drain(..).collect())
                    }
                }
            }
            received = receive(&mut self.present) => match received {
                Some(reply) => {
                    self.unanswered = 0;
                    Incoming::Reply(reply)
                }
                None => {
                    self.present = None;
                    Incoming::Ended { all: self.previous.is_none() }
                }
            },
            received = receive(&mut self.previous) => match received {
                Some(reply) => Incoming::Reply(reply),
                None => {
                    self.previous = None;
                    Incoming::Ended { all: self.present.is_none() }
                }
            },
        }
    }
}

async fn attempt(
    connecting: &mut Option<(Nanos, LocalFuture<'static, io::Result<Connection>>)>,
) -> io::Result<Connection> {
    match connecting {
        Some((_, future)) => future.await,
        None => pending().await,
    }
}

/// The next reply of a connection; `None` once it is of no further use.
async fn receive(connection: &mut Option<Connection>) -> Option<Reply> {
    let Some(connection) = connection else {
        return pending().await;
    };
    match connection.receive::<Reply>().await {
        Ok(Some(Reply::Error { error })) => {
            tracing::warn!(target: "deposed", peer = %connection.peer(), "closed on us: {}", error.kind);
            None
        }
        Ok(reply) => reply,
        Err(FrameError::Io(error)) => {
            tracing::debug!(target: "deposed", peer = %connection.peer(), "broke: {error}");
            None
        }
        Err(error) => {
            tracing::warn!(target: "deposed", peer = %connection.peer(), "closes a connection: {error}");
            None
        }
    }
}

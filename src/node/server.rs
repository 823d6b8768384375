//! What every server of ours does with its connections: accept, read requests,
//! answer, and close a connection that speaks nonsense without harming the others;
//! and what it does when its disk fails: start over from what is durable.

use std::{cell::Cell, convert::Infallible, io, rc::Rc};

use deposed_checkers::history::{Failure, Nanos};
use tokio::sync::{Mutex, Notify};

use super::{
    Node,
    frame::{Reply, Request},
};
use crate::net::{Connection, FrameError, Listener, LocalFuture};

/// A connection on which nothing came for this long is closed: its other end may
/// be gone without a word (a power loss, a wedged stream).
const IDLE_LIMIT: Nanos = 60_000_000_000;

/// How long a server waits before it takes its disk up again: at first, and at most.
const RETRY: (Nanos, Nanos) = (5_000_000, 40_000_000);

/// Answers requests one at a time.
pub trait Service {
    /// The answer to a request; `None` if this service does not know its kind.
    ///
    /// # Errors
    /// When durable state could not be written: nothing was answered, and the
    /// service is given up for one that recovers from what is durable.
    fn answer(&mut self, request: Request) -> LocalFuture<'_, io::Result<Option<Reply>>>;

    /// Looks at a request ahead of answering it; for so long (ns) requests of other
    /// connections are answered in between. Only with a planted flaw.
    fn look_ahead(&mut self, _request: &Request) -> Option<Nanos> {
        None
    }
}

/// Why a server stopped, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Nobody may go on from what is on the disk, and no further try will change that.
    #[error("the server does not start: {0}")]
    Disk(#[source] io::Error),
    /// There is no listening.
    #[error("the server cannot listen: {0}")]
    Listen(#[source] io::Error),
    /// The listener broke.
    #[error("the server cannot accept connections any more: {0}")]
    Accept(#[source] io::Error),
}

/// Serves until the listener breaks, or what `recover` finds on the disk is corrupted.
///
/// `recover` makes a service of what is durable; it is told whether this is the first
/// time that this node ever does. When the disk fails, all connections are closed and
/// the service is recovered anew: nobody is answered from a memory that is ahead of
/// its disk.
///
/// # Errors
/// Always: there is no other end.
pub async fn serve<S: Service + 'static>(
    node: Node,
    recover: impl AsyncFn(bool) -> io::Result<S>,
) -> Result<Infallible, ServerError> {
    let first = node.boots() == 1;
    let mut service = take_up(&node, &recover, first).await?;
    let mut listener = node.net().listen().await.map_err(ServerError::Listen)?;
    loop {
        answer_all(&node, &mut *listener, service).await?;
        service = take_up(&node, &recover, false).await?;
    }
}

/// The server as the body of a node, whose end is told to nobody but the log.
pub async fn until_it_stops(serving: impl Future<Output = Result<Infallible, ServerError>>) {
    let Err(why) = serving.await;
    tracing::error!(target: "deposed", "{why}");
}

/// A service on what is durable, as soon as the disk can be read.
async fn take_up<S>(
    node: &Node,
    recover: &impl AsyncFn(bool) -> io::Result<S>,
    first: bool,
) -> Result<S, ServerError> {
    let (mut wait, longest) = RETRY;
    loop {
        match recover(first).await {
            Ok(service) => return Ok(service),
            Err(error) if is_final(&error) => return Err(ServerError::Disk(error)),
            Err(error) => tracing::warn!(target: "deposed", "cannot start yet: {error}"),
        }
        node.sleep(wait).await;
        wait = longest.min(wait * 2);
    }
}

/// What no further try will change.
fn is_final(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::NotFound | io::ErrorKind::ResourceBusy
    )
}

/// Answers until the service fails, or the listener breaks: that is the error.
async fn answer_all(
    node: &Node,
    listener: &mut dyn Listener,
    service: impl Service + 'static,
) -> Result<(), ServerError> {
    // Requests of all connections queue up here in the order of their arrival: a
    // request sees the state that the one before it has made durable.
    let service = Rc::new(Mutex::new(Some(service)));
    let failed = Rc::new(Failed::default());
    loop {
        let accepted = tokio::select! {
            biased;
            () = failed.wait() => return Ok(()),
            accepted = listener.accept() => accepted,
        };
        let connection = accepted.map_err(ServerError::Accept)?;
        let (peer, service, failed) = (node.clone(), service.clone(), failed.clone());
        node.spawn(async move {
            tokio::select! {
                biased;
                () = failed.wait() => {}
                ended = converse(&peer, connection, &service) => if let Err(error) = ended {
                    tracing::error!(target: "deposed", "the disk failed: {error}");
                    failed.tell();
                }
            }
        });
    }
}

/// Whether a service has failed.
#[derive(Default)]
struct Failed {
    failed: Cell<bool>,
    told: Notify,
}

impl Failed {
    fn tell(&self) {
        self.failed.set(true);
        self.told.notify_waiters();
    }

    async fn wait(&self) {
        let told = self.told.notified();
        if !self.failed.get() {
            told.await;
        }
    }
}

/// One connection to its end. The error is the service's, not the connection's.
async fn converse(
    node: &Node,
    mut connection: Connection,
    service: &Mutex<Option<impl Service>>,
) -> io::Result<()> {
    // One timer a connection, looked at when it fires, not one a request.
    let idle_at = |last: Nanos| last.saturating_add(IDLE_LIMIT);
    let mut last_request = node.now();
    let mut idle = node.clock().sleep_until(idle_at(last_request));
    // Once the other end cannot be answered it is still heard out: what it had sent by
    // then may come late, and is to be done all the same.
    let mut answers = true;
    loop {
        let received = tokio::select! {
            biased;
            received = connection.receive::<Request>() => received,
            () = &mut idle => {
                if node.now() >= idle_at(last_request) {
                    return Ok(());
                }
                idle = node.clock().sleep_until(idle_at(last_request));
                continue;
            }
        };
        let request = match received {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) => {
                refuse(&mut connection, &error).await;
                return Ok(());
            }
        };
        last_request = node.now();
        let mut present = service.lock().await;
        let ahead = present
            .as_mut()
            .and_then(|running| running.look_ahead(&request));
        if let Some(others) = ahead {
            drop(present);
            node.sleep(others).await;
            present = service.lock().await;
        }
        let Some(running) = &mut *present else {
            return Ok(());
        };
        let answer = running.answer(request).await;
        if answer.is_err() {
            // What it has in memory is ahead of its disk: nobody is answered from it.
            *present = None;
        }
        drop(present);
        let answer = answer?;
        let sent = match answer {
            Some(_) if !answers => Ok(()),
            Some(reply) => connection.send(&reply).await,
            None => {
                let error = FrameError::UnknownKind("a request for another service".into());
                refuse(&mut connection, &error).await;
                return Ok(());
            }
        };
        if let Err(error) = sent {
            tracing::debug!(target: "deposed", peer = %connection.peer(), "cannot answer: {error}");
            answers = false;
        }
    }
}

/// Tells the other end why its connection is closed; it may be gone already.
async fn refuse(connection: &mut Connection, error: &FrameError) {
    tracing::warn!(target: "deposed", peer = %connection.peer(), "closes a connection: {error}");
    if !matches!(error, FrameError::Io(_)) {
        let told = connection
            .send(&Reply::Error {
                error: Failure::new(error.kind()),
            })
            .await;
        if let Err(error) = told {
            tracing::debug!(target: "deposed", "the other end is gone: {error}");
        }
    }
}

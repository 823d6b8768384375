//! What every server of ours does with its connections: accept, read requests,
//! answer, and close a connection that speaks nonsense without harming the others;
//! and what it does when its disk fails: start over from what is durable.

use std::{cell::Cell, io, rc::Rc};

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

/// Serves until the listener breaks, or what `recover` finds on the disk is corrupted.
///
/// `recover` makes a service of what is durable; it is told whether this is the first
/// time that this node ever does. When the disk fails, all connections are closed and
/// the service is recovered anew: nobody is answered from a memory that is ahead of
/// its disk.
pub async fn serve<S: Service + 'static>(node: Node, recover: impl AsyncFn(bool) -> io::Result<S>) {
    let Some(mut service) = take_up(&node, &recover, node.boots() == 1).await else {
        return;
    };
    let mut listener = match node.net().listen().await {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(target: "deposed", "cannot listen: {error}");
            return;
        }
    };
    while answer_all(&node, &mut *listener, service).await {
        service = match take_up(&node, &recover, false).await {
            Some(service) => service,
            None => return,
        };
    }
}

/// A service on what is durable; `None` where nobody may go on from that.
async fn take_up<S>(
    node: &Node,
    recover: &impl AsyncFn(bool) -> io::Result<S>,
    first: bool,
) -> Option<S> {
    let (mut wait, longest) = RETRY;
    loop {
        match recover(first).await {
            Ok(service) => return Some(service),
            Err(error) if is_final(&error) => {
                tracing::error!(target: "deposed", "does not start: {error}");
                return None;
            }
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

/// Answers until the service fails (true) or the listener breaks (false).
async fn answer_all(
    node: &Node,
    listener: &mut dyn Listener,
    service: impl Service + 'static,
) -> bool {
    // Requests of all connections queue up here in the order of their arrival: a
    // request sees the state that the one before it has made durable.
    let service = Rc::new(Mutex::new(Some(service)));
    let failed = Rc::new(Failed::default());
    loop {
        let accepted = tokio::select! {
            biased;
            () = failed.wait() => return true,
            accepted = listener.accept() => accepted,
        };
        let connection = match accepted {
            Ok(connection) => connection,
            Err(error) => {
                tracing::error!(target: "deposed", "cannot accept: {error}");
                return false;
            }
        };
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

//! A leader's way to the replicas: a [`QuorumCoordinator`] driven over a connection to
//! each, all at once.
//!
//! Each replica has a link, a task of its own that carries one message at a time, the
//! newest it was given. A replica that is slow, down or cut off holds up nobody: an
//! operation is over with its majority, and what the slow one answers afterwards tells
//! the next operation what it lacks.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use deposed_checkers::history::{Failure, Name, Nanos, Token};
use tokio::sync::{Notify, mpsc};

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    storage_client::{NoAnswer, StorageClient},
};
use crate::{
    flaw::Planted,
    storage::{Answer, Certainty, Heard, Message, QuorumCoordinator, QuorumOutcome},
};

/// The replicas of one lease, as its leader sees them.
pub struct QuorumClient {
    node: Node,
    try_timeout: Nanos,
    coordinator: QuorumCoordinator,
    links: Vec<Rc<Link>>,
    heard: mpsc::UnboundedReceiver<(usize, u64, Heard)>,
}

/// The way to one replica.
#[derive(Default)]
struct Link {
    /// The message to carry next.
    letter: RefCell<Option<Letter>>,
    posted: Notify,
    /// Whether the next message goes over a new connection.
    anew: Cell<bool>,
    /// What is under way is to be let go.
    let_go: Notify,
}

/// A message for a replica.
struct Letter {
    round: u64,
    lease: Name,
    token: Token,
    message: Message,
}

impl QuorumClient {
    /// For these replicas. No connection is made before the first call; the links stop
    /// with the process.
    ///
    /// # Panics
    /// If there are no replicas.
    pub fn new(node: Node, replicas: &[Name], try_timeout: Nanos, planted: Planted) -> Self {
        let (tell, heard) = mpsc::unbounded_channel();
        let links = (0..)
            .zip(replicas)
            .map(|(nth, name)| {
                let link = Rc::new(Link::default());
                let client = StorageClient::new(node.clone(), name.clone(), try_timeout);
                node.spawn(carry(nth, link.clone(), client, tell.clone()));
                link
            })
            .collect();
        Self {
            node,
            try_timeout,
            coordinator: QuorumCoordinator::new(replicas.len(), planted),
            links,
            heard,
        }
    }

    /// Makes the next calls on new connections, and lets go of calls under way.
    pub fn reconnect(&mut self) {
        for link in &self.links {
            link.letter.take();
            link.anew.set(true);
            link.let_go.notify_waiters();
        }
    }

    /// The barrier: a majority promises the token and adopts the newest state among
    /// them. Its two steps may take a try's time each.
    ///
    /// # Errors
    /// No majority.
    pub async fn fence(&mut self, lease: &Name, token: Token) -> Result<Outcome<()>, NoAnswer> {
        self.catch_up();
        let messages = self.coordinator.fence(token);
        let patience = self.try_timeout.saturating_mul(2);
        without_value(self.perform(lease, messages, patience).await)
    }

    /// What a key holds, by a majority under the term's token.
    ///
    /// # Errors
    /// No majority, or nothing was fenced.
    pub async fn read(
        &mut self,
        lease: &Name,
        key: &Name,
    ) -> Result<Outcome<Option<Name>>, NoAnswer> {
        self.catch_up();
        match self.coordinator.read(key) {
            Some(messages) => self.perform(lease, messages, self.try_timeout).await,
            None => Err(NoAnswer::NotSent(Failure::new("not-fenced"))),
        }
    }

    /// Writes a key or, without a value, deletes it, on a majority under the term's
    /// token.
    ///
    /// # Errors
    /// No majority, or nothing was fenced.
    pub async fn change(
        &mut self,
        lease: &Name,
        seq: u64,
        key: &Name,
        value: Option<Name>,
    ) -> Result<Outcome<()>, NoAnswer> {
        self.catch_up();
        match self.coordinator.write(seq, key, value) {
            Ok(Some(messages)) => {
                without_value(self.perform(lease, messages, self.try_timeout).await)
            }
            Ok(None) => Err(NoAnswer::NotSent(Failure::new("not-fenced"))),
            Err(refusal) => Ok(Outcome::Refused {
                error: Failure::new(refusal.kind()),
                perhaps_done: true,
                retry_after: None,
            }),
        }
    }

    /// What was heard since the last operation tells who lacks something.
    fn catch_up(&mut self) {
        while let Ok((replica, round, heard)) = self.heard.try_recv() {
            self.coordinator.on_heard(replica, round, heard);
        }
    }

    /// Sends the operation's first messages, one a replica, and drives it to its end.
    async fn perform(
        &mut self,
        lease: &Name,
        messages: Vec<Message>,
        patience: Nanos,
    ) -> Result<Outcome<Option<Name>>, NoAnswer> {
        let clock = self.node.clock().clone();
        let deadline = clock.now().saturating_add(patience);
        for (replica, message) in messages.into_iter().enumerate() {
            self.post(replica, lease, message);
        }
        loop {
            if let Some(outcome) = self.coordinator.outcome() {
                return self.conclude(outcome);
            }
            tokio::select! {
                biased;
                heard = self.heard.recv() => {
                    // The links hold the other end for as long as the process lives.
                    let Some((replica, round, heard)) = heard else {
                        return Err(NoAnswer::Unknown(Failure::new("connection-closed")));
                    };
                    for (replica, message) in self.coordinator.on_heard(replica, round, heard) {
                        self.post(replica, lease, message);
                    }
                }
                () = clock.sleep_until(deadline) => self.give_up(),
            }
        }
    }

    fn post(&self, replica: usize, lease: &Name, message: Message) {
        let link = &self.links[replica];
        link.letter.replace(Some(Letter {
            round: self.coordinator.round(),
            lease: lease.clone(),
            token: self.coordinator.token(),
            message,
        }));
        link.posted.notify_one();
    }

    /// Time is up. What a busy link has not taken yet never leaves.
    fn give_up(&mut self) {
        let round = self.coordinator.round();
        for (replica, link) in self.links.iter().enumerate() {
            let untaken = link
                .letter
                .borrow_mut()
                .take_if(|letter| letter.round == round);
            if untaken.is_some() {
                self.coordinator.on_heard(replica, round, Heard::NotSent);
            }
        }
        self.coordinator.give_up();
    }

    fn conclude(&self, outcome: QuorumOutcome) -> Result<Outcome<Option<Name>>, NoAnswer> {
        match outcome {
            QuorumOutcome::Done(value) => Ok(Outcome::Ok(value)),
            QuorumOutcome::Stale { seen, certainty } => Ok(Outcome::Refused {
                error: Failure::stale_token(self.coordinator.token(), seen),
                perhaps_done: certainty == Certainty::MayHaveApplied,
                retry_after: None,
            }),
            QuorumOutcome::Unreached(certainty) => {
                let failure = Failure::new("no-majority");
                Err(match certainty {
                    Certainty::NotApplied => NoAnswer::NotSent(failure),
                    Certainty::MayHaveApplied => NoAnswer::Unknown(failure),
                })
            }
        }
    }
}

fn without_value(result: Result<Outcome<Option<Name>>, NoAnswer>) -> Result<Outcome<()>, NoAnswer> {
    Ok(match result? {
        Outcome::Ok(_) => Outcome::Ok(()),
        Outcome::Refused {
            error,
            perhaps_done,
            retry_after,
        } => Outcome::Refused {
            error,
            perhaps_done,
            retry_after,
        },
    })
}

/// A link's task: carries one message after the other, and tells what came back.
async fn carry(
    replica: usize,
    link: Rc<Link>,
    mut client: StorageClient,
    tell: mpsc::UnboundedSender<(usize, u64, Heard)>,
) {
    loop {
        let letter = link.letter.take();
        let Some(letter) = letter else {
            link.posted.notified().await;
            continue;
        };
        if link.anew.take() {
            client.reconnect();
        }
        let round = letter.round;
        let heard = tokio::select! {
            biased;
            () = link.let_go.notified() => continue,
            result = client.call(|id| request(id, letter)) => heard(result),
        };
        if tell.send((replica, round, heard)).is_err() {
            return;
        }
    }
}

fn request(id: u64, letter: Letter) -> Request {
    let Letter {
        lease,
        token,
        message,
        ..
    } = letter;
    match message {
        Message::Prepare => Request::Prepare { id, lease, token },
        Message::Query { key } => Request::Query {
            id,
            lease,
            token,
            key,
        },
        Message::Accept {
            after,
            seq,
            key,
            value,
        } => Request::Accept {
            id,
            lease,
            token,
            after,
            seq,
            key,
            value,
        },
        Message::Adopt(state) => Request::Adopt {
            id,
            lease,
            token,
            state,
        },
    }
}

fn heard(result: Result<Reply, NoAnswer>) -> Heard {
    let answer: Outcome<Answer> = match result {
        Ok(
            Reply::PrepareReply { answer, .. }
            | Reply::QueryReply { answer, .. }
            | Reply::AcceptReply { answer, .. }
            | Reply::AdoptReply { answer, .. },
        ) => answer,
        Ok(_) | Err(NoAnswer::Unknown(_)) => return Heard::Unknown,
        Err(NoAnswer::NotSent(_)) => return Heard::NotSent,
    };
    match answer {
        Outcome::Ok(answer) => Heard::Answer(answer),
        Outcome::Refused {
            error,
            perhaps_done,
            ..
        } => match error.seen {
            Some(seen) => Heard::Stale {
                seen,
                applied_before: match perhaps_done {
                    true => Certainty::MayHaveApplied,
                    false => Certainty::NotApplied,
                },
            },
            None => Heard::Unknown,
        },
    }
}

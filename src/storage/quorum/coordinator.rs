//! The leader's end: one operation at a time, put to all replicas.

use deposed_checkers::history::{Name, Token};

use super::{Answer, Message, Snapshot, Version, majority, replica::put};
use crate::{
    flaw::{Flaw, Planted},
    storage::fenced::{Certainty, Refusal, Value},
};

/// Puts a leader's fences, writes and reads to the replicas, and says what came of
/// them. One operation is in hand at a time: [`fence`](Self::fence),
/// [`write`](Self::write) and [`read`](Self::read) begin one and say what to send to
/// each replica, [`on_heard`](Self::on_heard) takes what comes back, in any order, late
/// or never, and says what to send next; [`outcome`](Self::outcome) is there as soon as
/// a majority has done it or everybody was heard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuorumCoordinator {
    planted: Planted,
    replicas: usize,
    token: Token,
    /// The newest state proposed under the token; `None` before one was chosen. Once
    /// chosen it stands: a second choice under one token could be another.
    state: Option<Snapshot>,
    /// Numbers operations, so that an answer to an earlier one is told apart.
    round: u64,
    /// The first operation of the term.
    first_round: u64,
    /// Replicas that lacked something when they were last heard.
    behind: Vec<bool>,
    hand: Option<Hand>,
}

/// The operation in hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Hand {
    what: What,
    votes: Vec<Vote>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum What {
    Fence,
    /// What the key held before, and where the state stood.
    Write {
        key: Name,
        before: Option<Value>,
        after: u64,
    },
    /// What the key holds in the state.
    Read {
        value: Option<Value>,
    },
}

/// What is known of one replica's part in the operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Vote {
    /// It was asked.
    Waiting,
    /// It has promised the token and shown its state; no state is chosen yet.
    Promised(Snapshot),
    /// It lacked something and has been sent the state.
    Repairing,
    /// It stands where the operation wants it.
    Stands,
    Stale {
        seen: Token,
        applied_before: Certainty,
    },
    /// Nothing of the operation reached it, nor will.
    NotSent,
    /// Anything may have reached it.
    Unknown,
}

/// What was heard of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Heard {
    /// It answered.
    Answer(Answer),
    /// It refused: a higher token was promised.
    Stale {
        /// That token.
        seen: Token,
        /// Whether a copy of what it refused can have been applied before.
        applied_before: Certainty,
    },
    /// The message surely did not leave.
    NotSent,
    /// It may have arrived and may yet arrive.
    Unknown,
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QuorumOutcome {
    /// A majority did it. Of a read: what the key holds.
    Done(Option<Value>),
    /// No majority did it, and some replica has promised a higher token.
    Stale {
        /// The highest of those.
        seen: Token,
        /// Whether it may have been applied, or be adopted, all the same.
        certainty: Certainty,
    },
    /// No majority was reached.
    Unreached(Certainty),
}

impl QuorumCoordinator {
    /// For so many replicas, with nothing fenced.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(replicas: usize, planted: Planted) -> Self {
        assert!(replicas > 0, "a quorum of no replicas");
        Self {
            planted,
            replicas,
            token: 0,
            state: None,
            round: 0,
            first_round: 0,
            behind: vec![false; replicas],
            hand: None,
        }
    }

    /// Begins the barrier of a term; a term's barrier that failed may be tried again.
    pub fn fence(&mut self, token: Token) -> Vec<Message> {
        if token != self.token {
            self.token = token;
            self.state = None;
            self.first_round = self.round + 1;
            self.behind = vec![false; self.replicas];
        }
        self.begin(What::Fence, Message::Prepare)
    }

    /// Begins a write or, without a value, a delete. `seq` rises within a token, from 1.
    ///
    /// # Errors
    ///
    /// [`OldSeq`](Refusal::OldSeq) if it does not rise; `None` in place of a term:
    /// nothing was fenced, and nothing is sent.
    pub fn write(
        &mut self,
        seq: u64,
        key: &Name,
        value: Option<Value>,
    ) -> Result<Option<Vec<Message>>, Refusal> {
        let Some(state) = &mut self.state else {
            return Ok(None);
        };
        let after = state.version.seq;
        if seq <= after {
            return Err(Refusal::OldSeq {
                presented_seq: seq,
                last_seq: after,
            });
        }
        let before = state.values.get(key).cloned();
        state.version.seq = seq;
        put(&mut state.values, key, value.clone());
        let what = What::Write {
            key: key.clone(),
            before,
            after,
        };
        let key = key.clone();
        let accept = Message::Accept {
            after,
            seq,
            key,
            value,
        };
        Ok(Some(self.begin(what, accept)))
    }

    /// Begins a read. `None`: nothing was fenced, and nothing is sent.
    pub fn read(&mut self, key: &Name) -> Option<Vec<Message>> {
        let value = self.state.as_ref()?.values.get(key).cloned();
        let key = key.clone();
        Some(self.begin(What::Read { value }, Message::Query { key }))
    }

    /// The token of the term.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The number of the operation in hand, or of the last.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// One message a replica: the state to those that are known to lack something, and
    /// to all once a barrier's state is chosen.
    fn begin(&mut self, what: What, message: Message) -> Vec<Message> {
        self.round += 1;
        let fences = what == What::Fence;
        self.hand = Some(Hand {
            what,
            votes: vec![Vote::Waiting; self.replicas],
        });
        let message_for = |behind: &bool| match &self.state {
            Some(state) if fences || *behind => Message::Adopt(state.clone()),
            _ => message.clone(),
        };
        self.behind.iter().map(message_for).collect()
    }

    /// Takes what was heard of a replica in answer to a message of the operation
    /// numbered `round`; what to send to which replica now.
    pub fn on_heard(&mut self, replica: usize, round: u64, heard: Heard) -> Vec<(usize, Message)> {
        if round < self.first_round {
            return Vec::new();
        }
        let goal = self.state.as_ref().map(|state| state.version);
        if let (Some(goal), Heard::Answer(answer)) = (goal, &heard) {
            self.behind[replica] = version_of(answer) < goal;
        }
        let planted = self.planted;
        // Of an earlier operation it says nothing about this one: a higher token may
        // have been promised since.
        let Some(hand) = self.hand.as_mut().filter(|_| round == self.round) else {
            return Vec::new();
        };
        let vote = &mut hand.votes[replica];
        match heard {
            Heard::Stale { .. } if planted.has(Flaw::CountsRefusals) => *vote = Vote::Stands,
            Heard::Stale {
                seen,
                applied_before,
            } => {
                *vote = Vote::Stale {
                    seen,
                    applied_before,
                };
            }
            // What it was sent before has arrived, and may have been copied on the way.
            Heard::NotSent if *vote == Vote::Waiting => *vote = Vote::NotSent,
            Heard::NotSent | Heard::Unknown => *vote = Vote::Unknown,
            Heard::Answer(Answer::Stands { value, .. })
                if planted.has(Flaw::ReadsOneReplica) && matches!(hand.what, What::Read { .. }) =>
            {
                *vote = Vote::Stands;
                hand.what = What::Read { value };
            }
            Heard::Answer(answer) => match (&self.state, answer) {
                (Some(state), answer) if version_of(&answer) >= state.version => {
                    *vote = Vote::Stands;
                }
                (Some(state), _) => {
                    *vote = Vote::Repairing;
                    return vec![(replica, Message::Adopt(state.clone()))];
                }
                (None, Answer::Promised(snapshot)) => {
                    *vote = Vote::Promised(snapshot);
                    return self.choose();
                }
                (None, Answer::Stands { .. }) => *vote = Vote::Unknown,
            },
        }
        Vec::new()
    }

    /// Once a majority has promised: the newest of their states is the term's, under
    /// its own token, and goes to all who promised.
    fn choose(&mut self) -> Vec<(usize, Message)> {
        let Some(hand) = &mut self.hand else {
            return Vec::new();
        };
        let promised = hand.votes.iter().filter_map(|vote| match vote {
            Vote::Promised(snapshot) => Some(snapshot),
            _ => None,
        });
        if promised.clone().count() < majority(self.replicas) {
            return Vec::new();
        }
        let newest = match self.planted.has(Flaw::NoRecovery) {
            true => promised.clone().next(),
            false => promised.max_by_key(|snapshot| snapshot.version),
        };
        let mut state = newest.cloned().unwrap_or_default();
        let (token, seq) = (self.token, 0);
        state.version = state.version.max(Version { token, seq });
        let mut messages = Vec::new();
        for (replica, vote) in hand.votes.iter_mut().enumerate() {
            if matches!(vote, Vote::Promised(_)) {
                *vote = Vote::Repairing;
                messages.push((replica, Message::Adopt(state.clone())));
            }
        }
        self.state = Some(state);
        messages
    }

    /// Time is up: who was not heard is not waited for.
    pub fn give_up(&mut self) {
        for vote in self.hand.iter_mut().flat_map(|hand| &mut hand.votes) {
            if matches!(vote, Vote::Waiting | Vote::Promised(_) | Vote::Repairing) {
                *vote = Vote::Unknown;
            }
        }
    }

    /// What came of the operation, once; then none is in hand.
    pub fn outcome(&mut self) -> Option<QuorumOutcome> {
        let hand = self.hand.as_ref()?;
        let stand = hand
            .votes
            .iter()
            .filter(|vote| **vote == Vote::Stands)
            .count();
        let needed = match &hand.what {
            What::Write { .. } if self.planted.has(Flaw::MinorityAck) => 1,
            What::Read { .. } if self.planted.has(Flaw::ReadsOneReplica) => 1,
            _ => majority(self.replicas),
        };
        // Who has promised was heard; it waits for the others with the leader.
        let open = |vote: &Vote| matches!(vote, Vote::Waiting | Vote::Repairing);
        if stand < needed && hand.votes.iter().any(open) {
            return None;
        }
        let hand = self.hand.take()?;
        if stand >= needed {
            return Some(QuorumOutcome::Done(match hand.what {
                What::Read { value } => value,
                What::Fence | What::Write { .. } => None,
            }));
        }
        let certainty = certainty(&hand);
        // Nobody has it and nobody will: the state is again what it was.
        if let (What::Write { key, before, after }, Certainty::NotApplied, Some(state)) =
            (hand.what, certainty, &mut self.state)
        {
            state.version.seq = after;
            put(&mut state.values, &key, before);
        }
        let refusals = hand.votes.iter().filter_map(|vote| match vote {
            Vote::Stale { seen, .. } => Some(*seen),
            _ => None,
        });
        Some(match refusals.max() {
            Some(seen) => QuorumOutcome::Stale { seen, certainty },
            None => QuorumOutcome::Unreached(certainty),
        })
    }
}

/// Whether what no majority did may yet be found on some replica.
fn certainty(hand: &Hand) -> Certainty {
    let surely_not = |vote: &Vote| {
        matches!(
            vote,
            Vote::NotSent
                | Vote::Stale {
                    applied_before: Certainty::NotApplied,
                    ..
                }
        )
    };
    match matches!(hand.what, What::Read { .. }) || hand.votes.iter().all(surely_not) {
        true => Certainty::NotApplied,
        false => Certainty::MayHaveApplied,
    }
}

fn version_of(answer: &Answer) -> Version {
    match answer {
        Answer::Promised(snapshot) => snapshot.version,
        Answer::Stands { version, .. } => *version,
    }
}

//! What a leader does with its term: fences, then reads, changes and writes under
//! the lease, so that a lost update would show.
//!
//! Between the check of `is_leader()` and each act lies a gc point: that gap cannot
//! be closed by checking again, only by the token.

use deposed_checkers::history::{Answer, Delete, Fence, Name, Op, Read, Token, Write};
use serde_json::Value;

use super::{
    Node,
    elector::{Candidacy, Leadership},
    frame::Outcome,
    leader_storage::LeaderStorage,
    storage_client::NoAnswer,
};
use crate::{
    cluster::StorageKind,
    flaw::{Flaw, Planted},
    lease::LeaseConfig,
    recorder::Call,
    workload::Traffic,
};

/// What leader work needs to know.
#[derive(Clone, Debug)]
pub struct LeaderWork {
    /// Under which lease.
    pub lease: Name,
    /// What kind of storage it works on.
    pub storage: StorageKind,
    /// The names of the nodes that hold it, one at least.
    pub storages: Vec<Name>,
    /// Timing of tries and pauses.
    pub config: LeaseConfig,
    /// How much to do.
    pub traffic: Traffic,
    /// The planted flaw.
    pub planted: Planted,
}

/// Works whenever elected, for as long as the process lives.
pub async fn run(node: Node, candidacy: Candidacy, work: LeaderWork) {
    let storage = LeaderStorage::new(
        node.clone(),
        work.storage,
        &work.storages,
        work.config.try_timeout,
        work.planted,
    );
    let mut leader = Leader {
        node,
        work,
        storage,
    };
    loop {
        let leadership = candidacy.elected().await;
        leader.storage.reconnect();
        Term {
            leader: &mut leader,
            token: leadership.token(),
            leadership,
            seq: 0,
            read_early: None,
        }
        .run()
        .await;
    }
}

struct Leader {
    node: Node,
    work: LeaderWork,
    storage: LeaderStorage,
}

struct Term<'a> {
    leader: &'a mut Leader,
    leadership: Leadership,
    /// What it works under: the lease's token.
    token: Token,
    seq: u64,
    /// A key and its value, read before the barrier. Only with a planted flaw.
    read_early: Option<(Name, Option<Name>)>,
}

/// How a step of the term went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    /// No answer, or refused for a reason other than the token: try again later.
    Failed,
    /// The token is stale.
    Deposed,
}

impl Term<'_> {
    async fn run(&mut self) {
        let planted = self.leader.work.planted;
        if planted.has(Flaw::BarrierAfterWrite) {
            self.read_modify_write().await;
        }
        if planted.has(Flaw::ReadsBeforeBarrier) {
            self.read_early().await;
        }
        let wanted = !self.leader.work.traffic.without_barrier;
        let needed = wanted && self.leader.storage.needs_barrier();
        let fences = needed && !planted.has(Flaw::NoBarrier);
        if fences && !self.fence().await {
            return;
        }
        while self.leadership.is_leader() {
            let step = self.read_modify_write().await;
            if step == Step::Deposed {
                return;
            }
            let pause = match step {
                Step::Failed => self.backoff(),
                _ => self.leader.work.traffic.write_every,
            };
            let (node, leadership) = (self.leader.node.clone(), self.leadership.clone());
            tokio::select! {
                biased;
                () = leadership.lost() => return,
                () = node.sleep(pause) => {}
            }
        }
    }

    /// The barrier. While it cannot be set no work is done; false if the term ended
    /// first.
    async fn fence(&mut self) -> bool {
        while self.leadership.is_leader() {
            match self.try_fence().await {
                Step::Done => return true,
                Step::Deposed => return false,
                Step::Failed if self.leader.work.planted.has(Flaw::WorksUnfenced) => return true,
                Step::Failed => self.leader.node.sleep(self.backoff()).await,
            }
        }
        false
    }

    /// A fence is work in hand like any other: the release must not overtake it.
    async fn try_fence(&mut self) -> Step {
        let Some(_in_hand) = self.leadership.begin_work() else {
            return Step::Failed;
        };
        if self.leader.work.planted.has(Flaw::BarrierWithFreshToken) {
            self.token = self.unseen_token().await.unwrap_or(self.token);
        }
        let (lease, token) = (self.leader.work.lease.clone(), self.token);
        let op = Op::Fence(Fence {
            lease: lease.clone(),
            token,
        });
        let call = self.leader.node.invoke(op).await;
        let answer = self.leader.storage.fence(&lease, token).await;
        self.conclude(call, answer)
    }

    async fn read_early(&mut self) {
        let Some(_in_hand) = self.leadership.begin_work() else {
            return;
        };
        let key = self.any_key();
        self.read_early = self.read(&key).await.ok().map(|before| (key, before));
    }

    /// One that storage has not seen, as it lets on when it refuses the lowest of all.
    async fn unseen_token(&mut self) -> Option<Token> {
        let (lease, token) = (self.leader.work.lease.clone(), 0);
        match self.leader.storage.fence(&lease, token).await.ok()? {
            Outcome::Ok(()) => Some(1),
            Outcome::Refused { error, .. } => Some(error.seen? + 1),
        }
    }

    fn any_key(&self) -> Name {
        let keys = self.leader.work.traffic.keys.max(1);
        Name::from(format!("k{}", self.leader.node.random_below(keys)))
    }

    /// One update: check, read, write. The check is as old as the pauses in between.
    async fn read_modify_write(&mut self) -> Step {
        let Some(_in_hand) = self.leadership.begin_work() else {
            return Step::Failed;
        };
        let mut key = self.any_key();
        let every = self.leader.work.traffic.delete_one_in;
        let deletes = every > 0 && self.leader.node.random_below(every) == 0;
        let read = match self.read_early.take() {
            Some((early, before)) => {
                key = early;
                Ok(before)
            }
            None => self.read(&key).await,
        };
        let before = match read {
            Ok(before) => before,
            Err(step) => return step,
        };
        self.seq += 1;
        if deletes {
            return self.delete(key).await;
        }
        let count = before.as_deref().map_or(0, count_of) + 1;
        let value = value(count, self.token, self.seq);
        self.write(key, value).await
    }

    async fn read(&mut self, key: &Name) -> Result<Option<Name>, Step> {
        let lease = self.leader.work.lease.clone();
        let token = Some(self.token);
        let op = Op::Read(Read {
            lease: lease.clone(),
            token,
            key: key.clone(),
        });
        let call = self.leader.node.invoke(op).await;
        match self.leader.storage.read(&lease, key).await {
            Ok(Outcome::Ok(value)) => {
                let read = value
                    .as_ref()
                    .map_or(Value::Null, |value| value.as_str().into());
                call.ok(Answer::Value(read));
                Ok(value)
            }
            Ok(Outcome::Refused { error, .. }) => {
                let stale = error.seen.is_some();
                call.fail(error);
                Err(self.refused(stale))
            }
            Err(no_answer) => {
                unanswered(call, no_answer);
                Err(Step::Failed)
            }
        }
    }

    async fn write(&mut self, key: Name, value: Name) -> Step {
        let (lease, token) = (self.leader.work.lease.clone(), self.token);
        let seq = self.seq;
        let op = Op::Write(Write {
            lease: lease.clone(),
            token: Some(token),
            seq: Some(seq),
            key: key.clone(),
            value: value.as_str().into(),
        });
        let call = self.leader.node.invoke(op).await;
        let storage = &mut self.leader.storage;
        let answer = storage.change(&lease, token, seq, &key, Some(value)).await;
        self.conclude(call, answer)
    }

    async fn delete(&mut self, key: Name) -> Step {
        let (lease, token) = (self.leader.work.lease.clone(), self.token);
        let seq = self.seq;
        let op = Op::Delete(Delete {
            lease: lease.clone(),
            token: Some(token),
            seq: Some(seq),
            key: key.clone(),
        });
        let call = self.leader.node.invoke(op).await;
        let storage = &mut self.leader.storage;
        let answer = storage.change(&lease, token, seq, &key, None).await;
        self.conclude(call, answer)
    }

    /// Completes a fence, write or delete. Told that its token is stale, the term ends.
    fn conclude(&self, call: Call, answer: Result<Outcome<()>, NoAnswer>) -> Step {
        match answer {
            Ok(Outcome::Ok(())) => {
                call.ok(Answer::None);
                Step::Done
            }
            Ok(Outcome::Refused {
                error,
                perhaps_done,
                ..
            }) => {
                let stale = error.seen.is_some();
                if perhaps_done {
                    call.info(error)
                } else {
                    call.fail(error)
                }
                self.refused(stale)
            }
            Err(no_answer) => {
                unanswered(call, no_answer);
                Step::Failed
            }
        }
    }

    /// Refused; if because the token is stale, the term is over.
    fn refused(&self, stale: bool) -> Step {
        if stale && !self.leader.work.planted.has(Flaw::StaleRetry) {
            self.leadership.told_stale();
            return Step::Deposed;
        }
        Step::Failed
    }

    /// A pause after a failure, with jitter so that retries do not march in step.
    fn backoff(&self) -> u64 {
        let (least, most) = (
            self.leader.work.config.backoff_min,
            self.leader.work.config.backoff_max,
        );
        least
            + self
                .leader
                .node
                .random_below((most.saturating_sub(least)).max(1))
    }
}

fn unanswered(call: Call, no_answer: NoAnswer) {
    match no_answer {
        NoAnswer::NotSent(failure) => call.fail(failure),
        NoAnswer::Unknown(failure) => call.info(failure),
    }
}

/// A value is unique (by token and seq) and counts the updates before it, so that a
/// lost one shows: `41/7.3` is the 41st update, the third under token 7.
fn value(count: u64, token: Token, seq: u64) -> Name {
    Name::from(format!("{count}/{token}.{seq}"))
}

fn count_of(value: &str) -> u64 {
    value
        .split('/')
        .next()
        .and_then(|count| count.parse().ok())
        .unwrap_or(0)
}

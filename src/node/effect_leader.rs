//! What a leader does with its term where the resource cannot check tokens: one job after
//! another, each an effect that cannot be taken back, an e-mail say.
//!
//! No token goes along and no barrier can be set, so between the last look at
//! `is_leader()` and the effect nothing stops a deposed leader but the store's
//! lock-delay, and nothing stops a job from being done twice but its idempotency key.

use deposed_checkers::history::{Answer, DUPLICATE, Failure, Name, Op, Read, Token, Write};
use serde_json::Value;

use super::{
    Node,
    elector::{Candidacy, Leadership},
    frame::{Outcome, Reply, Request},
    leader::LeaderWork,
    storage_client::{NoAnswer, StorageClient, outcome},
};

/// Works whenever elected, for as long as the process lives.
///
/// # Panics
/// If no node is named that does the effects.
pub async fn run(node: Node, candidacy: Candidacy, work: LeaderWork) {
    let name = work.storages.first().expect("some node does the effects");
    let relay = StorageClient::new(node.clone(), name.clone(), work.config.try_timeout);
    let mut leader = EffectLeader { node, work, relay };
    loop {
        let leadership = candidacy.elected().await;
        leader.relay.reconnect();
        leader.lead(&leadership).await;
    }
}

struct EffectLeader {
    node: Node,
    work: LeaderWork,
    relay: StorageClient,
}

/// How a job went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It is done, by whomever.
    Done,
    /// No answer, or not what was expected: try again later.
    Failed,
}

impl EffectLeader {
    async fn lead(&mut self, leadership: &Leadership) {
        let mut seq = 0;
        while leadership.is_leader() {
            seq += 1;
            let pause = match self.next_job(leadership, seq).await {
                Step::Done => self.work.traffic.write_every,
                Step::Failed => self.backoff(),
            };
            tokio::select! {
                biased;
                () = leadership.lost() => return,
                () = self.node.sleep(pause) => {}
            }
        }
    }

    /// Looks up which job is next for one of the recipients, and does it.
    async fn next_job(&mut self, leadership: &Leadership, seq: u64) -> Step {
        let Some(in_hand) = leadership.begin_work() else {
            return Step::Failed;
        };
        let recipients = self.work.traffic.keys.max(1);
        let to = Name::from(format!("k{}", self.node.random_below(recipients)));
        let Some(last) = self.read(&to).await else {
            return Step::Failed;
        };
        // The look-up took its time. What is left between this look and the effect is
        // what the lock-delay has to cover.
        if !leadership.is_leader() {
            return Step::Failed;
        }
        let job = last.as_deref().map_or(0, job_of) + 1;
        let value = value(job, leadership.token(), seq);
        let lease = self.work.lease.clone();
        let op = Op::Write(Write {
            lease: lease.clone(),
            token: None,
            seq: None,
            key: to.clone(),
            value: Value::from(value.as_str()),
        });
        let call = self.node.invoke(op).await;
        // The job's name, not the leader's: whoever else does this job sends the same.
        let key = Name::from(format!("{to}-{job}"));
        let answer = self
            .relay
            .call(|id| Request::Effect {
                id,
                lease,
                to,
                key,
                value,
            })
            .await;
        match answer.map(outcome) {
            Ok(Some(Outcome::Ok(()))) => {
                call.ok(Answer::None);
                Step::Done
            }
            Ok(Some(Outcome::Refused { error, .. })) => {
                let done = error.kind == DUPLICATE;
                call.fail(error);
                if done { Step::Done } else { Step::Failed }
            }
            Ok(None) => {
                call.info(Failure::new("unexpected-reply"));
                in_hand.unsettled();
                Step::Failed
            }
            Err(NoAnswer::NotSent(failure)) => {
                call.fail(failure);
                Step::Failed
            }
            Err(NoAnswer::Unknown(failure)) => {
                call.info(failure);
                in_hand.unsettled();
                Step::Failed
            }
        }
    }

    /// What was last done for a recipient; `None` when that could not be learnt.
    async fn read(&mut self, to: &Name) -> Option<Option<Name>> {
        let (lease, key) = (self.work.lease.clone(), to.clone());
        let op = Op::Read(Read {
            lease: lease.clone(),
            token: None,
            key: key.clone(),
        });
        let call = self.node.invoke(op).await;
        let answer = self.relay.call(|id| Request::Read { id, lease, key }).await;
        match answer {
            Ok(Reply::ReadReply {
                answer: Outcome::Ok(value),
                ..
            }) => {
                let read = value.as_deref().map_or(Value::Null, Value::from);
                call.ok(Answer::Value(read));
                Some(value)
            }
            Ok(_) => {
                call.info(Failure::new("unexpected-reply"));
                None
            }
            Err(NoAnswer::NotSent(failure)) => {
                call.fail(failure);
                None
            }
            Err(NoAnswer::Unknown(failure)) => {
                call.info(failure);
                None
            }
        }
    }

    /// A pause after a failure, with jitter so that retries do not march in step.
    fn backoff(&self) -> u64 {
        let (least, most) = (self.work.config.backoff_min, self.work.config.backoff_max);
        least + self.node.random_below((most.saturating_sub(least)).max(1))
    }
}

/// A value is unique, and names its job: `17/7.3` is job 17, done under token 7 as its
/// third piece of work.
fn value(job: u64, token: Token, seq: u64) -> Name {
    Name::from(format!("{job}/{token}.{seq}"))
}

fn job_of(value: &str) -> u64 {
    let job = value.split('/').next();
    job.and_then(|job| job.parse().ok()).unwrap_or(0)
}

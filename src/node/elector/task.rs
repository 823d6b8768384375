//! The elector's task: asks the core what to send, sends it, hands it the answers,
//! and records each call.

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use deposed_checkers::history::{Acquire, Answer, Failure, Name, Nanos, Op, Release, Renew, Token};

use super::{
    super::{
        Believer, Node,
        frame::{Outcome, Reply, Request},
    },
    Shared,
    belief::Belief,
    line::{Incoming, Line},
    old_term::{self, OldTerm},
};
use crate::{
    flaw::{Flaw, Planted},
    lease::{self, LeaseConfig},
    recorder::Call,
};

/// Requests whose answer is still of interest, at most.
const REMEMBERED: usize = 16;
/// Jitter is handed to the core in parts per billion.
const WHOLE: u64 = 1_000_000_000;

/// Starts the elector's task on its node.
pub(super) fn start(
    node: &Node,
    store: Name,
    lease: Name,
    holder: Name,
    config: LeaseConfig,
    planted: Planted,
    shared: Arc<Shared>,
) {
    let belief = Rc::new(Belief::new(lease.clone(), shared.clone()));
    node.enlist(belief.clone());
    let line = Line::new(node.clone(), store, config.try_timeout);
    let task = Task {
        node: node.clone(),
        lease,
        holder,
        planted,
        shared,
        line,
        belief,
        asked: BTreeMap::new(),
        sends: BTreeMap::new(),
        next_id: 0,
    };
    node.spawn(task.run());
}

struct Task {
    node: Node,
    lease: Name,
    holder: Name,
    planted: Planted,
    shared: Arc<Shared>,
    line: Line,
    belief: Rc<Belief>,
    asked: BTreeMap<u64, Asked>,
    /// True time of recent sends, by the local time at which they were decided.
    sends: BTreeMap<Nanos, Nanos>,
    next_id: u64,
}

/// A request that was sent, and its call while that is open.
struct Asked {
    what: lease::Request,
    call: Option<Call>,
}

impl Task {
    async fn run(mut self) {
        if self.planted.has(Flaw::ResumeAfterRestart) {
            self.take_up_old_term().await;
        }
        loop {
            let (wake, requests) = self.tick();
            self.tell();
            if self.planted.has(Flaw::ResumeAfterRestart) {
                self.keep_term().await;
            }
            for request in requests {
                self.send(request).await;
            }
            let shared = self.shared.clone();
            let sleep = async {
                match wake {
                    Some(wake) => shared.clock.sleep_until(wake).await,
                    None => std::future::pending().await,
                }
            };
            let incoming = tokio::select! {
                biased;
                incoming = self.line.next() => Some(incoming),
                () = shared.poke.notified() => None,
                () = sleep => None,
            };
            if let Some(incoming) = incoming {
                self.take(incoming);
            }
        }
    }

    async fn take_up_old_term(&mut self) {
        if let Some(old) = old_term::read(&self.node, &self.lease).await {
            let now = self.node.now();
            self.shared.state().client.resume(now, old.token);
            self.holder = old.holder;
        }
    }

    async fn keep_term(&self) {
        let told = self.belief.told();
        if let Some((holder, token)) = told.and_then(|told| Some((told.holder, told.token?))) {
            old_term::keep(&self.node, &self.lease, OldTerm { holder, token }).await;
        }
    }

    fn tick(&mut self) -> (Option<Nanos>, Vec<lease::Request>) {
        let now = self.shared.clock.now();
        let mut state = self.shared.state();
        let requests: Vec<_> = std::iter::from_fn(|| state.client.tick(now)).collect();
        if !requests.is_empty() {
            self.sends.insert(now, self.node.recorder().now());
            if self.sends.len() > REMEMBERED {
                self.sends.pop_first();
            }
        }
        (state.client.wake_at(), requests)
    }

    async fn send(&mut self, what: lease::Request) {
        self.next_id += 1;
        let id = self.next_id;
        let (lease, holder) = (self.lease.clone(), self.holder.clone());
        let (op, frame) = match what {
            lease::Request::Acquire { request, ttl } => (
                Op::Acquire(Acquire {
                    lease: lease.clone(),
                    holder: holder.clone(),
                    request,
                    ttl,
                }),
                Request::Acquire {
                    id,
                    lease,
                    holder,
                    request,
                    ttl,
                },
            ),
            lease::Request::Renew {
                token,
                attempt,
                ttl,
            } => (
                Op::Renew(Renew {
                    lease: lease.clone(),
                    holder: holder.clone(),
                    token: Some(token),
                    attempt,
                    ttl,
                }),
                Request::Renew {
                    id,
                    lease,
                    holder,
                    token,
                    attempt,
                    ttl,
                },
            ),
            lease::Request::Release { token } => (
                Op::Release(Release {
                    lease: lease.clone(),
                    holder: holder.clone(),
                    token: Some(token),
                }),
                Request::Release {
                    id,
                    lease,
                    holder,
                    token,
                },
            ),
        };
        let call = self.node.invoke(op).await;
        self.asked.insert(
            id,
            Asked {
                what,
                call: Some(call),
            },
        );
        if self.asked.len() > REMEMBERED
            && let Some((_, forgotten)) = self.asked.pop_first()
            && let Some(call) = forgotten.call
        {
            call.info(Failure::new("timeout"));
        }
        for overtaken in self.line.send(frame).await {
            self.never_left(&overtaken, "overtaken");
        }
    }

    fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Connected => {}
            Incoming::Unreachable(requests) => {
                for request in requests {
                    self.never_left(&request, "connection-refused");
                }
                let (now, jitter) = (self.shared.clock.now(), self.node.random_below(WHOLE));
                self.shared.state().client.on_unreachable(now, jitter);
            }
            Incoming::Reply(reply) => self.take_reply(reply),
            Incoming::Ended { all } => {
                if all {
                    for asked in self.asked.values_mut() {
                        if let Some(call) = asked.call.take() {
                            call.info(Failure::new("connection-broken"));
                        }
                    }
                }
            }
        }
    }

    fn never_left(&mut self, request: &Request, why: &'static str) {
        let asked = self.asked.remove(&request.id());
        if let Some(call) = asked.and_then(|asked| asked.call) {
            call.fail(Failure::new(why));
        }
    }

    /// An answer, perhaps late or a second time: the core is told in any case, the
    /// call is completed once.
    fn take_reply(&mut self, reply: Reply) {
        let Some(asked) = reply.id().and_then(|id| self.asked.get_mut(&id)) else {
            return;
        };
        let call = asked.call.take();
        let expiry = reply.expires();
        let answer = match (&asked.what, reply) {
            (&lease::Request::Acquire { request, .. }, Reply::AcquireReply { answer, .. }) => {
                granted(call, &answer);
                match answer {
                    Outcome::Ok(token) => lease::Reply::Granted { request, token },
                    Outcome::Refused { retry_after, .. } => lease::Reply::AcquireDenied {
                        request,
                        retry_after,
                    },
                }
            }
            (&lease::Request::Renew { attempt, .. }, Reply::RenewReply { answer, .. }) => {
                if done(call, &answer) {
                    lease::Reply::Renewed { attempt }
                } else {
                    lease::Reply::RenewDenied { attempt }
                }
            }
            (&lease::Request::Release { token }, Reply::ReleaseReply { answer, .. }) => {
                if done(call, &answer) {
                    lease::Reply::Released { token }
                } else {
                    lease::Reply::ReleaseDenied { token }
                }
            }
            _ => {
                tracing::warn!(target: "deposed", "a reply of another kind than its request");
                return;
            }
        };
        let (now, jitter) = (self.shared.clock.now(), self.node.random_below(WHOLE));
        {
            let mut state = self.shared.state();
            state.client.on_reply(now, &answer, jitter);
            if let Some(expires) = expiry {
                state.client.told_expiry(expires);
            }
        }
        self.tell();
    }

    /// Records a change of belief, and wakes whoever waits for it.
    fn tell(&mut self) {
        let sent = |local| self.true_time_of_send(local);
        self.belief.tell(&self.node, &self.holder, sent);
    }

    fn true_time_of_send(&self, local: Nanos) -> Nanos {
        let known = self.sends.get(&local).copied();
        known.unwrap_or_else(|| self.shared.clock.true_time_of(local))
    }
}

fn granted(call: Option<Call>, answer: &Outcome<Token>) {
    let Some(call) = call else { return };
    match answer {
        Outcome::Ok(token) => call.ok(Answer::Token(*token)),
        Outcome::Refused { error, .. } => call.fail(error.clone()),
    }
}

/// Completes a call whose answer is done or refused; whether it was done.
fn done(call: Option<Call>, answer: &Outcome<()>) -> bool {
    match (call, answer) {
        (Some(call), Outcome::Ok(())) => call.ok(Answer::None),
        (Some(call), Outcome::Refused { error, .. }) => call.fail(error.clone()),
        (None, _) => {}
    }
    matches!(answer, Outcome::Ok(()))
}

//! One candidate: what to send, what to make of the answers, and whether to lead.

mod leaving;

use deposed_checkers::history::{Nanos, Token};

use super::config::{LeaseConfig, PPB, part};
use super::message::{Reply, Request};
use crate::flaw::{Flaw, Planted};
use leaving::Leaving;

/// Why and until when a client believes that it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Belief {
    /// The term's token.
    pub token: Token,
    /// When the belief ends by itself, exclusive, on the client's clock. `None`,
    /// never, only with a planted flaw.
    pub until: Option<Nanos>,
    /// The send that the belief counts from, on the client's clock.
    pub sent: Nanos,
}

/// How many renewals are remembered as unanswered; the oldest is given up first.
const TRIES_IN_FLIGHT: usize = 8;

/// A candidate's side of one lease. Contends from the start and after every loss.
///
/// The shell around it calls [`tick`](Self::tick) at [`wake_at`](Self::wake_at), sends
/// what it says, and hands in answers. [`is_leader`](Self::is_leader) needs neither:
/// it compares the clock with the end of the belief, so a client that was paused
/// knows on waking that it was deposed, before it has heard of anything.
///
/// A belief is one unbroken interval a term: once over it does not come back, not
/// even if a late answer would have extended it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseClient {
    config: LeaseConfig,
    planted: Planted,
    /// The id of the last acquire.
    requests: u64,
    /// The id of the last renewal.
    attempts: u64,
    /// The highest token that storage called stale; never led with again.
    stale: Option<Token>,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Waits, then contends.
    Idle { until: Nanos },
    /// Has sent an acquire, perhaps several times.
    Asking {
        counts: Span,
        retry_at: Nanos,
        retried: bool,
    },
    /// Has been granted a term.
    Term(Term),
    /// Has resigned; works off what it had in hand, then releases.
    Leaving(Leaving),
    /// Contends no more. Only with a planted flaw.
    Out,
}

/// From a send to the end of the window that counts from it.
///
/// Behaviour depends on `until` alone, which keeps its meaning when it is rebased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Span {
    sent: Nanos,
    until: Nanos,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Term {
    token: Token,
    standing: Standing,
    /// When the next renewal is due.
    renew_at: Nanos,
    /// Unanswered renewals, oldest first.
    tries: Vec<Try>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Standing {
    /// Leads until the span is over.
    Believed(Span),
    /// The grant came when its window was over. Leads once a renewal is answered in
    /// time; gives the term up if none is.
    Unproven { until: Nanos },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Try {
    attempt: u64,
    counts: Span,
}

impl LeaseClient {
    /// A client that contends at once. It is a new holder: nothing of an earlier
    /// process's terms is taken up.
    pub fn new(config: LeaseConfig, now: Nanos, planted: Planted) -> Self {
        let state = State::Idle { until: now };
        Self {
            config,
            planted,
            requests: 0,
            attempts: 0,
            stale: None,
            state,
        }
    }

    /// Takes up a term of the process before. Only with a planted flaw.
    pub fn resume(&mut self, now: Nanos, token: Token) {
        if self.planted.has(Flaw::ResumeAfterRestart) {
            self.state = State::Term(Term {
                token,
                standing: Standing::Believed(self.span_from(now)),
                renew_at: now,
                tries: Vec::new(),
            });
        }
    }

    /// What to send now, if anything. Call it again until it says `None`, at
    /// [`wake_at`](Self::wake_at) and after every other call.
    pub fn tick(&mut self, now: Nanos) -> Option<Request> {
        self.end_what_is_over(now);
        let ttl = self.config.ttl;
        let next_at = now.saturating_add(self.try_timeout());
        let counts = self.span_from(now);
        match &mut self.state {
            State::Idle { until } if now >= *until => {
                self.requests = self.requests.saturating_add(1);
                self.state = State::Asking {
                    counts,
                    retry_at: next_at,
                    retried: false,
                };
                Some(Request::Acquire {
                    request: self.requests,
                    ttl,
                })
            }
            State::Asking {
                counts: first,
                retry_at,
                retried,
            } if now >= *retry_at => {
                (*retry_at, *retried) = (next_at, true);
                if self.planted.has(Flaw::CountFromLastTry) {
                    *first = counts;
                }
                Some(Request::Acquire {
                    request: self.requests,
                    ttl,
                })
            }
            State::Term(term) if now >= term.renew_at => {
                self.attempts = self.attempts.saturating_add(1);
                if term.tries.len() == TRIES_IN_FLIGHT {
                    term.tries.remove(0);
                }
                term.tries.push(Try {
                    attempt: self.attempts,
                    counts,
                });
                term.renew_at = next_at;
                Some(Request::Renew {
                    token: term.token,
                    attempt: self.attempts,
                    ttl,
                })
            }
            State::Leaving(leaving) => leaving.release_if_due(now, next_at),
            _ => None,
        }
    }

    /// Takes an answer in. `jitter_ppb`, from 0 to 1e9, spreads the wait after a
    /// refused acquire over the configured range.
    ///
    /// Answers to what is no longer asked are ignored. A renewal's answer counts
    /// from that renewal's own send and never moves the belief's end back.
    pub fn on_reply(&mut self, now: Nanos, reply: &Reply, jitter_ppb: u64) {
        self.end_what_is_over(now);
        match *reply {
            Reply::Granted { request, token } if request == self.requests => {
                self.granted(now, token)
            }
            Reply::AcquireDenied {
                request,
                retry_after,
            } if request == self.requests => {
                if let State::Asking { .. } = self.state {
                    let until = now.saturating_add(self.wait(jitter_ppb, retry_after));
                    self.state = State::Idle { until };
                }
            }
            Reply::Renewed { attempt } => self.renewed(now, attempt),
            Reply::RenewDenied { attempt } => {
                if let State::Term(term) = &self.state
                    && term.tries.iter().any(|tried| tried.attempt == attempt)
                {
                    self.lose_term(now);
                }
            }
            Reply::Released { token } | Reply::ReleaseDenied { token } => {
                if let State::Leaving(leaving) = &self.state
                    && leaving.release.is_some()
                    && leaving.token == token
                {
                    self.state = State::Idle {
                        until: self.others_turn(now),
                    };
                }
            }
            Reply::Granted { .. } | Reply::AcquireDenied { .. } => {}
        }
    }

    /// The store has told when the lease ends, on *its* wall clock. Who counts durations
    /// on a clock of his own has no use for it.
    pub fn told_expiry(&mut self, expires: Nanos) {
        if self.planted.has(Flaw::WallClockExpiry)
            && let State::Term(term) = &mut self.state
            && let Standing::Believed(span) = &mut term.standing
        {
            span.until = expires;
        }
    }

    /// The last send surely did not leave (its connection was refused): waits before
    /// the next. An acquire none of whose tries left is forgotten, so that the next
    /// counts from its own send.
    pub fn on_unreachable(&mut self, now: Nanos, jitter_ppb: u64) {
        let later = now.saturating_add(self.wait(jitter_ppb, None));
        match &mut self.state {
            State::Asking { retried: false, .. } => self.state = State::Idle { until: later },
            State::Asking { retry_at, .. } => *retry_at = later,
            State::Term(term) if !term.tries.is_empty() => term.renew_at = term.renew_at.min(later),
            State::Leaving(Leaving {
                release: Some(release),
                ..
            }) => release.next_at = later,
            State::Idle { .. } | State::Term(_) | State::Leaving(_) | State::Out => {}
        }
    }

    /// Whether this client may act as the leader at `now`. Asks nobody.
    pub fn is_leader(&self, now: Nanos) -> bool {
        self.belief()
            .is_some_and(|belief| belief.until.is_none_or(|until| now < until))
    }

    /// What the client believes in its current term; it may be over already if
    /// [`tick`](Self::tick) has not been called since.
    pub fn belief(&self) -> Option<Belief> {
        let (token, span) = match &self.state {
            State::Term(Term {
                token,
                standing: Standing::Believed(span),
                ..
            }) => (*token, *span),
            State::Leaving(Leaving {
                token,
                still: Some(span),
                ..
            }) => (*token, *span),
            _ => return None,
        };
        let endless = self.planted.has(Flaw::BeliefIsAFlag) || self.blocked_in_a_call();
        let until = (!endless).then_some(span.until);
        Some(Belief {
            token: self.worn(token),
            until,
            sent: span.sent,
        })
    }

    /// Whether it looks at its clock only when a renewal's call has returned. Never, but
    /// with a planted flaw.
    fn blocked_in_a_call(&self) -> bool {
        match &self.state {
            State::Term(term) => term.is_blocked_in_a_call(self.planted),
            _ => false,
        }
    }

    /// How much longer [`is_leader`](Self::is_leader) stays true if nothing comes.
    pub fn remaining(&self, now: Nanos) -> Nanos {
        self.belief().map_or(0, |belief| {
            belief.until.unwrap_or(u64::MAX).saturating_sub(now)
        })
    }

    /// The token of the current term, believed or not, until its release is sent.
    pub fn token(&self) -> Option<Token> {
        match &self.state {
            State::Term(term) => Some(self.worn(term.token)),
            State::Leaving(leaving) if leaving.release.is_none() || leaving.still.is_some() => {
                Some(self.worn(leaving.token))
            }
            _ => None,
        }
    }

    /// When [`tick`](Self::tick) next has something to do, the end of the belief
    /// included; in the past if it is overdue. `None`: not before another call.
    pub fn wake_at(&self) -> Option<Nanos> {
        match &self.state {
            State::Idle { until } => Some(*until),
            State::Asking { retry_at, .. } => Some(*retry_at),
            State::Term(term) => Some(
                term.ends(self.planted)
                    .map_or(term.renew_at, |end| end.min(term.renew_at)),
            ),
            State::Leaving(leaving) => leaving.wake_at(),
            State::Out => None,
        }
    }

    /// Storage has called `token` stale. If it is the current term's, there is a
    /// newer leader: the belief ends at once and the token is never led with again.
    /// While a resigned term's work is still in hand the term stays until it is drained.
    pub fn on_stale_token(&mut self, now: Nanos, token: Token) {
        if self.token() != Some(token) || self.planted.has(Flaw::StaleRetry) {
            return;
        }
        self.stale = self.stale.max(Some(token));
        if let State::Term(_) = self.state {
            self.lose_term(now);
        }
    }

    /// The same client with `now` as time 0. Clients that behave alike from here on
    /// are equal, so that a search of all states meets each once. The send that a
    /// belief counts from is in the past, and so becomes 0.
    pub fn rebased(&self, now: Nanos) -> Self {
        let mut client = self.clone();
        match &mut client.state {
            State::Idle { until } => *until = until.saturating_sub(now),
            State::Asking {
                counts, retry_at, ..
            } => {
                counts.rebase(now);
                *retry_at = retry_at.saturating_sub(now);
            }
            State::Term(term) => {
                match &mut term.standing {
                    Standing::Believed(span) => span.rebase(now),
                    Standing::Unproven { until } => *until = until.saturating_sub(now),
                }
                term.renew_at = term.renew_at.saturating_sub(now);
                term.tries
                    .iter_mut()
                    .for_each(|tried| tried.counts.rebase(now));
            }
            State::Leaving(leaving) => leaving.rebase(now),
            State::Out => {}
        }
        client
    }

    /// The same client with its tokens, and the ids of its acquires and renewals, told by
    /// other names. Where the new ones stand in the order of the old, it behaves alike.
    pub fn renamed(
        &self,
        mut token: impl FnMut(Token) -> Token,
        mut request: impl FnMut(u64) -> u64,
        mut attempt: impl FnMut(u64) -> u64,
    ) -> Self {
        let mut client = self.clone();
        client.requests = request(client.requests);
        client.attempts = attempt(client.attempts);
        client.stale = client.stale.map(&mut token);
        match &mut client.state {
            State::Term(term) => {
                term.token = token(term.token);
                for tried in &mut term.tries {
                    tried.attempt = attempt(tried.attempt);
                }
            }
            State::Leaving(leaving) => leaving.token = token(leaving.token),
            State::Idle { .. } | State::Asking { .. } | State::Out => {}
        }
        client
    }

    /// Whether an answer can change anything. One that cannot now never will: what it
    /// answers is no longer asked, and its id is not given again.
    pub fn awaits(&self, reply: &Reply) -> bool {
        match (reply, &self.state) {
            (
                Reply::Granted { request, .. } | Reply::AcquireDenied { request, .. },
                State::Asking { .. },
            ) => *request == self.requests,
            (
                Reply::Renewed { attempt } | Reply::RenewDenied { attempt },
                State::Term(Term { tries, .. }),
            ) => tries.iter().any(|tried| tried.attempt == *attempt),
            (
                Reply::Released { token } | Reply::ReleaseDenied { token },
                State::Leaving(leaving),
            ) => leaving.token == *token && leaving.release.is_some(),
            _ => false,
        }
    }

    /// The same client at a later moment of an instant of a coarse clock: what it waited for
    /// before it sends an acquire or a release again is over, of a release's tries the last
    /// alone is left, and it is too late to tell it that a send did not leave. What is due by
    /// the clock (its belief's end, a renewal) is so still.
    pub fn waited(&self) -> Self {
        let mut client = self.clone();
        match &mut client.state {
            State::Idle { until } => *until = 0,
            State::Asking {
                retry_at, retried, ..
            } => (*retry_at, *retried) = (0, true),
            State::Leaving(leaving) => {
                if let Some(release) = &mut leaving.release {
                    release.next_at = 0;
                    release.tries_left = release.tries_left.min(1);
                    if release.tries_left == 0 && leaving.still.is_none() {
                        client.state = State::Idle { until: 0 };
                    }
                }
            }
            State::Term(_) | State::Out => {}
        }
        client
    }

    /// The same client after it has looked at its clock: every call that could tell a term
    /// which is over from none ends it first, but for one that calls its token stale.
    pub fn after_a_look(&self, now: Nanos) -> Self {
        let mut client = self.clone();
        client.end_what_is_over(now);
        client
    }

    /// The same client without what storage has called stale. Where a token is granted
    /// once it never tells: what is granted later is higher.
    pub fn forgetting_stale(&self) -> Self {
        Self {
            stale: None,
            ..self.clone()
        }
    }

    /// Ends a term whose belief is over, an unproven one that waited too long, and a
    /// release that nobody answers.
    fn end_what_is_over(&mut self, now: Nanos) {
        match &mut self.state {
            State::Term(term) => {
                if term.ends(self.planted).is_some_and(|end| now >= end) {
                    self.lose_term(now);
                }
            }
            State::Leaving(leaving) => {
                if leaving.is_over(now) {
                    self.state = State::Idle {
                        until: self.others_turn(now),
                    };
                }
            }
            State::Idle { .. } | State::Asking { .. } | State::Out => {}
        }
    }

    fn lose_term(&mut self, now: Nanos) {
        self.state = match self.planted.has(Flaw::NeverContendsAgain) {
            true => State::Out,
            false => State::Idle { until: now },
        };
    }

    fn granted(&mut self, now: Nanos, token: Token) {
        let State::Asking { mut counts, .. } = self.state else {
            return;
        };
        if self.stale.is_some_and(|stale| token <= stale) {
            self.state = State::Idle {
                until: self.others_turn(now),
            };
            return;
        }
        let dead = now >= counts.until && self.planted.has(Flaw::WaiterTrustsDeadLease);
        if dead || self.planted.has(Flaw::CountFromReply) {
            counts = self.span_from(now);
        }
        let (standing, renew_at) = match now < counts.until {
            true => (
                Standing::Believed(counts),
                counts.until.saturating_sub(self.due_before_end()),
            ),
            false => (
                Standing::Unproven {
                    until: self.span_from(now).until,
                },
                now,
            ),
        };
        self.state = State::Term(Term {
            token,
            standing,
            renew_at,
            tries: Vec::new(),
        });
    }

    fn renewed(&mut self, now: Nanos, attempt: u64) {
        let from_now = (self.planted.has(Flaw::CountFromReply)
            || self.planted.has(Flaw::LateRenewExtends) && self.is_late(attempt))
        .then(|| self.span_from(now));
        let due_before_end = self.due_before_end();
        let State::Term(term) = &mut self.state else {
            return;
        };
        let Some(tried) = term.tries.iter().find(|tried| tried.attempt == attempt) else {
            return;
        };
        let counts = from_now.unwrap_or(tried.counts);
        // What is left was sent later, so the belief never moves back. Nor is its window
        // over: it ends no earlier than the term does, and the term is not over.
        term.tries.retain(|tried| tried.attempt > attempt);
        term.standing = Standing::Believed(counts);
        // A newer try in flight keeps its time to be answered.
        let due = counts.until.saturating_sub(due_before_end);
        term.renew_at = if term.tries.is_empty() {
            due
        } else {
            due.max(term.renew_at)
        };
    }

    /// Whether a renewal's answer comes after the next try was sent.
    fn is_late(&self, attempt: u64) -> bool {
        let State::Term(term) = &self.state else {
            return false;
        };
        term.tries.last().is_some_and(|last| last.attempt > attempt)
    }

    /// How long before a window's end its renewal is due. Told from the end, since
    /// the beginning may lie before time 0.
    fn due_before_end(&self) -> Nanos {
        self.window().saturating_sub(self.config.renew_after())
    }

    fn span_from(&self, sent: Nanos) -> Span {
        Span {
            sent,
            until: sent.saturating_add(self.window()),
        }
    }

    fn window(&self) -> Nanos {
        if self.planted.has(Flaw::LostAfterTwoTtls) {
            self.config.ttl.saturating_mul(2)
        } else if self.planted.has(Flaw::NoDriftMargin) {
            self.config.ttl
        } else {
            self.config.safe_window()
        }
    }

    /// At least 1, so that a tick does not repeat itself within one instant.
    fn try_timeout(&self) -> Nanos {
        let whole = self.planted.has(Flaw::OneTryIsTheBudget);
        if whole {
            self.window().max(1)
        } else {
            self.config.try_timeout.max(1)
        }
    }

    /// The token that a granted term works under.
    fn worn(&self, granted: Token) -> Token {
        if self.planted.has(Flaw::SelfMadeToken) {
            granted.saturating_add(1)
        } else {
            granted
        }
    }

    /// The wait after a refusal: the backoff, or shorter if the lease is free sooner.
    fn wait(&self, jitter_ppb: u64, retry_after: Option<Nanos>) -> Nanos {
        let jitter = jitter_ppb.min(PPB);
        let (min, max) = (self.config.backoff_min, self.config.backoff_max);
        let backoff = min.saturating_add(part(max.saturating_sub(min), jitter));
        let free = |after: Nanos| after.saturating_add(part(min, jitter));
        retry_after.map_or(backoff, |after| backoff.min(free(after)))
    }
}

impl Span {
    /// With `now` as time 0.
    fn rebase(&mut self, now: Nanos) {
        self.sent = self.sent.saturating_sub(now);
        self.until = self.until.saturating_sub(now);
    }
}

impl Term {
    fn is_blocked_in_a_call(&self, planted: Planted) -> bool {
        planted.has(Flaw::RenewCallOutlivesLease) && !self.tries.is_empty()
    }

    /// When the term ends if nothing comes.
    fn ends(&self, planted: Planted) -> Option<Nanos> {
        match self.standing {
            Standing::Believed(_) if planted.has(Flaw::BeliefIsAFlag) => None,
            Standing::Believed(_) if self.is_blocked_in_a_call(planted) => None,
            Standing::Believed(span) => Some(span.until),
            Standing::Unproven { until } => Some(until),
        }
    }
}

#[cfg(test)]
mod calls;
#[cfg(all(test, feature = "flaws"))]
mod flaws;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

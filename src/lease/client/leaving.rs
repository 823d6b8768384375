//! The end of a term that its leader wants: the belief first, then the work in hand, then
//! the release.

use deposed_checkers::history::{Nanos, Token};

use super::{LeaseClient, Request, Span, Standing, State};
use crate::flaw::Flaw;

/// How often a release is sent when no answer comes.
const RELEASE_TRIES: u32 = 3;

/// A term that was resigned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leaving {
    pub(super) token: Token,
    /// `None`: the work in hand is not over yet.
    pub(super) release: Option<Releasing>,
    /// What it goes on believing. Only with a planted flaw.
    pub(super) still: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Releasing {
    pub(super) next_at: Nanos,
    pub(super) tries_left: u32,
}

impl LeaseClient {
    /// Gives the term up: the belief ends at once, the release waits for
    /// [`drained`](Self::drained). Without a term there is nothing to give up.
    pub fn resign(&mut self, now: Nanos) {
        self.end_what_is_over(now);
        let early = self.planted.has(Flaw::ReleaseBeforeStepDown);
        if let State::Term(term) = &self.state {
            let still = match term.standing {
                Standing::Believed(span) if early => Some(span),
                _ => None,
            };
            let release = early.then_some(Releasing {
                next_at: now,
                tries_left: RELEASE_TRIES,
            });
            self.state = State::Leaving(Leaving {
                token: term.token,
                release,
                still,
            });
        }
    }

    /// The work that was in hand when the term was resigned is over: the next tick
    /// releases. The release is repeated a few times if no answer comes; then, and
    /// when it is answered, others get a turn before this client contends again.
    pub fn drained(&mut self, now: Nanos) {
        if let State::Leaving(leaving) = &mut self.state
            && leaving.release.is_none()
        {
            leaving.release = Some(Releasing {
                next_at: now,
                tries_left: RELEASE_TRIES,
            });
        }
    }

    /// The work in hand is over, but something that it set off may land yet, where no
    /// token can stop it: the lease is not given back. It runs out at the store, and the
    /// lock-delay follows.
    pub fn leave_to_expire(&mut self, now: Nanos) {
        if let State::Leaving(leaving) = &self.state
            && leaving.release.is_none()
        {
            self.state = State::Idle {
                until: self.others_turn(now),
            };
        }
    }

    /// After a release: whoever else contends waits `backoff_max` at most between
    /// two tries, so each has one before this client's next.
    pub(super) fn others_turn(&self, now: Nanos) -> Nanos {
        now.saturating_add(self.config.backoff_max)
    }
}

impl Leaving {
    /// Sends the release when it is due; again at `next_at`.
    pub(super) fn release_if_due(&mut self, now: Nanos, next_at: Nanos) -> Option<Request> {
        let release = self.release.as_mut()?;
        if now < release.next_at {
            return None;
        }
        release.tries_left -= 1;
        release.next_at = next_at;
        Some(Request::Release { token: self.token })
    }

    /// When it next has something to do.
    pub(super) fn wake_at(&self) -> Option<Nanos> {
        let release = self.release.map(|release| release.next_at);
        let still = self.still.map(|span| span.until);
        release.into_iter().chain(still).min()
    }

    /// Whether nobody answers the release; ends what is believed no longer.
    pub(super) fn is_over(&mut self, now: Nanos) -> bool {
        self.still = self.still.filter(|span| now < span.until);
        self.release
            .is_some_and(|release| release.tries_left == 0 && now >= release.next_at)
    }

    /// With `now` as time 0.
    pub(super) fn rebase(&mut self, now: Nanos) {
        if let Some(still) = &mut self.still {
            still.rebase(now);
        }
        if let Some(release) = &mut self.release {
            release.next_at = release.next_at.saturating_sub(now);
        }
    }
}

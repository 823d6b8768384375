//! What a search of all states asks of a client beside what it does: another client that
//! behaves alike, and what can change nothing any more. Nothing else calls these.

use deposed_checkers::history::{Nanos, Token};

use super::{LeaseClient, Reply, Span, Standing, State, Term};

impl LeaseClient {
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
}

impl Span {
    /// With `now` as time 0.
    pub(super) fn rebase(&mut self, now: Nanos) {
        self.sent = self.sent.saturating_sub(now);
        self.until = self.until.saturating_sub(now);
    }
}

#[cfg(test)]
mod tests;

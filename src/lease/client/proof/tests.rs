//! Each client that stands for another, against that other, in whatever order it is called.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::super::{
    calls::{Call, Seen, calls, seen},
    world::{TTL, runner},
    *,
};

/// A client that was called in any order, and what its clock reads.
#[derive(Clone, Debug)]
struct Met {
    client: LeaseClient,
    now: Nanos,
}

/// Most of them have had a term.
fn met() -> impl Strategy<Value = Met> {
    let timing = LeaseConfig {
        renew_fraction_ppb: PPB / 10,
        try_timeout: TTL / 7,
        backoff_max: 0,
        backoff_min: 0,
        ..LeaseConfig::for_ttl(TTL)
    };
    (0..4u8, 0..3u64, 0..12usize, calls()).prop_map(move |(leads, token, renews, calls)| {
        let mut client = LeaseClient::new(timing.clone(), 0, Planted::NONE);
        let mut now = 0;
        if leads > 0 {
            let reply = Reply::Granted { request: 1, token };
            seen(&mut client, 0, &[(0, Call::Tick), (10, Call::Reply(reply))]);
            now = 10;
        }
        // Ticks alone leave renewals unanswered.
        let ticks = vec![(TTL / 12, Call::Tick); renews];
        for calls in [ticks, calls.into_iter().take(6).collect()] {
            seen(&mut client, now, &calls);
            now += calls.iter().map(|(wait, _)| wait).sum::<Nanos>();
        }
        Met { client, now }
    })
}

/// Checks what holds of any client, and that it was asked of one that has a term, with
/// unanswered renewals, often enough to mean anything.
fn check<S: Strategy>(with: S, check: impl Fn(Met, S::Value) -> Result<bool, TestCaseError>) {
    let meant = Cell::new(0);
    let counted = |(met, with)| {
        meant.set(meant.get() + u32::from(check(met, with)?));
        Ok(())
    };
    runner(1_500)
        .run(&(met(), with), counted)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(meant.get() > 150, "only {} were meant", meant.get());
}

impl LeaseClient {
    fn unanswered(&self) -> &[Try] {
        match &self.state {
            State::Term(term) => &term.tries,
            _ => &[],
        }
    }

    /// Belief, as far as it leads anybody to do anything.
    fn leads_under(&self, now: Nanos) -> (bool, Nanos, Option<Token>) {
        (self.is_leader(now), self.remaining(now), self.token())
    }

    fn told(&self, now: Nanos, reply: &Reply) -> Self {
        let mut client = self.clone();
        client.on_reply(now, reply, 0);
        client
    }
}

/// A number of before by another name that keeps the order; one that is new since is as much
/// higher than the highest as it was.
fn name(highest: u64, number: u64) -> u64 {
    match number <= highest {
        true => 3 * number + 2,
        false => 3 * highest + 2 + (number - highest),
    }
}

#[test]
fn a_renamed_client_does_the_same_under_the_names() {
    check(calls(), |Met { mut client, now }, after| {
        let (requests, attempts) = (client.requests, client.attempts);
        let token = |token| 5 * token + 4;
        let request = |id| name(requests, id);
        let attempt = |id| name(attempts, id);
        let mut renamed = client.renamed(token, request, attempt);
        let reply = |reply: &Reply| match *reply {
            Reply::Granted {
                request: id,
                token: of,
            } => Reply::Granted {
                request: request(id),
                token: token(of),
            },
            Reply::AcquireDenied {
                request: id,
                retry_after,
            } => Reply::AcquireDenied {
                request: request(id),
                retry_after,
            },
            Reply::Renewed { attempt: id } => Reply::Renewed {
                attempt: attempt(id),
            },
            Reply::RenewDenied { attempt: id } => Reply::RenewDenied {
                attempt: attempt(id),
            },
            Reply::Released { token: of } => Reply::Released { token: token(of) },
            Reply::ReleaseDenied { token: of } => Reply::ReleaseDenied { token: token(of) },
        };
        let called = after.iter().map(|(wait, call)| {
            let call = match call {
                Call::Reply(told) => Call::Reply(reply(told)),
                Call::Stale(of) => Call::Stale(token(*of)),
                other => other.clone(),
            };
            (*wait, call)
        });
        let called: Vec<_> = called.collect();
        let mut expected = seen(&mut client, now, &after);
        let meant = expected
            .iter()
            .any(|seen| seen.sent.is_some() && seen.leads);
        for seen in &mut expected {
            rename(seen, token, request, attempt);
        }
        prop_assert_eq!(seen(&mut renamed, now, &called), expected);
        Ok(meant)
    });
}

fn rename(
    seen: &mut Seen,
    token: impl Fn(Token) -> Token,
    request: impl Fn(u64) -> u64,
    attempt: impl Fn(u64) -> u64,
) {
    seen.token = seen.token.map(&token);
    match &mut seen.sent {
        Some(Request::Acquire { request: id, .. }) => *id = request(*id),
        Some(Request::Renew {
            token: of,
            attempt: id,
            ..
        }) => (*of, *id) = (token(*of), attempt(*id)),
        Some(Request::Release { token: of }) => *of = token(*of),
        None => {}
    }
}

#[test]
fn what_is_not_awaited_changes_nothing_and_never_will() {
    check(calls(), |Met { mut client, now }, after| {
        let given = (0..=client.requests).flat_map(|request| {
            [
                Reply::Granted { request, token: 99 },
                Reply::AcquireDenied {
                    request,
                    retry_after: None,
                },
            ]
        });
        let tried = (0..=client.attempts)
            .flat_map(|attempt| [Reply::Renewed { attempt }, Reply::RenewDenied { attempt }]);
        let replies: Vec<Reply> = given.chain(tried).collect();
        let dead: Vec<&Reply> = replies
            .iter()
            .filter(|reply| !client.awaits(reply))
            .collect();
        let meant = !client.unanswered().is_empty() && !dead.is_empty();
        seen(&mut client, now, &after);
        let now = now + after.iter().map(|(wait, _)| wait).sum::<Nanos>();
        let looked = client.after_a_look(now);
        for reply in dead {
            prop_assert!(!client.awaits(reply), "{:?}", reply);
            prop_assert_eq!(&client.told(now, reply), &looked);
        }
        Ok(meant)
    });
}

/// Without grants of a token lower than the least.
fn granting(least: Token, after: Vec<(Nanos, Call)>) -> Vec<(Nanos, Call)> {
    let possible = |call: &Call| match *call {
        Call::Reply(Reply::Granted { token, .. }) => token >= least,
        _ => true,
    };
    after
        .into_iter()
        .filter(|(_, call)| possible(call))
        .collect()
}

#[test]
fn a_stale_token_below_all_that_are_granted_is_forgotten_unnoticed() {
    check(calls(), |Met { mut client, now }, after| {
        // So that there is something to forget.
        if let Some(token) = client.token() {
            client.on_stale_token(now, token);
        }
        let mut forgetting = client.forgetting_stale();
        let meant = forgetting != client;
        let least = client.stale.map_or(0, |stale| stale + 1);
        let after = granting(least, after);
        prop_assert_eq!(
            seen(&mut forgetting, now, &after),
            seen(&mut client, now, &after)
        );
        Ok(meant)
    });
}

#[test]
fn a_client_that_has_waited_sends_at_once_and_believes_what_it_did() {
    check(Just(()), |Met { client, now }, ()| {
        let client = client.after_a_look(now);
        let mut waited = client.waited();
        prop_assert_eq!(waited.leads_under(now), client.leads_under(now));
        let sent = waited.tick(now);
        match &client.state {
            State::Idle { .. } | State::Asking { .. } => {
                prop_assert!(matches!(sent, Some(Request::Acquire { .. })), "{:?}", sent);
                prop_assert_eq!(waited.waited().tick(now), sent, "and again");
            }
            State::Leaving(Leaving {
                release: Some(release),
                token,
                ..
            }) if release.tries_left > 0 => {
                prop_assert_eq!(sent, Some(Request::Release { token: *token }));
                let again = waited.waited().tick(now);
                prop_assert!(
                    !matches!(again, Some(Request::Release { .. })),
                    "one try does"
                );
            }
            State::Term(_) => prop_assert_eq!(&client.waited(), &client),
            State::Leaving(_) | State::Out => {}
        }
        Ok(!matches!(client.state, State::Term(_)))
    });
}

#[test]
fn a_client_that_has_looked_at_its_clock_does_what_it_does_at_its_next_call() {
    check((calls(), 0..TTL), |Met { client, now }, (after, wait)| {
        let now = now + wait;
        let looked = client.after_a_look(now);
        let meant = looked != client;
        for first in [
            Call::Tick,
            Call::Resign,
            Call::Reply(Reply::Renewed { attempt: 1 }),
        ] {
            let after: Vec<_> = [(0, first)].into_iter().chain(after.clone()).collect();
            prop_assert_eq!(
                seen(&mut looked.clone(), now, &after),
                seen(&mut client.clone(), now, &after)
            );
        }
        Ok(meant)
    });
}

//! Calls in any order, at any time: a client that is rebased behaves as it did, and none
//! panics.

use std::cell::Cell;

use proptest::prelude::*;

use super::{
    world::{TTL, runner},
    *,
};

/// What a shell may call, at any time and in any order.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Tick,
    Reply(Reply),
    Unreachable,
    Resign,
    Drained,
    Stale(Token),
}

pub(super) fn calls() -> impl Strategy<Value = Vec<(Nanos, Call)>> {
    let id = 0..6u64;
    let reply = prop_oneof![
        (id.clone(), id.clone()).prop_map(|(request, token)| Reply::Granted { request, token }),
        (id.clone(), proptest::option::of(0..TTL)).prop_map(|(request, retry_after)| {
            Reply::AcquireDenied {
                request,
                retry_after,
            }
        }),
        id.clone().prop_map(|attempt| Reply::Renewed { attempt }),
        id.clone()
            .prop_map(|attempt| Reply::RenewDenied { attempt }),
        id.clone().prop_map(|token| Reply::Released { token }),
        id.clone().prop_map(|token| Reply::ReleaseDenied { token }),
    ];
    let call = prop_oneof![
        6 => Just(Call::Tick),
        8 => reply.prop_map(Call::Reply),
        1 => Just(Call::Unreachable),
        1 => Just(Call::Resign),
        1 => Just(Call::Drained),
        1 => id.prop_map(Call::Stale),
    ];
    proptest::collection::vec((0..TTL / 4, call), 1..60)
}

/// What can be seen of a client after a call: what it sent, whether it leads and for how long
/// yet, its token, and after how long it wakes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) sent: Option<Request>,
    pub(super) leads: bool,
    remaining: Nanos,
    pub(super) token: Option<Token>,
    wake_in: Option<Nanos>,
}

/// Makes the calls, each after its wait, and tells what could be seen.
pub(super) fn seen(client: &mut LeaseClient, begin: Nanos, calls: &[(Nanos, Call)]) -> Vec<Seen> {
    let mut now = begin;
    let mut seen = Vec::new();
    for (wait, call) in calls {
        now = now.saturating_add(*wait);
        let sent = match call {
            Call::Tick => client.tick(now),
            Call::Reply(reply) => {
                client.on_reply(now, reply, 300_000_000);
                None
            }
            Call::Unreachable => {
                client.on_unreachable(now, 300_000_000);
                None
            }
            Call::Resign => {
                client.resign(now);
                None
            }
            Call::Drained => {
                client.drained(now);
                None
            }
            Call::Stale(token) => {
                client.on_stale_token(now, *token);
                None
            }
        };
        let wake_at = client.wake_at();
        seen.push(Seen {
            sent,
            leads: client.is_leader(now),
            remaining: client.remaining(now),
            token: client.token(),
            wake_in: wake_at.map(|at| at.saturating_sub(now)),
        });
    }
    seen
}

#[test]
fn a_rebased_client_behaves_as_it_did() {
    let led = Cell::new(0);
    let check = |(leading, before, after, begin): (bool, Vec<_>, Vec<_>, Nanos)| {
        let granted = Call::Reply(Reply::Granted {
            request: 1,
            token: 1,
        });
        let lead = [(0, Call::Tick), (TTL / 50, granted)]
            .into_iter()
            .filter(|_| leading);
        let before = lead.chain(before).collect::<Vec<_>>();
        let mut client = LeaseClient::new(LeaseConfig::for_ttl(TTL), begin, Planted::NONE);
        seen(&mut client, begin, &before);
        let now = begin + before.iter().map(|(wait, _)| wait).sum::<Nanos>();
        led.set(led.get() + u32::from(client.is_leader(now)));
        let mut rebased = client.rebased(now);
        prop_assert_eq!(
            &rebased,
            &rebased.rebased(0),
            "rebasing twice is rebasing once"
        );
        prop_assert_eq!(
            seen(&mut rebased, 0, &after),
            seen(&mut client, now, &after)
        );
        Ok(())
    };
    let input = (any::<bool>(), calls(), calls(), 0..1_000_000_000u64);
    runner(2_000)
        .run(&input, check)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(
        led.get() > 100,
        "only {} were leading when rebased",
        led.get()
    );
}

#[test]
fn no_clock_reading_and_no_number_makes_the_client_panic() {
    let begin = prop_oneof![Just(0), Just(u64::MAX), Just(u64::MAX - TTL), any::<u64>()];
    let check = |(calls, begin, odd): (Vec<(Nanos, Call)>, Nanos, Nanos)| {
        let config = LeaseConfig {
            ttl: odd,
            max_drift_ppb: odd,
            try_timeout: odd,
            backoff_max: odd,
            ..LeaseConfig::for_ttl(TTL)
        };
        for config in [config, LeaseConfig::for_ttl(TTL)] {
            let mut client = LeaseClient::new(config, begin, Planted::NONE);
            seen(&mut client, begin, &calls);
            client.rebased(begin);
        }
        Ok(())
    };
    let input = (
        calls(),
        begin,
        prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
    );
    runner(500)
        .run(&input, check)
        .unwrap_or_else(|failure| panic!("{failure}"));
}

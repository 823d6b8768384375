//! Each planted flaw changes what it says, beside the correct client; and those that
//! break belief safety are found by the world that the correct client passes.

use super::world::{Step, TTL, play, runner, stories};
use super::*;

const WINDOW: Nanos = 900;

fn config() -> LeaseConfig {
    LeaseConfig {
        ttl: 1_000,
        max_drift_ppb: 50_000_000,
        safety_margin: 50,
        renew_fraction_ppb: 333_333_334,
        try_timeout: 150,
        backoff_min: 20,
        backoff_max: 120,
        lock_delay: 0,
    }
}

/// The same story told to a client with a flaw and to one without.
fn both<T>(flaw: Flaw, story: impl Fn(LeaseClient) -> T) -> (T, T) {
    let told = |planted| story(LeaseClient::new(config(), 0, planted));
    (told(Planted::NONE), told(Planted::one(flaw)))
}

/// Asked at 0, granted token 5 at 10.
fn lead(mut client: LeaseClient) -> LeaseClient {
    client.tick(0);
    client.on_reply(
        10,
        &Reply::Granted {
            request: 1,
            token: 5,
        },
        0,
    );
    client
}

fn until(client: &LeaseClient) -> Option<Option<Nanos>> {
    client.belief().map(|belief| belief.until)
}

#[test]
fn count_from_reply_begins_the_window_at_the_answer() {
    let acquired = both(Flaw::CountFromReply, |client| until(&lead(client)));
    assert_eq!(acquired, (Some(Some(WINDOW)), Some(Some(10 + WINDOW))));
    let renewed = both(Flaw::CountFromReply, |client| {
        let mut client = lead(client);
        client.tick(310);
        client.on_reply(400, &Reply::Renewed { attempt: 1 }, 0);
        until(&client)
    });
    assert_eq!(
        renewed,
        (Some(Some(310 + WINDOW)), Some(Some(400 + WINDOW)))
    );
}

#[test]
fn count_from_last_try_counts_a_retried_acquire_from_the_retry() {
    let retried = both(Flaw::CountFromLastTry, |mut client| {
        client.tick(0);
        client.tick(150);
        client.on_reply(
            160,
            &Reply::Granted {
                request: 1,
                token: 5,
            },
            0,
        );
        until(&client)
    });
    assert_eq!(retried, (Some(Some(WINDOW)), Some(Some(150 + WINDOW))));
}

#[test]
fn waiter_trusts_dead_lease_leads_on_an_answer_that_came_after_its_window() {
    for (answered, correct, flawed) in [
        (WINDOW - 1, Some(WINDOW), Some(WINDOW)),
        (WINDOW, None, Some(2 * WINDOW)),
    ] {
        let told = both(Flaw::WaiterTrustsDeadLease, |mut client| {
            client.tick(0);
            let (request, token) = (1, 5);
            client.on_reply(answered, &Reply::Granted { request, token }, 0);
            until(&client).flatten()
        });
        assert_eq!(told, (correct, flawed));
    }
}

#[test]
fn resume_after_restart_takes_up_the_old_token() {
    let told = both(Flaw::ResumeAfterRestart, |mut client| {
        client.resume(10, 5);
        (client.token(), client.is_leader(10), client.tick(10))
    });
    let ttl = config().ttl;
    let acquire = Request::Acquire { request: 1, ttl };
    let (token, attempt) = (5, 1);
    let renew = Request::Renew {
        token,
        attempt,
        ttl,
    };
    let correct = (None, false, Some(acquire));
    assert_eq!(told, (correct, (Some(5), true, Some(renew))));
}

#[test]
fn the_window_is_the_ttl_without_a_margin_and_two_of_them_at_leisure() {
    for (flaw, window) in [
        (Flaw::NoDriftMargin, 1_000),
        (Flaw::LostAfterTwoTtls, 2_000),
    ] {
        let told = both(flaw, |client| until(&lead(client)));
        assert_eq!(told, (Some(Some(WINDOW)), Some(Some(window))), "{flaw}");
    }
}

#[test]
fn lost_after_two_ttls_renews_as_early_as_ever() {
    let told = both(Flaw::LostAfterTwoTtls, |client| lead(client).wake_at());
    assert_eq!(told, (Some(300), Some(300)));
}

#[test]
fn belief_is_a_flag_until_it_is_told_otherwise() {
    let paused = both(Flaw::BeliefIsAFlag, |client| {
        let mut client = lead(client);
        client.tick(5_000);
        (client.is_leader(5_000), until(&client))
    });
    assert_eq!(paused, ((false, None), (true, Some(None))));
    let told = both(Flaw::BeliefIsAFlag, |client| {
        let mut client = lead(client);
        client.tick(400);
        client.on_reply(410, &Reply::RenewDenied { attempt: 1 }, 0);
        client.is_leader(410)
    });
    assert_eq!(told, (false, false));
}

#[test]
fn wall_clock_expiry_believes_until_the_instant_that_the_store_has_told() {
    let told = both(Flaw::WallClockExpiry, |client| {
        let mut client = lead(client);
        client.told_expiry(5_000);
        until(&client)
    });
    assert_eq!(told, (Some(Some(WINDOW)), Some(Some(5_000))));
}

#[test]
fn late_renew_extends_counts_an_answer_from_now_once_the_next_try_was_sent() {
    let answered = |tries: &'static [Nanos], at| {
        both(Flaw::LateRenewExtends, move |client| {
            let mut client = lead(client);
            for now in tries {
                let _ = client.tick(*now);
            }
            client.on_reply(at, &Reply::Renewed { attempt: 1 }, 0);
            until(&client)
        })
    };
    let from_send = Some(Some(310 + WINDOW));
    assert_eq!(answered(&[310], 400), (from_send, from_send), "in time");
    let late = answered(&[310, 460], 470);
    assert_eq!(late, (from_send, Some(Some(470 + WINDOW))));
}

#[test]
fn renew_call_outlives_lease_leads_on_while_a_renewal_is_unanswered() {
    let blocked = both(Flaw::RenewCallOutlivesLease, |client| {
        let mut client = lead(client);
        client.tick(310);
        client.tick(5_000);
        let blocked = client.is_leader(5_000);
        client.on_reply(5_001, &Reply::Renewed { attempt: 1 }, 0);
        client.tick(5_001);
        (blocked, client.is_leader(5_001))
    });
    assert_eq!(
        blocked,
        ((false, false), (true, true)),
        "the retry is unanswered"
    );
    let asked = both(Flaw::RenewCallOutlivesLease, |client| {
        let mut client = lead(client);
        client.tick(310);
        client.on_reply(1_300, &Reply::Renewed { attempt: 1 }, 0);
        client.tick(1_300);
        client.is_leader(1_300)
    });
    assert_eq!(asked, (false, false), "it returned, and the window is over");
    let unasked = both(Flaw::RenewCallOutlivesLease, |client| {
        lead(client).is_leader(WINDOW)
    });
    assert_eq!(unasked, (false, false), "no call, no block");
}

#[test]
fn release_before_step_down_believes_until_the_release_is_answered() {
    let resigned = both(Flaw::ReleaseBeforeStepDown, |client| {
        let mut client = lead(client);
        client.resign(100);
        let sent = client.tick(100);
        let believed = client.is_leader(100);
        client.on_reply(120, &Reply::Released { token: 5 }, 0);
        (sent, believed, client.is_leader(120))
    });
    let release = Some(Request::Release { token: 5 });
    assert_eq!(resigned, ((None, false, false), (release, true, false)));
}

#[test]
fn release_before_step_down_still_ends_with_the_window() {
    let mut client = lead(LeaseClient::new(
        config(),
        0,
        Planted::one(Flaw::ReleaseBeforeStepDown),
    ));
    client.resign(WINDOW - 1);
    client.tick(WINDOW - 1);
    assert_eq!(client.wake_at(), Some(WINDOW));
    client.tick(WINDOW);
    assert_eq!(client.belief(), None);
}

#[test]
fn self_made_token_works_under_one_more_and_renews_what_was_granted() {
    let told = both(Flaw::SelfMadeToken, |client| {
        let mut client = lead(client);
        let token = client.token();
        (
            token,
            client.belief().map(|belief| belief.token),
            client.tick(300),
        )
    });
    let renew = Some(Request::Renew {
        token: 5,
        attempt: 1,
        ttl: 1_000,
    });
    assert_eq!(
        told,
        ((Some(5), Some(5), renew.clone()), (Some(6), Some(6), renew))
    );
}

#[test]
fn stale_retry_leads_on() {
    let told = both(Flaw::StaleRetry, |client| {
        let mut client = lead(client);
        client.on_stale_token(100, 5);
        client.is_leader(100)
    });
    assert_eq!(told, (false, true));
}

#[test]
fn one_try_is_the_budget_lets_a_lost_renewal_cost_the_lease() {
    let told = both(Flaw::OneTryIsTheBudget, |client| {
        let mut client = lead(client);
        let mut renewals = 0;
        for now in 300..WINDOW {
            renewals += u32::from(client.tick(now).is_some());
        }
        renewals
    });
    assert_eq!(told, (4, 1));
}

#[test]
fn never_contends_again_is_out_after_one_lost_term_but_not_after_a_refusal() {
    let lost = both(Flaw::NeverContendsAgain, |client| {
        let mut client = lead(client);
        (client.tick(WINDOW).is_some(), client.wake_at().is_some())
    });
    assert_eq!(lost, ((true, true), (false, false)));
    let refused = both(Flaw::NeverContendsAgain, |mut client| {
        client.tick(0);
        client.on_reply(
            10,
            &Reply::AcquireDenied {
                request: 1,
                retry_after: None,
            },
            0,
        );
        client.tick(30).is_some()
    });
    assert_eq!(refused, (true, true));
}

/// Whether the world finds a belief outside its lease.
fn is_found(flaw: Flaw) -> bool {
    let check = |story| play(Planted::one(flaw), &story).map(|_| ());
    runner(4_000).run(&stories(), check).is_err()
}

#[test]
fn the_world_finds_every_flaw_that_lets_a_belief_outlive_its_lease() {
    for flaw in [
        Flaw::CountFromReply,
        Flaw::CountFromLastTry,
        Flaw::NoDriftMargin,
        Flaw::LostAfterTwoTtls,
        Flaw::BeliefIsAFlag,
        Flaw::LateRenewExtends,
        Flaw::RenewCallOutlivesLease,
        Flaw::ReleaseBeforeStepDown,
        Flaw::WaiterTrustsDeadLease,
        Flaw::SelfMadeToken,
        Flaw::ForgetsLease,
        Flaw::GrantsEarly,
        Flaw::RenewsTheDead,
        Flaw::StaleExpiry,
        Flaw::ReleasesAnything,
    ] {
        assert!(is_found(flaw), "{flaw}");
    }
}

/// On clocks that run true: only the flaw breaks the belief.
fn is_broken_by(flaw: Flaw, steps: Vec<Step>) -> bool {
    let story = (vec![PPB; 4], steps);
    assert!(
        play(Planted::NONE, &story).is_ok(),
        "the correct client keeps to its lease"
    );
    play(Planted::one(flaw), &story).is_err()
}

#[test]
fn the_same_token_again_lets_a_delayed_release_end_a_live_term() {
    let LeaseConfig {
        try_timeout,
        backoff_max,
        ..
    } = LeaseConfig::for_ttl(TTL);
    let steps = vec![
        Step::Exchange(0, 10),
        Step::Resign(0),
        Step::Drained(0),
        // The release is delayed until the client has given it up and asks again.
        Step::Wake(0),
        Step::Wait(try_timeout),
        Step::Wake(0),
        Step::Wait(try_timeout),
        Step::Wake(0),
        Step::Wait(try_timeout),
        Step::Wake(0),
        Step::Wait(backoff_max),
        Step::Exchange(0, 10),
        Step::Deliver(0),
    ];
    assert!(is_broken_by(Flaw::SameTokenAgain, steps));
}

#[test]
fn a_token_given_twice_lets_a_copied_release_end_a_later_term() {
    let backoff_max = LeaseConfig::for_ttl(TTL).backoff_max;
    let steps = vec![
        Step::Exchange(0, 10),
        Step::Resign(0),
        Step::Drained(0),
        Step::Wake(0),
        Step::Repeat(0),
        // The release is applied and answered; its copy is still under way.
        Step::Deliver(0),
        Step::Deliver(1),
        Step::Wait(backoff_max),
        Step::Exchange(0, 10),
        Step::Deliver(0),
    ];
    assert!(is_broken_by(Flaw::SameHolderSameToken, steps.clone()));
    assert!(is_broken_by(Flaw::ReleaseResetsCounter, steps));
}

#[test]
fn the_world_finds_nothing_in_a_flaw_that_leaves_belief_safe() {
    for flaw in [
        Flaw::NoBarrier,
        Flaw::BarrierAfterWrite,
        Flaw::StaleRetry,
        Flaw::OneTryIsTheBudget,
        Flaw::NeverContendsAgain,
        Flaw::WorksUnfenced,
        Flaw::AcquireTwice,
        Flaw::AcceptsAnything,
        Flaw::FenceIsANoOp,
        Flaw::RefusesEqual,
    ] {
        assert!(!is_found(flaw), "{flaw}");
    }
}

//! The client's rules, one test each. Times are the client's own clock's.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::*;

mod leaving;

/// Where the tests begin: offsets do not matter.
const T: Nanos = 1_000_000;
const WINDOW: Nanos = 900;
const TRY: Nanos = 150;

/// A ttl of 1,000, of which 900 are safe; renewal due after 300, tries of 150.
fn config() -> LeaseConfig {
    LeaseConfig {
        ttl: 1_000,
        max_drift_ppb: 50_000_000,
        safety_margin: 50,
        renew_fraction_ppb: 333_333_334,
        try_timeout: TRY,
        backoff_min: 20,
        backoff_max: 120,
        lock_delay: 0,
    }
}

fn client() -> LeaseClient {
    LeaseClient::new(config(), T, Planted::NONE)
}

const fn acquire(request: u64) -> Option<Request> {
    Some(Request::Acquire {
        request,
        ttl: 1_000,
    })
}

const fn renew(token: Token, attempt: u64) -> Option<Request> {
    Some(Request::Renew {
        token,
        attempt,
        ttl: 1_000,
    })
}

const fn granted(request: u64, token: Token) -> Reply {
    Reply::Granted { request, token }
}

const fn denied(request: u64, retry_after: Option<Nanos>) -> Reply {
    Reply::AcquireDenied {
        request,
        retry_after,
    }
}

impl LeaseClient {
    fn hear(&mut self, now: Nanos, reply: Reply) {
        self.on_reply(now, &reply, 0);
    }

    fn until(&self) -> Option<Nanos> {
        self.belief().and_then(|belief| belief.until)
    }
}

/// Asked at `T`, told at `T + 10` that it has token 5.
fn leader() -> LeaseClient {
    let mut client = client();
    assert_eq!(client.tick(T), acquire(1));
    client.hear(T + 10, granted(1, 5));
    assert!(client.is_leader(T + 10));
    client
}

/// Granted when its window was over: a term without belief, its first renewal sent
/// at `T + 1_000`.
fn unproven() -> LeaseClient {
    let mut client = client();
    client.tick(T);
    client.hear(T + 1_000, granted(1, 5));
    assert_eq!(client.tick(T + 1_000), renew(5, 1));
    client
}

#[test]
fn it_contends_at_once_and_says_so_once() {
    let mut client = client();
    assert_eq!(client.wake_at(), Some(T));
    assert_eq!(client.tick(T), acquire(1));
    assert_eq!(client.tick(T), None);
    assert_eq!(client.wake_at(), Some(T + TRY));
}

#[test]
fn belief_counts_from_the_send_and_ends_on_the_clock_alone() {
    let client = leader();
    assert_eq!(
        client.belief(),
        Some(Belief {
            token: 5,
            until: Some(T + WINDOW),
            sent: T
        })
    );
    assert!(client.is_leader(T + WINDOW - 1));
    assert!(!client.is_leader(T + WINDOW));
    assert_eq!(client.remaining(T + 10), WINDOW - 10);
    assert_eq!(client.remaining(T + 5_000), 0);
}

#[test]
fn a_retried_acquire_keeps_its_id_and_counts_from_its_first_send() {
    let mut client = client();
    client.tick(T);
    assert_eq!(client.tick(T + TRY - 1), None);
    assert_eq!(client.tick(T + TRY), acquire(1));
    assert_eq!(client.tick(T + 2 * TRY), acquire(1));
    client.hear(T + 400, granted(1, 5));
    assert_eq!(client.until(), Some(T + WINDOW));
    assert_eq!(client.belief().unwrap().sent, T);
}

#[test]
fn a_grant_whose_window_is_over_is_renewed_not_believed() {
    let mut client = client();
    client.tick(T);
    client.hear(T + WINDOW, granted(1, 5));
    assert!(!client.is_leader(T + WINDOW));
    assert_eq!(client.belief(), None);
    assert_eq!(client.token(), Some(5));
    assert_eq!(client.tick(T + WINDOW), renew(5, 1));
    client.hear(T + WINDOW + 40, Reply::Renewed { attempt: 1 });
    let until = Some(T + 2 * WINDOW);
    assert_eq!(
        client.belief(),
        Some(Belief {
            token: 5,
            until,
            sent: T + WINDOW
        })
    );
}

#[test]
fn an_unproven_term_that_is_denied_is_asked_for_anew() {
    let mut client = unproven();
    client.hear(T + 1_010, Reply::RenewDenied { attempt: 1 });
    assert_eq!(client.token(), None);
    assert_eq!(client.tick(T + 1_010), acquire(2));
}

#[test]
fn an_unproven_term_gives_up_after_a_window_so_that_a_slow_link_does_not_keep_the_lease() {
    let mut client = unproven();
    let mut sent = Vec::new();
    while client.wake_at().unwrap() < T + 1_000 + WINDOW {
        let now = client.wake_at().unwrap();
        sent.extend(client.tick(now));
    }
    assert_eq!(sent.len(), 5);
    client.hear(T + 1_000 + WINDOW, Reply::Renewed { attempt: 6 });
    assert_eq!((client.belief(), client.token()), (None, None));
    assert_eq!(client.tick(T + 1_000 + WINDOW), acquire(2));
}

#[test]
fn a_renewal_is_due_after_its_fraction_of_the_window() {
    let mut client = leader();
    assert_eq!(client.wake_at(), Some(T + 300));
    assert_eq!(client.tick(T + 299), None);
    assert_eq!(client.tick(T + 300), renew(5, 1));
    client.hear(T + 310, Reply::Renewed { attempt: 1 });
    assert_eq!(client.until(), Some(T + 300 + WINDOW));
    assert_eq!(client.wake_at(), Some(T + 600));
}

#[test]
fn two_lost_renewals_in_a_row_cost_nothing() {
    let mut client = leader();
    assert_eq!(client.tick(T + 300), renew(5, 1));
    assert_eq!(client.tick(T + 300 + TRY), renew(5, 2));
    assert_eq!(client.tick(T + 300 + 2 * TRY), renew(5, 3));
    let last_moment = T + 300 + 3 * TRY - 1;
    assert!(client.is_leader(last_moment));
    client.hear(last_moment, Reply::Renewed { attempt: 3 });
    assert_eq!(client.until(), Some(T + 600 + WINDOW));
}

#[test]
fn a_late_answer_counts_from_its_own_send() {
    let mut client = leader();
    client.tick(T + 300);
    client.tick(T + 450);
    client.hear(T + 500, Reply::Renewed { attempt: 1 });
    assert_eq!(client.until(), Some(T + 300 + WINDOW));
    client.hear(T + 800, Reply::Renewed { attempt: 2 });
    assert_eq!(client.until(), Some(T + 450 + WINDOW));
}

#[test]
fn answers_out_of_order_or_twice_never_move_the_end_of_belief_back() {
    let mut client = leader();
    client.tick(T + 300);
    client.tick(T + 450);
    client.hear(T + 500, Reply::Renewed { attempt: 2 });
    let after = client.clone();
    client.hear(T + 510, Reply::Renewed { attempt: 1 });
    client.hear(T + 515, Reply::RenewDenied { attempt: 1 });
    client.hear(T + 520, Reply::Renewed { attempt: 2 });
    client.hear(T + 530, granted(1, 5));
    client.hear(T + 540, denied(1, None));
    assert_eq!(client, after);
}

#[test]
fn an_answer_to_a_try_never_sent_is_ignored() {
    let mut client = leader();
    let before = client.clone();
    for attempt in [0, 1, 77] {
        client.hear(T + 100, Reply::Renewed { attempt });
        client.hear(T + 100, Reply::RenewDenied { attempt });
    }
    client.hear(T + 100, Reply::Released { token: 5 });
    client.hear(T + 100, Reply::ReleaseDenied { token: 5 });
    assert_eq!(client, before);
}

#[test]
fn an_answered_try_leaves_a_newer_one_its_time() {
    let mut client = leader();
    client.tick(T + 300);
    client.tick(T + 480);
    client.hear(T + 490, Reply::Renewed { attempt: 1 });
    assert_eq!(
        client.wake_at(),
        Some(T + 480 + TRY),
        "the second try may yet be answered"
    );
    client.hear(T + 500, Reply::Renewed { attempt: 2 });
    assert_eq!(client.wake_at(), Some(T + 480 + 300));
}

#[test]
fn the_tick_past_its_end_ends_the_term_and_asks_with_a_new_id() {
    let mut client = leader();
    client.tick(T + 300);
    assert_eq!(client.tick(T + WINDOW), acquire(2));
    assert_eq!((client.belief(), client.token()), (None, None));
}

#[test]
fn a_belief_that_is_over_does_not_come_back() {
    let mut client = leader();
    client.tick(T + 300);
    // Paused until past the end; the answer is read before anything else.
    client.hear(T + WINDOW, Reply::Renewed { attempt: 1 });
    assert!(!client.is_leader(T + WINDOW));
    assert_eq!(client.tick(T + WINDOW), acquire(2));
}

#[test]
fn the_end_of_belief_is_a_time_to_wake() {
    let mut client = leader();
    client.tick(T + 310);
    let mut last = None;
    while client.belief().is_some() {
        last = client.wake_at();
        client.tick(last.unwrap());
    }
    assert_eq!(last, Some(T + WINDOW));
}

#[test]
fn a_denied_renewal_ends_the_term_at_once() {
    let mut client = leader();
    client.tick(T + 300);
    client.hear(T + 310, Reply::RenewDenied { attempt: 1 });
    assert!(!client.is_leader(T + 310));
    assert_eq!(client.tick(T + 310), acquire(2));
}

#[test]
fn answers_of_an_earlier_term_do_not_touch_the_next() {
    let mut client = leader();
    client.tick(T + 300);
    client.tick(T + WINDOW);
    client.hear(T + 910, granted(2, 6));
    let before = client.clone();
    client.hear(T + 920, Reply::Renewed { attempt: 1 });
    client.hear(T + 920, Reply::RenewDenied { attempt: 1 });
    client.hear(T + 920, granted(1, 5));
    assert_eq!(client, before);
}

#[test]
fn a_refused_acquire_backs_off_within_the_range_and_asks_with_a_new_id() {
    for (jitter, wait) in [(0, 20), (500_000_000, 70), (PPB, 120), (u64::MAX, 120)] {
        let mut client = client();
        client.tick(T);
        client.on_reply(T + 5, &denied(1, None), jitter);
        assert_eq!(client.wake_at(), Some(T + 5 + wait));
        assert_eq!(client.tick(T + 5 + wait - 1), None);
        assert_eq!(client.tick(T + 5 + wait), acquire(2));
    }
}

#[test]
fn a_wait_is_not_longer_than_the_lease_is_held() {
    for (held, jitter, wait) in [
        (30, 0, 20),
        (30, 500_000_000, 40),
        (7, PPB, 27),
        (1_000, PPB, 120),
    ] {
        let mut client = client();
        client.tick(T);
        client.on_reply(T, &denied(1, Some(held)), jitter);
        assert_eq!(
            client.wake_at(),
            Some(T + wait),
            "held {held}, jitter {jitter}"
        );
    }
}

#[test]
fn a_refusal_of_an_earlier_request_is_ignored() {
    let mut client = client();
    client.tick(T);
    client.hear(T, denied(1, None));
    client.tick(T + 20);
    let before = client.clone();
    client.hear(T + 25, denied(1, None));
    client.hear(T + 25, granted(1, 5));
    assert_eq!(client, before);
}

#[test]
fn an_acquire_that_surely_did_not_leave_counts_for_nothing() {
    let mut client = client();
    client.tick(T);
    client.on_unreachable(T + 1, 0);
    assert_eq!(client.wake_at(), Some(T + 21));
    assert_eq!(client.tick(T + 21), acquire(2));
    client.hear(T + 30, granted(2, 5));
    assert_eq!(client.until(), Some(T + 21 + WINDOW));
}

#[test]
fn an_acquire_an_earlier_try_of_which_left_still_counts_from_that() {
    let mut client = client();
    client.tick(T);
    client.tick(T + TRY);
    client.on_unreachable(T + TRY + 1, 0);
    assert_eq!(client.tick(T + TRY + 20), None);
    assert_eq!(client.tick(T + TRY + 21), acquire(1));
    client.hear(T + 200, granted(1, 5));
    assert_eq!(client.until(), Some(T + WINDOW));
}

#[test]
fn a_renewal_that_did_not_leave_is_tried_again_after_the_backoff() {
    let mut client = leader();
    client.tick(T + 300);
    client.on_unreachable(T + 301, 0);
    assert_eq!(client.tick(T + 321), renew(5, 2));
    client.on_reply(T + 330, &Reply::Renewed { attempt: 2 }, 0);
    client.tick(T + 621);
    client.on_unreachable(T + 700, PPB);
    assert_eq!(
        client.wake_at(),
        Some(T + 621 + TRY),
        "never later than the try's own timeout"
    );
    let mut idle = leader();
    let before = idle.clone();
    idle.on_unreachable(T + 20, 0);
    assert_eq!(idle, before, "no renewal was in flight");
}

#[test]
fn a_stale_token_of_its_own_ends_the_belief_at_once() {
    let mut client = leader();
    client.on_stale_token(T + 100, 5);
    assert!(!client.is_leader(T + 100));
    assert_eq!(client.token(), None);
    assert_eq!(client.tick(T + 100), acquire(2));
}

#[test]
fn a_stale_token_of_another_term_is_ignored() {
    let mut client = leader();
    let before = client.clone();
    client.on_stale_token(T + 100, 4);
    client.on_stale_token(T + 100, 6);
    assert_eq!(client, before);
}

#[test]
fn a_token_called_stale_is_never_led_with_again() {
    let mut client = leader();
    client.on_stale_token(T + 100, 5);
    client.tick(T + 100);
    client.hear(T + 110, granted(2, 5));
    assert!(!client.is_leader(T + 110));
    assert_eq!(client.token(), None);
    assert_eq!(client.tick(T + 230), acquire(3));
    client.hear(T + 240, granted(3, 6));
    assert!(client.is_leader(T + 240));
}

#[test]
fn a_stale_token_while_draining_leaves_the_draining_to_its_end() {
    let mut client = leader();
    client.resign(T + 100);
    client.on_stale_token(T + 110, 5);
    assert_eq!(client.tick(T + 120), None);
    client.drained(T + 130);
    assert_eq!(client.tick(T + 130), Some(Request::Release { token: 5 }));
}

#[test]
fn unanswered_renewals_are_remembered_up_to_a_bound() {
    let mut client = LeaseClient::new(
        LeaseConfig {
            try_timeout: 1,
            ..config()
        },
        T,
        Planted::NONE,
    );
    client.tick(T);
    client.hear(T, granted(1, 5));
    for now in T + 300..T + 400 {
        assert!(client.tick(now).is_some());
    }
    let State::Term(term) = &client.state else {
        panic!("{client:?}")
    };
    let kept = term.tries.iter().map(|tried| tried.attempt);
    assert_eq!(
        kept.collect::<Vec<_>>(),
        (93..=100).collect::<Vec<_>>(),
        "the newest"
    );
    client.hear(T + 400, Reply::Renewed { attempt: 100 });
    assert_eq!(client.until(), Some(T + 399 + WINDOW));
}

#[test]
fn equal_situations_at_different_times_are_equal_and_hash_alike() {
    let story = |begin: Nanos| {
        let mut client = LeaseClient::new(config(), begin, Planted::NONE);
        let mut seen = Vec::new();
        let mut look = |client: &LeaseClient, now: Nanos| seen.push(client.rebased(begin + now));
        client.tick(begin);
        look(&client, 5);
        client.hear(begin + 10, granted(1, 5));
        look(&client, 20);
        client.tick(begin + 300);
        look(&client, 310);
        client.resign(begin + 320);
        client.drained(begin + 330);
        look(&client, 340);
        client.tick(begin + 340);
        client.hear(begin + 350, Reply::Released { token: 5 });
        look(&client, 360);
        seen
    };
    let (early, late) = (story(0), story(77_000));
    assert_eq!(early, late);
    let hasher = BuildHasherDefault::<DefaultHasher>::new();
    assert_eq!(hasher.hash_one(&early), hasher.hash_one(&late));
}

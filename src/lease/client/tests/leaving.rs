//! Resigning, draining, releasing.

use super::*;

#[test]
fn resigning_ends_the_belief_first_then_drains_then_releases() {
    let mut client = leader();
    client.resign(T + 100);
    assert!(!client.is_leader(T + 100));
    assert_eq!((client.belief(), client.wake_at()), (None, None));
    assert_eq!(
        client.tick(T + 400),
        None,
        "no release and no renewal while work is in hand"
    );
    assert_eq!(client.token(), Some(5), "the work in hand is this term's");
    client.drained(T + 410);
    assert_eq!(client.wake_at(), Some(T + 410));
    assert_eq!(client.tick(T + 410), Some(Request::Release { token: 5 }));
    assert_eq!(client.tick(T + 410), None);
    assert_eq!(client.token(), None);
}

#[test]
fn after_a_release_others_have_their_turn_first() {
    for answer in [
        Reply::Released { token: 5 },
        Reply::ReleaseDenied { token: 5 },
    ] {
        let mut client = leader();
        client.resign(T + 100);
        client.drained(T + 100);
        client.tick(T + 100);
        client.hear(T + 110, answer);
        assert_eq!(client.wake_at(), Some(T + 110 + 120), "the longest backoff");
        assert_eq!(client.tick(T + 230), acquire(2));
    }
}

#[test]
fn a_lease_left_to_expire_is_not_released() {
    let mut client = leader();
    client.resign(T + 100);
    client.leave_to_expire(T + 110);
    assert_eq!(client.token(), None);
    assert_eq!(client.tick(T + 229), None, "others have their turn first");
    assert_eq!(client.tick(T + 230), acquire(2));
    // A term that was not resigned, or whose release is under way, is not left.
    let mut client = leader();
    for resigned in [false, true] {
        if resigned {
            client.resign(T + 100);
            client.drained(T + 100);
        }
        let before = client.clone();
        client.leave_to_expire(T + 100);
        assert_eq!(client, before);
    }
}

#[test]
fn a_release_is_repeated_a_bounded_number_of_times() {
    let mut client = leader();
    client.resign(T + 100);
    client.drained(T + 100);
    let mut sent = Vec::new();
    while sent.last() != acquire(2).as_ref() {
        let now = client.wake_at().unwrap();
        sent.extend(client.tick(now));
    }
    assert_eq!(sent.len(), 4);
    assert!(
        sent[..3]
            .iter()
            .all(|request| *request == Request::Release { token: 5 })
    );
}

#[test]
fn an_answer_to_another_terms_release_is_ignored() {
    let mut client = leader();
    client.resign(T + 100);
    client.drained(T + 100);
    client.tick(T + 100);
    let before = client.clone();
    client.hear(T + 110, Reply::Released { token: 4 });
    assert_eq!(client, before);
}

#[test]
fn a_term_that_is_over_is_lost_not_resigned() {
    let mut client = leader();
    client.resign(T + WINDOW);
    assert_eq!(client.tick(T + WINDOW), acquire(2));
}

#[test]
fn a_stray_answer_while_draining_does_not_cut_it_short() {
    let mut client = leader();
    client.resign(T + 100);
    let before = client.clone();
    client.hear(T + 110, Reply::Released { token: 5 });
    assert_eq!(client, before);
}

#[test]
fn being_drained_twice_is_being_drained_once() {
    let mut client = leader();
    client.resign(T + 100);
    client.drained(T + 100);
    client.tick(T + 100);
    let before = client.clone();
    client.drained(T + 120);
    assert_eq!(client, before);
}

#[test]
fn without_a_term_there_is_nothing_to_resign_and_nothing_to_drain() {
    let mut client = client();
    client.tick(T);
    let before = client.clone();
    client.resign(T + 1);
    client.drained(T + 1);
    assert_eq!(client, before);
    let mut leading = leader();
    let before = leading.clone();
    leading.drained(T + 100);
    assert_eq!(leading, before, "it had not resigned");
}

//! Judging from the client side alone never convicts what the node side acquits.
//!
//! A naive model makes histories: three clients, a store and a storage node that
//! err at random, messages that are late or lost, calls that time out and whose
//! answers may be read late, servers that restart. Each history is judged with its
//! node events and without. The seeds are fixed, and so is what must be convicted
//! among them: a client side that acquits everything would be sound too.

use deposed_checkers::history::*;
use deposed_checkers::judge::judge;
use deposed_checkers::verdict::{Check, Verdict};
use serde_json::json;

mod correct;
mod model;
mod runs;

use model::Model;

/// The events that pass, as a history of their own.
fn only(events: &[Event], passes: fn(&Event) -> bool) -> Vec<Event> {
    let mut events: Vec<Event> = events
        .iter()
        .filter(|event| passes(event))
        .cloned()
        .collect();
    events
        .iter_mut()
        .enumerate()
        .for_each(|(index, event)| event.index = index as u64);
    events
}

fn is_node_side(event: &Event) -> bool {
    matches!(event.body, Body::Observed(_))
}

#[test]
fn the_client_side_never_convicts_what_the_node_side_acquits() {
    let header = json!({"deposed": 1, "lease": {"ttl": 30}});
    let header: Header = serde_json::from_value(header).unwrap();
    let checks = [
        Check::TokenMonotonicity,
        Check::StorageSafety,
        Check::ZombieWrite,
        Check::ElectionBarrier,
        Check::LeaseLinearizable,
    ];
    // Of each check: histories that the node side, the client side convict, and both acquit.
    let mut counts = checks.map(|_| (0, 0, 0));
    for seed in 0..4_000 {
        let (events, store_keeps) = Model::run(seed);
        let all = judge(&header, &events);
        let leases = all.of(Check::LeaseLinearizable).unwrap();
        assert!(
            !(store_keeps && leases.is_violated()),
            "seed {seed}: {leases:?}"
        );
        assert_eq!(
            all.of(Check::WellFormed),
            Some(&Verdict::Valid),
            "seed {seed}"
        );
        let clients = judge(&header, &only(&events, |event| !is_node_side(event)));
        let nodes = judge(&header, &only(&events, is_node_side));
        for (check, count) in checks.into_iter().zip(&mut counts) {
            // Storage safety alone takes both sides' word where it has both.
            let exact = if check == Check::StorageSafety {
                &nodes
            } else {
                &all
            };
            let (exact, client) = (exact.of(check).unwrap(), clients.of(check).unwrap());
            // From outside, tokens tell the order of grants.
            let tokens = all.of(Check::TokenMonotonicity).unwrap();
            if check == Check::LeaseLinearizable && tokens.is_violated() {
                continue;
            }
            assert!(
                !(client.is_violated() && *exact == Verdict::Valid),
                "seed {seed}, {check}: {client:?}"
            );
            count.0 += u32::from(exact.is_violated());
            count.1 += u32::from(client.is_violated());
            count.2 += u32::from(*exact == Verdict::Valid && *client == Verdict::Valid);
        }
    }
    for (check, (exact, client, valid)) in checks.into_iter().zip(counts) {
        println!("{check}: {exact} convicted, {client} of them from outside, {valid} acquitted");
        assert!(
            client * 5 > exact,
            "{check}: {client} of {exact} is too few to prove anything"
        );
        assert!(
            exact > 200 && valid > 200,
            "{check}: {exact} convicted, {valid} acquitted"
        );
    }
}

/// A correct system is convicted of nothing, however little is recorded of it.
#[test]
fn a_correct_system_is_convicted_of_nothing_by_its_clients_calls() {
    let mut claimed = Check::OF_LEASES.map(|_| 0);
    for seed in 0..3_000 {
        let (header, events) = correct::run(seed, None);
        for (nth, (check, verdict)) in judge(&header, &events).0.into_iter().enumerate() {
            assert!(
                matches!(verdict, Verdict::Valid | Verdict::NotClaimed(_)),
                "seed {seed}, {check}: {verdict:?}"
            );
            claimed[nth] += u32::from(verdict == Verdict::Valid);
        }
    }
    for (check, claimed) in Check::OF_LEASES.into_iter().zip(claimed) {
        println!("{check}: {claimed} valid");
        assert!(claimed > 300, "{check} judged {claimed} only");
    }
}

/// A store that breaks its promise is convicted by what clients were told.
#[test]
fn a_broken_promise_is_seen_from_outside() {
    use correct::Broken::*;
    let cases = [
        (GrantsEarly, Check::BeliefSafety),
        (GrantsEarly, Check::LeaseLinearizable),
        (GrantsEarly, Check::LockDelay),
        (TwoHolders, Check::BeliefSafety),
        (TwoHolders, Check::LeaseLinearizable),
        (ForgetsOwner, Check::BeliefSafety),
        (ForgetsOwner, Check::LeaseLinearizable),
        (GrantsNothing, Check::Failover),
    ];
    for (broken, check) in cases {
        let convicted = (0..200).filter(|seed| {
            let (header, events) = correct::run(*seed, Some(broken));
            judge(&header, &events).of(check).unwrap().is_violated()
        });
        let convicted = convicted.count();
        println!("{broken:?}: {convicted} of 200 convicted by {check}");
        assert!(convicted > 10, "{broken:?}: {convicted} of 200 by {check}");
    }
}

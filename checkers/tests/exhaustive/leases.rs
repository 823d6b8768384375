//! One lease of one store, up to nine events of its own account, and every way in
//! which the store can have come to them: what it did without recording it (a release
//! that a crash overtook, a grant that only the counter tells of, an owner forgotten
//! after its expiry) is tried out.

use std::collections::BTreeSet;

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::{Lines, Shares, compare_many, verdict_of};

const TTL: Nanos = 10;
const DELAY: Nanos = 8;

/// What a lease can be in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    holder: Name,
    /// `None`: only a restart tells of it.
    request: Option<u64>,
    token: Token,
    expiry: Nanos,
    released: bool,
}

/// Whether the store kept its promises, and whether it kept the lock-delay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// No early grant, no revival, no foreign release.
    Lease,
    LockDelay,
}

/// What may be after an event, of all that may have been before; nothing if it breaks
/// the promise.
fn after(
    before: Option<Term>,
    event: &Event,
    sent: &[Release],
    promise: Promise,
) -> Vec<Option<Term>> {
    let judges = |kept: bool, then: Option<Term>| match kept {
        true => vec![then],
        false => vec![],
    };
    let lease = promise == Promise::Lease;
    let Body::Observed(seen) = &event.body else {
        return vec![before];
    };
    match seen {
        Observation::Granted(granted) => {
            let (holder, token) = (granted.holder.clone(), granted.token.unwrap());
            let new = Some(Term {
                holder: holder.clone(),
                request: Some(granted.request),
                token,
                expiry: granted.clock + granted.ttl,
                released: false,
            });
            let Some(term) = before else { return vec![new] };
            let again = term.holder == holder
                && term.token == token
                && term
                    .request
                    .is_none_or(|request| request == granted.request);
            let closed = match promise {
                Promise::Lease => 0..term.expiry,
                Promise::LockDelay => 0..term.expiry + DELAY,
            };
            if term.released || !closed.contains(&granted.clock) {
                vec![new]
            } else if again {
                vec![Some(term)]
            } else {
                // Before the expiry it is not the lock-delay's.
                judges(!lease && granted.clock < term.expiry, new)
            }
        }
        Observation::Renewed(renewed) => {
            let Some(mut term) = before else {
                return vec![None];
            };
            let own = term.holder == renewed.holder && Some(term.token) == renewed.token;
            let live = !term.released && renewed.clock < term.expiry;
            if own && !term.released {
                term.expiry = term.expiry.max(renewed.clock + renewed.ttl);
            }
            judges(!lease || own && live, Some(term))
        }
        Observation::Released(released) => {
            let Some(mut term) = before else {
                return vec![None];
            };
            let own = term.holder == released.holder && Some(term.token) == released.token;
            term.released = true;
            judges(!lease || own, Some(term))
        }
        Observation::Denied(denied) => {
            let Some(term) = before else {
                return vec![None];
            };
            let own = term.holder == denied.holder && term.request == denied.request;
            let lives = !term.released && denied.clock < term.expiry;
            judges(!(lease && own && lives), Some(term))
        }
        // What the copy tells of no owner is forgotten.
        Observation::Restored(_) => vec![None],
        Observation::StoreRecovered(recovered) => {
            let found = &recovered.leases["leader"];
            came_back(before, found, recovered.clock, sent, lease)
        }
        _ => unreachable!("no other event is told"),
    }
}

fn came_back(
    before: Option<Term>,
    found: &RecoveredLease,
    clock: Nanos,
    sent: &[Release],
    lease: bool,
) -> Vec<Option<Term>> {
    let ttl = found.ttl.unwrap_or(TTL);
    let told = found.holder.clone().map(|holder| Term {
        holder,
        request: None,
        token: found.counter,
        expiry: clock + ttl,
        released: false,
    });
    let Some(term) = before else {
        return vec![told];
    };
    if found.counter > term.token {
        return vec![told];
    }
    let mut was = vec![term.clone()];
    let asked =
        |release: &Release| release.holder == term.holder && release.token == Some(term.token);
    if !term.released && sent.iter().any(asked) {
        was.push(Term {
            released: true,
            ..term.clone()
        });
    }
    let there =
        |term: &Term| found.holder.as_ref() == Some(&term.holder) && found.counter == term.token;
    let mut may_be = Vec::new();
    for term in was {
        if there(&term) {
            let again = Term {
                expiry: match term.released {
                    true => clock + ttl,
                    false => term.expiry.max(clock + ttl),
                },
                released: false,
                ..term.clone()
            };
            if !lease || !term.released {
                may_be.push(Some(again));
            }
        } else if term.released || clock >= term.expiry || !lease {
            may_be.push(Some(term));
        }
    }
    may_be
}

fn kept(events: &[Event], promise: Promise) -> bool {
    let mut may_be: BTreeSet<Option<Term>> = [None].into();
    let mut sent = Vec::new();
    // Restored from an old copy, it may have granted what it does not know of.
    let mut closed = 0;
    for event in events {
        match &event.body {
            Body::Observed(Observation::Restored(restored)) => closed = restored.clock + TTL,
            Body::Observed(Observation::Granted(granted))
                if promise == Promise::Lease && granted.clock < closed =>
            {
                return false;
            }
            _ => {}
        }
        if let Body::Invoke(Op::Release(release)) = &event.body {
            sent.push(release.clone());
        }
        may_be = may_be
            .into_iter()
            .flat_map(|before| after(before, event, &sent, promise))
            .collect();
    }
    !may_be.is_empty()
}

/// A store that keeps its promises as far as it knows them, and now and then, by
/// `lies`, does what it likes; `delay` is the lock-delay that it knows of.
fn play(moves: &[(u8, u8, u8)], lies: u8, delay: Nanos) -> Vec<Event> {
    let mut lines = Lines::default();
    let (mut clock, mut counter, mut closed) = (0, 0, 0);
    let mut term: Option<Term> = None;
    for &(what, who, how) in moves {
        clock += u64::from(how % 9);
        let lie = how < lies;
        let lease: Name = "leader".into();
        let mut holder: Name = ["a#1", "b#1"][usize::from(who % 2)].into();
        let mut token = Some(counter);
        let request = u64::from(who / 2 % 2);
        if let Some(term) = &term
            && !lie
            && matches!(what % 8, 3..6)
        {
            (holder, token) = (term.holder.clone(), Some(term.token));
        }
        let live = term
            .as_ref()
            .is_some_and(|term| !term.released && clock < term.expiry);
        let free = term
            .as_ref()
            .is_none_or(|term| term.released || clock >= term.expiry + delay);
        let free = free && clock >= closed;
        let seen = match what % 8 {
            0..3 if free || lie => {
                counter += u64::from(!lie || who < 200);
                term = Some(Term {
                    holder: holder.clone(),
                    request: Some(request),
                    token: counter,
                    expiry: clock + TTL,
                    released: false,
                });
                Observation::Granted(Granted {
                    lease,
                    holder,
                    request,
                    token: Some(counter),
                    ttl: TTL,
                    clock,
                })
            }
            3 if live || lie => {
                if let Some(term) = &mut term {
                    term.expiry = term.expiry.max(clock + TTL);
                }
                Observation::Renewed(Renewed {
                    lease,
                    holder,
                    token,
                    ttl: TTL,
                    clock,
                })
            }
            4 if live || lie => {
                if let Some(term) = &mut term {
                    term.released = true;
                }
                Observation::Released(Released {
                    lease,
                    holder,
                    token,
                    clock,
                })
            }
            5 => {
                lines.invoke(
                    "a",
                    Op::Release(Release {
                        lease,
                        holder,
                        token,
                    }),
                );
                if who % 3 == 0
                    && let Some(term) = &mut term
                {
                    term.released = true;
                }
                continue;
            }
            6 if lie || !live => Observation::Denied(Denied {
                lease,
                f: F::Acquire,
                holder,
                request: Some(request),
                token: None,
                clock,
                error: Failure::new("held"),
            }),
            7 if counter > 0 && who % 4 == 1 => {
                term = None;
                closed = if lie { 0 } else { clock + TTL };
                let (holder, ttl) = (None, None);
                let found = RecoveredLease {
                    counter,
                    holder,
                    ttl,
                };
                counter += u64::from(how % 3);
                Observation::Restored(Restored {
                    floor: counter,
                    leases: [(lease, found)].into(),
                    clock,
                })
            }
            7 if counter > 0 => {
                let owner = term.as_ref().filter(|term| !term.released && !lie);
                let found = RecoveredLease {
                    counter: counter - u64::from(lie && who % 4 == 0),
                    holder: owner.map(|term| term.holder.clone()),
                    ttl: owner.map(|_| TTL),
                };
                if let Some(term) = &mut term {
                    term.expiry = term.expiry.max(clock + TTL);
                }
                Observation::StoreRecovered(StoreRecovered {
                    leases: [(lease, found)].into(),
                    clock,
                })
            }
            _ => continue,
        };
        lines.put("store", Kind::Info, None, Body::Observed(seen));
    }
    lines.0
}

fn every_verdict_is_that_of_the_search(check: Check, promise: Promise) {
    let header = json!({"deposed": 1, "lease": {"ttl": TTL, "lock_delay": DELAY}});
    let header: Header = serde_json::from_value(header).unwrap();
    let moves = vec((any::<u8>(), any::<u8>(), any::<u8>()), 6..18);
    let lies = prop_oneof![1 => Just(0), 1 => 20..120u8];
    let delay = prop_oneof![1 => Just(DELAY), 3 => 0..DELAY];
    compare_many(
        (moves, lies, delay),
        |(moves, lies, delay), shares: &Shares| {
            let events = play(&moves, lies, delay);
            let found = verdict_of(check, &header, &events);
            let explained = kept(&events, promise);
            if found.word() == "not-claimed" {
                prop_assert!(explained || promise == Promise::LockDelay);
                return Ok(());
            }
            shares.compare(&found, explained, &events)
        },
    );
}

#[test]
fn lease_linearizable_is_the_search() {
    every_verdict_is_that_of_the_search(Check::LeaseLinearizable, Promise::Lease);
}

#[test]
fn lock_delay_is_the_search() {
    every_verdict_is_that_of_the_search(Check::LockDelay, Promise::LockDelay);
}

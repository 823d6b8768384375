//! One lease as two clients see it, and a search of every placement: each grant, renewal,
//! refusal and release at every instant at which its answer allows it.
//!
//! A store that no client can see into may restart at any time, which gives its owner
//! the whole ttl again: so a renewal of whoever was not replaced is always explained,
//! and a client knows less than the search. What a check convicts no placement must
//! explain; and it convicts nearly all of what none does. What it misses is told in
//! `terms.rs`, and is shown here by an example of each kind.

use std::cell::Cell;
use std::collections::BTreeSet;

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::{Lines, Shares, compare_many, verdict_of};

const TTL: Nanos = 12;
const DELAY: Nanos = 9;

/// Whose term it is: holder, request, token.
type Whose = (Name, u64, Token);

/// What the store must have done, or may have.
enum Does {
    Grants(Whose),
    Renews(Token),
    /// Refuses this holder's request.
    Refuses(Name, u64),
    /// Of this token; it may be lost.
    Releases(Token),
}

struct Effect {
    from: Nanos,
    to: Nanos,
    does: Does,
}

/// The lease as the store has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    whose: Whose,
    expiry: Nanos,
    released: bool,
}

fn effects_of(events: &[Event]) -> Vec<Effect> {
    let mut effects: Vec<Effect> = Vec::new();
    let mut requests: Vec<(&Name, u64, Nanos)> = Vec::new();
    for event in events {
        match &event.body {
            Body::Invoke(Op::Acquire(op)) => {
                let known = |(holder, request, _): &(&Name, u64, Nanos)| {
                    **holder == op.holder && *request == op.request
                };
                if !requests.iter().any(known) {
                    requests.push((&op.holder, op.request, event.time));
                }
            }
            Body::Invoke(Op::Release(op)) => effects.push(Effect {
                from: event.time,
                to: Nanos::MAX,
                does: Does::Releases(op.token.unwrap()),
            }),
            Body::Complete(_, answer) if event.kind != Kind::Info => {
                let invoke = &events[event.call.unwrap() as usize];
                let (to, Body::Invoke(op)) = (event.time, &invoke.body) else {
                    unreachable!("a call begins with its invoke")
                };
                let (from, does) = match (op, answer, event.kind) {
                    (Op::Acquire(op), Answer::Token(token), _) => {
                        let whose = (op.holder.clone(), op.request, *token);
                        let first = requests.iter().find(|(holder, request, _)| {
                            **holder == op.holder && *request == op.request
                        });
                        (first.unwrap().2, Does::Grants(whose))
                    }
                    (Op::Acquire(op), _, Kind::Fail) => {
                        (invoke.time, Does::Refuses(op.holder.clone(), op.request))
                    }
                    (Op::Renew(op), _, Kind::Ok) => (invoke.time, Does::Renews(op.token.unwrap())),
                    _ => continue,
                };
                let answered = |effect: &&mut Effect| match (&effect.does, &does) {
                    (Does::Grants(one), Does::Grants(other)) => one == other,
                    _ => false,
                };
                // Answered again: it was granted before the first answer.
                if effects.iter_mut().find(answered).is_none() {
                    effects.push(Effect { from, to, does });
                }
            }
            _ => {}
        }
    }
    effects
}

/// What the lease is after an effect, if the store may have done that.
fn after(owner: Option<&Owner>, does: &Does, now: Nanos, delay: Nanos) -> Option<Option<Owner>> {
    let unchanged = owner.cloned();
    match does {
        Does::Grants(whose) => {
            let free = owner.is_none_or(|owner| {
                owner.whose.2 < whose.2 && (owner.released || now >= owner.expiry + delay)
            });
            free.then(|| {
                Some(Owner {
                    whose: whose.clone(),
                    expiry: now + TTL,
                    released: false,
                })
            })
        }
        Does::Renews(token) => {
            let owner = owner.filter(|owner| owner.whose.2 == *token && !owner.released)?;
            Some(Some(Owner {
                expiry: owner.expiry.max(now + TTL),
                ..owner.clone()
            }))
        }
        Does::Refuses(holder, request) => {
            let granted = owner.is_some_and(|owner| {
                let mine = owner.whose.0 == *holder && owner.whose.1 == *request;
                mine && !owner.released && now < owner.expiry
            });
            (!granted).then_some(unchanged)
        }
        Does::Releases(token) => {
            let mut owner = owner.filter(|owner| owner.whose.2 == *token)?.clone();
            owner.released = true;
            Some(Some(owner))
        }
    }
}

/// Whether some placement of all effects explains what clients were told.
fn has_placement(events: &[Event], delay: Nanos) -> bool {
    let effects = effects_of(events);
    let end = events.last().map_or(0, |event| event.time);
    let mut may_be: BTreeSet<(u32, Option<Owner>)> = [(0, None)].into();
    for now in 0..=end {
        let mut fresh: Vec<_> = may_be.iter().cloned().collect();
        while let Some((done, owner)) = fresh.pop() {
            for (nth, effect) in effects.iter().enumerate() {
                if done & (1 << nth) != 0 || !(effect.from..=effect.to).contains(&now) {
                    continue;
                }
                if let Some(owner) = after(owner.as_ref(), &effect.does, now, delay) {
                    let next = (done | 1 << nth, owner);
                    if may_be.insert(next.clone()) {
                        fresh.push(next);
                    }
                }
            }
        }
        let due = effects
            .iter()
            .enumerate()
            .filter(|(_, effect)| effect.to == now);
        let due = due.fold(0, |due, (nth, _)| due | 1 << nth);
        may_be.retain(|(done, _)| done & due == due);
    }
    !may_be.is_empty()
}

/// What a client is in the middle of, and what it will be told.
struct Open {
    call: u64,
    op: Op,
    told: Option<(Kind, Answer)>,
}

#[derive(Default)]
struct Client {
    open: Option<Open>,
    request: u64,
    granted: Option<Token>,
}

/// Two clients of a store that knows of this lock-delay, and now and then, by `lies`,
/// grants and refuses as it likes.
fn play(moves: &[(u8, u8, u8)], lies: u8, delay: Nanos) -> Vec<Event> {
    let mut lines = Lines::default();
    let (mut now, mut highest) = (0, 0);
    let mut owner: Option<Owner> = None;
    let mut clients: [Client; 2] = Default::default();
    let names = ["a", "b"];
    let mut started = 0;
    for &(who, what, how) in moves {
        now += 1 + u64::from(how % 2);
        let at = usize::from(who % 2);
        let (client, lease, holder) = (
            &mut clients[at],
            Name::from("leader"),
            Name::from(["a#1", "b#1"][at]),
        );
        let lie = how < lies;
        let Some(mut open) = client.open.take() else {
            if started == 9 {
                continue;
            }
            started += 1;
            let op = match (what % 8, client.granted) {
                (0..4, Some(token)) => Op::Renew(Renew {
                    lease,
                    holder,
                    token: Some(token),
                    attempt: 1,
                    ttl: TTL,
                }),
                (4, Some(token)) => Op::Release(Release {
                    lease,
                    holder,
                    token: Some(token),
                }),
                (5.., Some(_)) if what % 2 == 0 => acquire(lease, holder, client.request),
                _ => {
                    client.request += 1;
                    acquire(lease, holder, client.request)
                }
            };
            let call = lines.invoke(names[at], op.clone());
            lines.0.last_mut().unwrap().time = now;
            client.open = Some(Open {
                call,
                op,
                told: None,
            });
            continue;
        };
        let Some((kind, answer)) = open.told.take() else {
            open.told = Some(answer(&open.op, &mut owner, &mut highest, now, delay, lie));
            client.open = Some(open);
            continue;
        };
        match (&open.op, &answer, kind) {
            _ if what % 8 == 7 => {
                lines.complete(open.call, Kind::Info, Answer::None);
                lines.0.last_mut().unwrap().time = now;
                continue;
            }
            (_, Answer::Token(token), _) => client.granted = Some(*token),
            (Op::Release(_), ..) => client.granted = None,
            _ => {}
        }
        lines.complete(open.call, kind, answer);
        let last = lines.0.last_mut().unwrap();
        last.time = now;
        last.error = (kind == Kind::Fail).then(|| Failure::new("held"));
    }
    lines.0
}

fn acquire(lease: Name, holder: Name, request: u64) -> Op {
    Op::Acquire(Acquire {
        lease,
        holder,
        request,
        ttl: TTL,
    })
}

fn answer(
    op: &Op,
    owner: &mut Option<Owner>,
    highest: &mut Token,
    now: Nanos,
    delay: Nanos,
    lie: bool,
) -> (Kind, Answer) {
    let ok = (Kind::Ok, Answer::None);
    let refused = (Kind::Fail, Answer::None);
    match op {
        Op::Acquire(op) => {
            let free = owner
                .as_ref()
                .is_none_or(|owner| owner.released || now >= owner.expiry + delay);
            let own = owner.as_ref().filter(|owner| {
                owner.whose.0 == op.holder && owner.whose.1 == op.request && !owner.released
            });
            match own {
                Some(_) if lie => refused,
                Some(owner) if !free => (Kind::Ok, Answer::Token(owner.whose.2)),
                _ if free || lie => {
                    *highest += 1;
                    *owner = Some(Owner {
                        whose: (op.holder.clone(), op.request, *highest),
                        expiry: now + TTL,
                        released: false,
                    });
                    (Kind::Ok, Answer::Token(*highest))
                }
                _ => refused,
            }
        }
        Op::Renew(op) => match owner {
            Some(owner) if Some(owner.whose.2) == op.token && !owner.released => {
                owner.expiry = owner.expiry.max(now + TTL);
                ok
            }
            _ if lie => ok,
            _ => refused,
        },
        Op::Release(op) => match owner {
            Some(owner) if Some(owner.whose.2) == op.token => {
                owner.released = true;
                ok
            }
            _ => refused,
        },
        _ => unreachable!("no other call is made"),
    }
}

fn what_is_convicted_has_no_placement(check: Check, searched: Nanos) {
    let header = json!({"deposed": 1, "lease": {"ttl": TTL, "lock_delay": DELAY}});
    let header: Header = serde_json::from_value(header).unwrap();
    let moves = vec((any::<u8>(), any::<u8>(), any::<u8>()), 8..28);
    // A store that knows of no delay lies enough.
    let lies = prop_oneof![1 => Just(0), 5 => if searched > 0 { 40..110u8 } else { 80..200 }];
    let delay = prop_oneof![1 => Just(DELAY), 9 => 0..DELAY / 4];
    let missed = Cell::new(0);
    let convicted = Cell::new(0);
    compare_many(
        (moves, lies, delay),
        |(moves, lies, delay), shares: &Shares| {
            let events = play(&moves, lies, delay);
            let found = verdict_of(check, &header, &events);
            let explained = has_placement(&events, searched);
            // What is wrong without a lock-delay is `lease-linearizable`'s.
            if searched > 0 && !has_placement(&events, 0) {
                return Ok(());
            }
            prop_assert!(explained || lies > 0 || delay < searched);
            if found.word() == "not-claimed" {
                return Ok(());
            }
            if !explained && !found.is_violated() {
                missed.set(missed.get() + 1);
                return Ok(());
            }
            convicted.set(convicted.get() + u32::from(!explained));
            shares.compare(&found, explained, &events)
        },
    );
    let (missed, convicted) = (missed.get(), convicted.get());
    println!("{missed} missed, {convicted} convicted");
    assert!(10 * missed < convicted, "too many are missed");
}

#[test]
fn lease_linearizable_convicts_from_outside_what_no_placement_explains() {
    what_is_convicted_has_no_placement(Check::LeaseLinearizable, 0);
}

#[test]
fn lock_delay_convicts_from_outside_what_no_placement_explains() {
    what_is_convicted_has_no_placement(Check::LockDelay, DELAY);
}

/// Calls of a and b as they come: when, whose, the op or the invoke that ends, what it is
/// answered.
type Told = (Nanos, &'static str, Result<Op, u64>, Answer);

/// No placement explains it, and the check is silent.
fn is_missed(told: &[Told]) {
    let mut lines = Lines::default();
    for (time, process, what, answer) in told {
        match what {
            Ok(op) => drop(lines.invoke(process, op.clone())),
            Err(call) => lines.complete(*call, Kind::Ok, answer.clone()),
        }
        lines.0.last_mut().unwrap().time = *time;
    }
    let header = json!({"deposed": 1, "lease": {"ttl": TTL}});
    let header: Header = serde_json::from_value(header).unwrap();
    assert!(!has_placement(&lines.0, 0), "a placement explains it");
    let found = verdict_of(Check::LeaseLinearizable, &header, &lines.0);
    assert_eq!(found.word(), "valid", "{found:?}");
}

fn asks(holder: &str, request: u64) -> Result<Op, u64> {
    Ok(acquire("leader".into(), holder.into(), request))
}

/// b's second term can have begun at 13 only, when its first was over.
#[test]
fn a_term_that_an_earlier_one_kept_waiting_is_taken_to_run_from_its_send() {
    is_missed(&[
        (1, "b", asks("b#1", 1), Answer::None),
        (4, "b", Err(0), Answer::Token(1)),
        (7, "b", asks("b#1", 2), Answer::None),
        (14, "a", asks("a#1", 1), Answer::None),
        (18, "b", Err(2), Answer::Token(2)),
        (20, "a", Err(3), Answer::Token(3)),
    ]);
}

/// b had released what it was granted while a, who hears of it too late, held the lease.
#[test]
fn a_term_that_was_released_is_forgotten_when_the_release_is_answered() {
    let release = Op::Release(Release {
        lease: "leader".into(),
        holder: "b#1".into(),
        token: Some(2),
    });
    is_missed(&[
        (2, "a", asks("a#1", 1), Answer::None),
        (4, "b", asks("b#1", 1), Answer::None),
        (9, "b", Err(1), Answer::Token(2)),
        (11, "b", Ok(release), Answer::None),
        (15, "b", Err(3), Answer::None),
        (17, "a", Err(0), Answer::Token(1)),
    ]);
}

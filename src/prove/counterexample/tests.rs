use deposed_checkers::history::{Body, F, Kind, NEMESIS, Observation, Op};

use super::*;
use crate::prove::message::{Message, Process, Says};

use Action::{
    Act, CrashClient, CrashStorage, CrashStore, Deliver, Duplicate, Lose, Resign, Tick, Wake,
};

const A: Process = Process { client: 0, life: 0 };
const LATER: Action = Tick { skips: 0 };

fn acquire() -> Message {
    Message::new(Says::Acquire, A, 1, 0)
}

fn granted() -> Message {
    Message::new(Says::Granted, A, 1, 1)
}

fn fence() -> Message {
    Message::new(Says::Fence, A, 0, 1)
}

/// The first client leads, and nothing else has happened.
fn elected() -> Vec<Action> {
    vec![Wake(0), Deliver(acquire()), Deliver(granted())]
}

/// The first client leads, and its leader has sent its fence.
fn fencing() -> Vec<Action> {
    let act = Act {
        client: 0,
        deletes: false,
    };
    [elected(), vec![act]].concat()
}

fn told(actions: Vec<Action>) -> Vec<Event> {
    history(&Scope::default(), None, &Story { actions }).events
}

fn kinds_of(events: &[Event], f: F) -> Vec<Kind> {
    let of = events.iter().filter(|event| match &event.body {
        Body::Invoke(op) => op.f() == f,
        Body::Complete(of, _) => *of == f,
        _ => false,
    });
    of.map(|event| event.kind).collect()
}

fn faults(events: &[Event]) -> Vec<(&str, Nanos)> {
    let faults = events.iter().filter(|event| event.process == NEMESIS);
    let mut named = faults.filter_map(|event| match &event.body {
        Body::Nemesis(fault, _) => Some((fault.as_ref(), event.time)),
        _ => None,
    });
    assert_eq!(
        named.next(),
        Some(("adversary", 0)),
        "it may do what it likes"
    );
    named.collect()
}

fn leads(events: &[Event]) -> Vec<(Nanos, Option<Nanos>)> {
    let leads = events.iter().filter_map(|event| match &event.body {
        Body::Observed(Observation::Lead(lead)) => Some((event.time, lead.until)),
        _ => None,
    });
    leads.collect()
}

#[test]
fn a_belief_begins_when_the_answer_is_read_and_counts_from_the_send() {
    let events = told(vec![
        Wake(0),
        LATER,
        Deliver(acquire()),
        LATER,
        Deliver(granted()),
    ]);
    let ttl = Scope::default().ttl * TICK;
    assert_eq!(leads(&events), [(2 * TICK, Some(ttl))]);
    assert_eq!(kinds_of(&events, F::Acquire), [Kind::Invoke, Kind::Ok]);
    let granted = events.iter().find(|event| {
        matches!(
            event.body,
            Body::Observed(Observation::Granted(ref granted)) if granted.clock == TICK
        )
    });
    assert!(
        granted.is_some_and(|event| event.time == TICK),
        "{events:?}"
    );
}

#[test]
fn what_is_lost_is_told_and_its_call_stays_open() {
    let events = told(vec![Wake(0), Deliver(acquire()), Lose(granted())]);
    assert_eq!(kinds_of(&events, F::Acquire), [Kind::Invoke]);
    let [lost] = &faults(&events)[..] else {
        panic!("one fault: {events:?}");
    };
    assert_eq!(lost.0, "lost");
    let Body::Nemesis(_, value) = &events.last().expect("the loss").body else {
        panic!("it comes last: {events:?}");
    };
    assert_eq!(
        (&value["from"], &value["kind"], &value["to"]),
        (&"store".into(), &"acquire-reply".into(), &"a".into())
    );
}

#[test]
fn what_comes_twice_completes_its_call_once() {
    let events = told(vec![
        Wake(0),
        Deliver(acquire()),
        Duplicate(granted()),
        Deliver(granted()),
    ]);
    assert_eq!(kinds_of(&events, F::Acquire), [Kind::Invoke, Kind::Ok]);
    assert_eq!(leads(&events).len(), 1);
}

#[test]
fn a_leader_that_is_due_to_renew_and_does_not_is_paused_until_it_goes_on() {
    let still = told([elected(), vec![LATER, LATER, Wake(0)]].concat());
    assert_eq!(faults(&still), [("pause", TICK), ("resume", 2 * TICK)]);
    let pause = still.iter().find_map(|event| match &event.body {
        Body::Nemesis(fault, value) if fault == "pause" => Some(value),
        _ => None,
    });
    assert_eq!(pause.expect("a pause")["for"], TICK);
    let renewing = told([elected(), vec![LATER, Wake(0), LATER]].concat());
    assert_eq!(faults(&renewing), [], "it does what is due");
    let waiting = told(vec![Wake(0), LATER, LATER, LATER]);
    assert_eq!(faults(&waiting), [], "nobody leads");
    let over = told([elected(), vec![LATER, CrashClient(0), LATER]].concat());
    assert_eq!(
        faults(&over),
        [("crash", TICK)],
        "who crashed is not paused"
    );
}

#[test]
fn a_crash_takes_a_client_s_calls_and_its_belief_and_another_holder_asks() {
    let answer = Message::new(Says::Fenced, A, 0, 1);
    let events = told(
        [
            fencing(),
            vec![Deliver(fence()), CrashClient(0), Deliver(answer), Wake(0)],
        ]
        .concat(),
    );
    assert_eq!(kinds_of(&events, F::Fence), [Kind::Invoke]);
    let followed = |event: &Event| matches!(event.body, Body::Observed(Observation::Follow(_)));
    assert!(!events.iter().any(followed), "who is gone tells nothing");
    let holders = events.iter().filter_map(|event| match &event.body {
        Body::Invoke(Op::Acquire(acquire)) => Some(acquire.holder.as_str()),
        _ => None,
    });
    assert_eq!(holders.collect::<Vec<_>>(), ["a#0", "a#1"]);
}

#[test]
fn a_server_that_comes_back_tells_what_it_found() {
    let events = told([fencing(), vec![Deliver(fence()), CrashStore, CrashStorage]].concat());
    let store = events.iter().find_map(|event| match &event.body {
        Body::Observed(Observation::StoreRecovered(found)) => found.leases.values().next(),
        _ => None,
    });
    let found = store.expect("the lease was durable");
    assert_eq!((found.counter, found.holder.as_deref()), (1, Some("a#0")));
    let storage = events.iter().find_map(|event| match &event.body {
        Body::Observed(Observation::StorageRecovered(found)) => found.highest.values().next(),
        _ => None,
    });
    assert_eq!(storage, Some(&1));
    assert_eq!(faults(&events), [("crash", 0), ("crash", 0)]);
}

#[test]
fn who_resigns_leads_no_more_before_it_releases_and_gives_its_calls_up() {
    let events = told([fencing(), vec![Resign(0), Wake(0)]].concat());
    let at = |what: &dyn Fn(&Event) -> bool| events.iter().position(what).expect("it is told");
    let follow = at(&|event| matches!(event.body, Body::Observed(Observation::Follow(_))));
    let given_up = at(&|event| matches!(event.body, Body::Complete(F::Fence, _)));
    let release = at(&|event| matches!(event.body, Body::Invoke(Op::Release(_))));
    assert!(follow < given_up && given_up < release, "{events:?}");
    assert_eq!(
        events[given_up].kind,
        Kind::Info,
        "nobody knows what became of it"
    );
}

#[test]
fn who_has_a_clock_that_skips_believes_longer_and_the_header_says_how_slow_it_is() {
    let scope = Scope {
        drift: "1/4".parse().expect("a drift"),
        ttl: 4,
        ..Scope::default()
    };
    let until = |skips| {
        let actions = [elected(), vec![Tick { skips }]].concat();
        let history = history(&scope, None, &Story { actions });
        (leads(&history.events)[0].1, history.header.clocks)
    };
    let window = scope.config().safe_window();
    let (even, clocks) = until(0);
    assert_eq!((even, clocks.len()), (Some(window * TICK), 0));
    let (slow, clocks) = until(1);
    assert_eq!(slow, Some((window + 1) * TICK));
    let slow: Vec<_> = clocks.into_iter().collect();
    assert_eq!(slow, [("a".into(), TRUE_RATE / 4 * 3)]);
}

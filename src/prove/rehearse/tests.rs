use super::{
    super::{
        action::Action,
        message::{Message, Process, Says},
    },
    *,
};
use crate::fault::{Fault, Target, Trigger};

const A: Process = Process { client: 0, life: 0 };

fn acquire() -> Message {
    Message::new(Says::Acquire, A, 1, 0)
}

fn granted() -> Message {
    Message::new(Says::Granted, A, 1, 1)
}

/// A story's faults that strike the first client's acquires on their way to the store,
/// and those of processes, by time.
fn schedule_of(actions: Vec<Action>) -> (Vec<Fault>, Vec<(Nanos, Fault)>) {
    let header = schedule(&Story { actions }, &Scope::default(), None, Pace::FIRST);
    header.validate().expect("it can be run");
    let (mut rules, mut processes) = (Vec::new(), Vec::new());
    for order in header.schedule {
        let Trigger::At(at) = order.when else {
            panic!("a story has times: {order:?}");
        };
        match order.fault {
            Fault::Lose { ref kind, from, .. }
            | Fault::Delay { ref kind, from, .. }
            | Fault::Duplicate { ref kind, from, .. } => {
                if kind == "acquire" && from == Target::Client(0) {
                    rules.push(order.fault);
                }
            }
            fault => processes.push((at, fault)),
        }
    }
    (rules, processes)
}

#[test]
fn a_frame_is_lost_late_or_doubled_as_it_is_in_the_story_and_what_is_sent_beyond_it_is_lost() {
    use Action::{Deliver, Duplicate, Lose, Tick, Wake};
    let later = Tick { skips: 0 };
    let is_lost = |fault: &Fault| matches!(fault, Fault::Lose { .. });
    let stories = [
        vec![Wake(0)],
        vec![Wake(0), Lose(acquire())],
        vec![Wake(0), later, Deliver(acquire())],
        vec![Wake(0), Duplicate(acquire()), later, Deliver(acquire())],
    ];
    let [sent, lost, late, twice] = stories.map(|story| schedule_of(story).0);
    for rules in [&sent, &lost, &late, &twice] {
        assert!(rules.last().is_some_and(is_lost), "{rules:?}");
    }
    assert!(sent.iter().chain(&lost).all(is_lost), "{sent:?} {lost:?}");
    let a_tick = Pace::FIRST.tick..Pace::FIRST.tick + 3 * Pace::FIRST.step;
    assert!(
        matches!(late[0], Fault::Delay { count: 1, by, .. } if a_tick.contains(&by)),
        "{late:?}"
    );
    assert!(
        matches!(twice[0], Fault::Duplicate { count: 1, by, .. } if a_tick.contains(&by)),
        "{twice:?}"
    );
}

#[test]
fn a_client_is_down_until_the_story_wakes_it_and_stands_still_where_it_idles() {
    use Action::{Deliver, Tick, Wake};
    let later = Tick { skips: 0 };
    let (_, processes) = schedule_of(vec![
        Wake(0),
        Deliver(acquire()),
        Deliver(granted()),
        later,
        later,
        Wake(0),
    ]);
    let Pace {
        tick, step, start, ..
    } = Pace::FIRST;
    let ends = |(at, fault): &(Nanos, Fault)| (*at, at + fault.length().unwrap_or(0));
    let of = |target| {
        let struck = processes
            .iter()
            .filter(move |(_, fault)| fault.targets() == [target]);
        struck.map(ends).collect::<Vec<_>>()
    };
    let [down, paused] = of(Target::Client(0))[..] else {
        panic!("{processes:?}");
    };
    assert!(
        down.0 == 0 && (start - step..start).contains(&down.1),
        "{down:?}"
    );
    let read = start + 2 * step;
    assert!((read..read + step).contains(&paused.0), "{paused:?}");
    assert_eq!(paused.1, start + 2 * tick + 3 * step);
    let [other] = of(Target::Client(1))[..] else {
        panic!("{processes:?}");
    };
    assert!(
        other.0 == 0 && other.1 > paused.1,
        "it never wakes: {other:?}"
    );
}

#[test]
fn what_waits_for_a_server_that_crashes_is_sent_when_it_is_back() {
    use Action::{CrashStore, Deliver, Wake};
    let (_, processes) = schedule_of(vec![Wake(0), CrashStore, Deliver(acquire())]);
    let ends = |target: Target| {
        let mut struck = processes.iter();
        let struck = struck.find(|(_, fault)| fault.targets() == [target]);
        let (at, fault) = struck.expect("it is struck");
        at + fault.length().expect("a crash has a length")
    };
    assert!(ends(Target::Client(0)) + 2 * MS > ends(Target::Store));
}

#[test]
fn every_world_that_can_be_searched_can_be_rehearsed_in() {
    for drift in ["0", "1/2", "1/4", "1/100"] {
        for (ttl, clients) in [(1, 1), (2, 4), (3, 2), (7, 2), (30, 3)] {
            let scope = Scope {
                ttl,
                clients,
                lock_delay: ttl,
                drift: drift.parse().expect("a drift"),
                ..Scope::default()
            };
            if scope.validate().is_err() {
                continue;
            }
            let skips = u8::from(drift != "0");
            let actions = vec![Action::Wake(0), Action::Tick { skips }];
            let story = Story { actions };
            for pace in Pace::all(ttl) {
                let header = schedule(&story, &scope, None, pace);
                assert_eq!(header.validate(), Ok(()), "{scope:?} {pace:?}");
                assert_eq!(header.clocks.is_empty(), skips == 0);
            }
        }
    }
}

const LATER: Action = Action::Tick { skips: 0 };

fn fence() -> Message {
    Message::new(Says::Fence, A, 0, 1)
}

/// The first client leads, from its third action on.
fn elected() -> Vec<Action> {
    use Action::{Deliver, Wake};
    vec![Wake(0), Deliver(acquire()), Deliver(granted())]
}

fn acts() -> Action {
    Action::Act {
        client: 0,
        deletes: false,
    }
}

fn header_of(actions: Vec<Action>, flaw: Option<Flaw>) -> Header {
    let scope = Scope {
        deletes: true,
        ..Scope::default()
    };
    let header = schedule(&Story { actions }, &scope, flaw, Pace::FIRST);
    assert_eq!(header.validate(), Ok(()));
    header
}

/// When a story's nth action happens, all of them in one tick.
fn nth(action: u64) -> Nanos {
    Pace::FIRST.start + action * Pace::FIRST.step
}

#[test]
fn a_client_that_crashes_is_down_from_then_until_it_wakes_again() {
    let actions = [
        elected(),
        vec![Action::CrashClient(0), LATER, Action::Wake(0)],
    ]
    .concat();
    let (_, processes) = schedule_of(actions);
    let crashed = processes.iter().find_map(|(at, fault)| match fault {
        Fault::Crash {
            target: Target::Client(0),
            length,
        } if *at > 0 => Some((*at, at + length)),
        _ => None,
    });
    let (at, until) = crashed.expect("it crashes");
    let wakes = nth(4) + Pace::FIRST.tick;
    assert_eq!(at, nth(3));
    assert!(
        (wakes - Pace::FIRST.step..wakes).contains(&until),
        "{until}"
    );
}

#[test]
fn a_server_that_crashes_goes_dark_where_the_flaw_is_one_of_what_a_disk_keeps() {
    let faults = |crash, flaw| {
        let header = header_of([elected(), vec![crash]].concat(), flaw);
        let of_server = header.schedule.into_iter().filter(|order| {
            order.when == Trigger::At(nth(3))
                && matches!(order.fault.targets()[..], [Target::Store | Target::Storage])
        });
        let faults: Vec<_> = of_server.map(|order| order.fault).collect();
        let [fault] = &faults[..] else {
            panic!("one server crashes: {faults:?}");
        };
        fault.clone()
    };
    for (crash, server) in [
        (Action::CrashStore, Target::Store),
        (Action::CrashStorage, Target::Storage),
    ] {
        let fault = faults(crash, None);
        assert!(matches!(fault, Fault::Crash { target, .. } if target == server));
        let fault = faults(crash, Some(Flaw::CounterNotSynced));
        assert!(matches!(fault, Fault::PowerLoss { target, .. } if target == server));
    }
}

#[test]
fn a_leader_that_acts_ticks_after_it_looked_is_paused_in_between_just_before_that_call() {
    let answered = Message::new(Says::Fenced, A, 0, 1);
    let actions = [
        elected(),
        vec![
            acts(),
            Action::Deliver(fence()),
            Action::Deliver(answered),
            LATER,
            acts(),
        ],
    ];
    let header = header_of(actions.concat(), None);
    let paused = header.schedule.iter().find_map(|order| match order.fault {
        Fault::GcPause { before, length, .. } => Some((order.when.earliest(), before, length)),
        _ => None,
    });
    let (at, before, length) = paused.expect("it is paused");
    let read = nth(5);
    assert_eq!(before, Some(deposed_checkers::history::F::Write));
    assert!((read - Pace::FIRST.step..=read).contains(&at), "{at}");
    assert_eq!(length, Pace::FIRST.tick + Pace::FIRST.step);
}

#[test]
fn a_leader_resigns_as_long_after_its_grant_as_in_the_story() {
    let resigns = |actions| header_of(actions, None).traffic.resign_every;
    let resign = Action::Resign(0);
    let step = Pace::FIRST.step;
    assert_eq!(resigns(elected()), None);
    let at_once = resigns([elected(), vec![resign]].concat());
    let later = resigns([elected(), vec![LATER, resign]].concat());
    assert_eq!(at_once, Some(step));
    assert_eq!(later, Some(step + Pace::FIRST.tick));
}

#[test]
fn leaders_delete_where_the_story_does() {
    let deletes = |deletes| {
        let act = Action::Act { client: 0, deletes };
        header_of([elected(), vec![act]].concat(), None)
            .traffic
            .delete_one_in
    };
    assert_eq!([false, true].map(deletes), [0, 1]);
}

#[test]
fn storage_s_clock_is_so_slow_that_its_wait_lasts_from_the_check_to_the_change() {
    let write = Message::new(Says::Write, A, 0, 1);
    let rate = |between: Vec<Action>| {
        let answered = Message::new(Says::Fenced, A, 0, 1);
        let before = vec![
            acts(),
            Action::Deliver(fence()),
            Action::Deliver(answered),
            acts(),
            Action::LookAhead(write),
        ];
        let actions = [elected(), before, between, vec![Action::Deliver(write)]].concat();
        let header = header_of(actions, Some(Flaw::CheckThenAct));
        header.clocks.get(Cluster::STORAGE).copied()
    };
    let awaits = 20 * MS;
    let lasts = |rate: Option<u64>| awaits * TRUE_RATE / rate.expect("a rate");
    let (a_tick, two) = (lasts(rate(vec![LATER])), lasts(rate(vec![LATER, LATER])));
    assert!((Pace::FIRST.tick..=Pace::FIRST.tick + 2 * Pace::FIRST.step).contains(&a_tick));
    assert!(two > a_tick + Pace::FIRST.tick - MS, "{a_tick} {two}");
}

#[test]
fn an_answer_is_lost_on_its_way_back() {
    let actions = [
        Action::Wake(0),
        Action::Deliver(acquire()),
        Action::Lose(granted()),
    ];
    let header = header_of(actions.to_vec(), None);
    let rules: Vec<_> = header
        .schedule
        .iter()
        .filter(|order| match &order.fault {
            Fault::Lose { kind, from, .. }
            | Fault::Delay { kind, from, .. }
            | Fault::Duplicate { kind, from, .. } => {
                kind == "acquire-reply" && *from == Target::Store
            }
            _ => false,
        })
        .collect();
    let is_lost = |order: &&crate::fault::Injection| matches!(order.fault, Fault::Lose { .. });
    assert!(!rules.is_empty() && rules.iter().all(is_lost), "{rules:?}");
}

//! A story, rehearsed: a run of the simulated world that is made to go the way of the story,
//! so that what a search has found in the cores is seen in the system around them, too.
//!
//! [`schedule`] translates. What a story says of messages becomes message rules, what it says
//! of processes becomes crashes and pauses, and what it says of clocks becomes their rates. A
//! search may do several things at one instant and let a client idle for as long as it likes;
//! a run has connections to make, timers, and a leader that works by itself. So a translation
//! has a [`Pace`], and [`rehearse`] tries one after the other, in a fixed order, until the run
//! is convicted by the check that the story breaks. A run is its header: that one replays.

mod frames;
mod orders;

use std::{collections::BTreeMap, sync::Arc};

use deposed_checkers::{
    history::{FORMAT_VERSION, Nanos, TRUE_RATE},
    verdict::{Check, Verdict},
};

use super::{message::name_of, scope::Scope, story::Story};
use crate::{
    campaign,
    cluster::Cluster,
    flaw::Flaw,
    lease::{LeaseConfig, PPB},
    run::{Header, Outcome},
    system::System,
    workload::{MS, Network, SECOND, Traffic},
};
use frames::{Told, Waits};

/// How a story is put into time. What happens between two ticks happens a step apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long a tick lasts, ns.
    pub tick: Nanos,
    /// How long after another an action of the same tick comes, ns.
    pub step: Nanos,
    /// When the story begins, ns.
    pub start: Nanos,
    /// Which clients stand still.
    pub holds: Holds,
    /// The seed of the run: the order of what happens within a millisecond.
    pub seed: u64,
}

/// When a client stands still that the story lets idle over a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Until it does anything.
    Always,
    /// Until it wakes, if that is what it does next.
    UntilItWakes,
    /// Never.
    Never,
}

impl Pace {
    /// The first one that is tried.
    pub const FIRST: Pace = Pace {
        tick: 300 * MS,
        step: 10 * MS,
        start: 300 * MS,
        holds: Holds::Always,
        seed: 0,
    };

    /// All that are tried, in this order.
    pub fn all() -> impl Iterator<Item = Pace> {
        [0, 1].into_iter().flat_map(|seed| {
            [300, 400].into_iter().flat_map(move |tick| {
                [100, 150, 200].into_iter().flat_map(move |late| {
                    let holds = [Holds::Always, Holds::UntilItWakes, Holds::Never];
                    holds.into_iter().map(move |holds| Pace {
                        tick: tick * MS,
                        start: tick * MS * late / 100,
                        holds,
                        seed,
                        ..Pace::FIRST
                    })
                })
            })
        })
    }
}

/// What came of the rehearsals of a story.
#[derive(Debug)]
pub struct Rehearsed {
    /// The first run that was convicted as the story is, or else the last.
    pub outcome: Outcome,
    /// Whether it was.
    pub convicted: bool,
    /// How many were run.
    pub runs: usize,
}

/// Runs a story, at one pace after the other, until the check that it breaks convicts a run
/// of what happens before its calm.
///
/// # Panics
/// If a translation cannot be run: that is a mistake in it.
pub fn rehearse(
    story: &Story,
    scope: &Scope,
    flaw: Option<Flaw>,
    check: Check,
    system: &Arc<dyn System>,
) -> Rehearsed {
    let mut runs = 0;
    let mut last = None;
    for pace in Pace::all() {
        let header = schedule(story, scope, flaw, pace);
        if let Err(error) = header.validate() {
            panic!("a story is translated to what cannot be run: {error}");
        }
        let outcome = campaign::outcome(&header, system);
        runs += 1;
        let convicted = shows(&outcome, check);
        if convicted {
            return Rehearsed {
                outcome,
                convicted,
                runs,
            };
        }
        last = Some(outcome);
    }
    Rehearsed {
        outcome: last.expect("there is a first pace"),
        convicted: false,
        runs,
    }
}

/// Whether a check convicts a run of what happened while the story was told: what a leader
/// does in the calm after it is another story.
fn shows(outcome: &Outcome, check: Check) -> bool {
    let Some(Verdict::Violated(evidence)) = outcome.verdicts.of(check) else {
        return false;
    };
    let culprit = outcome
        .history
        .iter()
        .find(|event| event.index == evidence.culprit);
    culprit.is_some_and(|culprit| culprit.time <= outcome.header.chaos)
}

/// The header of a run that goes the way of a story.
pub fn schedule(story: &Story, scope: &Scope, flaw: Option<Flaw>, pace: Pace) -> Header {
    let lease = timing(scope, pace);
    let waits = Waits {
        for_an_answer: lease.try_timeout,
        for_others: lease.backoff_max,
    };
    let told = Told::of(story, scope, pace, waits);
    let cluster = cluster(scope, flaw);
    let chaos = told.ends + 2 * pace.tick;
    let clients = (0..scope.clients).filter(|client| told.skipped & 1 << client != 0);
    let slow = TRUE_RATE.saturating_sub(scope.drift.ppb());
    let mut clocks: BTreeMap<_, _> = clients.map(|client| (name_of(client), slow)).collect();
    if let Some(rate) = told.storage_rate {
        clocks.insert(Cluster::STORAGE.into(), rate);
    }
    let traffic = Traffic {
        write_every: pace.tick,
        delete_one_in: u64::from(told.deletes),
        resign_every: told.resigns_after,
        ..Traffic::for_ttl(lease.ttl)
    };
    Header {
        deposed: FORMAT_VERSION,
        workload: "prove".into(),
        system: "deposed".into(),
        seed: pace.seed,
        schedule: orders::of(&told, scope, pace, chaos, &cluster),
        cluster,
        traffic,
        network: Network {
            min_latency: MS,
            max_latency: MS,
        },
        clocks,
        offsets: Default::default(),
        chaos,
        // As long, in ttls, as other workloads give a leader to write again.
        calm: (7 * lease.ttl).max(2 * SECOND),
        lease,
        flaw,
    }
}

/// The clients' timing. In a search a renewal is due after a tick; here a window that is
/// too short for that is divided as usual.
fn timing(scope: &Scope, pace: Pace) -> LeaseConfig {
    let mut lease = LeaseConfig {
        ttl: scope.ttl * pace.tick,
        max_drift_ppb: scope.drift.ppb(),
        safety_margin: 0,
        renew_fraction_ppb: 0,
        try_timeout: 1,
        backoff_min: pace.tick / 4,
        backoff_max: pace.tick / 4,
        lock_delay: scope.lock_delay * pace.tick,
    };
    let window = lease.safe_window();
    let due = pace.tick.min(window / 3);
    let fraction = u128::from(due) * u128::from(PPB) / u128::from(window.max(1));
    lease.renew_fraction_ppb = u64::try_from(fraction).unwrap_or(PPB);
    // Three tries fit in before the window is over.
    lease.try_timeout = (pace.tick / 2).min((window - due) * 3 / 10);
    lease
}

/// The servers keep what they know in memory that nothing harms, unless the flaw is one of
/// what memory does not do.
fn cluster(scope: &Scope, flaw: Option<Flaw>) -> Cluster {
    let cluster = Cluster::of(u8::try_from(scope.clients).unwrap_or(u8::MAX));
    match flaw.is_none_or(|flaw| flaw.lives_in(&cluster)) {
        true => cluster,
        false => cluster.on_disks(),
    }
}

#[cfg(test)]
mod tests {
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
                for pace in Pace::all() {
                    let header = schedule(&story, &scope, None, pace);
                    assert_eq!(header.validate(), Ok(()), "{scope:?} {pace:?}");
                    assert_eq!(header.clocks.is_empty(), skips == 0);
                }
            }
        }
    }
}

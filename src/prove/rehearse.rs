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
#[cfg(test)]
mod tests;

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

    /// All that are tried with a ttl of so many ticks, in this order.
    pub fn all(ttl: u64) -> impl Iterator<Item = Pace> {
        [0, 1].into_iter().flat_map(move |seed| {
            [300 * MS, 400 * MS].into_iter().flat_map(move |tick| {
                // A store may look for what runs out every half ttl alone, with a planted flaw:
                // the last begins just before it does.
                let ahead = ttl * tick / 2 - 2 * Pace::FIRST.step;
                let starts = [tick, tick * 3 / 2, tick * 2, ahead];
                starts.into_iter().flat_map(move |start| {
                    let holds = [Holds::Always, Holds::UntilItWakes, Holds::Never];
                    holds.into_iter().map(move |holds| Pace {
                        tick,
                        start,
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
    for pace in Pace::all(scope.ttl) {
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
    // A search counts in whole ticks, and what drift leaves of the last one is none.
    let whole = scope.config().safe_window() * pace.tick;
    lease.safety_margin = lease.safe_window().saturating_sub(whole);
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

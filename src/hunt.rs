//! How long it takes until a planted flaw is convicted: in seeds, in simulated time, in
//! CPU. A harness is worth what it finds, and how soon.

use std::{sync::Arc, time::Duration};

use deposed_checkers::{
    history::{Body, Event, F, Nanos, Observation},
    judge::Judge,
    verdict::{Check, Evidence, Verdict},
};
use rustix::time::{ClockId, clock_gettime};

use crate::{
    fault::Schedule,
    flaw::Flaw,
    rng::stream,
    run::{Header, checkers_header},
    shrink::Conviction,
    system::System,
    workload::Workload,
    world,
};

/// A flaw planted in a workload, and the check that must convict it.
#[derive(Clone, Copy, Debug)]
pub struct Hunt<'w> {
    /// The flaw.
    pub flaw: Flaw,
    /// Where it is planted.
    pub workload: &'w Workload,
    /// Who must convict it.
    pub check: Check,
    /// How the schedules are drawn.
    pub schedules: Schedules,
}

/// How schedules are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedules {
    /// As the workload says: dense, mixed, aimed.
    Workload,
    /// Sparse and uniform, from the workload's choices of faults.
    Uniform,
}

/// What came of a hunt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoils {
    /// Whether the check convicted; if not, the flaw has escaped these seeds.
    pub convicted: bool,
    /// Seeds run, the convicting one included.
    pub seeds: u64,
    /// Simulated time, ns, until the conviction.
    pub simulated: Nanos,
    /// CPU time of the thread.
    pub cpu: Duration,
    /// Whether what it convicted of was harm done.
    pub manifest: bool,
    /// Another check that convicted earlier, or in its stead.
    pub sooner: Option<Check>,
    /// Why the hunt was given up: the harness itself is broken by the flaw.
    pub defect: Option<String>,
}

impl Hunt<'_> {
    /// Runs one seed after the other, from `base` on, until the check convicts or `most`
    /// seeds were run. A run ends at the conviction.
    pub fn run(&self, system: &Arc<dyn System>, base: u64, most: u64) -> Spoils {
        let mut spoils = Spoils::default();
        let began = cpu_time();
        for seed in (base..=u64::MAX).take(usize::try_from(most).unwrap_or(usize::MAX)) {
            spoils.seeds += 1;
            if let Err(defect) = self.seed(system, seed, &mut spoils) {
                spoils.defect = Some(defect);
            }
            if spoils.convicted || spoils.defect.is_some() {
                break;
            }
        }
        spoils.cpu = cpu_time().saturating_sub(began);
        spoils
    }

    fn seed(&self, system: &Arc<dyn System>, seed: u64, spoils: &mut Spoils) -> Result<(), String> {
        let header = self.header(system, seed);
        let judge = Judge::new(&checkers_header(&header));
        let found = Trial::new(judge, self.check).run(&header, system);
        let found = found.map_err(|defect| format!("seed {seed}: {defect}"))?;
        spoils.simulated += found.at;
        spoils.convicted = found.conviction.is_some();
        spoils.manifest = found.conviction.is_some_and(|found| found.manifest);
        spoils.sooner = spoils.sooner.or(found.sooner);
        Ok(())
    }

    /// The run of a seed.
    pub fn header(&self, system: &Arc<dyn System>, seed: u64) -> Header {
        let mut header = Header::of(self.workload, seed, system.name(), Some(self.flaw));
        if self.schedules == Schedules::Uniform {
            header.schedule = uniform(self.workload, seed);
        }
        header
    }
}

fn uniform(workload: &Workload, seed: u64) -> Schedule {
    workload.nemesis.draw_uniform(
        &mut stream(seed, "schedule", 0),
        &workload.lease,
        workload.chaos,
    )
}

/// Runs a header until a check convicts it, or to its end.
///
/// # Errors
/// A header that cannot be run, or a run that went wrong as a whole.
pub(crate) fn conviction(
    header: &Header,
    system: &Arc<dyn System>,
    check: Check,
) -> Result<Option<Conviction>, String> {
    header.validate().map_err(|error| error.to_string())?;
    let judge = Judge::of(&checkers_header(header), &[check]);
    let found = Trial::new(judge, check).run(header, system)?;
    Ok(found.conviction)
}

/// A run being judged while it runs.
struct Trial {
    judge: Judge,
    check: Check,
    heard: usize,
    /// Of the last event that was heard, ns.
    time: Nanos,
    convicted: bool,
    /// The first other check to convict, if it did before.
    sooner: Option<Check>,
}

impl Trial {
    fn new(judge: Judge, check: Check) -> Self {
        Self {
            judge,
            check,
            heard: 0,
            time: 0,
            convicted: false,
            sooner: None,
        }
    }

    fn run(mut self, header: &Header, system: &Arc<dyn System>) -> Result<Found, String> {
        let recorded = world::record_while(header, system, |events| self.hear(events))?;
        if let Some((node, message)) = recorded.panics.first() {
            return Err(format!("a task of {node} panicked: {message}"));
        }
        if let Some(discrepancy) = recorded.discrepancy {
            return Err(discrepancy);
        }
        let end = header.chaos.saturating_add(header.calm);
        Ok(self.finish(&recorded.history, end))
    }

    /// Judges further events; whether more are wanted.
    fn hear(&mut self, events: &mut [Event]) -> bool {
        for event in events {
            event.index = self.heard as u64;
            self.heard += 1;
            self.time = event.time;
            self.judge.see(event);
            self.convicted = self.judge.convicted().any(|check| check == self.check);
            if self.convicted {
                return false;
            }
            self.sooner = self.sooner.or_else(|| self.judge.convicted().next());
        }
        true
    }

    /// The last word: what was not heard yet, and what only the end decides.
    fn finish(mut self, history: &[Event], end: Nanos) -> Found {
        let at = match self.convicted {
            true => self.time,
            false => end,
        };
        if !self.convicted {
            let mut rest = history[self.heard.min(history.len())..].to_vec();
            self.hear(&mut rest);
        }
        // What only the last events show is sure then, or at the end of all.
        let sure = match self.convicted {
            true => self.time,
            false => end,
        };
        let verdicts = self.judge.finish();
        let evidence = match verdicts.of(self.check) {
            Some(Verdict::Violated(evidence)) => Some(evidence),
            _ => None,
        };
        let mut violated = verdicts.violated().map(|(check, _)| check);
        let other = violated.find(|check| *check != self.check);
        let conviction = evidence.map(|evidence| Conviction {
            at: sure,
            culprit: time_of(evidence.culprit, history).unwrap_or(sure),
            manifest: is_harm(self.check, evidence, history),
        });
        Found {
            at,
            conviction,
            sooner: self.sooner.or(other.filter(|_| conviction.is_none())),
        }
    }
}

/// What a trial came to.
struct Found {
    /// When the run ended, ns.
    at: Nanos,
    conviction: Option<Conviction>,
    sooner: Option<Check>,
}

fn time_of(index: u64, history: &[Event]) -> Option<Nanos> {
    let event = history.get(usize::try_from(index).ok()?)?;
    Some(event.time)
}

/// The CPU time of this thread: a simulation runs on the thread that asks for it.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Whether what a check convicted of is harm done, and not only a rule broken that keeps
/// harm away: two leaders, a stale write that landed, an update lost, a token granted
/// twice, nobody who leads. That something was forgotten is no harm yet.
fn is_harm(check: Check, evidence: &Evidence, history: &[Event]) -> bool {
    let Ok(culprit) = usize::try_from(evidence.culprit) else {
        return false;
    };
    let Some(event) = history.get(culprit) else {
        return false;
    };
    match (check, &event.body) {
        (
            Check::ZombieWrite
            | Check::BeliefSafety
            | Check::RegisterLinearizable
            | Check::Failover,
            _,
        ) => true,
        (Check::StorageSafety, Body::Observed(Observation::Applied(_))) => true,
        (Check::StorageSafety, Body::Complete(f, _)) => *f != F::Fence,
        (Check::TokenMonotonicity, Body::Observed(Observation::Granted(granted))) => {
            let same = |before: &Event| match &before.body {
                Body::Observed(Observation::Granted(earlier)) => {
                    earlier.lease == granted.lease && earlier.token >= granted.token
                }
                _ => false,
            };
            history[..culprit].iter().any(same)
        }
        _ => false,
    }
}

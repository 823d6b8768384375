//! Bugs that real systems had, each as a short schedule written by hand, with the flaw
//! planted that the system had, and the check that convicts it. Without the flaw the
//! same schedule does no harm.
//!
//! `cargo test --test cases` runs them all; to add one, add an entry to its file.

mod client;
mod storage;
mod store;

use deposed::{
    fault::{Injection, Schedule, Trigger},
    prelude::*,
    run::Header,
};

/// A bug that was reported, as a scenario.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Where it was reported: a repository's issue or pull request, or where in a source
    /// it was read.
    pub reports: &'static [&'static str],
    /// What happened, in one line.
    pub story: &'static str,
    /// Cluster, timing and traffic; its nemesis draws nothing.
    pub workload: Workload,
    /// What goes wrong, and when.
    pub schedule: Schedule,
    /// What the system shows under that without the flaw: a run that does not has told
    /// another story.
    pub shows: Vec<Mark>,
    /// The defect.
    pub flaw: Option<Flaw>,
    /// Who convicts it; `None` where the system is right and must be found so.
    pub convicted_by: Option<Check>,
}

impl Case {
    /// Two clients with a ttl of 300 ms, three seconds of the schedule, two of calm.
    fn of(name: &'static str, story: &'static str, reports: &'static [&'static str]) -> Self {
        Self {
            name,
            reports,
            story,
            workload: Workload {
                cluster: Cluster::of(2),
                chaos: 3 * SECOND,
                calm: 2 * SECOND,
                seeds: 10,
                ..Workload::named(name)
            },
            schedule: Schedule::new(),
            shows: Vec::new(),
            flaw: None,
            convicted_by: None,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Workload)) -> Self {
        change(&mut self.workload);
        self
    }

    fn under(mut self, schedule: impl IntoIterator<Item = Injection>) -> Self {
        self.schedule.extend(schedule);
        self
    }

    fn showing<const N: usize>(mut self, marks: [Mark; N]) -> Self {
        self.shows = marks.into();
        self
    }

    fn planting(mut self, flaw: Flaw, convicted_by: Check) -> Self {
        (self.flaw, self.convicted_by) = (Some(flaw), Some(convicted_by));
        self
    }

    /// Without a flaw: the configuration itself does not keep the promise.
    fn convicted_by(mut self, check: Check) -> Self {
        self.convicted_by = Some(check);
        self
    }

    /// The run of this case under a seed (latencies and backoffs differ), with its flaw
    /// or without.
    pub fn header(&self, seed: u64, system: &str, flawed: bool) -> Header {
        let flaw = self.flaw.filter(|_| flawed);
        Header {
            schedule: self.schedule.clone(),
            ..Header::of(&self.workload, seed, system, flaw)
        }
    }
}

/// Every case: clients, store, storage.
pub fn all() -> Vec<Case> {
    let mut cases = client::cases();
    cases.extend(store::cases());
    cases.extend(storage::cases());
    cases
}

/// At a time, ms.
fn at(ms: Nanos, fault: Fault) -> Injection {
    Injection {
        when: Trigger::At(ms * MS),
        fault,
    }
}

/// On the nth of a kind of event.
fn on(moment: Moment, nth: u32, fault: Fault) -> Injection {
    soon(moment, nth, 0, fault)
}

/// So many ms after the nth of a kind of event.
fn soon(moment: Moment, nth: u32, ms: Nanos, fault: Fault) -> Injection {
    let plus = ms * MS;
    Injection {
        when: Trigger::On { moment, nth, plus },
        fault,
    }
}

/// The leader and the store do not hear each other for so many ms.
fn cut_off(ms: Nanos) -> Fault {
    Fault::Partition {
        a: Target::Leader,
        b: Target::Store,
        length: ms * MS,
    }
}

/// The leader is not scheduled for so many ms, from its next read, write or fence on.
fn stalled(before: F, ms: Nanos) -> Fault {
    Fault::GcPause {
        target: Target::Leader,
        before: Some(before),
        length: ms * MS,
    }
}

/// The next frames of a kind come so many ms late.
fn late(kind: &str, count: u32, ms: Nanos) -> Fault {
    Fault::Delay {
        kind: kind.into(),
        from: Target::Everyone,
        to: Target::Everyone,
        count,
        by: ms * MS,
    }
}

/// The next frames of a kind are lost.
fn lost(kind: &str, count: u32) -> Fault {
    Fault::Lose {
        kind: kind.into(),
        from: Target::Everyone,
        to: Target::Everyone,
        count,
    }
}

/// The next frames of a kind come once more, so many ms later.
fn twice(kind: &str, count: u32, ms: Nanos) -> Fault {
    Fault::Duplicate {
        kind: kind.into(),
        from: Target::Everyone,
        to: Target::Everyone,
        count,
        by: ms * MS,
    }
}

/// A process crashes, and is back after so many ms.
fn crashed(target: Target, ms: Nanos) -> Fault {
    Fault::Crash {
        target,
        length: ms * MS,
    }
}

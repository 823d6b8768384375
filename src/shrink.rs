//! The smallest run that still fails: fewer faults and clients, a shorter run, rounder
//! times, and the same check violated.
//!
//! A run is a function of its [`Header`] alone, so shrinking one is a search among headers.
//! [`Smaller`] says which come in which order, as one of proptest's trees of values; here
//! they are run, several at a time, each only until it is convicted. What is found does
//! not depend on how many run at a time, nor on how fast they are, unless time is up.

mod change;
mod knob;
mod ladder;
mod pass;
mod tree;

use std::{
    fmt,
    num::NonZero,
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use deposed_checkers::{history::Nanos, verdict::Check};
use proptest::strategy::ValueTree;
use rustix::time::{ClockId, clock_gettime};
use tracing::subscriber::NoSubscriber;

use crate::{
    hunt,
    parallel::{MOST_JOBS, in_order},
    report::{text::counted, words},
    run::Header,
    system::System,
};

pub use tree::{Conviction, Failing, Smaller};

/// How many runs are begun ahead for each that runs at a time: the first success makes
/// those after it vain.
const AHEAD: usize = 4;

/// How a failure is shrunk.
pub struct Shrink<'a> {
    /// On which system.
    pub system: &'a Arc<dyn System>,
    /// Which check must stay violated.
    pub check: Check,
    /// How many runs go on at a time.
    pub jobs: NonZero<usize>,
    /// How long it may take; what is found by then counts.
    pub within: Duration,
    /// Once true, no further run begins.
    pub stop: &'a AtomicBool,
    /// Told after each run: the smallest so far, and how many were run.
    pub progress: &'a dyn Fn(&Header, u64),
}

/// What shrinking came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The smallest run that was found to violate the check.
    pub header: Header,
    /// How many were tried for it.
    pub runs: u64,
    /// Why it ended there.
    pub end: End,
}

/// Why shrinking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing smaller fails, of all that is tried.
    Smallest,
    /// Time was up.
    OutOfTime,
    /// It was stopped.
    Stopped,
}

/// The run that was to be shrunk does not violate the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not violated: there is nothing to shrink")]
pub struct NotViolated(pub Check);

impl Shrink<'_> {
    /// Makes a run smaller as long as it violates the check. Harm that was done stays
    /// harm: of a stale write that landed it never makes a fence that was merely out of
    /// order.
    ///
    /// # Errors
    /// It does not violate the check to begin with.
    pub fn run(&self, header: &Header) -> Result<Shrunk, NotViolated> {
        let began = monotonic();
        let within = self.within;
        let conviction =
            conviction(header, self.system, self.check).ok_or(NotViolated(self.check))?;
        let mut tree = Smaller::new(header.clone(), conviction);
        let mut runs = 1;
        let mut more = tree.simplify();
        let is_over = || monotonic().saturating_sub(began) >= within;
        let end = loop {
            if !more {
                break End::Smallest;
            }
            if self.stop.load(Ordering::Relaxed) {
                break End::Stopped;
            }
            if is_over() {
                break End::OutOfTime;
            }
            (tree, more) = self.next(tree, conviction.manifest, &is_over, &mut runs);
        };
        Ok(Shrunk {
            header: tree.best().clone(),
            runs,
            end,
        })
    }

    /// Runs what would be tried if nothing failed, and takes the first that does: what
    /// was run beyond it is forgotten.
    fn next(
        &self,
        tree: Smaller,
        manifest: bool,
        is_over: &(dyn Fn() -> bool + Sync),
        runs: &mut u64,
    ) -> (Smaller, bool) {
        let mut ahead = vec![tree];
        let most = self.jobs.get().min(MOST_JOBS) * AHEAD;
        while ahead.len() < most {
            let mut next = ahead[ahead.len() - 1].clone();
            if !next.complicate() {
                break;
            }
            ahead.push(next);
        }
        let (mut told, mut hit) = (0, None);
        let (system, check, stop) = (self.system, self.check, self.stop);
        let enough = AtomicBool::new(false);
        let work = |tree: &Smaller| {
            let found = conviction(&tree.current(), system, check);
            if stop.load(Ordering::Relaxed) || is_over() {
                enough.store(true, Ordering::Relaxed);
            }
            found
        };
        let done = in_order(ahead.iter(), self.jobs, &enough, work, |found| {
            told += 1;
            *runs += 1;
            hit = found.filter(|conviction| conviction.manifest || !manifest);
            Ok(match hit {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            })
        });
        // Nothing above goes wrong.
        debug_assert_eq!(done, Ok(()));
        let mut tree = ahead.swap_remove(told.max(1) - 1);
        let more = match hit {
            Some(conviction) => {
                tree.convicted(conviction);
                tree.simplify()
            }
            None => tree.complicate(),
        };
        (self.progress)(tree.best(), *runs);
        (tree, more)
    }
}

/// Runs a header until the check convicts it. One that goes wrong as a whole does not fail
/// as the first did.
fn conviction(header: &Header, system: &Arc<dyn System>, check: Check) -> Option<Conviction> {
    // A thousand runs are no story (`RUST_LOG`).
    tracing::subscriber::with_default(NoSubscriber::default(), || {
        let run = || hunt::conviction(header, system, check);
        catch_unwind(AssertUnwindSafe(run)).ok()?.ok()?
    })
}

/// How large a run is, in what its reader must take in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Entries of its schedule.
    pub faults: usize,
    /// Clients.
    pub clients: u8,
    /// Chaos and calm together, ns.
    pub length: Nanos,
}

impl Size {
    /// Of a header.
    pub fn of(header: &Header) -> Self {
        Self {
            faults: header.schedule.len(),
            clients: header.cluster.clients,
            length: header.chaos.saturating_add(header.calm),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {}, {}",
            counted(self.faults as u64, "fault"),
            counted(self.clients.into(), "client"),
            words::span(self.length),
        )
    }
}

/// Time that only goes on, to end a search in time; nothing that is found depends on it.
pub(crate) fn monotonic() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(time.tv_sec.unsigned_abs(), nanos)
}

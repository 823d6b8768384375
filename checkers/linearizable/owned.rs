//! A lock that only its holder releases, with tokens that rise or without.
//!
//! A process does one thing after the other, so a lock that it holds it holds at least
//! from the completion of its acquire to the invoke of its release. More is never of
//! use: an acquire can take effect as late as it completes, a release as early as it
//! is invoked, and both only leave the lock to others for longer. So the history has an
//! order if and only if these spans do not overlap and each ends with a release of the
//! same process; the order of the spans is the only one, and tokens must rise in it.
//! Exact, in one pass.
//!
//! A release that was never answered may have taken effect, so it ends the span; one
//! that failed does not. An acquire without an answer need not have happened: its
//! process does nothing more. Memory: a call or two of each process
//! that is still there.

use std::collections::BTreeMap;

/// One call that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub process: u32,
    pub invoke: u64,
    pub complete: u64,
}

/// What no order explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The second acquired while the first held.
    Overlap(Call, Call),
    /// The last release failed, so that the first held when the second acquired.
    Unreleased(Call, Call, Call),
    /// A release by one that did not hold, and the release that it made last.
    NotHolder(Option<Call>, Call),
    /// The second acquire's token is not above the first one's.
    NotAbove(Call, i64, Call, i64),
}

struct Hold {
    acquire: Call,
    /// The invoke of its release, once there is one.
    releasing: Option<u64>,
}

/// One lock, free at first.
#[derive(Default)]
pub(crate) struct Owned {
    holds: BTreeMap<u32, Hold>,
    /// Who holds, and is not releasing.
    holder: Option<u32>,
    acquired: Option<Call>,
    /// What each process released last.
    released: BTreeMap<u32, Call>,
    highest: Option<(Call, i64)>,
}

impl Owned {
    /// How many processes are remembered.
    pub fn remembered(&self) -> usize {
        self.holds.len() + self.released.len()
    }

    /// A process holds it no more.
    fn lets_go(&mut self, process: u32) -> Option<Hold> {
        let held = self.holds.remove(&process);
        if self.holds.is_empty() {
            // An empty map may hold on to its memory.
            self.holds = BTreeMap::new();
        }
        held
    }

    /// A process begins to release.
    pub fn releases(&mut self, process: u32, invoke: u64) {
        if let Some(hold) = self.holds.get_mut(&process) {
            hold.releasing = Some(invoke);
            self.holder.take_if(|holder| *holder == process);
        }
    }

    /// A release surely happened.
    pub fn released(&mut self, release: Call) -> Result<(), Wrong> {
        let before = self.released.insert(release.process, release);
        let held = self.lets_go(release.process);
        held.map(drop).ok_or(Wrong::NotHolder(before, release))
    }

    /// A release may have happened; its process is gone.
    pub fn lost_release(&mut self, process: u32) {
        self.lets_go(process);
        self.released.remove(&process);
    }

    /// A release surely did not happen.
    pub fn failed_release(&mut self, release: Call) -> Result<(), Wrong> {
        let Some(hold) = self.holds.get_mut(&release.process) else {
            return Ok(());
        };
        hold.releasing = None;
        let since = self
            .acquired
            .filter(|other| other.complete > release.invoke);
        if let Some(other) = since {
            return Err(Wrong::Unreleased(hold.acquire, other, release));
        }
        self.holder = Some(release.process);
        Ok(())
    }

    /// An acquire was answered.
    pub fn acquired(&mut self, acquire: Call, token: Option<i64>) -> Result<(), Wrong> {
        let before = self.holder.and_then(|holder| self.holds.get(&holder));
        if let Some(hold) = before {
            return Err(Wrong::Overlap(hold.acquire, acquire));
        }
        if let Some(token) = token {
            if let Some((before, highest)) = self.highest.filter(|(_, highest)| *highest >= token) {
                return Err(Wrong::NotAbove(before, highest, acquire, token));
            }
            self.highest = Some((acquire, token));
        }
        self.holder = Some(acquire.process);
        self.acquired = Some(acquire);
        let hold = Hold {
            acquire,
            releasing: None,
        };
        self.holds.insert(acquire.process, hold);
        Ok(())
    }
}

//! Configurations side by side: the same workload, over the same seeds and so under the
//! same schedule of faults, on other storages, without the barrier, with a lock-delay.

mod measures;

use deposed_checkers::history::Nanos;

use crate::{cluster::StorageKind, workload::Workload};

pub use measures::{Measures, middle_and_longest};

/// One of the configurations that a workload compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    /// What it is called in the table.
    pub name: &'static str,
    /// What the leaders write to.
    pub storage: StorageKind,
    /// Whether a new leader works without having fenced.
    pub without_barrier: bool,
    /// How long the store refuses new owners after an expiry, ns.
    pub lock_delay: Nanos,
}

impl Arm {
    /// The workload in this configuration. Nothing else differs: the faults of a seed are
    /// those of the workload itself.
    pub fn of(&self, workload: &Workload) -> Workload {
        let mut workload = workload.clone();
        workload.cluster.storage = self.storage;
        workload.traffic.without_barrier = self.without_barrier;
        workload.lease.lock_delay = self.lock_delay;
        workload
    }

    /// Whether it is the workload's own configuration, whose checks must hold. Of the
    /// others some are there to be violated.
    pub fn is_own(&self, workload: &Workload) -> bool {
        self.storage == workload.cluster.storage
            && self.without_barrier == workload.traffic.without_barrier
            && self.lock_delay == workload.lease.lock_delay
    }
}

//! What a workload's file and a suite's `main` need: `use deposed::prelude::*;`.

pub use deposed_checkers::{
    history::{F, Nanos},
    verdict::Check,
};

pub use crate::{
    cluster::{Cluster, DiskKind, StorageKind},
    compare::Arm,
    fault::{Fault, Moment, Target},
    flaw::Flaw,
    lease::LeaseConfig,
    mark::Mark,
    nemesis::{
        Choice, Length, Nemesis, backup, bridge, crash, delay, duplicate, each_kind, flaky,
        full_disk, gc_pause, halves, hold, io_error, isolate, latency, lose, lose_exactly,
        partition, partition_oneway, pause, power_cut, power_loss, rate, restore, slow_sync,
        starve, step, suspend,
    },
    net::LocalFuture,
    node::Node,
    system::{Deposed, Setup, System},
    workload::{Clocks, MS, Network, SECOND, Traffic, Workload},
};

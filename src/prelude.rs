//! What a workload's file and a suite's `main` need: `use deposed::prelude::*;`.

pub use deposed_checkers::{
    history::{F, Nanos},
    verdict::Check,
};

pub use crate::{
    cluster::{Cluster, DiskKind, StorageKind},
    fault::{Fault, Moment, Target},
    flaw::Flaw,
    lease::LeaseConfig,
    mark::Mark,
    nemesis::{
        Choice, Length, Nemesis, backup, crash, delay, duplicate, each_kind, full_disk, gc_pause,
        hold, io_error, isolate, latency, lose, lose_exactly, partition, partition_oneway, pause,
        power_cut, power_loss, rate, restore, slow_sync, step,
    },
    net::LocalFuture,
    node::Node,
    system::{Deposed, Setup, System},
    workload::{Clocks, MS, Network, SECOND, Traffic, Workload},
};

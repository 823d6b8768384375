//! What a workload's file and a suite's `main` need: `use deposed::prelude::*;`.

pub use deposed_checkers::{
    history::{F, Nanos},
    verdict::Check,
};

pub use crate::{
    cluster::{Cluster, StorageKind},
    compare::Arm,
    fault::{Fault, Moment, Target},
    flaw::Flaw,
    lease::LeaseConfig,
    mark::Mark,
    nemesis::{
        Choice, Length, Nemesis, bridge, crash, delay, duplicate, each_kind, flaky, gc_pause,
        halves, hold, isolate, latency, lose, lose_exactly, partition, partition_oneway, pause,
        power_loss, rate, starve, step, suspend,
    },
    net::LocalFuture,
    node::Node,
    system::{Deposed, Setup, System},
    workload::{Clocks, MS, Network, SECOND, Traffic, Workload},
};

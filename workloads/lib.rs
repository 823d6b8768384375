//! The fault workloads: one file each, plain data, and the list that makes each of
//! them a `#[test]`, a name for `deposed run`, and a row of the README's table.
//!
//! To add one, write its file and add a line to the list below. Tests are named
//! with underscores, as Rust wants it: `cargo test gc_pause`, but
//! `deposed run gc-pause`. A filter with a hyphen would match no test and look like
//! a pass; `tests/names.rs` fails instead and says what to type.

pub mod cases;

use deposed::workload::Workload;

macro_rules! workloads {
    ($($name:ident,)+) => {
        $(pub mod $name;)+

        /// Every workload, in the order of the README's table.
        pub fn all() -> Vec<Workload> {
            vec![$($name::workload()),+]
        }

        $(
            #[cfg(test)]
            #[test]
            fn $name() {
                // Prints a failure as `deposed run` does, and leaves its history in runs/.
                let system: std::sync::Arc<dyn deposed::system::System> =
                    std::sync::Arc::new(deposed::system::Deposed);
                deposed::campaign::test(&$name::workload(), &system);
            }
        )+
    };
}

workloads![
    calm,
    steady_leader,
    gc_pause,
    slow_network,
    lossy_network,
    duplicates,
    partition_leader,
    partition_one_way,
    split,
    flaky_links,
    suspend,
    starvation,
    blackout,
    clock_drift,
    clock_drift_beyond,
    clock_offset,
    wall_clock_steps,
    write_before_fence,
    fence_unavailable,
    resign,
    late_grant,
    client_restart,
    store_restart,
    store_restored,
    disk_power_loss,
    disk_errors,
    lock_delay,
    unfenced_effect,
    many_leases,
    compare_and_swap,
    quorum,
    chaos,
    chaos_on_disks,
];

#[cfg(test)]
mod check;

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

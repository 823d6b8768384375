//! `deposed prove` in a process that is short of memory: this one, which does nothing else.

#![cfg(target_os = "linux")]

use std::{fs, num::NonZero, sync::atomic::AtomicBool};

use deposed::prove::{End, Rules, Scope, Search};

/// The most memory that this process ever had, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("what the system tells");
    let told = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("the peak");
    let kib = told.split_whitespace().next().expect("a number");
    1_024 * kib.parse::<u64>().expect("a number")
}

#[test]
fn the_process_stays_within_the_memory_that_it_is_allowed() {
    for allowed in [256_000_000, 512_000_000] {
        let found = Search {
            // One that nobody sees the end of.
            scope: Scope {
                clients: 4,
                ttl: 30,
                in_flight: 6,
                ..Scope::default()
            },
            rules: Rules::ALL,
            jobs: NonZero::new(2).expect("two"),
            max_memory: allowed,
            within: None,
            max_depth: usize::MAX,
            stop: &AtomicBool::new(false),
        }
        .run();
        let (told, taken) = (found.memory, peak());
        println!("allowed {allowed} bytes, told {told}, taken {taken}");
        assert_eq!(found.end, End::OutOfMemory);
        assert!(told <= allowed, "{told} of {allowed} bytes");
        assert!(taken <= told, "{taken} bytes of {told}");
        assert!(taken > 16_000_000, "it is seen to take any: {taken}");
    }
}

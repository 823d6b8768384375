//! Every state of one small world, found by `deposed prove` and by stateright, an
//! established model checker: the same states, the same steps, the same properties, on as
//! many threads.
//!
//! `cargo bench -p deposed-bench-prove` takes a few minutes. Each search has a process of its
//! own, and the sides take turns. Time is by the wall clock, from an empty memory to the last
//! state; memory is the most that the process ever had.

use std::{
    process::Command,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use deposed::prove::{End, Rules, Scope, Search};

mod model;

/// How often each side searches.
const ROUNDS: usize = 3;

/// Who searches, and through what.
#[derive(Clone, Copy)]
enum Side {
    /// `deposed prove`.
    Deposed,
    /// stateright, which is handed the states of `deposed prove`.
    Compact,
    /// stateright, which is handed states that hold the nodes themselves.
    Plain,
}

const SIDES: [(Side, &str, &str); 3] = [
    (Side::Deposed, "deposed", "deposed prove"),
    (Side::Compact, "compact", "stateright, the same states"),
    (
        Side::Plain,
        "plain",
        "stateright, states that hold the nodes",
    ),
];

/// The world that is searched, as its command line has it.
fn scope() -> (Scope, &'static str) {
    let scope = Scope {
        in_flight: 2,
        drift: "1/4".parse().unwrap(),
        ..Scope::default()
    };
    (scope, "--drift 1/4 --in-flight 2")
}

/// What came of one search.
#[derive(Clone, Copy)]
struct Outcome {
    states: u64,
    steps: u64,
    took: Duration,
    /// In KiB.
    peak: u64,
}

impl Outcome {
    fn rate(self) -> f64 {
        self.states as f64 / self.took.as_secs_f64()
    }
}

/// Searches, and prints what came of it.
#[allow(clippy::disallowed_methods, reason = "a bench measures")]
fn search(side: &str, jobs: usize) {
    let (scope, _) = scope();
    let began = Instant::now();
    let (states, steps) = match side {
        "deposed" => {
            let found = Search {
                scope,
                rules: Rules::ALL,
                jobs: jobs.try_into().unwrap(),
                max_memory: u64::MAX,
                within: None,
                max_depth: usize::MAX,
                stop: &AtomicBool::new(false),
            }
            .run();
            assert_eq!(found.end, End::Holds);
            (found.states, found.steps)
        }
        "compact" => model::compact(scope, jobs),
        _ => model::plain(scope, jobs),
    };
    let took = began.elapsed();
    println!("{states} {steps} {} {}", took.as_nanos(), peak());
}

/// The most memory that this process had, in KiB; 0 where the system does not tell.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Searches in a process of its own.
fn searched(side: &str, jobs: usize) -> Outcome {
    let program = std::env::current_exe().unwrap();
    let ended = Command::new(program)
        .args(["search", side, &jobs.to_string()])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{side}: {complaint}");
    let text = String::from_utf8(ended.stdout).unwrap();
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    let [states, steps, nanos, peak] = numbers[..] else {
        panic!("{side} said {text}");
    };
    Outcome {
        states,
        steps,
        took: Duration::from_nanos(nanos),
        peak,
    }
}

fn table() {
    let (_, flags) = scope();
    println!(
        "deposed prove {flags}: every state, the fastest of {ROUNDS} searches a side, in turn\n"
    );
    for jobs in [1, 2] {
        let mut fastest: [Option<Outcome>; SIDES.len()] = [None; SIDES.len()];
        for _ in 0..ROUNDS {
            for ((_, side, _), fastest) in SIDES.iter().zip(&mut fastest) {
                let outcome = searched(side, jobs);
                if fastest.is_none_or(|fastest| outcome.took < fastest.took) {
                    *fastest = Some(outcome);
                }
            }
        }
        let fastest = fastest.map(Option::unwrap);
        for ((_, _, name), outcome) in SIDES.iter().zip(fastest) {
            println!(
                "{jobs} thread{}  {name:<38}  {} states, {} steps  {:>6.2} s  {:>7.0} states/s  {:>5} MB  x {:.2}",
                if jobs == 1 { " " } else { "s" },
                outcome.states,
                outcome.steps,
                outcome.took.as_secs_f64(),
                outcome.rate(),
                outcome.peak * 1_024 / 1_000_000,
                outcome.rate() / fastest[0].rate(),
            );
            // Else they did not search the same world.
            assert_eq!(outcome.states, fastest[0].states);
            assert_eq!(outcome.steps, fastest[0].steps);
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("search") => search(&args[1], args[2].parse().unwrap()),
        _ => table(),
    }
}

//! Foreign histories, judged here and by porcupine, an established checker that
//! searches: locks with fencing tokens, registers whose values are written once, and
//! registers of five values with `cas`, also where one call in a hundred is never answered;
//! whole, and with one answer corrupted after nine tenths.
//!
//! `cargo bench -p deposed-bench-models` judges 10,000, 100,000 and 1,000,000 operations of 3,
//! 5, 10 and 30 clients, and takes some ten minutes, most of which the other side waits for
//! its limit of ten seconds. Where it did not end, longer histories of the same kind are not
//! put before it. After `--`:
//!
//! - `--limit 60`: another limit, in seconds, for the other side;
//! - `--each`: every length is put before the other side;
//! - `--ours`: this crate's side alone;
//! - `--only cas-register`, `--clients 30`, `--most 100000`: a part of it.
//!
//! Each judgement has a process of its own, with a limit on its time and on its address
//! space. Its time is that on the processor, and for this crate's side it has the making
//! of the history in it, line by line, as a reader would; the other side is handed its
//! operations ready. Memory is the most that the process ever had.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

mod made;
mod sides;

use made::{Made, Shape};

/// The address space of a judgement, in KiB: 4 GiB.
const SPACE: u64 = 4 << 20;

/// What came of one judgement.
struct Outcome {
    verdict: String,
    /// On the processor, and at its peak in KiB.
    took: Option<(Duration, u64)>,
}

impl Outcome {
    fn said(&self) -> String {
        let Some((time, peak)) = self.took else {
            return format!("{:>29}", self.verdict);
        };
        let time = time.as_secs_f64() * 1e3;
        format!("{:>9} {time:>9.1} ms {:>4} MiB", self.verdict, peak >> 10)
    }
}

/// Judges in a process of its own, within limits.
#[allow(
    clippy::disallowed_methods,
    reason = "a bench measures, and waits for a process"
)]
fn judged(side: &str, made: &Made, limit: Duration) -> Outcome {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {SPACE}; exec \"$0\" \"$@\"")])
        .arg(program)
        .args(["judge", side, made.shape.name()])
        .args([made.clients, made.operations, made.corrupted].map(|n| n.to_string()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let Some(status) = status else {
        let verdict = format!("none in {} s", limit.as_secs());
        return Outcome {
            verdict,
            took: None,
        };
    };
    let mut text = String::new();
    if let Some(mut out) = child.stdout.take() {
        std::io::Read::read_to_string(&mut out, &mut text).unwrap();
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    match fields[..] {
        [verdict, nanos, peak] if status.success() => Outcome {
            verdict: verdict.to_owned(),
            took: Some((
                Duration::from_nanos(nanos.parse().unwrap()),
                peak.parse().unwrap(),
            )),
        },
        _ => Outcome {
            verdict: "died".to_owned(),
            took: None,
        },
    }
}

/// What is asked for.
struct Asked {
    limit: Duration,
    each: bool,
    ours: bool,
    only: Option<Shape>,
    clients: Option<u64>,
    most: u64,
}

impl Asked {
    fn of(args: &[String]) -> Self {
        let is_given = |name: &str| args.iter().any(|arg| arg == name);
        let after = |name: &str| {
            let at = args.iter().position(|arg| arg == name)?;
            Some(args.get(at + 1).expect("a value after it").as_str())
        };
        let number = |name: &str| after(name).map(|text| text.parse().expect("a number"));
        Asked {
            limit: Duration::from_secs(number("--limit").unwrap_or(10)),
            each: is_given("--each"),
            ours: is_given("--ours"),
            only: after("--only").map(Shape::named),
            clients: number("--clients"),
            most: number("--most").unwrap_or(1_000_000),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a bench measures")]
fn table(asked: &Asked) {
    let start = Instant::now();
    println!(
        "{:<14} {:>7} {:>10} {:>9}  {:>29}  {:>29}  ns an operation, and the time of ten times as many",
        "history", "clients", "operations", "", "deposed", "porcupine-rs"
    );
    for shape in Shape::ALL {
        for clients in [3, 5, 10, 30] {
            let is_other = asked.only.is_some_and(|only| only != shape)
                || asked.clients.is_some_and(|only| only != clients);
            if !is_other {
                lengths(asked, shape, clients, 0);
                lengths(asked, shape, clients, 1);
            }
        }
    }
    println!("in {} s", start.elapsed().as_secs());
}

/// One kind of history, ever longer.
fn lengths(asked: &Asked, shape: Shape, clients: u64, corrupted: u64) {
    let mut before: Option<Duration> = None;
    let mut other_ended = true;
    let lengths = [10_000, 100_000, 1_000_000];
    for operations in lengths.into_iter().filter(|length| *length <= asked.most) {
        let made = Made {
            shape,
            clients,
            operations,
            corrupted,
        };
        // This side is to end by itself.
        let ours = judged("deposed", &made, Duration::from_secs(300));
        let other = match (asked.ours, other_ended || asked.each) {
            (true, _) => String::new(),
            (false, false) => "not tried".to_owned(),
            (false, true) => {
                let other = judged("porcupine", &made, asked.limit);
                other_ended = other.took.is_some();
                other.said()
            }
        };
        let took = ours.took.map(|(time, _)| time);
        let each = took.map(|time| {
            let read = operations as f64 * if corrupted == 1 { 0.9 } else { 1.0 };
            format!("{:.0}", time.as_nanos() as f64 / read)
        });
        let grew = before.zip(took).map(|(before, time)| {
            let grew = time.as_secs_f64() / before.as_secs_f64();
            format!(", times {grew:.1}")
        });
        println!(
            "{:<14} {clients:>7} {operations:>10} {:>9}  {}  {other:>29}  {}{}",
            shape.name(),
            if corrupted == 1 { "corrupted" } else { "" },
            ours.said(),
            each.unwrap_or_default(),
            grew.unwrap_or_default(),
        );
        let expected = if corrupted == 1 { "violated" } else { "valid" };
        assert_eq!(ours.verdict, expected, "of a history made to be so");
        before = took;
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args[at].parse::<u64>().unwrap();
    match args.first().map(String::as_str) {
        Some("judge") => {
            let made = Made {
                shape: Shape::named(&args[2]),
                clients: number(3),
                operations: number(4),
                corrupted: number(5),
            };
            sides::judge(&args[1], &made);
        }
        _ => table(&Asked::of(&args)),
    }
}

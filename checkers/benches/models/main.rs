//! Foreign histories, judged here and by porcupine, an established checker that
//! searches: locks with fencing tokens, registers whose values are written once, and
//! registers of five values with `cas`; whole, and with one answer corrupted after nine
//! tenths.
//!
//! `cargo bench -p deposed-bench-models` takes a few minutes; with `-- --full`
//! up to a million operations and longer limits, half an hour or so; with `-- --ours`
//! this crate's side alone.
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

fn table(full: bool, ours_alone: bool) {
    let lengths: &[u64] = match full {
        true => &[10_000, 100_000, 1_000_000],
        false => &[10_000, 100_000],
    };
    let (clients, limit): (&[u64], u64) = match full {
        true => (&[3, 5, 10, 30], 20),
        false => (&[3, 30], 5),
    };
    let limit = Duration::from_secs(limit);
    println!(
        "{:<14} {:>7} {:>10} {:>9}  {:>29}  {:>29}  ns an operation, and how it grew",
        "history", "clients", "operations", "", "deposed", "porcupine-rs"
    );
    for shape in Shape::ALL {
        for clients in clients {
            for corrupted in [0, 1] {
                let mut before: Option<f64> = None;
                for operations in lengths {
                    let made = Made {
                        shape,
                        clients: *clients,
                        operations: *operations,
                        corrupted,
                    };
                    // This side is to end by itself.
                    let ours = judged("deposed", &made, limit.max(Duration::from_secs(120)));
                    let other = match ours_alone {
                        true => String::new(),
                        false => judged("porcupine", &made, limit).said(),
                    };
                    let each = ours.took.map(|(time, _)| {
                        let read = *operations as f64 * if corrupted == 1 { 0.9 } else { 1.0 };
                        time.as_nanos() as f64 / read
                    });
                    let grew = before.zip(each).map(|(before, each)| each / before);
                    println!(
                        "{:<14} {clients:>7} {operations:>10} {:>9}  {}  {other:>29}  {}{}",
                        shape.name(),
                        if corrupted == 1 { "corrupted" } else { "" },
                        ours.said(),
                        each.map_or(String::new(), |each| format!("{each:.0}")),
                        grew.map_or(String::new(), |grew| format!(", times {grew:.2}")),
                    );
                    let expected = if corrupted == 1 { "violated" } else { "valid" };
                    // Thirty clients that all use cas at once are too many for the budget.
                    let fits = [expected, "unknown"].contains(&ours.verdict.as_str());
                    assert!(fits, "{} of a history made to be {expected}", ours.verdict);
                    before = each;
                }
            }
        }
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
        _ => table(
            args.iter().any(|arg| arg == "--full"),
            args.iter().any(|arg| arg == "--ours"),
        ),
    }
}

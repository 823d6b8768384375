//! From file to verdict by every check, on one core: a million operations and ten
//! millions, side by side, with what the process that judged them had in memory at most.
//! `cargo bench -p deposed-checkers`, with names of checks after a `--` to judge by those
//! alone. It takes 4 GB in the directory for temporary files, and a minute.
//!
//! Each size is judged by a process of its own, so that its memory is its own. Where the
//! system tells (Linux) the time is also that on the processor, which a busy machine
//! changes less, and the memory is the most that was resident.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use deposed_checkers::history::*;
use deposed_checkers::judge::Judge;
use deposed_checkers::reader;
use deposed_checkers::verdict::{Check, Verdict};
use deposed_checkers::writer::Writer;
use serde_json::{Value, json};

/// What is measured, in operations: each is two lines.
const SIZES: [u64; 2] = [1_000_000, 10_000_000];

/// Terms of a hundred operations by five clients in turn, node events left out.
fn write_history(path: &Path, operations: u64) {
    let header = json!({"deposed": 1, "lease": {"ttl": 1_000_000_000u64}});
    let header = serde_json::from_value(header).unwrap();
    let mut writer = Writer::new(BufWriter::new(File::create(path).unwrap()), &header).unwrap();
    let (mut index, lease): (u64, Name) = (0, "leader".into());
    let mut values = [const { Value::Null }; 17];
    for call in 0..operations {
        let (token, place) = (call / 100 + 1, call % 100);
        let process: Name = format!("client-{}", token % 5).into();
        let (lease, holder) = (lease.clone(), format!("{process}#1").into());
        let (key, read): (Name, _) = (format!("key-{}", call % 17).into(), Some(token));
        let value = &mut values[(call % 17) as usize];
        let (op, answer) = match place {
            0 => (
                Op::Acquire(Acquire {
                    lease,
                    holder,
                    request: token,
                    ttl: 1_000_000_000,
                }),
                Answer::Token(token),
            ),
            1 => (Op::Fence(Fence { lease, token }), Answer::None),
            99 => (
                Op::Release(Release {
                    lease,
                    holder,
                    token: read,
                }),
                Answer::None,
            ),
            _ if call % 10 == 0 => (
                Op::Renew(Renew {
                    lease,
                    holder,
                    token: read,
                    attempt: call,
                    ttl: 1_000_000_000,
                }),
                Answer::None,
            ),
            _ if call % 2 == 0 => (
                Op::Read(Read {
                    lease,
                    token: read,
                    key,
                }),
                Answer::Value(value.clone()),
            ),
            _ => {
                *value = json!(format!("{call}/{token}.{place}"));
                let op = Op::Write(Write {
                    lease,
                    token: read,
                    seq: Some(place),
                    key,
                    value: value.clone(),
                });
                (op, Answer::None)
            }
        };
        let completion = Body::Complete(op.f(), answer);
        for (kind, body) in [(Kind::Invoke, Body::Invoke(op)), (Kind::Ok, completion)] {
            let (time, process) = (index * 1_000_000, process.clone());
            let event = Event {
                index,
                time,
                process,
                kind,
                call: Some(call),
                body,
                error: None,
            };
            writer.write(&event).unwrap();
            index += 1;
        }
    }
    writer.finish().unwrap();
}

/// Time that passed, and time on the processor where the system tells.
#[derive(Clone, Copy)]
struct Lap {
    wall: Duration,
    processor: Option<Duration>,
}

/// What is counted from one call to the next.
#[expect(clippy::disallowed_methods, reason = "a bench measures")]
fn stopwatch() -> impl FnMut() -> Lap {
    let on_the_processor = || {
        let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let counted = schedstat.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(counted))
    };
    let (mut counted, mut start) = (on_the_processor(), Instant::now());
    move || {
        let wall = std::mem::replace(&mut start, Instant::now()).elapsed();
        let before = std::mem::replace(&mut counted, on_the_processor());
        let processor = before.zip(counted).map(|(before, now)| now - before);
        Lap { wall, processor }
    }
}

/// The most that was resident, in MiB.
fn most_resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib.div_ceil(1024))
}

/// The process that judges: prints what it took.
fn judge_file(path: &str, checks: &[Check]) {
    let mut lap = stopwatch();
    let (header, events) = reader::open(path).unwrap();
    let mut judge = Judge::of(&header, checks);
    let mut lines = 0u64;
    for event in events {
        judge.see(&event.unwrap());
        lines += 1;
    }
    let verdicts = judge.finish();
    let Lap { wall, processor } = lap();
    let seconds = processor.unwrap_or(wall).as_secs_f64();
    let or_unknown = |what: Option<String>| what.unwrap_or_else(|| "unknown".to_owned());
    println!(
        "{:>10} operations  {wall:>7.2?} passed, {} on the processor  {:>9.0} lines a second  {} MiB at most",
        lines / 2,
        or_unknown(processor.map(|processor| format!("{processor:.2?}"))),
        lines as f64 / seconds,
        or_unknown(most_resident().map(|most| most.to_string())),
    );
    for (check, verdict) in verdicts.0 {
        assert!(
            matches!(verdict, Verdict::Valid | Verdict::NotClaimed(_)),
            "{check}: {verdict:?}"
        );
    }
}

/// Set for the process that judges: the file.
const FILE: &str = "DEPOSED_SPEED_FILE";

fn main() {
    let named: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let mut checks: Vec<Check> = named.iter().map(|name| name.parse().unwrap()).collect();
    if checks.is_empty() {
        checks = Check::ALL.to_vec();
    }
    if let Ok(path) = std::env::var(FILE) {
        return judge_file(&path, &checks);
    }
    let path = std::env::temp_dir().join(format!("deposed-speed-{}.jsonl", std::process::id()));
    for operations in SIZES {
        write_history(&path, operations);
        let this = std::env::current_exe().unwrap();
        let judged = Command::new(this).args(&named).env(FILE, &path).status();
        std::fs::remove_file(&path).unwrap();
        assert!(judged.unwrap().success(), "{operations} operations");
    }
}

//! How long a million operations take, on one core: reading the file, and reading and
//! judging it, in one run. `cargo bench -p deposed-checkers`, with names of checks
//! after a `--` to judge by those alone.
//!
//! Where the system tells it (Linux) it is the time on the processor, so that a busy
//! machine measures the same.

use std::fs::File;
use std::io::BufWriter;
use std::time::{Duration, Instant};

use deposed_checkers::history::*;
use deposed_checkers::judge::Judge;
use deposed_checkers::reader;
use deposed_checkers::verdict::{Check, Verdict};
use deposed_checkers::writer::Writer;
use serde_json::{Value, json};

const OPERATIONS: u64 = 1_000_000;

/// Terms of a hundred operations by five clients in turn, node events left out.
fn write_history(path: &std::path::Path) {
    let header = json!({"deposed": 1, "lease": {"ttl": 1_000_000_000u64}});
    let header = serde_json::from_value(header).unwrap();
    let mut writer = Writer::new(BufWriter::new(File::create(path).unwrap()), &header).unwrap();
    let (mut index, lease): (u64, Name) = (0, "leader".into());
    let mut values = [const { Value::Null }; 17];
    for call in 0..OPERATIONS {
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

/// What is counted from one call to the next.
#[allow(clippy::disallowed_methods, reason = "a bench measures")]
fn stopwatch() -> impl FnMut() -> (Duration, &'static str) {
    let on_the_processor = || {
        let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let counted = schedstat.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(counted))
    };
    let (mut counted, mut start) = (on_the_processor(), Instant::now());
    move || {
        let wall = std::mem::replace(&mut start, Instant::now());
        let before = std::mem::replace(&mut counted, on_the_processor());
        match before.zip(counted) {
            Some((before, now)) => (now - before, "on the processor"),
            None => (wall.elapsed(), "by the wall clock"),
        }
    }
}

fn main() {
    let named = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let named: Vec<Check> = named.map(|name| name.parse().unwrap()).collect();
    let checks = if named.is_empty() {
        &Check::ALL[..]
    } else {
        &named
    };
    let path = std::env::temp_dir().join(format!("deposed-speed-{}.jsonl", std::process::id()));
    write_history(&path);
    let mut lap = stopwatch();
    let (_, events) = reader::open(&path).unwrap();
    let read = events.map(Result::unwrap).count();
    let (reading, _) = lap();
    let (header, events) = reader::open(&path).unwrap();
    let mut judge = Judge::of(&header, checks);
    events.for_each(|event| judge.see(&event.unwrap()));
    let verdicts = judge.finish();
    let (judging, how) = lap();
    println!("{read} lines: read in {reading:?}, read and judged in {judging:?} {how}");
    std::fs::remove_file(&path).unwrap();
    for (check, verdict) in verdicts.0 {
        assert!(
            matches!(verdict, Verdict::Valid | Verdict::NotClaimed(_)),
            "{check}: {verdict:?}"
        );
    }
}

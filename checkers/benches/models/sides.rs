//! The two sides: this crate, and porcupine.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use deposed_checkers::budget::Budget;
use deposed_checkers::history::Kind;
use deposed_checkers::import::{Entry, Place, Value};
use deposed_checkers::model::{self, Model};
use porcupine_rs::{CheckResult, Operation};

use crate::made::{Call, LineKind, Lines, Made, Shape};

/// Judges, and prints the verdict, the time on the processor and the peak of memory.
pub fn judge(side: &str, made: &Made) {
    let (verdict, time) = match side {
        "deposed" => deposed(made),
        _ => porcupine(made),
    };
    println!("{verdict} {} {}", time.as_nanos(), peak());
}

/// The most memory that this process had, in KiB; 0 where the system does not tell.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Time on the processor: of this thread, to the nanosecond, or of all threads, in ticks
/// of ten milliseconds; by the wall clock where that is not told or too short.
#[allow(clippy::disallowed_methods, reason = "a bench measures")]
fn timed<T>(alone: bool, work: impl FnOnce() -> T) -> (T, Duration) {
    let counted = || {
        if alone {
            let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
            let nanos = schedstat.split_whitespace().next()?.parse().ok()?;
            return Some(Duration::from_nanos(nanos));
        }
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
    };
    let (before, start) = (counted(), Instant::now());
    let result = work();
    let wall = start.elapsed();
    let time = match before.zip(counted()) {
        Some((before, now)) if alone || now - before > Duration::from_millis(100) => now - before,
        _ => wall,
    };
    (result, time)
}

fn deposed(made: &Made) -> (&'static str, Duration) {
    let model = match made.shape {
        Shape::FencedLock => Model::FencedMutex,
        Shape::Register => Model::Register,
        Shape::Cas | Shape::Crashing => Model::CasRegister,
    };
    let value = |value: Option<i64>| value.map_or(Value::Nil, Value::Int);
    let entries = Lines::of(made).enumerate().map(|(index, line)| {
        let (f, value) = match line.call {
            Call::Acquire(token) => ("acquire", value(token)),
            Call::Release => ("release", Value::Nil),
            Call::Read(found) => ("read", value(found)),
            Call::Write(value) => ("write", Value::Int(value)),
            Call::Cas(from, to) => ("cas", Value::List(vec![Value::Int(from), Value::Int(to)])),
        };
        let index = index as u64;
        Ok::<_, Infallible>(Entry {
            index,
            time: None,
            process: line.process.to_string().into(),
            kind: match line.kind {
                LineKind::Begins => Kind::Invoke,
                LineKind::Happened => Kind::Ok,
                LineKind::Failed => Kind::Fail,
                LineKind::Lost => Kind::Info,
            },
            f: f.into(),
            key: None,
            token: None,
            value,
            error: None,
            place: Place {
                line: index + 1,
                column: 1,
            },
        })
    });
    // One key is searched on this thread.
    let judged = || model::judge(entries, Some(model), Budget::default());
    let (judged, time) = timed(true, judged);
    let judged = judged.unwrap();
    let check = model.check().unwrap();
    (judged.verdicts.of(check).unwrap().word(), time)
}

/// The same lock and the same register, for porcupine.
#[derive(Clone)]
struct Object;

/// Who holds, the last token, the value.
type State = (Option<usize>, i64, Option<i64>);

impl porcupine_rs::Model for Object {
    type State = State;
    /// Who, what, and whether it was answered.
    type Op = (usize, Call, bool);
    type Metadata = ();

    fn init() -> State {
        (None, 0, None)
    }

    fn step(state: &State, (client, call, answered): &Self::Op) -> (bool, State) {
        let (holder, token, value) = *state;
        match call {
            Call::Acquire(Some(new)) => {
                let fits = holder.is_none() && *new > token;
                (fits, (Some(*client), *new, value))
            }
            // It was never answered, and only at the end of the history.
            Call::Acquire(None) => (true, *state),
            Call::Release => (holder == Some(*client), (None, token, value)),
            Call::Read(found) => (*found == value, *state),
            Call::Write(value) => (true, (holder, token, Some(*value))),
            // It failed, which nobody was told; or only at the end of the history.
            Call::Cas(from, _) if !answered && value != Some(*from) => (true, *state),
            Call::Cas(from, to) => (value == Some(*from), (holder, token, Some(*to))),
        }
    }
}

fn porcupine(made: &Made) -> (&'static str, Duration) {
    let mut open: Vec<Option<i64>> = vec![None; made.clients as usize];
    let mut lost: Vec<(usize, i64, Call)> = Vec::new();
    let mut operations: Vec<Operation<Object>> = Vec::new();
    for (index, line) in Lines::of(made).enumerate() {
        let now = index as i64;
        let client = line.client;
        match line.kind {
            LineKind::Begins => open[client] = Some(now),
            LineKind::Failed => open[client] = None,
            LineKind::Happened => operations.push(Operation {
                client_id: Some(client as u32),
                call_time: open[client].take().unwrap(),
                return_time: now,
                op: (client, line.call, true),
                metadata: None,
            }),
            LineKind::Lost => {
                let call_time = open[client].take().unwrap();
                // A read that was not answered says nothing.
                if !matches!(line.call, Call::Read(_)) {
                    lost.push((client, call_time, line.call));
                }
            }
        }
    }
    // What was never answered ends after all that was.
    let end = operations.iter().map(|operation| operation.return_time);
    let end = end.max().unwrap_or(0) + 1;
    operations.extend(lost.into_iter().map(|(client, call_time, call)| Operation {
        client_id: Some(client as u32),
        call_time,
        return_time: end,
        op: (client, call, false),
        metadata: None,
    }));
    // Its own limit is past the one that the process has.
    let long = Duration::from_secs(3_600);
    let (result, time) = timed(false, || {
        porcupine_rs::check_operations_timeout(&operations, long)
    });
    let verdict = match result {
        CheckResult::Ok => "valid",
        CheckResult::Illegal => "violated",
        CheckResult::Unknown => "unknown",
    };
    (verdict, time)
}

//! What a program tells `tracing` becomes a history: in order, whole, or told not to be.

#[path = "../examples/late_write.rs"]
#[allow(dead_code, reason = "an example has a main")]
mod late_write;

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use deposed_checkers::history::{Answer, Body, Event, F, Header, Kind, Op};
use deposed_checkers::reader::Reader;
use deposed_checkers::recording::{Cause, Incomplete, Recording};
use deposed_checkers::verdict::Check;
use tracing::field::Empty;
use tracing::{Dispatch, dispatcher, info, info_span};
use tracing_subscriber::layer::SubscriberExt;

const HISTORY: &str = "deposed::history";

/// A clock that shows 10 more each time.
fn tens() -> impl Fn() -> u64 + Send {
    let shown = AtomicU64::new(0);
    move || shown.fetch_add(10, Ordering::Relaxed)
}

fn recorded(program: impl FnOnce()) -> Result<String, Incomplete> {
    let recording = Recording::with_clock(Vec::new(), &Header::titled("test"), tens()).unwrap();
    let subscriber = tracing_subscriber::registry().with(recording.layer());
    tracing::subscriber::with_default(subscriber, program);
    let bytes = recording.finish()?;
    Ok(String::from_utf8(bytes).unwrap())
}

fn read(text: &str) -> Vec<Event> {
    let (_, events) = Reader::new(text.as_bytes(), "recorded").unwrap();
    events.collect::<Result<_, _>>().unwrap()
}

/// A file that others still see when its recording is gone, with room for so many bytes.
#[derive(Clone)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: usize,
}

impl Disk {
    fn with_room(room: usize) -> Self {
        Disk {
            bytes: Arc::default(),
            room,
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.bytes.lock().unwrap();
        let fits = bytes.len().min(self.room - held.len());
        if fits == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        held.extend(&bytes[..fits]);
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_span_is_a_call_and_an_event_an_observation() {
    let text = recorded(|| {
        let acquire = info_span!(
            target: HISTORY, "acquire", process = 7, lease = "leader", holder = %"a#1", request = 1,
            ttl = std::time::Duration::from_millis(300).as_nanos(), token = Empty, outcome = Empty,
        );
        info!(
            name: "granted", target: HISTORY, process = "store", lease = "leader", holder = "a#1",
            request = 1, token = 7_u64, ttl = 300_000_000_u64, clock = 12_u64, "granted to a",
        );
        acquire.record("token", 7);
        acquire.record("outcome", "ok");
        let renew = info_span!(
            target: HISTORY, "renew", process = 7, lease = "leader", holder = "a#1", token = 7,
            r#try = 3, ttl = 5, error = Empty, outcome = Empty,
        );
        tracing::record_all!(renew, error = "timeout", outcome = "info");
        info!(
            name: "denied", target: HISTORY, process = "store", f = "renew", lease = "leader",
            holder = "a#1", token = 7, clock = 13, error = "overtaken",
        );
        info!(
            name: "recovered", target: HISTORY, process = "storage", highest = r#"{"leader":7}"#,
        );
        info!(name: "pause", target: HISTORY, process = "nemesis", node = "a", "for" = 900);
    });
    assert_eq!(
        text.unwrap(),
        r#"{"deposed":1,"workload":"test","system":"","seed":0}
{"index":0,"time":0,"process":"7","type":"invoke","call":1,"f":"acquire","value":{"lease":"leader","holder":"a#1","request":1,"ttl":300000000}}
{"index":1,"time":10,"process":"store","type":"info","f":"granted","value":{"lease":"leader","holder":"a#1","request":1,"token":7,"ttl":300000000,"clock":12}}
{"index":2,"time":20,"process":"7","type":"ok","call":1,"f":"acquire","value":{"token":7}}
{"index":3,"time":30,"process":"7","type":"invoke","call":2,"f":"renew","value":{"lease":"leader","holder":"a#1","token":7,"try":3,"ttl":5}}
{"index":4,"time":40,"process":"7","type":"info","call":2,"f":"renew","value":null,"error":{"kind":"timeout"}}
{"index":5,"time":50,"process":"store","type":"info","f":"denied","value":{"lease":"leader","f":"renew","holder":"a#1","token":7,"clock":13,"error":{"kind":"overtaken"}}}
{"index":6,"time":60,"process":"storage","type":"info","f":"recovered","value":{"highest":{"leader":7}}}
{"index":7,"time":70,"process":"nemesis","type":"info","f":"pause","value":{"for":900,"node":"a"}}
"#
    );
}

fn read_x() -> tracing::Span {
    info_span!(
        target: HISTORY, "read", process = "a", lease = "leader", key = "x",
        value = Empty, absent = Empty, error = Empty, outcome = Empty,
    )
}

#[test]
fn a_read_finds_a_value_or_none_or_claims_nothing() {
    let text = recorded(|| {
        let (finds, misses) = (read_x(), read_x());
        tracing::record_all!(finds, value = "1.1", outcome = "ok");
        tracing::record_all!(misses, absent = true, outcome = "ok");
        read_x().record("outcome", "ok");
    });
    let answers = read(&text.unwrap())
        .into_iter()
        .filter_map(|event| match event.body {
            Body::Complete(F::Read, answer) => Some(answer),
            _ => None,
        });
    let answers: Vec<Answer> = answers.collect();
    let found = |value: serde_json::Value| Answer::Value(value);
    assert_eq!(
        answers,
        [found("1.1".into()), found(().into()), Answer::None]
    );
}

/// A future that is dropped, a thread that panics: what they were about may have happened.
#[test]
fn a_span_that_closes_without_an_outcome_may_have_happened() {
    let text = recorded(|| {
        drop(read_x());
        let panics = || {
            let _read = read_x();
            std::panic::resume_unwind(Box::new("no message"));
        };
        assert!(std::panic::catch_unwind(panics).is_err());
        let fails = read_x();
        tracing::record_all!(fails, error = "refused-connection", outcome = "fail");
        drop(fails);
    });
    let events = read(&text.unwrap());
    let kinds: Vec<Kind> = events
        .iter()
        .skip(1)
        .step_by(2)
        .map(|event| event.kind)
        .collect();
    assert_eq!(kinds, [Kind::Info, Kind::Info, Kind::Fail]);
    assert_eq!(
        events[1].error.as_ref().unwrap().kind,
        "closed-without-outcome"
    );
}

#[test]
fn a_call_that_is_open_at_the_end_stays_open() {
    let mut still_open = None;
    let text = recorded(|| still_open = Some(read_x())).unwrap();
    // After the end.
    drop(still_open);
    assert_eq!(read(&text).len(), 1);
}

#[test]
fn other_targets_are_not_ours() {
    let text = recorded(|| {
        let acquire = info_span!("acquire", process = "a", outcome = Empty);
        acquire.record("outcome", "ok");
        info!(name: "granted", process = "store");
        info_span!("deposed::history");
    });
    assert_eq!(read(&text.unwrap()), []);
}

#[test]
fn threads_at_once_make_one_history() {
    const THREADS: u64 = 8;
    const CALLS: u64 = 200;
    let recording = Recording::new(Vec::new(), &Header::titled("test")).unwrap();
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(recording.layer()));
    let work = |process: u64| {
        for nth in 0..CALLS {
            let write = info_span!(
                target: HISTORY, "write", process, lease = "leader", token = process, key = "x",
                value = nth, outcome = Empty,
            );
            if nth % 3 > 0 {
                write.record("outcome", "ok");
            }
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "it is the order of threads that is tested"
    )]
    std::thread::scope(|threads| {
        for process in 0..THREADS {
            let (work, dispatch) = (&work, &dispatch);
            threads.spawn(move || dispatcher::with_default(dispatch, || work(process)));
        }
    });
    // The reader refuses lines out of order, times that go back and calls that are not paired.
    let events = read(&String::from_utf8(recording.finish().unwrap()).unwrap());
    assert_eq!(events.len() as u64, THREADS * CALLS * 2);
    for process in 0..THREADS {
        let name = process.to_string();
        let written = events.iter().filter(|event| event.process == name);
        let values = written.filter_map(|event| match &event.body {
            Body::Invoke(Op::Write(write)) => write.value.as_u64(),
            _ => None,
        });
        assert!(values.eq(0..CALLS), "{name} is told in its own order");
    }
}

/// What is told wrong ends the history, in a sentence, and what was told before stands.
#[track_caller]
fn refused(program: impl FnOnce(), says: &str) {
    let disk = Disk::with_room(usize::MAX);
    let recording = Recording::with_clock(disk.clone(), &Header::titled("test"), tens()).unwrap();
    let subscriber = tracing_subscriber::registry().with(recording.layer());
    tracing::subscriber::with_default(subscriber, || {
        read_x().record("outcome", "ok");
        program();
        read_x().record("outcome", "ok");
    });
    let incomplete = recording.finish().map(drop).unwrap_err();
    let sentence = incomplete.to_string();
    assert!(sentence.contains(says), "{sentence}");
    let events = read(&disk.text());
    let (note, before) = events.split_last().unwrap();
    assert_eq!(before.len() as u64, incomplete.recorded);
    assert!(incomplete.unrecorded >= 3, "{sentence}");
    let Body::Foreign(f, why) = &note.body else {
        panic!("the last line tells why: {note:?}")
    };
    assert_eq!(f, "recording-ended");
    assert_eq!(why["why"], incomplete.cause.to_string());
}

#[test]
fn wrong_fields_are_a_sentence() {
    refused(
        || drop(info_span!(target: HISTORY, "acquire", lease = "l", holder = "a", outcome = Empty)),
        "the span `acquire` names no process: give it the field `process`",
    );
    refused(
        || drop(info_span!(target: HISTORY, "aquire", process = "a", outcome = Empty)),
        "the span `aquire` of target deposed::history is no call: the calls are acquire, renew",
    );
    refused(
        || drop(info_span!(target: HISTORY, "read", process = "a", lease = "l", key = "x")),
        "the span `read` has no field `outcome`, and tracing drops what is recorded",
    );
    refused(
        || drop(info_span!(target: HISTORY, "read", process = "a", key = "x", outcome = Empty)),
        "the span `read`: the value of read does not fit: missing field `lease`",
    );
    refused(
        || {
            drop(
                info_span!(target: HISTORY, "fence", process = "a", lease = "l", token = ?Some(7),
                outcome = Empty),
            );
        },
        "the span `fence`: the value of fence does not fit: field `token`: invalid type: string",
    );
    refused(
        || {
            drop(
                info_span!(target: HISTORY, "write", process = "a", lease = "l", key = "x",
                tokn = 7, outcome = Empty),
            );
        },
        "the span `write` has the field `tokn`, which no write has",
    );
    refused(
        || drop(info_span!(target: HISTORY, "read", process = "a", outcome = "ok")),
        "the span `read` is opened with an `outcome`",
    );
    refused(
        || {
            read_x().record("outcome", "done");
        },
        "the span `read` has the `outcome` \"done\": it is ok, fail or info",
    );
    refused(
        || {
            let read = read_x();
            tracing::record_all!(read, outcome = "fail", error = 7);
        },
        "the span `read` has the `error` 7: it is a word",
    );
    refused(
        || {
            read_x().record("outcome", "ok").record("value", 7);
        },
        "the span `read` records more after its `outcome`",
    );
    refused(
        || {
            let write = info_span!(target: HISTORY, "write", process = "a", lease = "l", key = "x",
                value = Empty, outcome = Empty);
            tracing::record_all!(write, value = 7, outcome = "ok");
        },
        "the span `write` records `value` after it was opened",
    );
    refused(
        || info!(target: HISTORY, process = "store", lease = "l"),
        "has no name: give it one",
    );
    refused(
        || info!(name: "grantd", target: HISTORY, process = "store", lease = "l"),
        "the event `grantd` of target deposed::history is no observation: those are lead, follow",
    );
    refused(
        || info!(name: "write", target: HISTORY, process = "a", lease = "l"),
        "the event `write` is a call: open a span of that name",
    );
    refused(
        || info!(name: "recovered", target: HISTORY, process = "storage", highest = "{leader: 7}"),
        "the event `recovered` has `highest`, which is text in JSON, and is not",
    );
}

#[test]
fn a_full_disk_ends_the_history_and_is_counted() {
    let disk = Disk::with_room(300);
    let recording = Recording::with_clock(disk.clone(), &Header::titled("test"), tens()).unwrap();
    let subscriber = tracing_subscriber::registry().with(recording.layer());
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..50 {
            read_x().record("outcome", "ok");
        }
    });
    let incomplete = recording.finish().map(drop).unwrap_err();
    assert!(
        matches!(&incomplete.cause, Cause::Write(error) if error.kind() == io::ErrorKind::StorageFull)
    );
    assert_eq!(incomplete.recorded + incomplete.unrecorded, 100);
    let text = disk.text();
    assert_eq!(
        text.len(),
        300,
        "no line is written after the one that did not fit"
    );
    let (whole, torn) = text.rsplit_once('\n').unwrap();
    assert!(!torn.is_empty());
    assert_eq!(read(whole).len() as u64, incomplete.recorded);
}

#[test]
fn a_clock_that_goes_back_ends_the_history() {
    let shown = AtomicU64::new(20);
    let clock = move || shown.fetch_sub(5, Ordering::Relaxed);
    let recording = Recording::with_clock(Vec::new(), &Header::titled("test"), clock).unwrap();
    let subscriber = tracing_subscriber::registry().with(recording.layer());
    tracing::subscriber::with_default(subscriber, || {
        read_x().record("outcome", "ok");
    });
    let sentence = recording.finish().unwrap_err().to_string();
    assert_eq!(
        sentence,
        "1 of 2 events were recorded: the clock went back from 20 to 15: give a monotonic one"
    );
}

#[test]
fn the_late_write_of_the_example_is_convicted() {
    let history = late_write::record().unwrap();
    let verdicts = late_write::judge(&history).unwrap();
    let violated: Vec<Check> = verdicts.violated().map(|(check, _)| check).collect();
    assert_eq!(violated, [Check::StorageSafety, Check::ZombieWrite]);
}

//! What this crate's README shows is so: its table of checks, and its recorders in other
//! languages. (Its Rust examples are documentation tests.)

use std::path::{Path, PathBuf};
use std::process::Command;

use deposed_checkers::history::{Answer, Body, Event, F, Kind};
use deposed_checkers::judge::judge;
use deposed_checkers::reader;
use deposed_checkers::schema;
use deposed_checkers::verdict::Check;

const README: &str = include_str!("../README.md");

#[test]
fn its_table_has_every_check_and_what_it_needs() {
    let rows = README.lines().filter(|line| line.starts_with("| `"));
    let rows: Vec<Vec<&str>> = rows
        .map(|row| {
            row.split(" | ")
                .map(|cell| cell.trim_matches(['|', ' ', '`']))
                .collect()
        })
        .collect();
    let told: Vec<(&str, &str)> = rows.iter().map(|row| (row[0], row[2])).collect();
    let checks = Check::ALL.map(|check| (check.name(), check.needs()));
    assert_eq!(told, checks);
}

#[test]
fn its_history_is_one() {
    let path = scratch("shown.jsonl");
    std::fs::write(&path, block("json")).unwrap();
    assert_eq!(events_of_the_innocent(&path).len(), 4);
}

/// The first block of a language.
fn block(language: &str) -> &'static str {
    let (_, block) = README.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0
}

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme-of-checkers");
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

/// What a history holds, of which nobody is convicted.
fn events_of_the_innocent(path: &Path) -> Vec<Event> {
    let (header, events) = reader::open(path).unwrap();
    let events: Vec<Event> = events.collect::<Result<_, _>>().unwrap();
    let verdicts = judge(&header, &events);
    let convicts: Vec<_> = verdicts.violated().collect();
    assert!(convicts.is_empty(), "nobody did wrong: {convicts:?}");
    events
}

/// Runs the program of a block, with the name of the history that it is to write.
fn runs(program: &str, file: &str, language: &str) {
    let (source, history) = (scratch(file), scratch(&format!("{language}.jsonl")));
    std::fs::write(&source, block(language)).unwrap();
    let _ = std::fs::remove_file(&history);
    let done = Command::new(program).arg(&source).arg(&history).output();
    let done = done.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    is_as_recorded(&history);
}

/// One is granted, one is refused, and one is not answered in time: it may have happened.
fn is_as_recorded(history: &Path) {
    let events = events_of_the_innocent(history);
    let told = events.iter().map(|event| {
        let error = event.error.as_ref().map(|error| error.kind.as_str());
        let f = match &event.body {
            Body::Invoke(op) => op.f(),
            Body::Complete(f, _) => *f,
            other => panic!("{other:?}"),
        };
        (event.process.as_str(), event.kind, f, error)
    });
    let told: Vec<_> = told.collect();
    assert_eq!(
        told,
        [
            ("a", Kind::Invoke, F::Acquire, None),
            ("a", Kind::Ok, F::Acquire, None),
            ("b", Kind::Invoke, F::Acquire, None),
            ("b", Kind::Fail, F::Acquire, Some("held")),
            ("a", Kind::Invoke, F::Write, None),
            ("a", Kind::Info, F::Write, Some("timeout")),
        ]
    );
    assert_eq!(events[1].body, Body::Complete(F::Acquire, Answer::Token(7)));
    assert!(events[5].time > 0, "the clock runs, and is not the epoch's");
    assert!(
        events[5].time < 600_000_000_000,
        "in nanoseconds from the start"
    );
    let schema = serde_json::from_str(schema::HISTORY).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for line in std::fs::read_to_string(history).unwrap().lines() {
        assert!(
            schema.is_valid(&serde_json::from_str(line).unwrap()),
            "{line}"
        );
    }
}

#[test]
#[ignore = "needs python3: cargo test -p deposed-checkers --test readme -- --ignored"]
fn the_python_recorder_records() {
    runs("python3", "recorder.py", "python");
}

#[test]
#[ignore = "needs a JDK of 17 or newer, and is skipped without: cargo test -p deposed-checkers --test readme -- --ignored"]
fn the_java_recorder_records() {
    if Command::new("java").arg("-version").output().is_err() {
        return eprintln!("skipped: there is no java here");
    }
    runs("java", "History.java", "java");
}

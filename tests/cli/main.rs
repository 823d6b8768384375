//! The command line as its user meets it: exit codes, sentences, files.

mod follow;
mod foreign;
#[path = "../forger/mod.rs"]
mod forger;
mod header;
mod replay;
mod schema;

use std::{
    fs,
    io::{self, Write},
    num::NonZero,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use deposed::{
    campaign::Campaign,
    checkers::history,
    cli::{self, Suite},
    mark::Mark,
    net::LocalFuture,
    node::Node,
    system::{Deposed, Setup, System},
    workload::{SECOND, Workload},
};
use forger::{Forger, write};

/// A system that gives the second run other numbers than the first.
struct Fickle(AtomicU64);

impl System for Fickle {
    fn name(&self) -> &'static str {
        "fickle"
    }

    fn store(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn storage(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn client(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        let token = self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            node.invoke(write(token)).await.ok(history::Answer::None);
            std::future::pending().await
        })
    }
}

/// A system whose client panics.
struct Faulty;

impl System for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn store(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn storage(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn client(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(async { panic!("out of luck") })
    }
}

fn short(name: &'static str) -> Workload {
    Workload {
        story: "nothing goes wrong",
        chaos: SECOND,
        calm: SECOND,
        seeds: 2,
        ..Workload::named(name)
    }
}

fn suite() -> Suite {
    let demanding = Workload {
        must_see: vec![Mark::StaleWriteRefused],
        ..short("demanding")
    };
    Suite {
        workloads: vec![short("gc-pause"), demanding],
        systems: vec![
            Arc::new(Deposed),
            Arc::new(Forger),
            Arc::new(Fickle(AtomicU64::new(0))),
            Arc::new(Faulty),
        ],
    }
}

/// An empty directory of the test's own.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("cargo's directory for tests can be written to");
    dir
}

/// Exit code, standard output, standard error. `DIR` stands for the directory.
fn deposed(dir: &Path, command: &str) -> (u8, String, String) {
    let dir = dir.to_str().expect("a path in UTF-8");
    let args = command.split(' ').map(|arg| arg.replace("DIR", dir));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["deposed".to_owned()].into_iter().chain(args);
    let code = cli::run(&suite(), args, &mut out, &mut err);
    let text = |bytes| {
        let text = String::from_utf8(bytes).expect("reports are UTF-8");
        text.replace(dir, "DIR")
    };
    (code, text(out), text(err))
}

/// Bad input: exit 2, nothing on standard output, one sentence that says this.
#[track_caller]
fn refuses(dir: &Path, command: &str, says: &str) {
    let (code, out, err) = deposed(dir, command);
    assert_eq!((code, out.as_str()), (2, ""), "{command}: {err}");
    assert!(err.contains(says), "{command}: {err}");
    assert_eq!(err.trim_end().lines().count(), 1, "one sentence: {err}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "one file is left")]
fn a_passing_run_is_a_line_of_counts_and_leaves_its_index_alone_behind() {
    let dir = scratch("passing");
    let (code, out, err) = deposed(&dir, "run gc_pause --out DIR/runs");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("ok      gc-pause     2 seeds"), "{out}");
    assert!(out.contains("acknowledged writes"), "{out}");
    let left: Vec<_> = fs::read_dir(dir.join("runs"))
        .expect("there")
        .flatten()
        .collect();
    let left: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["index.html"]);
}

#[test]
fn an_unmet_mark_is_unknown_and_fewer_seeds_do_not_judge_it() {
    let dir = scratch("marks");
    let (code, out, _) = deposed(&dir, "run demanding --out DIR/runs");
    assert_eq!(code, 3, "{out}");
    assert!(
        out.contains("never seen in 2 seeds: a stale write was refused"),
        "{out}"
    );
    let (code, out, _) = deposed(&dir, "run demanding --seed 1 --out DIR/runs");
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("marks not judged: 1 seed of 2"), "{out}");
}

#[test]
fn a_failure_is_told_in_full_and_its_history_replays_checks_and_shows() {
    let dir = scratch("failing");
    let (code, out, err) = deposed(&dir, "run gc-pause --seed 3 --system forger --out DIR");
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    let start = "FAILED  gc-pause  seed 3  system forger\n\n  election-barrier: ";
    assert!(out.starts_with(start), "{out}");
    assert!(out.contains("\n   > "), "the culprit is marked: {out}");
    assert!(out.contains("write x=40 @7"), "{out}");
    assert!(out.contains("expected: "), "{out}");
    let file = "DIR/gc-pause-forger-3.jsonl";
    let next = format!(
        "\n\n  replay   deposed replay {file}\n  look     deposed show   {file}\n  \
         shrink   deposed shrink {file}\n\n"
    );
    assert!(out.contains(&next), "{out}");
    assert!(
        out.contains("1 of 1 seed: election-barrier 1\n        seeds 3\n"),
        "{out}"
    );

    let (code, out, err) = deposed(&dir, &format!("replay {file}"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with(&format!("identical  {file}  ")), "{out}");
    assert!(
        out.ends_with(" events, election-barrier violated\n"),
        "{out}"
    );
    let (code, out, err) = deposed(&dir, &format!("check {file}"));
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(
        out.starts_with(&format!("FAILED  {file}\n\n  election-barrier: ")),
        "{out}"
    );
    let (code, out, err) = deposed(&dir, &format!("show {file}"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("a        write x=40 @7    ok\n"), "{out}");
}

#[test]
fn a_panic_in_a_node_is_a_defect() {
    let dir = scratch("defect");
    let (code, out, _) = deposed(&dir, "run gc-pause --seed 0 --system faulty --out DIR");
    assert_eq!(code, 1, "{out}");
    assert!(
        out.contains("  defect: a task of a panicked: out of luck\n"),
        "{out}"
    );
    assert!(out.contains("1 of 1 seed: defects 1\n"), "{out}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the files are counted")]
fn only_the_first_failures_are_told_in_full_and_all_are_kept() {
    let dir = scratch("many");
    let (code, out, _) = deposed(&dir, "run gc-pause --seeds 5 --system forger --out DIR");
    assert_eq!(code, 1);
    assert_eq!(out.matches("FAILED  gc-pause  seed").count(), 3, "{out}");
    assert!(
        out.contains("5 of 5 seeds: election-barrier 5\n        seeds 0 1 2 3 4\n"),
        "{out}"
    );
    let mut left: Vec<_> = fs::read_dir(&dir).expect("it is there").flatten().collect();
    left.sort_by_key(fs::DirEntry::file_name);
    let left = left.iter().map(|entry| entry.file_name().into_string());
    let left: Result<Vec<String>, _> = left.collect();
    let kept = (0..5).map(|seed| format!("gc-pause-forger-{seed}.jsonl"));
    let pages = (0..3).map(|seed| format!("gc-pause-forger-{seed}.html"));
    let mut expected: Vec<String> = kept.chain(pages).chain(["index.html".to_owned()]).collect();
    expected.sort();
    assert_eq!(left.expect("UTF-8"), expected);
}

#[test]
fn the_report_does_not_depend_on_the_number_of_jobs() {
    let dir = scratch("jobs");
    let one = deposed(
        &dir,
        "run --system forger --seeds 4 --jobs 1 --keep --out DIR",
    );
    let two = deposed(
        &dir,
        "run --system forger --seeds 4 --jobs 2 --keep --out DIR",
    );
    assert_eq!(one.0, 1);
    assert_eq!(one, two);
}

#[test]
fn keep_keeps_passing_histories_and_a_different_run_is_never_overwritten() {
    let dir = scratch("keep");
    let command = "run gc-pause --seed 0 --keep --out DIR";
    assert_eq!(deposed(&dir, command).0, 0);
    let file = dir.join("gc-pause-0.jsonl");
    let kept = fs::read_to_string(&file).expect("it was kept");
    assert_eq!(deposed(&dir, command).0, 0, "the same run again");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), kept);

    let edited = kept.replacen("\"calm\":1000000000", "\"calm\":1000000001", 1);
    assert_ne!(edited, kept);
    fs::write(&file, &edited).expect("it can be written");
    assert_eq!(
        deposed(&dir, command).0,
        0,
        "the other run is kept beside it"
    );
    assert_eq!(
        fs::read_to_string(&file).expect("it is there"),
        edited,
        "untouched"
    );
    let beside = fs::read_to_string(dir.join("gc-pause-0.2.jsonl")).expect("it was kept");
    assert_eq!(beside, kept);
}

#[test]
fn bad_usage_is_one_sentence() {
    let dir = scratch("usage");
    fs::write(dir.join("file"), "").expect("it can be written");
    refuses(
        &dir,
        "run gc-puase",
        "no workload is called 'gc-puase'; did you mean 'gc-pause'?",
    );
    refuses(
        &dir,
        "run zebra",
        "no workload is called 'zebra'; `deposed list` shows them all",
    );
    refuses(
        &dir,
        "run --flaw no-barier",
        "no flaw is called 'no-barier'; did you mean 'no-barrier'?",
    );
    refuses(
        &dir,
        "run --system forgr",
        "no system is called 'forgr'; did you mean 'forger'?",
    );
    refuses(
        &dir,
        "run --system forger --flaw no-barrier",
        "the flaw 'no-barrier' cannot be planted",
    );
    refuses(
        &dir,
        "check --only storage-safty x",
        "did you mean 'storage-safety'?",
    );
    refuses(&dir, "run --seeds 0", "nothing would be run");
    refuses(&dir, "run --jobs 0", "nothing would be run");
    refuses(&dir, "run --seeds many", "give a whole number");
    refuses(
        &dir,
        "run --seed 18446744073709551616",
        "the highest is 18446744073709551615",
    );
    refuses(
        &dir,
        "run gc-pause --out DIR/file/runs",
        "histories cannot be kept in",
    );
}

#[test]
fn bad_histories_are_one_sentence_that_names_the_place() {
    let dir = scratch("histories");
    let header = "{\"deposed\":1}\n";
    let event = "{\"index\":0,\"time\":0,\"process\":\"nemesis\",\"type\":\"info\",\"f\":\"calm\",\"value\":{}}\n";
    let cases: &[(&str, Vec<u8>, &str)] = &[
        ("empty", Vec::new(), "DIR/empty: the file is empty"),
        ("foreign", b"Dear diary".to_vec(), "not a deposed history"),
        ("zipped", b"PK\x03\x04".to_vec(), "packed with zip"),
        ("binary", b"\xfe\x00\xff".to_vec(), "not UTF-8"),
        ("wide", b"\xff\xfe{\x00".to_vec(), "UTF-16"),
        ("newer", b"{\"deposed\":9}\n".to_vec(), "newer version"),
        (
            "torn",
            [header, &event[..40]].concat().into_bytes(),
            "DIR/torn:2: the last line is torn",
        ),
        (
            "twice",
            [header, event, event].concat().into_bytes(),
            "DIR/twice:3: ",
        ),
    ];
    for (name, bytes, says) in cases {
        fs::write(dir.join(name), bytes).expect("it can be written");
        for command in ["check", "check --json", "show"] {
            let (code, _, err) = deposed(&dir, &format!("{command} DIR/{name}"));
            assert_eq!(code, 2, "{command} {name}: {err}");
            assert!(err.contains(says), "{command} {name}: {err}");
            assert_eq!(err.trim_end().lines().count(), 1, "{err}");
        }
    }
    refuses(&dir, "show DIR/missing", "DIR/missing: cannot be opened");
}

#[test]
fn check_prints_an_object_a_history_and_bad_input_wins() {
    let dir = scratch("json");
    let verdicts = Path::new(env!("CARGO_MANIFEST_DIR")).join("checkers/tests/verdicts");
    for name in [
        "stale-write-applied",
        "fence-then-write",
        "bad-duplicate-index",
    ] {
        let name = format!("{name}.jsonl");
        fs::copy(verdicts.join(&name), dir.join(&name)).expect("a history of the checkers");
    }
    let (applied, fenced) = (
        "DIR/stale-write-applied.jsonl",
        "DIR/fence-then-write.jsonl",
    );
    let (code, out, _) = deposed(
        &dir,
        &format!("check --json --only storage-safety {applied}"),
    );
    assert_eq!(code, 1);
    let object: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!(object["file"], applied);
    assert_eq!(object["verdict"], "violated");
    assert_eq!(object["checks"][0]["check"], "storage-safety");
    assert_eq!(object["checks"][0]["verdict"], "violated");
    assert!(
        object["checks"][0]["evidence"]["sentence"].is_string(),
        "{out}"
    );
    let evidence = &object["checks"][0]["evidence"];
    assert!(evidence["events"][0].is_u64(), "{out}");
    let events = evidence["events"].as_array().expect("indices");
    assert!(events.contains(&evidence["culprit"]), "{out}");
    assert!(evidence["expected"].is_string(), "{out}");

    let (code, out, _) = deposed(&dir, &format!("check {fenced}"));
    assert_eq!(code, 0, "what is not claimed counts as valid: {out}");
    assert!(out.contains("failover not claimed: "), "{out}");
    let (code, out, _) = deposed(&dir, &format!("check {fenced} --only failover"));
    assert_eq!(code, 3, "asked for by name it does not: {out}");
    let (code, out, err) = deposed(
        &dir,
        &format!("check --json DIR/bad-duplicate-index.jsonl {applied} {fenced}"),
    );
    assert_eq!(code, 2, "{out}");
    assert_eq!(out.lines().count(), 2, "the others are judged: {out}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

/// A pipe whose reader has left.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_ends_a_listing_quietly_and_changes_no_verdict() {
    let dir = scratch("pipe");
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("checkers/tests/verdicts/fence-then-write.jsonl");
    let file = file.to_str().expect("a path in UTF-8");
    for (command, code) in [("show", 0), ("check", 0)] {
        let mut err = Vec::new();
        let left = cli::run(&suite(), ["deposed", command, file], &mut Closed, &mut err);
        assert_eq!((left, err), (code, Vec::new()), "{command}");
    }
    drop(dir);
}

#[test]
fn each_shell_asks_the_program_as_it_was_called() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let args = ["/opt/bin/my-lock", "completions", shell];
        let code = cli::run(&suite(), args, &mut out, &mut err);
        assert_eq!((code, err), (0, Vec::new()), "{shell}");
        let script = String::from_utf8(out).expect("text");
        // The binary behind a path, the command by its name.
        let named = script.replace("/opt/bin/my-lock", "PATH");
        for word in ["DEPOSED_COMPLETE", "PATH", "my-lock"] {
            assert!(named.contains(word), "{shell}: {word}: {script}");
        }
    }
    let (code, _, err) = deposed(Path::new("."), "completions tcsh");
    assert!(code == 2 && err.contains("zsh"), "{err}");
}

#[test]
fn list_names_everything() {
    let (code, out, _) = deposed(Path::new("."), "list");
    assert_eq!(code, 0);
    for expected in [
        "  gc-pause  nothing goes wrong\n      runs      2 seeds by default\n",
        "      must see  a stale write was refused\n",
        "\nSystems\n  deposed  (default)\n  forger\n",
        "  no-barrier ",
        "  storage-safety ",
    ] {
        assert!(out.contains(expected), "{expected:?} in {out}");
    }
}

#[test]
fn a_workload_is_a_test() {
    let dir = scratch("test");
    let holds = |workload: &Workload, system: Arc<dyn System>| {
        deposed::campaign::holds(workload, &system, &dir)
    };
    let counts = holds(&short("gc-pause"), Arc::new(Deposed)).expect("nothing goes wrong");
    assert!(
        counts.starts_with("ok      gc-pause     2 seeds"),
        "{counts}"
    );
    let failure = holds(&short("gc-pause"), Arc::new(Forger)).expect_err("it forges");
    assert!(
        failure.starts_with("FAILED  gc-pause  seed 0  system forger\n"),
        "{failure}"
    );
    let demanding = suite().workloads.remove(1);
    let unmet = holds(&demanding, Arc::new(Deposed)).expect_err("nothing is stale");
    assert!(
        unmet.contains("never seen in 2 seeds: a stale write was refused"),
        "{unmet}"
    );
}

#[test]
fn a_stop_finishes_the_seeds_in_hand_and_begins_no_other() {
    let (system, stop): (Arc<dyn System>, _) = (Arc::new(Forger), AtomicBool::new(false));
    let workload = short("gc-pause");
    let campaign = Campaign {
        system: &system,
        flaw: None,
        jobs: NonZero::new(2).expect("2 is not 0"),
        keep: false,
        stop: &stop,
        progress: &|| stop.store(true, Ordering::Relaxed),
    };
    let mut seeds = Vec::new();
    let ran = campaign.run(&[(&workload, 5..=u64::MAX)], |run| {
        seeds.push(run.seed);
        ControlFlow::Continue(())
    });
    assert_eq!(ran, Ok(()));
    assert!(seeds == [5] || seeds == [5, 6], "{seeds:?}");
}

#[test]
fn what_the_parser_refuses_is_one_sentence() {
    let dir = scratch("sentence");
    for command in [
        "run --seed -1",
        "run --seeds x",
        "runn",
        "check",
        "run --jobs",
    ] {
        let (code, _, err) = deposed(&dir, command);
        assert_eq!(code, 2, "{command}: {err}");
        assert_eq!(err.lines().count(), 1, "{command}: {err}");
        assert!(err.starts_with("deposed: "), "{command}: {err}");
        assert!(!err.contains("error:"), "{command}: {err}");
    }
}

#[test]
fn more_jobs_than_threads_can_be_started_are_not_started() {
    let dir = scratch("crowd");
    let command = format!("run gc-pause --seeds 2 --jobs {} --out DIR", u64::MAX);
    assert_eq!(deposed(&dir, &command).0, 0);
}

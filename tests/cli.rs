//! The command line as its user meets it: exit codes, sentences, files.

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
    checkers::history::{self, Op},
    cli::{self, Suite},
    mark::Mark,
    net::LocalFuture,
    node::Node,
    system::{Deposed, Setup, System},
    workload::{MS, SECOND, Workload},
};

/// Clients that write under tokens which nobody granted, differently under each seed.
struct Forger;

impl System for Forger {
    fn name(&self) -> &'static str {
        "forger"
    }

    fn store(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn storage(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn client(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(async move {
            loop {
                node.sleep(10 * MS + node.random_below(20) * MS).await;
                let write = node.invoke(write(7)).await;
                node.sleep(2 * MS).await;
                write.ok(history::Answer::None);
            }
        })
    }
}

fn write(token: u64) -> Op {
    Op::Write(history::Write {
        lease: "leader".into(),
        token: Some(token),
        seq: Some(1),
        key: "x".into(),
        value: 40.into(),
    })
}

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
fn a_passing_run_is_a_line_of_counts_and_leaves_nothing_behind() {
    let dir = scratch("passing");
    let (code, out, err) = deposed(&dir, "run gc_pause --out DIR/runs");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("ok      gc-pause     2 seeds"), "{out}");
    assert!(out.contains("acknowledged writes"), "{out}");
    assert!(!dir.join("runs").exists());
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
fn only_the_first_failures_are_told_in_full_and_all_are_kept() {
    let dir = scratch("many");
    let (code, out, _) = deposed(&dir, "run gc-pause --seeds 5 --system forger --out DIR");
    assert_eq!(code, 1);
    assert_eq!(out.matches("FAILED  gc-pause  seed").count(), 3, "{out}");
    assert!(
        out.contains("5 of 5 seeds: election-barrier 5\n        seeds 0 1 2 3 4\n"),
        "{out}"
    );
    assert_eq!(fs::read_dir(&dir).expect("it is there").count(), 5);
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
fn a_replay_names_the_first_event_that_differs() {
    let dir = scratch("differs");
    assert_eq!(deposed(&dir, "run gc-pause --seed 0 --keep --out DIR").0, 0);
    let file = dir.join("gc-pause-0.jsonl");
    let kept = fs::read_to_string(&file).expect("it was kept");
    let (code, out, err) = deposed(&dir, "replay DIR/gc-pause-0.jsonl");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.starts_with("identical  DIR/gc-pause-0.jsonl  "),
        "{out}"
    );

    let lines: Vec<&str> = kept.lines().collect();
    let granted = lines
        .iter()
        .position(|line| line.contains("\"f\":\"granted\""));
    let at = granted.expect("somebody leads");
    let event = lines[at].replace("\"ttl\":", "\"ttl\":1");
    let mut edited = lines.clone();
    edited[at] = &event;
    fs::write(&file, edited.join("\n") + "\n").expect("it can be written");
    let (code, out, err) = deposed(&dir, "replay DIR/gc-pause-0.jsonl");
    assert_eq!((code, err.as_str()), (1, ""));
    let place = format!("differs  DIR/gc-pause-0.jsonl  at event {}\n", at - 1);
    assert!(out.starts_with(&place), "{out}");
    assert!(out.contains(&event) && out.contains(lines[at]), "{out}");

    edited[at] = "{\"index\":";
    fs::write(&file, edited.join("\n") + "\n").expect("it can be written");
    refuses(
        &dir,
        "replay DIR/gc-pause-0.jsonl",
        &format!("gc-pause-0.jsonl:{}: not JSON", at + 1),
    );

    fs::write(&file, lines[..5].join("\n") + "\n").expect("it can be written");
    let (code, out, _) = deposed(&dir, "replay DIR/gc-pause-0.jsonl");
    assert_eq!(code, 1);
    assert!(
        out.contains("at event 4\n  history  has ended\n  run  "),
        "{out}"
    );

    fs::write(&file, &kept[..kept.len() - 9]).expect("it can be written");
    refuses(&dir, "replay DIR/gc-pause-0.jsonl", "the last line is torn");
}

#[test]
fn a_seed_is_replayed_twice_and_a_system_that_wavers_is_found_out() {
    let dir = scratch("twice");
    let (code, out, err) = deposed(&dir, "replay gc_pause 5");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("identical  gc-pause  seed 5  "), "{out}");
    let (code, out, _) = deposed(&dir, "replay gc-pause 5 --system fickle");
    assert_eq!(code, 1, "{out}");
    assert!(
        out.starts_with("differs  gc-pause  seed 5  system fickle  at event 0\n"),
        "{out}"
    );
}

#[test]
fn a_replay_refuses_what_it_cannot_run() {
    let dir = scratch("replay");
    let put = |name: &str, text: &str| {
        fs::write(dir.join(name), text).expect("it can be written");
    };
    put(
        "bare.jsonl",
        "{\"deposed\":1,\"workload\":\"made\",\"system\":\"made\",\"seed\":0}\n",
    );
    refuses(
        &dir,
        "replay DIR/bare.jsonl",
        "this history can be checked, not replayed: its header has no 'cluster'",
    );
    put("newer.jsonl", "{\"deposed\":2,\"shape\":\"new\"}\n");
    refuses(&dir, "replay DIR/newer.jsonl", "newer version of deposed");
    put("empty.jsonl", "");
    refuses(&dir, "replay DIR/empty.jsonl", "the file is empty");
    refuses(
        &dir,
        "replay DIR/none.jsonl",
        "DIR/none.jsonl: cannot be opened",
    );
    refuses(
        &dir,
        "replay gc-pause",
        "takes a seed: `deposed replay gc-pause 0`",
    );
    assert_eq!(deposed(&dir, "run gc-pause --seed 0 --keep --out DIR").0, 0);
    let kept = fs::read_to_string(dir.join("gc-pause-0.jsonl")).expect("it was kept");
    let foreign = kept.replacen("\"system\":\"deposed\"", "\"system\":\"theirs\"", 1);
    put("foreign.jsonl", &foreign);
    refuses(
        &dir,
        "replay DIR/foreign.jsonl",
        "a run of the system 'theirs'",
    );
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
        ("foreign", b"PK\x03\x04".to_vec(), "not a deposed history"),
        ("binary", b"\xff\xfe\x00".to_vec(), "not UTF-8"),
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
    assert!(
        object["checks"][0]["evidence"]["events"][0].is_u64(),
        "{out}"
    );

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
fn a_closed_pipe_ends_a_listing_quietly_and_is_no_verdict() {
    let dir = scratch("pipe");
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("checkers/tests/verdicts/fence-then-write.jsonl");
    let file = file.to_str().expect("a path in UTF-8");
    for (command, code) in [("show", 0), ("check", 3)] {
        let mut err = Vec::new();
        let left = cli::run(&suite(), ["deposed", command, file], &mut Closed, &mut err);
        assert_eq!((left, err), (code, Vec::new()), "{command}");
    }
    drop(dir);
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
fn a_header_alone_is_run_and_judged() {
    let dir = scratch("alone");
    assert_eq!(deposed(&dir, "run gc-pause --seed 0 --keep --out DIR").0, 0);
    let kept = fs::read_to_string(dir.join("gc-pause-0.jsonl")).expect("it was kept");
    let header = kept.lines().next().expect("a header");
    fs::write(dir.join("h.jsonl"), format!("{header}\n")).expect("room");
    let (code, out, err) = deposed(&dir, "replay DIR/h.jsonl");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("ran  DIR/h.jsonl  "), "{out}");
    refuses(
        &dir,
        "replay DIR/h.jsonl 7",
        "holds its own seed: leave the 7 out",
    );
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

#[test]
fn a_schedule_that_cannot_be_injected_is_one_sentence_that_names_the_entry() {
    let dir = scratch("schedule");
    assert_eq!(deposed(&dir, "run gc-pause --seed 0 --keep --out DIR").0, 0);
    let kept = fs::read_to_string(dir.join("gc-pause-0.jsonl")).expect("it was kept");
    let header = kept.lines().next().expect("a header");
    assert!(header.contains("\"schedule\":[]"), "{header}");
    let edited = |entry: &str| {
        let right = r#"{"when":{"at":5000000},"fault":"pause","target":"store","for":1000000}"#;
        let header = header.replace(
            "\"schedule\":[]",
            &format!("\"schedule\":[{right},{entry}]"),
        );
        fs::write(dir.join("h.jsonl"), header + "\n").expect("room");
    };
    edited(
        r#"{"when":{"next":{"f":"renew","type":"ok","after":9}},"fault":"suspend","target":"leader","for":7}"#,
    );
    let (code, out, err) = deposed(&dir, "replay DIR/h.jsonl");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for (entry, says) in [
        (
            r#"{"when":{"at":5},"fault":"gc-puase","target":"store","for":1}"#,
            "(gc-puase) cannot be injected: no fault is called 'gc-puase'; did you mean 'gc-pause'? (known: partition, ",
        ),
        (
            r#"{"when":{"att":5},"fault":"pause","target":"store","for":1}"#,
            "(pause) cannot be injected: no trigger is called 'att'; did you mean 'at'? (known: at, on, next)",
        ),
        (
            r#"{"when":{"at":5},"fault":"pause","target":"stroe","for":1}"#,
            "(pause) cannot be injected: its 'target': no target is called 'stroe'; did you mean 'store'? (known: leader, ",
        ),
        (
            r#"{"when":{"at":-5},"fault":"pause","target":"store","for":1}"#,
            "(pause) cannot be injected: its 'at' is -5, and must be a whole number, 0 or more",
        ),
        (
            r#"{"when":{"at":5},"fault":"pause","target":"store","for":-1}"#,
            "(pause) cannot be injected: its 'for' is -1, and must be a whole number, 0 or more",
        ),
        (
            r#"{"when":{"at":5},"fault":"step","target":"store","by":"much"}"#,
            "(step) cannot be injected: its 'by' is \"much\", and must be a whole number",
        ),
        (
            r#"{"when":{"at":5},"fault":"pause","target":{"client":3},"for":1}"#,
            "(pause) cannot be injected: client 3 is its target, and the last of 3 is 2",
        ),
        (
            r#"{"when":{"at":5},"fault":"starve","target":"store","one_in":1,"for":1}"#,
            "(starve) cannot be injected: its 'one_in' must be 2 or more",
        ),
        ("7", "(no fault) cannot be injected: it is no object"),
    ] {
        edited(entry);
        let sentence = format!("DIR/h.jsonl: entry 1 of the header's schedule {says}");
        refuses(&dir, "replay DIR/h.jsonl", &sentence);
    }
}

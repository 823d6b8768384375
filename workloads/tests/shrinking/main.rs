//! `deposed shrink` and `deposed keep` as their user meets them.

mod keep;
mod refused;

use std::{
    fs,
    num::NonZero,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use deposed::{
    cli::{self, Suite},
    prelude::*,
    run::{Header, run},
    shrink::{End, NotViolated, Shrink, Shrunk, Size},
};

/// The names of the histories in a folder, in order.
#[expect(clippy::disallowed_methods, reason = "they are sorted")]
fn histories(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("there").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".jsonl")).collect();
    names.sort_unstable();
    names
}

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shrinking-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a temporary directory");
    dir
}

/// Runs a command line in which DIR is this directory.
fn deposed(dir: &Path, command: &str) -> (u8, String, String) {
    let suite = Suite {
        workloads: deposed_workloads::all(),
        systems: vec![Arc::new(Deposed) as _],
    };
    let here = dir.to_str().expect("a path in UTF-8");
    let args = format!("deposed {command}");
    let args = args.split(' ').map(|arg| arg.replace("DIR", here));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(&suite, args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("text").replace(here, "DIR");
    (code, text(out), text(err))
}

fn refuses(dir: &Path, command: &str, says: &str) {
    let (code, out, err) = deposed(dir, command);
    assert_eq!((code, out.as_str()), (2, ""), "{command}: {err}");
    assert_eq!(err.lines().count(), 1, "{command}: {err}");
    assert!(err.contains(says), "{command}: {err}\n  not {says}");
}

/// A failing history of its own, and its path.
fn failing(dir: &Path, workload: &str, flaw: &str, seed: u64) -> PathBuf {
    let command = format!("run {workload} --flaw {flaw} --seed {seed} --out DIR");
    let (code, out, _) = deposed(dir, &command);
    assert_eq!(code, 1, "{out}");
    dir.join(format!("{workload}-{flaw}-{seed}.jsonl"))
}

fn header_of(history: &Path) -> Header {
    let text = fs::read_to_string(history).expect("a history");
    let line = text.lines().next().expect("a header");
    serde_json::from_str(line).expect("a header that can be run")
}

#[test]
fn a_leader_that_pauses_is_all_that_storage_without_tokens_takes() {
    let dir = scratch("minimum");
    let path = failing(&dir, "gc-pause", "accepts-anything", 2);
    let original = fs::read(&path).expect("a history");
    let (code, out, err) = deposed(&dir, "shrink DIR/gc-pause-accepts-anything-2.jsonl");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let file = "DIR/gc-pause-accepts-anything-2-shrunk.jsonl";
    assert!(
        out.contains("17 faults → 1, 3 clients → 2, 12s → "),
        "{out}"
    );
    assert!(
        out.contains("  storage-safety: a write with token 1 landed after"),
        "{out}"
    );
    assert!(
        out.contains(&format!("  keep     deposed keep   {file}\n")),
        "{out}"
    );
    assert_eq!(fs::read(&path).expect("it is there"), original, "untouched");

    let small = header_of(&dir.join("gc-pause-accepts-anything-2-shrunk.jsonl"));
    let [entry] = &small.schedule[..] else {
        panic!("one fault: {:?}", small.schedule)
    };
    assert_eq!(entry.fault.targets(), [Target::Leader]);
    assert_eq!(entry.fault.name(), "gc-pause");
    assert!(small.chaos <= 2 * SECOND && small.calm == 0, "{small:?}");
    let (code, out, _) = deposed(&dir, &format!("replay {file}"));
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("storage-safety violated"), "{out}");

    // What is smallest stays as it is, and nothing is written for it.
    let (code, out, err) = deposed(&dir, &format!("shrink {file}"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(
        out.contains("nothing smaller violates storage-safety"),
        "{out}"
    );
    assert_eq!(histories(&dir).len(), 2);
}

#[test]
fn another_history_of_that_name_is_not_overwritten() {
    let dir = scratch("beside");
    let path = failing(&dir, "gc-pause", "accepts-anything", 2);
    let taken = path.with_file_name("gc-pause-accepts-anything-2-shrunk.jsonl");
    fs::write(&taken, "mine\n").expect("room");
    let (code, out, _) = deposed(&dir, "shrink DIR/gc-pause-accepts-anything-2.jsonl");
    assert_eq!(code, 0, "{out}");
    assert_eq!(fs::read_to_string(&taken).expect("there"), "mine\n");
    assert!(
        out.contains("DIR/gc-pause-accepts-anything-2-shrunk.2.jsonl"),
        "{out}"
    );
}

/// Over flaws of clients, store and storage; what is found does not depend on the jobs.
#[test]
fn the_same_check_is_violated_by_less_and_the_same_by_one_job_and_by_three() {
    for (workload, flaw, check) in [
        (
            "partition-leader",
            Flaw::LostAfterTwoTtls,
            Check::BeliefSafety,
        ),
        (
            "store-restart",
            Flaw::ForgetsCounter,
            Check::TokenMonotonicity,
        ),
        (
            "write-before-fence",
            Flaw::FenceIsANoOp,
            Check::StorageSafety,
        ),
        ("resign", Flaw::ReleaseBeforeDrain, Check::Conduct),
    ] {
        let (header, system) = first_convicted(workload, flaw, check);
        let [one, three] = [1, 3].map(|jobs| shrink(&header, &system, check, jobs, &|_| {}));
        let one = one.expect("it violates the check");
        assert_eq!(Ok(&one), three.as_ref(), "{flaw}");
        assert_eq!(one.end, End::Smallest, "{flaw}");
        let (before, after) = (Size::of(&header), Size::of(&one.header));
        assert!(after.faults <= 3, "{flaw}: {after}");
        assert!(after.clients <= before.clients, "{flaw}: {after}");
        assert!(after.length < before.length, "{flaw}: {after}");
        assert!(violates(&one.header, &system, check), "{flaw}");
        // Who wrote it: nothing but the run was changed.
        assert_eq!(one.header.seed, header.seed);
        assert_eq!(one.header.lease, header.lease);
        assert_eq!(one.header.flaw, header.flaw);
    }
}

#[test]
fn who_stops_it_has_the_best_so_far() {
    let check = Check::StorageSafety;
    let (header, system) = first_convicted("gc-pause", Flaw::AcceptsAnything, check);
    let whole = shrink(&header, &system, check, 1, &|_| {}).expect("it violates the check");
    let stop = AtomicBool::new(false);
    let some = AtomicBool::new(false);
    let shrink = Shrink {
        system: &system,
        check,
        jobs: NonZero::<usize>::MIN,
        within: Duration::from_secs(600),
        stop: &stop,
        // Ctrl-C once there is something smaller.
        progress: &|best, _| {
            if *best != header {
                some.store(true, Ordering::Relaxed);
                stop.store(true, Ordering::Relaxed);
            }
        },
    };
    let shrunk = shrink.run(&header).expect("it violates the check");
    assert!(some.load(Ordering::Relaxed));
    assert_eq!(shrunk.end, End::Stopped);
    assert!(
        shrunk.runs < whole.runs,
        "{} of {}",
        shrunk.runs,
        whole.runs
    );
    assert_ne!(shrunk.header, header);
    assert!(violates(&shrunk.header, &system, check));
}

#[test]
fn when_time_is_up_the_best_so_far_counts() {
    let check = Check::StorageSafety;
    let (header, system) = first_convicted("gc-pause", Flaw::AcceptsAnything, check);
    let shrink = Shrink {
        system: &system,
        check,
        jobs: NonZero::<usize>::MIN,
        within: Duration::ZERO,
        stop: &AtomicBool::new(false),
        progress: &|_, _| {},
    };
    let shrunk = shrink.run(&header).expect("it violates the check");
    assert_eq!(
        (shrunk.end, shrunk.header),
        (End::OutOfTime, header.clone())
    );
    let sound = Header {
        flaw: None,
        ..header
    };
    assert_eq!(shrink.run(&sound), Err(NotViolated(check)));
}

#[test]
fn a_search_that_was_cut_short_does_not_say_that_nothing_is_smaller() {
    let dir = scratch("cut-short");
    failing(&dir, "gc-pause", "accepts-anything", 2);
    let command = "shrink DIR/gc-pause-accepts-anything-2.jsonl --for 0s";
    let (code, out, err) = deposed(&dir, command);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(!out.contains("nothing smaller violates"), "{out}");
    for says in [
        "nothing smaller was found",
        "time was up: --for gives it more",
    ] {
        assert!(out.contains(says), "{out}");
    }
}

#[test]
fn a_run_shrinks_the_first_failure_of_each_workload_by_itself() {
    let dir = scratch("run");
    let command = "run gc-pause --flaw accepts-anything --seeds 3 --shrink --out DIR";
    let (code, out, err) = deposed(&dir, command);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert_eq!(out.matches("shrunk  ").count(), 1, "{out}");
    let first = out.find("shrunk  ").expect("it is told");
    let shrunk = out.find("-shrunk.jsonl\n").expect("with its commands");
    assert!(first < shrunk, "{out}");
    let small = histories(&dir);
    let small = small.iter().find(|name| name.ends_with("-shrunk.jsonl"));
    let small = dir.join(small.expect("it was kept"));
    let whole = small.to_str().expect("a path").replace("-shrunk", "");
    assert!(Path::new(&whole).is_file(), "and the whole beside it");
    assert!(Size::of(&header_of(&small)).faults <= 1);
    let name = small
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert!(
        out.contains(&format!("  replay   deposed replay DIR/{name}\n")),
        "{out}"
    );
    let index = fs::read_to_string(dir.join("index.html")).expect("an index");
    let link = format!("<a href=\"./{name}\">shrunk</a>");
    assert_eq!(index.matches(&link).count(), 1, "{index}");
}

#[test]
fn the_table_of_flaws_has_the_median() {
    let dir = scratch("table");
    let (code, out, err) = deposed(&dir, "flaws no-barrier forgets-counter --shrink");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let rows: Vec<&str> = out.lines().collect();
    assert!(rows[1].starts_with("no-barrier       calm "), "{out}");
    assert!(rows[1].contains("   0 → 0      3 → 1 "), "{out}");
    assert!(rows[3].contains(" → 1 "), "one crash of the store: {out}");
    assert!(
        rows[4].starts_with("3 rows: 0 faults left at the median, 1 at the worst; "),
        "{out}"
    );
    assert!(
        rows[4].ends_with(" s at the longest, none out of time"),
        "{out}"
    );
    let (code, out, _) = deposed(&dir, "flaws forgets-counter --shrink --for 0s");
    assert_eq!(code, 0, "{out}");
    assert!(out.trim_end().ends_with(", 1 out of time"), "{out}");
}

#[test]
#[ignore = "minutes: cargo test --release -p deposed-workloads --test shrinking -- --ignored"]
fn the_median_of_all_flaws_is_three_faults_or_fewer() {
    let dir = scratch("all-flaws");
    let (code, out, err) = deposed(&dir, "flaws --shrink --for 10m");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let last = out.lines().last().expect("a sum");
    let (_, left) = last.split_once(" rows: ").expect("many rows");
    let (median, _) = left.split_once(" fault").expect("a median");
    let median: usize = median.parse().expect("a number");
    assert!(median <= 3, "{out}");
    assert!(last.ends_with(", none out of time"), "{out}");
}

fn shrink(
    header: &Header,
    system: &Arc<dyn System>,
    check: Check,
    jobs: usize,
    progress: &dyn Fn(&Header),
) -> Result<Shrunk, NotViolated> {
    let shrink = Shrink {
        system,
        check,
        jobs: NonZero::new(jobs).expect("not 0"),
        within: Duration::from_secs(600),
        stop: &AtomicBool::new(false),
        progress: &|best, _| progress(best),
    };
    shrink.run(header)
}

/// The run of the first seed that the check convicts.
fn first_convicted(workload: &str, flaw: Flaw, check: Check) -> (Header, Arc<dyn System>) {
    let system: Arc<dyn System> = Arc::new(Deposed);
    let all = deposed_workloads::all();
    let workload = all.iter().find(|found| found.name == workload);
    let workload = workload.expect("a workload");
    let headers = (0..20).map(|seed| Header::of(workload, seed, system.name(), Some(flaw)));
    let found = headers
        .into_iter()
        .find(|header| violates(header, &system, check));
    (found.expect("a seed that convicts it"), system)
}

fn violates(header: &Header, system: &Arc<dyn System>, check: Check) -> bool {
    let outcome = run(header, system).expect("the run goes through");
    outcome
        .verdicts
        .violated()
        .any(|(violated, _)| violated == check)
}

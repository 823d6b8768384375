use std::sync::Arc;

use crate::cli::{Suite, run};
use crate::system::Deposed;

fn deposed(args: &str) -> (u8, String, String) {
    let suite = Suite {
        workloads: Vec::new(),
        systems: vec![Arc::new(Deposed)],
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = std::iter::once("deposed").chain(args.split(' '));
    let code = run(&suite, args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (code, text(out), text(err))
}

#[test]
fn bad_bounds_are_told_in_one_sentence() {
    for (args, sentence) in [
        ("--clients 0", "0 clients cannot be searched: give 1 to 4"),
        (
            "--in-flight 7",
            "7 messages in flight cannot be searched: give 1 to 6",
        ),
        (
            "--ttl 0",
            "a ttl of 0 ticks cannot be searched: give 1 to 30",
        ),
        ("--drift 1/1", "stands still; give a drift below 1"),
        ("--drift 3/4", "one tick in so many that a clock may skip"),
        (
            "--ttl 1 --drift 1/2",
            "leaves nothing of a ttl of 1 to lead in",
        ),
        ("--drift 2/1", "one tick in so many that a clock may skip"),
        ("--drift 1", "one tick in so many that a clock may skip"),
        ("--drift x", "one tick in so many that a clock may skip"),
        (
            "--clients 99999999999999",
            "99999999999999 clients cannot be searched: give 1 to 4",
        ),
        (
            "--clients 99999999999999999999999",
            "number too large to fit",
        ),
        ("--ttl -1", "invalid value '-1' for '--ttl <TICKS>'"),
        ("--for -1s", "give a number and a unit: 30s"),
        ("--jobs 0", "give 1 or more"),
        ("--max-memory 0", "no search fits into so little memory"),
        ("--max-memory 12", "no search fits into so little memory"),
        ("--max-memory 31MB", "give 32MB or more with --max-memory"),
        (
            "--clients 4 --ttl 30 --in-flight 6 --max-memory 40MB",
            "4 clients and a ttl of 30 make 1675520 states at the least, which take 51 MB: \
             give more with --max-memory, or smaller bounds",
        ),
        ("--max-memory much", "give a number and a unit: 512MB, 2GB"),
        ("--flaw no-barier", "did you mean 'no-barrier'?"),
    ] {
        let (code, out, err) = deposed(&format!("prove {args}"));
        assert_eq!((code, out.as_str()), (2, ""), "{args}");
        assert!(err.contains(sentence), "{args}: {err}");
        assert_eq!(err.lines().count(), 1, "{args}: {err}");
    }
}

#[test]
fn what_holds_says_what_was_covered_and_what_was_not() {
    let (code, out, _) = deposed("prove --ttl 1 --in-flight 1");
    assert_eq!(code, 0, "{out}");
    assert!(
        out.starts_with("holds  2 clients, ttl 1, 1 in flight, drift 0\n"),
        "{out}"
    );
    for words in [
        "all that there are",
        "belief-safety",
        "and why      every belief",
        "not covered  liveness",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
}

#[test]
fn a_search_that_is_not_over_is_unknown() {
    let (code, out, _) = deposed("prove --for 0s");
    assert_eq!(code, 3, "{out}");
    assert!(
        out.starts_with("UNKNOWN  ") && !out.contains("holds"),
        "{out}"
    );
    assert!(
        out.contains("held         ") && out.contains("so far"),
        "{out}"
    );
    assert!(
        out.contains(
            "met so far   at most what 0 actions from the start can come to, in worlds that may"
        ) && !out.contains("\ncovered"),
        "{out}"
    );
    let (code, out, _) = deposed("prove --clients 4 --ttl 9 --max-memory 32MB");
    assert_eq!(code, 3, "{out}");
    assert!(
        out.contains("then the memory was full") && !out.contains("holds"),
        "{out}"
    );
}

/// The states that a line counts.
fn states(line: &str) -> u64 {
    let (before, _) = line.split_once(" states, ").expect("so many states");
    let number = before.rsplit(' ').next().expect("a number");
    number.parse().expect("a number")
}

#[test]
fn what_holds_says_of_how_many_states_the_cores_were_asked() {
    let (code, out, _) = deposed("prove --ttl 1 --in-flight 1");
    assert_eq!(code, 0, "{out}");
    let asked = out.lines().find(|line| line.contains("was asked of them"));
    let asked = asked.expect("what the search rests on");
    let numbers = asked.split(|letter: char| !letter.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
    assert_eq!(numbers.len(), 3, "{asked}");
    assert!(numbers.iter().all(|number| *number > 1), "{asked}");
}

#[test]
fn more_threads_than_there_can_be_are_no_more_than_there_can_be() {
    let small = "prove --ttl 1 --in-flight 1";
    let (code, many, err) = deposed(&format!("{small} --jobs {}", u64::MAX));
    assert_eq!(code, 0, "{err}");
    let (_, one, _) = deposed(&format!("{small} --jobs 1"));
    let first = |out: &str| states(out.lines().nth(2).expect("its cost"));
    assert_eq!(first(&many), first(&one));
}

#[cfg(feature = "flaws")]
#[test]
fn why_it_holds_is_not_told_where_a_flaw_is_planted() {
    let flawed = "prove --flaw stale-retry --ttl 1 --in-flight 1";
    let (code, out, err) = deposed(flawed);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("held         "), "{out}");
    assert!(!out.contains("and why"), "{out}");
}

#[cfg(feature = "flaws")]
#[test]
fn a_counterexample_is_shown_judged_and_kept_as_a_run_that_replays() {
    let dir = std::env::temp_dir().join(format!("deposed-prove-{}", std::process::id()));
    let at = dir.to_str().expect("a path in UTF-8");
    let prove = format!("prove --flaw count-from-reply --out {at}");
    let (code, out, err) = deposed(&prove);
    assert_eq!(code, 1, "{out}{err}");
    let (_, failure) = out
        .split_once("\n\n")
        .expect("the history, then what is wrong");
    assert!(failure.starts_with("FAILED  belief-safety  "), "{failure}");
    assert!(
        failure.contains("9 actions, and no fewer lead there"),
        "{failure}"
    );
    let file = format!("{at}/prove-count-from-reply-0.jsonl");
    let replay = format!("\n  replay   deposed replay {file}\n");
    assert!(failure.contains(&replay), "{failure}");
    let (code, replayed, err) = deposed(&format!("replay {file}"));
    assert_eq!(code, 0, "{replayed}{err}");
    assert!(replayed.starts_with("identical  "), "{replayed}");
    assert!(replayed.contains("belief-safety violated"), "{replayed}");
    assert_eq!(deposed(&format!("check {file}")).0, 1);
    assert_eq!(
        deposed(&prove).1.lines().last(),
        out.lines().last(),
        "the same file"
    );
    std::fs::remove_dir_all(&dir).expect("its end");
    std::fs::write(&dir, "in the way").expect("room");
    let (code, out, err) = deposed(&prove);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("histories cannot be kept in"), "{err}");
    std::fs::remove_file(&dir).expect("its end");
}

#[cfg(feature = "flaws")]
#[test]
fn a_flaw_outside_the_model_is_told_with_the_reason() {
    let (code, _, err) = deposed("prove --flaw token-per-key");
    assert_eq!(code, 2);
    assert!(err.contains("it needs two keys"), "{err}");
}

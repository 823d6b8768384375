//! `deposed check --follow`: when it ends, and what it refuses. (How it waits for a writer is
//! tested where it does.)

use std::{fs, path::Path};

use super::{deposed, refuses, scratch};

#[test]
fn a_history_is_followed_until_a_violation_is_certain_or_time_is_up() {
    let dir = scratch("follow");
    let verdicts = Path::new(env!("CARGO_MANIFEST_DIR")).join("checkers/tests/verdicts");
    for name in ["stale-write-applied", "fence-then-write"] {
        let name = format!("{name}.jsonl");
        fs::copy(verdicts.join(&name), dir.join(&name)).expect("a history of the checkers");
    }
    // No time is given: it would never end otherwise.
    let (code, out, err) = deposed(&dir, "check --follow DIR/stale-write-applied.jsonl");
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(out.contains("storage-safety: a write"), "{out}");
    assert!(out.contains("> "), "its evidence is shown: {out}");

    let followed = "check --follow --for 1ms --json DIR/fence-then-write.jsonl";
    let (code, out, err) = deposed(&dir, followed);
    assert_eq!((code, err.as_str()), (0, ""));
    let (_, whole, _) = deposed(&dir, "check --json DIR/fence-then-write.jsonl");
    assert_eq!(out, whole, "what is there is judged as a whole");

    // A line that is half written behind it hides nothing of it.
    let stale = fs::read_to_string(dir.join("stale-write-applied.jsonl")).expect("it is there");
    let (code, shown, _) = deposed(&dir, "check --follow DIR/stale-write-applied.jsonl");
    let until = (1..=stale.lines().count())
        .map(|lines| {
            stale
                .lines()
                .take(lines)
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        })
        .find(|begun| {
            fs::write(dir.join("begun.jsonl"), begun).expect("it can be written");
            deposed(&dir, "check DIR/begun.jsonl").0 == 1
        })
        .expect("it is convicted");
    fs::write(dir.join("torn.jsonl"), until + "{\"index\":9").expect("it can be written");
    let (torn, out, _) = deposed(&dir, "check --follow DIR/torn.jsonl");
    let evidence = |out: &str| out.replace("torn.jsonl", "stale-write-applied.jsonl");
    assert_eq!((torn, evidence(&out)), (code, shown));

    // What is not asked for is not waited for.
    let other = "check --follow --for 1ms --only failover DIR/stale-write-applied.jsonl";
    assert_eq!(deposed(&dir, other).0, 3);
}

#[test]
fn what_cannot_be_followed_is_one_sentence() {
    let dir = scratch("follow-refused");
    fs::write(dir.join("a"), "{\"deposed\":1}\n").expect("it can be written");
    refuses(
        &dir,
        "check --follow DIR/a DIR/a",
        "--follow follows one history; start one for each",
    );
    refuses(
        &dir,
        "check --follow --for soon DIR/a",
        "give a number and a unit",
    );
    refuses(
        &dir,
        "check --follow DIR/missing",
        "DIR/missing: is not there yet",
    );
    refuses(
        &dir,
        "check --follow DIR",
        "DIR: a folder cannot be followed: name a file in it",
    );
}

use std::fs;

use super::{STORY, kept, shown};

#[test]
fn a_part_of_a_history_is_chosen_by_time_process_and_kind() {
    let (_dir, file) = kept("part", STORY);
    let indices = |options: &str| {
        let (code, out, err) = shown(&file, options);
        assert_eq!((code, err.as_str()), (0, ""), "{options}");
        let lines = out
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>()
    };
    let from_to = [
        "0.800s nemesis resume a",
        "0.800s a leads no more @7",
        "0.810s a write x=40 @7",
    ];
    for options in ["--from 0.8s --to 810ms", "--from 800000000 --to 810000us"] {
        assert_eq!(indices(options), from_to, "{options}");
    }
    let storage = [
        "0.450s storage fenced 8",
        "0.850s storage applied write x=40 @7",
    ];
    assert_eq!(indices("--process storage"), storage);
    // An answer is told with what it answers, though its call is not shown.
    assert_eq!(
        indices("--kind ok --process a --from 100ms"),
        ["0.860s a write x=40 @7 ok"]
    );
    assert_eq!(indices("--kind fenced,applied"), storage);
    let nemesis = [
        "0.200s nemesis pause a for 600ms",
        "0.800s nemesis resume a",
    ];
    assert_eq!(indices("--kind nemesis"), nemesis);
}

#[test]
fn a_part_in_which_nothing_is_tells_what_there_is() {
    let (_dir, file) = kept("nothing", STORY);
    // A kind that just does not occur is no mistake; that nothing is shown is no accident.
    for part in [
        "--kind fail,refused",
        "--from 100s",
        "--process nemesis --to 100ms",
        "--process b --kind ok --to 300ms",
        "--process a --kind ok --from 500ms --to 600ms",
    ] {
        for drawn in ["", "--timeline"] {
            let (code, out, err) = shown(&file, &format!("{part} {drawn}"));
            assert_eq!((code, err.as_str()), (0, ""), "{part} {drawn}");
            assert_eq!(out.lines().count(), 1, "{part} {drawn}: {out}");
            let told = "h.jsonl has no event in the part that was asked for; it goes from 0.000s to 0.999s";
            assert!(out.contains(told), "{part} {drawn}: {out}");
        }
        let (code, page, _) = shown(&file, &format!("{part} --html -"));
        let told = "; nothing is in the part that was asked for, and the history goes from 0.000s to 0.999s";
        assert!(code == 0 && page.contains(told), "{part}");
    }
    // What lasts is something to draw, though nothing happens meanwhile.
    let paused = "--process a --from 500ms --to 600ms";
    let (_, drawn, _) = shown(&file, &format!("{paused} --timeline"));
    assert!(drawn.contains("zzzz"), "{drawn}");
    let (_, page, _) = shown(&file, &format!("{paused} --html -"));
    assert!(!page.contains("nothing is in the part"));

    let (_dir, file) = kept("header-alone", "{\"deposed\":1}\n");
    for drawn in ["", "--timeline"] {
        let (code, out, _) = shown(&file, drawn);
        assert!(
            code == 0 && out.ends_with("h.jsonl holds no events, only a header\n"),
            "{out}"
        );
    }
}

#[test]
fn what_cannot_be_shown_is_one_sentence() {
    let (dir, file) = kept("refuse", STORY);
    let taken = dir.join("there.html");
    fs::write(&taken, "mine").expect("room");
    let taken_too = format!("--html {}", taken.display());
    let nowhere = format!("--html {}/no/where.html", dir.display());
    let cases = [
        ("--from 2s --to 1s", "--to is before --from"),
        (
            "--from soon",
            "give a time such as 1.2s, 850ms, or nanoseconds",
        ),
        (
            "--from 0.6",
            "there is no part of a nanosecond; give its unit, as in 0.6s",
        ),
        ("--from 1.2.3s", "give a time such as 1.2s"),
        (
            "--from -1s",
            "invalid value '-1s' for '--from <TIME>': give a time",
        ),
        ("--from 1.s", "give a time such as 1.2s"),
        (
            "--to 99999999999s",
            "the latest time is 18446744073709551615 ns",
        ),
        (
            "--process d",
            "no process is called 'd'; there are a, b, nemesis, storage, store",
        ),
        (
            "--process a,zzz",
            "no process is called 'zzz'; there are a, b, nemesis, storage, store",
        ),
        (
            "--kind wirte",
            "no event is of the kind 'wirte'; there are acquire",
        ),
        (
            "--timeline --process d",
            "no process is called 'd'; there are a, b, store, storage, nemesis",
        ),
        ("--html - --kind wirte", "no event is of the kind 'wirte'"),
        ("--html - --timeline", "cannot be used with"),
        (
            &taken_too,
            "exists and is not overwritten: name a new file with --html",
        ),
        (&nowhere, "where.html' cannot be written"),
    ];
    for (options, says) in cases {
        let (code, out, err) = shown(&file, options);
        // Nothing is shown of what was not asked for rightly.
        assert_eq!((code, out.as_str()), (2, ""), "{options}: {err}");
        assert!(err.contains(says), "{options}: {err}");
        assert_eq!(err.trim_end().lines().count(), 1, "{options}: {err}");
    }
    assert_eq!(fs::read(&taken).expect("there"), b"mine");
    assert!(
        !dir.join("no").exists(),
        "a slip of the pen makes no folder"
    );
}

#[test]
fn a_damaged_history_is_no_timeline() {
    let torn = &STORY[..STORY.len() - 10];
    let (dir, file) = kept("torn", torn);
    let page = dir.join("page.html");
    for options in [
        "--timeline".to_owned(),
        format!("--html {}", page.display()),
    ] {
        let (code, out, err) = shown(&file, &options);
        assert_eq!((code, out.as_str()), (2, ""), "{options}");
        assert!(err.contains("h.jsonl:19: the last line is torn"), "{err}");
    }
    assert!(!page.exists());
}

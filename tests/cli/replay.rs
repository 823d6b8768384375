//! `deposed replay`: what was recorded, compared; a header alone, judged.

use std::fs;

use super::{deposed, refuses, scratch};

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

/// The first line of the history that a run of some seed makes, and what `run` printed.
fn header_of(dir: &std::path::Path, run: &str, file: &str) -> (String, String) {
    let (_, out, _) = deposed(dir, &format!("run {run} --keep --out DIR/run"));
    let kept = fs::read_to_string(dir.join("run").join(file)).expect("it was kept");
    let header = kept.lines().next().expect("a header");
    (header.to_owned(), out)
}

#[test]
fn a_header_alone_is_run_and_judged() {
    let dir = scratch("alone");
    let (header, _) = header_of(&dir, "gc-pause --seed 0", "gc-pause-0.jsonl");
    fs::write(dir.join("h.jsonl"), format!("{header}\n")).expect("room");
    let (code, out, err) = deposed(&dir, "replay DIR/h.jsonl --out DIR/runs");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("valid  DIR/h.jsonl  "), "{out}");
    assert!(out.contains(" events\n\n  well-formed ok · "), "{out}");
    assert!(!dir.join("runs").exists(), "a valid run leaves nothing");
    let (code, out, _) = deposed(&dir, "replay DIR/h.jsonl --keep --out DIR/runs");
    let file = "DIR/runs/gc-pause-0.jsonl";
    let next = format!("\n\n  replay   deposed replay {file}\n  look     deposed show   {file}\n");
    assert!(code == 0 && out.ends_with(&next), "{out}");
    let (code, out, _) = deposed(&dir, &format!("replay {file}"));
    assert!(code == 0 && out.starts_with("identical  "), "{out}");
    refuses(
        &dir,
        "replay DIR/h.jsonl 7",
        "holds its own seed: leave the 7 out",
    );
}

#[test]
fn a_header_alone_that_fails_is_told_as_a_run_is_and_kept() {
    let dir = scratch("alone-failing");
    let run = "gc-pause --seed 3 --system forger";
    let file = "gc-pause-forger-3.jsonl";
    let (header, told) = header_of(&dir, run, file);
    let (block, _) = told
        .split_once("\nFAILED  gc-pause  1 of 1")
        .expect("a tally");
    fs::write(dir.join("h.jsonl"), &header).expect("room");
    let (code, out, err) = deposed(&dir, "replay DIR/h.jsonl --out DIR/runs");
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert_eq!(out, block.replace("DIR/run/", "DIR/runs/"));
    let kept = |dir_and_file: &str| fs::read(dir.join(dir_and_file)).expect("it was kept");
    let first = kept(&format!("runs/{file}"));
    assert_eq!(first, kept(&format!("run/{file}")));

    let longer = header.replacen("\"calm\":1000000000", "\"calm\":1001000000", 1);
    assert_ne!(longer, header);
    fs::write(dir.join("h.jsonl"), longer).expect("room");
    let (code, out, _) = deposed(&dir, "replay DIR/h.jsonl --out DIR/runs");
    assert!(
        code == 1 && out.contains("DIR/runs/gc-pause-forger-3.2.jsonl"),
        "{out}"
    );
    assert_eq!(kept(&format!("runs/{file}")), first, "never overwritten");
}

#[test]
fn a_header_alone_is_nothing_to_judge_or_to_show() {
    let dir = scratch("nothing");
    let (header, _) = header_of(&dir, "gc-pause --seed 0", "gc-pause-0.jsonl");
    fs::write(dir.join("h.jsonl"), format!("{header}\n")).expect("room");
    fs::write(dir.join("bare.jsonl"), "{\"deposed\":1}\n").expect("room");
    let why = "the history holds no events: there is nothing to judge";
    let (code, out, err) = deposed(&dir, "check DIR/h.jsonl");
    assert_eq!((code, err.as_str()), (3, ""), "{out}");
    let told = format!("unknown  DIR/h.jsonl  0 events\n\n  {why}\n");
    assert_eq!(
        out,
        format!("{told}\n  replay   deposed replay DIR/h.jsonl\n\n")
    );
    let (code, out, _) = deposed(&dir, "check DIR/bare.jsonl --only storage-safety");
    assert_eq!(
        (code, out),
        (
            3,
            format!("unknown  DIR/bare.jsonl  0 events\n\n  {why}\n\n")
        )
    );
    let (code, out, _) = deposed(&dir, "check --json DIR/bare.jsonl");
    let object: serde_json::Value = serde_json::from_str(&out).expect("an object");
    assert_eq!((code, &object["verdict"]), (3, &"unknown".into()), "{out}");
    assert_eq!(object["checks"][0]["why"], why);
    let (code, out, _) = deposed(&dir, "show DIR/bare.jsonl");
    assert_eq!(
        (code, out.as_str()),
        (0, "DIR/bare.jsonl holds no events, only a header\n")
    );
}

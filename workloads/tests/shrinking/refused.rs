//! What cannot be shrunk, and why: one sentence each.

use std::fs;

use super::{deposed, failing, histories, refuses, scratch};

#[test]
fn what_cannot_be_shrunk_is_one_sentence() {
    let dir = scratch("refused");
    failing(&dir, "gc-pause", "accepts-anything", 2);
    let file = "DIR/gc-pause-accepts-anything-2.jsonl";
    refuses(&dir, "shrink DIR/none.jsonl", "cannot be opened");
    refuses(
        &dir,
        &format!("shrink {file} --check storage-safty"),
        "did you mean 'storage-safety'?",
    );
    refuses(
        &dir,
        &format!("shrink {file} --check belief-safety"),
        "belief-safety is not violated, but storage-safety and zombie-write: there is nothing",
    );
    refuses(
        &dir,
        &format!("shrink {file} --for soon"),
        "give a number and a unit",
    );
    refuses(
        &dir,
        &format!("shrink {file} --out DIR"),
        "'DIR' exists and is not overwritten",
    );
    // Nothing is searched for what cannot be written, and no folder made for it.
    refuses(
        &dir,
        &format!("shrink {file} --for 0s --out DIR/none/x.jsonl"),
        "'DIR/none/x.jsonl' cannot be written",
    );
    assert!(!dir.join("none").exists());
    refuses(
        &dir,
        "shrink -",
        "has no place beside it: name a file with --out",
    );

    assert_eq!(deposed(&dir, "run gc-pause --seed 2 --keep --out DIR").0, 0);
    refuses(
        &dir,
        "shrink DIR/gc-pause-2.jsonl",
        "DIR/gc-pause-2.jsonl: no check is violated: there is nothing to shrink",
    );

    assert_eq!(histories(&dir).len(), 2, "nothing was written");
}

/// Each has its own remedy; another version is not blamed for what somebody edited.
#[test]
fn why_a_history_does_not_reproduce_is_told_apart() {
    let dir = scratch("apart");
    let path = failing(&dir, "gc-pause", "accepts-anything", 2);
    let text = fs::read_to_string(&path).expect("a history");
    let lines: Vec<&str> = text.lines().collect();
    let says = |what: &str, text: &str, says: &str| {
        assert_ne!(text, lines.join("\n") + "\n", "{what}");
        fs::write(dir.join("x.jsonl"), text).expect("room");
        refuses(&dir, "shrink DIR/x.jsonl", says);
        refuses(&dir, "keep DIR/x.jsonl --into DIR/kept", says);
    };
    let first = |from: &str, to: &str| text.replacen(from, to, 1);

    let newer = first("{\"deposed\":1,", "{\"deposed\":2,");
    says("newer", &newer, "written by a newer version of deposed");
    let theirs = first("\"system\":\"deposed\"", "\"system\":\"theirs\"");
    says(
        "system",
        &theirs,
        "a run of the system 'theirs', and this binary holds deposed",
    );
    let flaw = first("\"accepts-anything\"", "\"accepts-everything\"");
    says("flaw", &flaw, "no flaw is called 'accepts-everything'");
    let outside = first(",\"schedule\":", ",\"plan\":");
    let refused = "its header has no 'schedule', as one that another tool made or somebody edited; \
                   `deposed check` judges it";
    says("outside", &outside, refused);

    let granted = lines.iter().position(|line| line.contains("\"granted\""));
    let at = granted.expect("somebody led");
    let with = |line: &str| {
        let mut lines = lines.clone();
        lines[at] = line;
        lines.join("\n") + "\n"
    };
    let event = at - 1;
    let edited = lines[at].replace("\"ttl\":", "\"ttl\":1");
    let told = format!("does not reproduce: event {event} was edited by hand: it was {{");
    says("an event", &with(&edited), &told);
    let spaced = lines[at].replace(",", ", ");
    let told = format!(
        "line {} is not worded as this version words an event",
        at + 1
    );
    says("its words", &with(&spaced), &told);
    let header = first(",", ", ");
    let both = header.replacen(lines[at], &edited, 1);
    says(
        "header and event",
        &both,
        "its header is not worded as this version words one",
    );
    let short = lines[..40].join("\n") + "\n";
    let told = "it is cut short: it ends after 39 events, and the run goes on with {";
    says("the end", &short, told);

    let seed = first("\"seed\":2", "\"seed\":4");
    let told = "another version of the system recorded it, or its header was edited since; the run \
                violates ";
    says("seed", &seed, told);
    let sound = first("\"flaw\":\"accepts-anything\"", "\"flaw\":null");
    let told = "the run violates nothing, and the history storage-safety and zombie-write; for the \
                run take its header alone";
    says("flaw gone", &sound, told);
    assert_eq!(histories(&dir).len(), 2, "nothing was written");
    assert!(!dir.join("kept").exists(), "nor a folder made");
}

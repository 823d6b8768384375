//! `deposed keep`: a history that is worth it becomes a test.

use std::{fs, num::NonZero, sync::Arc};

use deposed::{
    kept::Folder,
    run::Header,
    system::{Deposed, System},
};

use super::{deposed, failing, header_of, refuses, scratch};

#[test]
fn a_kept_history_has_moved_is_told_and_holds() {
    let dir = scratch("keep");
    failing(&dir, "gc-pause", "accepts-anything", 2);
    let file = "DIR/gc-pause-accepts-anything-2.jsonl";
    assert_eq!(deposed(&dir, &format!("shrink {file}")).0, 0);
    let small = dir.join("gc-pause-accepts-anything-2-shrunk.jsonl");
    let bytes = fs::read(&small).expect("it was written");
    let keep = "keep DIR/gc-pause-accepts-anything-2-shrunk.jsonl --into DIR/kept";
    let command = format!("{keep} --name paused --sentence It-wakes-deposed.");
    let (code, out, err) = deposed(&dir, &command);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(
        out.starts_with("kept  DIR/kept/paused.jsonl\n  storage-safety: "),
        "{out}"
    );
    assert!(!small.exists(), "it has moved");
    let kept = dir.join("kept/paused.jsonl");
    assert_eq!(fs::read(&kept).expect("it is there"), bytes);
    let told = fs::read_to_string(dir.join("kept/README.md")).expect("it is told");
    assert!(
        told.contains("\n## paused\n\nIt-wakes-deposed.\n\n- storage-safety: a write"),
        "{told}"
    );

    // A good one beside it, by its own name.
    let good = Header {
        flaw: None,
        ..header_of(&kept)
    };
    let line = serde_json::to_string(&good).expect("plain data");
    fs::write(dir.join("good.jsonl"), line + "\n").expect("room");
    let (code, out, _) = deposed(&dir, "keep DIR/good.jsonl --into DIR/kept");
    assert_eq!(code, 0, "{out}");
    assert!(
        out.starts_with("kept  DIR/kept/good.jsonl\n  valid\n"),
        "{out}"
    );

    let folder = Folder::new(&dir.join("kept"));
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    let hold = || folder.hold(&systems, NonZero::<usize>::MIN);
    assert_eq!(hold(), Ok(2));

    // The name is taken; nothing is lost.
    fs::write(dir.join("paused.jsonl"), &bytes).expect("room");
    let again = "keep DIR/paused.jsonl --into DIR/kept";
    refuses(
        &dir,
        again,
        "'DIR/kept/paused.jsonl' exists and is not overwritten",
    );
    refuses(
        &dir,
        &format!("{again} --name a/b"),
        "'a/b' is no name for a history",
    );
    refuses(
        &dir,
        &format!("{again} --name more --sentence -"),
        "begin with a word",
    );
    assert!(dir.join("paused.jsonl").exists());

    // Moving it within its folder would leave its story without it.
    for also in ["", " --name two"] {
        let again = format!("keep DIR/kept/../kept/paused.jsonl --into DIR/kept{also}");
        refuses(&dir, &again, "is kept already: ");
    }
    assert_eq!(hold(), Ok(2), "untouched");
    refuses(&dir, "keep - --into DIR/kept", "give it one with --name");
    refuses(
        &dir,
        &format!("{again} --name more --sentence \u{1b}[31mIt-wakes."),
        "the sentence holds the character '\\u{1b}'",
    );

    // What no longer replays, and what nobody tells, is named.
    let text = String::from_utf8(bytes).expect("text");
    let seed = text.replacen(r#""seed":2"#, r#""seed":3"#, 1);
    fs::write(&kept, seed).expect("room");
    let wrong = hold().expect_err("another seed is another run");
    assert!(
        wrong.contains("paused.jsonl: does not replay: event "),
        "{wrong}"
    );
    assert!(wrong.contains("deposed keep --anew "), "{wrong}");
    fs::write(&kept, text).expect("room");
    let readme = dir.join("kept/README.md");
    fs::write(&readme, told.replace("token 1 landed", "token 7 landed")).expect("room");
    let wrong = hold().expect_err("the sentence is another");
    assert!(
        wrong.contains("paused.jsonl: judged 'storage-safety: a write with token 1"),
        "{wrong}"
    );
    assert!(wrong.contains("'good' is not told in"), "{wrong}");
    fs::write(
        &readme,
        format!("{told}\n## gone\n\nIt was here.\n\n- valid\n"),
    )
    .expect("room");
    let wrong = hold().expect_err("it is not there");
    assert!(
        wrong.contains("tells 'gone', and there is no such history"),
        "{wrong}"
    );
}

#[test]
fn after_a_change_that_is_meant_a_history_is_kept_anew() {
    let dir = scratch("anew");
    failing(&dir, "gc-pause", "accepts-anything", 2);
    let file = "DIR/gc-pause-accepts-anything-2.jsonl";
    assert_eq!(
        deposed(&dir, &format!("keep {file} --into DIR/kept --name x")).0,
        0
    );
    let kept = dir.join("kept/x.jsonl");
    let text = fs::read_to_string(&kept).expect("it was kept");
    // What another version of the system recorded.
    let old = text.replace(r#""seed":2"#, r#""seed":4"#);
    fs::write(&kept, &old).expect("room");
    let (code, out, err) = deposed(&dir, "keep --anew DIR/kept/x.jsonl");
    let folder = Folder::new(&dir.join("kept"));
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(folder.hold(&systems, NonZero::<usize>::MIN), Ok(1));
    // Without its flaw it would be another story.
    let sound = text.replace(r#""flaw":"accepts-anything""#, r#""flaw":null"#);
    fs::write(&kept, &sound).expect("room");
    refuses(
        &dir,
        "keep --anew DIR/kept/x.jsonl",
        "'x' is another story now: judged valid, and told ",
    );
    assert_eq!(
        fs::read_to_string(&kept).expect("there"),
        sound,
        "untouched"
    );
}

#[test]
fn a_history_without_a_sentence_is_told_by_what_struck_it_and_what_came_of_it() {
    let dir = scratch("told");
    failing(&dir, "gc-pause", "accepts-anything", 2);
    let file = "DIR/gc-pause-accepts-anything-2.jsonl";
    assert_eq!(deposed(&dir, &format!("shrink {file}")).0, 0);
    let small = "DIR/gc-pause-accepts-anything-2-shrunk.jsonl";
    let (code, out, err) = deposed(&dir, &format!("keep {small} --into DIR/kept"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let told = "With 1 fault (0.005s gc-pause a before its next read for 400ms), a write with token \
                1 landed after storage had seen token 2: it was a's, and token 2 was b's; a write by \
                a, deposed since, landed after the first operation of its successor b. The planted \
                flaw is accepts-anything. Storage checks no token.";
    assert!(out.contains(told), "{out}");
    // Of the whole's 17 faults those are named that came before the harm.
    let (code, out, _) = deposed(&dir, &format!("keep {file} --name whole --into DIR/kept"));
    assert_eq!(code, 0, "{out}");
    let paused = "With 2 faults (0.460s gc-pause c before its next write for 557.427ms, then ";
    assert!(out.contains(paused), "{out}");
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    let folder = Folder::new(&dir.join("kept"));
    assert_eq!(folder.hold(&systems, NonZero::<usize>::MIN), Ok(2));
}

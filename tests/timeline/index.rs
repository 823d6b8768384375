use std::{fs, sync::Arc};

use deposed::{
    cli::{self, Suite},
    report::index::{self, Kept, Key, Row},
    system::{Deposed, System},
    workload::{SECOND, Workload},
};

use super::kept;

fn key(workload: &str, last: u64) -> Key {
    Key {
        workload: workload.to_owned(),
        system: "deposed".to_owned(),
        flaw: None,
        first: 0,
        last,
    }
}

fn row(verdict: &str) -> Row {
    Row {
        verdict: verdict.to_owned(),
        counts: "1 of 2 seeds".to_owned(),
        seen: vec!["a leader wrote".to_owned()],
        unseen: Some(vec!["a frame was lost".to_owned()]),
        kept: vec![Kept {
            seed: 1,
            file: "gc-pause-1.jsonl".to_owned(),
            page: Some("gc-pause-1.html".to_owned()),
            shrunk: None,
            failed: true,
        }],
    }
}

#[test]
fn the_next_run_adds_its_rows_and_the_same_run_replaces_its_own() {
    let (dir, _) = kept("index", "");
    let there = |name: &str| fs::write(dir.join(name), "").expect("room");
    ["gc-pause-1.jsonl", "gc-pause-1.html"]
        .into_iter()
        .for_each(there);
    let write = |workload: &str, last: u64, verdict: &str| {
        let path = index::write(&dir, [(key(workload, last), row(verdict))]).expect("room");
        assert_eq!(path, dir.join("index.html"));
        fs::read_to_string(path).expect("written")
    };
    write("gc-pause", 19, "FAILED");
    write("chaos", 19, "ok");
    let fewer = write("gc-pause", 4, "unknown");
    assert_eq!(fewer.matches("<tr><td>").count(), 3, "{fewer}");
    let fixed = write("gc-pause", 19, "ok");
    assert_eq!(fixed.matches("<tr><td>").count(), 3, "{fixed}");
    assert!(!fixed.contains(">FAILED<"), "{fixed}");
    for said in [
        "<td>0 to 19</td>",
        "a leader wrote",
        "a frame was lost",
        "./gc-pause-1.html",
    ] {
        assert!(fixed.contains(said), "{said}: {fixed}");
    }
}

#[test]
fn the_index_links_what_is_there() {
    let (dir, _) = kept("links", "");
    let there = |name: &str| fs::write(dir.join(name), "").expect("room");
    let gone = |name: &str| fs::remove_file(dir.join(name)).expect("it was there");
    let links = |rows: Vec<(Key, Row)>| {
        let path = index::write(&dir, rows).expect("room");
        let page = fs::read_to_string(path).expect("written");
        let links = page.split("href=\"./").skip(1);
        let links = links.map(|link| link.split('"').next().expect("its end").to_owned());
        links.collect::<Vec<_>>()
    };
    ["gc-pause-1.jsonl", "gc-pause-1.html"]
        .into_iter()
        .for_each(there);
    let both = ["gc-pause-1.jsonl", "gc-pause-1.html"];
    assert_eq!(links(vec![(key("gc-pause", 1), row("FAILED"))]), both);
    // What was shrunk is linked as whoever shrank it says, and not by how it is called.
    there("gc-pause-1-shrunk.jsonl");
    there("smaller.jsonl");
    gone("gc-pause-1.html");
    assert_eq!(links(vec![]), ["gc-pause-1.jsonl"]);
    let mut shrunk = row("FAILED");
    shrunk.kept[0].shrunk = Some("smaller.jsonl".to_owned());
    let expected = ["gc-pause-1.jsonl", "smaller.jsonl"];
    assert_eq!(links(vec![(key("gc-pause", 1), shrunk)]), expected);
    // The same run again, without shrinking: it is as true as before.
    assert_eq!(links(vec![(key("gc-pause", 1), row("FAILED"))]), expected);
    // Kept as a test, it has moved.
    gone("smaller.jsonl");
    assert_eq!(links(vec![]), ["gc-pause-1.jsonl"]);
    gone("gc-pause-1.jsonl");
    assert_eq!(links(vec![]), [""; 0]);
}

#[test]
fn a_file_that_is_not_ours_is_left_as_it_is() {
    let (dir, _) = kept("not-ours", "");
    let theirs = "<h1>mine</h1>";
    fs::write(dir.join("index.html"), theirs).expect("room");
    for _ in 0..2 {
        let path = index::write(&dir, [(key("gc-pause", 1), row("ok"))]).expect("room");
        assert_eq!(path, dir.join("index.2.html"));
    }
    assert_eq!(
        fs::read_to_string(dir.join("index.html")).expect("there"),
        theirs
    );
}

#[test]
fn a_name_in_the_index_is_text() {
    const EVIL: &str = "\"></script><script>alert(1)</script>";
    let (dir, _) = kept("evil", "");
    let mut row = row(EVIL);
    row.seen = vec![EVIL.to_owned()];
    row.kept[0].file = EVIL.to_owned();
    row.kept[0].page = Some(EVIL.to_owned());
    row.kept[0].shrunk = Some(EVIL.to_owned());
    // To a file system, a path like any other.
    fs::create_dir_all(dir.join(EVIL)).expect("room");
    let path = index::write(&dir, [(key(EVIL, 1), row)]).expect("room");
    let page = fs::read_to_string(&path).expect("written");
    assert_eq!(page.matches("<script").count(), 1, "the rows: {page}");
    assert_eq!(page.matches("</script").count(), 1, "{page}");
    assert!(page.contains("script-src 'none'"));
    // And is read back as it was.
    index::write(&dir, []).expect("room");
    assert_eq!(fs::read_to_string(&path).expect("written"), page);
}

#[test]
fn a_run_leaves_an_index_that_links_what_it_kept() {
    let (dir, _) = kept("run", "");
    let short = Workload {
        chaos: SECOND,
        calm: SECOND,
        seeds: 2,
        ..Workload::named("short")
    };
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    let suite = Suite {
        workloads: vec![short],
        systems,
    };
    let out = dir.join("runs");
    let args = [
        "deposed",
        "run",
        "--keep",
        "--out",
        out.to_str().expect("UTF-8"),
    ];
    let code = cli::run(&suite, args, &mut Vec::new(), &mut Vec::new());
    assert_eq!(code, 0);
    let page = fs::read_to_string(out.join("index.html")).expect("left");
    for seed in 0..2 {
        let link = format!("href=\"./short-{seed}.jsonl\"");
        assert!(page.contains(&link), "{link}: {page}");
        assert!(out.join(format!("short-{seed}.jsonl")).is_file());
    }
    assert!(
        page.contains("<td>0 to 1</td><td><span class=\"ok\">ok</span>"),
        "{page}"
    );
}

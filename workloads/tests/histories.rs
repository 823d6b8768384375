//! Every history in `histories/` is told in its `README.md`, is judged as is told there,
//! and comes out again byte for byte.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use deposed::{
    checkers::{history::Body, reader},
    kept::{self, Folder, Story},
    run::Header,
    system::{Deposed, System},
};

/// A history is kept to be read.
const MOST_BYTES: u64 = 60_000;

fn histories() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.parent().expect("a workspace").join("histories")
}

#[test]
fn every_kept_history_is_judged_as_told_and_replays() {
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    kept::test(&histories(), &systems);
}

#[test]
fn every_kept_history_can_be_read_by_a_person() {
    let names = Folder::new(&histories()).names().expect("the folder");
    assert!(names.len() >= 12, "{} only", names.len());
    for name in names {
        let file = histories().join(format!("{name}.jsonl"));
        let bytes = file.metadata().expect("it is there").len();
        assert!(bytes <= MOST_BYTES, "{name}: {bytes} bytes; shrink it");
    }
}

/// The runs of a history: its header, and how often each fault struck.
fn run(name: &str) -> (Header, BTreeMap<String, usize>) {
    let path = histories().join(format!("{name}.jsonl"));
    let text = fs::read_to_string(&path).expect("it is there");
    let line = text.lines().next().expect("a header");
    let header: Header = serde_json::from_str(line).expect("a header");
    let faults: Vec<&str> = header
        .schedule
        .iter()
        .map(|entry| entry.fault.name())
        .collect();
    let (_, events) = reader::open(&path).expect("a history");
    let mut struck = BTreeMap::new();
    for event in events {
        if let Body::Nemesis(fault, _) = event.expect("an event").body
            && faults.contains(&fault.as_str())
        {
            *struck.entry(fault.to_string()).or_default() += 1;
        }
    }
    (header, struck)
}

/// Otherwise one sees a defect, and not what a system does about it.
#[test]
fn beside_every_bad_history_is_a_good_one_that_the_same_faults_struck() {
    let readme = fs::read_to_string(histories().join("README.md")).expect("it is told");
    let told = kept::stories(&readme);
    let is_good = |story: &Story| story.verdicts == ["valid"];
    let (good, bad): (Vec<&Story>, Vec<&Story>) = told.iter().partition(|story| is_good(story));
    let good: Vec<_> = good.iter().map(|story| run(&story.name)).collect();
    for story in bad {
        let (header, struck) = run(&story.name);
        let sound = Header {
            flaw: None,
            ..header
        };
        let name = &story.name;
        let twin = good.iter().find(|(header, _)| *header == sound);
        let (_, again) = twin.unwrap_or_else(|| panic!("{name} has no good one beside it"));
        assert_eq!(*again, struck, "{name}");
    }
}

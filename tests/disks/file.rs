//! Records in a real file.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use deposed::disk::{Batch, Disk, FileDisk, Records};
use futures_util::FutureExt;

/// A folder of the test's own, empty.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("disks-{test}"));
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
    folder
}

fn records(disk: &FileDisk) -> io::Result<Records> {
    disk.records().now_or_never().expect("a file is at hand")
}

fn commit(disk: &FileDisk, changes: &[(&str, Option<&str>)]) {
    let batch: Batch = changes
        .iter()
        .map(|(name, record)| ((*name).to_owned(), record.map(|it| it.as_bytes().to_vec())))
        .collect();
    let committed = disk
        .commit(batch)
        .now_or_never()
        .expect("a file is at hand");
    committed.expect("it is durable");
}

fn kept() -> Records {
    [("a", "record 1"), ("b", "record 2")]
        .map(|(name, record)| (name.to_owned(), record.as_bytes().to_vec()))
        .into()
}

/// A file that holds [`kept`], after some changes.
fn written(folder: &Path) {
    let disk = FileDisk::create(folder).expect("a new folder");
    assert_eq!(records(&disk).expect("it is empty"), Records::new());
    commit(&disk, &[("a", Some("record 0")), ("c", Some("record 3"))]);
    let last = [
        ("a", Some("record 1")),
        ("b", Some("record 2")),
        ("c", None),
    ];
    commit(&disk, &last);
    assert_eq!(
        records(&disk).expect("it is whole"),
        kept(),
        "taken up anew"
    );
}

#[test]
fn a_file_gives_back_what_was_committed() {
    let folder = folder("back");
    written(&folder);
    let again = FileDisk::open(&folder);
    assert_eq!(records(&again).expect("it is whole"), kept());
    let other = records(&FileDisk::open(&folder)).expect_err("it is open already");
    assert!(other.to_string().contains("another process"), "{other}");
}

#[test]
fn a_node_starts_for_the_first_time_once() {
    let folder = folder("once");
    let missing = records(&FileDisk::open(&folder)).expect_err("there is none");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("records.redb' is missing"));
    written(&folder);
    let there = FileDisk::create(&folder).err().expect("there is one");
    assert_eq!(there.kind(), ErrorKind::AlreadyExists);
    assert!(there.to_string().contains("records.redb' is there already"));
}

#[test]
fn a_creation_that_was_cut_short_is_done_again() {
    let folder = folder("again");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("records.redb.new"), b"half of a file").expect("a file");
    written(&folder);
}

/// What each byte's rot comes to: the file is refused in a sentence that names it, or
/// the byte did not matter. Never is anything else read, and nothing panics.
#[test]
fn rot_is_refused_or_does_not_matter() {
    let folder = folder("rot");
    written(&folder);
    let file = folder.join("records.redb");
    let whole = fs::read(&file).expect("the file");
    // Every byte of the header that says something, all that is near a record, and some
    // of the rest, which is mostly redb's map of free pages.
    let mut places: BTreeSet<usize> = (0..whole.len()).step_by(101).collect();
    places.extend((0..4096).filter(|&at| whole[at] != 0));
    let record = b"record ";
    let found = whole.windows(record.len()).enumerate();
    for (at, _) in found.filter(|(_, bytes)| bytes == record) {
        places.extend(at.saturating_sub(64)..at + 64);
    }
    let (mut refused, mut harmless, mut wrong) = (0, 0, Vec::new());
    for &at in &places {
        for flip in [0x01, 0x80] {
            let mut rotten = whole.clone();
            rotten[at] ^= flip;
            fs::write(&file, &rotten).expect("a write");
            match records(&FileDisk::open(&folder)) {
                Ok(found) if found == kept() => harmless += 1,
                Ok(found) => wrong.push((at, flip, found)),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::InvalidData, "byte {at}: {error}");
                    let said = error.to_string();
                    assert!(said.contains("records.redb' is corrupted"), "{said}");
                    refused += 1;
                }
            }
        }
    }
    println!(
        "{} bytes, {} of them flipped: {refused} refused, {harmless} harmless, {} wrong",
        whole.len(),
        places.len(),
        wrong.len()
    );
    assert_eq!(wrong, []);
    assert!(refused > 100);
}

/// The same of a file as a power loss leaves it, which nobody closed: every bit of its
/// header, which says where the last commit is.
#[test]
fn rot_in_the_header_of_a_file_that_was_left_open_never_brings_an_old_commit_back() {
    let folder = folder("left-open");
    let disk = FileDisk::create(&folder).expect("a new folder");
    records(&disk).expect("it is empty");
    for record in ["record 1", "record 2", "record 3"] {
        commit(&disk, &[("a", Some(record))]);
    }
    let whole = fs::read(folder.join("records.redb")).expect("the file");
    drop(disk);
    let file = folder.join("records.redb");
    let mut wrong = Vec::new();
    // Its first part says where things are, the two others seal themselves.
    let flips = |at| if at < 64 { 0..8 } else { 0..1 };
    for at in 0..320 {
        for flip in flips(at).map(|bit| 1 << bit) {
            let mut rotten = whole.clone();
            rotten[at] ^= flip;
            fs::write(&file, &rotten).expect("a write");
            match records(&FileDisk::open(&folder)) {
                Ok(found) if found["a"] == b"record 3" => {}
                Ok(found) => wrong.push((at, flip, found)),
                Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidData, "{at}: {error}"),
            }
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn a_file_that_is_none_of_ours_is_refused() {
    let folder = folder("foreign");
    fs::create_dir_all(&folder).expect("a folder");
    for content in ["", "# notes\n", "{\"deposed\":1}"] {
        fs::write(folder.join("records.redb"), content).expect("a file");
        let error = records(&FileDisk::open(&folder)).expect_err("it is not ours");
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{content:?}: {error}");
        assert!(error.to_string().contains("is corrupted"), "{error}");
    }
}

/// A server asks for its records again after an error of its disk. A file that is gone by
/// then held tokens that were granted.
#[test]
fn a_file_that_vanishes_is_not_made_anew() {
    let folder = folder("vanishes");
    let disk = FileDisk::create(&folder).expect("a new folder");
    records(&disk).expect("it is empty");
    commit(&disk, &[("a", Some("record 1"))]);
    fs::remove_file(folder.join("records.redb")).expect("the file is there");
    let gone = records(&disk).expect_err("what was granted is not known any more");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    assert!(!folder.join("records.redb").exists());
}

#[test]
fn an_operator_declares_a_copy_old_with_a_floor() {
    let folder = folder("declared");
    written(&folder);
    let disk = FileDisk::open(&folder);
    let declared = deposed::disk::declare_restored(&disk, 40).now_or_never();
    declared.expect("a file is at hand").expect("it is durable");
    let found = records(&disk).expect("it is whole");
    assert_eq!(found["restored"], br#"{"floor":40}"#);
    assert_eq!(found["a"], b"record 1");
}

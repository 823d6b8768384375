//! Every history in `histories/` is told in its `README.md`, is judged as is told there,
//! and comes out again byte for byte.

use std::{path::PathBuf, sync::Arc};

use deposed::{
    kept::{self, Folder},
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

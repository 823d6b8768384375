//! A crate that knows nothing but `deposed`'s public API has a suite of its own: its
//! system is run, recorded, judged and convicted through the same command line.

use std::{path::Path, process::Command};

#[test]
fn a_suite_of_somebody_elses_gets_the_whole_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    // Left by an earlier run of this test.
    let _ = std::fs::remove_dir_all(&kept);
    let ran = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--offline", "-p", "outside"])
        .args(["--", "run", "nightly-job", "--out"])
        .arg(&kept)
        .current_dir(root)
        .output()
        .expect("cargo starts");
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert_eq!(ran.status.code(), Some(1), "{out}\n{err}");
    assert!(out.contains("FAILED  nightly-job"), "{out}");
    assert!(out.contains("zombie-write: "), "{out}");
    for check in ["token-monotonicity", "storage-safety", "election-barrier"] {
        assert!(
            out.contains(&format!("{check} not claimed: no ")),
            "{check}: {out}"
        );
    }
}

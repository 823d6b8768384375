//! Rules of the house that no compiler keeps.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below a folder, with its text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![root().join(folder)];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                sources.push((path, text));
            }
        }
    }
    assert!(
        !sources.is_empty(),
        "{folder} has no sources: the rule looks at nothing"
    );
    sources
}

fn manifest(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("a manifest")
}

/// An unbiased select polls its branches in random order.
#[test]
fn every_select_is_biased() {
    let mut selects = 0;
    for (path, text) in sources("src").into_iter().chain(sources("workloads")) {
        for (at, _) in text.match_indices("select! {") {
            selects += 1;
            let body = text[at + "select! {".len()..].trim_start();
            let line = text[..at].lines().count();
            assert!(
                body.starts_with("biased;"),
                "{}:{line}: put `biased;` first",
                path.display()
            );
        }
    }
    assert!(selects > 5, "the rule finds the selects");
}

/// checkers <- src <- workloads.
#[test]
fn the_crates_point_one_way() {
    let checkers = manifest("checkers/Cargo.toml");
    for above in ["tokio", "turmoil", "deposed.workspace", "deposed-workloads"] {
        assert!(!checkers.contains(above), "checkers must not know {above}");
    }
    let dependencies = manifest("Cargo.toml");
    let dependencies = dependencies
        .split("[package]")
        .nth(1)
        .expect("the root package");
    assert!(
        !dependencies.contains("deposed-workloads"),
        "src must not know workloads"
    );
}

/// The cores are pure: no clock, no network, nothing to await.
#[test]
fn the_cores_are_pure() {
    for (path, text) in sources("src/lease")
        .into_iter()
        .chain(sources("src/storage"))
    {
        for impure in [
            "tokio",
            "async ",
            ".await",
            "std::time",
            "std::net",
            "std::fs",
            "rand::",
        ] {
            assert!(!text.contains(impure), "{} has {impure}", path.display());
        }
    }
}

/// What knows the simulator is in one place, so that another world can take its place.
#[test]
fn only_the_world_knows_turmoil() {
    for (path, text) in sources("src") {
        let inside = path.strip_prefix(root().join("src")).expect("below src");
        let knows = ["world", "net/sim.rs", "disk/sim", "cli/trace.rs"]
            .iter()
            .any(|place| inside.to_string_lossy().starts_with(place));
        assert!(
            knows || !text.contains("turmoil::"),
            "{} knows turmoil",
            path.display()
        );
    }
}

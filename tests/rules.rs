//! Rules of the house that no compiler keeps.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below a folder, with its text.
#[expect(
    clippy::disallowed_methods,
    reason = "rules hold of each file by itself"
)]
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![root().join(folder)];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                // What is built there, as by a fuzzer, is somebody else's.
                if !path.ends_with("target") {
                    folders.push(path);
                }
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
    let everywhere = ["src", "checkers", "workloads", "tests"];
    let mut selects = 0;
    for (path, text) in everywhere.into_iter().flat_map(sources) {
        if path.ends_with(file!()) {
            continue;
        }
        let found = selects_of(&text);
        selects += found.len();
        for (line, biased) in found {
            let path = path.display();
            assert!(biased, "{path}:{line}: put `biased;` first");
        }
    }
    assert!(selects > 5, "the rule finds the selects");
}

/// The line of each select in a source, whosever macro it is, and whether it is biased.
fn selects_of(text: &str) -> Vec<(usize, bool)> {
    let selects = text.match_indices("select!");
    let looked = selects.map(|(at, name)| {
        let body = text[at + name.len()..].trim_start();
        let body = body.strip_prefix(['{', '(', '[']).unwrap_or(body);
        let line = text[..at].matches('\n').count() + 1;
        (line, body.trim_start().starts_with("biased;"))
    });
    looked.collect()
}

#[test]
fn a_select_is_found_however_it_is_spaced() {
    for biased in [
        "select! {\n  biased;\n  a = b => {} }",
        "tokio::select!{ biased; a = b => {} }",
        "futures_util::select! ( biased; a = b => {} )",
    ] {
        assert_eq!(selects_of(biased), [(1, true)], "{biased}");
        let random = biased.replace("biased;", "");
        assert_eq!(selects_of(&random), [(1, false)], "{random}");
    }
    assert_eq!(selects_of("\nlet a =\n  select!{ b }"), [(3, false)]);
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

/// Nor does anything below them: who judges a history of their own builds no runtime and no
/// simulator, whatever features and tests they take.
#[test]
fn the_checkers_stand_alone() {
    let lock = manifest("Cargo.lock");
    let below = below(&lock, "deposed-checkers");
    assert!(
        below.contains(&"serde_json"),
        "the rule finds what is below"
    );
    for above in ["tokio", "turmoil", "deposed", "deposed-workloads"] {
        assert!(
            !below.contains(&above),
            "checkers must not bring {above} in"
        );
    }
    assert!(
        self::below(&lock, "deposed").contains(&"tokio"),
        "the rule sees a tokio"
    );
}

/// All that a package depends on, by any way, as the lock file has it.
fn below<'a>(lock: &'a str, package: &'a str) -> Vec<&'a str> {
    let mut found = vec![package];
    let mut at = 0;
    while let Some(package) = found.get(at) {
        let named = format!("\nname = \"{package}\"\n");
        for entry in lock
            .split("[[package]]")
            .filter(|entry| entry.contains(&named))
        {
            let dependencies = entry
                .split_once("dependencies = [")
                .map_or("", |(_, list)| list);
            // Where there are several versions, one is named: "syn 2.0.1".
            let names = dependencies.split('"').skip(1).step_by(2);
            for name in names.filter_map(|name| name.split(' ').next()) {
                if !found.contains(&name) {
                    found.push(name);
                }
            }
        }
        at += 1;
    }
    found.split_off(1)
}

/// A verdict follows from the history alone: nothing that reads one asks for the time, the
/// machine, or chance. (Files are the reader's, the recorder has the clock of the program that
/// it records, and keys are judged on threads of their own, told in the keys' order.)
#[test]
fn the_checkers_are_pure() {
    let proven = |path: &Path| {
        let inside = path.strip_prefix(root().join("checkers"));
        let inside = inside.expect("below checkers");
        let apart = [
            "tests",
            "benches",
            "examples",
            "fuzz",
            "recording.rs",
            "model/keys.rs",
        ];
        apart.iter().any(|place| inside.starts_with(place))
    };
    let sources = sources("checkers").into_iter();
    let mut judged = 0;
    for (path, text) in sources.filter(|(path, _)| !proven(path)) {
        judged += 1;
        for impure in [
            "std::time",
            "std::net",
            "std::thread",
            "std::env",
            "rand::",
            "async ",
        ] {
            assert!(!text.contains(impure), "{} has {impure}", path.display());
        }
    }
    assert!(judged > 10, "the rule finds the checkers");
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
            ".await;",
            ".await?",
            ".await.",
            ".await)",
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

//! Histories that other people recorded, read and judged as they say.
//!
//! `DEPOSED_CORPUS` names a folder with a `MANIFEST.tsv`, whose columns are `file`, …,
//! `verdict` and `kind`. Without it there is nothing to test.

use std::fs;
use std::path::{Path, PathBuf};

use deposed_checkers::history::Kind;
use deposed_checkers::import::{self, Entry, History};

/// A row of the manifest.
struct Row {
    file: String,
    kind: String,
}

fn corpus() -> Option<(PathBuf, Vec<Row>)> {
    let folder = PathBuf::from(std::env::var_os("DEPOSED_CORPUS")?);
    let manifest = fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let mut lines = manifest
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name| header.iter().position(|column| *column == name).unwrap();
    let (file, kind) = (column("file"), column("kind"));
    let rows = lines.map(|fields| Row {
        file: fields[file].to_owned(),
        kind: fields[kind].to_owned(),
    });
    Some((folder, rows.collect()))
}

fn entries(path: &Path) -> Vec<Entry> {
    match import::open(path, None).unwrap_or_else(|error| panic!("{error}")) {
        History::Foreign(entries) => entries
            .map(|entry| entry.unwrap_or_else(|error| panic!("{error}")))
            .collect(),
        History::Deposed(..) => panic!("{}: read as this crate's own", path.display()),
    }
}

/// How many operations a file holds, counted by the words that begin one.
fn operations(path: &Path) -> usize {
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        std::io::Read::read_to_string(
            &mut flate2::bufread::MultiGzDecoder::new(&*bytes),
            &mut text,
        )
        .unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    let text: Vec<&str> = text
        .lines()
        .map(|line| line.split(';').next().unwrap())
        .collect();
    let text = text.join("\n");
    let types = ["invoke", "ok", "fail", "info"];
    let counted = |before: &str, after: &[&str]| -> usize {
        types
            .iter()
            .flat_map(|word| {
                after
                    .iter()
                    .map(move |after| format!("{before}{word}{after}"))
            })
            .map(|word| text.matches(&word).count())
            .sum()
    };
    match path.extension().and_then(|name| name.to_str()) {
        Some("json") => counted("\"type\":\"", &["\""]),
        Some("log") => counted(":", &["\t", " "]),
        _ => counted(":type :", &[",", "}", " "]),
    }
}

#[test]
fn every_operation_of_every_file_is_read() {
    let Some((folder, rows)) = corpus() else {
        return;
    };
    assert!(!rows.is_empty());
    for row in rows {
        let path = folder.join(&row.file);
        let entries = entries(&path);
        assert_eq!(
            entries.len(),
            operations(&path),
            "{} ({})",
            row.file,
            row.kind
        );
        assert!(
            entries.iter().any(|entry| entry.kind == Kind::Invoke),
            "{}",
            row.file
        );
    }
}

//! Histories that other people recorded, read and judged as they say.
//!
//! `DEPOSED_CORPUS` names a folder with a `MANIFEST.tsv`, whose columns are `file`, …,
//! `verdict` and `kind`. Without it there is nothing to test.

use std::fs;
use std::path::{Path, PathBuf};

use deposed_checkers::budget::Budget;
use deposed_checkers::history::Kind;
use deposed_checkers::import::{self, Entry, History};
use deposed_checkers::model::{JudgeError, Model, judge};
use deposed_checkers::verdict::Verdict;

/// A row of the manifest.
struct Row {
    file: String,
    verdict: String,
    kind: String,
}

impl Row {
    /// The model that the kind names; none where it is of none that is judged.
    fn model(&self) -> Option<Model> {
        let kind = self.kind.strip_prefix("knossos/").unwrap_or(&self.kind);
        let operations = kind
            .split_once("f=")
            .map(|(_, operations)| operations.split(','));
        let does = |wanted| {
            operations
                .clone()
                .is_some_and(|mut all| all.any(|f| f == wanted))
        };
        match kind.split([' ', ',']).next().unwrap_or_default() {
            "cas-register" => Some(Model::CasRegister),
            "mutex" => Some(Model::Mutex),
            "kv" => Some(Model::Kv),
            _ if does("cas") && !does("add") => Some(Model::CasRegister),
            _ => None,
        }
    }
}

fn corpus() -> Option<(PathBuf, Vec<Row>)> {
    let folder = PathBuf::from(std::env::var_os("DEPOSED_CORPUS")?);
    let manifest = fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let mut lines = manifest
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name| header.iter().position(|column| *column == name).unwrap();
    let (file, verdict, kind) = (column("file"), column("verdict"), column("kind"));
    let rows = lines.map(|fields| Row {
        file: fields[file].to_owned(),
        verdict: fields[verdict].to_owned(),
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

#[test]
fn every_file_of_a_kind_that_is_judged_has_the_verdict_that_is_stated() {
    let Some((folder, rows)) = corpus() else {
        return;
    };
    let (mut judged, mut unsupported) = (0, Vec::new());
    for row in rows {
        let entries = entries(&folder.join(&row.file));
        let count = entries.len();
        let tells = entries.iter().any(|entry| {
            entry.kind == Kind::Ok && ["read", "cas", "get", "acquire"].contains(&&*entry.f)
        });
        let found = judge(
            entries.into_iter().map(Ok::<_, String>),
            None,
            Budget::default(),
        );
        let Some(model) = row.model() else {
            // What no model knows is refused by name, and never judged as something else.
            match found {
                Err(JudgeError::Misfit { why, .. }) => {
                    unsupported.push(format!("{} ({}): {why}", row.file, row.kind));
                }
                other => panic!("{} ({}): {other:?}", row.file, row.kind),
            }
            continue;
        };
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", row.file));
        // A register that is never swapped is both.
        let model_fits =
            found.model == model || (found.model, model) == (Model::Register, Model::CasRegister);
        assert!(model_fits, "{}: {} and not {model}", row.file, found.model);
        assert!(
            found.calls > 0 && found.calls < count as u64,
            "{}",
            row.file
        );
        let check = model.check().unwrap();
        let said = match found.verdicts.of(check) {
            Some(Verdict::Valid) => "valid",
            // Nothing was found in it that could be wrong: that counts as valid.
            Some(Verdict::NotClaimed(_)) if !tells => "valid",
            Some(Verdict::Violated(_)) => "invalid",
            other => panic!("{}: {other:?}", row.file),
        };
        assert_eq!(said, row.verdict, "{} ({})", row.file, row.kind);
        if let (Model::Mutex, Some(Verdict::Violated(evidence))) = (model, found.verdicts.of(check))
        {
            // Two acquires, and the release that failed.
            assert!(evidence.events.len() <= 6, "{}: {evidence:?}", row.file);
        }
        judged += 1;
    }
    println!(
        "{judged} judged as stated; of kinds that no model knows:\n{}",
        unsupported.join("\n")
    );
    assert!(judged > 0);
}

//! Where results are kept while a sweep runs: a CSV, its plan in the first line, one row a
//! run, in the order of the plan. What is in it is done and is not run again.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use deposed_checkers::history::Nanos;
use serde::{Deserialize, Serialize};

use super::{
    measures::{Measures, Spells},
    plan::Plan,
};

/// The journal's name in a sweep's folder.
pub const FILE: &str = "runs.csv";

/// How a run was judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Nothing was violated.
    #[default]
    Valid,
    /// A check was violated, or the run was defective.
    Violated,
    /// A check was undecided.
    Unknown,
}

/// A run's line. Durations are ns of true time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of `Measures`")]
pub struct Row {
    pub cell: usize,
    pub seed: u64,
    pub standing: Standing,
    pub simulated: Nanos,
    pub led: Nanos,
    pub serving: Nanos,
    pub pauses: u64,
    pub crashes: u64,
    pub false_by_pause: u64,
    pub false_unprovoked: u64,
    pub renewals: u64,
    pub down_at_start: Nanos,
    pub leaderless_at_start: Nanos,
    #[serde(with = "spaced")]
    pub down_by_crash: Vec<Nanos>,
    #[serde(with = "spaced")]
    pub down_by_pause: Vec<Nanos>,
    #[serde(with = "spaced")]
    pub down_unprovoked: Vec<Nanos>,
    #[serde(with = "spaced")]
    pub leaderless_by_crash: Vec<Nanos>,
    #[serde(with = "spaced")]
    pub leaderless_by_pause: Vec<Nanos>,
    #[serde(with = "spaced")]
    pub leaderless_unprovoked: Vec<Nanos>,
}

impl Row {
    /// What a run of a cell came to.
    pub fn of(cell: usize, seed: u64, standing: Standing, measures: Measures) -> Self {
        let Measures {
            simulated,
            led,
            serving,
            pauses,
            crashes,
            false_by_pause,
            false_unprovoked,
            renewals,
            down,
            leaderless,
        } = measures;
        Self {
            cell,
            seed,
            standing,
            simulated,
            led,
            serving,
            pauses,
            crashes,
            false_by_pause,
            false_unprovoked,
            renewals,
            down_at_start: down.at_start,
            leaderless_at_start: leaderless.at_start,
            down_by_crash: down.by_crash,
            down_by_pause: down.by_pause,
            down_unprovoked: down.unprovoked,
            leaderless_by_crash: leaderless.by_crash,
            leaderless_by_pause: leaderless.by_pause,
            leaderless_unprovoked: leaderless.unprovoked,
        }
    }

    /// The measures in it.
    pub fn measures(&self) -> Measures {
        Measures {
            simulated: self.simulated,
            led: self.led,
            serving: self.serving,
            pauses: self.pauses,
            crashes: self.crashes,
            false_by_pause: self.false_by_pause,
            false_unprovoked: self.false_unprovoked,
            renewals: self.renewals,
            down: Spells {
                at_start: self.down_at_start,
                by_crash: self.down_by_crash.clone(),
                by_pause: self.down_by_pause.clone(),
                unprovoked: self.down_unprovoked.clone(),
            },
            leaderless: Spells {
                at_start: self.leaderless_at_start,
                by_crash: self.leaderless_by_crash.clone(),
                by_pause: self.leaderless_by_pause.clone(),
                unprovoked: self.leaderless_unprovoked.clone(),
            },
        }
    }
}

/// Numbers in one field, a space between them.
mod spaced {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(numbers: &[u64], to: S) -> Result<S::Ok, S::Error> {
        let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
        to.serialize_str(&words.join(" "))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
        let text = String::deserialize(from)?;
        let words = text.split_whitespace().map(str::parse);
        words.collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// The journal of a sweep that runs. Held by one process at a time.
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Makes the folder and a journal in it.
    ///
    /// # Errors
    /// The folder exists, or cannot be made or written to.
    pub fn begin(folder: &Path, plan: &Plan) -> Result<Self, String> {
        let path = folder.join(FILE);
        if let Some(above) = folder.parent() {
            fs::create_dir_all(above).map_err(|error| cannot_make(folder, &error))?;
        }
        match fs::create_dir(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !folder.is_dir() => {
                return Err(format!(
                    "'{}' is no folder: name another with --out",
                    folder.display()
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(format!(
                    "the folder '{}' exists: go on with the sweep in it with --resume, or name \
                     another with --out",
                    folder.display()
                ));
            }
            Err(error) => return Err(cannot_make(folder, &error)),
        }
        let file = open(&path, true)?;
        let mut journal = Self { file, path };
        journal.add(head(plan)?.as_bytes())?;
        Ok(journal)
    }

    /// Opens the journal of a sweep that was interrupted, with what is done. A last line
    /// that was cut short is dropped.
    ///
    /// # Errors
    /// There is none, it is of another plan, or it was tampered with.
    pub fn resume(folder: &Path, plan: &Plan) -> Result<(Self, Vec<Row>), String> {
        let path = folder.join(FILE);
        if !path.is_file() {
            return Err(format!(
                "there is no sweep in '{}' to go on with: leave --resume out to begin one",
                folder.display()
            ));
        }
        let mut file = open(&path, false)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .map_err(|error| format!("'{}' cannot be read: {error}", path.display()))?;
        let head = head(plan)?;
        let mut journal = Self { file, path };
        // It was cut short before its first row.
        if text.len() < head.len() && head.as_bytes().starts_with(&text) {
            journal.cut(0)?;
            journal.add(head.as_bytes())?;
            return Ok((journal, Vec::new()));
        }
        let Some(rows) = text.strip_prefix(head.as_bytes()) else {
            return Err(journal.foreign(&text));
        };
        let whole = rows
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        if whole < rows.len() {
            journal.cut((head.len() + whole) as u64)?;
        }
        let rows = journal.rows(&rows[..whole], plan)?;
        Ok((journal, rows))
    }

    /// Adds a run.
    ///
    /// # Errors
    /// It cannot be written; what was there is whole.
    pub fn append(&mut self, row: &Row) -> Result<(), String> {
        let line = lines(row, false)?;
        self.add(line.as_bytes())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.file.write_all(bytes).map_err(|error| {
            format!(
                "'{}' cannot be written: {error}; make room, and go on with --resume",
                self.path.display()
            )
        })
    }

    fn cut(&mut self, length: u64) -> Result<(), String> {
        self.file
            .set_len(length)
            .map_err(|error| format!("'{}' cannot be written: {error}", self.path.display()))
    }

    /// The rows, which must be those of the plan's first runs.
    fn rows(&self, text: &[u8], plan: &Plan) -> Result<Vec<Row>, String> {
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(text);
        let mut planned = plan.runs();
        let mut rows: Vec<Row> = Vec::new();
        for row in reader.into_deserialize() {
            let line = rows.len() + 3;
            let wrong = |what: &str| {
                format!(
                    "line {line} of '{}' {what}: it was not written by this sweep; begin a new \
                     one with --out",
                    self.path.display()
                )
            };
            let row: Row = row.map_err(|_| wrong("is no run"))?;
            let expected = planned.next().map(|(cell, seed)| (cell.place, seed));
            if expected != Some((row.cell, row.seed)) {
                return Err(wrong("is not the run that is due there"));
            }
            rows.push(row);
        }
        Ok(rows)
    }

    fn foreign(&self, text: &[u8]) -> String {
        let path = self.path.display();
        match text.starts_with(PLAN.as_bytes()) {
            true => format!(
                "'{path}' is of a sweep with another plan: give the options that it was begun \
                 with, or name another folder with --out"
            ),
            false => format!("'{path}' is no journal of a sweep; name another folder with --out"),
        }
    }
}

fn cannot_make(folder: &Path, error: &io::Error) -> String {
    format!(
        "the folder '{}' cannot be made: {error}; name another with --out",
        folder.display()
    )
}

/// For reading and appending, by this process alone.
fn open(path: &Path, new: bool) -> Result<File, String> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(new)
        .open(path)
        .map_err(|error| {
            format!(
                "'{}' cannot be written: {error}; name another folder with --out",
                path.display()
            )
        })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(format!(
            "another sweep is writing to '{}': wait for it, or name another folder with --out",
            path.display()
        )),
        // Some file systems have no locks.
        Err(fs::TryLockError::Error(_)) => Ok(file),
    }
}

/// What comes before the plan.
const PLAN: &str = "# ";

/// The plan and the names of the columns.
fn head(plan: &Plan) -> Result<String, String> {
    let plan = serde_json::to_string(plan).map_err(|error| error.to_string())?;
    let columns = lines(&Row::default(), true)?;
    let columns = columns.lines().next().unwrap_or_default();
    Ok(format!("{PLAN}{plan}\n{columns}\n"))
}

fn lines(row: &Row, with_names: bool) -> Result<String, String> {
    let mut writer = csv::WriterBuilder::new()
        .has_headers(with_names)
        .from_writer(Vec::new());
    writer.serialize(row).map_err(|error| error.to_string())?;
    let bytes = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

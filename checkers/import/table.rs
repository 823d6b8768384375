//! Operations as rows of a table: CSV with a header.

use std::io::Read;

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use super::{
    Place, Problem, Value, edn,
    fault::Fault,
    operation::{Operation, kind, unasked},
    rows::{Misplaced, Rows, Wrong},
};
use crate::history::{Name, Nanos};
use crate::units::a;

/// The columns, of which `process`, `type` and `f` must be there.
const COLUMNS: [&str; 8] = [
    "time", "process", "type", "f", "token", "key", "value", "error",
];

/// What a first row may be.
const HEADER: &str = "time,process,type,f,token,key,value";

/// A stream of rows.
pub(super) struct Table<R> {
    rows: Reader<Rows<R>>,
    /// Where each of [`COLUMNS`] stands.
    columns: Option<[Option<usize>; COLUMNS.len()]>,
    row: ByteRecord,
}

impl<R: Read> Table<R> {
    pub(super) fn new(input: R) -> Self {
        Table {
            rows: ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(Rows::new(input)),
            columns: None,
            row: ByteRecord::new(),
        }
    }

    /// The next operation.
    pub(super) fn next(&mut self) -> Result<Option<Operation>, Fault> {
        if self.columns.is_none() {
            if !self.read()? {
                return Ok(None);
            }
            self.columns = Some(self.header()?);
        }
        match self.read()? {
            true => self.operation().map(Some),
            false => Ok(None),
        }
    }

    fn read(&mut self) -> Result<bool, Fault> {
        self.rows.get_mut().begin();
        let line = self.rows.position().line();
        let read = self.rows.read_byte_record(&mut self.row);
        let read = read.map_err(|error| {
            let place = Place { line, column: 1 };
            match error.into_kind() {
                ErrorKind::Io(error) => match error.downcast::<Misplaced>() {
                    Ok(Misplaced(_, Wrong::TooLong)) => Fault::at(place, Problem::TooLong),
                    Ok(Misplaced(place, Wrong::Torn)) => Fault::at(place, Problem::TornLine),
                    Ok(Misplaced(place, wrong)) => Fault::at(place, syntax(wrong.to_string())),
                    Err(error) => Fault::at(place, Problem::of_io(error)),
                },
                _ => Fault::at(place, syntax("the row cannot be read")),
            }
        })?;
        if let Some(field) = self.row.iter().position(|field| field.contains(&0)) {
            return Err(Fault::at(self.place(field), Problem::Nul));
        }
        Ok(read)
    }

    /// Where a field begins; quotes are counted as they must stand.
    fn place(&self, field: usize) -> Place {
        let line = self.row.position().map_or(1, csv::Position::line);
        let width = |bytes: &[u8]| {
            let quotes = bytes.iter().filter(|byte| **byte == b'"').count();
            let quoted = bytes
                .iter()
                .any(|byte| matches!(byte, b'"' | b',' | b'\n' | b'\r'));
            String::from_utf8_lossy(bytes).chars().count() + quotes + 2 * usize::from(quoted) + 1
        };
        let before: usize = self.row.iter().take(field).map(width).sum();
        Place {
            line,
            column: 1 + before as u64,
        }
    }

    fn header(&self) -> Result<[Option<usize>; COLUMNS.len()], Fault> {
        let first = self.row.get(0).unwrap_or_default();
        let other = match first.first() {
            Some(b'#') => Some("a table has no comments: take this line out"),
            // The whole row is one cell then.
            _ if first.contains(&b';') => Some("its cells are parted by ';': part them by commas"),
            _ if first.contains(&b'\t') => {
                Some("its cells are parted by tabs: part them by commas")
            }
            _ => None,
        };
        if let Some(what) = other {
            let what = format!("{what}; the first row is a header like {HEADER}");
            return Err(Fault::at(self.place(0), syntax(what)));
        }
        let mut columns = [None; COLUMNS.len()];
        for (at, name) in self.row.iter().enumerate() {
            let name = std::str::from_utf8(name)
                .map_err(|_| Fault::at(self.place(at), Problem::NotUtf8))?;
            let is_it = |column: &&str| column.eq_ignore_ascii_case(name.trim());
            let known = COLUMNS.iter().position(is_it);
            match known.map(|known| &mut columns[known]) {
                Some(Some(_)) => {
                    let what = format!("the column {} stands twice", name.trim());
                    return Err(Fault::at(self.place(at), syntax(what)));
                }
                Some(free) => *free = Some(at),
                // Passed over, a misspelt value would be nil in every row.
                None => return Err(Fault::at(self.place(at), syntax(unknown(name.trim())))),
            }
        }
        for needed in ["process", "type", "f"] {
            let found = COLUMNS.iter().position(|column| *column == needed);
            if found.is_some_and(|found| columns[found].is_none()) {
                let what =
                    format!("the first row names no column {needed}: it is a header like {HEADER}");
                return Err(Fault::at(self.place(0), syntax(what)));
            }
        }
        Ok(columns)
    }

    fn operation(&self) -> Result<Operation, Fault> {
        let place = self.place(0);
        let columns = self.columns.unwrap_or_default();
        let [time, process, type_word, f, token, key, value, error] = columns;
        let width = columns.into_iter().flatten().count();
        if self.row.len() != width {
            let (few, at) = match self.row.len() < width {
                true => ("few", place),
                false => ("many", self.place(width)),
            };
            let what = format!(
                "the row has {} fields, too {few} for the header, which has {width}",
                self.row.len()
            );
            return Err(Fault::at(at, syntax(what)));
        }
        let at =
            |column: Option<usize>, problem| Fault::at(self.place(column.unwrap_or(0)), problem);
        let text = |column: Option<usize>| {
            let field = column
                .and_then(|column| self.row.get(column))
                .unwrap_or_default();
            let text = std::str::from_utf8(field).map_err(|_| at(column, Problem::NotUtf8))?;
            Ok(text.trim())
        };
        let named = |name: &'static str, column| {
            let text: &str = text(column)?;
            match text.trim_start_matches(':') {
                "" => Err(at(
                    column,
                    Problem::field(name, "empty; every operation has one"),
                )),
                name => Ok(Name::from(name)),
            }
        };
        let optional = |column| {
            let text: &str = text(column)?;
            Ok((!text.is_empty()).then(|| cell(text)))
        };
        let nanos = match text(time)? {
            "" | "-1" => None,
            digits => Some(digits.parse().map_err(|_| {
                let what = match digits.bytes().all(|digit| digit.is_ascii_digit()) {
                    true => format!("{digits} is too large: the latest time is {}", Nanos::MAX),
                    false => format!(
                        "{digits} is no time: they are whole nanoseconds, or empty for none"
                    ),
                };
                at(time, Problem::field("time", what))
            })?),
        };
        let kind = kind(&named("type", type_word)?).map_err(|problem| at(type_word, problem))?;
        let name = named("f", f)?;
        if value.is_none() && unasked(kind, &name) {
            let what = format!(
                "the header has no such column, and {} has a value",
                a(&name)
            );
            return Err(at(f, Problem::field("value", what)));
        }
        Ok(Operation {
            index: None,
            time: nanos,
            process: named("process", process)?,
            kind,
            f: name,
            key: optional(key)?,
            token: optional(token)?,
            value: optional(value)?.unwrap_or(Value::Nil),
            error: optional(error)?,
            place,
        })
    }
}

/// A cell's value: what is one form of EDN is that, and anything else is text. So `7` is a
/// number, `[0 1]` a list, `nil` nothing, and `a b` a text of three characters.
fn cell(text: &str) -> Value {
    let place = Place { line: 1, column: 1 };
    match edn::forms(text, place).as_deref() {
        Ok([one]) => match one {
            // A bare word is a text: people do not write quotes in tables.
            Value::Word(_) if !text.starts_with(':') => Value::Text(text.into()),
            Value::List(_) | Value::Set(_) | Value::Map(_) | Value::Text(_) => one.clone(),
            // `7 ; seven` is no number, and `+7` not as it would be printed.
            other => match other.to_string() == text {
                true => other.clone(),
                false => Value::Text(text.into()),
            },
        },
        _ => Value::Text(text.into()),
    }
}

/// What is said of a column that is not known, and which may be meant.
fn unknown(name: &str) -> String {
    let small = name.to_ascii_lowercase();
    let is_near = |column: &str| {
        !small.is_empty() && column.starts_with(&small)
            || column.len() > 1 && small.starts_with(column)
    };
    let mut near = COLUMNS.into_iter().filter(|column| is_near(column));
    let hint = match (near.next(), near.next()) {
        (Some(column), None) => format!("is {column} meant? Name it so, or take the column out"),
        _ => "take the column out".to_owned(),
    };
    format!(
        "the column '{name}' is none of {}: {hint}",
        COLUMNS.join(", ")
    )
}

fn syntax(what: impl Into<String>) -> Problem {
    Problem::Syntax {
        format: "CSV",
        what: what.into(),
    }
}

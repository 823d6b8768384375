//! Histories that other tools recorded, in the tools' own formats.
//!
//! Whatever the format, a history is a stream of [`Entry`]s: who, what kind of line,
//! which operation, which value. What the operations mean is for a [model](crate::model)
//! to say; [`lease`] makes the events of this crate of them.
//!
//! ```
//! use deposed_checkers::history::Kind;
//! use deposed_checkers::import::{Entries, Format, Value};
//!
//! let history = r#"
//! [{:process 0, :type :invoke, :f :cas, :value [0 1]}
//!  {:process 0, :type :info,   :f :cas, :value [0 1], :error :timeout}]
//! "#;
//! let entries: Vec<_> = Entries::new(Format::Edn, history.as_bytes(), "a.edn").collect::<Result<_, _>>()?;
//! assert_eq!(entries[0].value, Value::List(vec![Value::Int(0), Value::Int(1)]));
//! assert_eq!(entries[1].kind, Kind::Info);
//! assert_eq!(entries[1].place.to_string(), "3:2");
//! # Ok::<(), deposed_checkers::import::ReadError>(())
//! ```
//!
//! Entries come one at a time: memory is bounded by the longest and by the calls that are
//! open, not by the file ([`Format::Etcd`] is the exception, and says why). Nothing is
//! skipped: what cannot be read is an error that names the file, the line and the column.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, Read};
use std::path::Path;
use std::str::FromStr;

use crate::history::{Header, Kind, Name, Nanos};
use crate::reader::{self, Reader};

mod calls;
mod edn;
mod etcd;
mod fault;
mod guess;
mod json;
pub(crate) mod keys;
pub mod lease;
mod log;
mod operation;
mod rows;
mod source;
mod table;
mod value;

pub use fault::{Problem, ReadError};

use fault::Fault;

/// The longest entry that is read, in bytes: 16 MiB.
pub const ENTRY_LIMIT: usize = 16 << 20;
/// How deep the lists, maps and tags of an entry may stand in each other.
pub const DEPTH_LIMIT: usize = 100;

/// One line of a foreign history: a call that begins or completes, or an observation.
///
/// Calls are paired: an `ok` or `fail` has the call of its process before it, with the same
/// `f`; an `info` without one is an observation, as the nemesis makes them. A call that ends
/// in `info` may yet take effect at any later time, though its process may go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The line's own index; where the format has none, the number of entries before it.
    pub index: u64,
    /// Time since the start of the run, in nanoseconds; none where the format keeps no time.
    /// It need not rise from entry to entry: the order is that of the file.
    pub time: Option<Nanos>,
    /// Who did it: `3`, `nemesis`.
    pub process: Name,
    /// What kind of line it is.
    pub kind: Kind,
    /// The operation: `acquire`, `read`, `cas`.
    pub f: Name,
    /// The object, where the format names it apart from the value.
    pub key: Option<Value>,
    /// The fencing token, where the format names it apart from the value.
    pub token: Option<Value>,
    /// What was asked for, or answered.
    pub value: Value,
    /// Why a call failed or is indefinite.
    pub error: Option<Value>,
    /// Where it stands in the file.
    pub place: Place,
}

/// A place in a file, both counted from 1: `12:7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value as EDN and JSON have them. It prints as EDN.
///
/// ```
/// use deposed_checkers::import::Value;
///
/// let cas = Value::List(vec![Value::Int(0), Value::Word("none".into()), Value::Text("a".into())]);
/// assert_eq!(cas.to_string(), r#"[0 :none "a"]"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `nil`, `null`.
    Nil,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// Any other number, as it was written.
    Number(Name),
    /// A string.
    Text(Name),
    /// A keyword or symbol, without its colon.
    Word(Name),
    /// A vector or list.
    List(Vec<Value>),
    /// A set, in the order of the file.
    Set(Vec<Value>),
    /// A map; keys are the text of keywords and strings, and others as they print.
    Map(BTreeMap<Name, Value>),
    /// A tagged value: `#jepsen.history.Op {…}`.
    Tagged(Name, Box<Value>),
}

/// The formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Jepsen's `history.edn`, and what knossos and porcupine read: a vector or list of
    /// maps, or one map after another, with `:process`, `:type`, `:f`, `:value` and, if they
    /// are there, `:time`, `:index`, `:error`, `:key` and `:token`.
    Edn,
    /// The same operations as JSON objects: an array, as elle-cli reads, or one after another.
    Json,
    /// Lines of Jepsen's log: `INFO  jepsen.util - PROCESS TYPE F VALUE`.
    JepsenLog,
    /// A client's `operations.json` of etcd's robustness tests, or the folder that holds a
    /// `client-N` folder for each client. An operation is one line there, with the times of
    /// its call and of its return, so that a report must be put in order: it is held in
    /// memory whole. Reads, writes, deletes and compare-and-swaps by mod revision of a key
    /// become `read`, `write` and `cas`; keys that other operations touch are
    /// [left out](Entries::left_out).
    Etcd,
    /// A table with the header `time,process,type,f,token,key,value`: columns in any order,
    /// all but `process`, `type` and `f` optional, an `error` column if there is one, and no
    /// others. Quotes stand as in RFC 4180, and the last line has an end as the others do.
    Csv,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 5] = [
        Format::Edn,
        Format::Json,
        Format::JepsenLog,
        Format::Etcd,
        Format::Csv,
    ];

    /// The format's name, as `--format` takes it: `jepsen-log`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Edn => "edn",
            Format::Json => "json",
            Format::JepsenLog => "jepsen-log",
            Format::Etcd => "etcd",
            Format::Csv => "csv",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No format of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no format is called '{0}'; the formats are {all}", all = Format::ALL.map(Format::name).join(", "))]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// An iterator over a foreign history's entries. After an error it ends.
pub struct Entries<R> {
    format: Format,
    file: String,
    operations: Operations<R>,
    calls: calls::Calls,
    ended: bool,
}

enum Operations<R> {
    Edn(edn::Edn<Unmarked<R>>),
    Json(json::Json<Unmarked<R>>),
    Log(log::Log<Unmarked<R>>),
    Table(Box<table::Table<Unmarked<R>>>),
    Etcd(etcd::Report<Unmarked<R>>),
}

impl<R: Read> Entries<R> {
    /// Reads text in a format. `file` is the name that errors carry. A byte order mark is
    /// passed over, lines may end in CR LF.
    pub fn new(format: Format, input: R, file: impl Into<String>) -> Self {
        let input = Unmarked {
            input,
            begun: false,
        };
        let operations = match format {
            Format::Edn => Operations::Edn(edn::Edn::new(input)),
            Format::Json => Operations::Json(json::Json::new(input)),
            Format::JepsenLog => Operations::Log(log::Log::new(input)),
            Format::Csv => Operations::Table(Box::new(table::Table::new(input))),
            Format::Etcd => Operations::Etcd(etcd::Report::new(input)),
        };
        Entries {
            format,
            file: file.into(),
            operations,
            calls: calls::Calls::default(),
            ended: false,
        }
    }

    /// The format that is read.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The name that errors carry.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What was not made entries of, a sentence each, known once the first entry was read:
    /// of [`Format::Etcd`] alone.
    pub fn left_out(&self) -> &[String] {
        match &self.operations {
            Operations::Etcd(report) => report.left_out(),
            _ => &[],
        }
    }

    fn entry(&mut self) -> Result<Option<Entry>, Fault> {
        let operation = match &mut self.operations {
            Operations::Edn(edn) => edn.next()?,
            Operations::Json(json) => json.next()?,
            Operations::Log(log) => log.next()?,
            Operations::Table(table) => table.next()?,
            Operations::Etcd(report) => report.next()?,
        };
        operation
            .map(|operation| self.calls.see(operation))
            .transpose()
    }
}

impl<R: Read> Iterator for Entries<R> {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let entry = self.entry();
        self.ended = !matches!(entry, Ok(Some(_)));
        entry.map_err(|fault| fault.named(&self.file)).transpose()
    }
}

/// A history that was opened: this crate's own, or another tool's.
pub enum History<R = Input> {
    /// JSON lines with a header, and what they hold.
    Deposed(Box<Header>, Reader<R>),
    /// Another tool's.
    Foreign(Entries<R>),
}

/// Whatever a history is read from.
pub type Input = Box<dyn BufRead + Send>;

/// Why a history could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It is one of this crate's own, or nothing that is known.
    #[error(transparent)]
    Deposed(#[from] reader::ReadError),
    /// It is another tool's.
    #[error(transparent)]
    Foreign(#[from] ReadError),
}

/// Opens a history: plain or gzipped; `-` is standard input. Where no format is named, the
/// first bytes tell; what they do not tell is read as this crate's own format.
///
/// # Errors
///
/// When the file cannot be opened, or is a history of this crate whose header does not fit.
pub fn open(path: impl AsRef<Path>, format: Option<Format>) -> Result<History, OpenError> {
    let path = path.as_ref();
    let file = path.display().to_string();
    if path.is_dir() {
        let operations = Operations::Etcd(etcd::Report::of_folder(path)?);
        return Ok(History::Foreign(Entries {
            format: Format::Etcd,
            file,
            operations,
            calls: calls::Calls::default(),
            ended: false,
        }));
    }
    let failed = |problem| reader::ReadError {
        file: file.clone(),
        line: 0,
        problem,
    };
    let input = reader::text(path).map_err(failed)?;
    if let Some(format) = format {
        return Ok(History::Foreign(Entries::new(format, input, file)));
    }
    let (guessed, input) =
        guess::guess(input).map_err(|error| failed(reader::Problem::of_io(error)))?;
    let input: Input = Box::new(input);
    told(guessed, input, file)
}

/// The same of a text that is read elsewhere, as one that is still being written. `file` is
/// the name that errors carry. No more is asked for at once than is needed: the first line,
/// or a few, then an entry at a time.
///
/// # Errors
///
/// When it cannot be read, or is a history of this crate whose header does not fit.
pub fn open_text<R: BufRead>(
    input: R,
    file: impl Into<String>,
) -> Result<History<guess::Looked<R>>, OpenError> {
    let file = file.into();
    match guess::guess(input) {
        Ok((guessed, input)) => told(guessed, input, file),
        Err(error) => Err(reader::ReadError {
            file,
            line: 0,
            problem: reader::Problem::of_io(error),
        }
        .into()),
    }
}

/// A text in the format that was told of it.
fn told<R: BufRead>(
    format: Option<Format>,
    input: R,
    file: String,
) -> Result<History<R>, OpenError> {
    match format {
        Some(format) => Ok(History::Foreign(Entries::new(format, input, file))),
        None => {
            let (header, reader) = Reader::new(input, file)?;
            Ok(History::Deposed(Box::new(header), reader))
        }
    }
}

/// A text without its byte order mark.
struct Unmarked<R> {
    input: R,
    begun: bool,
}

impl<R: Read> Read for Unmarked<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.begun || into.len() < 3 {
            return self.input.read(into);
        }
        // The mark may come in pieces.
        let mut read = 0;
        while read < 3 && b"\xEF\xBB\xBF".starts_with(&into[..read]) {
            match self.input.read(&mut into[read..]) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.begun = true;
        if into[..read].starts_with(b"\xEF\xBB\xBF") {
            into.copy_within(3..read, 0);
            read -= 3;
            if read == 0 {
                return self.input.read(into);
            }
        }
        Ok(read)
    }
}

//! What is wrong with a foreign history, where, and what to do about it.

use std::fmt;
use std::io;

use super::{DEPTH_LIMIT, ENTRY_LIMIT, Place};
use crate::units::a;

/// What is wrong with a foreign history, and where.
///
/// ```
/// use deposed_checkers::import::{Entries, Format};
///
/// let torn = "[{:process 0, :type :invoke, :f :read, :value nil}\n {:process 0, :type :o";
/// let error = Entries::new(Format::Edn, torn.as_bytes(), "a.edn").find_map(Result::err).unwrap();
/// assert_eq!(error.place.unwrap().line, 2);
/// assert_eq!(
///     error.to_string(),
///     "a.edn:2:2: the file ends in the middle of the entry that begins here: it was cut off; \
///      copy it again, whole"
/// );
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", At(.file, *.place))]
pub struct ReadError {
    /// The file's name, as it was given.
    pub file: String,
    /// Where; none when it is the file as a whole.
    pub place: Option<Place>,
    /// What is wrong.
    pub problem: Problem,
}

struct At<'a>(&'a str, Option<Place>);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            None => f.write_str(self.0),
            Some(Place { line, column }) => write!(f, "{}:{line}:{column}", self.0),
        }
    }
}

/// What is wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be opened.
    #[error("cannot be opened: {0}; check the path")]
    Open(io::Error),
    /// Reading failed midway, or the compressed data is damaged.
    #[error("cannot be read: {0}; is it a history file, and whole?")]
    Read(io::Error),
    /// A gzipped file that ends early.
    #[error("the compressed file ends early: it was cut off; copy it again, whole")]
    TornGzip,
    /// Bytes that are not UTF-8.
    #[error("not UTF-8: a history is text; is this the right file?")]
    NotUtf8,
    /// NUL bytes, as a crash leaves them in a file that was being written.
    #[error("NUL bytes: the file was damaged, as by a crash while it was written; cut it here")]
    Nul,
    /// An entry over [`ENTRY_LIMIT`].
    #[error(
        "the entry is longer than {ENTRY_LIMIT} bytes: no operation is; is this the right file?"
    )]
    TooLong,
    /// Lists in lists in lists.
    #[error("nested deeper than {DEPTH_LIMIT} levels: no operation is; is this the right file?")]
    TooDeep,
    /// The end of the file inside an entry.
    #[error(
        "the file ends in the middle of the entry that begins here: it was cut off; copy it \
         again, whole"
    )]
    Torn,
    /// A last line without an end, in a format whose values do not say where they end.
    #[error(
        "the last line is torn: it does not end in a line break, and its last value may have been \
         cut off; remove it, or end it with a line break if it is whole"
    )]
    TornLine,
    /// A vector of entries that is never closed.
    #[error("the file ends, and '{0}' is missing: it was cut off; copy it again, whole")]
    Unclosed(char),
    /// Text that is not what the format says.
    #[error("not {format}: {what}")]
    Syntax {
        /// The format, as people call it.
        format: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A field that is missing or does not fit.
    #[error("field '{field}': {what}")]
    Field {
        /// The field's name in the format.
        field: &'static str,
        /// What does not fit.
        what: String,
    },
    /// A whole number that fits no field.
    #[error("the number {0} is past 64 bits: write larger ones as strings")]
    NumberTooLarge(String),
    /// An index that does not rise.
    #[error("index {found} after {before}: indices rise, and none stands twice")]
    Index {
        /// The index before.
        before: u64,
        /// This entry's.
        found: u64,
    },
    /// A call begun while the process's last one goes on.
    #[error(
        "process {process} begins {}, and its {open} of line {line} has not ended: a process \
         does one thing at a time; give each thread a name of its own",
        a(.f)
    )]
    TwoCalls {
        /// Who.
        process: Box<str>,
        /// What is begun.
        f: Box<str>,
        /// What is open.
        open: Box<str>,
        /// Since which line.
        line: u64,
    },
    /// A completion of nothing.
    #[error("process {process} ends {} that it never began: its invoke is missing", a(.f))]
    NoCall {
        /// Who.
        process: Box<str>,
        /// What is ended.
        f: Box<str>,
    },
    /// A completion of something else than was begun.
    #[error("process {process} ends {}, and began {} on line {line}", a(.f), a(.open))]
    OtherCall {
        /// Who.
        process: Box<str>,
        /// What is ended.
        f: Box<str>,
        /// What was begun.
        open: Box<str>,
        /// On which line.
        line: u64,
    },
    /// A completion with another key or value than its call.
    #[error(
        "process {process} ends {}, and began it with {began} on line \
         {line}: an answer repeats what was given, or leaves it out; write it as it was begun",
        a(.ended)
    )]
    OtherValue {
        /// Who.
        process: Box<str>,
        /// What is ended, and how: `write with the value 2`.
        ended: Box<str>,
        /// The key or value that it was begun with.
        began: Box<str>,
        /// On which line.
        line: u64,
    },
}

impl Problem {
    pub(super) fn of_io(error: io::Error) -> Problem {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Problem::TornGzip,
            _ => Problem::Read(error),
        }
    }

    pub(super) fn field(field: &'static str, what: impl Into<String>) -> Problem {
        Problem::Field {
            field,
            what: what.into(),
        }
    }
}

/// A problem and its place, before the file's name is known.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) place: Option<Place>,
    pub(super) problem: Problem,
}

impl Fault {
    pub(super) fn at(place: Place, problem: Problem) -> Fault {
        Fault {
            place: Some(place),
            problem,
        }
    }

    pub(super) fn named(self, file: &str) -> ReadError {
        ReadError {
            file: file.to_owned(),
            place: self.place,
            problem: self.problem,
        }
    }
}

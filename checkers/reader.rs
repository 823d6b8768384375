//! Reads histories: JSON lines, plain or gzipped, one event in memory at a time.
//!
//! Lines that end in CR LF and a byte order mark are read as if they were not
//! there; fields that the format does not know are ignored. Everything else that
//! is wrong is an error that names the file and the line: nothing is skipped.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::budget::Budget;
use crate::history::{Event, F, FORMAT_VERSION, Header};
use crate::line;
use crate::well_formed::{Malformed, Pairing};

/// The longest line that is read, in bytes: 16 MiB.
pub const LINE_LIMIT: usize = 16 << 20;

/// What is wrong with a file, and where.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", Place(.file, *.line))]
pub struct ReadError {
    /// The file's name, as it was given.
    pub file: String,
    /// The line, from 1; 0 when it is the file as a whole.
    pub line: u64,
    /// What is wrong.
    pub problem: Problem,
}

struct Place<'a>(&'a str, u64);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            0 => f.write_str(self.0),
            line => write!(f, "{}:{line}", self.0),
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
    /// No bytes at all.
    #[error("the file is empty: a history begins with a header line")]
    Empty,
    /// Compressed or packed by something else than gzip.
    #[error("packed with {0}: a history is read as text or gzipped; unpack it first")]
    Packed(&'static str),
    /// Text with a mark of two bytes a character.
    #[error("UTF-16: a history is UTF-8; write it so, as with iconv -f UTF-16 -t UTF-8")]
    Utf16,
    /// Bytes that are not UTF-8.
    #[error("not UTF-8: a history is text; is this the right file?")]
    NotUtf8,
    /// NUL bytes, as a crash leaves them in a file that was being written.
    #[error("NUL bytes: the file was damaged, as by a crash while it was written; cut it here")]
    Nul,
    /// A line over [`LINE_LIMIT`].
    #[error("the line is longer than {LINE_LIMIT} bytes: no event is; is this the right file?")]
    LineTooLong,
    /// The first line is no header.
    #[error(
        "not a deposed history: its first line is not a header like {{\"deposed\":1,…}}; is this \
         the right file? Another tool's history is judged by `deposed check`, and by nothing else"
    )]
    NotAHistory,
    /// A header that does not fit.
    #[error("the header does not fit: {0}")]
    Header(String),
    /// A version that this reader does not know.
    #[error(
        "written by a newer version of deposed: format {found}, and this one reads up to \
         {FORMAT_VERSION}; upgrade to read it"
    )]
    Newer {
        /// The file's format version.
        found: u64,
    },
    /// The last line ends in the middle.
    #[error(
        "the last line is torn: the file ends in the middle of it; cut the line off to read the rest"
    )]
    Torn,
    /// A line without anything on it.
    #[error("an empty line: remove it")]
    EmptyLine,
    /// A line that is not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// A number that no u64 holds.
    #[error("the number {0} is past 64 bits: write larger ones as strings")]
    NumberTooLarge(String),
    /// A field of the line that is missing or of the wrong type.
    #[error("not an event: {0}")]
    Field(String),
    /// A call of something that no check knows: of what it did, nothing would be judged.
    #[error(
        "{0} is no call that is known, which are {calls}; what nobody judges is recorded as info",
        calls = F::ALL.map(F::name).join(", ")
    )]
    UnknownCall(String),
    /// A `value` that does not fit its `f`.
    #[error("the value of {f} does not fit: {what}")]
    Value {
        /// The line's `f`.
        f: String,
        /// What does not fit, with the field's name.
        what: String,
    },
    /// An observation whose `type` is not `info`.
    #[error("{0} is an observation: its type is info")]
    ObservationType(&'static str),
    /// A rule of [`well_formed`](crate::well_formed) broken.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// An iterator over a history's events. After an error it ends.
///
/// Where more calls are open at once than the default [`Budget`] allows, a completion
/// without its call is no error any more: no reader could tell it, and a judge of that
/// history is undecided.
pub struct Reader<R> {
    input: R,
    file: String,
    line: u64,
    buffer: Vec<u8>,
    pairing: Pairing<()>,
    /// Calls are still paired with their completions.
    paired: bool,
    ended: bool,
}

/// What was found of a line.
enum Found {
    Nothing,
    /// Without its end of line; false if the file ended instead.
    Line(bool),
}

impl Problem {
    pub(crate) fn of_io(error: io::Error) -> Problem {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Problem::TornGzip,
            _ => Problem::Read(error),
        }
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads the header. `file` is the name that errors carry.
    ///
    /// # Errors
    ///
    /// When the first line is not a header this version reads.
    pub fn new(input: R, file: impl Into<String>) -> Result<(Header, Self), ReadError> {
        let mut reader = Reader {
            input,
            file: file.into(),
            line: 0,
            buffer: Vec::new(),
            pairing: Pairing::new(),
            paired: true,
            ended: false,
        };
        match reader.header() {
            Ok(header) => Ok((header, reader)),
            Err(problem) => Err(reader.error(problem)),
        }
    }

    fn error(&self, problem: Problem) -> ReadError {
        ReadError {
            file: self.file.clone(),
            line: self.line,
            problem,
        }
    }

    /// The next line into `buffer`.
    fn fill(&mut self) -> Result<Found, Problem> {
        self.buffer.clear();
        let limit = LINE_LIMIT as u64 + 2;
        (&mut self.input)
            .take(limit)
            .read_until(b'\n', &mut self.buffer)
            .map_err(Problem::of_io)?;
        if self.buffer.is_empty() {
            return Ok(Found::Nothing);
        }
        self.line += 1;
        let whole = self.buffer.pop_if(|last| *last == b'\n').is_some();
        self.buffer.pop_if(|last| *last == b'\r');
        if self.buffer.len() > LINE_LIMIT {
            return Err(Problem::LineTooLong);
        }
        Ok(Found::Line(whole))
    }

    fn header(&mut self) -> Result<Header, Problem> {
        let whole = match self.fill()? {
            Found::Nothing => return Err(Problem::Empty),
            Found::Line(whole) => whole,
        };
        let bytes = self
            .buffer
            .strip_prefix(b"\xEF\xBB\xBF")
            .unwrap_or(&self.buffer);
        if bytes.is_empty() && !whole {
            return Err(Problem::Empty);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Problem::NotUtf8)?;
        if text.contains('\0') {
            // A tar's first entry has a magic word behind its name.
            let is_tar = text.get(257..262) == Some("ustar");
            return Err(if is_tar {
                Problem::Packed("tar")
            } else {
                Problem::Nul
            });
        }
        // The version alone first: a newer header may have another shape.
        #[derive(Deserialize)]
        struct Version<'a> {
            #[serde(borrow)]
            deposed: &'a RawValue,
        }
        let Ok(version) = serde_json::from_str::<Version<'_>>(text) else {
            let torn = !whole && text.starts_with("{\"deposed\"");
            return Err(if torn {
                Problem::Torn
            } else {
                Problem::NotAHistory
            });
        };
        match version.deposed.get().parse::<u64>() {
            Ok(found) if found > u64::from(FORMAT_VERSION) => return Err(Problem::Newer { found }),
            Ok(1..) => {}
            _ => return Err(Problem::NotAHistory),
        }
        if let Some(number) = line::number_too_large(text) {
            return Err(Problem::NumberTooLarge(number.to_owned()));
        }
        serde_json::from_str(text)
            .map_err(|error| Problem::Header(line::what_is_wrong(text, &error)))
    }

    fn event(&mut self) -> Result<Option<Event>, Problem> {
        let whole = match self.fill()? {
            Found::Nothing => return Ok(None),
            Found::Line(whole) => whole,
        };
        let text = std::str::from_utf8(&self.buffer).map_err(|error| match error.error_len() {
            // Cut in the middle of a character.
            None if !whole => Problem::Torn,
            _ => Problem::NotUtf8,
        })?;
        let event = line::event(text).map_err(|problem| match problem {
            Problem::NotJson(_) if text.contains('\0') => Problem::Nul,
            Problem::NotJson(_) if text.trim().is_empty() => Problem::EmptyLine,
            Problem::NotJson(_) if !whole => Problem::Torn,
            problem => problem,
        })?;
        match self.paired {
            true => drop(self.pairing.see(&event, |_| ())?),
            false => self.pairing.in_order(&event)?,
        }
        let remembered = self.pairing.remembered();
        if self.paired && remembered.beyond(Budget::default()).is_some() {
            self.paired = false;
            self.pairing.forget();
        }
        Ok(Some(event))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        match self.event() {
            Ok(Some(event)) => Some(Ok(event)),
            Ok(None) => {
                self.ended = true;
                None
            }
            Err(problem) => {
                self.ended = true;
                Some(Err(self.error(problem)))
            }
        }
    }
}

/// Opens a history: plain or gzipped, told apart by its first bytes; `-` is
/// standard input.
///
/// # Errors
///
/// When the file cannot be opened, or its first line is not a header.
pub fn open(
    path: impl AsRef<Path>,
) -> Result<(Header, Reader<Box<dyn BufRead + Send>>), ReadError> {
    let path = path.as_ref();
    let file = path.display().to_string();
    match text(path) {
        Ok(input) => Reader::new(input, file),
        Err(problem) => Err(ReadError {
            file,
            line: 0,
            problem,
        }),
    }
}

/// How files begin that are packed by something else than gzip.
const PACKED: [(&[u8], &str); 5] = [
    (b"PK\x03\x04", "zip"),
    (b"\x28\xB5\x2F\xFD", "zstd"),
    (b"\xFD7zXZ", "xz"),
    (b"BZh", "bzip2"),
    (b"7z\xBC\xAF", "7-Zip"),
];
const LONGEST_MAGIC: usize = 5;

/// A file's text, plain or gzipped; `-` is standard input.
pub(crate) fn text(path: &Path) -> Result<Box<dyn BufRead + Send>, Problem> {
    let mut input: Box<dyn BufRead + Send> = if path.as_os_str() == "-" {
        Box::new(BufReader::new(io::stdin()))
    } else {
        let opened = File::open(path).map_err(Problem::Open)?;
        Box::new(BufReader::with_capacity(1 << 16, opened))
    };
    let mut magic = Vec::with_capacity(LONGEST_MAGIC);
    let mut read = (&mut input).take(LONGEST_MAGIC as u64);
    read.read_to_end(&mut magic).map_err(Problem::Read)?;
    if let Some((_, packed)) = PACKED.iter().find(|(begins, _)| magic.starts_with(begins)) {
        return Err(Problem::Packed(packed));
    }
    if magic.starts_with(b"\xFF\xFE") || magic.starts_with(b"\xFE\xFF") {
        return Err(Problem::Utf16);
    }
    let gzipped = magic.starts_with(b"\x1F\x8B");
    let input = io::Cursor::new(magic).chain(input);
    Ok(match gzipped {
        true => Box::new(BufReader::with_capacity(
            1 << 16,
            Members(Some(GzDecoder::new(input))),
        )),
        false => Box::new(input),
    })
}

/// The members of a gzipped file, one after another, and nothing else behind them.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let mut input = self.0.take().map(GzDecoder::into_inner);
            let next = match &mut input {
                Some(input) => input.fill_buf()?.first().copied(),
                None => None,
            };
            match next {
                None => {}
                Some(0x1f) => self.0 = input.map(GzDecoder::new),
                Some(_) => {
                    let what = "other bytes follow the end of the compressed data: cut them off";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            }
        }
        Ok(0)
    }
}

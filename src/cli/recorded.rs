//! A history as it was recorded: read line by line, and its header run again.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    rc::Rc,
    sync::Arc,
};

use deposed_checkers::{
    history::{self, Event},
    reader::{Problem, ReadError, Reader},
    writer::event_line,
};
use flate2::bufread::MultiGzDecoder;

use super::{Suite, departure::Departure};
use crate::{
    campaign,
    report::Halt,
    run::{Header, Outcome},
    system::System,
};

/// A run, and the system that it was a run of.
pub(super) struct Recorded<'s> {
    pub(super) file: String,
    pub(super) system: &'s Arc<dyn System>,
    pub(super) outcome: Outcome,
}

/// Runs a history's header. What comes of it must be the history, byte for byte; a header
/// alone has nothing to differ from.
pub(super) fn again<'s>(suite: &'s Suite, path: &Path) -> Result<Recorded<'s>, Halt> {
    let recording = Recording::open(path)?;
    let recorded = run(suite, &recording)?;
    if !recording.is_a_lone_header()
        && let Some(departure) = Departure::of(recording, &recorded.outcome)?
    {
        return Err(Halt::BadInput(departure.sentence(&recorded.file)));
    }
    Ok(recorded)
}

/// Runs a history's header, whatever the history was.
pub(super) fn anew<'s>(suite: &'s Suite, path: &Path) -> Result<Recorded<'s>, Halt> {
    run(suite, &Recording::open(path)?)
}

fn run<'s>(suite: &'s Suite, recording: &Recording) -> Result<Recorded<'s>, Halt> {
    let Recording { file, header, .. } = recording;
    let system = recorder(suite, header, file)?;
    Ok(Recorded {
        file: file.clone(),
        system,
        outcome: campaign::outcome(header, system),
    })
}

/// The system that a header names.
pub(super) fn recorder<'s>(
    suite: &'s Suite,
    header: &Header,
    file: &str,
) -> Result<&'s Arc<dyn System>, Halt> {
    let mut systems = suite.systems.iter();
    let found = systems.find(|system| system.name() == header.system);
    found.ok_or_else(|| {
        let held: Vec<&str> = suite.systems.iter().map(|system| system.name()).collect();
        Halt::BadInput(format!(
            "{file}: a run of the system '{}', and this binary holds {}; replay it with the one \
             that recorded it",
            header.system,
            held.join(", ")
        ))
    })
}

/// The first event that differs; `None` where one side has ended.
pub(super) struct Difference {
    pub(super) index: usize,
    pub(super) before: Option<String>,
    pub(super) now: Option<String>,
}

/// A history that is read event by event, each line as it stands there.
pub(super) struct Recording {
    pub(super) file: String,
    pub(super) header: Header,
    /// The header as the checks read it.
    pub(super) judged: history::Header,
    /// The header's line.
    pub(super) line: Vec<u8>,
    /// The first event, if there is one.
    first: Option<(Event, Vec<u8>)>,
    events: Reader<AsItPasses>,
    passed: Rc<RefCell<Vec<u8>>>,
}

impl Recording {
    /// Opens a history, `-` being standard input, and reads as far as the first event: what
    /// is malformed is bad input, wherever it comes from, and no difference.
    pub(super) fn open(path: &Path) -> Result<Self, Halt> {
        let file = &*path.to_string_lossy();
        let passed = Rc::default();
        let input = input(path, Rc::clone(&passed)).map_err(|error| {
            let (file, line, problem) = (file.to_owned(), 0, Problem::Open(error));
            bad(ReadError {
                file,
                line,
                problem,
            })
        })?;
        let (judged, events) = Reader::new(input, file).map_err(|error| {
            let read = match error.problem {
                // Who means to run it is told what would fit.
                Problem::Header(_) => runnable(&taken(&passed), file).err(),
                _ => None,
            };
            read.unwrap_or_else(|| bad(error))
        })?;
        let line = taken(&passed);
        let header = runnable(&line, file)?;
        let mut recorded = Self {
            file: file.to_owned(),
            header,
            judged,
            line,
            first: None,
            events,
            passed,
        };
        recorded.first = recorded.next_event()?;
        Ok(recorded)
    }

    /// The next event, and its line without its end.
    pub(super) fn next_event(&mut self) -> Result<Option<(Event, Vec<u8>)>, Halt> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let event = self.events.next().transpose().map_err(bad)?;
        Ok(event.map(|event| (event, taken(&self.passed))))
    }

    /// Whether there is a header and no event: nothing to compare with.
    pub(super) fn is_a_lone_header(&self) -> bool {
        self.first.is_none()
    }

    /// The first event in which a run of the header differs from the history.
    pub(super) fn difference(mut self, run: &Outcome) -> Result<Option<Difference>, Halt> {
        for index in 0.. {
            let before = self.next_event()?.map(|(_, line)| line);
            let now = run.history.get(index).map(event_line);
            if before.as_deref() != now.as_deref().map(str::as_bytes) {
                let before = before.map(|line| String::from_utf8_lossy(&line).into_owned());
                return Ok(Some(Difference { index, before, now }));
            }
            if before.is_none() {
                break;
            }
        }
        Ok(None)
    }
}

/// Reads a header line as one that can be run.
fn runnable(line: &[u8], file: &str) -> Result<Header, Halt> {
    let refuse = |why: String| Halt::BadInput(format!("{file}: {why}"));
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let header = Header::read(line).map_err(refuse)?;
    header.validate().map_err(|why| refuse(why.to_string()))?;
    Ok(header)
}

fn bad(error: ReadError) -> Halt {
    Halt::BadInput(error.to_string())
}

/// The line that has passed, without its end.
fn taken(passed: &RefCell<Vec<u8>>) -> Vec<u8> {
    let mut line = passed.take();
    line.pop_if(|last| *last == b'\n');
    line.pop_if(|last| *last == b'\r');
    line
}

/// A file's text, plain or gzipped.
fn input(path: &Path, passed: Rc<RefCell<Vec<u8>>>) -> io::Result<AsItPasses> {
    let mut raw: Box<dyn BufRead> = match path == Path::new("-") {
        true => Box::new(BufReader::new(io::stdin())),
        false => Box::new(BufReader::new(File::open(path)?)),
    };
    let mut magic = Vec::new();
    (&mut raw).take(2).read_to_end(&mut magic)?;
    let gzipped = magic == [0x1f, 0x8b];
    let raw = io::Cursor::new(magic).chain(raw);
    let text: Box<dyn BufRead> = match gzipped {
        true => Box::new(BufReader::new(MultiGzDecoder::new(raw))),
        false => Box::new(raw),
    };
    Ok(AsItPasses { text, passed })
}

/// Keeps what is read of a text: an event does not tell how its line was written.
struct AsItPasses {
    text: Box<dyn BufRead>,
    passed: Rc<RefCell<Vec<u8>>>,
}

impl Read for AsItPasses {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(into)?;
        self.passed.borrow_mut().extend(&into[..read]);
        Ok(read)
    }
}

impl BufRead for AsItPasses {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.text.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        // What is consumed was in the buffer that was last filled: nothing is read here.
        if let Ok(filled) = self.text.fill_buf() {
            let consumed = filled.get(..bytes).unwrap_or(filled);
            self.passed.borrow_mut().extend(consumed);
        }
        self.text.consume(bytes);
    }
}

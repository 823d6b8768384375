//! `deposed replay`: the same header gives the same history, byte for byte.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    rc::Rc,
    sync::Arc,
    thread,
};

use deposed_checkers::{
    reader::{Problem, ReadError, Reader},
    verdict::Verdict,
    writer::event_line,
};
use flate2::bufread::MultiGzDecoder;
use serde_json::Value;
use tracing::subscriber::NoSubscriber;

use super::{Console, Exit, Suite, arguments::ReplayArgs, names};
use crate::{
    campaign,
    report::{
        Halt,
        campaign::{failure, title},
        failure::{next, others},
        shelf::Shelf,
        text::counted,
        words,
    },
    run::{Header, Outcome},
    system::System,
};

pub(super) fn replay(
    suite: &Suite,
    args: &ReplayArgs,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let said = args.what.to_string_lossy();
    let (what, compared) = match args.seed {
        Some(seed) if args.what.is_file() && suite.workload(&said).is_err() => {
            return Err(Halt::BadInput(format!(
                "'{said}' is a history, and holds its own seed: leave the {seed} out"
            )));
        }
        Some(seed) => {
            let workload = suite.workload(&said)?;
            let system = suite.system(args.system.as_deref())?;
            let flaw = args
                .flaw
                .as_deref()
                .map(|name| names::flaw(name, &**system));
            let flaw = flaw.transpose()?;
            if let Some(flaw) = flaw {
                names::showing(flaw, &[workload])?;
            }
            let header = Header::of(workload, seed, system.name(), flaw);
            (title(&header), twice(suite, &header)?)
        }
        None if !args.what.exists() && suite.workload(&said).is_ok() => {
            return Err(Halt::BadInput(format!(
                "to replay the workload '{said}' takes a seed: `deposed replay {said} 0`"
            )));
        }
        None => match Recorded::open(&args.what, &said)? {
            recorded if recorded.first.is_none() => {
                return judge_alone(suite, args, &recorded.header, &said, console);
            }
            recorded => (said.into_owned(), recorded.compare(suite)?),
        },
    };
    console.out.write_all(compared.text(&what).as_bytes())?;
    Ok(match compared.difference {
        None => Exit::Valid,
        Some(_) => Exit::Violated,
    })
}

/// A header without a history, written or edited by hand: there is nothing to compare
/// with. It is run and judged as by `deposed run`, and what is worth a look is kept.
fn judge_alone(
    suite: &Suite,
    args: &ReplayArgs,
    header: &Header,
    file: &str,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let system = recorder(suite, header, file)?;
    if let Some(flaw) = header.flaw.filter(|flaw| !flaw.lives_in(&header.cluster)) {
        console.complain(&format!(
            "{file}: the flaw '{flaw}' cannot show in it: the cluster has nothing that it is a \
             flaw of"
        ));
    }
    let shelf = Shelf::open(&args.out).map_err(Halt::BadInput)?;
    let outcome = campaign::outcome(header, system);
    let verdicts = &outcome.verdicts;
    let unknown = |(_, verdict): &(_, Verdict)| matches!(verdict, Verdict::Unknown(_));
    let exit = match () {
        () if outcome.failed() => Exit::Violated,
        () if verdicts.0.iter().any(unknown) => Exit::Unknown,
        () => Exit::Valid,
    };
    let kept = (args.keep || exit != Exit::Valid)
        .then(|| shelf.keep(header, &outcome.history))
        .transpose();
    let at = kept.as_ref().ok().and_then(Option::as_ref);
    let at = at.map(|path| path.display().to_string());
    let text = if exit == Exit::Violated {
        failure(&outcome, at.as_deref())
    } else {
        let word = if exit == Exit::Valid {
            "valid"
        } else {
            "unknown"
        };
        let events = counted(outcome.history.len() as u64, "event");
        let next = at.map(|file| format!("\n{}", next(&file, true)));
        format!(
            "{word}  {file}  {events}\n\n{}{}",
            others(verdicts),
            next.unwrap_or_default()
        )
    };
    console.out.write_all(text.as_bytes())?;
    kept.map_err(Halt::BadInput)?;
    Ok(exit)
}

/// The system that a header names.
fn recorder<'s>(
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

/// What a comparison found.
struct Compared {
    outcome: Outcome,
    difference: Option<Difference>,
    note: &'static str,
}

/// The first event that differs; `None` where one side has ended.
struct Difference {
    index: usize,
    before: (&'static str, Option<String>),
    now: (&'static str, Option<String>),
}

/// Runs a header twice, on two threads.
#[expect(
    clippy::disallowed_methods,
    reason = "the two runs are told apart by name"
)]
fn twice(suite: &Suite, header: &Header) -> Result<Compared, Halt> {
    let system = suite.system(Some(&header.system))?;
    header
        .validate()
        .map_err(|why| Halt::BadInput(why.to_string()))?;
    let (first, second) = thread::scope(|scope| {
        // The story (`RUST_LOG`) is told once, by the second.
        let silent = || {
            tracing::subscriber::with_default(NoSubscriber::default(), || {
                campaign::outcome(header, system)
            })
        };
        let first = scope.spawn(silent);
        let second = campaign::outcome(header, system);
        (first.join(), second)
    });
    // A run's panics are its defects: they do not come this far.
    let first = first.map_err(|_| Halt::BadInput("a thread of the replay died".to_owned()))?;
    let longest = first.history.len().max(second.history.len());
    let line = |outcome: &Outcome, index| outcome.history.get(index).map(event_line);
    let lines = (0..longest).map(|index| (index, line(&first, index), line(&second, index)));
    let difference = lines
        .into_iter()
        .find(|(_, first, second)| first != second)
        .map(|(index, first, second)| Difference {
            index,
            before: ("first", first),
            now: ("second", second),
        });
    Ok(Compared {
        outcome: second,
        difference,
        note: "",
    })
}

/// A history that is read event by event, each line as it stands there.
struct Recorded {
    file: String,
    header: Header,
    /// The header's line.
    line: Vec<u8>,
    /// The first event's line, if there is one.
    first: Option<Vec<u8>>,
    events: Reader<AsItPasses>,
    passed: Rc<RefCell<Vec<u8>>>,
}

impl Recorded {
    /// Opens a history, `-` being standard input, and reads as far as the first event: what
    /// is malformed is bad input, wherever it comes from, and no difference.
    fn open(path: &Path, file: &str) -> Result<Self, Halt> {
        let passed = Rc::default();
        let input = input(path, Rc::clone(&passed)).map_err(|error| {
            let (file, line, problem) = (file.to_owned(), 0, Problem::Open(error));
            bad(ReadError {
                file,
                line,
                problem,
            })
        })?;
        let (_, events) = Reader::new(input, file).map_err(|error| {
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
            line,
            first: None,
            events,
            passed,
        };
        recorded.first = recorded.next_line()?;
        Ok(recorded)
    }

    /// The next event's line, without its end.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Halt> {
        let event = self.events.next().transpose().map_err(bad)?;
        Ok(event.map(|_| taken(&self.passed)))
    }

    /// Runs the header, and compares with the history.
    fn compare(mut self, suite: &Suite) -> Result<Compared, Halt> {
        let system = recorder(suite, &self.header, &self.file)?;
        let outcome = campaign::outcome(&self.header, system);
        let mut before = self.first.take();
        let mut difference = None;
        for index in 0.. {
            let now = outcome.history.get(index).map(event_line);
            if before.as_deref() != now.as_deref().map(str::as_bytes) {
                let before = before.map(|line| String::from_utf8_lossy(&line).into_owned());
                difference = Some(Difference {
                    index,
                    before: ("history", before),
                    now: ("run", now),
                });
                break;
            }
            if before.is_none() {
                break;
            }
            before = self.next_line()?;
        }
        let ours = serde_json::to_vec(&self.header).unwrap_or_default();
        let note = match difference.is_some() || ours == self.line.trim_ascii() {
            true => "",
            false => " (its header is worded otherwise)",
        };
        Ok(Compared {
            outcome,
            difference,
            note,
        })
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

impl Compared {
    fn text(&self, what: &str) -> String {
        let events = counted(self.outcome.history.len() as u64, "event");
        let violated = self.outcome.verdicts.violated();
        let violated = violated.map(|(check, _)| format!(", {check} violated"));
        let violated: String = violated.collect();
        let defects = self.outcome.defects.iter();
        let defects: String = defects
            .map(|defect| format!("  defect: {defect}\n"))
            .collect();
        let Some(difference) = &self.difference else {
            return format!(
                "identical  {what}  {events}{violated}{}\n{defects}",
                self.note
            );
        };
        let side = |(name, line): &(&str, Option<String>)| match line {
            Some(line) => format!("  {name:<7}  {:>9}  {line}\n", time_of(line)),
            None => format!("  {name:<7}  has ended\n"),
        };
        let (before, now) = (side(&difference.before), side(&difference.now));
        format!(
            "differs  {what}  at event {}\n{before}{now}  the run has {events}{violated}\n{defects}",
            difference.index
        )
    }
}

fn time_of(line: &str) -> String {
    let event: Option<Value> = serde_json::from_str(line).ok();
    let time = event.as_ref().and_then(|event| event["time"].as_u64());
    time.map_or_else(|| "?".to_owned(), words::time)
}

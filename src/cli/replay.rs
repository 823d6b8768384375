//! `deposed replay`: the same header gives the same history, byte for byte.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    thread,
};

use deposed_checkers::{
    reader::{self, LINE_LIMIT, Reader},
    writer::event_line,
};
use flate2::bufread::MultiGzDecoder;
use serde_json::Value;
use tracing::subscriber::NoSubscriber;

use super::{Console, Exit, Suite, arguments::ReplayArgs, names};
use crate::{
    campaign,
    fault::reading::schedule,
    report::{Halt, campaign::title, text::counted, words},
    run::{Header, Outcome},
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
            let header = Header::of(workload, seed, system.name(), flaw.transpose()?);
            (title(&header), twice(suite, &header)?)
        }
        None if !args.what.exists() && suite.workload(&said).is_ok() => {
            return Err(Halt::BadInput(format!(
                "to replay the workload '{said}' takes a seed: `deposed replay {said} 0`"
            )));
        }
        None => (said.into_owned(), against(suite, &args.what)?),
    };
    console.out.write_all(compared.text(&what).as_bytes())?;
    Ok(match compared.difference {
        None if compared.alone && compared.outcome.failed() => Exit::Violated,
        None => Exit::Valid,
        Some(_) => Exit::Violated,
    })
}

/// What a comparison found.
struct Compared {
    outcome: Outcome,
    difference: Option<Difference>,
    note: &'static str,
    /// Whether there was nothing to compare with: the run is all there is.
    alone: bool,
}

/// The first event that differs; `None` where one side has ended.
struct Difference {
    index: usize,
    before: (&'static str, Option<String>),
    now: (&'static str, Option<String>),
}

/// Runs a header twice, on two threads.
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
        alone: false,
    })
}

/// Runs a history's header, and compares with the history.
fn against(suite: &Suite, path: &Path) -> Result<Compared, Halt> {
    let file = path.display().to_string();
    let mut lines = lines(path).map_err(|error| {
        Halt::BadInput(format!("{file}: cannot be opened: {error}; check the path"))
    })?;
    let first = lines
        .next()
        .transpose()
        .map_err(|error| unreadable(&file, &error))?;
    let first = first.unwrap_or_default();
    let header = runnable(&first, &file)?;
    let system = suite
        .systems
        .iter()
        .find(|system| system.name() == header.system);
    let Some(system) = system else {
        let held: Vec<&str> = suite.systems.iter().map(|system| system.name()).collect();
        return Err(Halt::BadInput(format!(
            "{file}: a run of the system '{}', and this binary holds {}; replay it with the one \
             that recorded it",
            header.system,
            held.join(", ")
        )));
    };
    header
        .validate()
        .map_err(|why| Halt::BadInput(format!("{file}: {why}")))?;
    let outcome = campaign::outcome(&header, system);
    let mut events = outcome.history.iter();
    for index in 0.. {
        let before = lines
            .next()
            .transpose()
            .map_err(|error| unreadable(&file, &error))?;
        if index == 0 && before.is_none() {
            // A header without a history, written or edited by hand: there is nothing to
            // compare with.
            return Ok(Compared {
                outcome,
                difference: None,
                note: "",
                alone: true,
            });
        }
        let now = events.next().map(event_line);
        if before.as_deref() == now.as_deref().map(str::as_bytes) {
            if before.is_none() {
                break;
            }
            continue;
        }
        readable(path, index)?;
        let before = before.map(|line| String::from_utf8_lossy(&line).into_owned());
        let difference = Difference {
            index,
            before: ("history", before),
            now: ("run", now),
        };
        return Ok(Compared {
            outcome,
            difference: Some(difference),
            note: "",
            alone: false,
        });
    }
    let ours = serde_json::to_vec(&header).unwrap_or_default();
    let note = match ours == first.trim_ascii() {
        true => "",
        false => " (its header is worded otherwise)",
    };
    Ok(Compared {
        outcome,
        difference: None,
        note,
        alone: false,
    })
}

/// Reads a header line as one that can be run.
pub(super) fn runnable(line: &[u8], file: &str) -> Result<Header, Halt> {
    // The reader knows best what is wrong with a first line.
    Reader::new(line, file).map_err(|error| Halt::BadInput(error.to_string()))?;
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let refuse = |why: String| {
        Halt::BadInput(format!(
            "{file}: this history can be checked, not replayed: {why}"
        ))
    };
    let value: Value = serde_json::from_slice(line).map_err(|error| refuse(error.to_string()))?;
    let needed = [
        "workload", "system", "seed", "cluster", "lease", "traffic", "network", "chaos", "calm",
        "schedule",
    ];
    if let Some(missing) = needed.into_iter().find(|field| value.get(field).is_none()) {
        return Err(refuse(format!("its header has no '{missing}'")));
    }
    schedule(&value["schedule"]).map_err(|why| Halt::BadInput(format!("{file}: {why}")))?;
    serde_json::from_slice(line)
        .map_err(|error| refuse(format!("its header does not fit: {error}")))
}

/// A difference in a file that is no history is bad input, not a verdict. (A pipe
/// cannot be read again; there the lines speak for themselves.)
pub(super) fn readable(path: &Path, index: usize) -> Result<(), Halt> {
    if !path.is_file() {
        return Ok(());
    }
    let bad = |error: reader::ReadError| Halt::BadInput(error.to_string());
    let (_, events) = reader::open(path).map_err(bad)?;
    events
        .take(index + 1)
        .try_for_each(|event| event.map(drop))
        .map_err(bad)
}

pub(super) fn unreadable(file: &str, error: &io::Error) -> Halt {
    Halt::BadInput(format!(
        "{file}: cannot be read: {error}; is it a history file, and whole?"
    ))
}

/// A file's lines as bytes, plain or gzipped, without their ends.
pub(super) fn lines(path: &Path) -> io::Result<impl Iterator<Item = io::Result<Vec<u8>>>> {
    let mut raw: Box<dyn BufRead> = match path == Path::new("-") {
        true => Box::new(BufReader::new(io::stdin())),
        false => Box::new(BufReader::new(File::open(path)?)),
    };
    let mut magic = Vec::new();
    (&mut raw).take(2).read_to_end(&mut magic)?;
    let gzipped = magic == [0x1f, 0x8b];
    let raw = io::Cursor::new(magic).chain(raw);
    let plain: Box<dyn BufRead> = match gzipped {
        true => Box::new(BufReader::new(MultiGzDecoder::new(raw))),
        false => Box::new(raw),
    };
    Ok(Lines(plain))
}

/// Lines without their ends, none longer than the reader takes.
struct Lines(Box<dyn BufRead>);

impl Iterator for Lines {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        let limit = LINE_LIMIT as u64 + 1;
        let read = (&mut self.0).take(limit).read_until(b'\n', &mut line);
        match read {
            Err(error) => return Some(Err(error)),
            Ok(0) => return None,
            Ok(read) if read as u64 == limit => {
                let why = format!("a line is longer than {LINE_LIMIT} bytes");
                return Some(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
            }
            Ok(_) => {}
        }
        line.pop_if(|last| *last == b'\n');
        line.pop_if(|last| *last == b'\r');
        Some(Ok(line))
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
            let word = if self.alone { "ran" } else { "identical" };
            return format!("{word}  {what}  {events}{violated}{}\n{defects}", self.note);
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

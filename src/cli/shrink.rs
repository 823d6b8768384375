//! `deposed shrink`: the smallest run that still violates the same check.

use std::{
    io,
    num::NonZero,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use deposed_checkers::verdict::Check;

use super::{Console, Exit, Suite, arguments::ShrinkArgs, names, progress, recorded};
use crate::{
    campaign,
    parallel::all_cores,
    report::{
        Halt,
        shelf::{self, Shelf},
        shrinking,
    },
    run::{Header, Outcome},
    shrink::{End, NotViolated, Shrink, Shrunk, Size},
    system::System,
};

pub(super) fn shrink(
    suite: &Suite,
    args: &ShrinkArgs,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let place = Place::of(&args.history, args.out.as_deref())?;
    let named = args.check.as_deref().map(names::check).transpose()?;
    let recorded = recorded::again(suite, &args.history)?;
    let check = culprit(&recorded.file, &recorded.outcome, named)?;
    // Before a long search is made for nothing.
    let place = place.opened()?;
    let header = &recorded.outcome.header;
    let searching = Searching {
        system: recorded.system,
        jobs: args.jobs,
        within: args.within,
        stop: console.stop,
        progress: console.progress,
    };
    let shrunk = searching.run(header, check);
    let shrunk = shrunk.map_err(|error| Halt::BadInput(format!("{}: {error}", recorded.file)))?;
    let exit = match shrunk.end {
        End::Stopped => Exit::Interrupted,
        End::Smallest | End::OutOfTime => Exit::Valid,
    };
    if shrunk.header == *header {
        let sum = shrinking::sum(header, &shrunk);
        let file = &recorded.file;
        match shrunk.end {
            End::Smallest => writeln!(
                console.out,
                "{file}: nothing smaller violates {check}: {sum}"
            )?,
            // What was not tried may violate it.
            End::OutOfTime | End::Stopped => writeln!(
                console.out,
                "{file}: nothing smaller was found that violates {check}: {sum}"
            )?,
        }
        return Ok(exit);
    }
    let smaller = campaign::outcome(&shrunk.header, recorded.system);
    let written = place.write(&smaller);
    if written.is_err() {
        // A search may have taken long, and its header is all that it found.
        let line = serde_json::to_string(&smaller.header).unwrap_or_default();
        writeln!(console.out, "{line}")?;
    }
    let file = written.map_err(|why| {
        Halt::BadInput(format!(
            "{why}; what was found is on standard output, a header for `deposed replay`"
        ))
    })?;
    let text = shrinking::text(header, &shrunk, &smaller, Some(&file));
    console.out.write_all(text.as_bytes())?;
    Ok(exit)
}

/// The check named, or the first that is violated.
fn culprit(file: &str, outcome: &Outcome, named: Option<Check>) -> Result<Check, Halt> {
    let violated: Vec<Check> = outcome
        .verdicts
        .violated()
        .map(|(check, _)| check)
        .collect();
    let nothing =
        |what: String| Halt::BadInput(format!("{file}: {what}: there is nothing to shrink"));
    match (violated.first(), named) {
        (_, Some(named)) if violated.contains(&named) => Ok(named),
        (Some(_), Some(named)) => {
            let others: Vec<&str> = violated.iter().map(|check| check.name()).collect();
            let others = others.join(" and ");
            Err(nothing(format!("{named} is not violated, but {others}")))
        }
        (Some(first), None) => Ok(*first),
        (None, _) if !outcome.defects.is_empty() => Err(nothing(format!(
            "the run is defective, which no check judges ({})",
            outcome.defects.join("; ")
        ))),
        (None, _) => Err(nothing("no check is violated".to_owned())),
    }
}

/// A search as the command line asks for it.
pub(super) struct Searching<'a> {
    pub(super) system: &'a Arc<dyn System>,
    pub(super) jobs: Option<NonZero<u64>>,
    pub(super) within: Duration,
    pub(super) stop: &'a AtomicBool,
    /// Whether to show how far it is.
    pub(super) progress: bool,
}

impl Searching<'_> {
    /// Shrinks a run that violates the check.
    pub(super) fn run(&self, header: &Header, check: Check) -> Result<Shrunk, NotViolated> {
        let spinner = progress::spinner(self.progress);
        let jobs = self
            .jobs
            .and_then(|jobs| NonZero::<usize>::try_from(jobs).ok());
        let shrink = Shrink {
            system: self.system,
            check,
            jobs: jobs.unwrap_or_else(all_cores),
            within: self.within,
            stop: self.stop,
            progress: &|best, runs| {
                spinner.set_message(format!("{}; {runs} runs", Size::of(best)));
                spinner.tick();
            },
        };
        let shrunk = shrink.run(header);
        spinner.finish_and_clear();
        shrunk
    }
}

/// Where the smaller history goes.
enum Place {
    /// A file that must not be there.
    New(PathBuf),
    /// Beside the other: a directory, and a name without its ending.
    Beside(PathBuf, String),
}

impl Place {
    fn of(history: &Path, out: Option<&Path>) -> Result<Self, Halt> {
        if let Some(out) = out {
            return match out.symlink_metadata() {
                Ok(_) => Err(Halt::BadInput(format!(
                    "'{}' exists and is not overwritten: name another file with --out",
                    out.display()
                ))),
                Err(_) => Ok(Place::New(out.to_owned())),
            };
        }
        if history == Path::new("-") {
            return Err(Halt::BadInput(
                "a history from standard input has no place beside it: name a file with --out"
                    .to_owned(),
            ));
        }
        let dir = history.parent().unwrap_or(Path::new(""));
        let dir = match dir == Path::new("") {
            true => Path::new("."),
            false => dir,
        };
        let name = bare_name(history);
        let name = name.strip_suffix("-shrunk").unwrap_or(&name);
        Ok(Place::Beside(dir.to_owned(), format!("{name}-shrunk")))
    }

    /// Makes sure that a file can be written there.
    fn opened(self) -> Result<Opened, Halt> {
        match self {
            Place::New(path) => match shelf::room_for(&path) {
                Ok(()) => Ok(Opened::New(path)),
                Err(error) => Err(Halt::BadInput(cannot(&path, &error))),
            },
            Place::Beside(dir, name) => {
                let path = dir.join(format!("{name}.jsonl"));
                match shelf::room_for(&path) {
                    // A shelf finds another name.
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        Err(Halt::BadInput(cannot(&path, &error)))
                    }
                    _ => {
                        let shelf = Shelf::open(&dir).map_err(Halt::BadInput)?;
                        Ok(Opened::Beside(shelf, name))
                    }
                }
            }
        }
    }
}

fn cannot(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    format!("'{path}' cannot be written: {error}; name another file with --out")
}

/// A place that can be written to.
enum Opened {
    New(PathBuf),
    Beside(Shelf, String),
}

impl Opened {
    fn write(&self, outcome: &Outcome) -> Result<PathBuf, String> {
        match self {
            Opened::New(path) => {
                let written = shelf::write(path, false, &outcome.header, &outcome.history);
                let written = written.map_err(|error| cannot(path, &error));
                written.map(|()| path.clone())
            }
            Opened::Beside(shelf, name) => {
                let path = shelf.keep_as(name, &outcome.header, &outcome.history)?;
                // As its neighbour was given: `x.jsonl`, not `./x.jsonl`.
                Ok(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path))
            }
        }
    }
}

/// A history's file name without its endings.
pub(super) fn bare_name(history: &Path) -> String {
    let name = history.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.strip_suffix(".jsonl").unwrap_or(name).to_owned()
}

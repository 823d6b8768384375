//! A recorded run that is run again, and must be what it was.

use std::{io, path::Path, sync::Arc};

use deposed_checkers::writer::event_line;

use super::{
    Suite,
    replay::{lines, readable, runnable, unreadable},
};
use crate::{campaign, report::Halt, run::Outcome, system::System};

/// A run, and the system that it was a run of.
pub(super) struct Recorded<'s> {
    pub(super) file: String,
    pub(super) system: &'s Arc<dyn System>,
    pub(super) outcome: Outcome,
}

/// Runs a history's header. What comes of it must be the history, byte for byte; a header
/// alone has nothing to differ from.
pub(super) fn again<'s>(suite: &'s Suite, path: &Path) -> Result<Recorded<'s>, Halt> {
    let (recorded, mut lines) = run(suite, path)?;
    let file = &recorded.file;
    let mut events = recorded.outcome.history.iter();
    for index in 0.. {
        let was = lines.next().transpose();
        let was = was.map_err(|error| unreadable(file, &error))?;
        if index == 0 && was.is_none() {
            break;
        }
        let now = events.next().map(event_line);
        if was.as_deref() != now.as_deref().map(str::as_bytes) {
            readable(path, index)?;
            let was = was.map(|line| String::from_utf8_lossy(&line).into_owned());
            return Err(Halt::BadInput(differs(file, index, was, now)));
        }
        if was.is_none() {
            break;
        }
    }
    Ok(recorded)
}

/// Runs a history's header, whatever the history was.
pub(super) fn anew<'s>(suite: &'s Suite, path: &Path) -> Result<Recorded<'s>, Halt> {
    Ok(run(suite, path)?.0)
}

/// The run, and the lines after the header.
fn run<'s>(
    suite: &'s Suite,
    path: &Path,
) -> Result<(Recorded<'s>, impl Iterator<Item = io::Result<Vec<u8>>>), Halt> {
    let file = path.display().to_string();
    let mut lines = lines(path).map_err(|error| {
        Halt::BadInput(format!("{file}: cannot be opened: {error}; check the path"))
    })?;
    let first = lines.next().transpose();
    let first = first.map_err(|error| unreadable(&file, &error))?;
    let header = runnable(&first.unwrap_or_default(), &file)?;
    let system = suite.system(Some(&header.system))?;
    header
        .validate()
        .map_err(|why| Halt::BadInput(format!("{file}: {why}")))?;
    let outcome = campaign::outcome(&header, system);
    let recorded = Recorded {
        file,
        system,
        outcome,
    };
    Ok((recorded, lines))
}

/// A run depends on nothing but its header: where it comes out otherwise, something else
/// runs it.
fn differs(file: &str, index: usize, was: Option<String>, now: Option<String>) -> String {
    let side = |line: Option<String>| line.unwrap_or_else(|| "the end".to_owned());
    format!(
        "{file}: does not reproduce: event {index} was {} and is {} now, so that it was recorded \
         by another version of the system or the format; run its workload and seed anew",
        side(was),
        side(now),
    )
}

//! A campaign as it goes: the first failures of each workload in full, then a line
//! per workload; at the end, why checks claimed nothing in whole workloads.

use std::{
    io::{self, Write},
    ops::ControlFlow,
};

use super::{
    Halt,
    failure::{Exhibits, Failure},
    shelf::Shelf,
    tally::{Tally, unclaimed},
};
use crate::{
    campaign::{Campaign, Plan, Run},
    run::{Header, Outcome},
};

/// How many failures of a workload are printed in full.
const IN_FULL: usize = 3;

/// Runs a plan, tells what happens, and keeps the histories that are worth it. After
/// a stop the workloads that were not reached are left out.
///
/// # Errors
/// A header that cannot be run, a history that cannot be kept, a reader that left.
pub fn tell<'w>(
    campaign: &Campaign<'_>,
    plan: &Plan<'w>,
    shelf: &Shelf,
    out: &mut dyn Write,
) -> Result<Vec<Tally<'w>>, Halt> {
    let width = plan
        .iter()
        .map(|(workload, _)| workload.name.chars().count());
    let width = width.max().unwrap_or(0);
    let mut tallies: Vec<Tally<'w>> = Vec::new();
    let mut halted = Ok(());
    let ran = campaign.run(plan, |run| {
        halted = (|| {
            let same = |tally: &&mut Tally<'w>| std::ptr::eq(tally.workload(), run.workload);
            if tallies.last_mut().filter(same).is_none() {
                if let Some(done) = tallies.last() {
                    out.write_all(done.text(width).as_bytes())?;
                }
                tallies.push(Tally::new(run.workload));
            }
            let Some(tally) = tallies.last_mut() else {
                return Ok(());
            };
            tally.add(&run);
            told(&run, tally, campaign.keep, shelf, out)
        })();
        match halted {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    let failed = tallies.iter().any(|tally| tally.failures() > 0);
    halted.map_err(|halt| match halt {
        Halt::ReaderLeft if failed => Halt::ReaderLeftAfterAFailure,
        halt => halt,
    })?;
    ran.map_err(Halt::BadInput)?;
    if let Some(last) = tallies.last() {
        out.write_all(last.text(width).as_bytes())?;
    }
    out.write_all(unclaimed(&tallies).as_bytes())?;
    Ok(tallies)
}

fn told(
    run: &Run<'_>,
    tally: &Tally<'_>,
    keep: bool,
    shelf: &Shelf,
    out: &mut dyn Write,
) -> Result<(), Halt> {
    let outcome = &run.outcome;
    let kept = (keep || run.is_worth_a_look())
        .then(|| shelf.keep(&outcome.header, &outcome.history))
        .transpose();
    if outcome.failed() && tally.failures() <= IN_FULL {
        let file = kept.as_ref().ok().and_then(Option::as_ref);
        let file = file.map(|path| path.display().to_string());
        out.write_all(failure(outcome, file.as_deref()).as_bytes())?;
        out.write_all(b"\n")?;
    }
    kept.map(|_| ()).map_err(Halt::BadInput)
}

/// A failed run in full, and where its history is.
pub fn failure(outcome: &Outcome, file: Option<&str>) -> String {
    let mut exhibits = Exhibits::of(&outcome.verdicts);
    outcome.history.iter().for_each(|event| exhibits.see(event));
    let failure = Failure {
        title: &title(&outcome.header),
        defects: &outcome.defects,
        verdicts: &outcome.verdicts,
        exhibits,
        file,
        replayable: true,
    };
    failure.text()
}

/// `gc-pause  seed 4`, and what is unusual about the run.
pub fn title(header: &Header) -> String {
    let mut title = format!("{}  seed {}", header.workload, header.seed);
    if header.system != "deposed" {
        title += &format!("  system {}", header.system);
    }
    if let Some(flaw) = header.flaw {
        title += &format!("  flaw {flaw}");
    }
    title
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Halt::ReaderLeft,
            _ => Halt::BadInput(format!("standard output cannot be written: {error}")),
        }
    }
}

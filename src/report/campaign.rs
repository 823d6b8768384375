//! A campaign as it goes: the first failures of each workload in full, then a line
//! per workload; at the end, why checks claimed nothing in whole workloads.

use std::{
    io::{self, Write},
    ops::ControlFlow,
};

use deposed_checkers::verdict::Check;

use super::{
    Halt,
    failure::{Exhibits, Failure},
    shelf::{Shelf, file_name},
    shrinking,
    tally::{Tally, unclaimed},
};
use crate::{
    campaign::{self, Campaign, Plan, Run},
    run::{Header, Outcome},
    shrink::Shrunk,
};

/// How many failures of a workload are printed in full.
const IN_FULL: usize = 3;

/// Makes a failed run smaller as long as the check is violated.
pub type Shrinking<'a> = &'a dyn Fn(&Header, Check) -> Option<Shrunk>;

/// Runs a plan, tells what happens, and keeps the histories that are worth it. After
/// a stop the workloads that were not reached are left out. With `shrink`, each workload's
/// first failure is shrunk, and told as the smaller one; its own history is kept, too.
///
/// # Errors
/// A header that cannot be run, a history that cannot be kept, a reader that left.
pub fn tell<'w>(
    campaign: &Campaign<'_>,
    plan: &Plan<'w>,
    shelf: &Shelf,
    shrink: Option<Shrinking<'_>>,
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
            let shrink = shrink.filter(|_| tally.failures() == 1);
            told(&run, tally, campaign, shelf, shrink, out)
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
    campaign: &Campaign<'_>,
    shelf: &Shelf,
    shrink: Option<Shrinking<'_>>,
    out: &mut dyn Write,
) -> Result<(), Halt> {
    let outcome = &run.outcome;
    let kept = (campaign.keep || run.is_worth_a_look())
        .then(|| shelf.keep(&outcome.header, &outcome.history))
        .transpose();
    if outcome.failed() && tally.failures() <= IN_FULL {
        let smaller = shrink.map(|shrink| smaller(outcome, campaign, shelf, shrink));
        let text = match smaller.transpose().map_err(Halt::BadInput)?.flatten() {
            Some(smaller) => smaller,
            None => {
                let file = kept.as_ref().ok().and_then(Option::as_ref);
                let file = file.map(|path| path.display().to_string());
                failure(outcome, &title(&outcome.header), file.as_deref(), false)
            }
        };
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")?;
    }
    kept.map(|_| ()).map_err(Halt::BadInput)
}

/// The smaller failure in full, its history kept beside the other; `None` if there is none.
fn smaller(
    outcome: &Outcome,
    campaign: &Campaign<'_>,
    shelf: &Shelf,
    shrink: Shrinking<'_>,
) -> Result<Option<String>, String> {
    let header = &outcome.header;
    let check = outcome.verdicts.violated().map(|(check, _)| check).next();
    let shrunk = check.and_then(|check| shrink(header, check));
    let Some(shrunk) = shrunk.filter(|shrunk| shrunk.header != *header) else {
        return Ok(None);
    };
    let smaller = campaign::outcome(&shrunk.header, campaign.system);
    let name = format!("{}-shrunk", file_name(header));
    let file = shelf.keep_as(&name, &smaller.header, &smaller.history)?;
    let text = shrinking::text(header, &shrunk, &smaller, Some(&file));
    Ok(Some(text))
}

/// A failed run in full.
pub(super) fn failure(outcome: &Outcome, title: &str, file: Option<&str>, shrunk: bool) -> String {
    let mut exhibits = Exhibits::of(&outcome.verdicts);
    outcome.history.iter().for_each(|event| exhibits.see(event));
    let failure = Failure {
        title,
        defects: &outcome.defects,
        verdicts: &outcome.verdicts,
        exhibits,
        file,
        replayable: true,
        shrunk,
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

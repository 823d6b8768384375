//! A campaign as it goes: the first failures of each workload in full, then a line
//! per workload; at the end, why checks claimed nothing in whole workloads.

use std::{
    io::{self, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use deposed_checkers::verdict::Check;

use super::{
    Halt,
    failure::{Exhibits, Failure, Next},
    html::Page,
    index::{self, Kept, Key},
    shelf::{Shelf, file_name},
    shrinking,
    tally::{Tally, unclaimed},
};
use crate::{
    campaign::{self, Campaign, Plan, Run},
    run::{Header, Outcome},
    shrink::Shrunk,
    timeline::selection::Selection,
};

/// How many failures of a workload are printed in full.
const IN_FULL: usize = 3;

/// Makes a failed run smaller as long as the check is violated.
pub type Shrinking<'a> = &'a dyn Fn(&Header, Check) -> Option<Shrunk>;

/// What is left beside the histories of failures.
#[derive(Clone, Copy, Default)]
pub struct Beside<'a> {
    /// The timelines of those that are told in full.
    pub pages: bool,
    /// Each workload's first failure as a smaller one, which is told in its place.
    pub shrink: Option<Shrinking<'a>>,
}

/// Runs a plan, tells what happens, and keeps the histories that are worth it. After
/// a stop the workloads that were not reached are left out. Of a failure that
/// is shrunk its own history is kept, too.
///
/// # Errors
/// A header that cannot be run, a history that cannot be kept, a reader that left.
pub fn tell<'w>(
    campaign: &Campaign<'_>,
    plan: &Plan<'w>,
    shelf: &Shelf,
    beside: Beside<'_>,
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
            let shrink = beside.shrink.filter(|_| tally.failures() == 1);
            told(
                &run,
                tally,
                campaign,
                shelf,
                Beside { shrink, ..beside },
                out,
            )
        })();
        match halted {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    halted?;
    ran.map_err(Halt::BadInput)?;
    if let Some(last) = tallies.last() {
        out.write_all(last.text(width).as_bytes())?;
    }
    out.write_all(unclaimed(&tallies).as_bytes())?;
    Ok(tallies)
}

fn told(
    run: &Run<'_>,
    tally: &mut Tally<'_>,
    campaign: &Campaign<'_>,
    shelf: &Shelf,
    beside: Beside<'_>,
    out: &mut dyn Write,
) -> Result<(), Halt> {
    let outcome = &run.outcome;
    let kept = (campaign.keep || run.is_worth_a_look())
        .then(|| shelf.keep(&outcome.header, &outcome.history))
        .transpose();
    let in_full = outcome.failed() && tally.failures() <= IN_FULL;
    let mut shrunk = None;
    if in_full {
        let shrink = beside.shrink;
        let smaller = shrink.map(|shrink| smaller(outcome, campaign, shelf, shrink));
        let text = match smaller.transpose().map_err(Halt::BadInput)?.flatten() {
            Some((file, text)) => {
                shrunk = Some(file);
                text
            }
            None => {
                let file = kept.as_ref().ok().and_then(Option::as_ref);
                let file = file.map(|path| path.display().to_string());
                failure(outcome, file.as_deref(), next(outcome))
            }
        };
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")?;
    }
    let Some(file) = kept.map_err(Halt::BadInput)? else {
        return Ok(());
    };
    let page = match in_full && beside.pages {
        true => page(run, &file, shelf)?,
        false => None,
    };
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    tally.keep(Kept {
        seed: run.seed,
        file: name(&file),
        page: page.as_deref().map(name),
        shrunk: shrunk.as_deref().map(name),
        failed: outcome.failed(),
    });
    Ok(())
}

/// The timeline of a run, beside its history.
fn page(run: &Run<'_>, file: &Path, shelf: &Shelf) -> Result<Option<PathBuf>, Halt> {
    let outcome = &run.outcome;
    // As whoever reads the file again reads it.
    let header = serde_json::to_value(&outcome.header).and_then(serde_json::from_value);
    let header = header.map_err(|error| Halt::BadInput(error.to_string()))?;
    let name = file.display().to_string();
    let mut page = Page::new(&header, &name, Selection::default());
    outcome.history.iter().for_each(|event| page.see(event));
    let page = page.finish(outcome.verdicts.clone());
    let page = page.map_err(Halt::BadInput)?;
    shelf.keep_page(file, &page).map_err(Halt::BadInput)
}

/// The index of a run's directory: a row a workload.
///
/// # Errors
/// It cannot be written.
pub fn leave_index(
    campaign: &Campaign<'_>,
    plan: &Plan<'_>,
    tallies: &[Tally<'_>],
    shelf: &Shelf,
) -> Result<(), Halt> {
    let rows = tallies.iter().filter_map(|tally| {
        let (_, seeds) = plan
            .iter()
            .find(|(workload, _)| std::ptr::eq(*workload, tally.workload()))?;
        let key = Key {
            workload: tally.workload().name.to_owned(),
            system: campaign.system.name().to_owned(),
            flaw: campaign.flaw.map(|flaw| flaw.name().to_owned()),
            first: *seeds.start(),
            last: seeds.start() + tally.seeds().saturating_sub(1),
        };
        Some((key, tally.row()))
    });
    index::write(shelf.dir(), rows).map_err(Halt::BadInput)?;
    Ok(())
}

/// The smaller failure: its history, kept beside the other, and its text in full; `None` if
/// there is none.
fn smaller(
    outcome: &Outcome,
    campaign: &Campaign<'_>,
    shelf: &Shelf,
    shrink: Shrinking<'_>,
) -> Result<Option<(PathBuf, String)>, String> {
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
    Ok(Some((file, text)))
}

/// What can be done with a run that was kept.
pub fn next(outcome: &Outcome) -> Next {
    match outcome.verdicts.violated().next() {
        Some(_) => Next::Shrink,
        None => Next::Replay,
    }
}

/// A failed run in full, where its history is, and what to do with it.
pub fn failure(outcome: &Outcome, file: Option<&str>, next: Next) -> String {
    let mut exhibits = Exhibits::of(&outcome.verdicts);
    outcome.history.iter().for_each(|event| exhibits.see(event));
    let failure = Failure {
        title: &title(&outcome.header),
        defects: &outcome.defects,
        verdicts: &outcome.verdicts,
        exhibits,
        file,
        next,
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

//! `deposed run`: workloads over their seeds.

use std::{num::NonZero, ops::RangeInclusive, sync::atomic::Ordering};

use super::{Console, Exit, Suite, arguments::RunArgs, names, progress, shrink::Searching};
use crate::{
    campaign::{Campaign, Plan},
    parallel::all_cores,
    report::{
        Halt,
        campaign::{Beside, Shrinking, leave_index, tell},
        shelf::Shelf,
        tally::{Standing, Tally},
    },
    run::Header,
    workload::Workload,
};

pub(super) fn run(suite: &Suite, args: &RunArgs, console: &mut Console<'_>) -> Result<Exit, Halt> {
    let workloads = chosen(suite, &args.workloads)?;
    let system = suite.system(args.system.as_deref())?;
    let flaw = args
        .flaw
        .as_deref()
        .map(|name| names::flaw(name, &**system));
    let flaw = flaw.transpose()?;
    if let Some(flaw) = flaw
        && let Some(note) = names::showing(flaw, &workloads)?
    {
        console.complain(&note);
    }
    let plan: Vec<_> = workloads
        .into_iter()
        .map(|workload| (workload, seeds(args, workload)))
        .collect();
    let shelf = Shelf::open(&args.out).map_err(Halt::BadInput)?;
    let bar = progress::bar(console.progress, total(&plan), "seeds");
    let jobs = args
        .jobs
        .and_then(|jobs| NonZero::<usize>::try_from(jobs).ok());
    let campaign = Campaign {
        system,
        flaw,
        jobs: jobs.unwrap_or_else(all_cores),
        keep: args.keep,
        stop: console.stop,
        progress: &|| bar.inc(1),
    };
    let mut above = progress::AboveTheBar {
        bar: &bar,
        out: console.out,
    };
    let searching = Searching {
        system,
        jobs: args.jobs,
        within: args.within,
        stop: console.stop,
        progress: console.progress,
    };
    let shrink = |header: &Header, check| searching.run(header, check).ok();
    let shrink: Option<Shrinking<'_>> = args.shrink.then_some(&shrink);
    let beside = Beside {
        pages: true,
        shrink,
    };
    let tallies = tell(&campaign, &plan, &shelf, beside, &mut above);
    bar.finish_and_clear();
    let tallies = tallies?;
    leave_index(&campaign, &plan, &tallies, &shelf)?;
    let mut exit = tallies.iter().map(exit_of).fold(Exit::Valid, Exit::and);
    let ran: u64 = tallies.iter().map(Tally::seeds).sum();
    let planned = total(&plan);
    if console.stop.load(Ordering::Relaxed) && ran < planned {
        writeln!(console.out, "interrupted after {ran} of {planned} seeds")?;
        exit = exit.and(Exit::Interrupted);
    }
    Ok(exit)
}

/// The workloads named, each once; all when none is.
pub(super) fn chosen<'s>(suite: &'s Suite, names: &[String]) -> Result<Vec<&'s Workload>, Halt> {
    if names.is_empty() {
        return Ok(suite.workloads.iter().collect());
    }
    let mut chosen: Vec<&Workload> = Vec::new();
    for name in names {
        let workload = suite.workload(name)?;
        if !chosen.iter().any(|other| std::ptr::eq(*other, workload)) {
            chosen.push(workload);
        }
    }
    Ok(chosen)
}

fn seeds(args: &RunArgs, workload: &Workload) -> RangeInclusive<u64> {
    match (args.seed, args.seeds) {
        (Some(seed), _) => seed..=seed,
        (None, Some(seeds)) => 0..=seeds.get() - 1,
        (None, None) => 0..=workload.seeds.saturating_sub(1),
    }
}

pub(super) fn total(plan: &Plan<'_>) -> u64 {
    let lengths = plan
        .iter()
        .map(|(_, seeds)| (seeds.end() - seeds.start()).saturating_add(1));
    lengths.fold(0, u64::saturating_add)
}

fn exit_of(tally: &Tally<'_>) -> Exit {
    match tally.standing() {
        Standing::Valid => Exit::Valid,
        Standing::Unknown => Exit::Unknown,
        Standing::Violated => Exit::Violated,
    }
}

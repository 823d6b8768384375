//! `deposed compare`: a workload's configurations side by side, over the same seeds.

use std::{num::NonZero, ops::ControlFlow, sync::atomic::Ordering};

use super::{Console, Exit, Suite, arguments::CompareArgs, run};
use crate::{
    campaign::{Campaign, all_cores},
    compare::{Arm, Measures},
    report::{
        Halt,
        campaign::title,
        comparison::{Comparison, LEGEND},
    },
    workload::Workload,
};

pub(super) fn compare(
    suite: &Suite,
    args: &CompareArgs,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let workloads = chosen(suite, &args.workloads)?;
    let system = suite.system(None)?;
    let rows: Vec<Row<'_>> = workloads
        .iter()
        .flat_map(|workload| workload.compares.iter().map(|arm| Row::of(workload, *arm)))
        .collect();
    let seeds_of = |workload: &Workload| args.seeds.map_or(workload.seeds, NonZero::get);
    let plan: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                &row.configured,
                0..=seeds_of(row.workload).saturating_sub(1),
            )
        })
        .collect();
    let bar = run::bar(console.progress, &plan);
    let jobs = args
        .jobs
        .and_then(|jobs| NonZero::<usize>::try_from(jobs).ok());
    let campaign = Campaign {
        system,
        flaw: None,
        jobs: jobs.unwrap_or_else(all_cores),
        keep: true,
        stop: console.stop,
        progress: &|| bar.inc(1),
    };
    let mut measured = vec![Measures::default(); rows.len()];
    let mut failed = Vec::new();
    let mut ran = 0;
    let done = campaign.run(&plan, |run| {
        ran += 1;
        let mine = |row: &Row<'_>| std::ptr::eq(&row.configured, run.workload);
        let Some(place) = rows.iter().position(mine) else {
            return ControlFlow::Continue(());
        };
        measured[place].add(Measures::of(&run.outcome.history));
        // A configuration other than the workload's own may break the rules: that is what
        // is counted. A run that went wrong as a whole has counted nothing.
        let Row { workload, arm, .. } = &rows[place];
        if !run.outcome.defects.is_empty() || (arm.is_own(workload) && run.outcome.failed()) {
            failed.push(format!("{}, {}", title(&run.outcome.header), arm.name));
        }
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    done.map_err(Halt::BadInput)?;
    if console.stop.load(Ordering::Relaxed) && ran < run::total(&plan) {
        // Rows over different seeds say nothing.
        let planned = run::total(&plan);
        console.complain(&format!(
            "interrupted after {ran} of {planned} runs: nothing to compare"
        ));
        return Ok(Exit::Interrupted);
    }
    let mut measured = measured.into_iter();
    for workload in workloads {
        let arms = workload.compares.iter().copied().zip(&mut measured);
        let comparison = Comparison {
            workload,
            seeds: seeds_of(workload),
            arms: arms.collect(),
        };
        let text = match args.json {
            true => comparison
                .json()
                .map_err(|error| Halt::BadInput(error.to_string()))?,
            false => comparison.text(),
        };
        writeln!(console.out, "{text}")?;
    }
    if !args.json {
        console.out.write_all(LEGEND.as_bytes())?;
    }
    for title in &failed {
        console.complain(&format!("the run of {title} failed"));
    }
    Ok(match failed.is_empty() {
        true => Exit::Valid,
        false => Exit::Violated,
    })
}

/// A row of a table.
struct Row<'s> {
    workload: &'s Workload,
    arm: Arm,
    /// The workload in the arm's configuration.
    configured: Workload,
}

impl<'s> Row<'s> {
    fn of(workload: &'s Workload, arm: Arm) -> Self {
        Self {
            workload,
            arm,
            configured: arm.of(workload),
        }
    }
}

/// The workloads named, each once; all that compare anything when none is.
fn chosen<'s>(suite: &'s Suite, names: &[String]) -> Result<Vec<&'s Workload>, Halt> {
    let compares = |workload: &&Workload| !workload.compares.is_empty();
    let all = || suite.workloads.iter().filter(compares);
    if all().next().is_none() {
        let nothing = "no workload of this binary compares anything: give one some arms";
        return Err(Halt::BadInput(nothing.to_owned()));
    }
    if names.is_empty() {
        return Ok(all().collect());
    }
    let chosen = run::chosen(suite, names)?;
    match chosen.iter().find(|workload| !compares(workload)) {
        Some(workload) => Err(Halt::BadInput(format!(
            "the workload '{}' compares nothing; these do: {}",
            workload.name,
            all().map(|w| w.name).collect::<Vec<_>>().join(", ")
        ))),
        None => Ok(chosen),
    }
}

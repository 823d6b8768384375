//! `deposed flaws`: is every planted flaw convicted, and how soon?

use std::{
    io::Write,
    num::NonZero,
    ops::ControlFlow,
    sync::{Arc, atomic::Ordering},
};

use indicatif::ProgressBar;

use super::{Console, Exit, Suite, arguments::FlawsArgs, names, progress, shrink::Searching};
use crate::{
    flaw::Flaw,
    hunt::{Hunt, Schedules, Spoils},
    parallel::{all_cores, in_order},
    report::{
        Halt,
        hunt::{Row, Table},
        shrinking,
    },
    shrink::monotonic,
    system::{Deposed, System},
};

/// Between two seed bases: more seeds than any hunt runs.
const BASES_APART: u64 = 1_000_000;

pub(super) fn flaws(
    suite: &Suite,
    args: &FlawsArgs,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let system = suite.system(args.system.as_deref())?;
    let flaws = chosen(&args.flaws, &**system)?;
    let hunts = hunts(suite, &flaws)?;
    if args.shrink {
        return shrunk(&hunts, system, args, console);
    }
    let (bases, most) = (args.bases.get(), args.seeds.get().min(BASES_APART));
    let mut ways = vec![Schedules::Workload];
    ways.extend(args.against.map(|_| Schedules::Uniform));
    let items = hunts.iter().flat_map(|hunt| {
        let ways = ways.iter();
        ways.flat_map(move |&schedules| {
            let hunt = Hunt { schedules, ..*hunt };
            (0..bases).map(move |base| (hunt, base.saturating_mul(BASES_APART)))
        })
    });
    let a_row = usize::try_from(bases).unwrap_or(usize::MAX);
    let ours = system.name() == Deposed.name();
    let table = Table::new(&hunts, a_row, args.against.is_some(), ours);
    let bar = progress::bar(
        console.progress,
        bases.saturating_mul((hunts.len() * ways.len()) as u64),
        "hunts",
    );
    let stop = console.stop;
    let jobs = args
        .jobs
        .and_then(|jobs| NonZero::<usize>::try_from(jobs).ok());
    let mut told = Telling {
        bar: &bar,
        rows: Vec::new(),
        spoils: Vec::new(),
        hunts: hunts.iter(),
        a_row,
        a_hunt: a_row.saturating_mul(ways.len()),
    };
    let mut out = progress::AboveTheBar {
        bar: &bar,
        out: console.out,
    };
    writeln!(out, "{}", table.head())?;
    let mut unwritten = None;
    let done = in_order(
        items,
        jobs.unwrap_or_else(all_cores),
        stop,
        |(hunt, base)| {
            let spoils = hunt.run(system, base, most);
            bar.inc(1);
            spoils
        },
        |spoils| {
            let Some(row) = told.add(spoils) else {
                return Ok(ControlFlow::Continue(()));
            };
            match writeln!(out, "{}", table.row(row)) {
                Ok(()) => Ok(ControlFlow::Continue(())),
                Err(error) => {
                    unwritten = Some(error);
                    Ok(ControlFlow::Break(()))
                }
            }
        },
    );
    bar.finish_and_clear();
    done.map_err(Halt::BadInput)?;
    let rows = told.rows;
    let escaped = rows.iter().any(Row::escaped);
    if let Some(error) = unwritten {
        return Err(error.into());
    }
    for line in table.sum(&rows) {
        writeln!(console.out, "{line}")?;
    }
    let mut exit = match escaped {
        true => Exit::Violated,
        false => Exit::Valid,
    };
    if rows.len() < hunts.len() && stop.load(Ordering::Relaxed) {
        let (done, planned) = (rows.len(), hunts.len());
        writeln!(console.out, "interrupted after {done} of {planned} rows")?;
        exit = exit.and(Exit::Interrupted);
    }
    Ok(exit)
}

/// One after the other: each takes all the jobs there are.
fn shrunk(
    hunts: &[Hunt<'_>],
    system: &Arc<dyn System>,
    args: &FlawsArgs,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let searching = Searching {
        system,
        jobs: args.jobs,
        within: args.within,
        stop: console.stop,
        progress: console.progress,
    };
    writeln!(console.out, "{}", shrinking::head(hunts))?;
    let mut rows = Vec::new();
    for &hunt in hunts {
        if console.stop.load(Ordering::Relaxed) {
            break;
        }
        let spoils = hunt.run(system, 0, args.seeds.get());
        let header = hunt.header(system, spoils.seeds - 1);
        let began = monotonic();
        let shrunk = spoils.convicted.then(|| searching.run(&header, hunt.check));
        let row = shrinking::Row {
            hunt,
            shrunk: shrunk.and_then(Result::ok).map(|shrunk| (header, shrunk)),
            took: monotonic().saturating_sub(began),
        };
        writeln!(console.out, "{}", shrinking::row(hunts, &row))?;
        console.out.flush()?;
        rows.push(row);
    }
    writeln!(console.out, "{}", shrinking::median(&rows))?;
    if rows.len() < hunts.len() {
        writeln!(
            console.out,
            "interrupted after {} of {} rows",
            rows.len(),
            hunts.len()
        )?;
        return Ok(Exit::Interrupted);
    }
    Ok(match rows.iter().all(|row| row.shrunk.is_some()) {
        true => Exit::Valid,
        false => Exit::Violated,
    })
}

/// The flaws named, each once; all when none is.
fn chosen(names: &[String], system: &dyn System) -> Result<Vec<Flaw>, Halt> {
    let mut chosen = Vec::new();
    let all = Flaw::ALL.iter().map(|flaw| flaw.name().to_owned());
    let asked: Vec<String> = match names {
        [] => all.collect(),
        names => names.to_vec(),
    };
    for name in asked {
        let flaw = names::flaw(&name, system)?;
        if !chosen.contains(&flaw) {
            chosen.push(flaw);
        }
    }
    Ok(chosen)
}

/// Where each flaw must be convicted, and by whom.
fn hunts<'s>(suite: &'s Suite, flaws: &[Flaw]) -> Result<Vec<Hunt<'s>>, Halt> {
    let mut hunts = Vec::new();
    for &flaw in flaws {
        let before = hunts.len();
        for workload in &suite.workloads {
            let checks = workload
                .catches
                .iter()
                .filter(|(caught, _)| *caught == flaw);
            hunts.extend(checks.map(|&(flaw, check)| Hunt {
                flaw,
                workload,
                check,
                schedules: Schedules::Workload,
            }));
        }
        if hunts.len() == before {
            return Err(Halt::BadInput(format!(
                "no workload of this suite lists the flaw '{flaw}' in its 'catches': nobody would \
                 convict it"
            )));
        }
    }
    Ok(hunts)
}

/// Gathers what comes in the order of the plan into rows.
struct Telling<'a, 's> {
    bar: &'a ProgressBar,
    rows: Vec<Row<'s>>,
    spoils: Vec<Spoils>,
    hunts: std::slice::Iter<'a, Hunt<'s>>,
    a_row: usize,
    a_hunt: usize,
}

impl<'s> Telling<'_, 's> {
    /// The row that this was the last of.
    fn add(&mut self, spoils: Spoils) -> Option<&Row<'s>> {
        self.spoils.push(spoils);
        if self.spoils.len() < self.a_hunt {
            return None;
        }
        let uniform = self.spoils.split_off(self.a_row);
        self.bar.tick();
        self.rows.push(Row {
            hunt: *self.hunts.next()?,
            ours: std::mem::take(&mut self.spoils),
            uniform,
        });
        self.rows.last()
    }
}

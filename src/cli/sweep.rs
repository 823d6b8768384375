//! `deposed sweep`: lease settings under pauses and crashes of leaders, measured.

use std::{
    fmt::Write as _,
    num::NonZero,
    ops::ControlFlow,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use deposed_checkers::verdict::Verdict;

use super::{Console, Exit, Suite, arguments::SweepArgs, progress};
use crate::{
    campaign,
    hunt::cpu_time,
    parallel::{all_cores, in_order},
    report::{
        Halt,
        campaign::title,
        shelf::{Shelf, whole},
        sweep::{cells_csv, plots, recommendation, summary},
        text::counted,
    },
    run::{Header, Outcome},
    sweep::{
        Cell, Environment, Journal, Measures, Panel, Plan, Row, Setting, Standing, plan::length,
        setting::Pauses, unit::Length,
    },
    system::System,
    workload::SECOND,
};

/// The ttls where neither ttls nor presets are named.
const TTLS: [u64; 5] = [1, 2, 5, 10, 15];
/// Where the histories of runs that failed are kept, in the sweep's folder.
const FAILED: &str = "failed";

pub(super) fn sweep(
    suite: &Suite,
    args: &SweepArgs,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let system = suite.system(args.system.as_deref())?;
    let plan = plan(args, &**system).map_err(Halt::BadInput)?;
    let simulated = plan.validate().map_err(Halt::BadInput)?;
    if args.dry_run {
        let text = outlook(&plan, simulated, system);
        console.out.write_all(text.as_bytes())?;
        return Ok(Exit::Valid);
    }
    let (mut journal, mut rows) = match args.resume {
        true => Journal::resume(&args.out, &plan).map_err(Halt::BadInput)?,
        false => {
            let journal = Journal::begin(&args.out, &plan).map_err(Halt::BadInput)?;
            (journal, Vec::new())
        }
    };
    let left = plan.len().saturating_sub(rows.len() as u64);
    let bar = progress::bar(console.progress, left, "runs");
    let jobs = args
        .jobs
        .and_then(|jobs| NonZero::<usize>::try_from(jobs).ok());
    let mut failures = Vec::new();
    let done = in_order(
        plan.runs().skip(rows.len()),
        jobs.unwrap_or_else(all_cores),
        console.stop,
        |(cell, seed)| {
            let ran = Ran::of(&plan, cell, seed, system);
            bar.inc(1);
            ran
        },
        |ran| {
            // The history first: a run that is in the journal is not run again.
            if let Some(outcome) = &ran.failed {
                failures.push(keep(&args.out, outcome)?);
            }
            journal.append(&ran.row)?;
            rows.push(ran.row);
            Ok(ControlFlow::Continue(()))
        },
    );
    bar.finish_and_clear();
    for failure in &failures {
        console.complain(failure);
    }
    done.map_err(Halt::BadInput)?;
    let mut exit = rows
        .iter()
        .map(|row| exit_of(row.standing))
        .fold(Exit::Valid, Exit::and);
    let (ran, planned) = (rows.len() as u64, plan.len());
    if ran < planned && console.stop.load(Ordering::Relaxed) {
        console.complain(&format!(
            "interrupted after {ran} of {planned} runs: the same command with --resume goes on"
        ));
        return Ok(exit.and(Exit::Interrupted));
    }
    let violated = rows
        .iter()
        .filter(|row| row.standing == Standing::Violated)
        .count();
    let mut measured = vec![Vec::new(); plan.cells().count()];
    for row in &rows {
        let measures: &mut Vec<Measures> = &mut measured[row.cell];
        measures.push(row.measures());
    }
    let panels = Panel::all(&plan, &measured);
    write(&args.out, &panels).map_err(Halt::BadInput)?;
    let mut text = summary(&panels);
    if let Some(availability) = args.availability {
        for panel in &panels {
            text += &format!("\n{}\n", recommendation(panel, availability));
        }
    }
    let _ = writeln!(
        text,
        "\n{} and {} simulated: {}",
        counted(planned, "run"),
        hours(simulated),
        args.out.display()
    );
    console.out.write_all(text.as_bytes())?;
    if violated > 0 {
        console.complain(&format!(
            "{} of {planned} broke a rule, and what was measured is not to be trusted: their \
             histories are in '{}'",
            counted(violated as u64, "run"),
            args.out.join(FAILED).display()
        ));
        exit = exit.and(Exit::Violated);
    }
    Ok(exit)
}

/// What the arguments ask for.
fn plan(args: &SweepArgs, system: &dyn System) -> Result<Plan, String> {
    let ttls = match (&args.ttl[..], &args.preset[..]) {
        ([], []) => TTLS.map(|ttl| ttl * SECOND).to_vec(),
        (ttls, _) => ttls.to_vec(),
    };
    let mut settings: Vec<Setting> = Vec::new();
    for ttl in ttls {
        settings.extend(args.renew.iter().map(|renew| Setting::new(ttl, renew)));
    }
    for name in &args.preset {
        settings.push(Setting::preset(name)?);
    }
    let mut distinct: Vec<Setting> = Vec::new();
    for setting in settings {
        if !distinct.iter().any(|other| other.name == setting.name) {
            distinct.push(setting);
        }
    }
    let pauses = match &args.pause[..] {
        [] => vec![Pauses::parse("gc")?, Pauses::parse("vm-migration")?],
        given => given.to_vec(),
    };
    let mut environments: Vec<Environment> = Vec::new();
    for pauses in &pauses {
        for net in &args.net {
            for drift in &args.drift {
                let environment = Environment {
                    pauses: pauses.clone(),
                    net: net.clone(),
                    drift: *drift,
                };
                if !environments.contains(&environment) {
                    environments.push(environment);
                }
            }
        }
    }
    Ok(Plan {
        version: env!("CARGO_PKG_VERSION"),
        system: system.name().to_owned(),
        settings: distinct,
        environments,
        crashes_per_day: args.crashes_per_day,
        takeover: args.takeover,
        seeds: args.seeds,
        faults: args.faults,
    })
}

/// A run, done.
struct Ran {
    row: Row,
    failed: Option<Outcome>,
}

impl Ran {
    fn of(plan: &Plan, cell: Cell<'_>, seed: u64, system: &Arc<dyn System>) -> Self {
        let header = plan.header(cell, seed);
        let outcome = campaign::outcome(&header, system);
        let measures = Measures::of(&outcome.history, length(&header), plan.takeover);
        let unknown = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(_));
        let standing = match () {
            () if outcome.failed() => Standing::Violated,
            () if outcome
                .verdicts
                .0
                .iter()
                .any(|(_, verdict)| unknown(verdict)) =>
            {
                Standing::Unknown
            }
            () => Standing::Valid,
        };
        Self {
            row: Row::of(cell.place, seed, standing, measures),
            failed: Some(outcome).filter(Outcome::failed),
        }
    }
}

/// Keeps a failed run's history, and says where.
fn keep(folder: &Path, outcome: &Outcome) -> Result<String, String> {
    let what = match (outcome.defects.first(), outcome.verdicts.violated().next()) {
        (Some(defect), _) => defect.clone(),
        (None, Some((check, evidence))) => format!("{}: {}", check.name(), evidence.sentence),
        (None, None) => String::new(),
    };
    let kept = Shelf::open(&folder.join(FAILED))?.keep(&outcome.header, &outcome.history)?;
    Ok(format!(
        "the run of {} failed, {what}; look at it with `deposed check {}`",
        title(&outcome.header),
        kept.display()
    ))
}

fn exit_of(standing: Standing) -> Exit {
    match standing {
        Standing::Valid => Exit::Valid,
        Standing::Violated => Exit::Violated,
        Standing::Unknown => Exit::Unknown,
    }
}

/// Writes what is made of the journal; each file is whole or as it was.
fn write(folder: &Path, panels: &[Panel<'_>]) -> Result<(), String> {
    let mut files = vec![("cells.csv", cells_csv(panels)?)];
    files.extend(plots::all(panels)?);
    for (name, text) in files {
        let path = folder.join(name);
        whole(&path, true, |file| file.write_all(text.as_bytes())).map_err(|error| {
            format!(
                "'{}' cannot be written: {error}; make room, and go on with --resume",
                path.display()
            )
        })?;
    }
    Ok(())
}

/// The settings, and what they would cost.
fn outlook(plan: &Plan, simulated: u64, system: &Arc<dyn System>) -> String {
    let mut text = format!(
        "{:<14} {:>8} {:>9} {:>13} {:>11}\n",
        "setting", "ttl", "window", "renewed after", "tried again"
    );
    let first = &plan.environments[0];
    for setting in &plan.settings {
        let lease = setting.allowing_for(first.drift);
        let window = |nanos: u64| format!("{:.2}s", nanos as f64 / 1e9);
        let _ = writeln!(
            text,
            "{:<14} {:>8} {:>9} {:>13} {:>11}",
            setting.name,
            Length(lease.ttl).to_string(),
            window(lease.safe_window()),
            window(lease.renew_after()),
            window(lease.try_timeout),
        );
    }
    for environment in &plan.environments {
        let _ = writeln!(text, "each under {environment}");
    }
    let cells = plan.cells().count() as u64;
    let costs = match cost(plan, system) {
        Ok(cost) => format!(
            "some {:.1} minutes of CPU on this machine",
            simulated as f64 / 1e9 * cost / 60.0
        ),
        Err(defect) => format!("how much CPU is not known, since a run failed, {defect}"),
    };
    let _ = writeln!(
        text,
        "{}, {}, {} simulated: {costs}",
        counted(cells, "cell"),
        counted(plan.len(), "run"),
        hours(simulated),
    );
    text
}

fn hours(nanos: u64) -> String {
    format!("{:.1} hours", nanos as f64 / 3600e9)
}

/// CPU seconds that a simulated second costs, tried for a few; or why that run failed.
fn cost(plan: &Plan, system: &Arc<dyn System>) -> Result<f64, String> {
    let Some(header) = trial(plan) else {
        return Ok(0.0);
    };
    let began = cpu_time();
    let outcome = campaign::outcome(&header, system);
    let took = cpu_time().saturating_sub(began).as_secs_f64();
    match outcome.defects.into_iter().next() {
        // It ended early, or did not even begin.
        Some(defect) => Err(defect),
        None => Ok(took / (length(&header) as f64 / 1e9)),
    }
}

/// The first run, cut short. What would strike later goes: no header may have it.
fn trial(plan: &Plan) -> Option<Header> {
    let (cell, seed) = plan.runs().next()?;
    let mut header = plan.header(cell, seed);
    header.chaos = header.chaos.min(20 * SECOND);
    let chaos = header.chaos;
    header
        .schedule
        .retain(|injection| injection.when.earliest() <= chaos);
    Some(header)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf, sync::atomic::AtomicBool};

    use clap::Parser;

    use super::*;
    use crate::{
        cli::arguments::{Arguments, Command},
        report::lanes::Screen,
        system::Deposed,
    };

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("deposed-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    fn parsed<'a>(options: impl IntoIterator<Item = &'a str>) -> SweepArgs {
        let all = ["deposed", "sweep"].into_iter().chain(options);
        match Arguments::parse_from(all).command {
            Command::Sweep(args) => args,
            _ => panic!("a sweep"),
        }
    }

    fn swept(folder: &Path, options: &[&str], stop: bool) -> (Exit, String) {
        let folder = folder.to_str().expect("a path in UTF-8");
        let small = "--ttl 1s --renew 1/3 --pause gc --seeds 2 --faults 3 --out";
        let all = small
            .split(' ')
            .chain([folder])
            .chain(options.iter().copied());
        let args = parsed(all);
        let suite = Suite {
            workloads: Vec::new(),
            systems: vec![Arc::new(Deposed)],
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console {
            out: &mut out,
            err: &mut err,
            screen: Screen::PLAIN,
            progress: false,
            stop: &AtomicBool::new(stop),
        };
        let exit = sweep(&suite, &args, &mut console);
        let exit = exit.unwrap_or_else(|halt| {
            console.complain(&halt.to_string());
            Exit::BadInput
        });
        (exit, String::from_utf8(err).expect("text"))
    }

    #[test]
    fn what_a_sweep_costs_is_tried_on_a_run_that_can_be() {
        for options in ["", "--takeover 1m --seeds 1", "--preset consul --faults 3"] {
            let plan = plan(&parsed(options.split_whitespace()), &Deposed).expect("a plan");
            let header = trial(&plan).expect("a run");
            let system: Arc<dyn System> = Arc::new(Deposed);
            let defects = campaign::outcome(&header, &system).defects;
            assert!(defects.is_empty(), "{options}: {defects:?}");
        }
        let plan = plan(&parsed([]), &Deposed).expect("a plan");
        let faults = trial(&plan).expect("a run").schedule.len();
        assert!((1..15).contains(&faults), "{faults} of 15 in 20 s");
    }

    #[test]
    fn who_stops_a_sweep_is_told_how_to_go_on_and_can() {
        let folder = scratch("sweep-stopped");
        let (exit, err) = swept(&folder, &[], true);
        assert_eq!(exit, Exit::Interrupted);
        let says =
            "deposed: interrupted after 0 of 2 runs: the same command with --resume goes on\n";
        assert_eq!(err, says);
        assert!(
            !folder.join("cells.csv").exists(),
            "half a sweep says nothing"
        );
        assert_eq!(
            swept(&folder, &["--resume"], false),
            (Exit::Valid, String::new())
        );
        assert!(folder.join("cells.csv").exists());
        fs::remove_dir_all(folder).expect("there");
    }
}

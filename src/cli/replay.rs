//! `deposed replay`: the same header gives the same history, byte for byte.

use std::thread;

use deposed_checkers::{verdict::Verdict, writer::event_line};
use serde_json::Value;
use tracing::subscriber::NoSubscriber;

use super::{
    Console, Exit, Suite,
    arguments::ReplayArgs,
    names,
    recorded::{Difference, Recording, recorder},
};
use crate::{
    campaign,
    fault::{Fault, Injection, Trigger},
    report::{
        Halt,
        campaign::{failure, next, title},
        failure::others,
        shelf::Shelf,
        text::counted,
        words,
    },
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
            let flaw = flaw.transpose()?;
            if let Some(flaw) = flaw {
                names::showing(flaw, &[workload])?;
            }
            let header = Header::of(workload, seed, system.name(), flaw);
            (title(&header), twice(suite, &header)?)
        }
        None if !args.what.exists() && suite.workload(&said).is_ok() => {
            return Err(Halt::BadInput(format!(
                "to replay the workload '{said}' takes a seed: `deposed replay {said} 0`"
            )));
        }
        None => match Recording::open(&args.what)? {
            recording if recording.is_a_lone_header() => {
                return judge_alone(suite, args, &recording.header, &said, console);
            }
            recording => (said.into_owned(), against(suite, recording)?),
        },
    };
    console.out.write_all(compared.text(&what).as_bytes())?;
    Ok(match compared.difference {
        None => Exit::Valid,
        Some(_) => Exit::Violated,
    })
}

/// A header without a history, written or edited by hand: there is nothing to compare
/// with. It is run and judged as by `deposed run`, and what is worth a look is kept.
fn judge_alone(
    suite: &Suite,
    args: &ReplayArgs,
    header: &Header,
    file: &str,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let system = recorder(suite, header, file)?;
    if let Some(flaw) = header.flaw.filter(|flaw| !flaw.lives_in(&header.cluster)) {
        console.complain(&format!(
            "{file}: the flaw '{flaw}' cannot show in it: the cluster has nothing that it is a \
             flaw of"
        ));
    }
    if let Some(entry) = restores_nothing(header) {
        console.complain(&format!(
            "{file}: entry {entry} of the header's schedule (restore) has no copy to restore and \
             will strike nothing: put a backup of its target before it"
        ));
    }
    let shelf = Shelf::open(&args.out).map_err(Halt::BadInput)?;
    let outcome = campaign::outcome(header, system);
    let verdicts = &outcome.verdicts;
    let unknown = |(_, verdict): &(_, Verdict)| matches!(verdict, Verdict::Unknown(_));
    let exit = match () {
        () if outcome.failed() => Exit::Violated,
        () if verdicts.0.iter().any(unknown) => Exit::Unknown,
        () => Exit::Valid,
    };
    let kept = (args.keep || exit != Exit::Valid)
        .then(|| shelf.keep(header, &outcome.history))
        .transpose();
    let at = kept.as_ref().ok().and_then(Option::as_ref);
    let at = at.map(|path| path.display().to_string());
    let text = if exit == Exit::Violated {
        failure(&outcome, at.as_deref(), next(&outcome))
    } else {
        let word = if exit == Exit::Valid {
            "valid"
        } else {
            "unknown"
        };
        let events = counted(outcome.history.len() as u64, "event");
        let next = at.map(|file| format!("\n{}", next(&outcome).commands(&file)));
        format!(
            "{word}  {file}  {events}\n\n{}{}",
            others(verdicts),
            next.unwrap_or_default()
        )
    };
    console.out.write_all(text.as_bytes())?;
    kept.map_err(Halt::BadInput)?;
    Ok(exit)
}

/// The first restore that no backup can come before. It is no bad input: a schedule that is
/// drawn may begin with one.
fn restores_nothing(header: &Header) -> Option<usize> {
    let earliest = |entry: &Injection| entry.when.earliest();
    let backups = header
        .schedule
        .iter()
        .filter(|entry| matches!(entry.fault, Fault::Backup { .. }));
    let first = backups.map(earliest).min();
    header.schedule.iter().position(|entry| {
        // A restore that waits for an event may come later than its earliest.
        let at = matches!(entry.when, Trigger::At(_)).then(|| earliest(entry));
        matches!(entry.fault, Fault::Restore { .. })
            && first.is_none_or(|first| at.is_some_and(|at| at < first))
    })
}

/// What a comparison found.
struct Compared {
    outcome: Outcome,
    difference: Option<Difference>,
    /// What the two sides are called.
    sides: (&'static str, &'static str),
    note: &'static str,
}

/// Runs a history's header, and compares with the history.
fn against(suite: &Suite, recording: Recording) -> Result<Compared, Halt> {
    let system = recorder(suite, &recording.header, &recording.file)?;
    let outcome = campaign::outcome(&recording.header, system);
    let ours = serde_json::to_vec(&recording.header).unwrap_or_default();
    let note = match ours == recording.line.trim_ascii() {
        true => "",
        false => " (its header is worded otherwise)",
    };
    Ok(Compared {
        difference: recording.difference(&outcome)?,
        outcome,
        sides: ("history", "run"),
        note,
    })
}

/// Runs a header twice, on two threads.
#[expect(
    clippy::disallowed_methods,
    reason = "the two runs are told apart by name"
)]
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
            before: first,
            now: second,
        });
    Ok(Compared {
        outcome: second,
        difference,
        sides: ("first", "second"),
        note: "",
    })
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
            return format!(
                "identical  {what}  {events}{violated}{}\n{defects}",
                self.note
            );
        };
        let side = |name: &str, line: &Option<String>| match line {
            Some(line) => format!("  {name:<7}  {:>9}  {line}\n", time_of(line)),
            None => format!("  {name:<7}  has ended\n"),
        };
        let before = side(self.sides.0, &difference.before);
        let now = side(self.sides.1, &difference.now);
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

//! `deposed check`: verdicts on recorded histories, each read once, line by line: ours,
//! and those that other tools recorded.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use deposed_checkers::{
    budget::Budget,
    history::{Event, Header},
    import::{self, Format, History, OpenError},
    judge::Judge,
    model::Model,
    reader::{self, Problem, ReadError},
    verdict::{Check, Verdict, Verdicts},
};
use serde::Serialize;

use super::{
    Console, Exit,
    arguments::{CheckArgs, FormatArg},
    follow, names,
};
use crate::report::{
    Halt,
    failure::{Exhibits, Failure, Next, others},
    text::{argument, counted},
};

pub(super) mod foreign;
mod times;
mod until;

use foreign::Foreign;
use until::until;

pub(super) fn check(args: &CheckArgs, console: &mut Console<'_>) -> Result<Exit, Halt> {
    let only: Result<Vec<Check>, Halt> = args.only.iter().map(|name| names::check(name)).collect();
    let only = only?;
    if args.follow {
        return follow::follow(args, &only, console);
    }
    let mut exit = Exit::Valid;
    for (place, path) in args.histories.iter().enumerate() {
        if console.stop.load(Ordering::Relaxed) {
            let all = counted(args.histories.len() as u64, "file");
            console.complain(&format!("interrupted after {place} of {all}"));
            return Ok(exit.and(Exit::Interrupted));
        }
        match judged(path, args, &only, console.stop) {
            Ok(judged) => {
                let text = judged.told(path, args)?;
                console.out.write_all(text.as_bytes())?;
                exit = exit.and(match judged.exit() {
                    Exit::Unknown if console.stop.load(Ordering::Relaxed) => Exit::Interrupted,
                    exit => exit,
                });
            }
            Err(sentence) => {
                console.complain(&sentence);
                exit = Exit::BadInput;
            }
        }
    }
    Ok(exit)
}

/// The name of our own format.
const DEPOSED: &str = "deposed";

/// Why a header alone is not judged.
const NO_EVENTS: &str = "the history holds no events: there is nothing to judge";

/// A history's verdicts.
pub(super) struct Judged {
    file: String,
    events: u64,
    /// Whether it is a file that can be read again: no pipe.
    lasting: bool,
    replayable: bool,
    verdicts: Verdicts,
    /// How another tool's was understood.
    foreign: Option<Foreign>,
}

/// All checks, or these only: those must then come to a verdict. What cannot be read is a
/// sentence.
fn judged(
    path: &Path,
    args: &CheckArgs,
    only: &[Check],
    interrupted: &AtomicBool,
) -> Result<Judged, String> {
    let mut judged = until(args.within, interrupted, |stop| {
        judged_until(path, args, only, stop)
    })?;
    if interrupted.load(Ordering::Relaxed) {
        for (_, verdict) in &mut judged.verdicts.0 {
            if let Verdict::Unknown(why) = verdict {
                *why = "interrupted before it was decided".to_owned();
            }
        }
    }
    Ok(judged)
}

fn judged_until(
    path: &Path,
    args: &CheckArgs,
    only: &[Check],
    stop: &AtomicBool,
) -> Result<Judged, String> {
    let history = match args.format {
        Some(FormatArg::Deposed) => {
            let (header, events) = reader::open(path).map_err(|error| error.to_string())?;
            History::Deposed(Box::new(header), events)
        }
        Some(FormatArg::Of(format)) => {
            import::open(path, Some(format)).map_err(|error| error.to_string())?
        }
        None => import::open(path, None).map_err(unknown)?,
    };
    suits(&history, path, args)?;
    match history {
        History::Deposed(header, events) => {
            own(path, &header, events, args, only, stop).map_err(|error| error.to_string())
        }
        History::Foreign(entries) => {
            let judged = foreign::judged(entries, args, only, stop, || false)?;
            Ok(Judged::of_foreign(path, judged, only))
        }
    }
}

/// Of one of our own histories nothing is told that its header tells.
pub(super) fn suits<R>(history: &History<R>, path: &Path, args: &CheckArgs) -> Result<(), String> {
    let own = matches!(history, History::Deposed(..));
    let path = path.display();
    match args.model {
        _ if own && args.time_unit.is_some() => Err(format!(
            "{path}: one of deposed's own histories, whose times are nanoseconds; leave \
             --time-unit out"
        )),
        _ if own && args.lease.is_some() => Err(format!(
            "{path}: one of deposed's own histories, whose header tells the lease's timing; leave \
             --lease out"
        )),
        Some(model) if own && model != Model::Lease => Err(format!(
            "{path}: one of deposed's own histories, which are of leases, and no {model}; leave \
             --model out"
        )),
        _ => Ok(()),
    }
}

/// Every rule is kept where nothing happened, which says nothing of a system; and what was
/// asked for by name must come to a verdict.
fn decided(mut verdicts: Verdicts, events: u64, only: &[Check]) -> Verdicts {
    for (_, verdict) in &mut verdicts.0 {
        if events == 0 {
            *verdict = Verdict::Unknown(NO_EVENTS.to_owned());
        } else if !only.is_empty() {
            *verdict = verdict.clone().required();
        }
    }
    verdicts
}

/// Of a file that begins like nothing that is known, what could be done.
pub(super) fn unknown(error: OpenError) -> String {
    match error {
        OpenError::Deposed(ReadError {
            file,
            problem: Problem::NotAHistory,
            ..
        }) => {
            let formats = Format::ALL.map(Format::name).join(", ");
            format!(
                "{file}:1: not a deposed history: its first line is not a header like \
                 {{\"deposed\":1,…}}; is this the right file? Another tool's that does not begin \
                 like one is named with --format ({formats})"
            )
        }
        error => error.to_string(),
    }
}

fn own(
    path: &Path,
    header: &Header,
    reader: impl Iterator<Item = Result<Event, ReadError>>,
    args: &CheckArgs,
    only: &[Check],
    stop: &AtomicBool,
) -> Result<Judged, ReadError> {
    let mut judge = judge(header, only).within(budget(args));
    let mut events = 0;
    for event in reader {
        judge.see(&event?);
        events += 1;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let mut judged = Judged::of(path, header, events, judge, only);
    if stop.load(Ordering::Relaxed) {
        cut_off(&mut judged.verdicts, events);
    }
    Ok(judged)
}

/// What was not found by then is not known.
fn cut_off(verdicts: &mut Verdicts, seen: u64) {
    for (_, verdict) in &mut verdicts.0 {
        if !matches!(verdict, Verdict::Violated(_)) {
            *verdict = Verdict::Unknown(format!(
                "the time was over (--for) when {seen} lines were judged"
            ));
        }
    }
}

/// What a judgement may take.
pub(super) fn budget(args: &CheckArgs) -> Budget {
    Budget {
        bytes: args.max_memory,
        steps: args.max_steps.get(),
        ..Budget::default()
    }
}

/// A judge of all checks, or of these only.
pub(super) fn judge(header: &Header, only: &[Check]) -> Judge {
    match only {
        [] => Judge::new(header),
        only => Judge::of(header, only),
    }
}

impl Judged {
    /// What a judge says who has seen so many events of a file.
    pub(super) fn of(
        path: &Path,
        header: &Header,
        events: u64,
        judge: Judge,
        only: &[Check],
    ) -> Self {
        let needed = ["cluster", "schedule"];
        Judged {
            file: path.display().to_string(),
            events,
            lasting: path.is_file(),
            replayable: needed.iter().all(|part| header.rest.contains_key(*part)),
            verdicts: decided(judge.finish(), events, only),
            foreign: None,
        }
    }

    /// What is said of another tool's history.
    pub(super) fn of_foreign(path: &Path, mut foreign: Foreign, only: &[Check]) -> Self {
        let verdicts = std::mem::replace(&mut foreign.verdicts, Verdicts(Vec::new()));
        Judged {
            file: path.display().to_string(),
            events: foreign.entries,
            lasting: foreign::lasting(path),
            replayable: false,
            verdicts: decided(verdicts, foreign.entries, only),
            foreign: Some(foreign),
        }
    }

    /// The text or the object that is printed.
    pub(super) fn told(&self, path: &Path, args: &CheckArgs) -> Result<String, Halt> {
        match args.json {
            true => Ok(self.json()? + "\n"),
            false => Ok(self.text(path, args.format)),
        }
    }

    pub(super) fn exit(&self) -> Exit {
        let exits = self.verdicts.0.iter().map(|(_, verdict)| match verdict {
            Verdict::Valid | Verdict::NotClaimed(_) => Exit::Valid,
            Verdict::Violated(_) => Exit::Violated,
            Verdict::Unknown(_) => Exit::Unknown,
        });
        exits.fold(Exit::Valid, Exit::and)
    }

    /// The gravest of the checks' words; `not-claimed` only when nothing was claimed.
    fn word(&self) -> &'static str {
        let verdicts = || self.verdicts.0.iter().map(|(_, verdict)| verdict.word());
        let gravest = ["violated", "unknown", "valid"];
        let found = gravest
            .into_iter()
            .find(|word| verdicts().any(|said| said == *word));
        found.unwrap_or("not-claimed")
    }

    fn json(&self) -> Result<String, Halt> {
        let foreign = self.foreign.as_ref();
        let claims = foreign.map(|foreign| foreign.claims(&self.verdicts));
        let claims = claims.as_ref().unwrap_or(&self.verdicts);
        let checks = claims.0.iter().map(|(check, verdict)| JsonCheck {
            check: *check,
            verdict: verdict.word(),
            evidence: match verdict {
                Verdict::Violated(evidence) => Some(JsonEvidence {
                    sentence: &evidence.sentence,
                    events: &evidence.events,
                    culprit: evidence.culprit,
                    expected: &evidence.expected,
                    reckoning: &evidence.reckoning,
                }),
                _ => None,
            },
            why: match verdict {
                Verdict::NotClaimed(why) | Verdict::Unknown(why) => Some(why),
                _ => None,
            },
        });
        let object = Json {
            file: &self.file,
            format: foreign.map_or(DEPOSED, |foreign| foreign.format.name()),
            model: foreign.map_or(Model::Lease, |foreign| foreign.model).name(),
            left_out: foreign.map_or(&[], |foreign| &foreign.left_out),
            verdict: self.word(),
            checks: checks.collect(),
        };
        serde_json::to_string(&object).map_err(|error| Halt::BadInput(error.to_string()))
    }

    fn text(&self, path: &Path, format: Option<FormatArg>) -> String {
        if let Some(foreign) = &self.foreign {
            let format = format.and_then(FormatArg::foreign);
            return foreign.text(&self.verdicts, self.word(), path, format);
        }
        if self.verdicts.violated().next().is_none() {
            let (word, events) = (self.word(), counted(self.events, "event"));
            if self.events == 0 {
                let file = &self.file;
                let next = match self.replayable && self.lasting {
                    true => format!("\n  replay   deposed replay {}\n", argument(file)),
                    false => String::new(),
                };
                return format!("{word}  {file}  {events}\n\n  {NO_EVENTS}\n{next}\n");
            }
            let others = others(&self.verdicts);
            return format!("{word}  {}  {events}\n\n{others}\n", self.file);
        }
        let mut exhibits = Exhibits::of(&self.verdicts);
        // What changed meanwhile is shown by its indices alone.
        if self.lasting && show(path, &mut exhibits).is_err() {
            exhibits = Exhibits::of(&self.verdicts);
        }
        let failure = Failure {
            title: &self.file,
            defects: &[],
            verdicts: &self.verdicts,
            exhibits,
            file: self.lasting.then_some(&*self.file),
            next: match self.replayable {
                true => Next::Shrink,
                false => Next::Look,
            },
        };
        failure.text() + "\n"
    }
}

/// Reads the history again, as far as its evidence goes: what the evidence will be is
/// known only at the end, and a history need not fit in memory.
fn show(path: &Path, exhibits: &mut Exhibits) -> Result<(), ReadError> {
    let (_, events) = reader::open(path)?;
    for event in events {
        let event = event?;
        exhibits.see(&event);
        // What follows may be half written.
        if exhibits.complete(event.index + 1) {
            break;
        }
    }
    Ok(())
}

/// What `--json` prints of a history.
#[derive(Serialize)]
struct Json<'a> {
    file: &'a str,
    format: &'a str,
    model: &'a str,
    /// What the format's reader made nothing of.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    left_out: &'a [String],
    verdict: &'a str,
    checks: Vec<JsonCheck<'a>>,
}

#[derive(Serialize)]
struct JsonCheck<'a> {
    check: Check,
    verdict: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<JsonEvidence<'a>>,
    /// Why a check claims nothing, or could not decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonEvidence<'a> {
    sentence: &'a str,
    events: &'a [u64],
    /// Which of them is wrong.
    culprit: u64,
    /// What should have been there instead.
    expected: &'a str,
    /// Where clocks decide it, their arithmetic.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    reckoning: &'a [String],
}

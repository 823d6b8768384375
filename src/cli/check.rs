//! `deposed check`: verdicts on recorded histories, each read once, line by line.

use std::path::Path;

use deposed_checkers::{
    history::Header,
    judge::Judge,
    reader::{self, ReadError},
    verdict::{Check, Verdict, Verdicts},
};
use serde::Serialize;

use super::{Console, Exit, arguments::CheckArgs, follow, names};
use crate::report::{
    Halt,
    failure::{Exhibits, Failure, Next, others},
    text::{argument, counted},
};

pub(super) fn check(args: &CheckArgs, console: &mut Console<'_>) -> Result<Exit, Halt> {
    let only: Result<Vec<Check>, Halt> = args.only.iter().map(|name| names::check(name)).collect();
    let only = only?;
    if args.follow {
        return follow::follow(args, &only, console);
    }
    let mut exit = Exit::Valid;
    for path in &args.histories {
        match judged(path, &only) {
            Ok(judged) => {
                let text = judged.told(path, args.json)?;
                console.out.write_all(text.as_bytes())?;
                exit = exit.and(judged.exit());
            }
            Err(error) => {
                console.complain(&error.to_string());
                exit = Exit::BadInput;
            }
        }
    }
    Ok(exit)
}

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
}

/// All checks, or these only: those must then come to a verdict.
fn judged(path: &Path, only: &[Check]) -> Result<Judged, ReadError> {
    let (header, reader) = reader::open(path)?;
    let mut judge = judge(&header, only);
    let mut events = 0;
    for event in reader {
        judge.see(&event?);
        events += 1;
    }
    Ok(Judged::of(path, &header, events, judge, only))
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
        let mut verdicts = judge.finish();
        for (_, verdict) in &mut verdicts.0 {
            if events == 0 {
                // Every rule is kept where nothing happened: that says nothing of a system.
                *verdict = Verdict::Unknown(NO_EVENTS.to_owned());
            } else if !only.is_empty() {
                *verdict = verdict.clone().required();
            }
        }
        let needed = ["cluster", "schedule"];
        Judged {
            file: path.display().to_string(),
            events,
            lasting: path.is_file(),
            replayable: needed.iter().all(|part| header.rest.contains_key(*part)),
            verdicts,
        }
    }

    /// The text or the object that is printed.
    pub(super) fn told(&self, path: &Path, json: bool) -> Result<String, Halt> {
        match json {
            true => Ok(self.json()? + "\n"),
            false => Ok(self.text(path)),
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
        let checks = self.verdicts.0.iter().map(|(check, verdict)| JsonCheck {
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
            verdict: self.word(),
            checks: checks.collect(),
        };
        serde_json::to_string(&object).map_err(|error| Halt::BadInput(error.to_string()))
    }

    fn text(&self, path: &Path) -> String {
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
        if exhibits.complete(event.index) {
            break;
        }
        exhibits.see(&event);
    }
    Ok(())
}

/// What `--json` prints of a history.
#[derive(Serialize)]
struct Json<'a> {
    file: &'a str,
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

//! Why a history and a run of its header are not the same: edited, cut short, or another
//! run altogether.

use deposed_checkers::{
    history::Event,
    judge::Judge,
    verdict::{Check, Verdicts},
    writer::event_line,
};

use super::recorded::{Difference, Recording};
use crate::{
    report::{Halt, text::counted},
    run::Outcome,
};

/// How a history departs from the run of its header.
pub(super) struct Departure {
    first: Difference,
    /// How the history goes on from there.
    way: Way,
    /// What the checks say of either.
    history: Vec<Check>,
    run: Vec<Check>,
}

enum Way {
    /// Its header, or this line of it, is worded as this version words none.
    Worded(u64),
    /// It ends, and the run goes on.
    Ends,
    /// This event is the last that differs: after it both are the same to the end.
    Rejoins(usize),
    /// It is another.
    Differs,
}

impl Departure {
    /// Of a history from the run of its header; `None` where it is the same.
    pub(super) fn of(mut recording: Recording, run: &Outcome) -> Result<Option<Self>, Halt> {
        let ours = serde_json::to_vec(&run.header).unwrap_or_default();
        let mut worded = (ours != recording.line).then_some(1);
        let (mut judge, mut first, mut last) = (None, None, 0);
        let mut length = 0;
        for index in 0.. {
            let before = recording.next_event()?;
            let now = run.history.get(index);
            let Some((event, line)) = before else {
                if let Some(now) = now.filter(|_| first.is_none()) {
                    first = Some(Difference {
                        index,
                        before: None,
                        now: Some(event_line(now)),
                    });
                }
                break;
            };
            length = index + 1;
            let now = now.map(event_line);
            if now.as_deref().map(str::as_bytes) != Some(&line) {
                last = index;
                if event_line(&event).as_bytes() != line {
                    worded = worded.or(Some(index as u64 + 2));
                }
                if first.is_none() {
                    let mut begun = Judge::new(&recording.judged);
                    let same: &[Event] = run.history.get(..index).unwrap_or_default();
                    same.iter().for_each(|event| begun.see(event));
                    judge = Some(begun);
                    let before = Some(String::from_utf8_lossy(&line).into_owned());
                    first = Some(Difference { index, before, now });
                }
            }
            if let Some(judge) = &mut judge {
                judge.see(&event);
            }
        }
        let Some(first) = first else {
            return Ok(None);
        };
        let way = match worded {
            Some(line) => Way::Worded(line),
            None if first.before.is_none() => Way::Ends,
            None if length == run.history.len() && last + 1 < length => Way::Rejoins(last),
            None => Way::Differs,
        };
        let history = match judge {
            Some(judge) => violated(&judge.finish()),
            // It is the beginning of the run.
            None => {
                let mut judge = Judge::new(&recording.judged);
                let same = run.history.iter().take(length);
                same.for_each(|event| judge.see(event));
                violated(&judge.finish())
            }
        };
        Ok(Some(Self {
            first,
            way,
            history,
            run: violated(&run.verdicts),
        }))
    }

    /// What is otherwise, what the checks make of it, and what to do, in one sentence.
    pub(super) fn sentence(&self, file: &str) -> String {
        let Difference { index, before, now } = &self.first;
        let side = |line: &Option<String>| line.as_deref().unwrap_or("the end").to_owned();
        let (was, is) = (side(before), side(now));
        let why = match self.way {
            Way::Worded(1) => format!(
                "its header is not worded as this version words one, so that it was edited by hand, \
                 or made by another tool or version, and event {index} was {was} and is {is} now"
            ),
            Way::Worded(line) => format!(
                "line {line} is not worded as this version words an event, so that it was edited \
                 by hand, or made by another tool or version, and event {index} was {was} and is {is} now"
            ),
            Way::Ends => format!(
                "it is cut short: it ends after {}, and the run goes on with {is}",
                counted(*index as u64, "event")
            ),
            Way::Rejoins(last) if last == *index => format!(
                "event {index} was edited by hand: it was {was} and is {is} now, and all before \
                 and after it are the same"
            ),
            Way::Rejoins(last) => format!(
                "events {index} to {last} were edited by hand: the first was {was} and is {is} \
                 now, and all before and after them are the same"
            ),
            Way::Differs => format!(
                "event {index} was {was} and is {is} now: another version of the system recorded \
                 it, or its header was edited since"
            ),
        };
        let named = |checks: &[Check]| match checks {
            [] => "nothing".to_owned(),
            checks => {
                let names: Vec<&str> = checks.iter().map(|check| check.name()).collect();
                names.join(" and ")
            }
        };
        let (run, history) = (named(&self.run), named(&self.history));
        let judged = match run == history {
            true => format!("the run violates {run} as the history does"),
            false => format!("the run violates {run}, and the history {history}"),
        };
        format!(
            "{file}: does not reproduce: {why}; {judged}; for the run take its header alone, the \
             first line in a file of its own"
        )
    }
}

fn violated(verdicts: &Verdicts) -> Vec<Check> {
    verdicts.violated().map(|(check, _)| check).collect()
}

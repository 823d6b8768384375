//! What is told of a history that nobody has told yet: what struck it, and what came of it.

use std::collections::BTreeSet;

use deposed_checkers::history::{Body, Event, NEMESIS};

use crate::{
    report::{
        text::counted,
        words::{self, time},
    },
    run::Outcome,
};

/// As many faults as a sentence names.
const NAMED: usize = 3;

/// A story of a run: the faults that struck it until the first thing that was wrong (the
/// last few, where there are many), what the checks say of it, or what was seen though none
/// is violated, and the planted flaw.
pub fn of(outcome: &Outcome) -> String {
    let mut violated = outcome.verdicts.violated();
    let first = violated.next();
    let until = first.map_or(u64::MAX, |(_, evidence)| evidence.culprit);
    let mut story = struck(outcome, until);
    match first {
        Some((_, evidence)) => story += &format!(", {}", evidence.sentence),
        None => {
            let seen: Vec<&str> = outcome.marks.iter().map(|mark| mark.story()).collect();
            story += match seen.is_empty() {
                true => ", no check is violated".to_owned(),
                false => format!(", no check is violated, though {}", enumerated(&seen)),
            }
            .as_str();
        }
    }
    for (_, evidence) in violated {
        story += &format!("; {}", evidence.sentence);
    }
    story.push('.');
    if let Some(flaw) = outcome.header.flaw {
        story += &format!(" The planted flaw is {flaw}. {}", flaw.story());
    }
    story
}

/// `With 2 faults (0.005s pause a for 400ms, then 0.1s crash store for 0s)`.
fn struck(outcome: &Outcome, until: u64) -> String {
    let scheduled = outcome.header.schedule.iter();
    let scheduled: BTreeSet<&str> = scheduled.map(|entry| entry.fault.name()).collect();
    let fault = |event: &Event| match &event.body {
        Body::Nemesis(name, value)
            if event.process == NEMESIS && scheduled.contains(name.as_str()) =>
        {
            Some(format!(
                "{} {}",
                time(event.time),
                words::fault(name, value)
            ))
        }
        _ => None,
    };
    let by_then = outcome
        .history
        .iter()
        .take_while(|event| event.index <= until);
    let all: Vec<String> = by_then.filter_map(fault).collect();
    let last = all.get(all.len().saturating_sub(NAMED)..).unwrap_or(&all);
    let named = last.join(", then ");
    match all.len() {
        0 => "Without any fault".to_owned(),
        many @ ..=NAMED => format!("With {} ({named})", counted(many as u64, "fault")),
        many => format!("After {many} faults (the last are {named})"),
    }
}

/// `a, b and c`.
fn enumerated(all: &[&str]) -> String {
    match all {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        campaign,
        fault::{Fault, Injection, Target, Trigger},
        run::Header,
        system::{Deposed, System},
        workload::{MS, Workload},
    };

    fn told(pauses: u64) -> String {
        let workload = Workload::named("w");
        let mut header = Header::of(&workload, 0, "deposed", None);
        header.schedule = (0..pauses)
            .map(|nth| Injection {
                when: Trigger::At((400 + 10 * nth) * MS),
                fault: Fault::Pause {
                    target: Target::Store,
                    length: MS,
                },
            })
            .collect();
        (header.chaos, header.calm) = (500 * MS, 0);
        let system: Arc<dyn System> = Arc::new(Deposed);
        of(&campaign::outcome(&header, &system))
    }

    #[test]
    fn a_run_is_told_by_what_struck_it_and_what_was_seen() {
        let seen = ", no check is violated, though a leader wrote.";
        assert_eq!(told(0), format!("Without any fault{seen}"));
        let one = format!("With 1 fault (0.400s pause store for 1ms){seen}");
        assert_eq!(told(1), one);
        let last = "0.420s pause store for 1ms, then 0.430s pause store for 1ms, then 0.440s pause \
                    store for 1ms";
        let five = told(5);
        assert_eq!(five, format!("After 5 faults (the last are {last}){seen}"));
    }
}

//! A counterexample: what is wrong with it, and the run that shows it.

use std::sync::Arc;

use deposed_checkers::{judge::judge, verdict::Check};

use crate::{
    flaw::Flaw,
    prove::{Broken, History, Rehearsed, Scope, Story, rehearse},
    report::{
        Halt,
        failure::{Exhibits, Failure, Next},
        shelf::Shelf,
    },
    system::{Deposed, System},
};

/// What is wrong with the history.
pub(super) fn failure(broken: Broken, title: &str, history: &History) -> String {
    let verdicts = judge(&history.header, &history.events);
    let mut exhibits = Exhibits::of(&verdicts);
    history.events.iter().for_each(|event| exhibits.see(event));
    let defects = match broken {
        Broken::Inductive(inductive) => vec![format!("it is not so that {inductive}")],
        Broken::Premise(premise) => vec![format!("it is not so that {premise}")],
        Broken::Check(_) => Vec::new(),
    };
    let failure = Failure {
        title,
        defects: &defects,
        verdicts: &verdicts,
        exhibits,
        file: None,
        next: Next::Look,
    };
    failure.text()
}

/// The counterexample in a simulation, kept, and how to go on from there. Where no run shows
/// it the story's own history is kept.
pub(super) fn shown(
    scope: &Scope,
    flaw: Option<Flaw>,
    broken: Broken,
    (story, history): (&Story, &History),
    shelf: &Shelf,
) -> Result<String, Halt> {
    let rehearsed = match broken {
        Broken::Check(check) => Some(rehearsed(story, scope, flaw, check)),
        Broken::Inductive(_) | Broken::Premise(_) => None,
    };
    if let Some(Rehearsed {
        outcome,
        convicted: true,
        runs,
    }) = &rehearsed
    {
        let kept = shelf.keep(&outcome.header, &outcome.history);
        let file = kept.map_err(Halt::BadInput)?.display().to_string();
        let tries = match runs {
            1 => String::new(),
            runs => format!(", the last of {runs} that were tried"),
        };
        let next = Next::Shrink.commands(&file);
        return Ok(format!(
            "{broken} convicts a simulated run that goes the same way, too{tries}:\n{next}"
        ));
    }
    let first = serde_json::to_string(&history.header);
    let first = first.map_err(|error| Halt::BadInput(error.to_string()))?;
    let name = match flaw {
        Some(flaw) => format!("prove-{flaw}-story"),
        None => "prove-story".to_owned(),
    };
    let kept = shelf.keep_lines(&name, &first, &history.events);
    let file = kept.map_err(Halt::BadInput)?.display().to_string();
    let why = match rehearsed {
        None => "no check judges that, and so no simulated run can show it".to_owned(),
        Some(Rehearsed { runs, .. }) => format!(
            "MISMATCH: none of {runs} simulated runs that were to go the same way is convicted by \
             {broken}; the search, the simulation or the translation between them is wrong"
        ),
    };
    Ok(format!(
        "{why}; the history above is kept:\n{}",
        Next::Look.commands(&file)
    ))
}

pub(super) fn rehearsed(
    story: &Story,
    scope: &Scope,
    flaw: Option<Flaw>,
    check: Check,
) -> Rehearsed {
    let system: Arc<dyn System> = Arc::new(Deposed);
    rehearse(story, scope, flaw, check, &system)
}

//! `deposed prove --flaws`: what a search makes of each planted flaw, a line each.

use std::sync::atomic::Ordering;

use super::{ProveArgs, search, shown::rehearsed};
use crate::{
    cli::{Console, Exit, names},
    flaw::Flaw,
    prove::{Broken, End, Expected, Scope, expected, rules_for, scope_of},
    report::Halt,
    system::Deposed,
};

pub(super) fn every_flaw(
    bounds: &Scope,
    args: &ProveArgs,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    names::flaw(Flaw::ALL[0].name(), &Deposed)?;
    let widest = Flaw::ALL.iter().map(|flaw| flaw.name().len()).max();
    let width = widest.unwrap_or(0);
    writeln!(
        console.out,
        "{:width$}  {:21}  actions    states    time  shown by run",
        "flaw", "breaks"
    )?;
    let mut exit = Exit::Valid;
    for &flaw in Flaw::ALL {
        if console.stop.load(Ordering::Relaxed) {
            return Ok(exit.and(Exit::Interrupted));
        }
        if let Expected::Outside(why) = expected(flaw) {
            writeln!(console.out, "{flaw:width$}  outside: {why}")?;
            continue;
        }
        let scope = scope_of(flaw, bounds);
        let found = search(&scope, rules_for(Some(flaw)), args, console);
        let mut shown = String::new();
        let (breaks, actions) = match &found.end {
            End::Broken(broken, story) => {
                if let Broken::Check(check) = broken {
                    let rehearsed = rehearsed(story, &scope, Some(flaw), *check);
                    shown = match rehearsed.convicted {
                        true => format!("  {:12}", rehearsed.runs),
                        false => {
                            exit = exit.and(Exit::Violated);
                            "          none".to_owned()
                        }
                    };
                }
                (broken.to_string(), story.actions.len())
            }
            End::Holds => ("nothing".to_owned(), found.depth),
            _ => {
                exit = exit.and(Exit::Unknown);
                ("unknown".to_owned(), found.depth)
            }
        };
        writeln!(
            console.out,
            "{flaw:width$}  {breaks:21}  {actions:7}  {:8}  {:4.1} s{shown}",
            found.states,
            found.took.as_secs_f64()
        )?;
        console.out.flush()?;
    }
    Ok(exit)
}

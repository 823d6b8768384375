//! `deposed prove`: every state that a small world can reach, and what must hold in each.

mod coverage;
mod every_flaw;
mod shown;

use std::num::NonZero;

use super::{Console, Exit, arguments::ProveArgs, names};
use crate::{
    flaw::Flaw,
    parallel::all_cores,
    prove::{
        End, Expected, Found, LEAST_MEMORY, Rules, Scope, Search, expected, history, least_memory,
        least_states, rules_for, scope_of,
    },
    report::{
        Halt,
        shelf::Shelf,
        text::{Timeline, counted},
    },
    system::Deposed,
};
use coverage::coverage;
use every_flaw::every_flaw;
use shown::{failure, shown};

pub(super) fn prove(args: &ProveArgs, console: &mut Console<'_>) -> Result<Exit, Halt> {
    // What is wrong with a flaw shows with two, and far sooner.
    let flawed = args.flaw.is_some() || args.flaws;
    let bounds = Scope {
        clients: args.clients,
        ttl: args.ttl,
        in_flight: args.in_flight.unwrap_or(if flawed { 2 } else { 3 }),
        drift: args.drift,
        ..Scope::default()
    };
    bounds.validate().map_err(Halt::BadInput)?;
    if args.max_memory < LEAST_MEMORY {
        let least = LEAST_MEMORY / 1_000_000;
        return Err(Halt::BadInput(format!(
            "no search fits into so little memory: give {least}MB or more with --max-memory"
        )));
    }
    if args.flaws {
        return every_flaw(&bounds, args, console);
    }
    // Before a long search is made for nothing.
    let shelf = Shelf::open(&args.out).map_err(Halt::BadInput)?;
    let flaw = args.flaw.as_deref();
    let flaw = flaw.map(|name| names::flaw(name, &Deposed)).transpose()?;
    if let Some(flaw) = flaw
        && let Expected::Outside(why) = expected(flaw)
    {
        return Err(Halt::BadInput(format!(
            "the flaw '{flaw}' cannot show in this search: {why}; `deposed flaws {flaw}` hunts it \
             in simulations"
        )));
    }
    let scope = flaw.map_or(bounds.clone(), |flaw| scope_of(flaw, &bounds));
    let least = least_memory(&scope);
    // What is wrong with a flaw shows long before every state was visited.
    if flaw.is_none() && args.max_memory < least {
        return Err(Halt::BadInput(format!(
            "{} and a ttl of {} make {} states at the least, which take {} MB: give more with \
             --max-memory, or smaller bounds",
            counted(scope.clients as u64, "client"),
            scope.ttl,
            least_states(&scope),
            least.div_ceil(1_000_000)
        )));
    }
    let found = search(&scope, rules_for(flaw), args, console);
    told(&scope, flaw, &found, &shelf, console)
}

fn search(scope: &Scope, rules: Rules, args: &ProveArgs, console: &Console<'_>) -> Found {
    let jobs = args
        .jobs
        .and_then(|jobs| NonZero::<usize>::try_from(jobs).ok());
    let search = Search {
        scope: scope.clone(),
        rules,
        jobs: jobs.unwrap_or_else(all_cores),
        max_memory: args.max_memory,
        within: args.within,
        max_depth: usize::MAX,
        stop: console.stop,
    };
    search.run()
}

fn told(
    scope: &Scope,
    flaw: Option<Flaw>,
    found: &Found,
    shelf: &Shelf,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let world = world(scope, flaw);
    let cost = cost(found);
    let exit = match &found.end {
        End::Broken(broken, story) => {
            let history = history(scope, flaw, story);
            let mut timeline = Timeline::new(console.screen.colour);
            for event in &history.events {
                writeln!(console.out, "{}", timeline.line(event))?;
            }
            let title = format!("{broken}  {world}");
            let failure = failure(*broken, &title, &history);
            write!(console.out, "\n{failure}")?;
            let actions = counted(story.actions.len() as u64, "action");
            writeln!(console.out, "\n{actions}, and no fewer lead there; {cost}")?;
            console.out.flush()?;
            let shown = shown(scope, flaw, *broken, (story, &history), shelf)?;
            write!(console.out, "\n{shown}")?;
            return Ok(Exit::Violated);
        }
        End::Holds => {
            writeln!(console.out, "holds  {world}\n\n{cost}: all that there are")?;
            let [stores, storages, clients] = found.nodes;
            writeln!(
                console.out,
                "what is left out because the cores would refuse or ignore it was asked of them: in \
                 {stores} states of the store, {storages} of storage, {clients} of a client"
            )?;
            Exit::Valid
        }
        End::Deep | End::OutOfTime => {
            writeln!(
                console.out,
                "UNKNOWN  {world}\n\n{cost}: then the time was over; {MORE}"
            )?;
            Exit::Unknown
        }
        End::OutOfMemory => {
            let more = "give more with --max-memory, or smaller bounds";
            writeln!(
                console.out,
                "UNKNOWN  {world}\n\n{cost}: then the memory was full; {more}"
            )?;
            Exit::Unknown
        }
        End::Stopped => {
            writeln!(
                console.out,
                "UNKNOWN  {world}\n\n{cost}: then it was interrupted"
            )?;
            Exit::Interrupted
        }
    };
    coverage(scope, exit == Exit::Valid, found.depth, console)?;
    Ok(exit)
}

const MORE: &str = "give more with --for, or smaller bounds";

fn world(scope: &Scope, flaw: Option<Flaw>) -> String {
    let mut world = format!(
        "{}, ttl {}, {} in flight, drift {}",
        counted(scope.clients as u64, "client"),
        scope.ttl,
        scope.in_flight,
        scope.drift
    );
    if scope.lock_delay > 0 {
        world += &format!(", lock-delay {}", scope.lock_delay);
    }
    if let Some(flaw) = flaw {
        world += &format!(", flaw {flaw}");
    }
    world
}

fn cost(found: &Found) -> String {
    format!(
        "{} states, {} deep, {} steps between them, in {:.1} s and at most {} MB",
        found.states,
        counted(found.depth as u64, "action"),
        found.steps,
        found.took.as_secs_f64(),
        found.memory.div_ceil(1_000_000),
    )
}

#[cfg(test)]
mod tests;

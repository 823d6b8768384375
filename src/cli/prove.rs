//! `deposed prove`: every state that a small world can reach, and what must hold in each.

use std::{
    num::NonZero,
    sync::{Arc, atomic::Ordering},
};

use deposed_checkers::{judge::judge, verdict::Check};

use super::{Console, Exit, arguments::ProveArgs, names};
use crate::{
    flaw::Flaw,
    parallel::all_cores,
    prove::{
        Broken, End, Expected, Found, History, Inductive, JUDGED, Rehearsed, Rules, Scope, Search,
        Story, expected, history, rehearse, rules_for, scope_of,
    },
    report::{
        Halt,
        failure::{Exhibits, Failure, Next},
        shelf::Shelf,
        text::{Timeline, counted},
    },
    system::{Deposed, System},
};

/// The least that a search can begin with.
const LEAST_MEMORY: u64 = 1_000_000;

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
        let sentence = "no search fits into so little memory: give 1MB or more with --max-memory";
        return Err(Halt::BadInput(sentence.to_owned()));
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
    coverage(scope, exit == Exit::Valid, console)?;
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
        "{} states, {} deep, {} steps between them, in {:.1} s and {} MB",
        found.states,
        counted(found.depth as u64, "action"),
        found.steps,
        found.took.as_secs_f64(),
        found.memory.div_ceil(1_000_000),
    )
}

/// What is wrong with the history.
fn failure(broken: Broken, title: &str, history: &History) -> String {
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
fn shown(
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

fn rehearsed(story: &Story, scope: &Scope, flaw: Option<Flaw>, check: Check) -> Rehearsed {
    let system: Arc<dyn System> = Arc::new(Deposed);
    rehearse(story, scope, flaw, check, &system)
}

/// What a search of these bounds is worth, in words.
fn coverage(scope: &Scope, all: bool, console: &mut Console<'_>) -> Result<(), Halt> {
    // Without a lock-delay there is nothing that could break it.
    let owed = |check: &&Check| **check != Check::LockDelay || scope.lock_delay > 0;
    let checks = JUDGED.iter().filter(owed).map(|check| check.name());
    let checks: Vec<&str> = checks.collect();
    let inductive = Inductive::ALL.map(|inductive| format!("             {inductive}\n"));
    let clocks = match scope.drift.every() {
        None => "clocks that run alike".to_owned(),
        Some(every) => format!("clients' clocks that skip any one tick in {every}"),
    };
    let so_far = if all { "in each state" } else { "so far" };
    write!(
        console.out,
        "\ncovered      messages late, in any order, lost, and again and again; clients paused for \
         any time;\n             clients, store and storage that crash and come back at any \
         time; leaders that resign;\n             {clocks}\nheld         {}, {so_far}\nand why      \
         {}not covered  liveness; more clients, longer leases, more messages in flight; a second \
         lease,\n             key, or change in a term; disks that lose what was synced, or are \
         put back;\n             wall clocks, suspend; the async shells around the cores; other \
         storages\n",
        checks.join(", "),
        inductive.concat().trim_start(),
    )?;
    Ok(())
}

fn every_flaw(bounds: &Scope, args: &ProveArgs, console: &mut Console<'_>) -> Result<Exit, Halt> {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::cli::{Suite, run};
    use crate::system::Deposed;

    fn deposed(args: &str) -> (u8, String, String) {
        let suite = Suite {
            workloads: Vec::new(),
            systems: vec![Arc::new(Deposed)],
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let args = std::iter::once("deposed").chain(args.split(' '));
        let code = run(&suite, args, &mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (code, text(out), text(err))
    }

    #[test]
    fn bad_bounds_are_told_in_one_sentence() {
        for (args, sentence) in [
            ("--clients 0", "0 clients cannot be searched: give 1 to 4"),
            (
                "--in-flight 7",
                "7 messages in flight cannot be searched: give 1 to 6",
            ),
            (
                "--ttl 0",
                "a ttl of 0 ticks cannot be searched: give 1 to 30",
            ),
            ("--drift 1/1", "stands still; give a drift below 1"),
            ("--drift 3/4", "one tick in so many that a clock may skip"),
            (
                "--ttl 1 --drift 1/2",
                "leaves nothing of a ttl of 1 to lead in",
            ),
            ("--max-memory 12", "no search fits into so little memory"),
            ("--max-memory much", "give a number and a unit: 512MB, 2GB"),
            ("--flaw no-barier", "did you mean 'no-barrier'?"),
        ] {
            let (code, out, err) = deposed(&format!("prove {args}"));
            assert_eq!((code, out.as_str()), (2, ""), "{args}");
            assert!(err.contains(sentence), "{args}: {err}");
            assert_eq!(err.lines().count(), 1, "{args}: {err}");
        }
    }

    #[test]
    fn what_holds_says_what_was_covered_and_what_was_not() {
        let (code, out, _) = deposed("prove --ttl 1 --in-flight 1");
        assert_eq!(code, 0, "{out}");
        assert!(
            out.starts_with("holds  2 clients, ttl 1, 1 in flight, drift 0\n"),
            "{out}"
        );
        for words in [
            "all that there are",
            "belief-safety",
            "not covered  liveness",
        ] {
            assert!(out.contains(words), "{words}: {out}");
        }
    }

    #[test]
    fn a_search_that_is_not_over_is_unknown() {
        let (code, out, _) = deposed("prove --for 0s");
        assert_eq!(code, 3, "{out}");
        assert!(
            out.starts_with("UNKNOWN  ") && !out.contains("holds"),
            "{out}"
        );
        assert!(
            out.contains("held         ") && out.contains("so far"),
            "{out}"
        );
        let (code, out, _) = deposed("prove --max-memory 1MB");
        assert_eq!(code, 3, "{out}");
        assert!(out.contains("then the memory was full"), "{out}");
    }

    #[cfg(feature = "flaws")]
    #[test]
    fn a_counterexample_is_shown_judged_and_kept_as_a_run_that_replays() {
        let dir = std::env::temp_dir().join(format!("deposed-prove-{}", std::process::id()));
        let at = dir.to_str().expect("a path in UTF-8");
        let prove = format!("prove --flaw count-from-reply --out {at}");
        let (code, out, err) = deposed(&prove);
        assert_eq!(code, 1, "{out}{err}");
        let (_, failure) = out
            .split_once("\n\n")
            .expect("the history, then what is wrong");
        assert!(failure.starts_with("FAILED  belief-safety  "), "{failure}");
        assert!(
            failure.contains("9 actions, and no fewer lead there"),
            "{failure}"
        );
        let file = format!("{at}/prove-count-from-reply-0.jsonl");
        let replay = format!("\n  replay   deposed replay {file}\n");
        assert!(failure.contains(&replay), "{failure}");
        let (code, replayed, err) = deposed(&format!("replay {file}"));
        assert_eq!(code, 0, "{replayed}{err}");
        assert!(replayed.starts_with("identical  "), "{replayed}");
        assert!(replayed.contains("belief-safety violated"), "{replayed}");
        assert_eq!(deposed(&format!("check {file}")).0, 1);
        assert_eq!(
            deposed(&prove).1.lines().last(),
            out.lines().last(),
            "the same file"
        );
        std::fs::remove_dir_all(&dir).expect("its end");
        std::fs::write(&dir, "in the way").expect("room");
        let (code, out, err) = deposed(&prove);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains("histories cannot be kept in"), "{err}");
        std::fs::remove_file(&dir).expect("its end");
    }

    #[cfg(feature = "flaws")]
    #[test]
    fn a_flaw_outside_the_model_is_told_with_the_reason() {
        let (code, _, err) = deposed("prove --flaw token-per-key");
        assert_eq!(code, 2);
        assert!(err.contains("it needs two keys"), "{err}");
    }
}

//! What a shell completes: commands, options, files, and the names that this suite has.
//!
//! The shell's script asks the binary whenever a key is pressed. A script that holds all
//! words itself completes no workload in fish and nothing behind a comma in any shell, and
//! does not know the workload of tomorrow. The engine's interface is not yet stable: the
//! lock file holds it, and a test presses the key in each shell. Nobody else pays: any other
//! command only looks whether a variable is set.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{
    Arg, Command, CommandFactory,
    builder::{PossibleValue, PossibleValuesParser},
};
use clap_complete::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, Shell,
    engine::ValueCompleter,
    env::{CompleteEnv, Shells},
};
use deposed_checkers::verdict::Check;

use super::{Console, Exit, Suite, arguments::Arguments};
use crate::{
    flaw::Flaw,
    report::Halt,
    sweep::setting::{self, Pauses},
    timeline::selection,
};

/// The variable in which a shell's script names its shell when it asks.
const ASKED_BY: &str = "DEPOSED_COMPLETE";

/// Answers a shell that asks what could follow, instead of running anything; `None` if none
/// does. To be called before there are threads: it changes the environment.
pub(super) fn answer(suite: &Suite) -> Option<Exit> {
    env::var_os(ASKED_BY)?;
    let engine = CompleteEnv::with_factory(|| command(suite)).var(ASKED_BY);
    match engine.try_complete(env::args_os(), env::current_dir().ok().as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(Exit::Valid),
        // Whoever is typing wants no complaints between the lines.
        Err(_) => Some(Exit::BadInput),
    }
}

/// Prints what makes a shell ask this program, called as it was called now.
pub(super) fn script(
    shell: Shell,
    program: &OsStr,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let name = Path::new(program).file_name().unwrap_or(program);
    let name = name.to_string_lossy();
    let name = name.strip_suffix(env::consts::EXE_SUFFIX).unwrap_or(&name);
    let program = whole(program).to_string_lossy().into_owned();
    let known = Shells::builtins();
    let Some(shell) = known.completer(&shell.to_string()) else {
        let sentence = format!("nothing is known of the shell '{shell}'");
        return Err(Halt::BadInput(sentence));
    };
    let mut script = Vec::new();
    shell.write_registration(ASKED_BY, name, name, &program, &mut script)?;
    if shell.name() == "zsh" {
        // From a file in $fpath this is the function's own body, at the first key.
        let function = name.replace('-', "_");
        script.extend_from_slice(
            format!(
                "if [[ \"$funcstack[1]\" == \"_{name}\" ]]; then \
                 _clap_dynamic_completer_{function} \"$@\"; fi\n"
            )
            .as_bytes(),
        );
    }
    console.out.write_all(&script)?;
    Ok(Exit::Valid)
}

/// A path from wherever the shell will be; a name that is on the `PATH` stays one.
fn whole(program: &OsStr) -> PathBuf {
    let path = PathBuf::from(program);
    match env::current_dir() {
        Ok(here) if path.components().count() > 1 => here.join(path),
        _ => path,
    }
}

/// The command line, with the names that may be given in it.
fn command(suite: &Suite) -> Command {
    let workloads = || suite.workloads.iter().map(|w| (w.name, w.story));
    let compared = suite.workloads.iter().filter(|w| !w.compares.is_empty());
    let compared = compared.map(|w| (w.name, w.story));
    let systems = || suite.systems.iter().map(|system| (system.name(), ""));
    let flaws = || Flaw::ALL.iter().map(|flaw| (flaw.name(), flaw.story()));
    let checks = || Check::ALL.iter().map(|check| (check.name(), ""));
    let plain = |names: Vec<&'static str>| names.into_iter().map(|name| (name, ""));
    let names: Vec<&'static str> = workloads().map(|(name, _)| name).collect();
    Arguments::command()
        .mut_subcommand("run", |run| {
            run.mut_arg("workloads", |arg| one_of(arg, workloads()))
                .mut_arg("flaw", |arg| one_of(arg, flaws()))
                .mut_arg("system", |arg| one_of(arg, systems()))
        })
        .mut_subcommand("replay", |replay| {
            replay
                // What is changed is moved behind the others: each is told its place.
                .mut_arg("what", |arg| {
                    arg.index(1)
                        .add(ArgValueCompleter::new(OrAFile(names.into())))
                })
                .mut_arg("seed", |arg| arg.index(2))
                .mut_arg("flaw", |arg| one_of(arg, flaws()))
                .mut_arg("system", |arg| one_of(arg, systems()))
        })
        .mut_subcommand("flaws", |hunt| {
            hunt.mut_arg("flaws", |arg| one_of(arg, flaws()))
                .mut_arg("system", |arg| one_of(arg, systems()))
        })
        .mut_subcommand("prove", |prove| {
            prove.mut_arg("flaw", |arg| one_of(arg, flaws()))
        })
        .mut_subcommand("compare", |compare| {
            compare.mut_arg("workloads", |arg| one_of(arg, compared))
        })
        .mut_subcommand("sweep", |sweep| {
            sweep
                .mut_arg("preset", |arg| one_of(arg, plain(setting::preset_names())))
                .mut_arg("pause", |arg| one_of(arg, plain(Pauses::names())))
                .mut_arg("system", |arg| one_of(arg, systems()))
        })
        .mut_subcommand("shrink", |shrink| {
            shrink.mut_arg("check", |arg| one_of(arg, checks()))
        })
        .mut_subcommand("check", |check| {
            check.mut_arg("only", |arg| one_of(arg, checks()))
        })
        .mut_subcommand("show", |show| {
            show.mut_arg("kind", |arg| one_of(arg, plain(selection::kinds())))
        })
}

/// An argument that may be one of these, each with what it is.
fn one_of(arg: Arg, names: impl Iterator<Item = (&'static str, &'static str)>) -> Arg {
    let value = |(name, story)| match story {
        "" => PossibleValue::new(name),
        story => PossibleValue::new(name).help(story),
    };
    arg.value_parser(PossibleValuesParser::new(names.map(value)))
}

/// Names, or else a path.
struct OrAFile(Arc<[&'static str]>);

impl ValueCompleter for OrAFile {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let given = current.to_string_lossy();
        let begun = self.0.iter().filter(|name| name.starts_with(&*given));
        let mut candidates: Vec<_> = begun.map(CompletionCandidate::new).collect();
        candidates.extend(PathCompleter::any().complete(current));
        candidates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_whose_names_are_completed_is_there() {
        let suite = Suite {
            workloads: Vec::new(),
            systems: Vec::new(),
        };
        command(&suite).debug_assert();
    }
}

//! The command line: `deposed::cli::main(Suite { workloads, systems })` gives anyone's
//! suite of workloads the whole of it.

mod arguments;
mod check;
mod compare;
mod completions;
mod departure;
mod flaws;
mod follow;
mod keep;
mod list;
mod names;
mod progress;
mod prove;
mod recorded;
mod replay;
mod run;
mod show;
mod shrink;
mod sweep;
mod trace;
mod unread;

use std::{
    any::TypeId,
    ffi::{OsStr, OsString},
    io::{self, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use clap::{CommandFactory, FromArgMatches, error::ErrorKind};
use deposed_checkers::history::Name;

use crate::{
    report::{
        Halt,
        lanes::Screen,
        text::{Colour, printable},
    },
    system::System,
    workload::Workload,
};
use arguments::{Arguments, Command};
use unread::Unread;

/// What a binary can run.
pub struct Suite {
    /// Its workloads, in the order in which they are listed and run.
    pub workloads: Vec<Workload>,
    /// Its systems; the first is run unless another is named.
    pub systems: Vec<Arc<dyn System>>,
}

/// What a command comes to, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// Nothing was violated.
    Valid = 0,
    /// A check was violated, a run was defective, a replay differed.
    Violated = 1,
    /// Bad usage or bad input.
    BadInput = 2,
    /// Undecided, or a mark was never seen.
    Unknown = 3,
    /// Ended by Ctrl-C before the last seed.
    Interrupted = 130,
}

impl Exit {
    /// The one that is told when both apply.
    fn and(self, other: Exit) -> Exit {
        let gravity = |exit: &Exit| match exit {
            Exit::BadInput => 4,
            Exit::Violated => 3,
            Exit::Interrupted => 2,
            Exit::Unknown => 1,
            Exit::Valid => 0,
        };
        std::cmp::max_by_key(self, other, gravity)
    }
}

/// Where a command speaks, and who may stop it.
struct Console<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    screen: Screen,
    /// Whether a progress bar is welcome on the process's standard error.
    progress: bool,
    stop: &'a AtomicBool,
}

impl Console<'_> {
    /// Says what is wrong, in one sentence.
    fn complain(&mut self, sentence: &str) {
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(self.err, "deposed: {}", printable(sentence));
    }
}

/// Set by the first Ctrl-C; the second ends the process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The whole program: reads the process's arguments, and returns its exit code.
pub fn main(suite: Suite) -> ExitCode {
    if let Some(exit) = completions::answer(&suite) {
        return ExitCode::from(exit as u8);
    }
    trace::install();
    let stdout = io::stdout();
    let colour = match anstream::AutoStream::choice(&stdout) {
        anstream::ColorChoice::Never => Colour::Never,
        _ => Colour::Always,
    };
    let mut console = Console {
        out: &mut stdout.lock(),
        err: &mut io::stderr(),
        screen: screen_of(&stdout, colour),
        progress: io::stderr().is_terminal() && std::env::var_os("RUST_LOG").is_none(),
        stop: &INTERRUPTED,
    };
    let args: Vec<OsString> = std::env::args_os().collect();
    let exit = match parse(&args, &mut console) {
        Ok(command) => {
            match &command {
                Command::Run(_)
                | Command::Compare(_)
                | Command::Flaws(_)
                | Command::Prove(_)
                | Command::Shrink(_)
                | Command::Sweep(_) => {
                    stop_at_ctrl_c("stopping after the runs in hand", &mut console);
                }
                Command::Check(args) => {
                    let what_comes = match args.follow {
                        true => "judging what is written by now",
                        false => "telling what is decided by now",
                    };
                    stop_at_ctrl_c(what_comes, &mut console);
                }
                _ => {}
            }
            execute(&suite, program(&args), command, &mut console)
        }
        Err(exit) => exit,
    };
    ExitCode::from(exit as u8)
}

/// The same with any arguments (the first is the program's name) and any output:
/// plain text, no progress bar. Returns the exit code.
pub fn run(
    suite: &Suite,
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let mut console = Console {
        out,
        err,
        screen: Screen::PLAIN,
        progress: false,
        stop: &AtomicBool::new(false),
    };
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let exit = match parse(&args, &mut console) {
        Ok(command) => execute(suite, program(&args), command, &mut console),
        Err(exit) => exit,
    };
    exit as u8
}

/// A terminal has a width, and perhaps more than ASCII.
fn screen_of(stdout: &io::Stdout, colour: Colour) -> Screen {
    if !stdout.is_terminal() {
        return Screen {
            colour,
            ..Screen::PLAIN
        };
    }
    let size = console::Term::stdout().size_checked();
    Screen {
        width: size.map_or(Screen::PLAIN.width, |(_, columns)| usize::from(columns)),
        unicode: supports_unicode::on(supports_unicode::Stream::Stdout),
        colour,
    }
}

fn stop_at_ctrl_c(what_comes: &'static str, console: &mut Console<'_>) {
    let set = ctrlc::set_handler(move || {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
        eprintln!("deposed: {what_comes}; once more to stop at once");
    });
    if let Err(error) = set {
        console.complain(&format!("Ctrl-C will end this at once: {error}"));
    }
}

/// What the program is called, as it was called.
fn program(args: &[OsString]) -> &OsStr {
    args.first()
        .map_or(OsStr::new("deposed"), OsString::as_os_str)
}

fn parse(args: &[OsString], console: &mut Console<'_>) -> Result<Command, Exit> {
    let command = Arguments::command().mut_subcommands(|command| command.mut_args(with_any_value));
    let parsed = command.try_get_matches_from(args);
    let parsed = parsed.and_then(|matches| Arguments::from_arg_matches(&matches));
    parsed.map(|arguments| arguments.command).map_err(|error| {
        let rendered = error.render();
        let text = match console.screen.colour {
            Colour::Never => rendered.to_string(),
            Colour::Always => rendered.ansi().to_string(),
        };
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                // Help that nobody reads is no failure.
                let _ = console.out.write_all(text.as_bytes());
                Exit::Valid
            }
            // `deposed` alone: the help is the answer.
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                let _ = console.err.write_all(text.as_bytes());
                Exit::BadInput
            }
            _ => {
                console.complain(&in_one_sentence(&rendered.to_string()));
                Exit::BadInput
            }
        }
    })
}

/// What follows an option that takes a number or a time is its value, though it begins with
/// a hyphen: what is wrong with -1s is told of the time. A name or a path may be left out by
/// mistake; there the next option is none.
fn with_any_value(arg: clap::Arg) -> clap::Arg {
    let parses = arg.get_value_parser().type_id();
    let named = [
        TypeId::of::<String>(),
        TypeId::of::<Name>(),
        TypeId::of::<PathBuf>(),
    ];
    let takes_any = !arg.is_positional()
        && arg.get_action().takes_values()
        && named.iter().all(|named| parses != *named);
    arg.allow_hyphen_values(takes_any)
}

/// clap's complaint without its usage: what is wrong, and its tip if it has one.
fn in_one_sentence(complaint: &str) -> String {
    let (wrong, rest) = complaint.split_once("\n\n").unwrap_or((complaint, ""));
    let lines = wrong.lines().map(str::trim);
    let wrong = lines.collect::<Vec<_>>().join(" ");
    let wrong = wrong.trim_start_matches("error: ").to_owned();
    let tip = rest
        .lines()
        .find_map(|line| line.trim().strip_prefix("tip: "));
    // How to pass a hyphen on is no help where a number is wanted.
    match tip.filter(|tip| !tip.starts_with("to pass")) {
        Some(tip) => format!("{wrong}; {tip}"),
        None => format!("{wrong}; --help tells what there is"),
    }
}

fn execute(suite: &Suite, program: &OsStr, command: Command, console: &mut Console<'_>) -> Exit {
    // Whoever stops reading a listing has seen enough; a verdict stands whoever reads it.
    let is_a_listing = matches!(
        command,
        Command::Show(_) | Command::List | Command::Schema | Command::Completions(_)
    );
    let mut out = Unread::new(console.out, !is_a_listing);
    let console = &mut Console {
        out: &mut out,
        err: console.err,
        ..*console
    };
    let done = match command {
        Command::Run(args) => run::run(suite, &args, console),
        Command::Flaws(args) => flaws::flaws(suite, &args, console),
        Command::Replay(args) => replay::replay(suite, &args, console),
        Command::Shrink(args) => shrink::shrink(suite, &args, console),
        Command::Keep(args) => keep::keep(suite, &args, console),
        Command::Compare(args) => compare::compare(suite, &args, console),
        Command::Sweep(args) => sweep::sweep(suite, &args, console),
        Command::Prove(args) => prove::prove(&args, console),
        Command::Check(args) => check::check(&args, console),
        Command::Show(args) => show::show(&args, console),
        Command::List => list::list(suite, console),
        Command::Schema => schema(console),
        Command::Completions(args) => completions::script(args.shell, program, console),
    };
    let done = done.and_then(|exit| {
        console.out.flush()?;
        Ok(exit)
    });
    match done {
        Ok(exit) => exit,
        Err(Halt::ReaderLeft) => Exit::Valid,
        Err(Halt::BadInput(sentence)) => {
            console.complain(&sentence);
            Exit::BadInput
        }
    }
}

fn schema(console: &mut Console<'_>) -> Result<Exit, Halt> {
    let schema = deposed_checkers::schema::HISTORY;
    console.out.write_all(schema.as_bytes())?;
    Ok(Exit::Valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_graver_exit_is_told() {
        let rising = [
            Exit::Valid,
            Exit::Unknown,
            Exit::Interrupted,
            Exit::Violated,
            Exit::BadInput,
        ];
        for pair in rising.windows(2) {
            assert_eq!(pair[0].and(pair[1]), pair[1]);
            assert_eq!(pair[1].and(pair[0]), pair[1]);
        }
    }
}

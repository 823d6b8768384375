//! What can be said on the command line.

mod prove;
mod values;

use std::{num::NonZero, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use deposed_checkers::{
    history::{LeaseTiming, Name, Nanos},
    import::Format,
    model::Model,
};

pub(super) use prove::ProveArgs;
use values::{
    a_lease, a_seed, a_size, a_time, at_least_one, format_parser, model_parser, unit_parser,
};

use crate::{
    sweep::{
        setting::{self, Drift, Pauses},
        unit::{self, Fraction},
    },
    timeline::selection::instant,
    workload::Network,
};

const EXIT_CODES: &str = "\
Exit codes:
  0    valid; what a check does not claim is printed and counts as valid
  1    a check was violated, a run was defective, or a replay differed
  2    bad usage or bad input, whatever else was found
  3    unknown: a check was undecided, or a mark was never seen; 1 comes before 3
  130  interrupted by Ctrl-C before the last seed, with nothing violated so far
A verdict stands, whoever reads it: a pipe that is closed changes no exit code.";

const FORMATS: &str = "\
Formats:
  deposed       JSON lines with a header, as `deposed run` keeps them
  edn           Jepsen's history.edn: a vector of operations, or one after another
  json          the same as JSON objects, an array (elle-cli) or one after another
  jepsen-log    INFO  jepsen.util - PROCESS TYPE F VALUE (porcupine's etcd logs)
  etcd          operations.json of etcd's robustness tests, or the folder of client-N/
  csv           a table with the columns process,type,f and any of time,token,key,value,error

Models, and their operations:
  lease         acquire, renew, release, fence, write, read, delete: all the lease checks
  mutex         acquire, release, by anybody
  owned-mutex   acquire, release, by the holder alone
  fenced-mutex  the same, acquires returning rising tokens
  register      read, write, of each key
  cas-register  read, write, cas, of each key
  kv            get, put, append, of each key

A key, of a register as of a lock or lease, is named in a field or column `key`, or for every call \
as a pair [key value]; a lock also in a map, as :lock.

";

const BUDGETS: &str = "\
Without --lease a lease's timing is not known, of which another tool's history cannot tell, and \
belief-safety, lease-linearizable and lock-delay claim nothing. With it, lines must have their \
times, of one clock that runs true, and be in their order: nanoseconds, unless --time-unit says \
otherwise. A lease lasts its ttl on the store's \
clock; clients believe in it for the ttl less drift and margin, from when they ask.

Steps are counted and not timed: the same history, --max-memory and --max-steps have the same \
verdict on every machine. With --for that depends on the machine.

";

const FOLLOWING: &str = "\
With --follow a history is judged while it is written, ours or another tool's: a file, a FIFO, or \
standard input (-). It waits at the end of a file, in the middle of a line too. It ends at the \
first violation that is certain, at Ctrl-C, when --for is over, or when the writer of a pipe is \
done; then it prints the verdicts on what is written by then, and its exit code is theirs. \
Without --model it may take the first 1,024 lines to tell the model; values that are written \
twice, cas and append are judged at the end. A file that is gzipped, truncated, moved or replaced \
is refused (2). So is one that does not exist yet, a folder, and an etcd report, which is in no \
order before it is whole.

";

const CHECK_EXIT_CODES: &str = "\
Exit codes:
  0    valid; what a check does not claim is printed and counts as valid
  1    a check was violated
  2    bad usage or bad input, whatever else was found
  3    unknown: a check was undecided; 1 comes before 3
  130  interrupted by Ctrl-C with something undecided, and nothing violated so far
A verdict stands, whoever reads it: a pipe that is closed changes no exit code.";

/// Fault-injection tests for lease-based leader election with fencing tokens
#[derive(Parser)]
#[command(name = "deposed", version, after_help = EXIT_CODES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Run workloads under faults and judge what happened
    #[command(after_help = EXIT_CODES)]
    Run(RunArgs),
    /// Run a recorded history's run again, or a seed twice, and compare byte for byte
    #[command(after_help = "\
A history holds all that its run needs. Exit code 0: identical, whatever the verdict; \
1: it differs; 2: it cannot be run. A header alone, on one line, is run and judged as by \
`deposed run`: 0 valid, 1 violated, 3 unknown.")]
    Replay(ReplayArgs),
    /// Make a failure smaller: fewer faults and clients, a shorter run, rounder times
    #[command(after_help = "\
The history is run again, and must come out byte for byte; then ever smaller runs are tried \
that violate the same check, and the smallest is written beside it (x.jsonl: \
x-shrunk.jsonl; no file is overwritten). What is found is the same for any number of jobs, \
unless time is up. Exit code 0: shrunk, or nothing smaller fails; 2: bad input, no \
violation, or it does not reproduce; 130: interrupted, and what was found by then written.")]
    Shrink(ShrinkArgs),
    /// Move a history into the folder whose histories are tests
    #[command(after_help = "\
The history is run again, and must come out byte for byte; then it is written into the \
folder, and its name, its sentence and its verdict into the folder's README.md. It is \
removed from where it was once both are on the disk. Exit code 0: kept, whatever its \
verdict; 2: bad input, or the name is taken.")]
    Keep(KeepArgs),
    /// Run the same seeds on several configurations, and count what deposed leaders did
    #[command(after_help = "\
Other storages, no barrier, a lock-delay, idempotency keys: each is a row, and each row \
has the same faults. Exit code 0: counted, whatever the counts; 1: a run went wrong, or a \
check was violated in the workload's own configuration; 2: bad usage; 130: interrupted.")]
    Compare(CompareArgs),
    /// Measure lease settings under pauses and crashes of leaders, and recommend one
    #[command(after_help = "\
Writes runs.csv (a line a run), cells.csv (a row a setting, with 95 % intervals) and four plots \
(SVG). A leader leads while it believes to; it serves once it has taken over, and while it is \
not paused. Lists have commas; ranges are written 1ms..20ms. Exit code 0: measured; 1: a check \
was violated in a run; 2: bad usage; 3: a check was undecided; 130: interrupted, and --resume \
goes on.")]
    Sweep(SweepArgs),
    /// Judge recorded histories, ours or yours
    #[command(after_help = FORMATS.to_owned() + BUDGETS + FOLLOWING + CHECK_EXIT_CODES)]
    Check(CheckArgs),
    /// Plant every flaw in turn and tell which check convicts it, and how soon
    #[command(after_help = "\
Each row is a flaw, a workload that must show it, and the check that must convict it. A run \
ends at the conviction. Harm is manifest (two leaders, a stale write that landed, a token \
used twice, nobody who leads) or latent (a rule broken that keeps harm away). \
Exit code 0: all convicted; 1: one escaped; 2: bad usage; 130: interrupted.")]
    Flaws(FlawsArgs),
    /// Search every state that a small world can reach, and prove the rules in each
    #[command(after_help = "\
The real cores of the store, the clients and storage are searched, breadth first; the worlds \
between them are small: see what is covered in the output. A counterexample is the shortest \
there is, and is told as a history; a simulated run is made to go the same way and is kept, for \
replay, show and shrink. Exit code 0: every state was visited and nothing is \
wrong; 1: something is, or with --flaws a counterexample that no run shows; 2: bad usage; 3: memory or \
time was not enough; 130: interrupted.")]
    Prove(ProveArgs),
    /// Show a recorded history: one event a line, as lanes over time, or in a browser
    #[command(after_help = "\
Exit code 0: shown, whatever it shows; 2: bad usage or bad input. A file that exists is \
never overwritten.")]
    Show(ShowArgs),
    /// List workloads, systems, flaws and checks
    List,
    /// Print the history format's JSON Schema: one line is a header or an event
    #[command(after_help = "\
For whoever records histories in a language of their own: each line must be valid by it. Rules \
that hold between lines, as that time does not go back, are told by `deposed check`.")]
    Schema,
    /// Print what a shell needs to complete commands, options and names
    #[command(after_help = "\
  bash  source <(deposed completions bash)         in ~/.bashrc
  zsh   source <(deposed completions zsh)          in ~/.zshrc, after compinit
  fish  deposed completions fish | source          in ~/.config/fish/config.fish

The shell then asks this binary, called as it was called here, whenever a key is pressed: \
its workloads, systems, flaws, checks and presets are completed as they are by then.")]
    Completions(CompletionsArgs),
}

#[derive(Args)]
pub(super) struct RunArgs {
    /// Which workloads; all when none is named
    pub(super) workloads: Vec<String>,
    /// Run seeds 0 to N-1 of each workload [default: as many as the workload says]
    #[arg(long, value_name = "N", value_parser = at_least_one, conflicts_with = "seed")]
    pub(super) seeds: Option<NonZero<u64>>,
    /// Run this seed alone
    #[arg(long, value_name = "S", value_parser = a_seed)]
    pub(super) seed: Option<u64>,
    /// How many seeds run at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(super) jobs: Option<NonZero<u64>>,
    /// Plant this flaw
    #[arg(long, value_name = "FLAW")]
    pub(super) flaw: Option<String>,
    /// Run this system [default: the first]
    #[arg(long, value_name = "SYSTEM")]
    pub(super) system: Option<String>,
    /// Where histories are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) out: PathBuf,
    /// Keep the histories of runs that passed, too
    #[arg(long)]
    pub(super) keep: bool,
    /// Shrink each workload's first failure
    #[arg(long)]
    pub(super) shrink: bool,
    /// How long that may take, for each: 30s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = a_time, default_value = "30s", requires = "shrink")]
    pub(super) within: Duration,
}

#[derive(Args)]
pub(super) struct ShrinkArgs {
    /// A history that violates a check, plain or gzipped; - is standard input
    #[arg(value_name = "HISTORY")]
    pub(super) history: PathBuf,
    /// The check that must stay violated [default: the first that is]
    #[arg(long, value_name = "CHECK")]
    pub(super) check: Option<String>,
    /// How long it may take: 30s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = a_time, default_value = "30s")]
    pub(super) within: Duration,
    /// How many runs go on at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(super) jobs: Option<NonZero<u64>>,
    /// Write the smaller history to this new file [default: beside the other]
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct KeepArgs {
    /// A history, plain or gzipped; - is standard input
    #[arg(value_name = "HISTORY")]
    pub(super) history: PathBuf,
    /// Its name in the folder [default: its file's, without -shrunk]
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// What is to be seen in it [default: what struck it, and what the checks say]
    #[arg(long, value_name = "SENTENCE")]
    pub(super) sentence: Option<String>,
    /// The folder
    #[arg(long, value_name = "DIR", default_value = "histories")]
    pub(super) into: PathBuf,
    /// Write a kept history anew, after a change of the system that is meant: the same
    /// checks must be violated
    #[arg(long, conflicts_with_all = ["name", "sentence", "into"])]
    pub(super) anew: bool,
}

#[derive(Args)]
pub(super) struct ReplayArgs {
    /// A history (- is standard input), or a workload with a seed
    #[arg(value_name = "HISTORY|WORKLOAD")]
    pub(super) what: PathBuf,
    /// The workload's seed: it is run twice, on two threads
    #[arg(allow_negative_numbers = true, value_parser = a_seed)]
    pub(super) seed: Option<u64>,
    /// Plant this flaw (with a workload)
    #[arg(long, value_name = "FLAW", requires = "seed")]
    pub(super) flaw: Option<String>,
    /// Run this system (with a workload)
    #[arg(long, value_name = "SYSTEM", requires = "seed")]
    pub(super) system: Option<String>,
    /// Where the history of a header alone is kept, unless it is valid
    #[arg(
        long,
        value_name = "DIR",
        default_value = "runs",
        conflicts_with = "seed"
    )]
    pub(super) out: PathBuf,
    /// Keep the history of a header alone, valid or not
    #[arg(long, conflicts_with = "seed")]
    pub(super) keep: bool,
}

#[derive(Args)]
pub(super) struct FlawsArgs {
    /// Which flaws; all when none is named
    pub(super) flaws: Vec<String>,
    /// Repeat from N disjoint seed bases, and print the mean and the 95th percentile
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value = "1")]
    pub(super) bases: NonZero<u64>,
    /// Give a flaw up after N seeds: it has escaped
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value = "200")]
    pub(super) seeds: NonZero<u64>,
    /// Hunt each flaw by other schedules, too, and print the ratio
    #[arg(long, value_name = "SCHEDULES")]
    pub(super) against: Option<Against>,
    /// Shrink the run that first convicts each flaw, and print what is left of it
    #[arg(long, conflicts_with_all = ["bases", "against"])]
    pub(super) shrink: bool,
    /// How long that may take, for each: 30s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = a_time, default_value = "30s", requires = "shrink")]
    pub(super) within: Duration,
    /// How many hunts run at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(super) jobs: Option<NonZero<u64>>,
    /// Plant them in this system [default: the first]
    #[arg(long, value_name = "SYSTEM")]
    pub(super) system: Option<String>,
}

/// Schedules that ours are measured against.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Against {
    /// 1 to 12 faults a minute, at any time, of any length, none aimed
    Uniform,
}

#[derive(Args)]
pub(super) struct CompareArgs {
    /// Which workloads; all that compare anything when none is named
    pub(super) workloads: Vec<String>,
    /// Run seeds 0 to N-1 [default: as many as the workload says]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(super) seeds: Option<NonZero<u64>>,
    /// How many seeds run at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(super) jobs: Option<NonZero<u64>>,
    /// Print one JSON object a workload
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct SweepArgs {
    /// The ttls [default: 1s,2s,5s,10s,15s, or none where presets are named]
    #[arg(long, value_name = "TTLS", value_parser = unit::length, value_delimiter = ',')]
    pub(super) ttl: Vec<Nanos>,
    /// After which parts of the window a renewal is due
    #[arg(long, value_name = "PARTS", value_parser = Fraction::parse, value_delimiter = ',',
          default_value = "1/4,1/3,1/2,2/3")]
    pub(super) renew: Vec<Fraction>,
    /// The defaults of systems: kubernetes (15 s, 10 s, 2 s), etcd, chubby, zookeeper, consul
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) preset: Vec<String>,
    /// How leaders are paused: gc, vm-migration, or a lognormal's median, sigma and how many
    /// an hour; may be given several times [default: gc and vm-migration]
    #[arg(long, value_name = "MEDIAN,SIGMA[,PER-HOUR]", value_parser = Pauses::parse)]
    pub(super) pause: Vec<Pauses>,
    /// How many leaders crash in a day
    #[arg(long, value_name = "N", value_parser = unit::number, default_value = "1")]
    pub(super) crashes_per_day: f64,
    /// How long a new leader needs until it serves: its state, its callers
    #[arg(long, value_name = "TIME", value_parser = unit::length_or_none, default_value = "5s")]
    pub(super) takeover: Nanos,
    /// The network's latency, one way
    #[arg(long, value_name = "RANGES", value_parser = setting::network, value_delimiter = ',',
          default_value = "1ms..20ms")]
    pub(super) net: Vec<Network>,
    /// How far each clock is off, fast or slow; leases allow for twice the most
    #[arg(long, value_name = "RANGES", value_parser = Drift::parse, value_delimiter = ',',
          default_value = "0%..0.5%")]
    pub(super) drift: Vec<Drift>,
    /// Run seeds 0 to N-1 of each setting
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000),
          default_value = "15")]
    pub(super) seeds: u64,
    /// How many faults a run has; every third is a crash
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=10_000),
          default_value = "15")]
    pub(super) faults: u32,
    /// Recommend the cheapest setting that is so available with 95 % confidence, as 99.95%
    #[arg(long, value_name = "PART", value_parser = unit::part)]
    pub(super) availability: Option<f64>,
    /// How many runs go on at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(super) jobs: Option<NonZero<u64>>,
    /// Run this system [default: the first]
    #[arg(long, value_name = "SYSTEM")]
    pub(super) system: Option<String>,
    /// A folder that does not exist yet
    #[arg(long, value_name = "DIR", default_value = "sweep")]
    pub(super) out: PathBuf,
    /// Go on with the sweep in that folder
    #[arg(long)]
    pub(super) resume: bool,
    /// List the settings and what they would cost, and run nothing
    #[arg(long, conflicts_with = "resume")]
    pub(super) dry_run: bool,
}

#[derive(Args)]
pub(super) struct CheckArgs {
    /// Histories, plain or gzipped; - is standard input, a folder an etcd report
    #[arg(value_name = "HISTORY", required = true)]
    pub(super) histories: Vec<PathBuf>,
    /// What they are written in [default: as their first bytes tell]
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub(super) format: Option<FormatArg>,
    /// What another tool's operations were done to [default: as the first of them tell]
    #[arg(long, value_name = "MODEL", value_parser = model_parser())]
    pub(super) model: Option<Model>,
    /// Print one JSON object a history
    #[arg(long)]
    pub(super) json: bool,
    /// Only these checks; one that the history cannot feed is then unknown
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// Judge a history while it is written, until a violation is certain
    #[arg(long)]
    pub(super) follow: bool,
    /// Stop after so long: 10s, 5m; what is undecided then is unknown, unless it is followed
    #[arg(long = "for", value_name = "TIME", value_parser = a_time)]
    pub(super) within: Option<Duration>,
    /// Another tool's lease: ttl=15s,drift=1%,margin=100ms,lock-delay=5s; all but ttl optional
    #[arg(long, value_name = "TIMING", value_parser = a_lease)]
    pub(super) lease: Option<LeaseTiming>,
    /// What another tool's times are counted in: ns, us, ms or s [default: ns]
    #[arg(long, value_name = "UNIT", value_parser = unit_parser())]
    pub(super) time_unit: Option<Unit>,
    /// What a history may take of memory before it is unknown
    #[arg(long, value_name = "SIZE", value_parser = a_size, default_value = "1GB")]
    pub(super) max_memory: u64,
    /// How many steps the search of a key may take before it is unknown; a second has a million
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value = "20000000")]
    pub(super) max_steps: NonZero<u64>,
}

#[derive(Args)]
pub(super) struct CompletionsArgs {
    /// Which shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Args)]
pub(super) struct ShowArgs {
    /// A history, plain or gzipped; - is standard input
    #[arg(value_name = "HISTORY")]
    pub(super) history: PathBuf,
    /// Only from this time on: 1.2s, 850ms, or nanoseconds
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(super) from: Option<Nanos>,
    /// Only up to this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(super) to: Option<Nanos>,
    /// Only these processes
    #[arg(long, value_name = "PROCESS", value_delimiter = ',')]
    pub(super) process: Vec<Name>,
    /// Only these kinds of events: write, granted, ok, fail, nemesis ...
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(super) kind: Vec<Name>,
    /// Draw lanes for each process over time, instead of one event a line
    #[arg(long, conflicts_with = "html")]
    pub(super) timeline: bool,
    /// Write a page for a browser to this new file; - is standard output
    #[arg(long, value_name = "OUT")]
    pub(super) html: Option<PathBuf>,
}

/// A format: ours, or another tool's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormatArg {
    Deposed,
    Of(Format),
}

impl FormatArg {
    pub(super) fn foreign(self) -> Option<Format> {
        match self {
            FormatArg::Deposed => None,
            FormatArg::Of(format) => Some(format),
        }
    }
}

/// What a history's times are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
}

impl Unit {
    pub(super) const ALL: [Unit; 4] = [
        Unit::Nanoseconds,
        Unit::Microseconds,
        Unit::Milliseconds,
        Unit::Seconds,
    ];

    /// As `--time-unit` takes it, and as it is said.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Unit::Nanoseconds => ("ns", "nanoseconds"),
            Unit::Microseconds => ("us", "microseconds"),
            Unit::Milliseconds => ("ms", "milliseconds"),
            Unit::Seconds => ("s", "seconds"),
        }
    }

    pub(super) fn nanos(self) -> Nanos {
        match self {
            Unit::Nanoseconds => 1,
            Unit::Microseconds => 1_000,
            Unit::Milliseconds => 1_000_000,
            Unit::Seconds => 1_000_000_000,
        }
    }
}

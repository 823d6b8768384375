//! The bounds of a search, and what it may cost.

use std::{num::NonZero, path::PathBuf, time::Duration};

use clap::Args;

use super::values::{a_size, a_time, at_least_one};
use crate::prove::Drift;

#[derive(Args)]
pub(in crate::cli) struct ProveArgs {
    /// How many clients contend
    #[arg(long, value_name = "N", default_value = "2")]
    pub(in crate::cli) clients: usize,
    /// How many ticks a lease lasts
    #[arg(long, value_name = "TICKS", default_value = "3")]
    pub(in crate::cli) ttl: u64,
    /// How many different messages may be in flight at a time [default: 3; 2 with a flaw]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) in_flight: Option<usize>,
    /// How many ticks a client's clock may skip: 0, or one in so many, as 1/4
    #[arg(long, value_name = "PART", default_value = "0")]
    pub(in crate::cli) drift: Drift,
    /// Plant this flaw, and find the shortest way to what is wrong
    #[arg(long, value_name = "FLAW")]
    pub(in crate::cli) flaw: Option<String>,
    /// Plant every flaw in turn
    #[arg(long, conflicts_with_all = ["flaw", "out"])]
    pub(in crate::cli) flaws: bool,
    /// How many threads search [default: one a core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(in crate::cli) jobs: Option<NonZero<u64>>,
    /// Give up when the states take more memory: 512MB, 2GB
    #[arg(long, value_name = "SIZE", value_parser = a_size, default_value = "1GB")]
    pub(in crate::cli) max_memory: u64,
    /// Give up after this time: 30s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = a_time)]
    pub(in crate::cli) within: Option<Duration>,
    /// Where the run that shows a counterexample is kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(in crate::cli) out: PathBuf,
}

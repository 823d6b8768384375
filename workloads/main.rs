//! `deposed`: the workloads of this crate, on our own system.

use std::{process::ExitCode, sync::Arc};

use deposed::{
    cli::{self, Suite},
    prelude::*,
};

fn main() -> ExitCode {
    let workloads = deposed_workloads::all();
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    cli::main(Suite { workloads, systems })
}

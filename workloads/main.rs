//! `deposed`: the workloads of this crate, on our own system.
fn main() -> std::process::ExitCode {
    let systems = vec![std::sync::Arc::new(deposed::system::Deposed) as _];
    let workloads = deposed_workloads::all();
    deposed::cli::main(deposed::cli::Suite { workloads, systems })
}

//! `cargo test gc-pause` would filter every test out and look like a pass: tests are
//! named with underscores. This one is not filtered, as it brings its own `main`, and
//! fails on the name of a workload that is spelled with hyphens.

use std::process::ExitCode;

fn main() -> ExitCode {
    assert!(
        mistaken(&["gc-pause"]).is_some(),
        "the trap that this is for"
    );
    assert_eq!(mistaken(&["gc_pause", "chaos", "--exact"]), None);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match mistaken(&arguments) {
        None => ExitCode::SUCCESS,
        Some(name) => {
            let test = name.replace('-', "_");
            eprintln!("\nno test is called '{name}', and none was run\n  cargo test {test}\n");
            ExitCode::FAILURE
        }
    }
}

/// The first filter that would match a workload's test if it had underscores.
fn mistaken<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let filters = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'));
    let mut hyphened = filters.filter(|filter| filter.contains('-'));
    hyphened
        .find(|filter| {
            let workloads = deposed_workloads::all();
            workloads
                .iter()
                .any(|workload| workload.name.contains(**filter))
        })
        .copied()
}

//! Recorded runs, judged by what clients saw of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deposed_checkers::history::*;
use deposed_checkers::judge::judge;
use deposed_checkers::reader;
use deposed_checkers::verdict::Check;

use crate::{is_node_side, only};

fn is_servers(event: &Event) -> bool {
    let clients =
        |seen: &Observation| matches!(seen, Observation::Lead(_) | Observation::Follow(_));
    matches!(&event.body, Body::Observed(seen) if !clients(seen))
}

/// The histories in the directories that `DEPOSED_RUNS` lists, parted by colons.
#[expect(clippy::disallowed_methods, reason = "what is found is sorted")]
fn histories() -> Vec<PathBuf> {
    let listed = std::env::var_os("DEPOSED_RUNS").expect("DEPOSED_RUNS lists directories");
    let mut found: Vec<PathBuf> = std::env::split_paths(&listed)
        .flat_map(|directory| std::fs::read_dir(directory).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no histories there");
    found
}

/// Without the servers' events and without any node's: what a run is convicted of then,
/// it is convicted of by all of its events. Prints how many runs of each flaw each check
/// convicts: by all events, without the servers', by calls alone.
#[test]
#[ignore = "needs runs: deposed run --keep --out DIR; then DEPOSED_RUNS=DIR cargo test -p deposed-checkers \
            --test soundness -- --ignored --nocapture"]
fn recorded_runs_are_convicted_from_outside_of_nothing_that_they_did_not_do() {
    let mut table: BTreeMap<(String, Check), [u32; 3]> = BTreeMap::new();
    let (mut runs, mut by_word) = (BTreeMap::<String, u32>::new(), BTreeMap::new());
    for path in histories() {
        let (header, events) = reader::open(&path).unwrap();
        let events: Vec<Event> = events.map(Result::unwrap).collect();
        let flaw = header.rest.get("flaw").and_then(|flaw| flaw.as_str());
        let flaw = flaw.unwrap_or("none").to_owned();
        *runs.entry(flaw.clone()).or_default() += 1;
        let sides = [
            judge(&header, &events),
            judge(&header, &only(&events, |event| !is_servers(event))),
            judge(&header, &only(&events, |event| !is_node_side(event))),
        ];
        let is_convicted = sides[0].violated().next().is_some();
        for (side, verdicts) in sides.iter().enumerate() {
            for (check, evidence) in verdicts.violated() {
                assert!(is_convicted, "{}: {check}: {evidence:?}", path.display());
                table.entry((flaw.clone(), check)).or_default()[side] += 1;
            }
            for (check, verdict) in &verdicts.0 {
                *by_word
                    .entry((flaw == "none", *check, side, verdict.word()))
                    .or_insert(0) += 1;
            }
        }
    }
    for ((flaw, check), [all, clients, calls]) in &table {
        let of = runs[flaw];
        println!("{flaw} {check}: {all} of {of} runs, {clients} without servers, {calls} by calls");
    }
    for ((_, check, side, word), count) in by_word.iter().filter(|((correct, ..), _)| *correct) {
        println!("correct: {check}, side {side}: {count} {word}");
    }
}

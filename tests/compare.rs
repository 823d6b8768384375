//! `deposed compare` as its user meets it.

mod forger;

use std::sync::Arc;

use deposed::{
    cli::{self, Suite},
    prelude::*,
};
use forger::Forger;
use serde_json::Value;

const FENCED: Arm = Arm {
    name: "highest-seen",
    storage: StorageKind::Fenced,
    without_barrier: false,
    lock_delay: 0,
};

fn short(name: &'static str, compares: Vec<Arm>) -> Workload {
    Workload {
        story: "leaders pause before they write",
        nemesis: Nemesis::one_in(2, vec![gc_pause(Target::Leader, Some(F::Write))]),
        chaos: 2 * SECOND,
        calm: SECOND,
        seeds: 2,
        compares,
        ..Workload::named(name)
    }
}

fn without_barrier() -> Arm {
    Arm {
        name: "without barrier",
        without_barrier: true,
        ..FENCED
    }
}

fn effects() -> Arm {
    Arm {
        name: "effects",
        storage: StorageKind::Effects { keys: false },
        lock_delay: 100 * MS,
        ..FENCED
    }
}

/// Exit code, standard output, standard error.
fn deposed(system: Arc<dyn System>, command: &str) -> (u8, String, String) {
    let suite = Suite {
        workloads: vec![
            short("fenced", vec![FENCED, without_barrier()]),
            short("effects", vec![effects()]),
            short("plain", vec![]),
        ],
        systems: vec![system],
    };
    run(&suite, command)
}

fn run(suite: &Suite, command: &str) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["deposed"].into_iter().chain(command.split(' '));
    let code = cli::run(suite, args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("reports are UTF-8");
    (code, text(out), text(err))
}

#[test]
fn every_arm_is_a_row_and_every_comparing_workload_a_table() {
    let (code, out, err) = deposed(Arc::new(Deposed), "compare");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let row = |name: &str| {
        let rows = out.lines().filter_map(|line| line.strip_prefix("  "));
        let mut rows = rows.filter(|line| line.starts_with(name));
        let row = rows.next();
        row.unwrap_or_else(|| panic!("no row {name}: {out}"))
            .split_whitespace()
            .count()
    };
    for title in ["fenced", "effects"] {
        assert!(
            out.contains(&format!("{title}  the same 2 seeds in each row\n")),
            "{out}"
        );
    }
    // Only effects can be doubled: a column more.
    assert_eq!(row("highest-seen") + 1, row("effects"), "{out}");
    assert_eq!(
        row("without barrier"),
        row("highest-seen") + 1,
        "a word more"
    );
    assert!(!out.contains("plain"), "{out}");
    assert!(
        out.contains("window    from the successor's grant"),
        "the legend: {out}"
    );
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    assert!(!out.contains('\u{1b}'), "plain text: {out:?}");
}

#[test]
fn json_is_an_object_a_workload() {
    let (code, out, err) = deposed(Arc::new(Deposed), "compare fenced effects --seeds 1 --json");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let objects: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let [fenced, effects] = &objects[..] else {
        panic!("two objects: {out}")
    };
    assert_eq!(fenced["workload"], "fenced");
    assert_eq!(fenced["seeds"], 1);
    assert_eq!(fenced["arms"][0]["name"], "highest-seen");
    assert_eq!(fenced["arms"][1]["without_barrier"], true);
    assert_eq!(fenced["arms"][0]["landed"], 0);
    assert!(fenced["arms"][0]["doubled"].is_null(), "no effects: {out}");
    assert!(effects["arms"][0]["doubled"].is_u64(), "{out}");
    assert_eq!(effects["arms"][0]["storage"]["effects"]["keys"], false);
    assert_eq!(effects["arms"][0]["lock_delay"], 100 * MS);
    assert!(
        effects["arms"][0]["window"].is_null(),
        "it never refuses: {out}"
    );
}

#[test]
fn the_tables_do_not_depend_on_the_number_of_jobs() {
    let one = deposed(Arc::new(Deposed), "compare fenced --seeds 3 --jobs 1");
    let two = deposed(Arc::new(Deposed), "compare fenced --seeds 3 --jobs 2");
    assert_eq!(one.0, 0);
    assert_eq!(one, two);
}

#[test]
fn the_workloads_own_configuration_is_judged_and_the_others_are_not() {
    let (code, out, err) = deposed(Arc::new(Forger), "compare fenced --seeds 2");
    assert_eq!(code, 1, "{out}");
    let told: Vec<&str> = err.lines().collect();
    let failed = |seed| {
        format!("deposed: the run of fenced  seed {seed}  system forger, highest-seen failed")
    };
    assert_eq!(told, [failed(0), failed(1)]);
    let (code, out, err) = deposed(Arc::new(Forger), "compare effects --seeds 2");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
}

#[test]
fn bad_input_is_one_sentence() {
    for (command, says) in [
        ("compare --seeds 0", "nothing would be run; give 1 or more"),
        ("compare --seeds x", "give a whole number"),
        ("compare --jobs 0", "nothing would be run"),
        (
            "compare fence",
            "no workload is called 'fence'; did you mean 'fenced'?",
        ),
        (
            "compare plain",
            "the workload 'plain' compares nothing; these do: fenced, effects",
        ),
        ("compare --flaw x", "--flaw"),
    ] {
        let (code, out, err) = deposed(Arc::new(Deposed), command);
        assert_eq!((code, out.as_str()), (2, ""), "{command}: {err}");
        assert!(err.contains(says), "{command}: {err}");
        assert_eq!(err.lines().count(), 1, "{command}: {err}");
    }
    let suite = Suite {
        workloads: vec![short("plain", vec![])],
        systems: vec![Arc::new(Deposed)],
    };
    let (code, _, err) = run(&suite, "compare");
    assert_eq!(code, 2);
    assert!(
        err.contains("no workload of this binary compares anything"),
        "{err}"
    );
}

//! What the README shows is so: its table of workloads is what they say, its failure is
//! what is printed.

use std::{path::Path, sync::Arc};

use deposed::{
    cli::{self, Suite},
    system::{Deposed, System},
};

fn readme() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let readme = root.expect("a workspace").join("README.md");
    std::fs::read_to_string(readme).expect("the README")
}

#[test]
fn the_failure_it_opens_with_is_printed() {
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    let workloads = deposed_workloads::all();
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    // A history of before would take the name.
    let _ = std::fs::remove_dir_all(&kept);
    let kept = kept.to_str().expect("a path in UTF-8");
    let args = "deposed run gc-pause --flaw accepts-anything --seed 2 --out";
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let suite = Suite { workloads, systems };
    let code = cli::run(&suite, args.split(' ').chain([kept]), &mut out, &mut err);
    assert_eq!(code, 1);
    let out = String::from_utf8(out).expect("text");
    let (failure, _) = out
        .split_once("\n\nFAILED")
        .expect("the failure, then the tally");
    // The README keeps its histories in runs/.
    let path = format!("{kept}/gc-pause-accepts-anything-2");
    let failure = failure.replace(&path, "runs/gc-pause-accepts-anything-2");
    assert!(
        readme().contains(&failure),
        "the README should open with:\n\n{failure}"
    );
}

#[test]
fn what_it_shows_of_shrinking_is_printed() {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme-shrinking");
    let _ = std::fs::remove_dir_all(&kept);
    let kept = kept.to_str().expect("a path in UTF-8");
    let run = format!("deposed run gc-pause --flaw accepts-anything --seed 2 --out {kept}");
    let shrink = format!("deposed shrink {kept}/gc-pause-accepts-anything-2.jsonl");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    for (args, code) in [(run, 1), (shrink, 0)] {
        let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
        let workloads = deposed_workloads::all();
        let suite = Suite { workloads, systems };
        out.clear();
        let done = cli::run(&suite, args.split(' '), &mut out, &mut err);
        assert_eq!(done, code, "{args}");
    }
    let out = String::from_utf8(out).expect("text");
    let shrunk = out.replace(&format!("{kept}/"), "runs/");
    assert!(
        readme().contains(&shrunk),
        "the README should show:\n\n{shrunk}"
    );
}

#[test]
fn the_table_of_workloads_is_true() {
    let (readme, table) = (readme(), table());
    assert!(
        readme.contains(&table),
        "the README's table should be:\n\n{table}"
    );
}

fn table() -> String {
    let mut table =
        "| workload | injects | must see | catches |\n| --- | --- | --- | --- |\n".to_owned();
    for workload in deposed_workloads::all() {
        let marks: Vec<_> = workload.must_see.iter().map(|mark| mark.story()).collect();
        let flaws = workload.catches.iter().map(|(flaw, _)| format!("`{flaw}`"));
        let mut flaws: Vec<_> = flaws.collect();
        // One flaw may be caught by two checks.
        flaws.dedup();
        table += &format!(
            "| `{}` | {} | {} | {} |\n",
            workload.name,
            workload.story,
            marks.join("; "),
            flaws.join(", "),
        );
    }
    table
}

//! What the README shows is so: its table of workloads is what they say, its failure and
//! its hunts are what is printed. (`tests/compare.rs` has measured what it compares.)

use std::{path::Path, sync::Arc};

use deposed::{
    cli::{self, Suite},
    flaw::Flaw,
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
fn the_arithmetic_it_shows_is_printed() {
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    let workloads = deposed_workloads::all();
    let suite = Suite { workloads, systems };
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme-arithmetic");
    let dir = dir.to_str().expect("a path in UTF-8");
    let args = "deposed run slow-network --flaw count-from-reply --seed 0 --out";
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(&suite, args.split(' ').chain([dir]), &mut out, &mut err);
    assert_eq!(code, 1);
    let out = String::from_utf8(out).expect("text");
    let lines = out.lines().skip_while(|line| !line.contains("both led"));
    let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let arithmetic = lines.join("\n");
    assert!(
        !arithmetic.is_empty() && readme().contains(&arithmetic),
        "the README should show:\n\n{arithmetic}"
    );
}

#[test]
fn the_timeline_it_shows_is_drawn() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme-timeline");
    let _ = std::fs::remove_dir_all(&dir);
    let dir = dir.to_str().expect("a path in UTF-8");
    let deposed = |command: String| {
        let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
        let workloads = deposed_workloads::all();
        let suite = Suite { workloads, systems };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = cli::run(&suite, command.split(' '), &mut out, &mut err);
        (code, String::from_utf8(out).expect("text"))
    };
    let run = "deposed run gc-pause --flaw accepts-anything --seed 2 --out";
    assert_eq!(deposed(format!("{run} {dir}")).0, 1);
    let file = format!("{dir}/gc-pause-accepts-anything-2.jsonl");
    let part = "--from 0.4s --to 1.3s";
    let (code, drawn) = deposed(format!("deposed show {file} --timeline {part}"));
    assert_eq!(code, 0);
    assert!(
        readme().contains(&format!("```text\n{drawn}```")),
        "the README should show:\n\n{drawn}"
    );
}

#[test]
fn the_verdict_on_a_table_is_printed() {
    let readme = readme();
    let table = readme.split("```csv\n").nth(1).expect("a table");
    let table = table.split("```").next().unwrap_or_default();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme-table");
    std::fs::create_dir_all(&dir).expect("a folder");
    let file = dir.join("elections.csv");
    std::fs::write(&file, table).expect("it can be written");
    let file = file.to_str().expect("a path in UTF-8");
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    let workloads = deposed_workloads::all();
    let suite = Suite { workloads, systems };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(&suite, ["deposed", "check", file], &mut out, &mut err);
    assert_eq!(code, 1);
    let out = String::from_utf8(out).expect("text");
    let out = out.replace(file, "elections.csv");
    let shown = format!(
        "```text\n$ deposed check elections.csv\n{}\n```",
        out.trim_end()
    );
    assert!(
        readme.contains(&shown),
        "the README should show:\n\n{shown}"
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

/// All but the CPU time, which is each machine's own.
#[test]
fn the_hunt_that_it_shows_comes_to_this() {
    let readme = readme();
    let prompt = "\n$ deposed flaws ";
    let (_, block) = readme.split_once(prompt).expect("a hunt");
    let (flaws, shown) = block.split_once('\n').expect("what it printed");
    let (shown, _) = shown.split_once("```").expect("the end of the block");
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    let workloads = deposed_workloads::all();
    let suite = Suite { workloads, systems };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["deposed", "flaws"].into_iter().chain(flaws.split(' '));
    let code = cli::run(&suite, args, &mut out, &mut err);
    let printed = String::from_utf8(out).expect("text");
    assert_eq!(code, 0, "{printed}");
    assert_eq!(
        without_cpu(shown),
        without_cpu(&printed),
        "the README should show:\n\n{printed}"
    );
}

/// All but the time, which is each machine's own.
#[test]
fn the_flaws_that_it_shows_shrunk_come_to_this() {
    let readme = readme();
    let mut blocks = readme.split("```text\n$ deposed flaws ").skip(1);
    let shrinking = blocks.find_map(|block| {
        let (flaws, shown) = block.split_once('\n')?;
        Some((flaws.strip_suffix(" --shrink")?, shown))
    });
    let (flaws, shown) = shrinking.expect("flaws that are shrunk");
    let (shown, _) = shown.split_once("```").expect("the end of the block");
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    let workloads = deposed_workloads::all();
    let suite = Suite { workloads, systems };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["deposed", "flaws"].into_iter().chain(flaws.split(' '));
    let args = args.chain(["--shrink", "--for", "10m"]);
    let code = cli::run(&suite, args, &mut out, &mut err);
    let printed = String::from_utf8(out).expect("text");
    assert_eq!(code, 0, "{printed}");
    assert_eq!(
        without_time(shown),
        without_time(&printed),
        "the README should show:\n\n{printed}"
    );
}

/// The words of each line of a table of shrunk flaws but those that tell its time.
fn without_time(table: &str) -> Vec<Vec<&str>> {
    let lines = table.lines();
    let mut lines: Vec<Vec<&str>> = lines
        .map(|line| line.split_whitespace().collect())
        .collect();
    for words in &mut lines {
        if let Some(at) = words.iter().position(|word| *word == "s") {
            words.drain(at - 1..=at);
        }
    }
    lines
}

/// The words of each line of a hunt but those that tell its CPU time.
fn without_cpu(hunt: &str) -> Vec<Vec<&str>> {
    let lines = hunt.lines();
    let mut lines: Vec<Vec<&str>> = lines
        .map(|line| line.split_whitespace().collect())
        .collect();
    for words in &mut lines {
        match words[..] {
            // 1.0 s of CPU
            [.., _, "s", "of", "CPU"] => words.truncate(words.len() - 4),
            // Flaw, workload, check, proof, seeds, simulated, CPU, harm.
            _ => {
                let mut seconds = words.iter().enumerate().filter(|(_, word)| **word == "s");
                if let Some((cpu, _)) = seconds.nth(1) {
                    words.drain(cpu - 1..=cpu);
                }
            }
        }
    }
    lines
}

/// In a tour that counts, the counts grow old first.
#[test]
fn as_many_flaws_and_cases_as_it_says() {
    let readme = readme();
    let (flaws, cases) = (Flaw::ALL.len(), deposed_workloads::cases::all().len());
    for counted in [
        format!("{flaws} defects that real systems had"),
        format!("{cases} bugs that were reported"),
    ] {
        assert!(
            readme.contains(&counted),
            "the README should say: {counted}"
        );
    }
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

//! The README's table of workloads is what the workloads say.

use std::path::Path;

#[test]
fn the_table_of_workloads_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let readme = root.expect("a workspace").join("README.md");
    let readme = std::fs::read_to_string(readme).expect("the README");
    let table = table();
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

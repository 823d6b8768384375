//! `deposed list`: what there is to run, to plant and to check.

use std::fmt::Write as _;

use deposed_checkers::verdict::Check;

use super::{Console, Exit, Suite};
use crate::{flaw::Flaw, report::Halt, workload::Workload};

pub(super) fn list(suite: &Suite, console: &mut Console<'_>) -> Result<Exit, Halt> {
    console.out.write_all(text(suite).as_bytes())?;
    Ok(Exit::Valid)
}

fn text(suite: &Suite) -> String {
    let mut text = String::from("Workloads\n");
    suite
        .workloads
        .iter()
        .for_each(|workload| describe(&mut text, workload));
    text += "\nSystems\n";
    for (nth, system) in suite.systems.iter().enumerate() {
        let note = if nth == 0 { "  (default)" } else { "" };
        text += &format!("  {}{note}\n", system.name());
    }
    text += "\nFlaws\n";
    table(
        &mut text,
        Flaw::ALL.iter().map(|flaw| (flaw.name(), flaw.story())),
    );
    text += "\nChecks, and what each needs of a history\n";
    table(
        &mut text,
        Check::ALL.iter().map(|check| (check.name(), check.needs())),
    );
    text
}

fn describe(text: &mut String, workload: &Workload) {
    let Workload {
        name,
        story,
        seeds,
        must_see,
        catches,
        ..
    } = workload;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {name}  {story}");
    let _ = writeln!(text, "      runs      {seeds} seeds by default");
    for mark in must_see {
        let _ = writeln!(text, "      must see  {}", mark.story());
    }
    for (flaw, check) in catches {
        let _ = writeln!(text, "      catches   {flaw}, by {check}");
    }
}

fn table<'a>(text: &mut String, rows: impl Iterator<Item = (&'a str, &'a str)> + Clone) {
    let width = rows.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, what) in rows {
        let _ = writeln!(text, "  {name:<width$}  {what}");
    }
}

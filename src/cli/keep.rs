//! `deposed keep`: a history that is worth it becomes a test.

use std::{fs, path::Path};

use super::{
    Console, Exit, Suite,
    arguments::KeepArgs,
    recorded::{self, Recorded},
    shrink::bare_name,
};
use crate::{
    kept::{self, Folder, Story, story},
    report::{Halt, text::printable},
};

pub(super) fn keep(
    suite: &Suite,
    args: &KeepArgs,
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    if args.anew {
        return keep_anew(suite, &args.history, console);
    }
    let folder = Folder::new(&args.into);
    if folder.keeps(&args.history).map_err(Halt::BadInput)? {
        return Err(Halt::BadInput(format!(
            "'{}' is kept already: after a change that is meant, write it anew with --anew",
            args.history.display()
        )));
    }
    let name = match &args.name {
        Some(name) => name.clone(),
        None if args.history == Path::new("-") => {
            return Err(Halt::BadInput(
                "a history from standard input has no name: give it one with --name".to_owned(),
            ));
        }
        None => {
            let name = bare_name(&args.history);
            name.strip_suffix("-shrunk").unwrap_or(&name).to_owned()
        }
    };
    folder.has_room_for(&name).map_err(Halt::BadInput)?;
    let told = args.sentence.as_deref().map(kept::sentence).transpose();
    let told = told.map_err(Halt::BadInput)?;
    let recorded = recorded::again(suite, &args.history)?;
    let outcome = &recorded.outcome;
    without_defect(&recorded)?;
    let told = told.map_or_else(|| kept::sentence(&printable(&story::of(outcome))), Ok);
    let story = Story {
        name,
        told: told.map_err(Halt::BadInput)?,
        verdicts: kept::verdicts(&outcome.verdicts),
    };
    let path = folder
        .keep(&story, &outcome.header, &outcome.history)
        .map_err(Halt::BadInput)?;
    let mut said = format!("kept  {}\n", path.display());
    for verdict in &story.verdicts {
        said += &format!("  {verdict}\n");
    }
    said += &format!("  told in {}: {}\n", folder.stories().display(), story.told);
    console.out.write_all(said.as_bytes())?;
    remove(&args.history)?;
    Ok(Exit::Valid)
}

/// The header is what is kept; the run of it may be another now.
fn keep_anew(suite: &Suite, history: &Path, console: &mut Console<'_>) -> Result<Exit, Halt> {
    let folder = Folder::new(history.parent().unwrap_or(Path::new("")));
    let recorded = recorded::anew(suite, history)?;
    without_defect(&recorded)?;
    let path = folder.keep_anew(&bare_name(history), &recorded.outcome);
    let path = path.map_err(Halt::BadInput)?;
    writeln!(console.out, "kept anew  {}", path.display())?;
    Ok(Exit::Valid)
}

fn without_defect(recorded: &Recorded<'_>) -> Result<(), Halt> {
    match recorded.outcome.defects.first() {
        None => Ok(()),
        Some(defect) => Err(Halt::BadInput(format!(
            "{}: the run is defective, which no history shows ({defect}): it cannot be kept",
            recorded.file
        ))),
    }
}

/// The history has moved: it is safely where it is kept.
fn remove(history: &Path) -> Result<(), Halt> {
    if history == Path::new("-") {
        return Ok(());
    }
    fs::remove_file(history).map_err(|error| {
        Halt::BadInput(format!(
            "'{}' was kept, and cannot be removed from where it was: {error}; remove it by hand",
            history.display()
        ))
    })
}

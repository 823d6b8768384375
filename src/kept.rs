//! Histories that are kept: a folder of them, and a `README.md` in it that tells each and
//! says what was judged of it. [`test()`] makes each a regression test.
//!
//! Of a history `paused-leader.jsonl` the README says, in a section of its own:
//!
//! ```text
//! ## paused-leader
//!
//! The leader is paused before its write, and is deposed when it wakes.
//!
//! - storage-safety: a write with token 1 landed after storage had seen token 2
//! ```
//!
//! or `- valid`, where nothing was violated. What else stands there is for its reader.

mod readme;
pub(crate) mod story;

use std::{
    fs::{self, File},
    io,
    num::NonZero,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use deposed_checkers::{history::Event, judge::Judge, reader, writer::event_line};

use crate::{
    campaign,
    parallel::in_order,
    report::{shelf, text::counted},
    run::{Header, Outcome},
    system::System,
};

pub use readme::{Story, sentence, stories, verdicts};
use readme::{checks, judged_anew, wrapped};

/// A folder of kept histories.
pub struct Folder {
    dir: PathBuf,
}

impl Folder {
    /// Nothing is made before there is something to keep.
    pub fn new(dir: &Path) -> Self {
        let dir = dir.to_owned();
        Self { dir }
    }

    /// The file that tells them.
    pub fn stories(&self) -> PathBuf {
        self.dir.join("README.md")
    }

    fn history(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.jsonl"))
    }

    /// Whether a file is a history that is kept here already: moving it would leave its
    /// story without it.
    ///
    /// # Errors
    /// The stories cannot be read.
    pub fn keeps(&self, history: &Path) -> Result<bool, String> {
        let here = |dir: &Path| match dir == Path::new("") {
            true => Path::new(".").canonicalize(),
            false => dir.canonicalize(),
        };
        let dir = history.parent().unwrap_or(Path::new(""));
        // What is not there keeps nothing.
        let same = matches!((here(dir), here(&self.dir)), (Ok(one), Ok(other)) if one == other);
        let name = history.file_name().unwrap_or_default().to_string_lossy();
        let told = stories(&self.told()?);
        let is_told = told
            .iter()
            .any(|story| name.strip_suffix(".jsonl") == Some(story.name.as_str()));
        Ok(same && is_told)
    }

    /// Whether a history of this name could be kept.
    ///
    /// # Errors
    /// There is one already, or the name is none.
    pub fn has_room_for(&self, name: &str) -> Result<(), String> {
        let fit = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(fit) {
            return Err(format!(
                "'{name}' is no name for a history: take letters, digits, '-' and '_', with --name"
            ));
        }
        let path = self.history(name);
        if path.symlink_metadata().is_ok() {
            let path = path.display();
            return Err(format!(
                "'{path}' exists and is not overwritten: give another --name"
            ));
        }
        let told = stories(&self.told()?);
        match told.iter().any(|story| story.name == name) {
            true => Err(format!(
                "'{}' tells a '{name}' already: give another --name",
                self.stories().display()
            )),
            false => Ok(()),
        }
    }

    fn told(&self) -> Result<String, String> {
        match fs::read_to_string(self.stories()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            told => told
                .map_err(|error| format!("'{}' cannot be read: {error}", self.stories().display())),
        }
    }

    /// Writes a history and its story. Both are on the disk when this returns.
    ///
    /// # Errors
    /// They cannot be written. Nothing was changed then.
    pub fn keep(
        &self,
        story: &Story,
        header: &Header,
        history: &[Event],
    ) -> Result<PathBuf, String> {
        self.has_room_for(&story.name)?;
        let (path, readme) = (self.history(&story.name), self.stories());
        let cannot = |path: &Path, error: &io::Error| {
            let path = path.display();
            format!("'{path}' cannot be written: {error}; make room, or name another --into")
        };
        let before = match self.told()? {
            none if none.is_empty() => "# Histories\n".to_owned(),
            told => told,
        };
        fs::create_dir_all(&self.dir).map_err(|error| cannot(&path, &error))?;
        shelf::write(&path, false, header, history).map_err(|error| cannot(&path, &error))?;
        let verdicts = story.verdicts.iter();
        let verdicts: String = verdicts.map(|verdict| format!("- {verdict}\n")).collect();
        let (name, told) = (&story.name, wrapped(&story.told));
        let section = format!("\n## {name}\n\n{told}\n\n{verdicts}");
        let told = format!("{}\n{section}", before.trim_end());
        let written = shelf::whole(&readme, readme.exists(), |file| {
            file.write_all(told.as_bytes())
        });
        let synced = written.and_then(|()| File::open(&self.dir)?.sync_all());
        if let Err(error) = synced {
            // It was put there by this very call.
            let _ = fs::remove_file(&path);
            return Err(cannot(&readme, &error));
        }
        Ok(path)
    }

    /// Writes a kept history anew, after a change of the system or the format that is meant,
    /// and what is judged of it now. The same checks must be violated.
    ///
    /// # Errors
    /// It is not told here, it tells another story now, or it cannot be written.
    pub fn keep_anew(&self, name: &str, outcome: &Outcome) -> Result<PathBuf, String> {
        let (path, readme) = (self.history(name), self.stories());
        let text = self.told()?;
        let told = stories(&text);
        let Some(story) = told.iter().find(|story| story.name == name) else {
            return Err(format!("'{name}' is not told in '{}'", readme.display()));
        };
        let now = verdicts(&outcome.verdicts);
        let (before, after) = (checks(&story.verdicts), checks(&now));
        if before != after {
            return Err(format!(
                "'{name}' is another story now: judged {}, and told {}; remove it, and shrink and \
                 keep another",
                after.join(", "),
                before.join(", ")
            ));
        }
        let cannot = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| format!("'{path}' cannot be written: {error}")
        };
        shelf::write(&path, true, &outcome.header, &outcome.history).map_err(cannot(&path))?;
        let text = judged_anew(&text, name, &now);
        shelf::whole(&readme, true, |file| file.write_all(text.as_bytes()))
            .map_err(cannot(&readme))?;
        Ok(path)
    }

    /// The names of the histories in the folder.
    ///
    /// # Errors
    /// It cannot be read.
    #[expect(clippy::disallowed_methods, reason = "they are sorted")]
    pub fn names(&self) -> Result<Vec<String>, String> {
        let unreadable =
            |error: io::Error| format!("'{}' cannot be read: {error}", self.dir.display());
        let mut names = Vec::new();
        for file in fs::read_dir(&self.dir).map_err(unreadable)? {
            let name = file.map_err(unreadable)?.file_name();
            let name = name.to_string_lossy();
            names.extend(name.strip_suffix(".jsonl").map(str::to_owned));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Judges every history and runs it again: it must be told, judged as is told, and
    /// come out byte for byte. Returns how many there are.
    ///
    /// # Errors
    /// Everything that is otherwise, a line each.
    pub fn hold(&self, systems: &[Arc<dyn System>], jobs: NonZero<usize>) -> Result<usize, String> {
        let (names, told) = (self.names()?, stories(&self.told()?));
        let readme = self.stories();
        let readme = readme.display();
        let mut wrong: Vec<String> = Vec::new();
        for story in told.iter().filter(|story| !names.contains(&story.name)) {
            wrong.push(format!(
                "{readme} tells '{}', and there is no such history",
                story.name
            ));
        }
        let story = |name: &str| told.iter().find(|story| story.name == name);
        let goes_on = AtomicBool::new(false);
        let judged = |name: &String| match story(name) {
            Some(story) => self.holds(story, systems),
            None => Err(format!("'{name}' is not told in {readme}")),
        };
        in_order(names.iter(), jobs, &goes_on, judged, |held| {
            wrong.extend(held.err());
            Ok(ControlFlow::Continue(()))
        })?;
        match wrong[..] {
            [] => Ok(names.len()),
            _ => Err(wrong.join("\n")),
        }
    }

    fn holds(&self, story: &Story, systems: &[Arc<dyn System>]) -> Result<(), String> {
        let path = self.history(&story.name);
        let file = path.display();
        let (header, events) = reader::open(&path).map_err(|error| error.to_string())?;
        let mut judge = Judge::new(&header);
        for event in events {
            judge.see(&event.map_err(|error| error.to_string())?);
        }
        let judged = verdicts(&judge.finish());
        if judged != story.verdicts {
            return Err(format!(
                "{file}: judged '{}', and told '{}'",
                judged.join("; "),
                story.verdicts.join("; ")
            ));
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
        let mut lines = text.lines();
        let header: Header = serde_json::from_str(lines.next().unwrap_or_default())
            .map_err(|error| format!("{file}: its header does not fit: {error}"))?;
        header
            .validate()
            .map_err(|error| format!("{file}: {error}"))?;
        let system = systems.iter().find(|system| system.name() == header.system);
        let system = system.ok_or_else(|| format!("{file}: nobody holds '{}'", header.system))?;
        let outcome = campaign::outcome(&header, system);
        let mut run = outcome.history.iter().map(event_line);
        for index in 0.. {
            match (lines.next(), run.next()) {
                (None, None) => break,
                (was, now) if was == now.as_deref() => {}
                (was, now) => {
                    let side = |line: Option<&str>| line.unwrap_or("the end").to_owned();
                    return Err(format!(
                        "{file}: does not replay: event {index} was {} and is {} now; if the \
                         change is meant, write it anew: deposed keep --anew {file}",
                        side(was),
                        side(now.as_deref())
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Every history of a folder as one test: see [`Folder::hold`].
///
/// # Panics
/// With all that does not hold.
pub fn test(dir: &Path, systems: &[Arc<dyn System>]) {
    match Folder::new(dir).hold(systems, crate::parallel::all_cores()) {
        Ok(held) => println!("{} as told", counted(held as u64, "history")),
        Err(wrong) => panic!("\n{wrong}"),
    }
}

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

use std::{
    fs::{self, File},
    io,
    num::NonZero,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use deposed_checkers::{
    history::Event,
    judge::Judge,
    reader,
    verdict::{Check, Verdict, Verdicts},
    writer::event_line,
};

use crate::{
    campaign,
    parallel::in_order,
    report::{
        shelf,
        text::{counted, is_obeyed},
    },
    run::{Header, Outcome},
    system::System,
};

/// What a history without a violation was judged.
const VALID: &str = "valid";

/// What is told of a kept history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// The history's name: its file's, without `.jsonl`.
    pub name: String,
    /// What is to be seen in it.
    pub told: String,
    /// What was judged: `CHECK: what happened` for each that is violated, or `valid`.
    pub verdicts: Vec<String>,
}

/// The lines that say what was judged.
pub fn verdicts(verdicts: &Verdicts) -> Vec<String> {
    let line = |(check, verdict): &(Check, Verdict)| match verdict {
        Verdict::Violated(evidence) => Some(format!("{check}: {}", evidence.sentence)),
        Verdict::Unknown(why) => Some(format!("{check} unknown: {why}")),
        Verdict::Valid | Verdict::NotClaimed(_) => None,
    };
    let lines: Vec<String> = verdicts.0.iter().filter_map(line).collect();
    match lines[..] {
        [] => vec![VALID.to_owned()],
        _ => lines,
    }
}

/// The stories that a README tells.
pub fn stories(readme: &str) -> Vec<Story> {
    let mut stories: Vec<Story> = Vec::new();
    for line in readme.lines() {
        if line.starts_with('#') {
            stories.push(Story {
                name: line
                    .strip_prefix("## ")
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
                told: String::new(),
                verdicts: Vec::new(),
            });
            continue;
        }
        let Some(story) = stories.last_mut() else {
            continue;
        };
        match line.strip_prefix("- ") {
            Some(verdict) => story.verdicts.push(verdict.to_owned()),
            None => {
                story.told += line;
                story.told += " ";
            }
        }
    }
    // A heading over several, or one with nothing judged under it, tells no history.
    stories.retain(|story| !story.name.is_empty() && !story.verdicts.is_empty());
    for story in &mut stories {
        story.told = story.told.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    stories
}

/// The first words of verdicts: `valid`, or the checks.
fn checks(verdicts: &[String]) -> Vec<&str> {
    let check = |verdict| str::split(verdict, ':').next().unwrap_or(verdict);
    verdicts
        .iter()
        .map(|verdict| check(verdict.as_str()))
        .collect()
}

/// A README with other verdicts in one of its stories.
fn judged_anew(readme: &str, name: &str, verdicts: &[String]) -> String {
    let (mut text, mut inside, mut written) = (String::new(), false, false);
    for line in readme.lines() {
        if line.starts_with('#') {
            inside = line
                .strip_prefix("## ")
                .is_some_and(|told| told.trim() == name);
        }
        if !inside || !line.starts_with("- ") {
            text += line;
            text.push('\n');
        } else if !std::mem::replace(&mut written, true) {
            for verdict in verdicts {
                text += &format!("- {verdict}\n");
            }
        }
    }
    text
}

/// Whether a line that begins with this word would be read as a heading or a verdict.
fn is_no_beginning(word: &str) -> bool {
    word.starts_with(['#', '-'])
}

/// Text in lines of a hundred characters, as a person would break them. None begins as
/// what it is not: such a word stays with the one before it.
fn wrapped(text: &str) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let mut word = word.to_owned();
        while let Some(next) = words.next_if(|next| is_no_beginning(next)) {
            word = format!("{word} {next}");
        }
        let length = word.chars().count();
        if width > 0 && width + 1 + length > 100 {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines += &word;
        width += length;
    }
    lines
}

/// A sentence as it can stand in a story.
///
/// # Errors
/// It says nothing, begins as what it is not, or has a character that a terminal obeys.
pub fn sentence(text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let Some(c) = words.concat().chars().find(|c| is_obeyed(*c)) {
        let c = c.escape_default();
        return Err(format!(
            "the sentence holds the character '{c}', which no reader sees; leave it out"
        ));
    }
    match words.first() {
        None => Err("the sentence says nothing; tell what is to be seen in the history".to_owned()),
        Some(first) if is_no_beginning(first) => Err(format!(
            "the sentence begins with '{first}', which would be no sentence; begin with a word"
        )),
        Some(_) => Ok(words.join(" ")),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# Histories\n\nRuns.\n\n- not a verdict\n\n## a\n\nIt\nwakes.\n\n- x: 1\n- y: 2\n\n\
                          ### Aside\n\n- z\n\n## b\n\nNothing.\n\n- valid\n";

    #[test]
    fn a_story_is_a_section_with_a_verdict() {
        let found = stories(README);
        let story = |name: &str, told: &str, verdicts: &[&str]| Story {
            name: name.to_owned(),
            told: told.to_owned(),
            verdicts: verdicts
                .iter()
                .map(|verdict| (*verdict).to_owned())
                .collect(),
        };
        let expected = [
            story("a", "It wakes.", &["x: 1", "y: 2"]),
            story("b", "Nothing.", &["valid"]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_a_storys_verdicts_are_judged_anew() {
        let anew = judged_anew(README, "a", &["x: 3".to_owned()]);
        assert_eq!(anew, README.replace("- x: 1\n- y: 2\n", "- x: 3\n"));
    }

    #[test]
    fn a_long_story_is_broken_between_its_words() {
        let story = ["deposed"; 30].join(" ");
        let lines = wrapped(&story);
        assert!(lines.lines().all(|line| line.len() <= 100), "{lines}");
        assert_eq!(lines.lines().count(), 3, "no more than it takes");
        assert_eq!(lines.split_whitespace().count(), 30);
    }

    #[test]
    fn no_line_of_a_story_is_read_as_a_verdict_or_a_heading() {
        for mark in ["-", "#", "##", "- # -"] {
            // Wherever it falls, a break before it is not made.
            for length in 80..120 {
                let told = format!(
                    "{} {mark} valid",
                    ["x"; 80].concat() + &"y".repeat(length - 80)
                );
                let section = format!("## a\n\n{}\n\n- valid\n", wrapped(&told));
                let found = stories(&section);
                assert_eq!(found.len(), 1, "{section}");
                assert_eq!(found[0].told, told);
                assert_eq!(found[0].verdicts, ["valid"], "{section}");
            }
        }
    }

    #[test]
    fn a_sentence_holds_nothing_that_a_terminal_obeys() {
        assert_eq!(
            sentence("It\nwakes\t late."),
            Ok("It wakes late.".to_owned())
        );
        for told in ["It \u{1b}[31mwakes.", "It \u{202e}wakes."] {
            let refused = sentence(told).expect_err(told);
            assert!(refused.contains("leave it out"), "{refused}");
        }
    }
}

//! The README that tells a folder's histories: read, written, and judged anew.

use deposed_checkers::verdict::{Check, Verdict, Verdicts};

use crate::report::text::is_obeyed;

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
pub(super) fn checks(verdicts: &[String]) -> Vec<&str> {
    let check = |verdict| str::split(verdict, ':').next().unwrap_or(verdict);
    verdicts
        .iter()
        .map(|verdict| check(verdict.as_str()))
        .collect()
}

/// A README with other verdicts in one of its stories.
pub(super) fn judged_anew(readme: &str, name: &str, verdicts: &[String]) -> String {
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
pub(super) fn wrapped(text: &str) -> String {
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

//! A directory's index: the runs that left it, each a row of a table, with links to the
//! histories that were kept and to their pages. The rows travel in the page as data, so
//! that the next run adds its own to them.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    html::{escaped, page},
    shelf,
};

const PAGE: &str = include_str!("html/index.html");
const STYLE: &str = include_str!("html/index.css");
const DATA: (&str, &str) = (
    "<script type=\"application/json\" id=\"rows\">",
    "</script>",
);
/// How many histories of a row are linked.
const LINKED: usize = 20;

/// What a row is of; another run of the same takes its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The workload.
    pub workload: String,
    /// The system.
    pub system: String,
    /// The planted flaw.
    pub flaw: Option<String>,
    /// The first seed.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// `ok`, `unknown` or `FAILED`.
    pub verdict: String,
    /// What failed, how often; or the counts.
    pub counts: String,
    /// The marks that were seen, in words.
    pub seen: Vec<String>,
    /// Those that had to be seen and were not; `None`: too few seeds to judge.
    pub unseen: Option<Vec<String>>,
    /// The histories that were kept.
    pub kept: Vec<Kept>,
}

/// A kept history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its run's seed.
    pub seed: u64,
    /// Its file's name.
    pub file: String,
    /// Its page's file name, where it has one.
    pub page: Option<String>,
    /// The file name of what it was shrunk to, where it was.
    #[serde(default)]
    pub shrunk: Option<String>,
    /// Whether its run failed.
    pub failed: bool,
}

/// Writes the index of a directory: these rows, and those that are there already, with
/// links to what is still there. A file of its name that is none of ours is left as it is;
/// the index gets a number then.
///
/// # Errors
/// It cannot be written.
pub fn write(dir: &Path, rows: impl IntoIterator<Item = (Key, Row)>) -> Result<PathBuf, String> {
    let mut nth = 1;
    let (path, mut all) = loop {
        let path = dir.join(match nth {
            1 => "index.html".to_owned(),
            nth => format!("index.{nth}.html"),
        });
        match path.symlink_metadata() {
            Err(_) => break (path, BTreeMap::new()),
            Ok(_) => {
                let text = fs::read_to_string(&path);
                if let Some(rows) = text.ok().and_then(|text| rows_in(&text)) {
                    break (path, rows);
                }
            }
        }
        nth += 1;
    };
    for (key, mut row) in rows {
        if let Some(before) = all.get(&key) {
            keep_what_was_shrunk(before, &mut row);
        }
        all.insert(key, row);
    }
    for row in all.values_mut() {
        without_what_is_gone(dir, row);
    }
    let there = path.exists();
    let page = page_of(&all);
    // An empty directory may have been tidied away meanwhile.
    let written = fs::create_dir_all(dir)
        .and_then(|()| shelf::whole(&path, there, |file| file.write_all(page.as_bytes())));
    let failed = |error: io::Error| {
        format!(
            "the index '{}' cannot be written: {error}; make room, or name another directory \
             with --out",
            path.display()
        )
    };
    written.map_err(failed)?;
    Ok(path)
}

/// A history may have been moved since, to be kept, or removed: no link leads nowhere.
fn without_what_is_gone(dir: &Path, row: &mut Row) {
    row.kept.retain(|kept| dir.join(&kept.file).exists());
    for kept in &mut row.kept {
        kept.page.take_if(|page| !dir.join(page).exists());
        kept.shrunk.take_if(|shrunk| !dir.join(shrunk).exists());
    }
}

/// A file of the same name is of the same run, since a shelf overwrites no other: what an
/// earlier run shrank it to is still true, though this one shrank nothing.
fn keep_what_was_shrunk(before: &Row, row: &mut Row) {
    for kept in row.kept.iter_mut().filter(|kept| kept.shrunk.is_none()) {
        let same = before.kept.iter().find(|old| old.file == kept.file);
        kept.shrunk = same.and_then(|old| old.shrunk.clone());
    }
}

/// The rows of an index of ours.
fn rows_in(text: &str) -> Option<BTreeMap<Key, Row>> {
    let (_, data) = text.split_once(DATA.0)?;
    let (data, _) = data.split_once(DATA.1)?;
    let rows: Vec<(Key, Row)> = serde_json::from_str(data).ok()?;
    Some(rows.into_iter().collect())
}

fn page_of(rows: &BTreeMap<Key, Row>) -> String {
    let table: String = rows.iter().map(|(key, row)| row_of(key, row)).collect();
    let listed: Vec<_> = rows.iter().collect();
    // Names and numbers always have a JSON form; there is nothing to fail.
    let data = inert(&serde_json::to_string(&listed).unwrap_or_default());
    let parts = [("rows", &*table), ("data", &*data)];
    page(PAGE, STYLE, "", "deposed: runs", &parts)
}

/// JSON that HTML can hold: no character of it means anything there.
fn inert(json: &str) -> String {
    let escapes = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    let mut inert = json.to_owned();
    for (character, escape) in escapes {
        inert = inert.replace(character, escape);
    }
    inert
}

fn row_of(key: &Key, row: &Row) -> String {
    let mut name = key.workload.clone();
    if key.system != "deposed" {
        name += &format!(", system {}", key.system);
    }
    if let Some(flaw) = &key.flaw {
        name += &format!(", flaw {flaw}");
    }
    let seeds = match key.first == key.last {
        true => key.first.to_string(),
        false => format!("{} to {}", key.first, key.last),
    };
    let unseen = match &row.unseen {
        None => escaped("too few seeds to judge"),
        Some(unseen) => list(unseen.iter().map(|mark| escaped(mark))),
    };
    let kept = row.kept.iter().take(LINKED).map(|kept| {
        let link = |file: &str, text: &str| {
            let (file, text) = (escaped(file), escaped(text));
            format!("<a href=\"./{file}\">{text}</a>")
        };
        let failed = if kept.failed { " failed" } else { "" };
        let further = |file: &Option<String>, text: &str| {
            let link = file.as_ref().map(|file| format!(" {}", link(file, text)));
            link.unwrap_or_default()
        };
        format!(
            "seed {}{failed}: {}{}{}",
            kept.seed,
            link(&kept.file, "history"),
            further(&kept.page, "timeline"),
            further(&kept.shrunk, "shrunk")
        )
    });
    let more = row.kept.len().saturating_sub(LINKED);
    let more = (more > 0).then(|| format!("and {more} more"));
    format!(
        "<tr><td>{}</td><td>{seeds}</td><td><span class=\"{verdict}\">{verdict}</span><br>{}</td>\
         <td>{}</td><td>{unseen}</td><td>{}</td></tr>\n",
        escaped(&name),
        escaped(&row.counts),
        list(row.seen.iter().map(|mark| escaped(mark))),
        list(kept.chain(more)),
        verdict = escaped(&row.verdict),
    )
}

/// A list of what is HTML already.
fn list(items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{item}</li>")).collect();
    match items.is_empty() {
        true => String::new(),
        false => format!("<ul>{items}</ul>"),
    }
}

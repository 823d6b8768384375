//! Where histories are kept: a directory, one file a run, named after it. A file that
//! holds anything else is never overwritten, and no half a file is ever left behind.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    process,
};

use deposed_checkers::{history::Event, writer::event_line};

use crate::run::Header;

/// What a page of ours says of itself.
const GENERATOR: &str = "<meta name=\"generator\" content=\"deposed\">";

/// A directory of histories.
pub struct Shelf {
    dir: PathBuf,
    made: bool,
}

impl Shelf {
    /// Makes the directory if need be, and makes sure that files can be written there.
    ///
    /// # Errors
    /// It cannot be made or written to.
    pub fn open(dir: &Path) -> Result<Self, String> {
        let made = !dir.exists();
        // Shelves of one process may be opened at once.
        let thread = std::thread::current().id();
        let probe = dir.join(format!(".deposed-{}-{thread:?}.partial", process::id()));
        let try_it = || {
            fs::create_dir_all(dir)
                .and_then(|()| File::create(&probe))
                .and_then(|_| fs::remove_file(&probe))
        };
        // Another shelf may tidy the empty directory away between two of these steps.
        let tidied = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let tried = (0..100)
            .map(|_| try_it())
            .find(|tried| !tried.as_ref().is_err_and(tidied))
            .unwrap_or_else(try_it);
        match tried {
            Ok(()) => Ok(Self {
                dir: dir.to_owned(),
                made,
            }),
            Err(error) => Err(format!(
                "histories cannot be kept in '{}': {error}; name another directory with --out",
                dir.display()
            )),
        }
    }

    /// Writes a run's history. It may be there already, and stays as it is; where something
    /// else has its name, it gets a number behind it: the workload or its code has changed
    /// since, or somebody the file, and what was there is not lost.
    ///
    /// # Errors
    /// It cannot be written. Nothing was changed then.
    pub fn keep(&self, header: &Header, history: &[Event]) -> Result<PathBuf, String> {
        self.keep_as(&file_name(header), header, history)
    }

    /// The same under a name of its own, without its ending.
    ///
    /// # Errors
    /// It cannot be written. Nothing was changed then.
    pub fn keep_as(
        &self,
        name: &str,
        header: &Header,
        history: &[Event],
    ) -> Result<PathBuf, String> {
        let first = serde_json::to_string(header).map_err(|error| error.to_string())?;
        self.keep_lines(name, &first, history)
    }

    /// The same of a history whose first line is no run's.
    ///
    /// # Errors
    /// It cannot be written. Nothing was changed then.
    pub fn keep_lines(
        &self,
        name: &str,
        first: &str,
        history: &[Event],
    ) -> Result<PathBuf, String> {
        let cannot = |path: &Path, error: &io::Error| {
            format!(
                "the history '{}' cannot be written: {error}; make room, or name another \
                 directory with --out",
                path.display()
            )
        };
        // Another shelf may have tidied it away while it was empty.
        fs::create_dir_all(&self.dir).map_err(|error| cannot(&self.dir, &error))?;
        let mut nth = 1;
        loop {
            let path = self.dir.join(match nth {
                1 => format!("{name}.jsonl"),
                nth => format!("{name}.{nth}.jsonl"),
            });
            // A link that leads nowhere takes the name, too.
            let taken = path.symlink_metadata().is_ok();
            if taken && holds(&path, first, history).unwrap_or(false) {
                return Ok(path);
            }
            if !taken {
                match write_lines(&path, false, first, history) {
                    Ok(()) => return Ok(path),
                    // Somebody else has just taken the name: look again.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    Err(error) => return Err(cannot(&path, &error)),
                }
            }
            nth += 1;
        }
    }
}

impl Shelf {
    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes a kept history's page beside it; `None` where something else has its name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_page(&self, history: &Path, page: &str) -> Result<Option<PathBuf>, String> {
        let Some(path) = beside(history) else {
            return Ok(None);
        };
        let anew = path.exists();
        match whole(&path, anew, |file| file.write_all(page.as_bytes())) {
            Ok(()) => Ok(Some(path)),
            Err(error) => Err(format!(
                "the page '{}' cannot be written: {error}; make room, or name another directory \
                 with --out",
                path.display()
            )),
        }
    }
}

impl Drop for Shelf {
    /// A directory that was made for nothing goes again.
    fn drop(&mut self) {
        if self.made {
            // Fails when something was kept, as it should.
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

/// Writes a history, synced, under a name that nobody has or, `anew`, that has it already.
///
/// # Errors
/// It cannot be written, or the name is taken. Nothing was changed then.
pub fn write(path: &Path, anew: bool, header: &Header, history: &[Event]) -> io::Result<()> {
    write_lines(path, anew, &serde_json::to_string(header)?, history)
}

fn write_lines(path: &Path, anew: bool, first: &str, history: &[Event]) -> io::Result<()> {
    whole(path, anew, |file| {
        writeln!(file, "{first}")?;
        history
            .iter()
            .try_for_each(|event| writeln!(file, "{}", event_line(event)))
    })
}

/// `gc-pause-4`; a foreign system and a flaw are named, too.
pub fn file_name(header: &Header) -> String {
    let system = Some(header.system.as_str()).filter(|system| *system != "deposed");
    let flaw = header.flaw.map(|flaw| flaw.name());
    let seed = header.seed.to_string();
    let parts = [Some(header.workload.as_str()), system, flaw, Some(&seed)];
    let name: Vec<&str> = parts.into_iter().flatten().collect();
    let fit = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    name.join("-").replace(|c| !fit(c), "-")
}

/// Whether a file is this history, to the byte.
fn holds(path: &Path, first: &str, history: &[Event]) -> io::Result<bool> {
    let mut file = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    let mut is_next = |ours: &str| -> io::Result<bool> {
        line.clear();
        let read = file
            .by_ref()
            .take(ours.len() as u64 + 1)
            .read_until(b'\n', &mut line)?;
        Ok(read == ours.len() + 1 && line.ends_with(b"\n") && line.starts_with(ours.as_bytes()))
    };
    if !is_next(first)? {
        return Ok(false);
    }
    for event in history {
        if !is_next(&event_line(event))? {
            return Ok(false);
        }
    }
    Ok(file.fill_buf()?.is_empty())
}

/// Beside a history, its page: made anew with it. `None` where something that is no page
/// of ours has its name.
fn beside(history: &Path) -> Option<PathBuf> {
    let page = history.with_extension("html");
    let ours = |page: &Path| {
        let text = fs::read_to_string(page);
        text.is_ok_and(|text| text.contains(GENERATOR))
    };
    (page.symlink_metadata().is_err() || ours(&page)).then_some(page)
}

/// Whether a new file could be written here, before long work is done for it.
///
/// # Errors
/// The name is taken, or its directory is not there or cannot be written to.
pub(crate) fn room_for(path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let probe = partial(path);
    File::create(&probe)?;
    fs::remove_file(&probe)
}

/// What a file is called until it is whole.
fn partial(path: &Path) -> PathBuf {
    let dir = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    dir.join(format!(".{name}.{}.partial", process::id()))
}

/// Writes a file under another name and gives it its own when it is whole. Only with
/// `anew` does it take the place of a file that is there. Its directory must be there: one
/// that is made for a slip of the pen is found by nobody.
pub(crate) fn whole(
    path: &Path,
    anew: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let partial = partial(path);
    let written = File::create(&partial).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_all()?;
        match anew {
            true => fs::rename(&partial, path),
            // A link, unlike a rename, fails when the name is taken.
            false => fs::hard_link(&partial, path),
        }
    });
    // Gone already if it was renamed; the first error is the one to tell.
    let _ = fs::remove_file(&partial);
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{flaw::Flaw, workload::Workload};

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("deposed-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    fn header(system: &str, flaw: Option<Flaw>) -> Header {
        Header::of(&Workload::named("gc-pause"), 4, system, flaw)
    }

    #[test]
    fn a_file_is_named_after_its_run() {
        assert_eq!(file_name(&header("deposed", None)), "gc-pause-4");
        let flawed = header("deposed", Some(Flaw::NoBarrier));
        assert_eq!(file_name(&flawed), "gc-pause-no-barrier-4");
        assert_eq!(file_name(&header("a/b", None)), "gc-pause-a-b-4");
    }

    #[test]
    fn the_same_run_stays_and_another_is_never_overwritten() {
        let dir = scratch("shelf");
        let shelf = Shelf::open(&dir).expect("a temporary directory");
        let kept = shelf.keep(&header("deposed", None), &[]).expect("room");
        shelf
            .keep(&header("deposed", None), &[])
            .expect("the same run");
        let mut other = header("deposed", None);
        other.calm += 1;
        let beside = shelf.keep(&other, &[]).expect("another run");
        assert_eq!(beside, dir.join("gc-pause-4.2.jsonl"));
        assert_eq!(shelf.keep(&other, &[]), Ok(beside), "the same run again");
        let ours = serde_json::to_string(&header("deposed", None)).expect("a header") + "\n";
        assert_eq!(fs::read_to_string(&kept).expect("there"), ours, "untouched");
        // Nor what somebody has written into it since, or cut off.
        for edited in [ours.clone() + "{}\n", ours.trim_end().to_owned()] {
            fs::write(&kept, &edited).expect("room");
            let again = shelf.keep(&header("deposed", None), &[]).expect("room");
            assert_eq!(again, dir.join("gc-pause-4.3.jsonl"));
            assert_eq!(fs::read_to_string(&kept).expect("there"), edited);
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(dir.join("nowhere"), dir.join("gc-pause-a-4.jsonl"))
                .expect("room");
            let beside = shelf.keep(&header("a", None), &[]).expect("a name");
            assert_eq!(beside, dir.join("gc-pause-a-4.2.jsonl"));
        }
        drop(shelf);
        fs::remove_dir_all(&dir).expect("kept, since it is not empty");
    }

    #[test]
    fn a_full_disk_leaves_no_half_a_file_and_the_old_one_as_it_was() {
        let dir = scratch("full");
        let shelf = Shelf::open(&dir).expect("a temporary directory");
        let path = dir.join("x.jsonl");
        fs::write(&path, "old").expect("room");
        let half = |file: &mut dyn Write| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        let error = whole(&path, true, half).expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let whole_but_late = whole(&path, false, |file| file.write_all(b"new"));
        let error = whole_but_late.expect_err("the name is taken");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        #[expect(clippy::disallowed_methods, reason = "they are counted")]
        let left: Vec<_> = fs::read_dir(&dir).expect("there").flatten().collect();
        assert_eq!(
            (left.len(), fs::read(&path).expect("there")),
            (1, b"old".to_vec())
        );
        fs::remove_file(path).expect("there");
        drop(shelf);
        assert!(!dir.exists(), "made for nothing");
    }
}

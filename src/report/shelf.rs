//! Where histories are kept: a directory, one file a run, named after it. A file that
//! holds another run is never overwritten, and no half a file is ever left behind.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    process,
};

use deposed_checkers::{history::Event, reader::LINE_LIMIT, writer::event_line};

use crate::run::Header;

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
        let probe = dir.join(format!(".deposed-{}.partial", process::id()));
        let tried = fs::create_dir_all(dir)
            .and_then(|()| File::create(&probe))
            .and_then(|_| fs::remove_file(&probe));
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

    /// Writes a run's history. The same run may be there already; it is written anew.
    ///
    /// # Errors
    /// The file's name is taken by another run, or it cannot be written. Nothing was
    /// changed then.
    pub fn keep(&self, header: &Header, history: &[Event]) -> Result<PathBuf, String> {
        let path = self.dir.join(file_name(header));
        let first = serde_json::to_string(header).map_err(|error| error.to_string())?;
        if path.exists() && first_line(&path).ok().as_deref() != Some(first.as_bytes()) {
            return Err(format!(
                "'{}' holds another run and was not overwritten: move it away, or name another \
                 directory with --out",
                path.display()
            ));
        }
        let write = |file: &mut dyn Write| {
            writeln!(file, "{first}")?;
            history
                .iter()
                .try_for_each(|event| writeln!(file, "{}", event_line(event)))
        };
        whole(&path, write).map_err(|error| {
            format!(
                "the history '{}' cannot be written: {error}; make room, or name another \
                 directory with --out",
                path.display()
            )
        })?;
        Ok(path)
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

/// `gc-pause-4.jsonl`; a foreign system and a flaw are named, too.
fn file_name(header: &Header) -> String {
    let system = Some(header.system.as_str()).filter(|system| *system != "deposed");
    let flaw = header.flaw.map(|flaw| flaw.name());
    let seed = header.seed.to_string();
    let parts = [Some(header.workload.as_str()), system, flaw, Some(&seed)];
    let name: Vec<&str> = parts.into_iter().flatten().collect();
    let fit = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let name = name.join("-").replace(|c| !fit(c), "-");
    format!("{name}.jsonl")
}

fn first_line(path: &Path) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut file = BufReader::new(File::open(path)?).take(LINE_LIMIT as u64);
    file.read_until(b'\n', &mut line)?;
    line.pop_if(|last| *last == b'\n');
    Ok(line)
}

/// Writes a file under another name and renames it when it is whole.
fn whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    // The directory may have been tidied away meanwhile.
    fs::create_dir_all(dir)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = dir.join(format!(".{name}.{}.partial", process::id()));
    let written = File::create(&partial).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_all()?;
        fs::rename(&partial, path)
    });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&partial);
    }
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
        assert_eq!(file_name(&header("deposed", None)), "gc-pause-4.jsonl");
        let flawed = header("deposed", Some(Flaw::NoBarrier));
        assert_eq!(file_name(&flawed), "gc-pause-no-barrier-4.jsonl");
        assert_eq!(file_name(&header("a/b", None)), "gc-pause-a-b-4.jsonl");
    }

    #[test]
    fn the_same_run_is_written_anew_and_another_never_overwritten() {
        let dir = scratch("shelf");
        let shelf = Shelf::open(&dir).expect("a temporary directory");
        let kept = shelf.keep(&header("deposed", None), &[]).expect("room");
        shelf
            .keep(&header("deposed", None), &[])
            .expect("the same run");
        let mut other = header("deposed", None);
        other.calm += 1;
        let refused = shelf.keep(&other, &[]).expect_err("another run");
        assert!(
            refused.contains("gc-pause-4.jsonl' holds another run"),
            "{refused}"
        );
        let first = first_line(&kept).expect("it is there");
        let ours = serde_json::to_vec(&header("deposed", None)).expect("a header");
        assert_eq!(first, ours, "untouched");
        drop(shelf);
        fs::remove_dir_all(&dir).expect("kept, since it is not empty");
    }

    #[test]
    fn a_full_disk_leaves_no_half_a_file_and_the_old_one_as_it_was() {
        let dir = scratch("full");
        let shelf = Shelf::open(&dir).expect("a temporary directory");
        let path = dir.join("x.jsonl");
        fs::write(&path, "old").expect("room");
        let error = whole(&path, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(error.expect_err("full").kind(), io::ErrorKind::StorageFull);
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

//! `deposed check --follow`: verdicts on a history that is still being written.

use std::{
    cell::OnceCell,
    fs::File,
    io::{self, BufRead, BufReader, Chain, Cursor, Read},
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::Path,
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use deposed_checkers::{
    history::{Event, Header},
    import::{self, Entries, Format, History, OpenError},
    reader::{Problem, ReadError, Reader},
    verdict::Check,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags},
    time::Timespec,
};

use super::{
    Console, Exit,
    arguments::{CheckArgs, FormatArg},
    check::{Judged, budget, foreign, judge, suits, unknown},
};
use crate::{report::Halt, shrink::monotonic};

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(50);

/// Why nothing more is read of a history.
#[derive(Clone, Debug, PartialEq)]
enum End {
    /// Whoever wrote into the pipe has closed it.
    Written,
    /// It was followed for as long as was asked, or Ctrl-C was pressed.
    Enough,
    /// What is written now is not what was followed: why, and what to do.
    Lost(&'static str),
}

pub(super) fn follow(
    args: &CheckArgs,
    only: &[Check],
    console: &mut Console<'_>,
) -> Result<Exit, Halt> {
    let [path] = &args.histories[..] else {
        return Err(Halt::BadInput(
            "--follow follows one history; start one for each".to_owned(),
        ));
    };
    let stop = console.stop;
    let until = args.within.map(|within| monotonic() + within);
    let pause = || {
        if stop.load(Ordering::Relaxed) || until.is_some_and(|until| monotonic() >= until) {
            return Some(End::Enough);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "a file in the real world: no simulation waits for it"
        )]
        std::thread::sleep(PAUSE);
        None
    };
    let judged = followed(path, args, only, pause)?;
    console.out.write_all(judged.told(path, args)?.as_bytes())?;
    Ok(judged.exit())
}

/// Judges a history until a violation is certain, or there is an end. `pause` is called
/// whenever there is nothing to read: it waits, or says that it is enough.
fn followed(
    path: &Path,
    args: &CheckArgs,
    only: &[Check],
    pause: impl FnMut() -> Option<End>,
) -> Result<Judged, Halt> {
    let file = path.display().to_string();
    let end = Rc::new(OnceCell::new());
    let refuse = |said: String| match end.get() {
        Some(End::Lost(why)) => Halt::BadInput(format!("{file}: {why}")),
        _ => Halt::BadInput(said),
    };
    if path.is_dir() {
        return Err(refuse(format!(
            "{file}: a folder cannot be followed: name a file in it, or check it without --follow \
             once all is written"
        )));
    }
    let tail = Tail::open(path, pause, Rc::clone(&end)).map_err(|error| {
        refuse(match error.kind() {
            io::ErrorKind::NotFound => format!(
                "{file}: is not there yet: follow it once its writer has begun it, or begin it \
                 empty"
            ),
            _ => format!("{file}: {}", Problem::Open(error)),
        })
    })?;
    let history =
        open(BufReader::new(tail), &file, args.format).map_err(|error| refuse(unknown(error)))?;
    suits(&history, path, args).map_err(Halt::BadInput)?;
    let enough = || end.get() == Some(&End::Enough);
    match history {
        History::Deposed(header, events) => {
            let judged = own(path, &header, events, args, only, enough);
            judged.map_err(|error| refuse(error.to_string()))
        }
        History::Foreign(entries) if entries.format() == Format::Etcd => Err(refuse(format!(
            "{file}: a report of etcd's robustness tests is in no order before it is whole: check \
             it without --follow then"
        ))),
        History::Foreign(entries) => {
            let never = AtomicBool::new(false);
            let judged = foreign::judged(entries, args, only, &never, enough).map_err(refuse)?;
            Ok(Judged::of_foreign(path, judged, only))
        }
    }
}

/// Of what was looked at to tell a format nothing is lost.
type Looked<R> = Chain<Cursor<Vec<u8>>, R>;

/// The history, in the format that is named or that its first line tells.
fn open<R: BufRead>(
    input: R,
    file: &str,
    format: Option<FormatArg>,
) -> Result<History<Looked<R>>, OpenError> {
    let Some(format) = format else {
        return import::open_text(input, file);
    };
    let input = Cursor::new(Vec::new()).chain(input);
    match format {
        FormatArg::Of(format) => Ok(History::Foreign(Entries::new(format, input, file))),
        FormatArg::Deposed => {
            let (header, events) = Reader::new(input, file)?;
            Ok(History::Deposed(Box::new(header), events))
        }
    }
}

fn own(
    path: &Path,
    header: &Header,
    reader: impl Iterator<Item = Result<Event, ReadError>>,
    args: &CheckArgs,
    only: &[Check],
    enough: impl Fn() -> bool,
) -> Result<Judged, ReadError> {
    let mut judge = judge(header, only).within(budget(args));
    let mut events = 0;
    for event in reader {
        match event {
            Ok(event) => judge.see(&event),
            // The rest of the line would have come.
            Err(error) if matches!(error.problem, Problem::Torn) && enough() => break,
            Err(error) => return Err(error),
        }
        events += 1;
        if judge.convicted().next().is_some() {
            break;
        }
    }
    Ok(Judged::of(path, header, events, judge, only))
}

/// What is written into a file or a pipe, as it comes. Reading waits; it ends when `pause`
/// says so, or with a pipe's writer.
struct Tail<'a, P> {
    path: &'a Path,
    input: Input,
    /// How many bytes were read.
    position: u64,
    pause: P,
    end: Rc<OnceCell<End>>,
}

enum Input {
    /// Ends where it ends by now.
    File(File),
    /// Ends with its writer.
    Pipe(File),
}

impl<'a, P> Tail<'a, P> {
    fn open(path: &'a Path, pause: P, end: Rc<OnceCell<End>>) -> io::Result<Self> {
        let opened = match path.as_os_str() == "-" {
            true => io::stdin().as_fd().try_clone_to_owned()?,
            // A FIFO that nobody writes to yet is not waited for here, where Ctrl-C is not heard.
            false => rustix::fs::open(
                path,
                OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
                Mode::empty(),
            )?,
        };
        let opened = File::from(opened);
        let input = match path.as_os_str() != "-" && opened.metadata()?.is_file() {
            true => Input::File(opened),
            false => Input::Pipe(opened),
        };
        Ok(Tail {
            path,
            input,
            position: 0,
            pause,
            end,
        })
    }

    /// Why a file that has been read to its end will not go on as the one that was opened.
    fn lost(&self, file: &File) -> io::Result<Option<&'static str>> {
        let opened = file.metadata()?;
        let truncated = "it was truncated while it was followed: what was cut off is not judged; \
                         write each history into a file of its own and follow that";
        let moved = "it was moved, removed or replaced while it was followed: what is written \
                     now is written elsewhere; follow that";
        if opened.len() < self.position {
            return Ok(Some(truncated));
        }
        let there = std::fs::metadata(self.path);
        let same =
            there.is_ok_and(|there| (there.dev(), there.ino()) == (opened.dev(), opened.ino()));
        Ok((!same).then_some(moved))
    }
}

impl<P: FnMut() -> Option<End>> Tail<'_, P> {
    /// What has come, or nothing yet.
    fn read_now(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let read = match &mut self.input {
            Input::File(file) => file.read(into)?,
            Input::Pipe(pipe) => {
                let mut ready = [PollFd::new(&*pipe, PollFlags::IN)];
                // A signal may cut it short, and so may Ctrl-C: it is looked at again.
                if poll(&mut ready, Some(&Timespec::default())).is_ok_and(|ready| ready == 0) {
                    return Ok(None);
                }
                match pipe.read(into) {
                    Ok(0) => {
                        let _ = self.end.set(End::Written);
                        return Ok(Some(0));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                    read => read?,
                }
            }
        };
        if self.position == 0 && read > 0 && into[0] == GZIP {
            return Err(self.refuse("it is gzipped, and cannot be judged before it is whole; then check it without --follow"));
        }
        self.position += read as u64;
        Ok((read > 0).then_some(read))
    }

    fn refuse(&self, why: &'static str) -> io::Error {
        let _ = self.end.set(End::Lost(why));
        io::Error::other(why)
    }
}

/// The first byte of a gzipped file, and of no text.
const GZIP: u8 = 0x1f;

impl<P: FnMut() -> Option<End>> Read for Tail<'_, P> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            // Nothing follows on an end.
            if self.end.get().is_some() {
                return Ok(0);
            }
            if let Some(read) = self.read_now(into)? {
                return Ok(read);
            }
            if let Input::File(file) = &self.input
                && let Some(why) = self.lost(file)?
            {
                return Err(self.refuse(why));
            }
            if let Some(end) = (self.pause)() {
                let _ = self.end.set(end);
            }
        }
    }
}

#[cfg(test)]
mod tests;

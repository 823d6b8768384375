//! Records what a program tells [`tracing`](https://docs.rs/tracing) as a history, while it
//! runs. Feature `tracing`.
//!
//! Only the target `deposed::history` is listened to. There a **span is a call** and an
//! **event is an observation**; each is named as the format names it, and has the fields that
//! the format puts into `value`, and `process`:
//!
//! ```
//! use deposed_checkers::history::Header;
//! use deposed_checkers::recording::Recording;
//! use tracing::field::Empty;
//! use tracing_subscriber::layer::SubscriberExt;
//!
//! let recording = Recording::new(Vec::new(), &Header::titled("my-lock"))?;
//! let subscriber = tracing_subscriber::registry().with(recording.layer());
//! tracing::subscriber::with_default(subscriber, || {
//!     let acquire = tracing::info_span!(
//!         target: "deposed::history", "acquire", process = "a",
//!         lease = "leader", holder = "a#1", ttl = 300_000_000_u64,
//!         token = Empty, outcome = Empty, error = Empty,
//!     );
//!     // … the call …
//!     acquire.record("token", 7_u64);
//!     acquire.record("outcome", "ok");
//!
//!     tracing::info!(
//!         name: "applied", target: "deposed::history", process = "storage",
//!         f = "write", lease = "leader", token = 7_u64, key = "x", value = 40,
//!     );
//! });
//! let history = recording.finish()?;
//! assert_eq!(history.iter().filter(|byte| **byte == b'\n').count(), 1 + 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Calls
//!
//! - A span that is opened is the invoke: open it right before the call, with all that is asked
//!   for. The call ids are given here.
//! - What is recorded afterwards is the answer: `token` (of an acquire), `value` or
//!   `absent = true` (of a read), `error` with `presented` and `seen`; at last `outcome`, which is
//!   `ok`, `fail` (surely did not happen) or `info` (may have happened, a time-out). The completion
//!   is written when `outcome` is recorded, so record it once the answer is there.
//! - A span that closes without an outcome is `info`: a future that was dropped and a thread that
//!   panicked may have done what they were about. A span still open at the end stays open.
//! - `tracing` drops what is recorded into a field that the span was not opened with: declare
//!   each as [`tracing::field::Empty`]. A call whose span has no field `outcome` is refused.
//!
//! # Observations and faults
//!
//! An event needs its name (`name: "granted"`). Where threads race, tell it while you hold the
//! lock under which it happens: lines have the order in which they were told, and the checks
//! believe it. What is nested in the format is text in JSON here: `leases` and `highest` of
//! `recovered` and `restored`. The `error` of a `denied` is its kind. An event whose process is
//! `nemesis` is a fault of any name, with any fields.
//!
//! # What is not recorded
//!
//! A history with holes could convict a system that is correct: a lease looks revived where its
//! release is missing. So the first event that cannot be recorded, as it lacks a field, has one
//! that the format does not know, or finds the disk full, ends the recording. What was written
//! until then is a history, and its last line tells why it ends there (but for a full disk, which
//! may leave a torn line that readers refuse). [`Recording::finish`] returns an error that tells
//! it, too, and how many events are missing.
//!
//! A filter in front of the layer leaves holes that nothing here can see: let all of
//! `deposed::history` through, or nothing.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::history::{Header, Nanos};

mod layer;
mod lines;
mod log;

pub use layer::HistoryLayer;
use log::Log;

/// The target of the spans and events that are recorded.
pub const TARGET: &str = "deposed::history";

/// A history that is being recorded. Dropping it flushes what is written; only
/// [`finish`](Recording::finish) tells what is not.
#[must_use = "finish it to learn whether all was recorded"]
pub struct Recording<W: Write> {
    log: Arc<Mutex<Log<W>>>,
}

impl<W: Write> Recording<W> {
    /// Begins a history with a header; `time` counts from now, by [`Instant`].
    ///
    /// Each line is one `write` to `out`: a [`File`](std::fs::File) as it is can be followed
    /// (`deposed check --follow`), one in a [`BufWriter`](io::BufWriter) costs the program less.
    ///
    /// # Errors
    ///
    /// When the header cannot be written.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the clock of the program that is recorded, which runs in no simulation"
        )]
        let start = Instant::now();
        let clock = move || Nanos::try_from(start.elapsed().as_nanos()).unwrap_or(Nanos::MAX);
        Self::with_clock(out, header, clock)
    }

    /// The same with a clock of the caller's: nanoseconds since the start of the run, the same
    /// for every process, never going back. It is called while other threads wait for their
    /// turn, and must not itself trace into [`TARGET`].
    ///
    /// # Errors
    ///
    /// When the header cannot be written.
    pub fn with_clock(
        out: W,
        header: &Header,
        clock: impl Fn() -> Nanos + Send + 'static,
    ) -> io::Result<Self> {
        let log = Log::new(out, header, Box::new(clock))?;
        Ok(Self {
            log: Arc::new(Mutex::new(log)),
        })
    }

    /// What is added to a `tracing` subscriber. All layers of a recording write to it.
    pub fn layer(&self) -> HistoryLayer<W> {
        HistoryLayer::new(Arc::clone(&self.log))
    }

    /// Ends the history, flushes it and gives the output back. What is told afterwards is no part
    /// of it; calls that are open stay open.
    ///
    /// # Errors
    ///
    /// When an event was not recorded: what is written then ends before it.
    pub fn finish(self) -> Result<W, Incomplete> {
        locked(&self.log).finish()
    }
}

impl<W: Write> Drop for Recording<W> {
    fn drop(&mut self) {
        let mut log = locked(&self.log);
        // Not after `finish`, which has told it.
        if let Some(Err(incomplete)) = log.is_open().then(|| log.finish()) {
            // The last to hear of it; there is nobody to return it to.
            eprintln!("deposed: {incomplete}");
        }
    }
}

/// A panic in the caller's clock leaves nothing half done.
fn locked<W: Write>(log: &Mutex<Log<W>>) -> MutexGuard<'_, Log<W>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A recording that ended before its program did.
#[derive(Debug, thiserror::Error)]
#[error("{recorded} of {} events were recorded: {cause}", recorded + unrecorded)]
pub struct Incomplete {
    /// How many events the history holds.
    pub recorded: u64,
    /// How many are missing, the one that ended it among them.
    pub unrecorded: u64,
    /// What ended it.
    #[source]
    pub cause: Cause,
}

/// What ends a recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// A span or an event that is no line of a history: which, and what to do.
    NoLine(String),
    /// The clock went back.
    ClockWentBack {
        /// What it had shown.
        before: Nanos,
        /// What it shows now.
        now: Nanos,
    },
    /// The output failed: the disk is full, the pipe is closed.
    Write(io::Error),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NoLine(why) => f.write_str(why),
            Cause::ClockWentBack { before, now } => write!(
                f,
                "the clock went back from {before} to {now}: give a monotonic one"
            ),
            Cause::Write(error) => write!(f, "it cannot be written: {error}"),
        }
    }
}

impl std::error::Error for Cause {}

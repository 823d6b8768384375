//! How much a judge may remember at once, and what it is that a check remembers.
//!
//! A check remembers what is open: calls without an answer, beliefs, terms that are in
//! force, writes that may yet land, values that can still be read; and of each process,
//! lease, key or store what it said last. Each of these is one *thing*, of a hundred to
//! three hundred bytes. An operation that is left open for ever is remembered for ever,
//! and so counts against the [`Budget`] to the end.

/// How much memory and work a judgement may take before it is given up as
/// [`Unknown`](crate::verdict::Verdict::Unknown). Work is counted and not timed: the same
/// history with the same budget has the same verdict everywhere.
///
/// A [`Judge`](crate::judge::Judge) of leases may remember, for each check, one thing for
/// each 1000 bytes: a thing is remembered by several checks. A check that would have to
/// remember more gives up and forgets all it knew: its verdict is Unknown, with a sentence
/// that says what there was too much of; a violation that it had found before stands. The
/// others go on. Without the calls that are open nothing can be judged, so where there are
/// too many of those every check is Unknown.
///
/// The count is taken now and then, so that a few more than that may be remembered for a
/// short while: at most a quarter.
///
/// Steps are for what must be searched: keys whose values are written twice, found by `cas`
/// or appended to, by a [`model`](crate::model).
///
/// ```
/// use deposed_checkers::budget::Budget;
/// use deposed_checkers::judge::Judge;
///
/// let header = serde_json::from_str(r#"{"deposed":1}"#)?;
/// assert_eq!(Budget::default().bytes, 1_000_000_000);
/// let judge = Judge::new(&header).within(Budget { bytes: 10_000_000, ..Budget::default() });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of memory, about: for operations that stay open, for keys, however few calls each
    /// had, for what is searched at once, and for a history of which parts must be kept.
    pub bytes: u64,
    /// Configurations looked at for each key that is searched; a million or so take a second.
    pub steps: u64,
    /// How many keys are searched at once, on a thread each.
    pub jobs: usize,
}

/// About what one thing takes, with what several checks remember of it.
const THING_BYTES: u64 = 1_000;

impl Budget {
    /// The most that one check of leases may remember at once.
    pub(crate) fn things(self) -> usize {
        usize::try_from(self.bytes / THING_BYTES).unwrap_or(usize::MAX)
    }

    /// What to do where memory was not enough.
    pub(crate) fn more_memory(self) -> String {
        format!(
            "judge a shorter history, or give more memory than {} (--max-memory)",
            size(self.bytes)
        )
    }
}

/// A size in memory, in decimal units: `1 GB`.
fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        1_000_000_000.. => (1_000_000_000, "GB"),
        1_000_000.. => (1_000_000, "MB"),
        1_000.. => (1_000, "kB"),
        _ => (1, "bytes"),
    };
    let whole = bytes / unit;
    match bytes % unit * 10 / unit {
        0 => format!("{whole} {name}"),
        tenths => format!("{whole}.{tenths} {name}"),
    }
}

impl Default for Budget {
    /// One gigabyte, of which an ordinary history of leases, of any length, needs one in a
    /// thousand; twenty million steps; two keys at once.
    fn default() -> Self {
        Budget {
            bytes: 1_000_000_000,
            steps: 20_000_000,
            jobs: 2,
        }
    }
}

/// What is remembered, counted by kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct Remembered {
    pub things: usize,
    most: (usize, &'static str),
}

impl Remembered {
    /// And so many of another kind.
    pub fn and(mut self, kind: &'static str, things: usize) -> Self {
        self.things += things;
        if things > self.most.0 {
            self.most = (things, kind);
        }
        self
    }

    /// And what another part of a checker remembers.
    pub fn with(mut self, other: Remembered) -> Self {
        self.things += other.things;
        if other.most.0 > self.most.0 {
            self.most = other.most;
        }
        self
    }

    /// Why a check gives up, if it has to.
    pub fn beyond(&self, budget: Budget) -> Option<String> {
        (self.things > budget.things()).then(|| {
            format!(
                "more than {} things would have to be remembered at once, most of them {}: {}",
                budget.things(),
                self.most.1,
                budget.more_memory()
            )
        })
    }
}

//! How much a judge may remember at once, and what it is that a check remembers.
//!
//! A check remembers what is open: calls without an answer, beliefs, terms that are in
//! force, writes that may yet land, values that can still be read; and of each process,
//! lease, key or store what it said last. Each of these is one *thing*, of a hundred to
//! three hundred bytes. An operation that is left open for ever is remembered for ever,
//! and so counts against the [`Budget`] to the end.

/// How many things a judge may remember at once, for each check.
///
/// A check that would have to remember more gives up and forgets all it knew: its verdict
/// is [`Unknown`](crate::verdict::Verdict::Unknown), with a sentence that says what there
/// was too much of; a violation that it had found before stands. The others go on. Without
/// the calls that are open nothing can be judged, so where there are too many of those
/// every check is Unknown.
///
/// The count is taken now and then, so that a few more than that may be remembered for a
/// short while: at most a quarter.
///
/// ```
/// use deposed_checkers::budget::Budget;
/// use deposed_checkers::judge::Judge;
///
/// let header = serde_json::from_str(r#"{"deposed":1}"#)?;
/// assert_eq!(Budget::default().things, 1_000_000);
/// let judge = Judge::new(&header).within(Budget { things: 10_000 });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most that one check may remember at once.
    pub things: usize,
}

impl Default for Budget {
    /// A million things a check: some 200 MB for one that remembers that many. An ordinary
    /// history, of any length, needs a few hundred.
    fn default() -> Self {
        Budget { things: 1_000_000 }
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
        (self.things > budget.things).then(|| {
            format!(
                "more than {} things would have to be remembered at once, most of them {}: judge a \
                 shorter history, or with a larger budget",
                budget.things, self.most.1
            )
        })
    }
}

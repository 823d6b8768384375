//! More acquires of a lock than the releases among them allow, or the other way round:
//! the short story of a lock without owners that has no order.
//!
//! Acquires that surely lie within some time need a release between each two; only those
//! that are under way in that time can lie there. So two more acquires than such releases
//! have no order, nor two more releases than acquires; from the start, where the lock is
//! free, one more release is too many.
//!
//! An acquire and a release of one process cancel out, whichever comes first: leave out
//! both, and as many are missing as before. What does not cancel out shows that some are
//! missing. As a rule that is two acquires, of one that held the lock and of one that took
//! it all the same, however many had held it and let it go before.

use std::collections::BTreeMap;

use super::Operation;
use super::mutex::Step;

/// How many that do not cancel out are remembered.
const REMEMBERED: usize = 512;

/// Of one process: what does not cancel out.
#[derive(Default)]
struct Own {
    /// Those that need one of the other kind between each two. Where there are any,
    /// `serve` is empty, and the other way round.
    need: Vec<Operation>,
    serve: Vec<Operation>,
    /// What the call that is under way cancelled.
    cancelled: Option<(u64, Operation)>,
}

impl Own {
    fn is_even(&self) -> bool {
        self.need.is_empty() && self.serve.is_empty() && self.cancelled.is_none()
    }
}

/// The operations of a stretch of time, by process.
#[derive(Default)]
pub(crate) struct Surplus {
    processes: BTreeMap<u32, Own>,
    /// How many there are in `processes`.
    remembered: usize,
    /// More was to be remembered than could be.
    forgot: bool,
    /// How many more need than serve.
    more: i64,
    /// How many have cancelled out.
    pairs: usize,
}

/// What shows that there is no order.
#[derive(Clone)]
pub(crate) struct Shown {
    /// What needs and what serves, in the order of their invokes.
    pub operations: Vec<Operation>,
    /// How many of those serve.
    pub serve: usize,
    /// How many of each kind cancelled out.
    pub pairs: usize,
    /// Of which kind those are that need.
    pub step: Step,
    /// Whether the lock was free before: all since the start are counted.
    pub from_start: bool,
}

impl Surplus {
    fn changes(&mut self, process: u32, change: impl FnOnce(&mut Own) -> (i64, i64)) {
        if self.forgot {
            return;
        }
        let own = self.processes.entry(process).or_default();
        let before = own.need.len() + own.serve.len();
        let (more, pairs) = change(own);
        let now = own.need.len() + own.serve.len();
        if own.is_even() {
            self.processes.remove(&process);
        }
        if self.processes.is_empty() {
            // An empty map may hold on to its memory.
            self.processes = BTreeMap::new();
        }
        self.more += more;
        self.pairs = self.pairs.saturating_add_signed(pairs as isize);
        self.remembered = self.remembered + now - before;
        if self.remembered > REMEMBERED {
            self.forgot = true;
            self.processes.clear();
        }
    }

    /// One that surely lies in this time.
    pub fn needs(&mut self, operation: Operation) {
        self.changes(operation.process, |own| match own.serve.pop() {
            Some(_) => (1, 1),
            None => {
                own.need.push(operation);
                (1, 0)
            }
        });
    }

    /// One of the other kind, that can lie in it.
    pub fn serves(&mut self, operation: Operation) {
        self.changes(operation.process, |own| match own.need.pop() {
            Some(other) => {
                own.cancelled = Some((operation.invoke, other));
                (-1, 1)
            }
            None => {
                own.serve.push(operation);
                (-1, 0)
            }
        });
    }

    /// One that served is over; `failed` if it surely did not happen.
    pub fn ends(&mut self, process: u32, invoke: u64, failed: bool) {
        self.changes(process, |own| {
            let cancelled = own.cancelled.take_if(|(other, _)| *other == invoke);
            let serves = own.serve.iter().position(|other| other.invoke == invoke);
            match (cancelled, serves) {
                (Some((_, operation)), _) if failed => {
                    own.need.push(operation);
                    (1, -1)
                }
                (None, Some(at)) if failed => {
                    own.serve.remove(at);
                    (1, 0)
                }
                _ => (0, 0),
            }
        });
    }

    /// What shows that there is no order, if there are too many.
    fn shown(&self, step: Step, from_start: bool) -> Option<Shown> {
        let allowed = match (step, from_start) {
            (Step::Release, true) => 0,
            _ => 1,
        };
        if self.forgot || self.more <= allowed {
            return None;
        }
        let all = || self.processes.values();
        let mut operations: Vec<Operation> = (all().flat_map(|own| &own.need))
            .chain(all().flat_map(|own| &own.serve))
            .copied()
            .collect();
        operations.sort_unstable_by_key(|operation| operation.invoke);
        Some(Shown {
            operations,
            serve: all().map(|own| own.serve.len()).sum(),
            pairs: self.pairs,
            step,
            from_start,
        })
    }
}

/// Both counts since the start of a lock's history.
#[derive(Default)]
pub(crate) struct SinceStart {
    acquires: Surplus,
    releases: Surplus,
}

impl SinceStart {
    fn of(&mut self, step: Step) -> (&mut Surplus, &mut Surplus) {
        match step {
            Step::Acquire => (&mut self.acquires, &mut self.releases),
            Step::Release => (&mut self.releases, &mut self.acquires),
        }
    }

    /// An operation begins.
    pub fn begins(&mut self, step: Step, operation: Operation) {
        self.of(step).1.serves(operation);
    }

    /// An operation ended: whether it surely happened, or surely did not.
    pub fn ends(&mut self, step: Step, operation: Operation, happened: Option<bool>) {
        let (same, other) = self.of(step);
        other.ends(operation.process, operation.invoke, happened == Some(false));
        if happened == Some(true) {
            same.needs(operation);
        }
    }

    /// What shows, by counting all of them, that there is no order.
    pub fn shown(&self) -> Option<Shown> {
        let acquires = self.acquires.shown(Step::Acquire, true);
        fewer(acquires, self.releases.shown(Step::Release, true))
    }
}

/// The one with fewer operations.
pub(crate) fn fewer(one: Option<Shown>, other: Option<Shown>) -> Option<Shown> {
    let size = |shown: &Shown| (shown.operations.len(), shown.pairs);
    let both = [one, other].into_iter().flatten();
    both.min_by_key(size)
}

/// The shortest story that the last operations tell, in the order of their invokes: all
/// that completed at `since` or later are among them, or, where that is the start, all.
pub(crate) fn among(operations: &[(Step, Operation)], since: Option<u64>) -> Option<Shown> {
    let mut found = None;
    for step in [Step::Acquire, Step::Release] {
        let mut marks: Vec<(u64, bool, Operation)> = (operations.iter())
            .filter_map(|(of, operation)| match *of == step {
                true if operation.must => Some((operation.complete, true, *operation)),
                true => None,
                false => Some((operation.invoke, false, *operation)),
            })
            .collect();
        marks.sort_unstable_by_key(|(at, ..)| *at);
        let starts = (operations.iter())
            .filter(|(of, operation)| *of == step && operation.must)
            .map(|(_, operation)| operation.invoke)
            .filter(|invoke| since.is_none_or(|since| *invoke >= since));
        let start = since.is_none().then_some(0);
        for (from, from_start) in starts
            .map(|from| (from, false))
            .chain(start.map(|start| (start, true)))
        {
            let mut surplus = Surplus::default();
            for (_, needs, operation) in &marks {
                match needs {
                    true if operation.invoke >= from => surplus.needs(*operation),
                    false if from_start || operation.complete > from => surplus.serves(*operation),
                    _ => continue,
                }
                let shown = surplus.shown(step, from_start);
                if shown.is_some() {
                    found = fewer(found, shown);
                    break;
                }
            }
        }
    }
    found
}

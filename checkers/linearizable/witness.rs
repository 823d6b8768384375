//! The few operations that show that there is no order.
//!
//! To leave an operation out of a history proves nothing: a read of 3 has no order
//! once the write of 3 is left out. So here no operation is left out, but *released*:
//! it may have happened in its time, or not. Every order of the history is one with
//! operations released, too; if even then there is none, those that were not released
//! show it. They are the witness, and none of them can be released as well.

use std::sync::atomic::AtomicU64;

use super::search::{ALL, Found, NoOrder, search};
use super::states::{Id, States};
use super::{Does, Limit, NEVER, Operation};

/// There is nothing else that may end a search.
static FOREVER: AtomicU64 = AtomicU64::new(u64::MAX);

/// How many completions before the culprit are looked at, first few, then more.
const WINDOWS: [usize; 4] = [8, 32, 128, 512];

/// A state that no operation names.
pub(crate) const ANOTHER: Id = Id::MAX - 1;

/// Operations in the order of their invokes, and where they start.
pub(crate) struct Part<'a> {
    pub operations: &'a [Operation],
    /// The state before all of them; `None` where they are the last ones of a longer
    /// history, from the first completion among them on.
    pub start: Option<Id>,
}

impl Part<'_> {
    /// The first completion without an order.
    pub fn culprit(&self, states: &mut States, limit: Limit<'_>) -> Option<usize> {
        let all: Vec<(usize, Operation)> = self.operations.iter().copied().enumerate().collect();
        let (part, starts) = match self.start {
            Some(start) => (all, vec![start]),
            None => {
                let ends = all.iter().map(|(_, operation)| operation.complete);
                cut(&all, ends.min().unwrap_or(0), NEVER)
            }
        };
        let operations: Vec<Operation> = part.iter().map(|(_, operation)| *operation).collect();
        match search(&operations, &starts, states, limit, (&FOREVER, ALL), &mut 0) {
            Found::NoOrder(NoOrder { op, .. }) => Some(op),
            Found::Order | Found::TooMuch(..) => None,
        }
    }

    /// The places of operations that no order explains, whatever else happened, those
    /// that end first before others; `culprit` is the last to end. With too little left
    /// of the limit there may be more than needed.
    pub fn witness(&self, culprit: usize, states: &mut States, limit: Limit<'_>) -> Vec<usize> {
        let until = self.operations[culprit].complete;
        let mut all: Vec<(usize, Operation)> = (self.operations.iter().copied().enumerate())
            .filter(|(_, operation)| operation.invoke < until)
            .collect();
        for (_, operation) in &mut all {
            if operation.complete > until {
                operation.complete = NEVER;
                operation.must = false;
            }
        }
        let mut shrinking = Shrinking {
            states,
            limit,
            steps: 0,
        };
        let appends =
            |(_, operation): &(usize, Operation)| matches!(operation.does, Does::Append(_));
        if !all.iter().any(appends) {
            let ends = all.iter().map(|(_, operation)| operation.complete);
            let mut ends: Vec<u64> = ends.filter(|end| *end != NEVER).collect();
            ends.sort_unstable();
            let shorter = WINDOWS.into_iter().filter(|window| *window < ends.len());
            let longest = self.start.is_none().then_some(ends.len());
            for window in shorter.chain(longest) {
                let from = ends[ends.len() - window];
                // What began before may have taken effect before.
                if from > self.operations[culprit].invoke && self.start.is_some() {
                    continue;
                }
                let (part, starts) = cut(&all, from, until);
                if shrinking.has_no_order(&part, &starts) {
                    return shrinking.shrinks(part, &starts);
                }
            }
        }
        match self.start {
            Some(start) => shrinking.shrinks(all, &[start]),
            None => vec![culprit],
        }
    }
}

/// What ends at `from` or later, and the states that may have been there: any. What
/// began before may have taken effect before.
pub(super) fn cut(
    all: &[(usize, Operation)],
    from: u64,
    until: u64,
) -> (Vec<(usize, Operation)>, Vec<Id>) {
    let mut part: Vec<(usize, Operation)> = (all.iter().copied())
        .filter(|(_, operation)| operation.complete >= from)
        .collect();
    for (_, operation) in &mut part {
        operation.must &= operation.invoke > from || operation.complete == until;
    }
    let mut starts: Vec<Id> = (part.iter())
        .flat_map(|(_, operation)| [operation.does.finds(), operation.does.leaves()])
        .flatten()
        .chain([ANOTHER])
        .collect();
    starts.sort_unstable();
    starts.dedup();
    (part, starts)
}

struct Shrinking<'a> {
    states: &'a mut States,
    limit: Limit<'a>,
    steps: u64,
}

impl Shrinking<'_> {
    fn has_no_order(&mut self, part: &[(usize, Operation)], starts: &[Id]) -> bool {
        let operations: Vec<Operation> = part.iter().map(|(_, operation)| *operation).collect();
        // One test must not take what all of them have: where most is released and texts
        // are appended, an order may be hard to find, and no order rarely is.
        let some = self.steps + 2_000 + 64 * operations.len() as u64;
        let test = Limit {
            steps: self.limit.steps.min(some),
            ..self.limit
        };
        let found = search(
            &operations,
            starts,
            self.states,
            test,
            (&FOREVER, ALL),
            &mut self.steps,
        );
        matches!(found, Found::NoOrder(_))
    }

    /// Releases what can be: halves first, then ever fewer at a time, the oldest first.
    fn shrinks(&mut self, mut part: Vec<(usize, Operation)>, starts: &[Id]) -> Vec<usize> {
        let mut sure: Vec<usize> = (0..part.len()).filter(|at| part[*at].1.must).collect();
        sure.sort_unstable_by_key(|at| part[*at].1.complete);
        let mut size = sure.len().div_ceil(2).max(1);
        loop {
            let before = sure.len();
            let mut at = 0;
            while at < sure.len() && self.steps < self.limit.steps {
                let end = sure.len().min(at + size);
                for place in &sure[at..end] {
                    part[*place].1.must = false;
                }
                if self.has_no_order(&part, starts) {
                    sure.drain(at..end);
                    continue;
                }
                for place in &sure[at..end] {
                    part[*place].1.must = true;
                }
                at = end;
            }
            if self.steps >= self.limit.steps || (size == 1 && before == sure.len()) {
                return sure.into_iter().map(|at| part[at].0).collect();
            }
            size = size.div_ceil(2);
        }
    }
}

//! One written value, while it can still be read.

use super::datum::Datum;
use super::order::{Act, Stay};
use crate::history::{F, Name, Token};

/// What makes two invokes tries of one write: token and seq.
pub(super) type Id = (Option<Token>, u64);

/// A value that can still be read.
pub(super) struct Written {
    pub id: Option<Id>,
    process: Name,
    /// Invokes of the tries that did not fail.
    pub tries: Vec<u64>,
    pub open: usize,
    pub answered: bool,
    /// The operation that ended first.
    pub first: Option<Act>,
    /// The operation that began last.
    last: Option<Act>,
}

impl Written {
    /// A value whose write was sent.
    pub fn new(id: Option<Id>, process: Name, invoke: u64) -> Self {
        Written {
            id,
            process,
            tries: vec![invoke],
            open: 1,
            answered: false,
            first: None,
            last: None,
        }
    }

    /// The write, as an operation that was answered then.
    pub fn write(&self, complete: u64) -> Option<Act> {
        let invoke = self.tries.iter().min().copied()?;
        Some(Act {
            f: F::Write,
            process: self.process.clone(),
            invoke,
            complete,
        })
    }

    /// One of its operations has ended.
    pub fn shows(&mut self, act: Act) {
        if self.first.is_none() {
            self.first = Some(act.clone());
            self.last = self.write(u64::MAX);
        }
        let last = self.last.as_ref();
        if last.is_none_or(|last| last.invoke < act.invoke) {
            self.last = Some(act);
        }
    }

    /// When its first operation had ended: [`Stay::shown`].
    pub fn shown(&self) -> Option<u64> {
        self.first.as_ref().map(|first| first.complete)
    }

    /// Where it begins to matter: [`Stay::begins`].
    pub fn begins(&self) -> Option<u64> {
        let last = self.last.as_ref()?;
        self.shown().map(|shown| shown.min(last.invoke))
    }

    /// Its operations so far, once one has ended.
    pub fn stay(&self, value: &Datum) -> Option<Stay> {
        Some(Stay {
            value: Some(value.clone()),
            first: self.first.clone()?,
            last: self.last.clone()?,
        })
    }

    /// Its operations, once one has ended.
    pub fn into_stay(self, value: Datum) -> Option<Stay> {
        Some(Stay {
            value: Some(value),
            first: self.first?,
            last: self.last?,
        })
    }
}

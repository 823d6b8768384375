//! One register: which values can still be read, and when a value's time is known to
//! its end.
//!
//! A value is *overwritten* once an operation of another value began after one of its
//! own had ended, and ended before all that is open began: whoever reads it from then
//! on contradicts the order. Then it leaves, and takes its place in the [`Order`].
//! What stays in memory is what can still be read, what is concurrent with an open
//! operation, and the deletes and writes that were never answered.

use std::collections::{BTreeMap, BTreeSet};

use super::datum::Datum;
use super::order::{Act, Conflict, Order, Stay};
use super::written::{Id, Written};
use crate::budget::Remembered;
use crate::history::{F, Kind, Name};

/// Why a register cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TwiceWritten;

/// What is wrong with a register.
#[derive(Debug)]
pub(super) enum Wrong {
    NoOrder(Conflict),
    /// A read returned what nobody had written by then.
    NeverWritten(Act, Datum),
    /// A read returned what was overwritten long before, or never written.
    NotThere(Act, Datum),
    /// The last try of a write surely failed, and its value had been read.
    Failed(Box<Act>, Datum, Box<Act>),
}

impl From<Conflict> for Wrong {
    fn from(conflict: Conflict) -> Self {
        Wrong::NoOrder(conflict)
    }
}

/// A delete that was not answered ok.
struct Delete {
    process: Name,
    tries: Vec<u64>,
    /// The invoke under which the order has it.
    ordered: Option<u64>,
}

enum Open {
    Read,
    Write(Datum),
    Delete(Id),
    /// Without a seq there is no second try.
    DeleteOnce,
}

#[derive(Default)]
pub(super) struct Register {
    open: BTreeMap<u64, Open>,
    written: BTreeMap<Datum, Written>,
    deletes: BTreeMap<Id, Delete>,
    /// Writes that were never answered, and whose value was overwritten.
    over: BTreeSet<Id>,
    /// Writes and deletes of which all tries failed: the next is like the first.
    failed: BTreeSet<(Id, Option<Datum>)>,
    /// Values that can be overwritten, by when they were first shown.
    shown: BTreeMap<u64, Datum>,
    /// Where the values in `written` begin that were shown.
    begins: BTreeSet<u64>,
    /// Shown, though perhaps not before all that is open: values, and the rest.
    unsettled: BTreeMap<u64, Stay>,
    unsettled_values: BTreeMap<u64, Datum>,
    /// Of what is settled, the two that began last.
    latest: [Option<Stay>; 2],
    order: Order,
}

/// A value that can no longer be read, and what shows it.
pub(super) struct Overwritten {
    pub value: Datum,
    pub first: Act,
    pub by: Stay,
}

impl Register {
    pub fn remembered(&self) -> Remembered {
        let kept = self.over.len() + self.failed.len() + self.deletes.len();
        Remembered::default()
            .and("open calls", self.open.len())
            .and("values that can still be read", self.written.len())
            .and("writes and deletes that may be tried again", kept)
            .and("what is concurrent with an open call", self.waiting())
    }

    fn waiting(&self) -> usize {
        let shown = self.shown.len() + self.begins.len();
        shown + self.unsettled.len() + self.unsettled_values.len() + self.order.remembered()
    }

    pub fn reads(&mut self, invoke: u64) {
        self.open.insert(invoke, Open::Read);
    }

    /// A write, or another try of one. A value that can still be read must not be
    /// written a second time.
    pub fn writes(
        &mut self,
        invoke: u64,
        process: &Name,
        id: Option<Id>,
        value: Datum,
    ) -> Result<(), TwiceWritten> {
        match self.written.get_mut(&value) {
            Some(written) if id.is_none() || written.id != id => return Err(TwiceWritten),
            Some(written) if written.answered => return Ok(()),
            Some(written) => {
                written.tries.push(invoke);
                written.open += 1;
            }
            None if id.is_some_and(|id| self.over.contains(&id)) => return Ok(()),
            None => {
                if let Some(id) = id {
                    self.forget(id, Some(value.clone()));
                }
                let written = Written::new(id, process.clone(), invoke);
                self.written.insert(value.clone(), written);
            }
        }
        self.open.insert(invoke, Open::Write(value));
        Ok(())
    }

    /// A delete, or another try of one.
    pub fn deletes(&mut self, invoke: u64, process: &Name, id: Option<Id>) {
        let Some(id) = id else {
            self.open.insert(invoke, Open::DeleteOnce);
            return;
        };
        self.forget(id, None);
        let delete = self.deletes.entry(id).or_insert_with(|| Delete {
            process: process.clone(),
            tries: Vec::new(),
            ordered: None,
        });
        delete.tries.push(invoke);
        self.open.insert(invoke, Open::Delete(id));
    }

    /// Whether a try of this write or delete is known, so that it is not a new one.
    pub fn knows(&self, id: Id, value: Option<&Datum>) -> bool {
        let known = match value {
            Some(value) => {
                let written = self.written.get(value);
                written.is_some_and(|written| written.id == Some(id)) || self.over.contains(&id)
            }
            None => self.deletes.contains_key(&id),
        };
        known || self.failed.contains(&(id, value.cloned()))
    }

    /// No more tries of it come: its token has a higher seq.
    pub fn forget(&mut self, id: Id, value: Option<Datum>) {
        self.failed.remove(&(id, value));
    }

    /// A call ended; a read that was answered brought `found`. What was overwritten by
    /// that is handed to `over`.
    pub fn completes(
        &mut self,
        act: Act,
        kind: Kind,
        found: Option<Option<Datum>>,
        over: &mut impl FnMut(Overwritten),
    ) -> Result<(), Wrong> {
        let now = act.complete;
        match self.open.remove(&act.invoke) {
            // Another try of what is over.
            None => return Ok(()),
            Some(Open::Read) => match found {
                Some(Some(value)) if kind == Kind::Ok => self.read(act, value)?,
                Some(None) if kind == Kind::Ok => self.absence(act),
                _ => {}
            },
            Some(Open::Write(value)) => self.wrote(act, kind, value)?,
            Some(Open::DeleteOnce) => match kind {
                Kind::Ok => self.absence(act),
                Kind::Fail => {}
                _ => self.order.add(never_answered(act.process, act.invoke)),
            },
            Some(Open::Delete(id)) => self.deleted(act, kind, id)?,
        }
        self.go_on(now + 1, over)
    }

    /// Nothing more will happen: open calls may have taken effect.
    pub fn ends(&mut self) -> Result<(), Wrong> {
        for (invoke, open) in std::mem::take(&mut self.open) {
            match open {
                Open::DeleteOnce => self.order.add(never_answered(Name::default(), invoke)),
                Open::Delete(id) => {
                    let act = Act {
                        f: F::Delete,
                        process: Name::default(),
                        invoke,
                        complete: u64::MAX,
                    };
                    self.deleted(act, Kind::Info, id)?;
                }
                Open::Read | Open::Write(_) => {}
            }
        }
        self.go_on(u64::MAX, &mut |_| {})?;
        for (value, written) in std::mem::take(&mut self.written) {
            if let Some(stay) = written.into_stay(value) {
                self.order.add(stay);
            }
        }
        self.order.advance(u64::MAX)?;
        Ok(())
    }

    fn read(&mut self, act: Act, value: Datum) -> Result<(), Wrong> {
        let Some(written) = self.written.get_mut(&value) else {
            return Err(Wrong::NeverWritten(act, value));
        };
        let shown = match &written.first {
            Some(first) => first.complete,
            None => {
                self.unsettled_values.insert(act.complete, value.clone());
                act.complete
            }
        };
        // Sooner than the order, and with the first such read as the culprit.
        let mut other = self.latest.iter().flatten();
        let other = other.find(|other| other.shown() != shown);
        if let Some(other) = other
            && let Some(first) = &written.first
            && first.precedes(&other.last)
            && other.first.precedes(&act)
        {
            let around = Stay {
                value: Some(value),
                first: first.clone(),
                last: act,
            };
            let conflict = Conflict::Between(Box::new(around), Box::new(other.clone()));
            return Err(conflict.into());
        }
        self.shows(&value, act);
        Ok(())
    }

    /// A value's operation has ended.
    fn shows(&mut self, value: &Datum, act: Act) {
        let Some(written) = self.written.get_mut(value) else {
            return;
        };
        let began = written.begins();
        written.shows(act);
        let (Some(shown), Some(begins)) = (written.shown(), written.begins()) else {
            return;
        };
        if began != Some(begins) {
            if let Some(began) = began {
                self.begins.remove(&began);
            }
            self.begins.insert(begins);
        }
        if written.open == 0 || written.answered {
            let shown = self.shown.entry(shown);
            shown.or_insert_with(|| value.clone());
        }
        if !self.unsettled_values.contains_key(&shown)
            && let Some(stay) = written.stay(value)
        {
            self.settles(stay);
        }
    }

    fn wrote(&mut self, act: Act, kind: Kind, value: Datum) -> Result<(), Wrong> {
        let Some(written) = self.written.get_mut(&value) else {
            return Ok(());
        };
        if written.answered || !written.tries.contains(&act.invoke) {
            return Ok(());
        }
        written.open -= 1;
        if kind == Kind::Ok {
            written.answered = true;
            let write = written.write(act.complete);
            if written.first.is_none() {
                self.unsettled_values.insert(act.complete, value.clone());
            }
            self.shows(&value, write.unwrap_or(act));
            return Ok(());
        }
        if kind == Kind::Fail {
            written.tries.retain(|invoke| *invoke != act.invoke);
        }
        match (written.write(u64::MAX), &written.first) {
            (Some(write), Some(first)) if !first.precedes(&write) => {
                // Its time may begin with a later try than before.
                self.shows(&value, write);
            }
            (Some(_), None) => {}
            (_, Some(read)) => {
                return Err(Wrong::Failed(Box::new(act), value, Box::new(read.clone())));
            }
            (None, None) => {
                let id = written.id;
                self.written.remove(&value);
                self.failed.extend(id.map(|id| (id, Some(value))));
            }
        }
        Ok(())
    }

    fn deleted(&mut self, act: Act, kind: Kind, id: Id) -> Result<(), Wrong> {
        let Some(delete) = self.deletes.get_mut(&id) else {
            return Ok(());
        };
        match kind {
            Kind::Fail => {
                delete.tries.retain(|invoke| *invoke != act.invoke);
                if delete.tries.is_empty() && delete.ordered.is_none() {
                    self.deletes.remove(&id);
                    self.failed.insert((id, None));
                }
            }
            Kind::Ok => {
                let invoke = delete.tries.iter().min().copied();
                let invoke = delete.ordered.or(invoke).unwrap_or(act.invoke);
                let ordered = delete.ordered.is_some();
                self.deletes.remove(&id);
                let act = Act { invoke, ..act };
                match ordered {
                    true => self.order.answered(act),
                    false => self.absence(act),
                }
            }
            _ if delete.ordered.is_none() => {
                let invoke = delete.tries.iter().min().copied();
                let invoke = invoke.unwrap_or(act.invoke);
                delete.ordered = Some(invoke);
                let process = delete.process.clone();
                self.order.add(never_answered(process, invoke));
            }
            _ => {}
        }
        Ok(())
    }

    /// A delete, or a read that found nothing, was answered.
    fn absence(&mut self, act: Act) {
        let stay = Stay::absence(act);
        self.unsettled.insert(stay.shown(), stay.clone());
        self.order.add(stay);
    }

    /// Looks at what has become known; whatever comes begins at `next` or later.
    fn go_on(&mut self, next: u64, over: &mut impl FnMut(Overwritten)) -> Result<(), Wrong> {
        let open = self.open.first_key_value().map_or(next, |(at, _)| *at);
        let later = self.unsettled.split_off(&open);
        for stay in std::mem::replace(&mut self.unsettled, later).into_values() {
            self.settles(stay);
        }
        let later = self.unsettled_values.split_off(&open);
        for value in std::mem::replace(&mut self.unsettled_values, later).into_values() {
            let written = self.written.get(&value);
            if let Some(stay) = written.and_then(|written| written.stay(&value)) {
                self.settles(stay);
            }
        }
        self.overwritten(over)?;
        let begins = self.begins.first().copied().unwrap_or(next);
        self.order.advance(begins.min(open))?;
        Ok(())
    }

    /// It was shown before all that is open began.
    fn settles(&mut self, stay: Stay) {
        let [last, before] = &mut self.latest;
        let same = |other: &Option<Stay>| {
            other
                .as_ref()
                .is_some_and(|other| other.shown() == stay.shown())
        };
        let later = |other: &Option<Stay>| {
            other
                .as_ref()
                .is_none_or(|other| other.until() < stay.until())
        };
        if same(last) {
            *last = Some(stay);
        } else if later(last) {
            *before = last.replace(stay);
        } else if same(before) || later(before) {
            *before = Some(stay);
        }
    }

    fn overwritten(&mut self, over: &mut impl FnMut(Overwritten)) -> Result<(), Wrong> {
        let mut from = 0;
        while let Some((&shown, _)) = self.shown.range(from..).next() {
            let mut others = self.latest.iter().flatten();
            let Some(other) = others.find(|other| other.shown() != shown) else {
                break;
            };
            if shown >= other.until() {
                if self.latest[0]
                    .as_ref()
                    .is_some_and(|last| last.shown() == shown)
                {
                    // The one that began last stands in nobody's way but its own.
                    from = shown + 1;
                    continue;
                }
                break;
            }
            let by = other.clone();
            let Some(value) = self.shown.remove(&shown) else {
                break;
            };
            let Some(written) = self.written.remove(&value) else {
                continue;
            };
            if let Some(id) = written.id.filter(|_| !written.answered) {
                self.over.insert(id);
            }
            if let Some(stay) = written.into_stay(value.clone()) {
                self.begins.remove(&stay.begins());
                let first = stay.first.clone();
                self.order.add(stay);
                over(Overwritten { value, first, by });
            }
        }
        Ok(())
    }
}

fn never_answered(process: Name, invoke: u64) -> Stay {
    Stay::absence(Act {
        f: F::Delete,
        process,
        invoke,
        complete: u64::MAX,
    })
}

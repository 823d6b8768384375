//! Counts entries and pairs completions with their calls: what any history must keep to.
//!
//! Lines stand in the order in which things happened. Times need not rise: where several
//! threads take them before the line is written, they do not, in Jepsen's own histories too.

use std::collections::BTreeMap;

use super::{Entry, Problem, fault::Fault, operation::Operation};
use crate::history::{Kind, Name};

/// What is open. Memory is that of the calls that have not ended, not that of processes.
#[derive(Default)]
pub(super) struct Calls {
    last: Option<u64>,
    /// By process: what it does, and since which line.
    open: BTreeMap<Name, (Name, u64)>,
}

impl Calls {
    pub(super) fn see(&mut self, operation: Operation) -> Result<Entry, Fault> {
        let place = operation.place;
        let at = |problem| Fault::at(place, problem);
        let index = match (operation.index, self.last) {
            (Some(found), Some(before)) if found <= before => {
                return Err(at(Problem::Index { before, found }));
            }
            (Some(found), _) => found,
            (None, last) => last.map_or(0, |last| last.saturating_add(1)),
        };
        self.last = Some(index);
        let (process, f) = (&operation.process, &operation.f);
        let text = |name: &Name| Box::from(name.as_str());
        match (operation.kind, self.open.get(process)) {
            (Kind::Invoke, None) => {
                self.open.insert(process.clone(), (f.clone(), place.line));
            }
            (Kind::Invoke, Some((open, line))) => {
                return Err(at(Problem::TwoCalls {
                    process: text(process),
                    f: text(f),
                    open: text(open),
                    line: *line,
                }));
            }
            (_, Some((open, _))) if open == f => {
                self.open.remove(process);
            }
            // The nemesis's, or what a process tells of itself while it is at work.
            (Kind::Info, _) => {}
            (Kind::Ok | Kind::Fail, None) => {
                return Err(at(Problem::NoCall {
                    process: text(process),
                    f: text(f),
                }));
            }
            (Kind::Ok | Kind::Fail, Some((open, line))) => {
                return Err(at(Problem::OtherCall {
                    process: text(process),
                    f: text(f),
                    open: text(open),
                    line: *line,
                }));
            }
        }
        Ok(operation.entry(index))
    }
}

//! What a foreign history's operations mean: the models they are judged by.
//!
//! [`judge`] takes the lines of any history, in any format that has a reader, and says
//! whether some order of its operations explains what clients saw, key by key:
//!
//! ```
//! use deposed_checkers::history::Kind;
//! use deposed_checkers::import::{Entry, Place, Value};
//! use deposed_checkers::budget::Budget;
//! use deposed_checkers::model::judge;
//! use deposed_checkers::verdict::{Check, Verdict};
//!
//! let line = |index, process: &str, kind, f: &str, value| Entry {
//!     index,
//!     time: None,
//!     process: process.into(),
//!     kind,
//!     f: f.into(),
//!     key: None,
//!     token: None,
//!     value,
//!     error: None,
//!     place: Place { line: index + 1, column: 1 },
//! };
//! let entries = [
//!     line(0, "0", Kind::Invoke, "cas", Value::List(vec![Value::Int(1), Value::Int(2)])),
//!     line(1, "0", Kind::Ok, "cas", Value::List(vec![Value::Int(1), Value::Int(2)])),
//! ];
//! let judged = judge(entries.map(Ok::<_, std::io::Error>), None, Budget::default())?;
//! let verdict = judged.verdicts.of(Check::RegisterLinearizable);
//! let Some(Verdict::Violated(evidence)) = verdict else { panic!() };
//! assert_eq!(
//!     evidence.sentence,
//!     "process 0's cas of the register from 1 to 2 succeeded, though it can only have held nil then",
//! );
//! # Ok::<(), deposed_checkers::model::JudgeError<std::io::Error>>(())
//! ```
//!
//! What an answer means is Jepsen's convention: `ok` happened, `fail` surely did not,
//! `info`, and a call that is never completed, may have happened at any time since its
//! invoke, or not; a read without an answer shows nothing. The order is that of the lines:
//! times are not used, and where they go back `well-formed` is not claimed. Lines of processes that are
//! called by a name, like `nemesis`, are skipped unless they are calls of the model.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::budget::Budget;
use crate::history::Kind;
use crate::import::keys::{Keyed, Unfit};
use crate::import::{Entry, Place};
use crate::units::a;
use crate::verdict::{Check, Verdict, Verdicts};

mod calls;
mod guess;
mod keys;
mod locks;
mod registers;
mod words;

use calls::{Calls, Ended};
pub use guess::{Opening, opening};
use locks::Locks;
use registers::Registers;

/// The object that a history's operations were done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Model {
    /// A lease with fencing tokens, judged by the lease checks.
    Lease,
    /// A lock: `acquire` and `release`, by anybody.
    Mutex,
    /// A lock that its holder alone releases.
    OwnedMutex,
    /// One like that, whose acquires return rising tokens.
    FencedMutex,
    /// One register a key: `read` and `write`.
    Register,
    /// Registers with `cas`.
    CasRegister,
    /// A store of texts by key: `get`, `put` and `append`.
    Kv,
}

impl Model {
    /// Every model.
    pub const ALL: [Model; 7] = [
        Model::Lease,
        Model::Mutex,
        Model::OwnedMutex,
        Model::FencedMutex,
        Model::Register,
        Model::CasRegister,
        Model::Kv,
    ];

    /// The model's name, as `--model` takes it: `cas-register`.
    pub fn name(self) -> &'static str {
        match self {
            Model::Lease => "lease",
            Model::Mutex => "mutex",
            Model::OwnedMutex => "owned-mutex",
            Model::FencedMutex => "fenced-mutex",
            Model::Register => "register",
            Model::CasRegister => "cas-register",
            Model::Kv => "kv",
        }
    }

    /// The operations that it knows.
    pub fn operations(self) -> &'static [&'static str] {
        match self {
            Model::Lease => &[
                "acquire", "renew", "release", "fence", "write", "delete", "read",
            ],
            Model::Mutex | Model::OwnedMutex | Model::FencedMutex => &["acquire", "release"],
            Model::Register => &["read", "write"],
            Model::CasRegister => &["read", "write", "cas"],
            Model::Kv => &["get", "put", "append"],
        }
    }

    /// The check that judges it; none for a lease, which has many.
    pub fn check(self) -> Option<Check> {
        match self {
            Model::Lease => None,
            Model::Mutex | Model::OwnedMutex | Model::FencedMutex => Some(Check::MutexLinearizable),
            Model::Register | Model::CasRegister | Model::Kv => Some(Check::RegisterLinearizable),
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The model that it was judged by.
    pub model: Model,
    /// The calls that were read.
    pub calls: u64,
    /// The verdict of every check, in the order of [`Check::ALL`]: those that this
    /// model cannot feed claim nothing.
    pub verdicts: Verdicts,
}

/// Why a history could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError<E> {
    /// It could not be read.
    #[error(transparent)]
    Read(E),
    /// A line does not fit the model.
    #[error("{place}: {why}")]
    Misfit {
        /// The line.
        place: Place,
        /// What does not fit, and what to do.
        why: String,
    },
    /// Its first lines do not tell which model it is of.
    #[error(
        "no operation among the first lines tells a model: name one of {}",
        Model::ALL.map(Model::name).join(", ")
    )]
    NoModel,
    /// It is one of leases: [`crate::judge`] judges those, from events.
    #[error("a history of leases is judged from its events, by the lease checks")]
    Lease,
}

impl<E> From<Unfit<E>> for JudgeError<E> {
    fn from(unfit: Unfit<E>) -> Self {
        match unfit {
            Unfit::Read(error) => JudgeError::Read(error),
            Unfit::Key(place, why) => JudgeError::Misfit { place, why },
        }
    }
}

/// A misfit at this entry.
fn misfit<E>(entry: &Entry, why: impl Into<String>) -> JudgeError<E> {
    JudgeError::Misfit {
        place: entry.place,
        why: why.into(),
    }
}

/// Judges a foreign history, line by line, by a model; without one, by the model that
/// its first operations tell.
///
/// Locks and registers whose values are written once take one pass, in time
/// near-linear in the history's length. Other registers, and stores of texts, are
/// searched key by key at the end.
///
/// # Errors
///
/// What the entries' reader reports; a line that does not fit the model; a history of
/// leases, or of no model that is known.
pub fn judge<E>(
    entries: impl IntoIterator<Item = Result<Entry, E>>,
    model: Option<Model>,
    budget: Budget,
) -> Result<Judged, JudgeError<E>> {
    judge_until(entries, model, budget, &AtomicBool::new(false))
}

/// The same until `stop` is set, as by a timer: what is undecided then is Unknown, and
/// what was found before stands. Nothing is read any more.
///
/// # Errors
///
/// Those of [`judge`].
pub fn judge_until<E>(
    entries: impl IntoIterator<Item = Result<Entry, E>>,
    model: Option<Model>,
    budget: Budget,
    stop: &AtomicBool,
) -> Result<Judged, JudgeError<E>> {
    judged(entries, model, budget, stop, false)
}

/// The same, which ends at the first violation that is certain: of a history that is still
/// being written. One of an object that is searched is found at the end alone.
///
/// # Errors
///
/// Those of [`judge`].
pub fn judge_first<E>(
    entries: impl IntoIterator<Item = Result<Entry, E>>,
    model: Option<Model>,
    budget: Budget,
    stop: &AtomicBool,
) -> Result<Judged, JudgeError<E>> {
    judged(entries, model, budget, stop, true)
}

fn judged<E>(
    entries: impl IntoIterator<Item = Result<Entry, E>>,
    model: Option<Model>,
    budget: Budget,
    stop: &AtomicBool,
    first: bool,
) -> Result<Judged, JudgeError<E>> {
    let Opening {
        model,
        certain,
        entries,
    } = opening(entries.into_iter(), model)?;
    let check = model.check().ok_or(JudgeError::Lease)?;
    let owned = matches!(model, Model::OwnedMutex | Model::FencedMutex);
    let mut calls = Calls::new(owned);
    let mut object = match check {
        Check::MutexLinearizable => Object::Locks(Box::new(Locks::new(model, budget))),
        _ => Object::Registers(Box::new(Registers::new(model, certain, budget))),
    };
    let (mut now, mut back) = (0, None);
    for entry in Keyed::new(entries) {
        let entry = entry?;
        if stop.load(Ordering::Relaxed) {
            object.gives_up(format!("the time was over at index {}", entry.index));
            break;
        }
        if let Some(time) = entry.time {
            back = back.or((time < now).then_some(entry.place.line));
            now = time;
        }
        if entry.kind == Kind::Invoke {
            if let Some(call) = calls.begins(&entry)? {
                object.begins(call).map_err(|why| misfit(&entry, why))?;
            }
        } else if let Some(ended) = calls.ends(&entry)? {
            object.ends(ended).map_err(|why| misfit(&entry, why))?;
        }
        if first && object.convicted() {
            break;
        }
        let bytes = |object: &Object| calls.bytes() + object.bytes();
        if bytes(&object) > budget.bytes {
            object.sheds(entry.index);
            let (left, kept) = (bytes(&object), object.bytes());
            if left > budget.bytes {
                let what = calls.remembered(kept);
                let more = budget.more_memory();
                object.gives_up(format!("{what} at index {}: {more}", entry.index));
                break;
            }
        }
    }
    let (model, verdict) = match object {
        Object::Locks(locks) => (model, locks.verdict(&calls)),
        Object::Registers(registers) => registers.verdict(&calls, stop),
    };
    let verdicts = Check::ALL.map(|other| {
        match other {
        _ if other == check => (check, verdict.clone()),
        // What else is malformed is an error.
        Check::WellFormed => (
            other,
            back.map_or(Verdict::Valid, |line| {
                Verdict::NotClaimed(format!(
                    "the time goes back on line {line}: the order of the lines is what was judged"
                ))
            }),
        ),
        _ => {
            let why = format!("{} has none of what it needs: {}", a(model.name()), other.needs());
            (other, Verdict::NotClaimed(why))
        }
    }
    });
    Ok(Judged {
        model,
        calls: calls.count(),
        verdicts: Verdicts(verdicts.to_vec()),
    })
}

enum Object {
    Locks(Box<Locks>),
    Registers(Box<Registers>),
}

impl Object {
    /// Nothing more is looked at.
    fn gives_up(&mut self, why: String) {
        match self {
            Object::Locks(locks) => locks.gives_up(why),
            Object::Registers(registers) => registers.gives_up(why),
        }
    }

    /// About what it takes, beside what is under way.
    fn bytes(&self) -> u64 {
        match self {
            Object::Locks(locks) => locks.bytes(),
            Object::Registers(registers) => registers.bytes(),
        }
    }

    /// Forgets what it can do without, from this index on.
    fn sheds(&mut self, index: u64) {
        if let Object::Registers(registers) = self {
            registers.sheds(index);
        }
    }

    /// Whether a violation is certain, whatever may follow.
    fn convicted(&self) -> bool {
        match self {
            Object::Locks(locks) => locks.convicted(),
            Object::Registers(registers) => registers.convicted(),
        }
    }

    fn begins(&mut self, call: &calls::Call) -> Result<(), String> {
        match self {
            Object::Locks(locks) => locks.begins(call),
            Object::Registers(registers) => registers.begins(call),
        }
    }

    fn ends(&mut self, ended: Ended<'_>) -> Result<(), String> {
        match self {
            Object::Locks(locks) => locks.ends(ended),
            Object::Registers(registers) => registers.ends(ended),
        }
    }
}

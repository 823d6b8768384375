//! Histories that other tools recorded, in the tools' own formats.
//!
//! Whatever the format, a history is a stream of [`Entry`]s: who, what kind of line,
//! which operation, which value. What the operations mean is for a model to say.

use std::collections::BTreeMap;

use crate::history::{Kind, Name, Nanos};

/// One line of a foreign history: a call that begins or completes, or an observation.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The line's own index; where the format has none, the number of entries before it.
    pub index: u64,
    /// Time since the start of the run, in nanoseconds; none where the format keeps no time.
    pub time: Option<Nanos>,
    /// Who did it: `3`, `nemesis`.
    pub process: Name,
    /// What kind of line it is.
    pub kind: Kind,
    /// The operation: `acquire`, `read`, `cas`.
    pub f: Name,
    /// The object, where the format names it apart from the value.
    pub key: Option<Value>,
    /// What was asked for, or answered.
    pub value: Value,
    /// Why a call failed or is indefinite.
    pub error: Option<Value>,
    /// Where it stands in the file.
    pub place: Place,
}

/// A place in a file, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

/// A value as EDN and JSON have them.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `nil`, `null`.
    Nil,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// Any other number, as it was written.
    Number(Name),
    /// A string.
    Text(Name),
    /// A keyword or symbol, without its colon.
    Word(Name),
    /// A vector or list.
    List(Vec<Value>),
    /// A set, in the order of the file.
    Set(Vec<Value>),
    /// A map; keys are the text of keywords and strings.
    Map(BTreeMap<Name, Value>),
    /// A tagged value: `#jepsen.history.Op {…}`.
    Tagged(Name, Box<Value>),
}

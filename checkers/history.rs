//! What happened: the events of a recorded history and its header.
//!
//! A history is JSON lines: a [`Header`], then one [`Event`] a line. The words
//! are Jepsen's (`process`, `type`, `f`, `value`), so a Jepsen user reads one at
//! sight. Times and durations are nanoseconds; `time` is true time since the
//! start of the run, the same clock for every process.
//!
//! Reading and writing lines is [`crate::reader`] and [`crate::writer`].

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod calls;
mod header;
mod observations;

pub use calls::*;
pub use header::*;
pub use observations::*;

/// A short name: a process, a lease, a holder, a key. Inline up to 24 bytes.
pub type Name = CompactString;
/// Nanoseconds: an instant since the start of the run, or a duration.
pub type Nanos = u64;
/// A fencing token. Issued by the store, per lease, one higher at each change of ownership.
pub type Token = u64;
/// A clock's rate in parts per billion of true time: 1,000,000,000 runs true.
pub type RatePpb = u64;

/// The rate of a clock that runs true.
pub const TRUE_RATE: RatePpb = 1_000_000_000;
/// The version of the format this crate writes, and the newest it reads.
pub const FORMAT_VERSION: u32 = 1;
/// The process name under which faults are recorded.
pub const NEMESIS: &str = "nemesis";

/// One line of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Rises by one from line to line.
    pub index: u64,
    /// True time since the start of the run, in nanoseconds; never less than the line before.
    pub time: Nanos,
    /// A client, a store or storage node, or [`NEMESIS`].
    pub process: Name,
    /// What kind of line this is.
    pub kind: Kind,
    /// Pairs an invoke with its completion; unique in the file. Left out, a
    /// completion belongs to its process's open invoke.
    pub call: Option<u64>,
    /// `f` and `value`.
    pub body: Body,
    /// Why a call failed or is indefinite.
    pub error: Option<Failure>,
}

/// `type`: the four kinds of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A call begins.
    Invoke,
    /// The call happened.
    Ok,
    /// The call surely did not happen.
    Fail,
    /// The call may have happened; or, with no call, an observation.
    Info,
}

/// `f` and `value` of a line, by what kind of line it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// An invoke: the operation asked for.
    Invoke(Op),
    /// A completion (`ok`, `fail` or `info`) of a client call.
    Complete(F, Answer),
    /// What only the inside sees: a node's own account.
    Observed(Observation),
    /// A fault that was injected, healed, or the mark `calm`; `value` is the fault's own fields.
    Nemesis(Name, Value),
    /// An observation that this format does not know: kept, and judged by nobody.
    /// [`Check::WellFormed`](crate::verdict::Check::WellFormed) claims nothing then, and names it.
    Foreign(Name, Value),
}

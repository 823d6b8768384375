//! Whether some order of an object's operations explains what their callers were told.
//!
//! Each operation takes effect at one point between its invoke and its completion; one
//! that was never answered at any point after its invoke, or never. The checkers here
//! know objects and indices of events, and neither formats nor words:
//!
//! - [`mutex`]: a lock without owners, by counting, in one pass; [`surplus`] tells what
//!   of it has no order;
//! - [`owned`]: a lock that its holder releases, with tokens or without, in one pass;
//! - [`search`]: registers, `cas`, appended texts: every order that matters, with a
//!   [`Limit`];
//! - [`witness`]: the few operations that show that there is no order.

pub(crate) mod configs;
pub(crate) mod mutex;
pub(crate) mod owned;
pub(crate) mod pending;
pub(crate) mod search;
pub(crate) mod states;
pub(crate) mod surplus;
pub(crate) mod witness;

use std::sync::atomic::AtomicBool;

use states::Id;

/// The index of a completion that never came.
pub(crate) const NEVER: u64 = u64::MAX;

/// What an operation does to the object, and what it shows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Does {
    /// It found this state.
    See(Id),
    /// It sets this state, whatever was there.
    Set(Id),
    /// It found the first state and set the second, another one.
    Swap(Id, Id),
    /// It appends the text of this state to that which is there.
    Append(Id),
}

impl Does {
    /// The state that it must find, if it is only one.
    pub fn finds(self) -> Option<Id> {
        match self {
            Does::See(state) | Does::Swap(state, _) => Some(state),
            Does::Set(_) | Does::Append(_) => None,
        }
    }

    /// The state that it leaves, if that is always the same.
    pub fn leaves(self) -> Option<Id> {
        match self {
            Does::Set(state) | Does::Swap(_, state) => Some(state),
            Does::See(_) | Does::Append(_) => None,
        }
    }
}

/// One operation: times are the indices of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub invoke: u64,
    /// The end of its time; [`NEVER`] if it has none.
    pub complete: u64,
    /// Whether it surely happened.
    pub must: bool,
    pub does: Does,
    /// Who did it, as a number.
    pub process: u32,
}

/// How much work and memory a search may take. Counted and not timed, so that the same
/// history and the same limit give the same verdict everywhere, unless somebody stops it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit<'a> {
    /// Configurations looked at.
    pub steps: u64,
    /// Bytes of configurations held at once.
    pub bytes: u64,
    /// Whether whoever waits has waited enough.
    pub stop: &'a AtomicBool,
}

/// Of a search that may go on as far as its limit.
pub(crate) static NOBODY_STOPS: AtomicBool = AtomicBool::new(false);

//! What can happen, as data.

use super::message::Message;

/// One thing that happens. That a client is paused is nothing that happens: it does not act
/// for as long as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A tick of true time passes, on every clock but those that skip it.
    Tick {
        /// The clients whose clocks do, a bit each.
        skips: u8,
    },
    /// A client wakes and sends what is due, if anything.
    Wake(usize),
    /// A leader looks at `is_leader()`.
    Look(usize),
    /// A leader does what it had looked for, be it too late by now.
    Act {
        /// Which client.
        client: usize,
        /// Whether it deletes where it could write.
        deletes: bool,
    },
    /// A client resigns.
    Resign(usize),
    /// A client crashes and starts again, as a new holder.
    CrashClient(usize),
    /// The store crashes and comes back with what was durable.
    CrashStore,
    /// Storage crashes and comes back with what was durable.
    CrashStorage,
    /// A message arrives. Any may: that is how they overtake each other.
    Deliver(Message),
    /// A message arrives, and will again.
    Duplicate(Message),
    /// A message is lost.
    Lose(Message),
    /// Storage checks a change's token ahead of the change. Only with a planted flaw.
    LookAhead(Message),
}

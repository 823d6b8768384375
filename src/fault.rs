//! Faults are data: what goes wrong, to whom, when. A [`Schedule`] is drawn from the
//! seed before a run starts and stands in the history's header, where it can be
//! read, edited and replayed.
//!
//! A new fault is a variant of [`Fault`] here and an arm in `world/inject.rs`, or, for
//! one of a disk, in `world/disks.rs`.

pub(crate) mod reading;

use deposed_checkers::history::{F, Kind, Name, Nanos, RatePpb};
use serde::{Deserialize, Serialize};

/// Everything that will go wrong in a run.
pub type Schedule = Vec<Injection>;

/// One entry of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Injection {
    /// When.
    pub when: Trigger,
    /// What.
    #[serde(flatten)]
    pub fault: Fault,
}

impl Trigger {
    /// The true time before which it surely does not strike, ns.
    pub fn earliest(&self) -> Nanos {
        match *self {
            Trigger::At(at) => at,
            Trigger::On { plus, .. } => plus,
            Trigger::Next { after, plus, .. } => after.saturating_add(plus),
        }
    }
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// At a true time, ns since the start of the run.
    At(Nanos),
    /// On an event that clients see. The fault lands at the end of that
    /// millisecond: in time to lose an answer given within it.
    On {
        /// The event.
        #[serde(flatten)]
        moment: Moment,
        /// Which of its occurrences, from 1.
        nth: u32,
        /// How long after it.
        #[serde(default)]
        plus: Nanos,
    },
    /// On the next such event from a true time on: it cannot miss its moment while there
    /// is one, as the nth of a whole run can.
    Next {
        /// The event.
        #[serde(flatten)]
        moment: Moment,
        /// The true time, ns since the start of the run.
        after: Nanos,
        /// How long after it.
        #[serde(default)]
        plus: Nanos,
    },
}

/// A kind of event on the client side: `write` as `invoke` is "about to write".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// Which call.
    pub f: F,
    /// Its beginning or its outcome.
    #[serde(rename = "type")]
    pub kind: MomentKind,
}

/// See [`Moment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MomentKind {
    /// The call begins.
    Invoke,
    /// The call succeeded.
    Ok,
}

impl Moment {
    /// The call begins.
    pub const fn invoking(f: F) -> Self {
        Self {
            f,
            kind: MomentKind::Invoke,
        }
    }

    /// The call succeeded.
    pub const fn done(f: F) -> Self {
        Self {
            f,
            kind: MomentKind::Ok,
        }
    }

    /// The moment that a line of this kind for this call is.
    pub fn of(f: F, kind: Kind) -> Option<Self> {
        match kind {
            Kind::Invoke => Some(Self::invoking(f)),
            Kind::Ok => Some(Self::done(f)),
            Kind::Fail | Kind::Info => None,
        }
    }
}

/// Whom a fault strikes. Resolved when the fault is injected; the history records
/// to whom. A target that nobody fits (no leader just now) makes the fault void.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A client that believes to lead; if several do, one of them, drawn.
    Leader,
    /// A client that does not, drawn.
    Follower,
    /// A client, drawn.
    AnyClient,
    /// This client, from 0.
    Client(u8),
    /// All clients.
    Clients,
    /// The lease server.
    Store,
    /// The storage server, or all replicas.
    Storage,
    /// The lease server and the storage servers.
    Servers,
    /// A node, drawn.
    AnyNode,
    /// This replica of the storage, from 0.
    Replica(u8),
    /// As many replicas as a majority can do without, drawn.
    Minority,
    /// Every node.
    Everyone,
}

/// What goes wrong. Lengths are ns of true time; `for` in the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "a, b, from, to, target, length: what they say")]
pub enum Fault {
    /// No message passes between `a` and `b`; what is in flight is lost.
    Partition {
        a: Target,
        b: Target,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// No message passes from `from` to `to`; the other way is open.
    PartitionOneway {
        from: Target,
        to: Target,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// A node is cut off from all others.
    Isolate {
        target: Target,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// All nodes are split in two drawn halves, and no message passes between them.
    Halves {
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// One drawn node sees all others, who are split in two drawn halves.
    Bridge {
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// Messages between `a` and `b` wait, then all arrive at once.
    Hold {
        a: Target,
        b: Target,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The one-way latency between `a` and `b` is `min` to `max`.
    Latency {
        a: Target,
        b: Target,
        min: Nanos,
        max: Nanos,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// Each frame between `a` and `b` is lost with the one probability, or arrives up to
    /// `by` late with the other; both in parts per billion.
    Flaky {
        a: Target,
        b: Target,
        lose_ppb: u32,
        delay_ppb: u32,
        by: Nanos,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The next `count` frames of a kind are lost.
    Lose {
        kind: Name,
        from: Target,
        to: Target,
        count: u32,
    },
    /// The next `count` frames of a kind arrive `by` later.
    Delay {
        kind: Name,
        from: Target,
        to: Target,
        count: u32,
        by: Nanos,
    },
    /// The next `count` frames of a kind arrive, and once more `by` later.
    Duplicate {
        kind: Name,
        from: Target,
        to: Target,
        count: u32,
        by: Nanos,
    },
    /// The process stops; its clocks run on.
    Pause {
        target: Target,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The machine is suspended: its processes and its run clock stop, its boot clock
    /// runs on.
    Suspend {
        target: Target,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The process gets one tick (1 ms) in `one_in`, and stands still in between, also
    /// after a restart; its clocks run on.
    Starve {
        target: Target,
        one_in: u32,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The process stops at its next gc point, or the next one before a call of the
    /// kind `before`; its clocks run on.
    GcPause {
        target: Target,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<F>,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The process ends, its connections are closed; it starts again after a while.
    Crash {
        target: Target,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The machine goes dark without a word; it starts again after a while.
    PowerLoss {
        target: Target,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The machine goes dark inside the `operations`th operation of its disk from here:
    /// of what was not synced any sector may survive. It starts again after a while.
    PowerCut {
        target: Target,
        operations: u32,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The next `count` operations of the disk fail.
    IoError { target: Target, count: u32 },
    /// Each commit takes up to `by` longer.
    SlowSync {
        target: Target,
        by: Nanos,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// Nothing can be written to the disk.
    FullDisk {
        target: Target,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// A copy is taken of what is on the disk.
    Backup { target: Target },
    /// The machine goes dark; it starts again after a while with the last copy that
    /// was taken, and a floor: the highest token granted so far.
    Restore {
        target: Target,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The clocks run at another rate, then at their old one.
    Rate {
        target: Target,
        rate_ppb: RatePpb,
        #[serde(rename = "for")]
        length: Nanos,
    },
    /// The wall clock steps; monotonic clocks do not notice.
    Step { target: Target, by: i64 },
}

impl Fault {
    /// Whom it may strike.
    pub fn targets(&self) -> Vec<Target> {
        match *self {
            Fault::Partition { a, b, .. }
            | Fault::Hold { a, b, .. }
            | Fault::Latency { a, b, .. }
            | Fault::Flaky { a, b, .. } => vec![a, b],
            Fault::Halves { .. } | Fault::Bridge { .. } => vec![Target::Everyone],
            Fault::PartitionOneway { from, to, .. }
            | Fault::Lose { from, to, .. }
            | Fault::Delay { from, to, .. }
            | Fault::Duplicate { from, to, .. } => vec![from, to],
            Fault::Isolate { target, .. }
            | Fault::Pause { target, .. }
            | Fault::Suspend { target, .. }
            | Fault::Starve { target, .. }
            | Fault::GcPause { target, .. }
            | Fault::Crash { target, .. }
            | Fault::PowerLoss { target, .. }
            | Fault::PowerCut { target, .. }
            | Fault::IoError { target, .. }
            | Fault::SlowSync { target, .. }
            | Fault::FullDisk { target, .. }
            | Fault::Backup { target }
            | Fault::Restore { target, .. }
            | Fault::Rate { target, .. }
            | Fault::Step { target, .. } => vec![target],
        }
    }

    /// Whether it strikes a disk that can fail, and needs one.
    pub fn is_of_disks(&self) -> bool {
        matches!(
            self,
            Fault::PowerCut { .. }
                | Fault::IoError { .. }
                | Fault::SlowSync { .. }
                | Fault::FullDisk { .. }
                | Fault::Backup { .. }
                | Fault::Restore { .. }
        )
    }

    /// How long it lasts, ns; `None` for one that has no length.
    pub fn length(&self) -> Option<Nanos> {
        self.clone().length_mut().copied()
    }

    /// Where that stands.
    pub fn length_mut(&mut self) -> Option<&mut Nanos> {
        match self {
            Fault::Partition { length, .. }
            | Fault::PartitionOneway { length, .. }
            | Fault::Isolate { length, .. }
            | Fault::Halves { length }
            | Fault::Bridge { length }
            | Fault::Hold { length, .. }
            | Fault::Latency { length, .. }
            | Fault::Flaky { length, .. }
            | Fault::Pause { length, .. }
            | Fault::Suspend { length, .. }
            | Fault::Starve { length, .. }
            | Fault::GcPause { length, .. }
            | Fault::Crash { length, .. }
            | Fault::PowerLoss { length, .. }
            | Fault::PowerCut { length, .. }
            | Fault::SlowSync { length, .. }
            | Fault::FullDisk { length, .. }
            | Fault::Restore { length, .. }
            | Fault::Rate { length, .. } => Some(length),
            Fault::Lose { .. }
            | Fault::Delay { .. }
            | Fault::Duplicate { .. }
            | Fault::IoError { .. }
            | Fault::Backup { .. }
            | Fault::Step { .. } => None,
        }
    }

    /// The fault's name, as in schedules and histories.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Partition { .. } => "partition",
            Fault::PartitionOneway { .. } => "partition-oneway",
            Fault::Isolate { .. } => "isolate",
            Fault::Halves { .. } => "halves",
            Fault::Bridge { .. } => "bridge",
            Fault::Hold { .. } => "hold",
            Fault::Latency { .. } => "latency",
            Fault::Flaky { .. } => "flaky",
            Fault::Lose { .. } => "lose",
            Fault::Delay { .. } => "delay",
            Fault::Duplicate { .. } => "duplicate",
            Fault::Pause { .. } => "pause",
            Fault::Suspend { .. } => "suspend",
            Fault::Starve { .. } => "starve",
            Fault::GcPause { .. } => "gc-pause",
            Fault::Crash { .. } => "crash",
            Fault::PowerLoss { .. } => "power-loss",
            Fault::PowerCut { .. } => "power-cut",
            Fault::IoError { .. } => "io-error",
            Fault::SlowSync { .. } => "slow-sync",
            Fault::FullDisk { .. } => "full-disk",
            Fault::Backup { .. } => "backup",
            Fault::Restore { .. } => "restore",
            Fault::Rate { .. } => "rate",
            Fault::Step { .. } => "step",
        }
    }
}

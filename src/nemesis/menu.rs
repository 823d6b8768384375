//! The menu: every kind of fault that a workload can put before its nemesis, by name.
//! What is left at zero is drawn.

use deposed_checkers::history::F;

use super::{Choice, Length};
use crate::fault::{Fault, Moment, Target};

impl Choice {
    fn new(fault: Fault) -> Self {
        Self {
            weight: 1,
            fault,
            length: Length::Mixed,
            aims: Vec::new(),
            only_aimed: false,
        }
    }

    /// Drawn this many times as often as a choice of weight 1.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Lasts this long.
    pub fn lasting(mut self, length: Length) -> Self {
        self.length = length;
        self
    }

    /// A message rule strikes only frames between these two.
    ///
    /// # Panics
    /// On a fault that is no message rule.
    pub fn between(mut self, sender: Target, receiver: Target) -> Self {
        match &mut self.fault {
            Fault::Lose { from, to, .. }
            | Fault::Delay { from, to, .. }
            | Fault::Duplicate { from, to, .. } => (*from, *to) = (sender, receiver),
            other => panic!("{} is no message rule", other.name()),
        }
        self
    }

    /// Is aimed at one of these events more often than not.
    pub fn aimed(mut self, aims: &[Moment]) -> Self {
        self.aims = aims.to_vec();
        self
    }

    /// Strikes on one of these events, exactly, and at no other time.
    pub fn only_on(mut self, aims: &[Moment]) -> Self {
        self.aims = aims.to_vec();
        self.only_aimed = true;
        self
    }
}

/// Every kind of frame that our own system sends where storage checks tokens: requests,
/// then replies. Where it cannot, `effect` and `effect-reply` take the place of `write`'s.
pub const FRAMES: [&str; 14] = [
    "acquire",
    "renew",
    "release",
    "fence",
    "write",
    "delete",
    "read",
    "acquire-reply",
    "renew-reply",
    "release-reply",
    "fence-reply",
    "write-reply",
    "delete-reply",
    "read-reply",
];

/// The kinds of frame that only some storages send: the quorum's, and the relay's.
pub const FRAMES_OF_STORAGES: [&str; 10] = [
    "prepare",
    "query",
    "accept",
    "adopt",
    "effect",
    "prepare-reply",
    "query-reply",
    "accept-reply",
    "adopt-reply",
    "effect-reply",
];

/// The same choice for each kind of frame: `each_kind(lose)`.
pub fn each_kind(make: fn(&str) -> Choice) -> Vec<Choice> {
    FRAMES.into_iter().map(make).collect()
}

/// No message between two parties.
pub fn partition(a: Target, b: Target) -> Choice {
    Choice::new(Fault::Partition { a, b, length: 0 })
}

/// No message from one party to another; the other way is open.
pub fn partition_oneway(from: Target, to: Target) -> Choice {
    Choice::new(Fault::PartitionOneway {
        from,
        to,
        length: 0,
    })
}

/// A node cut off from all others.
pub fn isolate(target: Target) -> Choice {
    Choice::new(Fault::Isolate { target, length: 0 })
}

/// All nodes split in two drawn halves.
pub fn halves() -> Choice {
    Choice::new(Fault::Halves { length: 0 })
}

/// Two drawn halves, and one drawn node that sees both.
pub fn bridge() -> Choice {
    Choice::new(Fault::Bridge { length: 0 })
}

/// Messages between two parties wait and then arrive all at once.
pub fn hold(a: Target, b: Target) -> Choice {
    Choice::new(Fault::Hold { a, b, length: 0 })
}

/// A slow link: latencies drawn up to one and a half try timeouts.
pub fn latency(a: Target, b: Target) -> Choice {
    Choice::new(Fault::Latency {
        a,
        b,
        min: 0,
        max: 0,
        length: 0,
    })
}

/// A flaky link: a twentieth to a half of its frames lost, as many late, up to two try
/// timeouts.
pub fn flaky(a: Target, b: Target) -> Choice {
    Choice::new(Fault::Flaky {
        a,
        b,
        lose_ppb: 0,
        delay_ppb: 0,
        by: 0,
        length: 0,
    })
}

/// One to three frames of a kind are lost, whoever sent them.
pub fn lose(kind: &str) -> Choice {
    lose_exactly(kind, 0)
}

/// So many frames of a kind are lost, whoever sent them.
pub fn lose_exactly(kind: &str, count: u32) -> Choice {
    let (from, to) = (Target::Everyone, Target::Everyone);
    Choice::new(Fault::Lose {
        kind: kind.into(),
        from,
        to,
        count,
    })
}

/// One to three frames of a kind arrive late, whoever sent them.
pub fn delay(kind: &str) -> Choice {
    let (from, to) = (Target::Everyone, Target::Everyone);
    Choice::new(Fault::Delay {
        kind: kind.into(),
        from,
        to,
        count: 0,
        by: 0,
    })
}

/// One to three frames of a kind arrive twice, whoever sent them.
pub fn duplicate(kind: &str) -> Choice {
    let (from, to) = (Target::Everyone, Target::Everyone);
    Choice::new(Fault::Duplicate {
        kind: kind.into(),
        from,
        to,
        count: 0,
        by: 0,
    })
}

/// A stop-the-world pause.
pub fn pause(target: Target) -> Choice {
    Choice::new(Fault::Pause { target, length: 0 })
}

/// A machine that sleeps: its run clock stops, its boot clock runs on.
pub fn suspend(target: Target) -> Choice {
    Choice::new(Fault::Suspend { target, length: 0 })
}

/// A process that gets one tick in five to in a third of a ttl.
pub fn starve(target: Target) -> Choice {
    Choice::new(Fault::Starve {
        target,
        one_in: 0,
        length: 0,
    })
}

/// A pause at the next gc point, or the next one before a call of a kind.
pub fn gc_pause(target: Target, before: Option<F>) -> Choice {
    Choice::new(Fault::GcPause {
        target,
        before,
        length: 0,
    })
}

/// A crash that closes connections, and a restart.
pub fn crash(target: Target) -> Choice {
    Choice::new(Fault::Crash { target, length: 0 })
}

/// A power loss, which nobody is told of, and a restart.
pub fn power_loss(target: Target) -> Choice {
    Choice::new(Fault::PowerLoss { target, length: 0 })
}

/// A power loss inside one of the next 60 operations of the disk, and a restart.
pub fn power_cut(target: Target) -> Choice {
    Choice::new(Fault::PowerCut {
        target,
        operations: 0,
        length: 0,
    })
}

/// One to three operations of the disk fail.
pub fn io_error(target: Target) -> Choice {
    Choice::new(Fault::IoError { target, count: 0 })
}

/// Commits that take up to a third of the ttl longer.
pub fn slow_sync(target: Target) -> Choice {
    Choice::new(Fault::SlowSync {
        target,
        by: 0,
        length: 0,
    })
}

/// A disk on which nothing can be written.
pub fn full_disk(target: Target) -> Choice {
    Choice::new(Fault::FullDisk { target, length: 0 })
}

/// A copy of what is on the disk.
pub fn backup(target: Target) -> Choice {
    Choice::new(Fault::Backup { target })
}

/// A power loss, and a restart with the last copy that was taken.
pub fn restore(target: Target) -> Choice {
    Choice::new(Fault::Restore { target, length: 0 })
}

/// A change of clock rate, inside the bound.
pub fn rate(target: Target) -> Choice {
    Choice::new(Fault::Rate {
        target,
        rate_ppb: 0,
        length: 0,
    })
}

/// A step of the wall clock, up to four ttls either way.
pub fn step(target: Target) -> Choice {
    Choice::new(Fault::Step { target, by: 0 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node::frame::{Reply, Request};

    /// A message rule for a kind that nobody sends would strike nothing.
    #[test]
    fn every_kind_of_frame_is_one_that_is_sent() {
        for kind in FRAMES.into_iter().chain(FRAMES_OF_STORAGES) {
            let frame = json!({"kind": kind});
            let result = match kind.ends_with("-reply") {
                true => serde_json::from_value::<Reply>(frame).map(drop),
                false => serde_json::from_value::<Request>(frame).map(drop),
            };
            let error = result.expect_err("it has no fields").to_string();
            assert_eq!(error, "missing field `body`", "{kind}");
        }
    }
}

//! What a run is told to go wrong, so that it goes the way of a story.
//!
//! - A client stands still by being down until the story first wakes it, and by pauses.
//! - Each kind of frame, on each way, has its rules in the order in which the story sends:
//!   read at a time, read twice, or lost. What is sent beyond the story is lost.
//! - Servers crash when the story says so. What waits for one then would die with it, so
//!   whoever sent it wakes only when the server is back.

use std::collections::BTreeMap;

use deposed_checkers::history::Nanos;

use super::{
    super::{message::Reader, scope::Scope},
    Holds, Pace,
    frames::{Deed, Frame, Told},
};
use crate::{
    cluster::Cluster,
    fault::{Fault, Injection, Schedule, Target, Trigger},
    workload::MS,
};

/// How long a frame is under way without a rule, about: a connection to be made at worst.
const TRAVEL: Nanos = 3 * MS;
/// More frames than a run sends.
const ALL_THE_REST: u32 = 1_000_000;

/// The kinds of frame that a story has, without `read` and the answers to changes: they
/// pass.
const KINDS: [(&str, Reader); 6] = [
    ("acquire", Reader::Store),
    ("renew", Reader::Store),
    ("release", Reader::Store),
    ("fence", Reader::Storage),
    ("write", Reader::Storage),
    ("delete", Reader::Storage),
];
const ANSWERS: [(&str, Reader); 4] = [
    ("acquire-reply", Reader::Store),
    ("renew-reply", Reader::Store),
    ("release-reply", Reader::Store),
    ("fence-reply", Reader::Storage),
];

/// A client's pauses, from and until.
type Pauses = Vec<(Nanos, Nanos)>;

struct Orders<'t> {
    told: &'t Told,
    pace: Pace,
    chaos: Nanos,
    orders: Schedule,
}

/// The schedule, by time.
pub(super) fn of(
    told: &Told,
    scope: &Scope,
    pace: Pace,
    chaos: Nanos,
    cluster: &Cluster,
) -> Schedule {
    let mut orders = Orders {
        told,
        pace,
        chaos,
        orders: Schedule::new(),
    };
    for client in 0..scope.clients {
        let pauses = orders.stand_still(client);
        orders.rule(client, &pauses);
    }
    let dark = !cluster.disk.is_memory();
    let down = orders.down();
    let servers = [
        (Target::Store, &told.store_crashes),
        (Target::Storage, &told.storage_crashes),
    ];
    for (target, crashes) in servers {
        for &at in crashes {
            let length = down;
            let fault = match dark {
                true => Fault::PowerLoss { target, length },
                false => Fault::Crash { target, length },
            };
            orders.give(at, fault);
        }
    }
    let mut orders = orders.orders;
    orders.sort_by_key(|order| order.when.earliest());
    orders
}

fn target(client: usize) -> Target {
    Target::Client(u8::try_from(client).unwrap_or(u8::MAX))
}

fn server(reader: Reader) -> Target {
    match reader {
        Reader::Storage => Target::Storage,
        Reader::Store | Reader::Client => Target::Store,
    }
}

impl Orders<'_> {
    fn give(&mut self, at: Nanos, fault: Fault) {
        let when = Trigger::At(at);
        self.orders.push(Injection { when, fault });
    }

    /// How long a server is down.
    fn down(&self) -> Nanos {
        self.pace.step / 2
    }

    /// Down, then paused. The pauses that it makes.
    fn stand_still(&mut self, client: usize) -> Pauses {
        let does = &self.told.does[client];
        let wakes = |after: Nanos| {
            let mut wakes = does.iter().filter(|does| does.deed == Deed::Wakes);
            wakes
                .find(|does| does.at >= after)
                .map(|does| self.not_before_a_crash(client, does.at))
        };
        let crashes = &self.told.client_crashes[client];
        let starts = std::iter::once(0).chain(crashes.iter().copied());
        let starts: Vec<_> = starts
            .map(|down| (down, wakes(down).unwrap_or(self.chaos)))
            .collect();
        for (down, until) in starts {
            // A fault strikes at the end of its millisecond, and so does its end.
            let length = (until - down).saturating_sub(2 * MS).max(MS);
            let target = target(client);
            self.give(down, Fault::Crash { target, length });
        }
        let mut pauses = Pauses::new();
        for pair in does.windows(2) {
            let (before, next) = (pair[0], pair[1]);
            let crashed = |at: &&Nanos| (before.at..=next.at).contains(*at);
            // What it has in hand may be over before the story has it release its lease.
            let resigned = before.deed == Deed::Resigns && next.deed == Deed::Wakes;
            if next.tick == before.tick && !resigned || crashes.iter().any(|at| crashed(&at)) {
                continue;
            }
            if let Deed::Acts(call) = next.deed {
                let (target, before_it) = (target(client), before.at.saturating_sub(2 * MS));
                let fault = Fault::GcPause {
                    target,
                    before: Some(call),
                    length: next.at - before.at,
                };
                self.give(before_it, fault);
                continue;
            }
            let held = match self.pace.holds {
                Holds::UntilItWakes => next.deed == Deed::Wakes,
                Holds::Always => true,
                Holds::Never => false,
            };
            if held {
                let late = if resigned { MS } else { self.pace.step - MS };
                let from = before.at + late;
                let until = match next.deed {
                    Deed::Wakes => self.not_before_a_crash(client, next.at),
                    _ => next.at,
                };
                pauses.push((from, until));
            }
        }
        for &(from, until) in &pauses {
            let (target, length) = (target(client), until - from);
            self.give(from, Fault::Pause { target, length });
        }
        pauses
    }

    /// When a client wakes that wakes in the story at a time: after the last crash that what
    /// it sends then would not survive.
    fn not_before_a_crash(&self, client: usize, at: Nanos) -> Nanos {
        let mut frames = self.told.frames.iter();
        let sent = frames.find(|frame| {
            let says = frame.what.says();
            says.reader() == Reader::Store
                && frame.what.process().client == client
                && frame.sent == at
        });
        let Some(read) = sent.and_then(|frame| frame.read.first()) else {
            return at;
        };
        let crashes = self.told.store_crashes.iter();
        let between = crashes.filter(|crash| (at..*read).contains(crash));
        between.max().map_or(at, |crash| crash + self.down() + MS)
    }

    /// The rules for a client's frames, both ways.
    fn rule(&mut self, client: usize, pauses: &Pauses) {
        let mut kinds: BTreeMap<&str, Vec<&Frame>> = BTreeMap::new();
        for frame in &self.told.frames {
            if frame.what.process().client == client {
                let kind = frame.what.says().kind();
                kinds.entry(kind).or_default().push(frame);
            }
        }
        let (me, mut orders) = (target(client), Vec::new());
        for (kind, reader) in KINDS {
            let frames = kinds.remove(kind).unwrap_or_default();
            let fates = frames.iter().flat_map(|frame| self.fates(frame));
            orders.push((kind, me, server(reader), fates.collect::<Vec<_>>()));
        }
        for (kind, reader) in ANSWERS {
            let frames = kinds.remove(kind).unwrap_or_default();
            let fates = frames.iter().map(|frame| {
                let paused = pauses
                    .iter()
                    .find(|(from, until)| (*from..*until).contains(&(frame.sent + MS)));
                fate(frame, paused.map_or(frame.sent, |(_, until)| *until))
            });
            orders.push((kind, server(reader), me, fates.collect()));
        }
        for (kind, from, to, fates) in orders {
            // That a release was done changes nothing but how soon its client contends again,
            // and a story need not wait for that.
            if kind == "release-reply" && fates.iter().all(|fate| *fate == Fate::Lost) {
                continue;
            }
            self.arm(kind, (from, to), fates);
        }
    }

    /// What becomes of a request. What waits for a server that crashes is gone with its
    /// connection; that it is read again after that is its client's next try.
    fn fates(&self, frame: &Frame) -> Vec<Fate> {
        let crashes = match frame.what.says().reader() {
            Reader::Storage => &self.told.storage_crashes,
            Reader::Store | Reader::Client => &self.told.store_crashes,
        };
        match frame.read[..] {
            [first, .., last] if crashes.iter().any(|at| (first..last).contains(at)) => {
                let by = first.saturating_sub(frame.leaves + TRAVEL).max(MS);
                vec![Fate::Read { by }, Fate::Read { by: MS }]
            }
            _ => vec![fate(frame, frame.leaves)],
        }
    }

    fn arm(&mut self, kind: &str, (from, to): (Target, Target), fates: Vec<Fate>) {
        let kind = || kind.into();
        let mut lost = 0;
        for fate in fates {
            if fate != Fate::Lost && lost > 0 {
                let (kind, count) = (kind(), std::mem::take(&mut lost));
                self.give(
                    0,
                    Fault::Lose {
                        kind,
                        from,
                        to,
                        count,
                    },
                );
            }
            let (kind, count) = (kind(), 1);
            match fate {
                Fate::Lost => lost += 1,
                Fate::Read { by } => self.give(
                    0,
                    Fault::Delay {
                        kind,
                        from,
                        to,
                        count,
                        by,
                    },
                ),
                Fate::Twice { by } => self.give(
                    0,
                    Fault::Duplicate {
                        kind,
                        from,
                        to,
                        count,
                        by,
                    },
                ),
            }
        }
        let (kind, count) = (kind(), ALL_THE_REST);
        self.give(
            0,
            Fault::Lose {
                kind,
                from,
                to,
                count,
            },
        );
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Lost,
    /// So much later than it comes by itself.
    Read {
        by: Nanos,
    },
    /// By itself, and once more so much later.
    Twice {
        by: Nanos,
    },
}

/// What becomes of a frame that can be read from a time on.
fn fate(frame: &Frame, from: Nanos) -> Fate {
    let by = |at: Nanos| at.saturating_sub(from + TRAVEL).max(MS);
    match frame.read[..] {
        [] => Fate::Lost,
        [once] => Fate::Read { by: by(once) },
        [_, .., last] => Fate::Twice { by: by(last) },
    }
}

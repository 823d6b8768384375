//! A system that looks at its world and does nothing else: its nodes send each other
//! numbered frames, read their clocks and note what they see.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use deposed::{
    checkers::history::{Event, Fence, NEMESIS, Name, Nanos, Op, RatePpb, Read},
    cluster::Cluster,
    disk::{commit_json, records_json},
    fault::{Fault, Injection, Schedule, Target, Trigger},
    net::{Connection, LocalFuture},
    node::Node,
    run::{Header, Outcome, run},
    system::{Setup, System},
    workload::{MS, Network, Workload},
};
use serde_json::{Value, json};

pub const A: Target = Target::Client(0);
pub const B: Target = Target::Client(1);
pub const PEERS: [&str; 4] = ["store", "storage", "a", "b"];
/// Between two frames on one way.
pub const EVERY: Nanos = 5 * MS;
/// Storage listens only from here on.
pub const LATE: Nanos = 80 * MS;

/// What a node saw, and at which true time.
#[derive(Clone, Debug)]
pub struct Note {
    pub at: Nanos,
    pub node: Name,
    pub seen: Seen,
}

#[derive(Clone, Debug)]
pub enum Seen {
    Frame {
        kind: Name,
        from: Name,
        n: u64,
        sent: Nanos,
    },
    Closed {
        from: Name,
    },
    Dialled {
        to: Name,
        result: &'static str,
    },
    Clocks {
        now: Nanos,
        wall: Nanos,
        run: Nanos,
    },
    Booted {
        before: u64,
    },
}

#[derive(Clone, Default)]
struct Probe(Arc<Mutex<Vec<Note>>>);

impl Probe {
    fn notes(&self) -> MutexGuard<'_, Vec<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, node: &Node, seen: Seen) {
        let (at, node) = (node.recorder().now(), node.name().clone());
        self.notes().push(Note { at, node, seen });
    }

    async fn live(self, node: Node) {
        let booted: u64 = records_json(node.disk())
            .await
            .expect("a disk")
            .remove("boots")
            .unwrap_or(0);
        commit_json(node.disk(), "boots", &(booted + 1))
            .await
            .expect("a disk");
        self.note(&node, Seen::Booted { before: booted });
        node.spawn(self.clone().listen(node.clone()));
        for peer in PEERS.into_iter().filter(|peer| peer != node.name()) {
            node.spawn(self.clone().send(node.clone(), peer.into()));
        }
        node.spawn(call(node.clone()));
        loop {
            let (now, wall, run) = (node.now(), node.clock().wall(), node.clock().run_clock());
            self.note(&node, Seen::Clocks { now, wall, run });
            node.sleep(EVERY).await;
        }
    }

    async fn listen(self, node: Node) {
        if node.name() == "storage" {
            node.sleep(LATE).await;
        }
        let mut listener = node.net().listen().await.expect("a free address");
        while let Ok(connection) = listener.accept().await {
            node.spawn(self.clone().receive(node.clone(), connection));
        }
    }

    async fn receive(self, node: Node, mut connection: Connection) {
        let from = connection.peer().clone();
        while let Ok(Some(frame)) = connection.receive::<Value>().await {
            let number = |field: &str| frame[field].as_u64().expect("a number");
            let (n, sent) = (number("n"), number("sent"));
            let kind = frame["kind"].as_str().expect("a kind").into();
            let from = from.clone();
            self.note(
                &node,
                Seen::Frame {
                    kind,
                    from,
                    n,
                    sent,
                },
            );
        }
        self.note(&node, Seen::Closed { from });
    }

    /// Frames for ever, on a new connection now and then: a stream that lost a segment
    /// carries nothing any more.
    async fn send(self, node: Node, to: Name) {
        let mut connection = None;
        for n in 0.. {
            if n % 20 == 0 || connection.is_none() {
                let dialled = node.timeout(20 * MS, node.net().connect(&to)).await;
                let result = match &dialled {
                    Some(Ok(_)) => "connected",
                    Some(Err(_)) => "refused",
                    None => "nothing",
                };
                self.note(
                    &node,
                    Seen::Dialled {
                        to: to.clone(),
                        result,
                    },
                );
                connection = dialled.and_then(Result::ok).or(connection);
            }
            for kind in ["ping", "pong"] {
                let frame = json!({"kind": kind, "n": n, "sent": node.recorder().now()});
                if let Some(open) = &mut connection
                    && open.send(&frame).await.is_err()
                {
                    connection = None;
                }
            }
            node.sleep(EVERY).await;
        }
    }
}

/// Calls of two kinds by turns, for pauses to land before.
async fn call(node: Node) {
    let lease: Name = "leader".into();
    loop {
        let read = Read {
            lease: lease.clone(),
            token: None,
            key: "k".into(),
        };
        drop(node.invoke(Op::Read(read)).await);
        node.sleep(10 * MS).await;
        let fence = Fence {
            lease: lease.clone(),
            token: 1,
        };
        drop(node.invoke(Op::Fence(fence)).await);
        node.sleep(10 * MS).await;
    }
}

impl System for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn store(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(self.clone().live(node))
    }

    fn storage(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(self.clone().live(node))
    }

    fn client(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(self.clone().live(node))
    }
}

/// A second of the faults, with two clients on a network of 1 ms, then one of calm.
pub fn header(faults: Vec<(Nanos, Fault)>) -> Header {
    let at = |(at, fault)| Injection {
        when: Trigger::At(at * MS),
        fault,
    };
    let schedule: Schedule = faults.into_iter().map(at).collect();
    let mut header = Header::of(&Workload::named("probe"), 7, "probe", None);
    header.cluster = Cluster::of(2);
    header.network = Network {
        min_latency: MS,
        max_latency: MS,
    };
    (header.chaos, header.calm) = (1000 * MS, 1000 * MS);
    header.schedule = schedule;
    header
}

/// What the probe saw of these faults, each at its millisecond.
pub fn see(faults: Vec<(Nanos, Fault)>) -> Sight {
    see_header(&header(faults))
}

pub fn see_header(header: &Header) -> Sight {
    let probe = Probe::default();
    let system: Arc<dyn System> = Arc::new(probe.clone());
    let outcome = run(header, &system).expect("it runs");
    assert_eq!(outcome.defects, Vec::<String>::new());
    let notes = probe.notes().clone();
    Sight { notes, outcome }
}

pub struct Sight {
    pub notes: Vec<Note>,
    pub outcome: Outcome,
}

/// A frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub at: Nanos,
    pub n: u64,
    pub sent: Nanos,
}

impl Sight {
    /// The frames of a kind that came from one node to another, in order of arrival.
    pub fn frames(&self, wanted: &str, sender: &str, to: &str) -> Vec<Arrival> {
        let frame = |note: &Note| match &note.seen {
            Seen::Frame {
                kind,
                from,
                n,
                sent,
            } if kind == wanted && from == sender && note.node == to => Some(Arrival {
                at: note.at,
                n: *n,
                sent: *sent,
            }),
            _ => None,
        };
        self.notes.iter().filter_map(frame).collect()
    }

    /// How many pings arrived from one node at another between two milliseconds.
    pub fn arrived(&self, from: &str, to: &str, after: Nanos, before: Nanos) -> usize {
        let within = |frame: &&Arrival| (after * MS..before * MS).contains(&frame.at);
        self.frames("ping", from, to).iter().filter(within).count()
    }

    /// The numbers of frames that never arrived though later ones did.
    pub fn missing(&self, kind: &str, from: &str, to: &str) -> Vec<u64> {
        let numbers: BTreeSet<u64> = self
            .frames(kind, from, to)
            .iter()
            .map(|frame| frame.n)
            .collect();
        let (first, last) = (numbers.first().copied(), numbers.last().copied());
        let sent = first.expect("frames")..last.expect("frames");
        sent.filter(|n| !numbers.contains(n)).collect()
    }

    /// When a node saw connections from another end, ms.
    pub fn closed(&self, by: &str, at: &str) -> Vec<Nanos> {
        let closed = |note: &Note| match &note.seen {
            Seen::Closed { from } if from == by && note.node == at => Some(note.at / MS),
            _ => None,
        };
        self.notes.iter().filter_map(closed).collect()
    }

    /// What came of a node's attempts to connect to another that ended between two milliseconds.
    pub fn dialled(
        &self,
        from: &str,
        peer: &str,
        after: Nanos,
        before: Nanos,
    ) -> BTreeSet<&'static str> {
        let dialled = |note: &Note| match &note.seen {
            Seen::Dialled { to, result } if to == peer && note.node == from => (after * MS
                ..before * MS)
                .contains(&note.at)
                .then_some(*result),
            _ => None,
        };
        self.notes.iter().filter_map(dialled).collect()
    }

    /// A node's readings of its clocks: (true time, boot clock, wall clock).
    pub fn clocks(&self, node: &str) -> Vec<(Nanos, Nanos, Nanos)> {
        let clocks = |note: &Note| match note.seen {
            Seen::Clocks { now, wall, .. } if note.node == node => Some((note.at, now, wall)),
            _ => None,
        };
        self.notes.iter().filter_map(clocks).collect()
    }

    /// How far a node's run clock had fallen behind its boot clock, ms, at its first
    /// reading from a millisecond on.
    pub fn slept(&self, node: &str, after: Nanos) -> Nanos {
        let slept = |note: &Note| match note.seen {
            Seen::Clocks { now, run, .. } if note.node == node && note.at >= after * MS => {
                Some((now - run) / MS)
            }
            _ => None,
        };
        self.notes.iter().find_map(slept).expect("a reading")
    }

    /// The rate at which a node's boot clock ran between two milliseconds.
    pub fn rate(&self, node: &str, after: Nanos, before: Nanos) -> RatePpb {
        let within =
            |reading: &(Nanos, Nanos, Nanos)| (after * MS..before * MS).contains(&reading.0);
        let readings: Vec<_> = self.clocks(node).into_iter().filter(within).collect();
        let (first, last) = (readings[0], readings[readings.len() - 1]);
        // To the thousandth: readings are whole nanoseconds.
        let per_mille = ((last.1 - first.1) * 1000 + 500_000) / (last.0 - first.0);
        per_mille * 1_000_000
    }

    /// The milliseconds between two in which a node did something.
    pub fn alive(&self, node: &str, after: Nanos, before: Nanos) -> usize {
        let readings = self.clocks(node);
        readings
            .iter()
            .filter(|(at, ..)| (after * MS..before * MS).contains(at))
            .count()
    }

    /// When a node started, ms, and how often it had before, by its disk.
    pub fn boots(&self, node: &str) -> Vec<(Nanos, u64)> {
        let booted = |note: &Note| match note.seen {
            Seen::Booted { before } if note.node == node => Some((note.at / MS, before)),
            _ => None,
        };
        self.notes.iter().filter_map(booted).collect()
    }

    /// The nemesis's records of a name.
    pub fn nemesis(&self, wanted: &str) -> Vec<(Nanos, Value)> {
        use deposed::checkers::history::Body;
        let named = |event: &Event| match &event.body {
            Body::Nemesis(name, value) if name == wanted && event.process == NEMESIS => {
                Some((event.time / MS, value.clone()))
            }
            _ => None,
        };
        self.outcome.history.iter().filter_map(named).collect()
    }
}

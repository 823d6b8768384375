//! A history as lanes over time: what each process did and believed, what befell it, and
//! where a rule was broken. The terminal and the browser draw this one [`Chart`].
//!
//! Pure, and in one pass: a [`Drawing`] is shown the header and each event, in order, and
//! keeps a few dozen bytes of each. Of a history from elsewhere, without headers of ours
//! and without what nodes see from the inside, the chart has the clients' calls.

mod beliefs;
mod conditions;
pub mod selection;

use std::collections::BTreeMap;

use deposed_checkers::{
    history::{Body, Event, Header, Kind, NEMESIS, Name, Nanos, Observation, RatePpb, Token},
    verdict::Verdicts,
};

use crate::cluster::{self, Cluster};
use beliefs::Beliefs;
use conditions::Conditions;

/// A drawn history.
pub struct Chart {
    /// True time of the first event.
    pub start: Nanos,
    /// True time of the last.
    pub end: Nanos,
    /// Clients, the store, storage, others, the nemesis; by name within a role.
    pub lanes: Vec<Lane>,
    /// The `f`s that occur; [`Point::f`] counts in here.
    pub names: Vec<Name>,
    /// Every event.
    pub points: Vec<Point>,
    /// What lasts, by lane and then by its beginning.
    pub spans: Vec<Span>,
    /// What the checks say.
    pub verdicts: Verdicts,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    /// What it does.
    pub role: Role,
    /// Its name.
    pub name: Name,
}

/// What a process does: what the header says, or else what it was seen to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Calls.
    Client,
    /// Grants leases.
    Store,
    /// Keeps what leaders write.
    Storage,
    /// Was named, and not seen to do anything.
    Unknown,
    /// Injects faults.
    Nemesis,
}

impl Role {
    /// The role in a word.
    pub fn word(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Store => "store",
            Role::Storage => "storage",
            Role::Unknown => "process",
            Role::Nemesis => "nemesis",
        }
    }
}

/// An event, as far as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its index in the history.
    pub index: u64,
    /// True time.
    pub time: Nanos,
    /// The process, a place in [`Chart::lanes`].
    pub lane: usize,
    /// A place in [`Chart::names`].
    pub f: usize,
    /// The event's type.
    pub kind: Kind,
    /// Of a call: the place in [`Chart::points`] of its beginning, or of its end.
    pub mate: Option<usize>,
}

/// Something that lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Whom it concerns, a place in [`Chart::lanes`].
    pub lane: usize,
    /// True time at which it begins.
    pub from: Nanos,
    /// True time at which it ends, exclusive.
    pub to: Nanos,
    /// What it is.
    pub what: Condition,
    /// The index of the event that began it; a clock may be off from the start.
    pub event: Option<u64>,
}

/// What lasts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// `is_leader()` answers true.
    Leads {
        /// Of which lease.
        lease: Name,
        /// Under which token, where the system has tokens.
        token: Option<Token>,
    },
    /// An expired lease stays closed to new owners.
    LockDelay {
        /// Which lease.
        lease: Name,
    },
    /// Crashed, or without power.
    Down,
    /// Stopped; its clocks run on.
    Paused,
    /// Stopped, and its run clock, too.
    Suspended,
    /// Gets few ticks.
    Starved,
    /// Some of its links carry nothing, one way or both.
    CutOff,
    /// Some of its links are slow, held back or lossy.
    BadLinks,
    /// Its disk is slow or full.
    BadDisk,
    /// Its clock does not run true.
    OffRate {
        /// At which rate it runs.
        rate: RatePpb,
        /// Whether it has run so from the start.
        inborn: bool,
    },
}

impl Condition {
    /// What it is, in a word or two.
    pub fn word(&self) -> &'static str {
        match self {
            Condition::Leads { .. } => "believes to lead",
            Condition::LockDelay { .. } => "lock-delay",
            Condition::Down => "down",
            Condition::Paused => "paused",
            Condition::Suspended => "suspended",
            Condition::Starved => "starved",
            Condition::CutOff => "cut off",
            Condition::BadLinks => "slow or lossy links",
            Condition::BadDisk => "slow or full disk",
            Condition::OffRate { .. } => "clock off its rate",
        }
    }
}

impl Chart {
    /// A history in memory, with its verdicts.
    pub fn of(header: &Header, events: &[Event], verdicts: Verdicts) -> Self {
        let mut drawing = Drawing::new(header);
        events.iter().for_each(|event| drawing.see(event));
        drawing.finish(verdicts)
    }

    /// The times of the first event and of the last, if there are any.
    pub fn bounds(&self) -> Option<(Nanos, Nanos)> {
        (!self.points.is_empty()).then_some((self.start, self.end))
    }

    /// The names of its lanes.
    pub fn lane_names(&self) -> Vec<Name> {
        self.lanes.iter().map(|lane| lane.name.clone()).collect()
    }

    /// The place of the event with this index.
    pub fn place(&self, index: u64) -> Option<usize> {
        self.points
            .binary_search_by_key(&index, |point| point.index)
            .ok()
    }

    /// What lasts in a lane, by its beginning.
    pub fn spans_of(&self, lane: usize) -> &[Span] {
        let from = self.spans.partition_point(|span| span.lane < lane);
        let to = self.spans.partition_point(|span| span.lane <= lane);
        &self.spans[from..to]
    }
}

/// A chart in the making.
pub struct Drawing {
    lanes: Lanes,
    names: BTreeMap<Name, usize>,
    points: Vec<Point>,
    calls: BTreeMap<u64, usize>,
    /// Calls without an id: one open a process.
    open: BTreeMap<usize, usize>,
    beliefs: Beliefs,
    conditions: Conditions,
}

/// The processes in the order in which they are first named.
struct Lanes {
    known: BTreeMap<Name, Role>,
    places: BTreeMap<Name, usize>,
    roles: Vec<Role>,
}

impl Lanes {
    fn of(&mut self, name: &Name) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.roles.len();
        self.places.insert(name.clone(), place);
        let role = self
            .known
            .get(name)
            .copied()
            .unwrap_or(match name.as_str() {
                NEMESIS => Role::Nemesis,
                _ => Role::Unknown,
            });
        self.roles.push(role);
        place
    }

    /// The process was seen in a role.
    fn plays(&mut self, place: usize, role: Role) {
        if self.roles[place] == Role::Unknown {
            self.roles[place] = role;
        }
    }
}

impl Drawing {
    /// Nothing drawn yet.
    pub fn new(header: &Header) -> Self {
        let cluster = header.rest.get("cluster").cloned();
        let cluster = cluster.and_then(|cluster| serde_json::from_value::<Cluster>(cluster).ok());
        let nodes = cluster.map(|cluster| cluster.nodes()).unwrap_or_default();
        let role = |role| match role {
            cluster::Role::Store => Role::Store,
            cluster::Role::Storage => Role::Storage,
            cluster::Role::Client => Role::Client,
        };
        let mut lanes = Lanes {
            known: nodes
                .iter()
                .map(|(name, played)| (name.clone(), role(*played)))
                .collect(),
            places: BTreeMap::new(),
            roles: Vec::new(),
        };
        for (name, _) in &nodes {
            lanes.of(name);
        }
        Self {
            lanes,
            names: BTreeMap::new(),
            points: Vec::new(),
            calls: BTreeMap::new(),
            open: BTreeMap::new(),
            beliefs: Beliefs::new(header),
            conditions: Conditions::new(header),
        }
    }

    /// Draws the next event.
    pub fn see(&mut self, event: &Event) {
        let lane = self.lanes.of(&event.process);
        let place = self.points.len();
        let mate = match &event.body {
            Body::Invoke(_) => {
                match event.call {
                    Some(id) => self.calls.insert(id, place),
                    None => self.open.insert(lane, place),
                };
                None
            }
            Body::Complete(..) => match event.call {
                Some(id) => self.calls.remove(&id),
                None => self.open.remove(&lane),
            },
            _ => None,
        };
        if let Some(begun) = mate {
            self.points[begun].mate = Some(place);
        }
        let name = name_of(&event.body);
        let f = match self.names.get(name) {
            Some(f) => *f,
            None => {
                self.names.insert(name.into(), self.names.len());
                self.names.len() - 1
            }
        };
        self.points.push(Point {
            index: event.index,
            time: event.time,
            lane,
            f,
            kind: event.kind,
            mate,
        });
        self.lasting(event, lane);
    }

    fn lasting(&mut self, event: &Event, lane: usize) {
        match &event.body {
            Body::Invoke(_) | Body::Complete(..) => self.lanes.plays(lane, Role::Client),
            Body::Observed(seen) => {
                self.lanes.plays(lane, role_of(seen));
                let rate = self.conditions.rate_of(&event.process);
                self.beliefs.see(event, lane, seen, rate);
            }
            Body::Nemesis(name, value) => {
                let lanes = &mut self.lanes;
                self.conditions
                    .see(event, name, value, &mut |node| lanes.of(node));
            }
            Body::Foreign(..) => {}
        }
    }

    /// The chart, with what the checks say of the history.
    pub fn finish(self, verdicts: Verdicts) -> Chart {
        let start = self.points.first().map_or(0, |point| point.time);
        let end = self.points.last().map_or(0, |point| point.time);
        let mut lanes = self.lanes;
        let mut spans = self.beliefs.finish(end);
        spans.extend(
            self.conditions
                .finish(start, end, &mut |node| lanes.of(node)),
        );
        // What is not there from the beginning or is over before it lasts cannot be drawn.
        spans.retain(|span| span.from < span.to || span.from == end);
        let Lanes { places, roles, .. } = lanes;
        let mut order: Vec<(Lane, usize)> = places
            .into_iter()
            .map(|(name, place)| {
                (
                    Lane {
                        role: roles[place],
                        name,
                    },
                    place,
                )
            })
            .collect();
        // `10` after `9`, as people count.
        order.sort_by(|(a, _), (b, _)| {
            let number = |lane: &Lane| lane.name.parse::<u64>().ok();
            (a.role, number(a), &a.name).cmp(&(b.role, number(b), &b.name))
        });
        let mut moved = vec![0; order.len()];
        for (to, (_, from)) in order.iter().enumerate() {
            moved[*from] = to;
        }
        let mut points = self.points;
        points
            .iter_mut()
            .for_each(|point| point.lane = moved[point.lane]);
        spans
            .iter_mut()
            .for_each(|span| span.lane = moved[span.lane]);
        spans.sort_by(|a, b| (a.lane, a.from, a.to, &a.what).cmp(&(b.lane, b.from, b.to, &b.what)));
        let mut names = vec![Name::default(); self.names.len()];
        for (name, place) in self.names {
            names[place] = name;
        }
        Chart {
            start,
            end,
            lanes: order.into_iter().map(|(lane, _)| lane).collect(),
            names,
            points,
            spans,
            verdicts,
        }
    }
}

/// The event's `f`.
pub fn name_of(body: &Body) -> &str {
    match body {
        Body::Invoke(op) => op.f().name(),
        Body::Complete(f, _) => f.name(),
        Body::Observed(seen) => seen.name(),
        Body::Nemesis(name, _) | Body::Foreign(name, _) => name,
    }
}

fn role_of(seen: &Observation) -> Role {
    match seen {
        Observation::Lead(_) | Observation::Follow(_) => Role::Client,
        Observation::Granted(_)
        | Observation::Renewed(_)
        | Observation::Released(_)
        | Observation::Expired(_)
        | Observation::Denied(_)
        | Observation::StoreRecovered(_)
        | Observation::Restored(_) => Role::Store,
        Observation::Applied(_)
        | Observation::Fenced(_)
        | Observation::Refused(_)
        | Observation::Dropped(_)
        | Observation::StorageRecovered(_) => Role::Storage,
    }
}

//! What the nemesis did to nodes and to their clocks, as far as evidence may name it.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use crate::history::{Body, Event, Name, Nanos};
use crate::rates::{is_crash, nodes};

/// How many faults of a node, and how many cuts, are remembered: the latest.
const REMEMBERED: usize = 128;

/// What befell a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// It stood still; its clocks did not.
    Paused,
    /// Its machine slept, and the run clock with it.
    Suspended,
    /// It got few of its turns.
    Starved,
    /// It crashed, or lost its power.
    Ended,
    /// Its clock runs at another rate.
    Rated,
    /// Its wall clock was stepped: by how much, and in all since the run began.
    Stepped { by: i64, in_all: i64 },
}

/// A fault, from when it struck until it was over. What is over at once ends as it begins.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    pub what: What,
    pub event: u64,
    pub from: Nanos,
    /// `None`: it has not ended, or never told.
    pub until: Option<Nanos>,
}

impl Fault {
    /// How much of a stretch it took.
    pub fn within(&self, from: Nanos, to: Nanos) -> Nanos {
        let until = self.until.unwrap_or(to).min(to);
        until.saturating_sub(self.from.max(from))
    }
}

/// Links that carried nothing.
struct Cut {
    fault: Fault,
    between: Between,
}

enum Between {
    /// One node and everybody.
    Alone(Name),
    /// Some of the links among these.
    These(Vec<Name>),
    /// The nodes of one half and those of another.
    Halves(Vec<Vec<Name>>),
}

impl Between {
    fn parts(&self, one: &str, other: &str) -> bool {
        match self {
            Between::Alone(node) => node == one || node == other,
            Between::These(nodes) => {
                let named = |node: &str| nodes.iter().any(|named| named == node);
                named(one) && named(other)
            }
            Between::Halves(halves) => {
                let half = |node: &str| {
                    halves
                        .iter()
                        .position(|half| half.iter().any(|named| named == node))
                };
                half(one)
                    .zip(half(other))
                    .is_some_and(|(one, other)| one != other)
            }
        }
    }
}

/// The faults of a run so far.
#[derive(Default)]
pub(crate) struct Faults {
    by_node: BTreeMap<Name, VecDeque<Fault>>,
    cuts: VecDeque<Cut>,
}

impl Faults {
    /// How many faults are remembered.
    pub fn remembered(&self) -> usize {
        let of_nodes: usize = self.by_node.values().map(VecDeque::len).sum();
        of_nodes + self.cuts.len()
    }

    /// Takes note of what the nemesis did.
    pub fn see(&mut self, event: &Event) {
        let Body::Nemesis(f, value) = &event.body else {
            return;
        };
        let length = value.get("for").and_then(Value::as_u64);
        let lasting = |what| Fault {
            what,
            event: event.index,
            from: event.time,
            until: length.map(|length| event.time.saturating_add(length)),
        };
        match f.as_str() {
            "pause" | "paused" => self.strike(value, lasting(What::Paused)),
            "suspend" => self.strike(value, lasting(What::Suspended)),
            "starve" => self.strike(value, lasting(What::Starved)),
            "rate" => self.strike(value, lasting(What::Rated)),
            "step" => self.step(event, value),
            "resume" => self.resume(event, value),
            "partition" | "partition-oneway" | "isolate" | "halves" | "bridge" | "hold" => {
                // What it is called matters to nobody who is told that links were cut.
                self.cut(value, lasting(What::Paused));
            }
            "calm" => self.calm(event.time),
            _ if is_crash(f) => {
                for node in nodes(value) {
                    for fault in self.by_node.get_mut(node).into_iter().flatten() {
                        over(fault, event.time);
                    }
                }
                self.strike(value, lasting(What::Ended));
            }
            _ => {}
        }
    }

    /// What befell a node, in order.
    pub fn of(&self, node: &str) -> impl DoubleEndedIterator<Item = &Fault> {
        self.by_node.get(node).into_iter().flatten()
    }

    /// What cut two nodes off from each other, in order.
    pub fn cuts(&self, one: &str, other: &str) -> impl Iterator<Item = &Fault> {
        let parts = move |cut: &&Cut| cut.between.parts(one, other);
        self.cuts.iter().filter(parts).map(|cut| &cut.fault)
    }

    /// The steps of a node's wall clock that were before this instant was over.
    pub fn steps(&self, node: &str, by: Nanos) -> impl DoubleEndedIterator<Item = (Fault, i64)> {
        let faults = self.by_node.get(node).into_iter().flatten();
        faults
            .filter(move |fault| fault.from <= by)
            .filter_map(|fault| match fault.what {
                What::Stepped { in_all, .. } => Some((*fault, in_all)),
                _ => None,
            })
    }

    /// How far a node's wall clock was stepped ahead in all after one instant and by another,
    /// and the last of the steps.
    pub fn stepped_ahead(&self, node: &str, from: Nanos, to: Nanos) -> Option<(Fault, Nanos)> {
        let (last, in_all) = self.steps(node, to).next_back()?;
        let before = self.steps(node, from).next_back();
        let by = in_all.saturating_sub(before.map_or(0, |(_, in_all)| in_all));
        let by = Nanos::try_from(by).ok().filter(|by| *by > 0)?;
        (last.from > from).then_some((last, by))
    }

    fn strike(&mut self, value: &Value, fault: Fault) {
        for node in nodes(value) {
            remember(self.by_node.entry(node.into()).or_default(), fault);
        }
    }

    fn step(&mut self, event: &Event, value: &Value) {
        let Some(by) = value.get("by").and_then(Value::as_i64) else {
            return;
        };
        for node in nodes(value) {
            let before = self.steps(node, event.time).next_back();
            let before = before.map_or(0, |(_, in_all)| in_all);
            let what = What::Stepped {
                by,
                in_all: before.saturating_add(by),
            };
            let fault = Fault {
                what,
                event: event.index,
                from: event.time,
                until: Some(event.time),
            };
            remember(self.by_node.entry(node.into()).or_default(), fault);
        }
    }

    /// It ends what ends now, or else what has not been seen to end.
    fn resume(&mut self, event: &Event, value: &Value) {
        let what = match value.get("fault").and_then(Value::as_str) {
            Some("suspend") => What::Suspended,
            _ => What::Paused,
        };
        for node in nodes(value) {
            let faults = self.by_node.get_mut(node).into_iter().flatten();
            let running = |fault: &&mut Fault| {
                fault.what == what && fault.until.is_none_or(|until| until >= event.time)
            };
            if let Some(fault) = faults.filter(running).min_by_key(|fault| fault.until) {
                over(fault, event.time);
            }
        }
    }

    fn cut(&mut self, value: &Value, fault: Fault) {
        let names = |value: &Value| -> Vec<Name> {
            let names = value.as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(Name::from).collect()
        };
        let between = match (value.get("halves"), value.get("node")) {
            (Some(halves), _) => {
                Between::Halves(halves.as_array().into_iter().flatten().map(names).collect())
            }
            (None, Some(node)) => Between::Alone(node.as_str().unwrap_or_default().into()),
            (None, None) => {
                let ends = ["nodes", "from", "to"].map(|field| value.get(field).map(names));
                Between::These(ends.into_iter().flatten().flatten().collect())
            }
        };
        remember(&mut self.cuts, Cut { fault, between });
    }

    /// All is healed.
    fn calm(&mut self, now: Nanos) {
        let cuts = self.cuts.iter_mut().map(|cut| &mut cut.fault);
        for fault in self.by_node.values_mut().flatten().chain(cuts) {
            over(fault, now);
        }
    }
}

fn over(fault: &mut Fault, now: Nanos) {
    fault.until = Some(fault.until.map_or(now, |until| until.min(now)));
}

fn remember<T>(faults: &mut VecDeque<T>, fault: T) {
    if faults.len() == REMEMBERED {
        faults.pop_front();
    }
    faults.push_back(fault);
}

//! What befalls processes: the nemesis's records, from where a fault strikes to where it
//! ends. An end names its fault, and among several of one name the one that is due first.

use std::collections::BTreeMap;

use deposed_checkers::history::{Event, Header, Name, Nanos, RatePpb, TRUE_RATE};
use serde_json::Value;

use super::{Condition, Span};
use crate::report::words::nodes;

/// See the module.
pub(super) struct Conditions {
    /// In the order in which they struck.
    open: Vec<Open>,
    inborn: BTreeMap<Name, RatePpb>,
    /// The nodes whose clocks have changed their rate: to what, when, by which event.
    rates: BTreeMap<Name, (RatePpb, Nanos, u64)>,
    /// By node, so that the clocks that never changed are drawn at the end.
    spans: Vec<(Name, Nanos, Nanos, Condition, Option<u64>)>,
}

/// A fault in force.
struct Open {
    fault: Name,
    nodes: Vec<Name>,
    what: Condition,
    from: Nanos,
    due: Nanos,
    event: u64,
}

impl Conditions {
    pub(super) fn new(header: &Header) -> Self {
        Self {
            open: Vec::new(),
            inborn: header.clocks.clone(),
            rates: BTreeMap::new(),
            spans: Vec::new(),
        }
    }

    /// At what rate a node's clock runs now.
    pub(super) fn rate_of(&self, node: &Name) -> RatePpb {
        let changed = self.rates.get(node).map(|(rate, ..)| *rate);
        changed.unwrap_or_else(|| self.own_rate(node))
    }

    fn own_rate(&self, node: &Name) -> RatePpb {
        self.inborn.get(node).copied().unwrap_or(TRUE_RATE)
    }

    /// Looks at a record of the nemesis; `lane` makes sure that a named node has one.
    pub(super) fn see(
        &mut self,
        event: &Event,
        name: &Name,
        value: &Value,
        lane: &mut dyn FnMut(&Name) -> usize,
    ) {
        let named = |field: &str| nodes(&value[field]).into_iter().map(Name::from);
        let (now, of) = (event.time, value["fault"].as_str());
        let (what, nodes): (Condition, Vec<Name>) = match name.as_str() {
            "pause" | "paused" => (Condition::Paused, named("node").collect()),
            "suspend" => (Condition::Suspended, named("node").collect()),
            "starve" => (Condition::Starved, named("node").collect()),
            "crash" | "power-loss" | "restore" => {
                for node in named("node") {
                    let stopped = |open: &Open| {
                        matches!(open.what, Condition::Paused | Condition::Suspended)
                            && open.nodes.contains(&node)
                    };
                    while self.end(now, stopped) {}
                }
                (Condition::Down, named("node").collect())
            }
            "isolate" => (Condition::CutOff, named("node").collect()),
            "partition" => (Condition::CutOff, named("nodes").collect()),
            "partition-oneway" => (
                Condition::CutOff,
                named("from").chain(named("to")).collect(),
            ),
            "halves" | "bridge" => {
                let halves = value["halves"].as_array().into_iter().flatten();
                let halves = halves.flat_map(crate::report::words::nodes);
                (Condition::CutOff, halves.map(Name::from).collect())
            }
            "hold" | "latency" | "flaky" => (Condition::BadLinks, named("nodes").collect()),
            "slow-sync" | "full-disk" => (Condition::BadDisk, named("node").collect()),
            "rate" => {
                if let (Some(node), Some(rate)) = (named("node").next(), value["rate_ppb"].as_u64())
                {
                    lane(&node);
                    self.tick_at(node, rate, now, event.index);
                }
                return;
            }
            "restart" => {
                let node = named("node").next();
                self.end(now, |open| {
                    open.what == Condition::Down
                        && node.iter().all(|node| open.nodes.contains(node))
                });
                return;
            }
            "resume" => {
                let (fault, node) = (of.unwrap_or("pause"), named("node").next());
                self.end(now, |open| {
                    let stopped = match fault {
                        "suspend" => Condition::Suspended,
                        _ => Condition::Paused,
                    };
                    open.what == stopped && node.iter().all(|node| open.nodes.contains(node))
                });
                return;
            }
            "heal" => {
                let healed: Vec<Name> = named("nodes").collect();
                self.end(now, |open| {
                    let concerns = open.nodes.iter().all(|node| healed.contains(node));
                    Some(open.fault.as_str()) == of && (concerns || healed.is_empty())
                });
                return;
            }
            _ => return,
        };
        if nodes.is_empty() {
            return;
        }
        for node in &nodes {
            lane(node);
        }
        let length = value["for"].as_u64().unwrap_or(Nanos::MAX);
        self.open.push(Open {
            fault: name.clone(),
            nodes,
            what,
            from: now,
            due: now.saturating_add(length),
            event: event.index,
        });
    }

    fn tick_at(&mut self, node: Name, rate: RatePpb, now: Nanos, event: u64) {
        let before = self.rates.insert(node.clone(), (rate, now, event));
        let own = self.own_rate(&node);
        match before {
            Some((rate, from, event)) => self.ticked(node, rate, (from, now), Some(event)),
            // The start of the history, which only its end tells, is put in there.
            None => self.ticked(node, own, (0, now), None),
        }
    }

    fn ticked(&mut self, node: Name, rate: RatePpb, span: (Nanos, Nanos), event: Option<u64>) {
        if rate != TRUE_RATE {
            let inborn = rate == self.own_rate(&node);
            let what = Condition::OffRate { rate, inborn };
            self.spans.push((node, span.0, span.1, what, event));
        }
    }

    /// Ends the fault that is due first among those that fit; whether one did.
    fn end(&mut self, now: Nanos, fits: impl Fn(&Open) -> bool) -> bool {
        let fitting = self.open.iter().enumerate().filter(|(_, open)| fits(open));
        // The first of several that are due at once, as the world has it.
        let Some((place, _)) = fitting.min_by_key(|(_, open)| open.due) else {
            return false;
        };
        let open = self.open.remove(place);
        self.over(open, now);
        true
    }

    fn over(&mut self, open: Open, now: Nanos) {
        for node in open.nodes {
            self.spans
                .push((node, open.from, now, open.what.clone(), Some(open.event)));
        }
    }

    pub(super) fn finish(
        mut self,
        start: Nanos,
        end: Nanos,
        lane: &mut dyn FnMut(&Name) -> usize,
    ) -> Vec<Span> {
        for open in std::mem::take(&mut self.open) {
            self.over(open, end);
        }
        let changed = std::mem::take(&mut self.rates);
        for (node, (rate, from, event)) in &changed {
            self.ticked(node.clone(), *rate, (*from, end), Some(*event));
        }
        for (node, rate) in std::mem::take(&mut self.inborn) {
            if rate != TRUE_RATE && !changed.contains_key(&node) {
                let what = Condition::OffRate { rate, inborn: true };
                self.spans.push((node, start, end, what, None));
            }
        }
        let spans = self.spans.into_iter();
        let spans = spans.map(|(node, from, to, what, event)| Span {
            lane: lane(&node),
            from: from.max(start),
            to,
            what,
            event,
        });
        spans.collect()
    }
}

//! A chart as the page carries it: column by column, gzipped, in base64. What does not fit
//! is thinned evenly, calls before what changes who leads, and never what shows a violation.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use deposed_checkers::{
    history::{Kind, Nanos},
    verdict::{Check, Verdict},
};
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;

use super::{Told, drawn};
use crate::{
    report::{text::clipped, words},
    timeline::{Chart, Condition, Role, Span, selection::Selection},
};

/// What is packed.
pub(super) struct Packed<'a> {
    pub(super) chart: &'a Chart,
    pub(super) told: &'a [Told],
    pub(super) header: &'a str,
    pub(super) selection: &'a Selection,
}

/// How much is left out: one call, and one change of who leads or fault, in so many stays;
/// and so many characters of an event's JSON.
#[derive(Clone, Copy)]
struct Thinning {
    calls: usize,
    changes: usize,
    json: usize,
}

impl Thinning {
    fn leaves_events_out(self) -> bool {
        self.calls > 1 || self.changes > 1
    }
}

/// The packed block, and what is not in it.
pub(super) struct Block {
    pub(super) data: String,
    /// How many events are left out.
    pub(super) events_left_out: usize,
    pub(super) lanes_left_out: usize,
    /// Of how many events the JSON is not all there.
    pub(super) cut_off: usize,
    pub(super) header_left_out: bool,
}

/// The longest name and the longest sentence that are drawn, in characters.
const NAME_LIMIT: usize = 120;
const SENTENCE_LIMIT: usize = 2_000;
/// What is kept of an event's JSON, in characters, where not all of it fits; and at the
/// very least, where only what shows a violation is left and is still too much.
const JSON_LIMIT: usize = 16_384;
const LEAST_JSON: usize = 400;
/// So many lanes stay, whether anything is left of them or not.
const LANES: usize = 200;

/// What stands in the place of a header that is left out.
const NO_HEADER: &str = "\"left out, to keep the page small: it is the history's first line\"";

impl Packed<'_> {
    /// The block in at most so many bytes, if that can be done at all. A header that takes
    /// more than half of them alone is left out: the events are what is drawn.
    pub(super) fn block(self, limit: usize) -> Block {
        let header_left_out = packed(self.header).len() > limit / 2;
        let header = match header_left_out {
            true => NO_HEADER,
            false => self.header,
        };
        Block {
            header_left_out,
            ..Packed { header, ..self }.events(limit)
        }
    }

    /// The block with as many of the events as fit.
    fn events(&self, limit: usize) -> Block {
        let bytes: usize = self.told.iter().map(|told| told.json.len()).sum();
        let mut thinning = Thinning {
            calls: 1,
            changes: 1,
            // What is so much will not pack into it, and takes long to try.
            json: if bytes / 20 > limit {
                JSON_LIMIT
            } else {
                usize::MAX
            },
        };
        let longest = self.told.iter().map(|told| told.json.len()).max();
        loop {
            let kept = self.kept(thinning);
            let document = self.document(&kept, thinning);
            let lanes = document.lanes.len();
            let data = packed(&document);
            let spent = thinning.changes > 2 * self.told.len().max(1);
            if data.len() <= limit || (spent && thinning.json == LEAST_JSON) {
                let shown = |place: &&usize| self.told[**place].shown;
                let all = self.told.iter().filter(|told| told.shown).count();
                let json = |place: &&usize| {
                    let json = &self.told[**place].json;
                    matches!(clipped(json, thinning.json), Cow::Owned(_))
                };
                return Block {
                    data,
                    events_left_out: all - kept.iter().filter(shown).count(),
                    lanes_left_out: self.chart.lanes.len() - lanes,
                    cut_off: kept.iter().filter(json).count(),
                    header_left_out: false,
                };
            }
            // Straight to about what fits: packing is what takes time.
            let factor = (data.len() / limit.max(1)).max(1) + 1;
            match thinning {
                // A few huge events are no reason to leave a thousand out.
                Thinning { json, .. } if json > JSON_LIMIT && longest > Some(JSON_LIMIT) => {
                    thinning.json = JSON_LIMIT;
                }
                _ if spent => thinning.json = LEAST_JSON,
                Thinning { calls, .. } if calls > self.told.len() => thinning.changes *= factor,
                _ => thinning.calls *= factor,
            }
        }
    }

    fn evidence(&self) -> BTreeSet<usize> {
        let violated = self.chart.verdicts.violated();
        let indices = violated.flat_map(|(_, evidence)| evidence.events.iter().copied());
        indices
            .filter_map(|index| self.chart.place(index))
            .collect()
    }

    /// The places of the events that stay.
    fn kept(&self, thinning: Thinning) -> Vec<usize> {
        let evidence = self.evidence();
        let chart = self.chart;
        let stays = |place: &usize| {
            let point = &chart.points[*place];
            // A call stays or goes as a whole.
            let begun = point.mate.map_or(*place, |mate| mate.min(*place));
            let change = chart.lanes[point.lane].role == Role::Nemesis || {
                let changes = [
                    "lead",
                    "follow",
                    "granted",
                    "released",
                    "recovered",
                    "restored",
                ];
                changes.contains(&chart.names[point.f].as_str())
            };
            let one_in = if change {
                thinning.changes
            } else {
                thinning.calls
            };
            evidence.contains(place) || (self.told[*place].shown && begun.is_multiple_of(one_in))
        };
        (0..chart.points.len()).filter(stays).collect()
    }

    fn document(&self, kept: &[usize], thinning: Thinning) -> Document<'_> {
        let chart = self.chart;
        let start = chart.start;
        let place_of: BTreeMap<usize, usize> = kept
            .iter()
            .enumerate()
            .map(|(at, place)| (*place, at))
            .collect();
        let points = || kept.iter().map(|place| &chart.points[*place]);
        let at = |index: u64| {
            chart
                .place(index)
                .and_then(|place| place_of.get(&place))
                .copied()
        };
        let told = || kept.iter().map(|place| &self.told[*place]);
        let said: Vec<&str> = told().map(|told| &*told.said).collect();
        let json: Vec<Cow<'_, str>> = told()
            .map(|told| clipped(&told.json, thinning.json))
            .collect();
        let mut conditions: Vec<&'static str> = Vec::new();
        let spans = chart.spans.iter().filter(|span| {
            thinning.changes == 1 || span.event.is_some_and(|event| at(event).is_some())
        });
        let spans: Vec<&Span> = spans.collect();
        let lanes = self.lanes(kept, &spans, thinning);
        let names = places(points().map(|point| point.f));
        let place = |of: &BTreeMap<usize, usize>, place: usize| of.get(&place).copied();
        let spans: Vec<PackedSpan<'_>> = spans
            .into_iter()
            .filter_map(|span| {
                let word = span.what.word();
                let what = conditions.iter().position(|known| *known == word);
                let what = what.unwrap_or_else(|| {
                    conditions.push(word);
                    conditions.len() - 1
                });
                let event = span.event.and_then(at).map_or(-1, |at| at as i64);
                let (label, lease) = self.label(span);
                let (from, to) = (span.from - start, span.to.saturating_sub(start));
                let lane = place(&lanes, span.lane)?;
                Some(PackedSpan(lane, what, from, to, label, event, lease))
            })
            .collect();
        let lane = |place: &usize| {
            let lane = &chart.lanes[*place];
            let shown = self.selection.takes_process(&lane.name);
            (drawn(&lane.name, NAME_LIMIT), lane.role.word(), shown)
        };
        let window = self.selection.window(chart);
        Document {
            start,
            from: window.0.saturating_sub(start),
            to: window.1.saturating_sub(start),
            lanes: lanes.keys().map(lane).collect(),
            names: names
                .keys()
                .map(|name| drawn(&chart.names[*name], NAME_LIMIT))
                .collect(),
            points: Points {
                index: steps(points().map(|point| point.index)),
                time: steps(points().map(|point| point.time - start)),
                lane: points()
                    .filter_map(|point| place(&lanes, point.lane))
                    .collect(),
                f: points()
                    .filter_map(|point| place(&names, point.f))
                    .collect(),
                kind: points().map(|point| place_of_kind(point.kind)).collect(),
                mate: kept
                    .iter()
                    .enumerate()
                    .map(|(at, place)| {
                        let mate = chart.points[*place].mate.filter(|mate| mate > place);
                        let mate = mate.and_then(|mate| place_of.get(&mate));
                        mate.map_or(0, |mate| mate - at)
                    })
                    .collect(),
            },
            said: said.join("\n"),
            json: json.join("\n"),
            conditions,
            spans,
            checks: self.checks(&at),
            header: self.header,
        }
    }

    /// The lanes that are drawn: where each is, by its place in the chart.
    fn lanes(&self, kept: &[usize], spans: &[&Span], thinning: Thinning) -> BTreeMap<usize, usize> {
        let all = self.chart.lanes.len();
        if !thinning.leaves_events_out() || all <= LANES {
            return places(0..all);
        }
        let points = kept.iter().map(|place| self.chart.points[*place].lane);
        places(points.chain(spans.iter().map(|span| span.lane)))
    }

    /// What a span is called, and the lease it is of.
    fn label<'s>(&self, span: &'s Span) -> (String, Cow<'s, str>) {
        let none = Cow::Borrowed("");
        match &span.what {
            Condition::Leads { lease, token } => (
                token.map(|token| token.to_string()).unwrap_or_default(),
                clipped(lease, NAME_LIMIT),
            ),
            Condition::LockDelay { lease } => {
                let lease = clipped(lease, NAME_LIMIT);
                (format!("lock-delay of {lease}"), lease)
            }
            Condition::OffRate { rate, .. } => (format!("clock {}", words::rate(*rate)), none),
            // In the words of the event that began it: which fault, of whom, for how long.
            _ => {
                let place = span.event.and_then(|event| self.chart.place(event));
                let said = place.map(|place| self.told[place].said.clone());
                (said.unwrap_or_else(|| span.what.word().to_owned()), none)
            }
        }
    }

    fn checks(&self, at: &dyn Fn(u64) -> Option<usize>) -> Vec<PackedCheck> {
        let verdicts = self.chart.verdicts.0.iter();
        let checks = verdicts.map(|(check, verdict)| {
            let (evidence, why) = match verdict {
                Verdict::Violated(evidence) => (Some(evidence), String::new()),
                Verdict::NotClaimed(why) | Verdict::Unknown(why) => {
                    (None, drawn(why, SENTENCE_LIMIT))
                }
                Verdict::Valid => (None, String::new()),
            };
            PackedCheck {
                check: *check,
                verdict: verdict.word(),
                why,
                sentence: evidence.map(|evidence| {
                    let expected = match evidence.expected.as_str() {
                        "" => String::new(),
                        expected => format!(" (expected: {expected})"),
                    };
                    drawn(&format!("{}{expected}", evidence.sentence), SENTENCE_LIMIT)
                }),
                reckoning: evidence
                    .map(|evidence| {
                        evidence
                            .reckoning
                            .iter()
                            .map(|line| drawn(line, SENTENCE_LIMIT))
                            .collect()
                    })
                    .unwrap_or_default(),
                culprit: evidence
                    .and_then(|evidence| at(evidence.culprit))
                    .map_or(-1, |at| at as i64),
                evidence: evidence
                    .map(|evidence| {
                        evidence
                            .events
                            .iter()
                            .filter_map(|index| at(*index))
                            .collect()
                    })
                    .unwrap_or_default(),
            }
        });
        checks.collect()
    }
}

fn packed(document: &(impl Serialize + ?Sized)) -> String {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory, of what always has a JSON form, cannot fail.
    let packed = serde_json::to_writer(&mut packer, document)
        .map_err(std::io::Error::from)
        .and_then(|()| packer.flush())
        .and_then(|()| packer.finish());
    BASE64_STANDARD.encode(packed.unwrap_or_default())
}

/// Where each of some things is among those that there are, in their order.
fn places(of: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    let there: BTreeSet<usize> = of.collect();
    there.into_iter().zip(0..).collect()
}

/// Rising numbers as what each adds to the one before: they pack well.
fn steps(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut before = 0;
    let step = |number: u64| number - std::mem::replace(&mut before, number);
    numbers.map(step).collect()
}

/// The page's order of types.
fn place_of_kind(kind: Kind) -> u8 {
    match kind {
        Kind::Invoke => 0,
        Kind::Ok => 1,
        Kind::Fail => 2,
        Kind::Info => 3,
    }
}

#[derive(Serialize)]
struct Document<'a> {
    /// True time of the first event; every other time counts from it.
    start: Nanos,
    from: Nanos,
    to: Nanos,
    /// Name, role, whether it is shown at first.
    lanes: Vec<(String, &'static str, bool)>,
    names: Vec<String>,
    points: Points,
    said: String,
    json: String,
    conditions: Vec<&'static str>,
    spans: Vec<PackedSpan<'a>>,
    checks: Vec<PackedCheck>,
    header: &'a str,
}

#[derive(Serialize)]
struct Points {
    index: Vec<u64>,
    time: Vec<Nanos>,
    lane: Vec<usize>,
    f: Vec<usize>,
    kind: Vec<u8>,
    /// How many events further on a call ends; 0: this is no beginning.
    mate: Vec<usize>,
}

/// Lane, condition, beginning, end, label, the event that began it, lease.
#[derive(Serialize)]
struct PackedSpan<'a>(usize, usize, Nanos, Nanos, String, i64, Cow<'a, str>);

#[derive(Serialize)]
struct PackedCheck {
    check: Check,
    verdict: &'static str,
    why: String,
    sentence: Option<String>,
    /// The clocks' arithmetic, where they decide it.
    reckoning: Vec<String>,
    culprit: i64,
    evidence: Vec<usize>,
}

//! A chart as the page carries it: column by column, gzipped, in base64. What does not fit
//! is thinned evenly, calls before what changes who leads, and never what shows a violation.

use std::{
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

use super::Told;
use crate::{
    report::{text::printable, words},
    timeline::{Chart, Condition, Role, Span, selection::Selection},
};

/// What is packed.
pub(super) struct Packed<'a> {
    pub(super) chart: &'a Chart,
    pub(super) told: &'a [Told],
    pub(super) header: &'a str,
    pub(super) selection: &'a Selection,
}

/// How much is left out: one call, and one change of who leads or fault, in so many stays.
#[derive(Clone, Copy)]
struct Thinning {
    calls: usize,
    changes: usize,
}

/// The packed block, and what is not in it.
pub(super) struct Block {
    pub(super) data: String,
    /// How many events are left out.
    pub(super) events_left_out: usize,
    pub(super) header_left_out: bool,
}

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
        let (data, events_left_out) = Packed { header, ..self }.data(limit);
        Block {
            data,
            events_left_out,
            header_left_out,
        }
    }

    /// The block, and how many events are left out of it.
    fn data(&self, limit: usize) -> (String, usize) {
        let mut thinning = Thinning {
            calls: 1,
            changes: 1,
        };
        loop {
            let kept = self.kept(thinning);
            let data = self.encoded(&kept, thinning);
            let all = self.told.iter().filter(|told| told.shown).count();
            let shown = kept.iter().filter(|place| self.told[**place].shown).count();
            let spent = thinning.changes > 2 * self.told.len().max(1);
            if data.len() <= limit || spent {
                return (data, all - shown);
            }
            // Straight to about what fits: packing is what takes time.
            let factor = (data.len() / limit.max(1)).max(1) + 1;
            match thinning.calls > self.told.len() {
                true => thinning.changes *= factor,
                false => thinning.calls *= factor,
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

    fn encoded(&self, kept: &[usize], thinning: Thinning) -> String {
        packed(&self.document(kept, thinning))
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
        let told = |text: fn(&Told) -> &str| {
            let lines: Vec<&str> = kept.iter().map(|place| text(&self.told[*place])).collect();
            lines.join("\n")
        };
        let mut conditions: Vec<&'static str> = Vec::new();
        let spans = chart.spans.iter().filter(|span| {
            thinning.changes == 1 || span.event.is_some_and(|event| at(event).is_some())
        });
        let spans: Vec<PackedSpan<'_>> = spans
            .map(|span| {
                let word = span.what.word();
                let what = conditions.iter().position(|known| *known == word);
                let what = what.unwrap_or_else(|| {
                    conditions.push(word);
                    conditions.len() - 1
                });
                let event = span.event.and_then(at).map_or(-1, |at| at as i64);
                let (label, lease) = self.label(span);
                let (from, to) = (span.from - start, span.to.saturating_sub(start));
                PackedSpan(span.lane, what, from, to, label, event, lease)
            })
            .collect();
        let lanes = chart.lanes.iter().map(|lane| {
            let shown = self.selection.takes_process(&lane.name);
            (&*lane.name, lane.role.word(), shown)
        });
        let window = self.selection.window(chart);
        Document {
            start,
            from: window.0.saturating_sub(start),
            to: window.1.saturating_sub(start),
            lanes: lanes.collect(),
            names: chart.names.iter().map(|name| &**name).collect(),
            points: Points {
                index: steps(points().map(|point| point.index)),
                time: steps(points().map(|point| point.time - start)),
                lane: points().map(|point| point.lane).collect(),
                f: points().map(|point| point.f).collect(),
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
            said: told(|told| &told.said),
            json: told(|told| &told.json),
            conditions,
            spans,
            checks: self.checks(&at),
            header: self.header,
        }
    }

    /// What a span is called, and the lease it is of.
    fn label<'s>(&self, span: &'s Span) -> (String, &'s str) {
        match &span.what {
            Condition::Leads { lease, token } => (
                token.map(|token| token.to_string()).unwrap_or_default(),
                lease,
            ),
            Condition::LockDelay { lease } => (format!("lock-delay of {lease}"), lease),
            Condition::OffRate { rate, .. } => (format!("clock {}", words::rate(*rate)), ""),
            // In the words of the event that began it: which fault, of whom, for how long.
            _ => {
                let place = span.event.and_then(|event| self.chart.place(event));
                let said = place.map(|place| self.told[place].said.clone());
                (said.unwrap_or_else(|| span.what.word().to_owned()), "")
            }
        }
    }

    fn checks(&self, at: &dyn Fn(u64) -> Option<usize>) -> Vec<PackedCheck> {
        let verdicts = self.chart.verdicts.0.iter();
        let checks = verdicts.map(|(check, verdict)| {
            let (evidence, why) = match verdict {
                Verdict::Violated(evidence) => (Some(evidence), String::new()),
                Verdict::NotClaimed(why) | Verdict::Unknown(why) => (None, printable(why)),
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
                    printable(&format!("{}{expected}", evidence.sentence))
                }),
                reckoning: evidence
                    .map(|evidence| {
                        evidence
                            .reckoning
                            .iter()
                            .map(|line| printable(line))
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
    lanes: Vec<(&'a str, &'static str, bool)>,
    names: Vec<&'a str>,
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
struct PackedSpan<'a>(usize, usize, Nanos, Nanos, String, i64, &'a str);

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

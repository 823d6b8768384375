//! From one completion to the next, few configurations at a time where few are enough.
//!
//! Where those come to an end, that proves nothing. Then two things are tried, each with
//! more and more:
//!
//! - a *window* before the end, by itself: whatever was there before it, whatever began
//!   before it may have taken effect already, and what was never answered may take effect
//!   any number of times. If even that has no order the whole has none, and it ends with
//!   the same completion, as all before that one have an order;
//! - a *way back* to a place before, to go on from there with more configurations until the
//!   end is well behind.
//!
//! The last way back is to the beginning, with all configurations, so the answer is exact;
//! but mostly a window or a short way back settles it, in time that does not depend on the
//! length of the history.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::configs::{Config, Configs};
use super::super::states::Id;
use super::super::witness::cut;
use super::super::{NEVER, Operation};
use super::{ALL, At, Found, NoOrder, Search, TooMuch, Width};

/// A place to go back to.
struct Place {
    at: At,
    configs: Vec<Config>,
}

/// Places, the denser the closer.
#[derive(Default)]
struct Trail(Vec<Place>);

impl Trail {
    fn keeps(&mut self, at: &At, configs: &Configs, apart: usize) {
        let here = at.ended / apart;
        self.0.retain(|place| {
            let there = place.at.ended / apart;
            there.is_multiple_of(((here - there) / 4).next_power_of_two().max(1))
        });
        self.0.push(Place {
            at: at.clone(),
            configs: configs.each().collect(),
        });
    }

    /// Back to the last place before this one, or the first.
    fn back(&mut self, before: usize) -> Option<(At, Configs)> {
        let later = self.0.partition_point(|place| place.at.ended <= before);
        self.0.truncate(later.max(1));
        let Place { at, configs } = self.0.pop()?;
        let mut back = Configs::default();
        configs.into_iter().for_each(|config| back.add(config));
        Some((at, back))
    }
}

impl Search<'_> {
    pub(super) fn follows(&mut self, starts: &[Id], until: &AtomicU64, width: Width) -> Found {
        let Width { few, apart } = width;
        let mut configs = Configs::default();
        for start in starts {
            configs.add(Config::start(*start));
        }
        self.width = few;
        let mut trail = Trail::default();
        let (mut tries, mut furthest) = (0, 0);
        while let Some(op) = self.completions.get(self.at.ended).copied() {
            let now = self.operations[op].complete;
            if now > until.load(Ordering::Relaxed) {
                break;
            }
            if tries > 0 && self.at.ended > furthest + apart {
                (tries, self.width, self.patience) = (0, few, 0);
            }
            if few != usize::MAX && self.at.ended.is_multiple_of(apart) {
                trail.keeps(&self.at, &configs, apart);
            }
            self.begins_before(now);
            let Some(slot) = self.at.pending.slot(op) else {
                self.at.ended += 1;
                continue;
            };
            let mut next = match self.ends_one(&configs, (slot, op)) {
                Ok(next) => next,
                Err(limit) => {
                    return Found::TooMuch(limit, self.end_of(furthest.max(self.at.ended)));
                }
            };
            if next.is_empty() {
                if self.strange == Some(op) && self.at.narrow {
                    let could = Vec::new();
                    return Found::NoOrder(NoOrder { op, could });
                }
                if !self.at.narrow {
                    return Found::NoOrder(self.culprit(&configs, (slot, op)));
                }
                furthest = furthest.max(self.at.ended);
                if tries > 0 && furthest == self.at.ended {
                    match self.window((apart << (2 * tries).min(40)).div_ceil(8), op) {
                        Ok(None) => {}
                        Ok(Some(no_order)) => return Found::NoOrder(no_order),
                        Err(limit) => return Found::TooMuch(limit, now),
                    }
                }
                tries += 1;
                let back = apart << (2 * tries).min(40);
                let Some(place) = trail.back(self.at.ended.saturating_sub(back)) else {
                    return Found::TooMuch(TooMuch::Bytes, now);
                };
                (self.at, configs) = place;
                // What may come depends on where the search is.
                self.sources.clear();
                self.patience = tries;
                self.width = match tries {
                    ..8 => few.saturating_mul(1 << (2 * tries)),
                    _ => usize::MAX,
                };
                continue;
            }
            self.at.narrow |= next.narrows(self.width);
            configs = next;
            self.ends(op);
            self.at.ended += 1;
        }
        Found::Order
    }

    fn end_of(&self, place: usize) -> u64 {
        let op = self.completions.get(place);
        op.map_or(NEVER, |op| self.operations[*op].complete)
    }

    /// Whether so many completions up to this one have no order by themselves.
    fn window(&mut self, length: usize, op: usize) -> Result<Option<NoOrder>, TooMuch> {
        let target = self.operations[op];
        let until = target.complete;
        // The operation itself has all of its time in the window.
        let before = (self.completions)
            .partition_point(|other| self.operations[*other].complete < target.invoke);
        let Some(first) = (self.at.ended.checked_sub(length))
            .zip(before.checked_sub(1))
            .filter(|_| !self.appends)
            .map(|(first, before)| first.min(before))
        else {
            return Ok(None);
        };
        let all = self.operations.iter().copied().enumerate();
        let all: Vec<(usize, Operation)> = all.filter(|(_, other)| other.invoke < until).collect();
        let (part, starts) = cut(&all, self.end_of(first), until);
        let operations: Vec<Operation> = part.iter().map(|(_, operation)| *operation).collect();
        let mut within = Search::of(&operations, self.states, self.limit, self.steps);
        within.endless = true;
        let found = within.follows(&starts, &AtomicU64::new(until), ALL);
        Ok(match found {
            Found::NoOrder(NoOrder { op, could }) => Some(NoOrder {
                op: part[op].0,
                could,
            }),
            Found::Order => None,
            Found::TooMuch(limit, _) => return Err(limit),
        })
    }
}

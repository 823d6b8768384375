//! What registers come to once nothing more will happen: young keys are judged for the last
//! time, and those that must be are searched.

use std::sync::atomic::{AtomicBool, AtomicU64};

use super::key::{Key, Replayed, Way};
use super::searched::Searched;
use super::{Registers, object};
use crate::linearizable::Limit;
use crate::linearizable::search::{Found, TooMuch};
use crate::model::calls::Calls;
use crate::model::{Model, keys};
use crate::verdict::{Evidence, Verdict};

impl Registers {
    pub(super) fn decides(&mut self, calls: &Calls, stop: &AtomicBool) -> Verdict {
        if let Some(evidence) = self.found.take() {
            return Verdict::Violated(evidence);
        }
        if let Some(why) = self.unknown.take() {
            return Verdict::Unknown(why);
        }
        let mut at_end = self.pass.ends().map(|(_, evidence)| evidence);
        let young = self.keys.iter().enumerate();
        for (at, key) in young.filter(|(_, key)| matches!(key.way, Way::Young)) {
            let name = || object(calls.key(at)).into();
            let sooner = |found: &Evidence| {
                at_end
                    .as_ref()
                    .is_none_or(|other: &Evidence| found.culprit < other.culprit)
            };
            match key.judges(name, &self.names, true) {
                Replayed::Wrong(evidence) if sooner(&evidence) => at_end = Some(evidence),
                _ => {}
            }
        }
        let numbered = self.keys.iter().enumerate();
        let to_search: Vec<(usize, &Key)> = numbered.filter(|(_, key)| key.is_searched()).collect();
        let count = to_search.len();
        let at_once = self.budget.jobs.clamp(1, count.max(1)) as u64;
        let held = self.bytes() + calls.bytes();
        let limit = Limit {
            steps: self.budget.steps,
            bytes: self.budget.bytes.saturating_sub(held) / at_once,
            stop,
        };
        let full = self.full;
        let kv = self.model == Model::Kv;
        // Where the first one goes wrong does not depend on which thread is there first.
        let until = AtomicU64::new(u64::MAX);
        let not_ordered: Vec<(usize, Found)> = match full {
            Some(_) => Vec::new(),
            None => keys::in_order(to_search, self.budget.jobs, |(at, key)| {
                let mut searched = Searched::of(at, &key.kept, kv);
                searched.search(limit, &until);
                (searched.found != Found::Order).then_some((at, searched.found))
            }),
        };
        let wrong = not_ordered.iter().filter_map(|(at, found)| {
            let Found::NoOrder(no_order) = found else {
                return None;
            };
            let searched = Searched::of(*at, &self.keys[*at].kept, kv);
            Some((searched.ends(no_order), *at, no_order))
        });
        let first = wrong.min_by_key(|(culprit, at, _)| (*culprit, *at));
        let evidence = match (at_end, first) {
            (Some(evidence), Some((culprit, ..))) if evidence.culprit < culprit => Some(evidence),
            (evidence, None) => evidence,
            (_, Some((_, at, no_order))) => {
                let searched = Searched::of(at, &self.keys[at].kept, kv);
                Some(searched.evidence(no_order, limit, calls))
            }
        };
        if let Some(evidence) = evidence {
            return Verdict::Violated(evidence);
        }
        if let Some(full) = full.filter(|_| count > 0) {
            return Verdict::Unknown(format!(
                "the history does not fit into memory from index {full} on, and {count} of its \
                 keys must be kept, as a value is written again, found by cas or appended to: {}",
                self.budget.more_memory()
            ));
        }
        if let Some((at, Found::TooMuch(what, before))) = not_ordered.first() {
            let others = (count - 1, not_ordered.len() - 1);
            let name = object(calls.key(*at));
            return Verdict::Unknown(self.undecided(&name, (*what, *before), others));
        }
        if !self.any {
            let why = "no read was answered in this history".to_owned();
            return Verdict::NotClaimed(why);
        }
        Verdict::Valid
    }

    /// What is said of a key whose search came to its limit; of the other keys searched, so
    /// many, some are undecided, too.
    fn undecided(
        &self,
        name: &str,
        (what, before): (TooMuch, u64),
        (others, more): (usize, usize),
    ) -> String {
        let ended = match what {
            TooMuch::Steps => format!(
                "{} steps were not enough: give more (--max-steps)",
                self.budget.steps
            ),
            TooMuch::Bytes => format!(
                "memory was not enough: give more than {} bytes (--max-memory)",
                self.budget.bytes
            ),
            TooMuch::Time => "the time was over".to_owned(),
        };
        let others = match (others, more) {
            (0, _) => String::new(),
            (1, 0) => ", and the other key searched has one".to_owned(),
            (1, _) => ", and the other key searched is undecided, too".to_owned(),
            (others, 0) => format!(", and the {others} other keys searched have one"),
            (others, more) => format!(
                ", and of the {others} other keys searched {} have one and {more} are undecided, too",
                others - more
            ),
        };
        format!("the operations of {name} have an order up to index {before}{others}; {ended}")
    }
}

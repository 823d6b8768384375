//! `belief-safety`: at most one client believes at any instant of true time.
//!
//! A belief is the half-open interval from a `lead` to its `until`, to the `follow`
//! or the crash that ends it, or to the next `lead` of the same holder and token,
//! whichever comes first. Two processes that believe at one instant convict, whatever
//! holder they call themselves; a process holds one belief a lease, its newest.
//!
//! Excused (the check then claims nothing) is an overlap beyond the drift bound:
//! where, from the send behind the deposed belief (the one with the lower token) to
//! the overlap, the client's clock ran less than 1 - `max_drift` of what the store's
//! ran. Without `lease` in the header the bound is 0: any slower clock excuses.
//!
//! Where no `lead` or `follow` was recorded, what clients could believe is inferred from
//! their calls (`outside.rs`).

mod outside;
mod reckoning;

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::history::{
    Body, Event, Header, Lead, LeaseTiming, Name, Nanos, Observation, TRUE_RATE, Token,
};
use crate::judge::{Checker, Step};
use crate::rates::{Rates, is_crash, nodes};
use crate::units::time;
use crate::verdict::{Evidence, Verdict};
use outside::Outside;
use reckoning::{Promises, reckon};

struct Belief {
    process: Name,
    holder: Name,
    token: Option<Token>,
    until: Option<Nanos>,
    /// The send behind it, or the first thing known of it.
    sent: Nanos,
    sent_is_known: bool,
    /// When this holder began to believe under this token.
    since: Nanos,
    index: u64,
}

impl Belief {
    fn lives_at(&self, now: Nanos) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

pub(crate) struct BeliefSafety {
    max_drift_ppb: u64,
    rates: Rates,
    /// What the store said of each lease.
    promises: BTreeMap<Name, Promises>,
    timing: Option<LeaseTiming>,
    beliefs: BTreeMap<Name, Vec<Belief>>,
    now: Nanos,
    /// The leases of which a belief began at `now`.
    begun: Vec<Name>,
    any: bool,
    excused: Option<String>,
    found: Option<Evidence>,
    outside: Outside,
}

impl BeliefSafety {
    pub fn new(header: &Header) -> Self {
        BeliefSafety {
            max_drift_ppb: header.lease.as_ref().map_or(0, |lease| lease.max_drift_ppb),
            rates: Rates::new(header),
            promises: BTreeMap::new(),
            timing: header.lease.clone(),
            beliefs: BTreeMap::new(),
            now: 0,
            begun: Vec::new(),
            any: false,
            excused: None,
            found: None,
            outside: Outside::new(header),
        }
    }

    fn lead(&mut self, event: &Event, lead: &Lead) {
        self.any = true;
        let beliefs = self.beliefs.entry(lead.lease.clone()).or_default();
        let ours = |belief: &Belief| belief.process == event.process;
        let before = beliefs
            .iter()
            .position(ours)
            .map(|at| beliefs.swap_remove(at));
        let same = |belief: &&Belief| belief.holder == lead.holder && belief.token == lead.token;
        let lives = before
            .as_ref()
            .filter(same)
            .filter(|belief| belief.lives_at(self.now));
        let since = lives.map_or(event.time, |belief| belief.since);
        beliefs.push(Belief {
            process: event.process.clone(),
            holder: lead.holder.clone(),
            token: lead.token,
            until: lead.until,
            sent: lead.sent.unwrap_or(since).min(event.time),
            sent_is_known: lead.sent.is_some(),
            since,
            index: event.index,
        });
        if !self.begun.contains(&lead.lease) {
            self.begun.push(lead.lease.clone());
        }
    }

    fn end(&mut self, lease: Option<&Name>, ends: impl Fn(&Belief) -> bool) {
        let one = lease.map(|lease| self.beliefs.get_mut(lease));
        let (one, all) = match one {
            Some(one) => (one, None),
            None => (None, Some(self.beliefs.values_mut())),
        };
        for beliefs in one.into_iter().chain(all.into_iter().flatten()) {
            beliefs.retain(|belief| !ends(belief));
        }
    }

    /// Looks for overlaps at the instant that is over: nothing can end at it any more.
    /// An overlap begins where a belief does.
    fn settle(&mut self) {
        if !self.any {
            self.outside.settle(self.now, &self.rates);
        }
        for lease in std::mem::take(&mut self.begun) {
            let now = self.now;
            let Some(beliefs) = self.beliefs.get_mut(&lease) else {
                continue;
            };
            beliefs.retain(|belief| belief.lives_at(now));
            beliefs.sort_by_key(|belief| (belief.token, belief.sent, belief.index));
            let promises = self.promises.get(&lease);
            let store = promises.and_then(|promises| promises.store.as_deref());
            let store = store.unwrap_or("store");
            for (at, deposed) in beliefs.iter().enumerate() {
                for other in beliefs[at + 1..]
                    .iter()
                    .filter(|b| b.process != deposed.process)
                {
                    let client = self.rates.elapsed(&deposed.process, deposed.sent, now);
                    let granted = self.rates.elapsed(store, deposed.sent, now);
                    let bound = u128::from(TRUE_RATE.saturating_sub(self.max_drift_ppb));
                    if within(client, granted, bound) {
                        if self.found.is_none() {
                            let timing = self.timing.as_ref();
                            let both = (deposed, other);
                            let reckoning = reckon(both, now, &self.rates, promises, timing);
                            self.found = Some(overlap(&lease, deposed, other).reckoned(reckoning));
                        }
                    } else if self.excused.is_none() {
                        self.excused = Some(format!(
                            "{} and {} both led {lease} from {} on, but the clock of {} had \
                             run slower against {store}'s than the drift bound allows",
                            deposed.holder,
                            other.holder,
                            time(now),
                            deposed.process
                        ));
                    }
                }
            }
        }
    }
}

/// Whether the client's clock ran at least `bound` (parts per billion) of the store's.
fn within(client: u128, store: u128, bound: u128) -> bool {
    client.saturating_mul(u128::from(TRUE_RATE)) >= store.saturating_mul(bound)
}

fn overlap(lease: &Name, deposed: &Belief, other: &Belief) -> Evidence {
    let culprit = deposed.index.max(other.index);
    let (late, early) = if culprit == other.index {
        (other, deposed)
    } else {
        (deposed, other)
    };
    let until = match early.until {
        Some(until) => format!("until {}", time(until)),
        None => "without an end".to_owned(),
    };
    Evidence::new(
        format!(
            "{} believed that it led {lease} while {}, who believed so {until}, still did",
            late.holder, early.holder
        ),
        [early.index],
        culprit,
        format!("no belief while {} has one", early.holder),
    )
}

impl Checker for BeliefSafety {
    fn see(&mut self, step: &Step<'_>) {
        let event = step.event;
        if event.time > self.now {
            self.settle();
            self.now = event.time;
        }
        if !self.any {
            self.outside.see(step, &self.rates);
        }
        match &event.body {
            Body::Observed(Observation::Lead(lead)) => self.lead(event, lead),
            Body::Observed(Observation::Follow(follow)) => {
                self.any = true;
                self.end(Some(&follow.lease), |belief| {
                    belief.process == event.process
                        && (follow.token.is_none() || follow.token == belief.token)
                });
            }
            Body::Observed(Observation::Granted(granted)) => {
                let promises = self.promises.entry(granted.lease.clone()).or_default();
                promises.granted(&event.process, event.time, granted);
            }
            Body::Observed(Observation::Renewed(renewed)) => {
                if let Some(promises) = self.promises.get_mut(&renewed.lease) {
                    promises.renewed(event.time, renewed);
                }
            }
            Body::Observed(Observation::Released(released)) => {
                if let Some(promises) = self.promises.get_mut(&released.lease) {
                    promises.released(event.time, released);
                }
            }
            Body::Nemesis(f, fault) => {
                self.rates.see(event);
                if is_crash(f) {
                    for node in nodes(fault) {
                        self.end(None, |belief| belief.process == node);
                        self.outside.crashed(node);
                    }
                }
            }
            _ => {}
        }
    }

    fn remembered(&self) -> Remembered {
        let beliefs = self.beliefs.values().map(Vec::len).sum();
        self.rates
            .remembered()
            .with(self.outside.remembered())
            .and("leases", self.promises.len() + self.beliefs.len())
            .and("beliefs", beliefs)
    }

    fn found(&self) -> bool {
        self.found.is_some()
    }

    fn verdict(mut self: Box<Self>) -> Verdict {
        self.settle();
        let (found, excused) = match self.any {
            true => (self.found, self.excused),
            false => (self.outside.found.take(), self.outside.excused.take()),
        };
        match (found, excused) {
            (Some(evidence), _) => Verdict::Violated(evidence),
            (None, Some(excuse)) => Verdict::NotClaimed(excuse),
            (None, None) if self.any => Verdict::Valid,
            (None, None) if !self.outside.any => Verdict::NotClaimed(
                "no lead or follow events and no acquire answered ok in this history".to_owned(),
            ),
            (None, None) if !self.outside.is_timed() => Verdict::NotClaimed(
                "no lead or follow events in this history, and no lease timing in the header                  (lease.ttl) to infer beliefs by"
                    .to_owned(),
            ),
            (None, None) => Verdict::Valid,
        }
    }
}

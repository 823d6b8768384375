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
//!
//! The evidence is the send behind the deposed belief, what the two came to believe, the
//! grant to the successor and, where there was one, the release that made room for it; and
//! of the faults those that decide it: what befell the clocks that counted, what kept the
//! deposed leader from renewing, a crash that its belief outlived, what the store came back
//! from. Faults of single messages are not among them.

mod account;
mod outside;
mod overlap;
mod reckoning;

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::faults::Faults;
use crate::history::{
    Answer, Body, Event, Header, Lead, LeaseTiming, Name, Nanos, Observation, RecoveredLease,
    TRUE_RATE, Token,
};
use crate::judge::{Checker, Step};
use crate::rates::{Rates, is_crash, nodes};
use crate::units::time;
use crate::verdict::{Evidence, Verdict};
use account::Account;
use outside::Outside;
use overlap::Overlap;

struct Belief {
    process: Name,
    holder: Name,
    token: Option<Token>,
    until: Option<Nanos>,
    /// The send behind it, or the first thing known of it.
    sent: Nanos,
    sent_is_known: bool,
    /// The call that was sent.
    send: Option<u64>,
    /// When it was first told of what was sent then.
    told: Nanos,
    /// When this holder began to believe under this token.
    since: Nanos,
    index: u64,
}

impl Belief {
    fn lives_at(&self, now: Nanos) -> bool {
        self.until.is_none_or(|until| until > now)
    }

    /// `None`: it has none, or none that is known before a clock that stands still goes on.
    fn end(&self) -> Option<Nanos> {
        self.until.filter(|until| *until < Nanos::MAX)
    }
}

pub(crate) struct BeliefSafety {
    max_drift_ppb: u64,
    rates: Rates,
    faults: Faults,
    /// What was told of each lease.
    accounts: BTreeMap<Name, Account>,
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
            faults: Faults::default(),
            accounts: BTreeMap::new(),
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
        let sent = lead.sent.unwrap_or(since).min(event.time);
        // A clock moved its end.
        let moved = lives.filter(|belief| belief.sent_is_known && lead.sent == Some(belief.sent));
        let told = moved.map_or(event.time, |belief| belief.told);
        let account = self.accounts.get_mut(&lead.lease);
        let send = match moved {
            Some(belief) => belief.send,
            None => account.and_then(|account| account.behind(event, lead)),
        };
        beliefs.push(Belief {
            process: event.process.clone(),
            holder: lead.holder.clone(),
            token: lead.token,
            until: lead.until,
            sent,
            sent_is_known: lead.sent.is_some(),
            send,
            told,
            since,
            index: event.index,
        });
        if !self.begun.contains(&lead.lease) {
            self.begun.push(lead.lease.clone());
        }
    }

    fn account(&mut self, lease: &Name) -> &mut Account {
        self.accounts.entry(lease.clone()).or_default()
    }

    fn came_back(&mut self, event: &Event, found: &BTreeMap<Name, RecoveredLease>) {
        for (lease, account) in &mut self.accounts {
            if account.store.as_ref() == Some(&event.process) {
                account.came_back(event, found.get(lease));
            }
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
            let account = self.accounts.get(&lease);
            let store = account.and_then(|account| account.store.as_deref());
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
                            let overlap = Overlap {
                                lease: &lease,
                                deposed,
                                successor: other,
                                now,
                                account,
                                faults: &self.faults,
                                rates: &self.rates,
                                timing: self.timing.as_ref(),
                            };
                            self.found = Some(overlap.in_order().evidence());
                        }
                    } else if self.excused.is_none() {
                        self.excused = Some(format!(
                            "{} and {} both led {lease} from {} on, but the clock of {} had \
                             run slower against {store}'s than the drift bound allows",
                            deposed.process,
                            other.process,
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
            Body::Invoke(op) if op.holder().is_some() => {
                self.account(op.lease()).sent(event, op);
            }
            Body::Complete(_, answer) => {
                let Some(invoked) = step.invoked else { return };
                let token = match *answer {
                    Answer::Token(token) => Some(token),
                    _ => None,
                };
                if let Some(account) = self.accounts.get_mut(invoked.op.lease()) {
                    account.answered(event, invoked, token);
                }
            }
            Body::Observed(Observation::Granted(granted)) => {
                self.account(&granted.lease).granted(event, granted);
            }
            Body::Observed(Observation::Renewed(renewed)) => {
                self.account(&renewed.lease).renewed(event.time, renewed);
            }
            Body::Observed(Observation::Released(released)) => {
                self.account(&released.lease).released(event, released);
            }
            Body::Observed(Observation::StoreRecovered(found)) => {
                self.came_back(event, &found.leases);
            }
            Body::Observed(Observation::Restored(found)) => {
                self.came_back(event, &found.leases);
            }
            Body::Nemesis(f, fault) => {
                self.rates.see(event);
                self.faults.see(event);
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
        let told = self.accounts.values().map(Account::remembered).sum();
        self.rates
            .remembered()
            .with(self.outside.remembered())
            .and("leases", self.accounts.len() + self.beliefs.len())
            .and("beliefs", beliefs)
            .and("calls and promises behind them", told)
            .and("faults", self.faults.remembered())
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
                "no lead or follow events in this history, and no lease timing in the \
                 header (lease.ttl) to infer beliefs by"
                    .to_owned(),
            ),
            (None, None) => Verdict::Valid,
        }
    }
}

//! What clients could believe, told from their calls alone, where no `lead` and no
//! `follow` was recorded.
//!
//! An acquire or a renewal that was answered ok is a promise of the store: at some
//! instant between the send and the answer it made the sender the owner for a whole ttl
//! by its own clock. A correct client may believe on the strength of it from the answer
//! until, by its own clock, the safe window (ttl less drift and margin) since the send
//! is over. Convicted are two processes that each have such a promise at one instant,
//! where the window counted by *any* clock within the drift bound is not over, and of
//! which nothing is known that ends a belief sooner.
//!
//! That this never convicts a correct system: the window counted by the fastest clock
//! that the bound, the header or the nemesis allows is over no later than the ttl by the
//! store's. So at that instant the store, by what it answered, had made both the owner
//! for longer than until then, and a lease has one owner. An ownership ends early only
//! by its owner's release: from the send of one on, its term counts for nothing here. A
//! request tried again counts from its first send (see `requests.rs`), a restart only
//! adds to what was promised, and in which order the two were granted does not matter.
//!
//! Nobody *need* believe as long as it could, so all that tells of an end is heeded: a
//! release or another acquire that is sent, a renewal that is refused, a token called
//! stale, a crash. A belief that is over stays over: an answer that comes after the
//! window of the one before does not begin another in the same term. What a process
//! sends as a leader shows nothing of when it believed: it looks at its clock, is paused,
//! and sends it later. So a client that believes without a promise is not found from
//! outside; a store that promises one lease twice is. Where two processes call
//! themselves one holder they may be one client, and nothing is said of them.

use std::collections::BTreeMap;

use super::within;
use crate::budget::Remembered;
use crate::history::{
    Acquire, Answer, Body, Event, Header, Kind, LeaseTiming, Name, Nanos, Op, Release, Renew,
    STALE_TOKEN, TRUE_RATE, Token,
};
use crate::judge::{Invoked, Step};
use crate::owners::{called, named};
use crate::rates::Rates;
use crate::requests::{Moment, Requests};
use crate::terms::asked_or;
use crate::units::{span, time};
use crate::verdict::Evidence;

/// What a process was promised last.
struct Promise {
    holder: Name,
    request: u64,
    token: Option<Token>,
    /// By any clock within the bound it may be believed for this long.
    window: Nanos,
    /// The send that it counts from.
    from: Moment,
    /// The answer that says so.
    shown: Moment,
    /// It could be believed when it was answered.
    begun: bool,
}

#[derive(Default)]
struct Lease {
    requests: Requests,
    /// By process.
    promises: BTreeMap<Name, Promise>,
}

pub(super) struct Outside {
    timing: Option<LeaseTiming>,
    leases: BTreeMap<Name, Lease>,
    /// Promised at the present instant: the lease, and to whom.
    fresh: Vec<(Name, Name)>,
    /// An acquire was answered ok.
    pub any: bool,
    pub excused: Option<String>,
    pub found: Option<Evidence>,
}

impl Outside {
    pub fn new(header: &Header) -> Self {
        Outside {
            timing: header.lease.clone(),
            leases: BTreeMap::new(),
            fresh: Vec::new(),
            any: false,
            excused: None,
            found: None,
        }
    }

    /// Whether the header tells how long a belief lasts.
    pub fn is_timed(&self) -> bool {
        self.timing.is_some()
    }

    pub fn remembered(&self) -> Remembered {
        let leases = self.leases.values();
        let (requests, promises) = leases.fold((0, 0), |(requests, promises), lease| {
            let more = lease.requests.remembered();
            (requests + more, promises + lease.promises.len())
        });
        Remembered::default()
            .and("leases", self.leases.len())
            .and("holders and their requests", requests)
            .and("terms in force", promises)
    }

    pub fn see(&mut self, step: &Step<'_>, rates: &Rates) {
        let event = step.event;
        match &event.body {
            Body::Invoke(Op::Acquire(op)) => self.asks(event, op),
            Body::Invoke(Op::Release(op)) => self.releases(op),
            Body::Complete(_, answer) => {
                if let Some(invoked) = step.invoked {
                    self.completed(event, invoked, answer, rates);
                }
            }
            _ => {}
        }
    }

    /// A crash ends what a process believes.
    pub fn crashed(&mut self, node: &str) {
        for lease in self.leases.values_mut() {
            lease.promises.remove(node);
        }
    }

    fn asks(&mut self, event: &Event, op: &Acquire) {
        let lease = self.leases.entry(op.lease.clone()).or_default();
        lease.requests.asks(op, moment(event));
        let other = |promise: &Promise| op.request == 0 || promise.request != op.request;
        if lease.promises.get(&event.process).is_some_and(other) {
            lease.promises.remove(&event.process);
        }
    }

    fn releases(&mut self, op: &Release) {
        let lease = self.leases.entry(op.lease.clone()).or_default();
        lease.requests.releases(op);
        lease.promises.retain(|_, promise| {
            let differs = promise.token.zip(op.token).is_some_and(|(a, b)| a != b);
            promise.holder != op.holder || differs
        });
    }

    fn completed(&mut self, event: &Event, invoked: &Invoked, answer: &Answer, rates: &Rates) {
        let Some(lease) = self.leases.get_mut(invoked.op.lease()) else {
            return;
        };
        match (&invoked.op, event.kind) {
            (Op::Acquire(op), Kind::Ok) => self.acquired(event, op, answer, rates),
            (Op::Acquire(op), Kind::Fail) => lease.requests.refused(op),
            (Op::Release(op), Kind::Ok | Kind::Fail) => drop(lease.requests.released(op)),
            (Op::Renew(op), Kind::Ok) => self.renewed(event, invoked, op, rates),
            (op, Kind::Fail) => {
                let stale = |error: &crate::history::Failure| error.kind == STALE_TOKEN;
                let ends = matches!(op, Op::Renew(_)) || event.error.as_ref().is_some_and(stale);
                let same = |promise: &Promise| op.token().is_none() || promise.token == op.token();
                if ends && lease.promises.get(&event.process).is_some_and(same) {
                    lease.promises.remove(&event.process);
                }
            }
            _ => {}
        }
    }

    fn acquired(&mut self, event: &Event, op: &Acquire, answer: &Answer, rates: &Rates) {
        self.any = true;
        let Some(window) = self.window(op.ttl) else {
            return;
        };
        let token = match answer {
            Answer::Token(token) => Some(*token),
            _ => None,
        };
        let Some(lease) = self.leases.get_mut(&op.lease) else {
            return;
        };
        let Some(from) = lease.requests.granted(op) else {
            return;
        };
        let again = lease.promises.get(&event.process).is_some_and(|promise| {
            promise.holder == op.holder && promise.request == op.request && promise.token == token
        });
        if again || lease.requests.may_be_released(&op.holder, token) {
            return;
        }
        let promise = Promise {
            holder: op.holder.clone(),
            request: op.request,
            token,
            window,
            from,
            shown: moment(event),
            begun: false,
        };
        self.promised(event, &op.lease, promise, rates);
    }

    fn renewed(&mut self, event: &Event, invoked: &Invoked, op: &Renew, rates: &Rates) {
        let Some(window) = self.window(op.ttl) else {
            return;
        };
        let Some(lease) = self.leases.get_mut(&op.lease) else {
            return;
        };
        let same = |promise: &Promise| {
            promise.holder == op.holder && (op.token.is_none() || promise.token == op.token)
        };
        let Some(mut promise) = lease.promises.remove(&event.process).filter(same) else {
            return;
        };
        // It began, and was perhaps over before this answer came.
        if promise.begun && !self.lasts(&promise, event.time, rates) {
            return;
        }
        if invoked.time >= promise.from.time && window >= promise.window {
            promise.window = window;
            promise.from = Moment {
                time: invoked.time,
                event: invoked.index,
            };
            promise.shown = moment(event);
        }
        self.promised(event, &op.lease, promise, rates);
    }

    fn promised(&mut self, event: &Event, lease: &Name, mut promise: Promise, rates: &Rates) {
        if self.lasts(&promise, event.time, rates) {
            promise.begun = true;
            self.fresh.push((lease.clone(), event.process.clone()));
        }
        if let Some(lease) = self.leases.get_mut(lease) {
            lease.promises.insert(event.process.clone(), promise);
        }
    }

    /// The safe window: what of a ttl may be believed.
    fn window(&self, asked: Nanos) -> Option<Nanos> {
        let timing = self.timing.as_ref()?;
        let ttl = asked_or(asked, timing.ttl)?;
        let kept = u128::from(TRUE_RATE.saturating_sub(timing.max_drift_ppb));
        let kept = u128::from(ttl) * kept / u128::from(TRUE_RATE);
        let kept = Nanos::try_from(kept).unwrap_or(Nanos::MAX);
        Some(kept.saturating_sub(timing.safety_margin))
    }

    fn drift(&self) -> u64 {
        self.timing
            .as_ref()
            .map_or(0, |timing| timing.max_drift_ppb)
    }

    /// Whether no clock within the bound has counted all of the window by then.
    fn lasts(&self, promise: &Promise, now: Nanos, rates: &Rates) -> bool {
        rates.most_elapsed(self.drift(), promise.from.time, now) < promise.window
    }

    /// Looks at what was promised at the instant that is over: nothing can end at it
    /// any more.
    pub fn settle(&mut self, now: Nanos, rates: &Rates) {
        for (name, process) in std::mem::take(&mut self.fresh) {
            let (found, excused) = self.look(&name, &process, now, rates);
            self.found = self.found.take().or(found);
            self.excused = self.excused.take().or(excused);
            // Others can begin no more.
            let (timing, drift) = (self.timing.as_ref(), self.drift());
            if let (Some(lease), Some(timing)) = (self.leases.get_mut(&name), timing) {
                lease.promises.retain(|_, promise| {
                    let counted = rates.most_elapsed(drift, promise.from.time, now);
                    counted < promise.window.max(timing.ttl).saturating_mul(2)
                });
            }
        }
    }

    fn look(
        &self,
        name: &Name,
        process: &Name,
        now: Nanos,
        rates: &Rates,
    ) -> (Option<Evidence>, Option<String>) {
        let Some(lease) = self.leases.get(name) else {
            return (None, None);
        };
        let Some(mine) = lease.promises.get(process) else {
            return (None, None);
        };
        let others = lease.promises.iter();
        let others = others.filter(|(other, its)| *other != process && its.holder != mine.holder);
        let mut excused = None;
        for (other, its) in others.filter(|(_, its)| its.begun) {
            if self.lasts(its, now, rates) && self.lasts(mine, now, rates) {
                return (Some(self.both(name, its, mine, now, rates)), None);
            }
            // By its own clock it could: whose ran faster, if anybody's did beyond the bound?
            let own = rates.elapsed(other, its.from.time, now);
            let most = u128::from(rates.most_elapsed(0, its.from.time, now));
            let bound = u128::from(TRUE_RATE.saturating_sub(self.drift()));
            let believes = own / u128::from(TRUE_RATE) < u128::from(its.window);
            if believes && !within(own, most * u128::from(TRUE_RATE), bound) {
                excused = Some(format!(
                    "{} and {} could both believe that they led {name} from {} on, but the clock \
                     of {other} had run slower against another than the drift bound allows",
                    called(&its.holder, &mine.holder),
                    called(&mine.holder, &its.holder),
                    time(now)
                ));
            }
        }
        (None, excused)
    }

    fn both(
        &self,
        lease: &Name,
        first: &Promise,
        then: &Promise,
        now: Nanos,
        rates: &Rates,
    ) -> Evidence {
        let counted = rates.most_elapsed(self.drift(), first.from.time, now);
        let held = named(&first.holder, first.token, &then.holder);
        Evidence::new(
            format!(
                "by what it was answered {} could believe that it led {lease} while {held}, who \
                 had sent no release, still could",
                named(&then.holder, then.token, &first.holder)
            ),
            [first.from.event, first.shown.event, then.from.event],
            then.shown.event,
            format!("refused while {held} may believe"),
        )
        .reckoned([
            "inferred from calls: no lead or follow was recorded".to_owned(),
            format!(
                "from the send at {} to {} no clock within the drift bound counts more than {}, \
                 and {} holds for {} that are safe to believe in",
                time(first.from.time),
                time(now),
                span(counted),
                called(&first.holder, &then.holder),
                span(first.window)
            ),
        ])
    }
}

fn moment(event: &Event) -> Moment {
    Moment {
        time: event.time,
        event: event.index,
    }
}

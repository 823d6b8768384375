//! The evidence of two beliefs at one instant: no more events than show how it came to be.

use super::Belief;
use super::account::{Account, Promise, Return, Taken};
use crate::faults::{Fault, Faults, What};
use crate::history::{LeaseTiming, Name, Nanos, TRUE_RATE};
use crate::rates::Rates;
use crate::units::time;
use crate::verdict::Evidence;

/// A fault that kept a leader from renewing did so for one part in this of the time.
const KEPT_ONE_IN: Nanos = 3;
/// What a belief may outlast its window by and be counted within it: clocks are rounded.
const ROUNDING: Nanos = 1_000_000;

/// Two beliefs that overlap from now on, and what is known of them.
pub(super) struct Overlap<'a> {
    pub lease: &'a Name,
    /// Whose term came first.
    pub deposed: &'a Belief,
    pub successor: &'a Belief,
    pub now: Nanos,
    pub account: Option<&'a Account>,
    pub faults: &'a Faults,
    pub rates: &'a Rates,
    pub timing: Option<&'a LeaseTiming>,
}

/// How the lease came to pass on while its owner believed.
pub(super) enum Passing<'a> {
    /// The store took a release.
    Released(&'a Promise, &'a Taken, Nanos),
    /// The store granted it before it had counted the ttl that it owed: so much it had.
    TooEarly(&'a Promise, Nanos, Nanos),
    /// It had counted all of it.
    RanOut(&'a Promise, Nanos, Nanos),
    /// The store's word is not recorded.
    Untold,
}

/// The machine slept, and by a clock that stood still meanwhile its leader counted no more
/// than its window.
pub(super) struct Slept {
    pub from: Nanos,
    /// By its own clock, while it counted.
    pub asleep: Nanos,
    /// It sleeps on.
    pub on: bool,
    events: Vec<u64>,
}

/// By wall clocks that were stepped, its leader counted no more than the ttl.
pub(super) struct Stepped {
    /// The steps of the deposed leader's clock, and of the store's: how many, by how much
    /// in all, and when the last was.
    pub own: Option<(usize, i64, Nanos)>,
    pub stores: Option<(usize, i64, Nanos)>,
    /// What they put its end off by.
    pub by: Nanos,
    events: Vec<u64>,
}

impl<'a> Overlap<'a> {
    /// Of two beliefs in the order of their tokens. Where tokens went back, the store's
    /// grants tell better which came first.
    pub fn in_order(self) -> Self {
        let granted = |belief| self.promise(belief).map(|promise| promise.event);
        let turned = granted(self.deposed).zip(granted(self.successor));
        match turned.is_some_and(|(first, then)| first > then) {
            true => Overlap {
                deposed: self.successor,
                successor: self.deposed,
                ..self
            },
            false => self,
        }
    }

    pub fn evidence(&self) -> Evidence {
        let (deposed, successor) = (self.deposed, self.successor);
        let (late, early) = match deposed.index > successor.index {
            true => (deposed, successor),
            false => (successor, deposed),
        };
        let until = match early.end() {
            Some(until) => format!("until {}", time(until)),
            None => "without an end".to_owned(),
        };
        let sentence = format!(
            "{} believed that it led {} from {} on, while {} believed so {until}",
            late.process,
            self.lease,
            time(self.now),
            early.process
        );
        let expected = format!("no belief while {} has one", early.process);
        let evidence = Evidence::new(sentence, self.events(), late.index, expected);
        evidence.reckoned(self.reckoning())
    }

    /// The send behind the deposed belief, the grant to the successor, what they came to
    /// believe, and what decides it.
    fn events(&self) -> Vec<u64> {
        let mut events = vec![self.deposed.index, self.successor.index];
        events.extend(self.deposed.send);
        events.extend(
            self.account
                .and_then(|account| account.grant(self.successor)),
        );
        match self.passing() {
            Passing::Released(promise, taken, _) => {
                events.push(taken.event);
                // It is of an earlier term: when that was over tells it apart.
                if let Some((_, send)) = self.sent_before(promise, taken) {
                    events.extend([send, promise.event]);
                }
            }
            Passing::TooEarly(promise, ..) => {
                if let Some(back) = self.returned() {
                    events.push(back.event);
                    events.extend(self.store_down(back.at).map(|fault| fault.event));
                }
                events.extend(self.store_stepped(promise).map(|(fault, _)| fault.event));
            }
            Passing::RanOut(..) => events.extend(self.faults_of_the_deposed()),
            Passing::Untold => {
                events.extend(self.released_untold().map(|(_, event)| event));
                events.extend(self.faults_of_the_deposed());
            }
        }
        events.extend(self.rate_changes());
        events
    }

    pub fn passing(&self) -> Passing<'_> {
        let promises = (self.promise(self.deposed), self.promise(self.successor));
        let (Some(promise), Some(successor), Some(store)) = (promises.0, promises.1, self.store())
        else {
            return Passing::Untold;
        };
        let granted = successor.granted;
        let taken = self
            .account
            .and_then(|account| account.taken(promise.from, granted));
        if let Some(taken) = taken {
            return Passing::Released(promise, taken, granted);
        }
        let counted = nanos(self.rates.elapsed(store, promise.from, granted));
        match counted < promise.ttl {
            true => Passing::TooEarly(promise, granted, counted),
            false => Passing::RanOut(promise, granted, counted),
        }
    }

    pub fn store(&self) -> Option<&'a Name> {
        self.account.and_then(|account| account.store.as_ref())
    }

    pub fn promise(&self, belief: &Belief) -> Option<&'a Promise> {
        self.account.and_then(|account| account.promise(belief))
    }

    /// Where the deposed leader had sent the release for the term before the one that it
    /// ended: when.
    pub fn sent_before(&self, promise: &Promise, taken: &Taken) -> Option<(Nanos, u64)> {
        let own = taken.holder == self.deposed.holder;
        taken
            .sent
            .filter(|(sent, _)| own && *sent < promise.granted)
    }

    /// A release of the deposed leader, where no store's word tells that it was taken.
    pub fn released_untold(&self) -> Option<(Nanos, u64)> {
        let sent = self.account?.release_of(self.deposed);
        sent.filter(|(at, _)| *at >= self.deposed.sent)
    }

    /// When the store came back, within what it owed the deposed leader.
    pub fn returned(&self) -> Option<&'a Return> {
        let (promise, successor) = (self.promise(self.deposed)?, self.promise(self.successor)?);
        self.account?.returned(promise.from, successor.granted)
    }

    /// What it came back from.
    fn store_down(&self, back: Nanos) -> Option<&'a Fault> {
        let mut faults = self.faults.of(self.store()?);
        faults.rfind(|fault| fault.what == What::Ended && fault.from <= back)
    }

    /// The last step of the store's wall clock since it began to count, and how far it was
    /// stepped ahead since then.
    pub fn store_stepped(&self, promise: &Promise) -> Option<(Fault, Nanos)> {
        let left = promise.from.saturating_add(promise.ttl);
        let granted = self.promise(self.successor)?.granted;
        let stepped = self
            .faults
            .stepped_ahead(self.store()?, promise.from, granted);
        stepped.filter(|(_, by)| granted.saturating_add(*by) >= left)
    }

    /// What a clock of the deposed leader's counted from the send to the end of its belief.
    pub fn counted(&self) -> Option<Nanos> {
        let deposed = self.deposed;
        let until = deposed.end().filter(|_| deposed.sent_is_known)?;
        Some(nanos(self.rates.elapsed(
            &deposed.process,
            deposed.sent,
            until,
        )))
    }

    /// What of a ttl a leader may believe in.
    pub fn safe(&self) -> Option<Nanos> {
        let timing = self.timing?;
        let kept = u128::from(TRUE_RATE.saturating_sub(timing.max_drift_ppb));
        let safe = nanos(u128::from(timing.ttl) * kept);
        Some(safe.saturating_sub(timing.safety_margin))
    }

    pub fn slept(&self) -> Option<Slept> {
        let deposed = self.deposed;
        let safe = self.safe().filter(|_| deposed.sent_is_known)?;
        let end = deposed.end();
        let to = end.unwrap_or(self.now);
        let of_it =
            |fault: &&Fault| fault.what == What::Suspended && fault.within(deposed.sent, to) > 0;
        let mut asleep = 0;
        let mut seen = deposed.sent;
        let mut from = None;
        let mut events = Vec::new();
        let mut on = false;
        for fault in self.faults.of(&deposed.process).filter(of_it) {
            let (began, until) = (fault.from.max(seen), fault.until.unwrap_or(to).min(to));
            from.get_or_insert(began);
            on |= fault.until.is_none_or(|until| until > self.now);
            if until > began {
                events.push(fault.event);
                asleep += self.rates.elapsed(&deposed.process, began, until);
                seen = until;
            }
        }
        let (from, asleep) = (from?, nanos(asleep));
        let explains = match self.counted() {
            Some(own) => own > safe && own.saturating_sub(asleep) <= safe.saturating_add(ROUNDING),
            // It has no end before it wakes.
            None => end.is_none() && deposed.until.is_some() && on,
        };
        explains.then_some(Slept {
            from,
            asleep,
            on,
            events,
        })
    }

    pub fn stepped(&self) -> Option<Stepped> {
        let deposed = self.deposed;
        let (until, timing) = (deposed.end()?, self.timing?);
        let stores = self
            .store()
            .map(|store| self.faults.steps(store, deposed.told));
        let stores: Vec<(Fault, i64)> = stores.into_iter().flatten().collect();
        let own: Vec<(Fault, i64)> = self.faults.steps(&deposed.process, self.now).collect();
        let in_all = |steps: &[(Fault, i64)]| steps.last().map_or(0, |(_, in_all)| *in_all);
        let by = in_all(&stores).saturating_sub(in_all(&own));
        let by = Nanos::try_from(by).ok().filter(|by| *by > 0)?;
        let latest = deposed.told.saturating_add(timing.ttl);
        let drift = u128::from(timing.ttl) * u128::from(timing.max_drift_ppb) * 2;
        let latest = latest.saturating_add(nanos(drift)).saturating_add(ROUNDING);
        if self
            .counted()
            .zip(self.safe())
            .is_none_or(|(own, safe)| own <= safe)
            || until.saturating_sub(by) > latest
        {
            return None;
        }
        let since = own.partition_point(|(fault, _)| fault.from < deposed.sent);
        let told = |steps: &[(Fault, i64)]| {
            let (last, in_all) = steps.last().filter(|(_, in_all)| *in_all != 0)?;
            Some((steps.len(), *in_all, last.from))
        };
        let mut events = Vec::new();
        if in_all(&own) != 0 {
            let named = &own[since.min(own.len() - 1)..];
            events.extend(named.iter().map(|(fault, _)| fault.event));
        }
        if in_all(&stores) != 0 {
            events.extend(stores.last().map(|(fault, _)| fault.event));
        }
        Some(Stepped {
            own: told(&own),
            stores: told(&stores),
            by,
            events,
        })
    }

    /// A crash of the deposed leader's process since it was granted the lease.
    pub fn crashed(&self) -> Option<&'a Fault> {
        let promise = self.promise(self.deposed)?;
        let mut faults = self.faults.of(&self.deposed.process);
        faults.rfind(|fault| {
            fault.what == What::Ended && (promise.granted..=self.now).contains(&fault.from)
        })
    }

    /// What of its clocks decides it, and what kept it from renewing for most of the time.
    fn faults_of_the_deposed(&self) -> Vec<u64> {
        let deposed = self.deposed;
        let slept = self.slept().map(|slept| slept.events);
        let stepped = self.stepped().map(|stepped| stepped.events);
        let mut events: Vec<u64> = [slept, stepped].into_iter().flatten().flatten().collect();
        events.extend(self.crashed().map(|fault| fault.event));
        let to = self.promise(self.successor);
        let to = to.map_or(self.now, |promise| promise.granted);
        let stopped = self
            .faults
            .of(&deposed.process)
            .filter(|fault| matches!(fault.what, What::Paused | What::Suspended | What::Starved));
        let cut = self
            .store()
            .map(|store| self.faults.cuts(&deposed.process, store));
        let longest = stopped
            .chain(cut.into_iter().flatten())
            .max_by_key(|fault| (fault.within(deposed.sent, to), fault.event));
        let kept = longest.filter(|fault| {
            let stretch = to.saturating_sub(deposed.sent);
            fault.within(deposed.sent, to).saturating_mul(KEPT_ONE_IN) >= stretch
        });
        events.extend(kept.map(|fault| fault.event));
        events
    }

    /// The clocks whose rates changed while they counted.
    fn rate_changes(&self) -> Vec<u64> {
        let counts = [Some(&self.deposed.process), self.store()];
        let faults = counts
            .into_iter()
            .flatten()
            .flat_map(|node| self.faults.of(node));
        let within = |fault: &&Fault| {
            fault.what == What::Rated && self.deposed.sent < fault.from && fault.from < self.now
        };
        faults.filter(within).map(|fault| fault.event).collect()
    }
}

/// Nanoseconds of a clock, from nanoseconds times parts per billion.
pub(super) fn nanos(counted: u128) -> Nanos {
    Nanos::try_from(counted / u128::from(TRUE_RATE)).unwrap_or(Nanos::MAX)
}

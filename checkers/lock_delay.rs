//! `lock-delay`: after an expiry a lease stays closed to new owners for the header's
//! `lease.lock_delay`, by the store's own clock.
//!
//! Convicted, per store node and lease: a grant at or after the last owner's expiry
//! and before expiry plus lock-delay; at that very instant the lease is free. A new
//! request of the last owner opens a new term and is refused like anybody's; its own
//! request answered again is not a new grant. After a release there is no delay. A
//! restart gives the recorded owner its whole ttl and the whole lock-delay again, and
//! where it forgot the owner what had been promised still binds, unless the owner had
//! sent a release, which may be durable and was never recorded. Grants before the
//! expiry are `lease-linearizable`'s, and so is a release that was not the owner's:
//! here it ends the term as the store says it did.
//!
//! Nothing is claimed where the header has no lock-delay or 0: there is then no
//! promise to break.
//!
//! Where the store gives no account of its own, clients' calls are judged: a grant
//! answered so soon after an earlier one's first send, or after the send of a renewal
//! answered ok, that no store's clock can have counted its ttl and the delay, and
//! without a release sent for it. What can even be before the expiry is left to
//! `lease-linearizable`.

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::history::{
    Body, Event, Granted, Header, Name, Nanos, Observation, Op, RecoveredLease, Renewed,
    StoreRecovered,
};
use crate::judge::{Checker, Step};
use crate::owners::{Owner, Releases, StoreClocks, called};
use crate::rates::restored;
use crate::terms::{RuledOut, Terms};
use crate::units::{span, time};
use crate::verdict::{Evidence, Verdict};

/// The last term of a lease, as its store has it.
struct Term {
    owner: Owner,
    ttl: Nanos,
    /// On the store's clock.
    expiry: Nanos,
    /// Expiry and lock-delay. Kept apart: where a clock began anew, the expiry may lie before its 0.
    free: Nanos,
    /// A restart forgot it, and its holder had sent a release.
    perhaps_released: bool,
    /// The event that began it.
    begun: u64,
    /// The event that `expiry` follows from.
    shown: u64,
    /// The last restart of its store since it began.
    back: Option<Back>,
}

/// A restart of a store.
#[derive(Clone, Copy)]
struct Back {
    /// In true time.
    at: Nanos,
    event: u64,
    /// Whether it found the term's owner.
    found: bool,
}

impl Back {
    fn of(event: &Event, found: bool) -> Self {
        Back {
            at: event.time,
            event: event.index,
            found,
        }
    }
}

impl Term {
    fn extend(&mut self, expiry: Nanos, delay: Nanos, shown: u64) {
        if expiry >= self.expiry {
            self.expiry = expiry;
            self.free = expiry.saturating_add(delay);
            self.shown = shown;
        }
    }
}

pub(crate) struct LockDelay {
    delay: Nanos,
    ttl: Option<Nanos>,
    /// By (store node, lease); gone once released.
    terms: BTreeMap<(Name, Name), Term>,
    clocks: StoreClocks,
    releases: Releases,
    /// The store's own account was seen.
    any: bool,
    any_grant: bool,
    found: Option<Evidence>,
    /// What clients know.
    clients: Terms,
    found_by_client: Option<Evidence>,
}

impl LockDelay {
    pub fn new(header: &Header) -> Self {
        let lease = header.lease.as_ref();
        let delay = lease.map_or(0, |lease| lease.lock_delay);
        LockDelay {
            delay,
            ttl: lease.map(|lease| lease.ttl),
            terms: BTreeMap::new(),
            clocks: StoreClocks::default(),
            releases: Releases::default(),
            any: false,
            any_grant: false,
            found: None,
            clients: Terms::new(header, delay),
            found_by_client: None,
        }
    }

    fn see_clients(&mut self, step: &Step<'_>) {
        if self.any || self.found_by_client.is_some() {
            return;
        }
        let Some(RuledOut::Granted(early)) = self.clients.see(step) else {
            return;
        };
        if early.after < early.first.ttl {
            return;
        }
        self.found_by_client = Some(early.evidence(
            step.event,
            &format!(", inside the lock-delay of {},", span(self.delay)),
            format!("refused for the ttl and {} after it", span(self.delay)),
        ));
    }

    fn granted(&mut self, event: &Event, granted: &Granted) {
        self.any_grant = true;
        let key = (event.process.clone(), granted.lease.clone());
        if let Some(term) = self.terms.get_mut(&key) {
            let free = term.free;
            if granted.clock < free && term.owner.is_told_again(granted) {
                if std::mem::take(&mut term.perhaps_released) {
                    // Still the same grant, or after the release a new one.
                    let expiry = granted.clock.saturating_add(granted.ttl);
                    if expiry > term.expiry {
                        (term.expiry, term.shown) = (expiry, event.index);
                    }
                    term.free = term.free.min(expiry.saturating_add(self.delay));
                }
                return;
            }
            let inside = (term.expiry..free).contains(&granted.clock);
            if inside && !term.perhaps_released {
                self.found = Some(inside_the_delay(event, granted, term, self.delay));
            }
        }
        self.releases.granted(granted);
        let expiry = granted.clock.saturating_add(granted.ttl);
        let term = Term {
            owner: Owner::of(granted),
            ttl: granted.ttl,
            expiry,
            free: expiry.saturating_add(self.delay),
            perhaps_released: false,
            begun: event.index,
            shown: event.index,
            back: None,
        };
        self.terms.insert(key, term);
    }

    fn renewed(&mut self, event: &Event, renewed: &Renewed) {
        let key = (event.process.clone(), renewed.lease.clone());
        let term = self.terms.get_mut(&key);
        if let Some(term) = term.filter(|term| term.owner.is(&renewed.holder, renewed.token)) {
            term.ttl = term.ttl.max(renewed.ttl);
            let expiry = renewed.clock.saturating_add(renewed.ttl);
            term.extend(expiry, self.delay, event.index);
        }
    }

    /// A machine's restart may begin its clock anew; promises move along.
    fn clock_shows(&mut self, store: &Name, clock: Nanos) {
        let Some(before) = self.clocks.shows(store, clock) else {
            return;
        };
        self.terms
            .retain(|(name, _), term| name != store || before < term.free);
        for (_, term) in self.terms.iter_mut().filter(|((name, _), _)| name == store) {
            term.free = clock.saturating_add(term.free - before);
            term.expiry = term.free.saturating_sub(self.delay);
        }
    }

    /// What an old copy forgot, its operator answers for, recorded or not.
    fn forgotten_by(&mut self, node: &str) {
        self.terms.retain(|(store, _), _| store != node);
    }

    fn came_back(&mut self, event: &Event, recovered: &StoreRecovered) {
        let found = |lease: &Name| recovered.leases.get(lease);
        self.terms.retain(|(store, lease), term| {
            if *store != event.process {
                return true;
            }
            let counter = found(lease).map_or(0, |found| found.counter);
            // Replaced, or perhaps: a store without tokens does not tell.
            if term.owner.token.is_none_or(|token| counter > token) {
                return false;
            }
            let is_there = found(lease).is_some_and(|found| found.holder.is_some());
            let is_found = found(lease).is_some_and(|found| {
                let holder = found.holder.as_ref();
                holder.is_some_and(|holder| term.owner.is(holder, Some(found.counter)))
            });
            term.back = Some(Back::of(event, is_found));
            let sent = self.releases.may_have_ended(lease, &term.owner);
            // It is kept: its own request answered again would not begin a new term.
            term.perhaps_released |= !is_there && sent;
            true
        });
        for (lease, found) in &recovered.leases {
            self.recovered(event, lease, found, recovered.clock);
        }
    }

    /// The recorded owner has its whole ttl again, and no less than it was promised.
    fn recovered(&mut self, event: &Event, lease: &Name, found: &RecoveredLease, clock: Nanos) {
        let Some(holder) = &found.holder else { return };
        let key = (event.process.clone(), lease.clone());
        let before = self.terms.get_mut(&key);
        if let Some(term) = before {
            if term.owner.is(holder, Some(found.counter)) {
                let ttl = found.ttl.unwrap_or(term.ttl);
                term.extend(clock.saturating_add(ttl), self.delay, event.index);
                term.perhaps_released = false;
                return;
            }
            if term.owner.token > Some(found.counter) {
                return;
            }
        }
        let ttl = found.ttl.or(self.ttl).unwrap_or(0);
        let expiry = clock.saturating_add(ttl);
        let term = Term {
            owner: Owner {
                holder: holder.clone(),
                request: None,
                token: Some(found.counter),
            },
            ttl,
            expiry,
            free: expiry.saturating_add(self.delay),
            perhaps_released: false,
            begun: event.index,
            shown: event.index,
            back: Some(Back::of(event, true)),
        };
        self.terms.insert(key, term);
    }
}

fn inside_the_delay(event: &Event, granted: &Granted, term: &Term, delay: Nanos) -> Evidence {
    let owner = called(&term.owner.holder, &granted.holder);
    let left = term.free - granted.clock;
    let in_truth = match granted.clock == event.time {
        true => String::new(),
        false => format!(" ({} in truth)", time(event.time)),
    };
    let mut reckoning = vec![format!(
        "by its clock the lease ran out at {}, and stays closed for the lock-delay of {}, until \
         {}: it was granted at {}{in_truth}, {} too early",
        time(term.expiry),
        span(delay),
        time(term.free),
        time(granted.clock),
        span(left)
    )];
    // Unless a renewal followed, or it kept what it had been promised before.
    let back = term.back.filter(|back| match back.found {
        true => back.event == term.shown,
        false => back.event > term.shown,
    });
    reckoning.extend(back.map(|back| match back.found {
        true => format!(
            "{} came back at {} and found {owner} as the owner: from then on it owed a whole ttl \
             of {}, and the whole lock-delay after it",
            event.process,
            time(back.at),
            span(term.ttl)
        ),
        false => format!(
            "{} came back at {} and had forgotten {owner}: what it had promised binds all the \
             same, the lock-delay too",
            event.process,
            time(back.at)
        ),
    }));
    let evidence = Evidence::new(
        format!(
            "{} was granted to {} at {}, inside the lock-delay: the lease of {owner} had run out \
             {} before by the store's clock, and nobody released it",
            granted.lease,
            called(&granted.holder, &term.owner.holder),
            time(event.time),
            span(granted.clock - term.expiry)
        ),
        [term.begun, term.shown]
            .into_iter()
            .chain(back.map(|back| back.event)),
        event.index,
        format!("refused for another {}", span(left)),
    );
    evidence.reckoned(reckoning)
}

impl Checker for LockDelay {
    fn see(&mut self, step: &Step<'_>) {
        if self.delay == 0 {
            return;
        }
        self.see_clients(step);
        let event = step.event;
        let store = &event.process;
        match &event.body {
            Body::Invoke(Op::Release(release)) => self.releases.sent(release),
            Body::Nemesis(f, fault) => {
                for node in restored(f, fault) {
                    self.forgotten_by(node);
                }
                return;
            }
            Body::Observed(Observation::Granted(granted)) => {
                self.clock_shows(store, granted.clock);
                self.granted(event, granted);
            }
            Body::Observed(Observation::Renewed(renewed)) => {
                self.clock_shows(store, renewed.clock);
                self.renewed(event, renewed);
            }
            Body::Observed(Observation::Released(released)) => {
                self.clock_shows(store, released.clock);
                self.terms.remove(&(store.clone(), released.lease.clone()));
            }
            Body::Observed(Observation::Denied(denied)) => {
                self.clock_shows(store, denied.clock);
            }
            Body::Observed(Observation::StoreRecovered(recovered)) => {
                self.clock_shows(store, recovered.clock);
                self.came_back(event, recovered);
            }
            Body::Observed(Observation::Restored(restored)) => {
                self.forgotten_by(store);
                self.clocks.shows(store, restored.clock);
                for (lease, found) in &restored.leases {
                    self.recovered(event, lease, found, restored.clock);
                }
            }
            _ => return,
        }
        // A denial alone tells nothing of who holds the lease.
        self.any |=
            matches!(&event.body, Body::Observed(what) if !matches!(what, Observation::Denied(_)));
    }

    fn remembered(&self) -> Remembered {
        self.clients
            .remembered()
            .and("leases", self.terms.len() + self.clocks.remembered())
            .and("releases", self.releases.remembered())
    }

    fn found(&self) -> bool {
        self.found.is_some()
    }

    fn verdict(self: Box<Self>) -> Verdict {
        let found = match self.any {
            true => self.found,
            false => self.found_by_client,
        };
        let judged = match self.any {
            true => self.any_grant,
            false => self.clients.any,
        };
        match found {
            Some(evidence) => Verdict::Violated(evidence),
            None if self.delay == 0 => {
                Verdict::NotClaimed("no lock-delay in the header (lease.lock_delay)".to_owned())
            }
            None if !judged => Verdict::NotClaimed(
                "no granted events of a lease store and no acquire answered ok in this history"
                    .to_owned(),
            ),
            None => Verdict::Valid,
        }
    }
}

//! `lease-linearizable`: the store keeps its promises, by its own clock.
//!
//! Convicted, per store node and lease: a grant while another is in force (one
//! request answered again is one grant); a renewal that took effect at or after
//! expiry, or under a successor; a release that took effect for another holder or
//! token than the owner; an acquire denied whose own request was granted and is in
//! force; a restart that forgot an owner in force, or that brought back one that
//! had released; and a grant within a ttl after the store was restored from an old copy
//! (`restoration.rs`). A lease is free at the very instant of its expiry. After a restart
//! the recorded owner has its whole ttl again. Lock-delay is not judged here.
//!
//! Where the store gives no account of its own, clients' calls are judged: a grant
//! answered so soon after an earlier one's first send, or after the send of a renewal
//! answered ok, that no store's clock can have counted its ttl, and without a release
//! sent for it; an acquire that was granted, tried again and refused as held within
//! that time (requests without a number, or with 0, are no tries of one); a renewal answered ok that was sent after a higher token was granted.
//! Time is judged only where the header has lease timing. A renewal after expiry is
//! not: a restart that no client saw makes it legal.
//!
//! A restart may forget an owner whose time is over, as stores do that keep no
//! expired ones; and one whose holder had sent a release, which may have been
//! made durable in the instant before the crash and never been recorded.

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::faults::Faults;
use crate::history::{
    Body, Denied, Event, F, Granted, Header, Name, Nanos, Observation, Op, RecoveredLease,
    Released, Renewed, StoreRecovered,
};
use crate::judge::{Checker, Step};
use crate::owners::{Owner, Releases, StoreClocks, called, named};
use crate::rates::restored;
use crate::terms::Terms;
use crate::units::{span, time};
use crate::verdict::{Evidence, Verdict};

mod outside;
mod restoration;

use restoration::Restorations;

/// A lease as its store has it.
struct Owned {
    owner: Owner,
    ttl: Nanos,
    /// On the store's clock.
    expiry: Nanos,
    released: bool,
    /// The event that began it.
    begun: u64,
    /// The event that `expiry` follows from.
    shown: u64,
    /// When that was, in true time.
    from: Nanos,
}

impl Owned {
    fn in_force(&self, clock: Nanos) -> bool {
        !self.released && clock < self.expiry
    }
}

pub(crate) struct LeaseLinearizable {
    ttl: Option<Nanos>,
    /// By (store node, lease).
    leases: BTreeMap<(Name, Name), Owned>,
    clocks: StoreClocks,
    faults: Faults,
    releases: Releases,
    restorations: Restorations,
    any: bool,
    found: Option<Evidence>,
    /// What clients know.
    clients: Terms,
    timed: bool,
    found_by_client: Option<Evidence>,
}

impl LeaseLinearizable {
    pub fn new(header: &Header) -> Self {
        LeaseLinearizable {
            ttl: header.lease.as_ref().map(|lease| lease.ttl),
            leases: BTreeMap::new(),
            clocks: StoreClocks::default(),
            faults: Faults::default(),
            releases: Releases::default(),
            restorations: Restorations::default(),
            any: false,
            found: None,
            clients: Terms::new(header, 0),
            timed: header.lease.is_some(),
            found_by_client: None,
        }
    }

    fn see_clients(&mut self, step: &Step<'_>) {
        if self.any || self.found_by_client.is_some() {
            return;
        }
        let ruled_out = self.clients.see(step);
        self.found_by_client =
            ruled_out.map(|ruled_out| outside::impossible(step.event, ruled_out));
    }

    fn granted(&mut self, event: &Event, key: (Name, Name), granted: &Granted) {
        let before = self.leases.get(&key);
        if let Some(owned) = before.filter(|owned| owned.in_force(granted.clock)) {
            if owned.owner.is_told_again(granted) {
                return;
            }
            self.found = Some(self.too_early(event, granted, owned));
        }
        if self.found.is_none() {
            self.found = self.restorations.too_early(event, granted);
        }
        self.releases.granted(granted);
        let owned = Owned {
            owner: Owner::of(granted),
            ttl: granted.ttl,
            expiry: granted.clock.saturating_add(granted.ttl),
            released: false,
            begun: event.index,
            shown: event.index,
            from: event.time,
        };
        self.leases.insert(key, owned);
    }

    fn too_early(&self, event: &Event, granted: &Granted, owned: &Owned) -> Evidence {
        let (store, owner) = (&event.process, &owned.owner);
        let left = owned.expiry.saturating_sub(granted.clock);
        let in_truth = match granted.clock == event.time {
            true => String::new(),
            false => format!(" ({} in truth)", time(event.time)),
        };
        let mut reckoning = vec![format!(
            "by its clock the store owed {} {} from {} on, until {}: it granted the lease at \
             {}{in_truth}, {} too early",
            called(&owner.holder, &granted.holder),
            span(owned.ttl),
            time(owned.expiry.saturating_sub(owned.ttl)),
            time(owned.expiry),
            time(granted.clock),
            span(left)
        )];
        let mut events = vec![owned.begun, owned.shown];
        let stepped = self.faults.stepped_ahead(store, owned.from, event.time);
        if let Some((last, by)) = stepped.filter(|(_, by)| *by >= left) {
            reckoning.push(format!(
                "its wall clock was stepped by +{} since it began to count, the last time at {}: \
                 by that one the lease had run out",
                span(by),
                time(last.from)
            ));
            events.push(last.event);
        }
        let evidence = Evidence::new(
            format!(
                "{} was granted to {} at {}, while {} held it for another {} by the store's clock",
                granted.lease,
                called(&granted.holder, &owner.holder),
                time(event.time),
                owner.named(&granted.holder),
                span(left)
            ),
            events,
            event.index,
            format!("refused for another {}", span(left)),
        );
        evidence.reckoned(reckoning)
    }

    fn renewed(&mut self, event: &Event, key: (Name, Name), renewed: &Renewed) {
        let Some(owned) = self.leases.get_mut(&key) else {
            return;
        };
        let owner = &owned.owner;
        let who = named(&renewed.holder, renewed.token, &owner.holder);
        let wrong = if !owner.is(&renewed.holder, renewed.token) {
            let owner = owner.named(&renewed.holder);
            Some((
                format!("a renewal by {who} took effect though {owner} had followed"),
                format!("refused, {owner} had followed"),
                vec![owned.begun],
            ))
        } else if owned.released {
            Some((
                format!("a renewal by {who} took effect after its release"),
                "refused, it had been released".to_owned(),
                vec![owned.begun, owned.shown],
            ))
        } else if renewed.clock >= owned.expiry {
            let late = span(renewed.clock - owned.expiry);
            Some((
                format!(
                    "a renewal by {who} took effect {late} after its lease had run out by the \
                     store's clock"
                ),
                "refused, the lease had run out".to_owned(),
                vec![owned.begun, owned.shown],
            ))
        } else {
            None
        };
        if let Some((sentence, expected, shown)) = wrong {
            self.found = Some(Evidence::new(sentence, shown, event.index, expected));
            return;
        }
        owned.ttl = renewed.ttl;
        let expiry = renewed.clock.saturating_add(renewed.ttl);
        if expiry >= owned.expiry {
            owned.expiry = expiry;
            owned.shown = event.index;
            owned.from = event.time;
        }
    }

    fn released(&mut self, event: &Event, key: (Name, Name), released: &Released) {
        let Some(owned) = self.leases.get_mut(&key) else {
            return;
        };
        if !owned.owner.is(&released.holder, released.token) {
            let (holder, owner) = (&released.holder, &owned.owner);
            self.found = Some(Evidence::new(
                format!(
                    "a release by {} took effect while {} was the owner",
                    named(holder, released.token, &owner.holder),
                    owner.named(holder)
                ),
                [owned.begun],
                event.index,
                "refused: only the owner releases",
            ));
            return;
        }
        owned.released = true;
        owned.shown = event.index;
    }

    fn denied(&mut self, event: &Event, key: (Name, Name), denied: &Denied) {
        let (F::Acquire, Some(request)) = (denied.f, denied.request) else {
            return;
        };
        let Some(owned) = self.leases.get(&key) else {
            return;
        };
        let mine = owned.owner.holder == denied.holder && owned.owner.request == Some(request);
        if mine && owned.in_force(denied.clock) {
            self.found = Some(Evidence::new(
                format!(
                    "request {request} of {} was refused, though it had been granted and was in \
                     force for another {} by the store's clock",
                    called(&denied.holder, ""),
                    span(owned.expiry - denied.clock)
                ),
                [owned.begun, owned.shown],
                event.index,
                "the same grant again",
            ));
        }
    }

    /// A machine's restart may begin its clock anew; promises move along. Whether
    /// it did.
    fn clock_shows(&mut self, store: &Name, clock: Nanos) -> bool {
        let before = self.clocks.shows(store, clock);
        if let Some(before) = before {
            self.restorations.begins_anew(store, before, clock);
            // That one was released outlives every clock.
            self.leases.retain(|(name, _), owned| {
                name != store || owned.released || owned.in_force(before)
            });
            let of_store = self
                .leases
                .iter_mut()
                .filter(|((name, _), _)| name == store);
            for (_, owned) in of_store {
                let left = owned.expiry.saturating_sub(before);
                owned.expiry = clock.saturating_add(left);
            }
        }
        before.is_some()
    }

    /// What an old copy forgot, its operator answers for. That it was put back counts from
    /// when it was: power that goes again as soon as the copy is declared one leaves no
    /// `restored` behind.
    fn forgotten_by(&mut self, node: &str) {
        self.leases.retain(|(store, _), _| store != node);
        self.restorations.forgotten_by(node);
    }

    /// What a restart found is held against what the store had promised. Where
    /// its clock began anew it is not known how long it was away, and who ran out.
    fn came_back(&mut self, event: &Event, recovered: &StoreRecovered) {
        let anew = self.clock_shows(&event.process, recovered.clock);
        let from = (event.process.clone(), Name::default());
        let of_store = self
            .leases
            .range_mut(from..)
            .take_while(|((store, _), _)| *store == event.process);
        for ((_, lease), owned) in of_store {
            let found = recovered.leases.get(lease);
            let holder = found.and_then(|found| found.holder.as_ref());
            let counter = found.map_or(0, |found| found.counter);
            let Some(token) = owned.owner.token.filter(|token| counter <= *token) else {
                // Replaced, or perhaps: a store without tokens does not tell.
                continue;
            };
            let is_there = holder == Some(&owned.owner.holder) && token == counter;
            if owned.released && is_there {
                self.found.get_or_insert_with(|| {
                    Evidence::new(
                        format!(
                            "the store came back with {} as the owner of {lease}, after its release",
                            owned.owner.named("")
                        ),
                        [owned.shown],
                        event.index,
                        "nobody owns it",
                    )
                });
            } else if !is_there && owned.in_force(recovered.clock) {
                if self.releases.may_have_ended(lease, &owned.owner) {
                    owned.released = true;
                } else if !anew {
                    self.found.get_or_insert_with(|| {
                        Evidence::new(
                            format!(
                                "the store came back without the owner of {lease}: {} held it \
                                 for another {} by the store's clock",
                                owned.owner.named(""),
                                span(owned.expiry - recovered.clock)
                            ),
                            [owned.begun, owned.shown],
                            event.index,
                            format!("{} is the owner", owned.owner.named("")),
                        )
                    });
                }
            }
        }
        for (lease, found) in &recovered.leases {
            self.recovered(event, lease, found, recovered.clock);
        }
    }

    /// The recorded owner has its whole ttl again, and no less than it was
    /// promised. An owner that the disk forgot keeps that too.
    fn recovered(&mut self, event: &Event, lease: &Name, found: &RecoveredLease, clock: Nanos) {
        let Some(holder) = &found.holder else { return };
        let key = (event.process.clone(), lease.clone());
        let before = self.leases.get(&key);
        if before.is_some_and(|owned| owned.owner.token > Some(found.counter)) {
            return;
        }
        let same = before.filter(|owned| owned.owner.is(holder, Some(found.counter)));
        let ttl = found
            .ttl
            .or(same.map(|owned| owned.ttl))
            .or(self.ttl)
            .unwrap_or(0);
        let promised = same
            .filter(|owned| !owned.released)
            .map_or(0, |owned| owned.expiry);
        let owned = Owned {
            owner: Owner {
                holder: holder.clone(),
                request: same.and_then(|owned| owned.owner.request),
                token: Some(found.counter),
            },
            ttl,
            expiry: promised.max(clock.saturating_add(ttl)),
            released: false,
            begun: same.map_or(event.index, |owned| owned.begun),
            shown: event.index,
            from: event.time,
        };
        self.leases.insert(key, owned);
    }
}

impl Checker for LeaseLinearizable {
    fn see(&mut self, step: &Step<'_>) {
        self.see_clients(step);
        let event = step.event;
        let seen = match &event.body {
            Body::Observed(seen) => seen,
            Body::Invoke(Op::Release(release)) => return self.releases.sent(release),
            Body::Nemesis(f, fault) => {
                self.faults.see(event);
                for node in restored(f, fault) {
                    self.forgotten_by(node);
                }
                return;
            }
            _ => return,
        };
        let key = |lease: &Name| (event.process.clone(), lease.clone());
        match seen {
            Observation::Granted(granted) => {
                self.clock_shows(&event.process, granted.clock);
                self.granted(event, key(&granted.lease), granted);
            }
            Observation::Renewed(renewed) => {
                self.clock_shows(&event.process, renewed.clock);
                self.renewed(event, key(&renewed.lease), renewed);
            }
            Observation::Released(released) => {
                self.clock_shows(&event.process, released.clock);
                self.released(event, key(&released.lease), released);
            }
            Observation::Denied(denied) => {
                self.clock_shows(&event.process, denied.clock);
                self.denied(event, key(&denied.lease), denied);
            }
            Observation::StoreRecovered(recovered) => {
                self.came_back(event, recovered);
            }
            Observation::Restored(restored) => {
                self.forgotten_by(&event.process);
                self.clocks.shows(&event.process, restored.clock);
                self.restorations.declared(event, restored, self.ttl);
                for (lease, found) in &restored.leases {
                    self.recovered(event, lease, found, restored.clock);
                }
            }
            _ => return,
        }
        self.any = true;
    }

    fn remembered(&self) -> Remembered {
        self.clients
            .remembered()
            .and("leases", self.leases.len() + self.clocks.remembered())
            .and("releases", self.releases.remembered())
            .and("faults", self.faults.remembered())
            .and("stores that were restored", self.restorations.remembered())
    }

    fn found(&self) -> bool {
        self.found.is_some()
    }

    fn verdict(self: Box<Self>) -> Verdict {
        let found = match self.any {
            true => self.found,
            false => self.found_by_client,
        };
        match found {
            Some(evidence) => Verdict::Violated(evidence),
            None if self.any => Verdict::Valid,
            None if !self.clients.any => Verdict::NotClaimed(
                "no events of a lease store (granted, renewed, …) and no acquire answered ok in \
                 this history"
                    .to_owned(),
            ),
            None if !self.timed => Verdict::NotClaimed(
                "no events of a lease store (granted, renewed, …) in this history, and no lease \
                 timing in the header to judge clients' calls by"
                    .to_owned(),
            ),
            None => Verdict::Valid,
        }
    }
}

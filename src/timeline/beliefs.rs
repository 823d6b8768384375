//! Who believed to lead, and how long an expired lease stayed closed.

use std::collections::BTreeMap;

use deposed_checkers::history::{
    Event, Header, Lead, Name, Nanos, Observation, RatePpb, TRUE_RATE, Token,
};

use super::{Condition, Span};

/// See the module.
pub(super) struct Beliefs {
    /// By client and lease.
    open: BTreeMap<(usize, Name), Belief>,
    lock_delay: Nanos,
    /// By lease: who holds it at the store, and until when, true time.
    held: BTreeMap<Name, Held>,
    spans: Vec<Span>,
}

struct Belief {
    token: Option<Token>,
    from: Nanos,
    until: Nanos,
    event: u64,
}

struct Held {
    store: usize,
    expiry: Nanos,
    /// True time from which the store grants it to others.
    free_at: Nanos,
    event: u64,
}

impl Beliefs {
    pub(super) fn new(header: &Header) -> Self {
        let timing = header.lease.as_ref();
        Self {
            open: BTreeMap::new(),
            lock_delay: timing.map_or(0, |timing| timing.lock_delay),
            held: BTreeMap::new(),
            spans: Vec::new(),
        }
    }

    /// Looks at what a node saw; its clock runs at this rate.
    pub(super) fn see(&mut self, event: &Event, lane: usize, seen: &Observation, rate: RatePpb) {
        match seen {
            Observation::Lead(lead) => self.lead(event, lane, lead),
            Observation::Follow(follow) => {
                let key = (lane, follow.lease.clone());
                if let Some(belief) = self.open.remove(&key) {
                    self.close(key, belief, event.time);
                }
            }
            Observation::Granted(granted) => {
                self.granted(&granted.lease, event.time);
                self.hold(event, lane, &granted.lease, granted.ttl, rate);
            }
            Observation::Renewed(renewed) => {
                self.hold(event, lane, &renewed.lease, renewed.ttl, rate);
            }
            // Who lets go owes no delay.
            Observation::Released(released) => drop(self.held.remove(&released.lease)),
            // A ttl runs anew after a restart.
            Observation::StoreRecovered(recovered) => {
                for (lease, found) in &recovered.leases {
                    match (&found.holder, found.ttl) {
                        (Some(_), Some(ttl)) => self.hold(event, lane, lease, ttl, rate),
                        _ => drop(self.held.remove(lease)),
                    }
                }
            }
            _ => {}
        }
    }

    fn lead(&mut self, event: &Event, lane: usize, lead: &Lead) {
        let key = (lane, lead.lease.clone());
        let until = lead.until.unwrap_or(Nanos::MAX);
        let mut from = (event.time, event.index);
        if let Some(belief) = self.open.remove(&key) {
            if belief.token == lead.token && event.time <= belief.until {
                from = (belief.from, belief.event);
            } else {
                self.close(key.clone(), belief, event.time);
            }
        }
        let (from, event) = from;
        let token = lead.token;
        self.open.insert(
            key,
            Belief {
                token,
                from,
                until,
                event,
            },
        );
    }

    fn close(&mut self, (lane, lease): (usize, Name), belief: Belief, now: Nanos) {
        self.spans.push(Span {
            lane,
            from: belief.from,
            to: belief.until.min(now),
            what: Condition::Leads {
                lease,
                token: belief.token,
            },
            event: Some(belief.event),
        });
    }

    fn hold(&mut self, event: &Event, store: usize, lease: &Name, ttl: Nanos, rate: RatePpb) {
        if self.lock_delay == 0 {
            return;
        }
        let expiry = event.time.saturating_add(true_time(ttl, rate));
        let free_at = expiry.saturating_add(true_time(self.lock_delay, rate));
        let held = Held {
            store,
            expiry,
            free_at,
            event: event.index,
        };
        self.held.insert(lease.clone(), held);
    }

    /// Whoever had the lease before has lost it by now.
    fn granted(&mut self, lease: &Name, now: Nanos) {
        if let Some(held) = self.held.remove(lease)
            && held.expiry < now
        {
            self.spans.push(Span {
                lane: held.store,
                from: held.expiry,
                to: held.free_at.min(now),
                what: Condition::LockDelay {
                    lease: lease.clone(),
                },
                event: Some(held.event),
            });
        }
    }

    pub(super) fn finish(mut self, end: Nanos) -> Vec<Span> {
        for (key, belief) in std::mem::take(&mut self.open) {
            self.close(key, belief, end);
        }
        let leases: Vec<Name> = self.held.keys().cloned().collect();
        leases.iter().for_each(|lease| self.granted(lease, end));
        self.spans
    }
}

/// How long, in true time, a clock of this rate takes to count so much.
fn true_time(counted: Nanos, rate: RatePpb) -> Nanos {
    let taken = u128::from(counted) * u128::from(TRUE_RATE) / u128::from(rate.max(1));
    Nanos::try_from(taken).unwrap_or(Nanos::MAX)
}

//! `failover`: once faults are healed, a leader writes within the bound.
//!
//! Judged from the nemesis's mark `calm` on, where the store says what it granted or the
//! header's `traffic` says how often leaders write (`write_every`), so that a write is
//! owed: for every lease that anybody tried to acquire, until its first acknowledged write
//! or delete:
//!
//! ```text
//! bound = (ttl + lock_delay) / store rate
//!       + (try_timeout + backoff_max) / slowest client rate
//!       + one-ways * max_latency + SLACK
//! ```
//!
//! Who the store is, and how slow its clock, is known where it says what it granted; else
//! it may be the slowest of all. Where neither it nor the header says that a write is owed,
//! a leader is: whoever keeps asking gets the lease (`asked.rs`).
//!
//! 14 one-way latencies are connect (3: the handshake's), acquire (2), connect (3),
//! fence, read and write (2 each); on replicas, 18: a fence has two steps there, and a
//! replica that a read or write needs for its majority may have to be repaired first
//! (2 each). After a release that took effect in calm the same
//! holds without ttl and lock-delay, from when somebody next asks for the lease, unless a grant that no client was told of came
//! between, or one to a request that another copy of had been refused, so that its
//! client had given it up: that one must run out first. (So that rule needs the store's
//! account.) A lease asked for later than
//! calm is judged from then on. A history that ends within its bound is too short to
//! tell; it ends at its last event, or at calm plus the header's `calm` (ns) if that is
//! later, so that a system in which nothing happens any more is judged.
//!
//! A leader must also be steady: two consecutive lost renewals end no term (`steady.rs`).
//! Where the store gives no account, that is judged if there is a calm mark: who marks
//! calm records faults.

mod asked;
mod obstacle;

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::Remembered;
use crate::faults::Faults;
use crate::history::{
    Body, Event, F, Header, Kind, LeaseTiming, Name, Nanos, NetworkTiming, Observation, Op,
    RatePpb, TRUE_RATE,
};
use crate::judge::{Checker, Step};
use crate::rates::Rates;
use crate::steady::Steady;
use crate::units::{span, time};
use crate::verdict::{Evidence, Verdict};
use asked::Asking;
use obstacle::Obstacle;

/// Added to every bound: a few ticks of a simulation, or a scheduler's whim.
pub(crate) const SLACK: Nanos = 10_000_000;

/// One-way latencies from nothing to an acknowledged write.
const ONE_WAYS: u64 = 14;
/// The same on replicas.
const ONE_WAYS_ON_REPLICAS: u64 = 18;

pub(crate) struct Failover {
    timing: Option<LeaseTiming>,
    network: Option<NetworkTiming>,
    /// One-way latencies from nothing to an acknowledged write.
    one_ways: u64,
    /// How long the calm was to be, if the header tells.
    calm_length: Option<Nanos>,
    rates: Rates,
    store: Option<Name>,
    clients: BTreeSet<Name>,
    leases: BTreeMap<Name, Progress>,
    /// Those that may wait for a write.
    unserved: BTreeSet<Name>,
    /// When the calm began, and the event that marks it.
    calm: Option<(Nanos, u64)>,
    last: Nanos,
    /// See [`Failover::bounds`].
    bounds: Option<(Nanos, Nanos)>,
    /// The rates that they were counted with: the store's, and the slowest client's.
    bound_by: (RatePpb, RatePpb),
    /// What the nemesis did to clocks, for the evidence.
    faults: Faults,
    steady: Steady,
    found: Option<Evidence>,
    /// The header tells that leaders write all the time.
    writes_are_owed: bool,
    /// What clients know.
    asking: Asking,
    found_by_client: Option<Evidence>,
}

/// How a lease fares in calm.
struct Progress {
    /// When it was first asked for.
    asked: Nanos,
    /// It was written under since calm began.
    written: bool,
    released: Option<Freed>,
    /// The newest request of each holder that the store refused.
    refused: BTreeMap<Name, u64>,
    /// The last thing in calm that kept a write away.
    obstacle: Option<Obstacle>,
}

/// A release that took effect in calm and has no successor's write yet.
struct Freed {
    event: u64,
    /// When somebody first asked for the lease after that; nobody need want it.
    wanted: Option<Nanos>,
    /// Granted since: holder, request (none: one given up), and whether the client knows.
    granted: Option<(Name, Option<u64>, bool)>,
}

impl Failover {
    pub fn new(header: &Header) -> Self {
        Failover {
            timing: header.lease.clone(),
            network: header.network.clone(),
            one_ways: match header.has_replicas() {
                true => ONE_WAYS_ON_REPLICAS,
                false => ONE_WAYS,
            },
            calm_length: header.rest.get("calm").and_then(serde_json::Value::as_u64),
            rates: Rates::new(header),
            store: None,
            clients: BTreeSet::new(),
            leases: BTreeMap::new(),
            unserved: BTreeSet::new(),
            calm: None,
            last: 0,
            bounds: None,
            bound_by: (TRUE_RATE, TRUE_RATE),
            faults: Faults::default(),
            steady: Steady::new(header),
            found: None,
            writes_are_owed: writes_are_owed(header),
            asking: Asking::default(),
            found_by_client: None,
        }
    }

    /// Whether every lease owes a write in calm.
    fn by_writes(&self) -> bool {
        self.store.is_some() || self.writes_are_owed
    }

    /// Where no write is known to be owed.
    fn see_asking(&mut self, step: &Step<'_>) {
        if self.by_writes() || self.found_by_client.is_some() {
            return;
        }
        let in_calm = self.calm.filter(|(calm, _)| step.event.time > *calm);
        let Some((_, mark)) = in_calm else {
            self.asking.see(step, Nanos::MAX, Nanos::MAX);
            return;
        };
        self.settle_bounds();
        let (Some((bound, _)), Some(gap)) = (self.bounds, self.gap()) else {
            return;
        };
        let Some((lease, since)) = self.asking.see(step, gap, bound) else {
            return;
        };
        let evidence = Evidence::new(
            format!(
                "{lease} was asked for without a break for more than {} in calm, and nobody got \
                 it or showed that it leads",
                span(bound)
            ),
            [mark, since],
            step.event.index,
            format!("granted within {}", span(bound)),
        );
        let inferred = "inferred from calls: no granted events, and no traffic in the header";
        let reckoning = [inferred.to_owned()].into_iter();
        self.found_by_client = Some(evidence.reckoned(reckoning.chain(self.reckoning(bound))));
    }

    /// A try and a backoff by the slowest client's clock.
    fn gap(&self) -> Option<Nanos> {
        let timing = self.timing.as_ref()?;
        let tries = timing.try_timeout.saturating_add(timing.backoff_max);
        Some(true_time(tries, self.slowest_client()).saturating_add(SLACK))
    }

    fn slowest_client(&self) -> RatePpb {
        let rates = self.clients.iter().map(|client| self.rates.now(client));
        rates.min().unwrap_or(TRUE_RATE)
    }

    fn store_rate(&self) -> RatePpb {
        // While it is unknown which node is the store, it may be the slowest of all.
        match &self.store {
            Some(store) => self.rates.now(store),
            None => self.rates.slowest(),
        }
    }

    fn settle_bounds(&mut self) {
        if self.bounds.is_none() {
            self.bounds = self.bounds();
            self.bound_by = (self.store_rate(), self.slowest_client());
        }
    }

    /// The bound on a failover, and on one that needs no expiry.
    fn bounds(&self) -> Option<(Nanos, Nanos)> {
        let (timing, network) = (self.timing.as_ref()?, self.network.as_ref()?);
        let store = self.store_rate();
        let expiry = timing.ttl.saturating_add(timing.lock_delay);
        let tries = timing.try_timeout.saturating_add(timing.backoff_max);
        let without_expiry = true_time(tries, self.slowest_client())
            .saturating_add(network.max_latency.saturating_mul(self.one_ways))
            .saturating_add(SLACK);
        Some((
            without_expiry.saturating_add(true_time(expiry, store)),
            without_expiry,
        ))
    }

    /// What a bound is made of.
    fn reckoning(&self, bound: Nanos) -> Option<String> {
        let (timing, network) = (self.timing.as_ref()?, self.network.as_ref()?);
        let (full, _) = self.bounds?;
        let (store, client) = self.bound_by;
        let expiry = match bound == full {
            true => format!(
                "a ttl of {} and a lock-delay of {} by the store's clock{}, ",
                span(timing.ttl),
                span(timing.lock_delay),
                in_truth(timing.ttl.saturating_add(timing.lock_delay), store)
            ),
            false => String::new(),
        };
        Some(format!(
            "{} are {expiry}a try of {} and a backoff of {} by the slowest client's{}, {} messages \
             of at most {}, and {} of slack",
            span(bound),
            span(timing.try_timeout),
            span(timing.backoff_max),
            in_truth(
                timing.try_timeout.saturating_add(timing.backoff_max),
                client
            ),
            self.one_ways,
            span(network.max_latency),
            span(SLACK)
        ))
    }

    /// Convicts every wait that was over before `now`.
    fn look_for_overdue(&mut self, now: Nanos) {
        let Some((calm, mark)) = self.calm else {
            return;
        };
        // The rates are those in force when the instant of the mark was over; who
        // joins later may be slower.
        self.settle_bounds();
        let Some((bound, free_bound)) = self.bounds else {
            return;
        };
        for lease in &self.unserved {
            let Some(progress) = self.leases.get(lease).filter(|_| self.found.is_none()) else {
                return;
            };
            let due = calm.max(progress.asked).saturating_add(bound);
            if !progress.written && now > due {
                let sentence = format!(
                    "{lease} had no acknowledged write for {} in calm",
                    span(bound)
                );
                self.found = Some(self.overdue(sentence, mark, progress, due, bound));
            }
            let Some(freed) = &progress.released else {
                continue;
            };
            let orphan = freed.granted.as_ref().is_some_and(|(_, _, told)| !told);
            let Some(wanted) = freed.wanted else { continue };
            let due = wanted.saturating_add(free_bound);
            if !orphan && now > due {
                let sentence = format!(
                    "{lease} had no acknowledged write for {} after a release",
                    span(free_bound)
                );
                self.found = Some(self.overdue(sentence, freed.event, progress, due, free_bound));
            }
        }
    }

    /// Of a write that was owed from an event on, the evidence: what kept it away.
    fn overdue(
        &self,
        sentence: String,
        since: u64,
        progress: &Progress,
        due: Nanos,
        bound: Nanos,
    ) -> Evidence {
        let obstacle = progress.obstacle.as_ref();
        let sentence = match obstacle {
            Some(obstacle) => format!("{sentence}: {obstacle}"),
            None => sentence,
        };
        let wrong = obstacle.filter(|obstacle| obstacle.is_wrong());
        let clocks =
            obstacle.and_then(|obstacle| obstacle.reckoning(self.store.as_ref(), &self.faults));
        let shown = obstacle.map(|obstacle| obstacle.event);
        Evidence::new(
            sentence,
            [since].into_iter().chain(shown),
            wrong.map_or(since, |obstacle| obstacle.event),
            format!("a write acknowledged by {}", time(due)),
        )
        .reckoned(self.reckoning(bound).into_iter().chain(clocks))
    }

    /// Remembers what keeps a write away in calm.
    fn see_obstacle(&mut self, step: &Step<'_>) {
        if self.calm.is_none() || self.found.is_some() {
            return;
        }
        let Some((lease, obstacle)) = Obstacle::of(step) else {
            return;
        };
        if let Some(progress) = self.leases.get_mut(lease)
            && progress
                .obstacle
                .as_ref()
                .is_none_or(|before| before.yields_to(&obstacle))
        {
            progress.obstacle = Some(obstacle);
        }
    }

    fn client_call(&mut self, event: &Event, step: &Step<'_>) {
        let Some(op) = step.invoked.map(|invoked| &invoked.op) else {
            return;
        };
        if event.kind != Kind::Ok || self.calm.is_none() {
            return;
        }
        let Some(progress) = self.leases.get_mut(op.lease()) else {
            return;
        };
        match op {
            Op::Write(_) | Op::Delete(_) => {
                progress.written = true;
                progress.released = None;
                progress.obstacle = None;
                self.unserved.remove(op.lease());
            }
            Op::Acquire(op) => {
                let granted = progress
                    .released
                    .as_mut()
                    .and_then(|freed| freed.granted.as_mut());
                if let Some((holder, request, told)) = granted {
                    *told |= *holder == op.holder && *request == Some(op.request);
                }
            }
            _ => {}
        }
    }
}

/// Whether the header tells that somebody always wants to write.
fn writes_are_owed(header: &Header) -> bool {
    let traffic = header.rest.get("traffic");
    let every = traffic.and_then(|traffic| traffic.get("write_every")?.as_u64());
    every.is_some_and(|every| every > 0)
}

/// What a clock that does not run true makes of a duration.
fn in_truth(duration: Nanos, rate: RatePpb) -> String {
    if rate == TRUE_RATE {
        return String::new();
    }
    let parts = format!("{:09}", rate % TRUE_RATE);
    let parts = match parts.trim_end_matches('0') {
        "" => String::new(),
        parts => format!(".{parts}"),
    };
    let (whole, truth) = (rate / TRUE_RATE, span(true_time(duration, rate)));
    format!(" at a rate of {whole}{parts} ({truth} in truth)")
}

/// How long a clock of this rate takes to count a duration.
fn true_time(duration: Nanos, rate: RatePpb) -> Nanos {
    let scaled = u128::from(duration) * u128::from(TRUE_RATE);
    u64::try_from(scaled.div_ceil(u128::from(rate.max(1)))).unwrap_or(Nanos::MAX)
}

impl Checker for Failover {
    fn see(&mut self, step: &Step<'_>) {
        let event = step.event;
        self.steady.see(step);
        // What is due at an instant may come as its last event.
        if event.time > self.last {
            self.look_for_overdue(event.time);
        }
        self.last = event.time;
        self.see_asking(step);
        self.see_obstacle(step);
        match &event.body {
            Body::Invoke(Op::Acquire(op)) => {
                if !self.clients.contains(&event.process) {
                    self.clients.insert(event.process.clone());
                    self.bounds = None;
                }
                if let Some(progress) = self.leases.get_mut(&op.lease) {
                    if let Some(freed) = &mut progress.released {
                        freed.wanted = freed.wanted.or(Some(event.time));
                    }
                } else {
                    let fresh = Progress {
                        asked: event.time,
                        written: false,
                        released: None,
                        refused: BTreeMap::new(),
                        obstacle: None,
                    };
                    self.leases.insert(op.lease.clone(), fresh);
                    self.unserved.insert(op.lease.clone());
                }
            }
            Body::Complete(F::Acquire | F::Write | F::Delete, _) => self.client_call(event, step),
            Body::Nemesis(f, _) => {
                self.rates.see(event);
                self.faults.see(event);
                if f == "calm" && self.calm.is_none() {
                    self.calm = Some((event.time, event.index));
                    self.asking.calm();
                }
            }
            Body::Observed(Observation::Granted(granted)) => {
                if self.store.is_none() {
                    self.store = Some(event.process.clone());
                    self.bounds = None;
                }
                if let Some(progress) = self.leases.get_mut(&granted.lease)
                    && let Some(freed) = &mut progress.released
                {
                    let refused = progress.refused.get(&granted.holder);
                    let request = Some(granted.request).filter(|request| refused != Some(request));
                    freed.granted = Some((granted.holder.clone(), request, false));
                }
            }
            Body::Observed(Observation::Denied(denied)) => {
                if let Some(progress) = self.leases.get_mut(&denied.lease)
                    && let Some(request) = denied.request
                {
                    progress.refused.insert(denied.holder.clone(), request);
                }
            }
            Body::Observed(Observation::Released(released)) if self.calm.is_some() => {
                if let Some(progress) = self.leases.get_mut(&released.lease) {
                    progress.obstacle = None;
                    progress.released = Some(Freed {
                        event: event.index,
                        wanted: None,
                        granted: None,
                    });
                    self.unserved.insert(released.lease.clone());
                }
            }
            _ => {}
        }
    }

    fn remembered(&self) -> Remembered {
        let refused = self.leases.values().map(|progress| progress.refused.len());
        self.rates
            .remembered()
            .with(self.steady.remembered())
            .with(self.asking.remembered())
            .and("leases", self.leases.len())
            .and("faults", self.faults.remembered())
            .and("processes", self.clients.len())
            .and("holders and their requests", refused.sum())
    }

    fn found(&self) -> bool {
        // The store's account, by which a write is owed, may be yet to come.
        (self.by_writes() && self.found.is_some())
            || (self.store.is_some() && self.steady.found.is_some())
    }

    fn verdict(mut self: Box<Self>) -> Verdict {
        let last = self.last;
        let planned = match (self.calm, self.calm_length) {
            (Some((calm, _)), Some(length)) => calm.saturating_add(length),
            _ => 0,
        };
        let end = last.max(planned);
        if self.found.is_none() {
            self.look_for_overdue(end);
        }
        self.steady.end(last);
        let by_writes = self.by_writes();
        let faults_are_told = self.store.is_some() || self.calm.is_some();
        let found = [
            self.found.take().filter(|_| by_writes),
            self.steady.found.take().filter(|_| faults_are_told),
            self.found_by_client.take().filter(|_| !by_writes),
        ];
        let found = found.into_iter().flatten();
        if let Some(evidence) = found.min_by_key(|found| found.culprit) {
            return Verdict::Violated(evidence);
        }
        let not_claimed = |why: &str| Verdict::NotClaimed(why.to_owned());
        let Some((calm, _)) = self.calm else {
            return not_claimed("no calm mark in this history");
        };
        if self.timing.is_none() {
            return not_claimed(
                "no lease timing in the header (lease.ttl, try_timeout, backoff_max)",
            );
        }
        if self.network.is_none() {
            return not_claimed("no network timing in the header (network.max_latency)");
        }
        if self.leases.is_empty() {
            return not_claimed("no acquire in this history");
        }
        let bound = self.bounds().map_or(0, |(bound, _)| bound);
        let served = match by_writes {
            true => self.leases.values().all(|progress| progress.written),
            false => self.leases.keys().all(|lease| {
                let asked = self.asking.leases.get(lease);
                asked.is_some_and(|asked| asked.led)
            }),
        };
        if !served && !by_writes && end.saturating_sub(calm) > bound {
            return not_claimed(
                "no granted events in this history and no traffic in its header, and a lease was \
                 not asked for long enough in calm to tell",
            );
        }
        if !served {
            return Verdict::NotClaimed(format!(
                "the history ends {} after calm began, within the bound of {}",
                span(end.saturating_sub(calm)),
                span(bound)
            ));
        }
        Verdict::Valid
    }
}

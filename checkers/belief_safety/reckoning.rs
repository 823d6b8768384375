//! Why two led at once, by the clocks: what the deposed leader had counted, and what the
//! store, when it gave the lease away.

use std::collections::VecDeque;

use super::Belief;
use crate::history::{Granted, LeaseTiming, Name, Nanos, Released, Renewed, TRUE_RATE, Token};
use crate::rates::Rates;
use crate::units::{span, time};

/// How many of the latest terms are remembered. The two that overlap are among them, unless
/// a whole row of owners came and went within one belief.
const REMEMBERED: usize = 16;

/// What the store last said of a term.
struct Promise {
    holder: Name,
    token: Option<Token>,
    granted: Nanos,
    /// When it began to count, in true time: the grant, or the last renewal.
    from: Nanos,
    ttl: Nanos,
}

/// What the store said of a lease's latest terms.
#[derive(Default)]
pub(super) struct Promises {
    /// The node that said it.
    pub store: Option<Name>,
    latest: VecDeque<Promise>,
    /// The last release that it took: whose, and when.
    released: Option<(Name, Nanos)>,
}

impl Promises {
    pub fn granted(&mut self, store: &Name, now: Nanos, granted: &Granted) {
        if self.store.as_ref() != Some(store) {
            self.store = Some(store.clone());
        }
        if self.latest.len() == REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back(Promise {
            holder: granted.holder.clone(),
            token: granted.token,
            granted: now,
            from: now,
            ttl: granted.ttl,
        });
    }

    pub fn renewed(&mut self, now: Nanos, renewed: &Renewed) {
        if let Some(promise) = self.to(&renewed.holder, renewed.token) {
            (promise.from, promise.ttl) = (now, renewed.ttl);
        }
    }

    pub fn released(&mut self, now: Nanos, released: &Released) {
        self.released = Some((released.holder.clone(), now));
    }

    fn to(&mut self, holder: &Name, token: Option<Token>) -> Option<&mut Promise> {
        let theirs = |promise: &&mut Promise| promise.holder == *holder && promise.token == token;
        self.latest.iter_mut().rev().find(theirs)
    }

    fn behind(&self, belief: &Belief) -> Option<&Promise> {
        let theirs =
            |promise: &&Promise| promise.holder == belief.holder && promise.token == belief.token;
        self.latest.iter().rev().find(theirs)
    }
}

/// The arithmetic of an overlap that begins now.
pub(super) fn reckon(
    (deposed, other): (&Belief, &Belief),
    now: Nanos,
    rates: &Rates,
    promises: Option<&Promises>,
    timing: Option<&LeaseTiming>,
) -> Vec<String> {
    let mut lines = vec![both(deposed, other, now)];
    lines.extend(counted(deposed, rates, timing));
    let promise = promises.and_then(|promises| promises.behind(deposed));
    // Whatever it counted from (an answer, a later try, a restart), a right one is earlier.
    if let Some(promise) = promise
        && deposed.sent_is_known
        && deposed.sent > promise.from
    {
        lines.push(format!(
            "that is later than the store began to, at {}: {} did not count from the send of \
             what it was granted",
            time(promise.from),
            deposed.process
        ));
    }
    let successor = promises.and_then(|promises| promises.behind(other));
    if let (Some(promise), Some(successor), Some(promises)) = (promise, successor, promises) {
        let pair = (deposed, other);
        lines.extend(given_away(promise, successor, pair, promises, rates));
    }
    lines
}

fn both(deposed: &Belief, other: &Belief, now: Nanos) -> String {
    let ends = [deposed.until, other.until];
    match ends.into_iter().flatten().min() {
        Some(end) => format!(
            "both led from {} on, and by their own clocks would have until {}: {} of true time",
            time(now),
            time(end),
            span(end.saturating_sub(now))
        ),
        None => format!("both led from {} on, and neither had an end", time(now)),
    }
}

/// What the deposed leader's clock counts, from the send behind its belief to the end.
fn counted(deposed: &Belief, rates: &Rates, timing: Option<&LeaseTiming>) -> Option<String> {
    let until = deposed.until.filter(|_| deposed.sent_is_known)?;
    let own = nanos(rates.elapsed(&deposed.process, deposed.sent, until));
    let mut line = format!(
        "{} counted from {} until {}: {}",
        deposed.process,
        time(deposed.sent),
        time(until),
        by_clock(own, until.saturating_sub(deposed.sent))
    );
    if let Some(timing) = timing {
        let kept = u128::from(TRUE_RATE.saturating_sub(timing.max_drift_ppb));
        let safe = nanos(u128::from(timing.ttl) * kept).saturating_sub(timing.safety_margin);
        line += &format!(
            "; of a ttl of {} less drift and margin, {} are safe",
            span(timing.ttl),
            span(safe)
        );
    }
    Some(line)
}

/// What the store had counted of the deposed leader's ttl, when it granted the lease anew.
fn given_away(
    promise: &Promise,
    successor: &Promise,
    (deposed, other): (&Belief, &Belief),
    promises: &Promises,
    rates: &Rates,
) -> Option<String> {
    let store = promises.store.as_ref()?;
    let granted = successor.granted;
    let who = format!(
        "{store} granted {} the lease at {}",
        other.process,
        time(granted)
    );
    let within = |at: &Nanos| (promise.from..=granted).contains(at);
    if let Some((holder, at)) = promises.released.as_ref().filter(|(_, at)| within(at)) {
        return Some(match *holder == deposed.holder {
            true => format!(
                "{who}: {} had released it at {}, and went on believing",
                deposed.process,
                time(*at)
            ),
            false => format!(
                "{who}: it had taken a release by {holder} at {}, though {} held it",
                time(*at),
                deposed.holder
            ),
        });
    }
    let counted = nanos(rates.elapsed(store, promise.from, granted));
    let clock = by_clock(counted, granted.saturating_sub(promise.from));
    let owed = format!(
        "of the {} it owed {} from {} on",
        span(promise.ttl),
        deposed.process,
        time(promise.from)
    );
    Some(match counted < promise.ttl {
        true => format!("{who}, when it had counted only {clock} {owed}"),
        false => format!("{who}, when it had counted {clock}, all {owed}"),
    })
}

/// A stretch by a node's own clock, with the true one where they differ.
fn by_clock(own: Nanos, truth: Nanos) -> String {
    match own == truth {
        true => span(own),
        false => format!("{} by its own clock ({} in truth)", span(own), span(truth)),
    }
}

/// Nanoseconds of a clock, from nanoseconds times parts per billion.
fn nanos(counted: u128) -> Nanos {
    Nanos::try_from(counted / u128::from(TRUE_RATE)).unwrap_or(Nanos::MAX)
}

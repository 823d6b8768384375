//! The steady-leader rule of `failover`: two consecutive lost renewals end no term.
//!
//! Convicted: a term that ended by running out, where nothing but lost messages had
//! gone wrong (no other fault since the start of the history or since calm, and the
//! term began a whole window after that), though at most two renewal tries in a row
//! had gone without an ok by then. Not judged: a term whose holder sent a release, was told
//! that its token is stale, or dropped its belief before it ran out; a term whose last
//! window was entered later than a try after the send it counts from (the acquire was
//! retried: those losses count too, and the window was partly spent on them); a system
//! that never renews.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::Remembered;
use crate::history::{
    Body, Event, Header, Kind, LeaseTiming, Name, Nanos, Observation, Op, STALE_TOKEN, TRUE_RATE,
    Token,
};
use crate::judge::Step;
use crate::units::{span, time};
use crate::verdict::Evidence;

/// Tries without an ok that end no term.
const TOLERATED: usize = 2;

/// By (lease, holder, token).
type Key = (Name, Name, Option<Token>);

struct Term {
    process: Name,
    began: (Nanos, u64),
    until: Option<Nanos>,
    /// What its belief counts from.
    sent: Option<Nanos>,
    lead: u64,
    /// Renewal tries since the last one that was answered ok, by their invoke.
    tries: Vec<u64>,
    /// Its window was entered late.
    late: bool,
    /// It ended, or will end, for a reason that this rule does not judge.
    excused: bool,
}

pub(crate) struct Steady {
    timing: Option<LeaseTiming>,
    terms: BTreeMap<Key, Term>,
    /// Leases that anybody renews.
    renewed: BTreeSet<Name>,
    /// Since when nothing but message loss goes on; None while a fault may.
    quiet_since: Option<Nanos>,
    calm: bool,
    pub found: Option<Evidence>,
}

impl Steady {
    pub fn new(header: &Header) -> Self {
        Steady {
            timing: header.lease.clone(),
            terms: BTreeMap::new(),
            renewed: BTreeSet::new(),
            quiet_since: Some(0),
            calm: false,
            found: None,
        }
    }

    pub fn see(&mut self, step: &Step<'_>) {
        if self.timing.is_none() {
            return;
        }
        let event = step.event;
        match &event.body {
            Body::Nemesis(f, _) => self.fault(event, f),
            Body::Observed(Observation::Lead(lead)) => {
                let key = (lead.lease.clone(), lead.holder.clone(), lead.token);
                let term = self.terms.entry(key).or_insert_with(|| Term {
                    process: event.process.clone(),
                    began: (event.time, event.index),
                    until: None,
                    sent: None,
                    lead: event.index,
                    tries: Vec::new(),
                    late: false,
                    excused: false,
                });
                let spent = lead.sent.map_or(0, |sent| event.time.saturating_sub(sent));
                let try_timeout = self.timing.as_ref().map_or(0, |timing| timing.try_timeout);
                term.late = try_timeout > 0 && spent > try_timeout;
                term.until = lead.until;
                term.sent = lead.sent;
                term.lead = event.index;
            }
            Body::Observed(Observation::Follow(follow)) => {
                let key = (follow.lease.clone(), follow.holder.clone(), follow.token);
                if let Some(term) = self.terms.remove(&key)
                    && term.until.is_some_and(|until| until <= event.time)
                {
                    self.ran_out(&key, &term, Some(event.index));
                }
            }
            Body::Invoke(Op::Renew(op)) => {
                if !self.renewed.contains(&op.lease) {
                    self.renewed.insert(op.lease.clone());
                }
                let key = (op.lease.clone(), op.holder.clone(), op.token);
                if let Some(term) = self.terms.get_mut(&key)
                    && term.until.is_none_or(|until| event.time < until)
                    && term.tries.len() < 16
                {
                    term.tries.push(event.index);
                }
            }
            Body::Invoke(Op::Release(op)) => {
                let key = (op.lease.clone(), op.holder.clone(), op.token);
                if let Some(term) = self.terms.get_mut(&key) {
                    term.excused = true;
                }
            }
            Body::Complete(..) => self.completed(step),
            _ => {}
        }
    }

    pub fn remembered(&self) -> Remembered {
        Remembered::default()
            .and("beliefs", self.terms.len())
            .and("leases", self.renewed.len())
    }

    fn fault(&mut self, event: &Event, f: &str) {
        match f {
            // A rule that loses messages, each frame that any rule hit, the end of the run;
            // where a pause that counted when it was armed has landed; a fault that found
            // nobody to strike.
            "lose" | "lost" | "delayed" | "duplicated" | "end" | "paused" | "void" => {}
            // Nothing ever happened: it is as quiet after the mark as before it.
            "calm" if self.quiet_since == Some(0) => self.calm = true,
            // What comes after the mark heals.
            _ => {
                self.calm |= f == "calm";
                self.quiet_since = self.calm.then_some(event.time.max(1));
            }
        }
    }

    fn completed(&mut self, step: &Step<'_>) {
        let Some(invoked) = step.invoked else { return };
        match &invoked.op {
            Op::Renew(op) if step.event.kind == Kind::Ok => {
                let key = (op.lease.clone(), op.holder.clone(), op.token);
                if let Some(term) = self.terms.get_mut(&key) {
                    term.tries.retain(|try_| *try_ > invoked.index);
                }
            }
            op => {
                let error = step.event.error.as_ref();
                if error.is_some_and(|error| error.kind == STALE_TOKEN) {
                    let of_term = self.terms.iter_mut().filter(|((lease, _, token), term)| {
                        lease == op.lease()
                            && *token == op.token()
                            && term.process == step.event.process
                    });
                    of_term.for_each(|(_, term)| term.excused = true);
                }
            }
        }
    }

    /// Judges the terms that ran out without a word, after the last event.
    pub fn end(&mut self, last: Nanos) {
        for (key, term) in std::mem::take(&mut self.terms) {
            if term.until.is_some_and(|until| until <= last) {
                self.ran_out(&key, &term, None);
            }
        }
    }

    fn ran_out(&mut self, key: &Key, term: &Term, follow: Option<u64>) {
        let Some(timing) = &self.timing else { return };
        let window = u128::from(timing.ttl)
            * u128::from(TRUE_RATE.saturating_sub(timing.max_drift_ppb))
            / u128::from(TRUE_RATE);
        let quiet = match self.quiet_since {
            Some(0) => true,
            Some(since) => u128::from(term.began.0) >= u128::from(since) + window,
            None => false,
        };
        let renews = self.renewed.contains(&key.0);
        let excused = term.excused || term.late || term.tries.len() > TOLERATED;
        if excused || !quiet || !renews || self.found.is_some() {
            return;
        }
        let culprit = follow.unwrap_or(term.lead);
        let sentence = match term.tries.len() {
            0 => format!(
                "the term of {} ran out, and no renewal had been lost",
                term.process
            ),
            1 => format!(
                "the term of {} ran out after one lost renewal",
                term.process
            ),
            lost => format!(
                "the term of {} ran out after {lost} lost renewals in a row",
                term.process
            ),
        };
        let shown = term.tries.iter().copied().chain([term.began.1, term.lead]);
        let expected = "a term that two lost renewals do not end";
        let evidence = Evidence::new(sentence, shown, culprit, expected);
        self.found = Some(evidence.reckoned(reckoning(timing, term)));
    }
}

/// What the term counted, and how many tries that is.
fn reckoning(timing: &LeaseTiming, term: &Term) -> Option<String> {
    let (sent, until) = (term.sent?, term.until?);
    let counted = until.saturating_sub(sent);
    let kept = u128::from(TRUE_RATE.saturating_sub(timing.max_drift_ppb));
    let safe = u128::from(timing.ttl) * kept / u128::from(TRUE_RATE);
    let safe = Nanos::try_from(safe).unwrap_or(Nanos::MAX);
    let fit = match counted.checked_div(timing.try_timeout) {
        Some(tries) => format!(
            ", in which {tries} tries of at most {} fit",
            span(timing.try_timeout)
        ),
        None => String::new(),
    };
    Some(format!(
        "{} counted from {} until {}: {} of true time{fit}; of a ttl of {} less drift and margin, \
         {} are safe",
        term.process,
        time(sent),
        time(until),
        span(counted),
        span(timing.ttl),
        span(safe.saturating_sub(timing.safety_margin))
    ))
}

//! What clients can know of a lease's terms: for how long one is surely in force.
//!
//! A grant took place after its request was first sent, and before its answer came;
//! from then on the lease runs its whole ttl by the store's clock, and a renewal that
//! was answered ok gives it a whole ttl from its own send. A restart only adds to that.
//! How fast the store's clock ran is bounded by the fastest clock that the header and
//! the nemesis know of, and by the header's drift. A term whose holder sent a release
//! may have ended with it. Who names no ttl has the header's. When a term has surely *ended* no client can know: after a
//! restart that nobody saw, the owner has its whole ttl again.
//!
//! Each pair of terms is looked at by itself, which misses some of what a search of every
//! placement finds (`tests/exhaustive/clients.rs`; one in thirty there). A term is taken to
//! run from its own send, though an earlier one may have kept it waiting, or a release
//! that had to come first, so that it ends later than is known here. And a term whose
//! release was answered is forgotten, so that the late answer to an earlier grant is not
//! held against it.

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::history::{
    Acquire, Answer, Body, Event, Header, Kind, Name, Nanos, Op, Release, Renew, Token,
};
use crate::judge::{Invoked, Step};
use crate::owners::named;
use crate::rates::Rates;
use crate::requests::{Moment, Requests};
use crate::units::{span, time};
use crate::verdict::Evidence;

/// The error kind of an acquire that is refused because somebody holds the lease.
const HELD: &str = "held";

/// A grant that was answered ok.
#[derive(Clone)]
pub(crate) struct Term {
    pub holder: Name,
    request: u64,
    pub token: Option<Token>,
    pub ttl: Nanos,
    /// The send that the term surely runs from: the first of the acquire, or a renewal's.
    pub from: Moment,
    /// The answer that says so.
    pub shown: u64,
    /// The first send of the acquire.
    asked: u64,
    /// The acquire that was answered.
    pub invoke: u64,
    /// The answer to the acquire.
    pub answer: Moment,
    released: bool,
}

impl Term {
    /// In words, in a sentence that tells of another holder beside it.
    pub fn named(&self, beside: &str) -> String {
        named(&self.holder, self.token, beside)
    }

    /// The events that show since when it surely runs.
    pub fn grounds(&self) -> [u64; 3] {
        [self.answer.event, self.from.event, self.shown]
    }
}

/// What a client was told that a term in force rules out.
pub(crate) enum RuledOut {
    Granted(TooEarly),
    /// The acquire of a term in force was tried again, and refused; invoke and answer.
    Refused(Box<Term>, u64, u64),
    /// A term was renewed after a later token was granted: what, and the grant's answer.
    Renewed(Renew, (u64, u64), Token, u64),
}

/// A grant within an earlier term, or within the delay after it.
pub(crate) struct TooEarly {
    pub first: Box<Term>,
    pub then: Box<Term>,
    /// How long after the first's `from` it came at most, by the store's clock.
    pub after: Nanos,
}

impl TooEarly {
    /// Shown by this event; `within` is a clause of the sentence.
    pub fn evidence(&self, event: &Event, within: &str, expected: String) -> Evidence {
        let (first, then) = (&self.first, &self.then);
        Evidence::new(
            format!(
                "{} was granted the lease at most {} by the store's clock after {} had asked \
                 for its {}{within} and nobody sent a release",
                then.named(&first.holder),
                span(self.after),
                first.named(&then.holder),
                span(first.ttl)
            ),
            first
                .grounds()
                .into_iter()
                .chain([then.invoke, then.answer.event]),
            event.index,
            expected,
        )
        .reckoned([format!(
            "from the send at {} to the answer at {} no store's clock within the drift bound \
             counts more than {}",
            time(first.from.time),
            time(then.answer.time),
            span(self.after)
        )])
    }
}

#[derive(Default)]
struct Lease {
    terms: Vec<Term>,
    /// The highest token that anybody was told, and the event.
    highest: Option<(Token, u64)>,
    requests: Requests,
}

pub(crate) struct Terms {
    rates: Rates,
    /// `None`: the header says nothing of time.
    drift: Option<u64>,
    /// Of a request that names none.
    ttl: Nanos,
    /// What a lease stays closed for after its ttl.
    delay: Nanos,
    leases: BTreeMap<Name, Lease>,
    /// Open acquires of what has been granted already.
    again: BTreeMap<u64, Term>,
    /// Open renewals: when they were sent, and the higher token that had been granted
    /// by then, with its event.
    renewing: BTreeMap<u64, (Nanos, Option<(Token, u64)>)>,
    pub any: bool,
}

impl Terms {
    pub fn new(header: &Header, delay: Nanos) -> Self {
        Terms {
            rates: Rates::new(header),
            drift: header.lease.as_ref().map(|lease| lease.max_drift_ppb),
            ttl: header.lease.as_ref().map_or(0, |lease| lease.ttl),
            delay,
            leases: BTreeMap::new(),
            again: BTreeMap::new(),
            renewing: BTreeMap::new(),
            any: false,
        }
    }

    pub fn remembered(&self) -> Remembered {
        let leases = self.leases.values();
        let (requests, terms) = leases.fold((0, 0), |(requests, terms), lease| {
            let more = lease.requests.remembered();
            (requests + more, terms + lease.terms.len())
        });
        self.rates
            .remembered()
            .and("leases", self.leases.len())
            .and("holders and their requests", requests)
            .and("terms in force", terms)
            .and("open calls", self.again.len() + self.renewing.len())
    }

    /// Looks at one event.
    pub fn see(&mut self, step: &Step<'_>) -> Option<RuledOut> {
        let event = step.event;
        self.rates.see(event);
        match &event.body {
            Body::Invoke(Op::Acquire(op)) => self.acquires(event, op),
            Body::Invoke(Op::Renew(op)) => self.renews(event, op),
            Body::Invoke(Op::Release(op)) => self.releases(op),
            Body::Complete(_, answer) => {
                let invoked = step.invoked?;
                match &invoked.op {
                    Op::Acquire(op) if event.kind == Kind::Ok => {
                        return self.acquired(event, invoked, op, answer);
                    }
                    Op::Acquire(_) => return self.not_acquired(event, invoked),
                    Op::Renew(op) => return self.renewed(event, invoked, op),
                    Op::Release(op) if event.kind != Kind::Info => {
                        if let Some(lease) = self.leases.get_mut(&op.lease)
                            && lease.requests.released(op)
                        {
                            let gone = |term: &Term| term.released && term.holder == op.holder;
                            lease.terms.retain(|term| !gone(term));
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        None
    }

    fn acquires(&mut self, event: &Event, op: &Acquire) {
        let lease = self.leases.entry(op.lease.clone()).or_default();
        let sent = Moment {
            time: event.time,
            event: event.index,
        };
        lease.requests.asks(op, sent);
        // Who does not number its requests may ask for a new term.
        let granted = lease
            .terms
            .iter()
            .find(|term| term.holder == op.holder && term.request == op.request && op.request != 0);
        if let Some(term) = granted {
            self.again.insert(event.index, term.clone());
        }
    }

    fn acquired(
        &mut self,
        event: &Event,
        invoked: &Invoked,
        op: &Acquire,
        answer: &Answer,
    ) -> Option<RuledOut> {
        self.any = true;
        self.again.remove(&invoked.index);
        let token = match answer {
            Answer::Token(token) => Some(*token),
            _ => None,
        };
        let lease = self.leases.get_mut(&op.lease)?;
        if let Some(token) = token
            && lease.highest.is_none_or(|(highest, _)| highest < token)
        {
            lease.highest = Some((token, event.index));
        }
        let (request, first) = (op.request, lease.requests.granted(op)?);
        let ttl = asked_or(op.ttl, self.ttl)?;
        // Answered again: with another token it is another grant.
        let differs = |other: Option<Token>| other.zip(token).is_some_and(|(a, b)| a != b);
        let known = lease.terms.iter_mut().find(|term| {
            let numbered = request != 0 || term.asked == first.event;
            term.holder == op.holder && term.request == request && numbered && !differs(term.token)
        });
        if let Some(known) = known {
            // Without a number it may be another grant, made since.
            if request == 0 {
                known.invoke = invoked.index;
                known.answer = Moment {
                    time: event.time,
                    event: event.index,
                };
            }
            return None;
        }
        let released = lease.requests.may_be_released(&op.holder, token);
        let term = Term {
            holder: op.holder.clone(),
            request,
            token,
            ttl,
            from: first,
            shown: event.index,
            asked: first.event,
            invoke: invoked.index,
            answer: Moment {
                time: event.time,
                event: event.index,
            },
            released,
        };
        let runs = Runs::of(&self.rates, self.drift?, self.delay);
        let lease = self.leases.get_mut(&op.lease)?;
        lease.terms.retain(|known| runs.matters(known, event.time));
        let found = lease
            .terms
            .iter()
            .find_map(|known| runs.ruled_out(known, &term));
        lease.terms.push(term);
        found
    }

    fn not_acquired(&mut self, event: &Event, invoked: &Invoked) -> Option<RuledOut> {
        if let (Op::Acquire(op), Kind::Fail) = (&invoked.op, event.kind)
            && let Some(lease) = self.leases.get_mut(&op.lease)
        {
            lease.requests.refused(op);
        }
        let granted = self.again.remove(&invoked.index)?;
        let held = event.error.as_ref().is_some_and(|error| error.kind == HELD);
        if event.kind != Kind::Fail || !held {
            return None;
        }
        let lease = self.leases.get(invoked.op.lease())?;
        let term = lease
            .terms
            .iter()
            .find(|term| term.holder == granted.holder && term.request == granted.request)?;
        let runs = Runs::of(&self.rates, self.drift?, self.delay);
        let lives = !term.released && runs.most(term, event.time) < term.ttl;
        lives.then(|| RuledOut::Refused(Box::new(term.clone()), invoked.index, event.index))
    }

    fn renews(&mut self, event: &Event, op: &Renew) {
        let highest = self.leases.get(&op.lease).and_then(|lease| lease.highest);
        let overtaken = highest.filter(|(highest, _)| op.token.is_some_and(|own| own < *highest));
        self.renewing.insert(event.index, (event.time, overtaken));
    }

    fn renewed(&mut self, event: &Event, invoked: &Invoked, op: &Renew) -> Option<RuledOut> {
        let (sent, overtaken) = self.renewing.remove(&invoked.index)?;
        if event.kind != Kind::Ok {
            return None;
        }
        if let Some((highest, shown)) = overtaken {
            let renewal = (invoked.index, event.index);
            return Some(RuledOut::Renewed(op.clone(), renewal, highest, shown));
        }
        let runs = Runs::of(&self.rates, self.drift?, self.delay);
        let terms = &mut self.leases.get_mut(&op.lease)?.terms;
        // One without a token is of the holder's latest term.
        let own = terms.iter().rposition(|term| {
            let same = op.token.is_none() || op.token == term.token;
            term.holder == op.holder && same
        })?;
        let term = &mut terms[own];
        let ttl = asked_or(op.ttl, self.ttl)?;
        // What a shorter one adds is not counted.
        if ttl < term.ttl || sent < term.from.time {
            return None;
        }
        term.ttl = ttl;
        term.from = Moment {
            time: sent,
            event: invoked.index,
        };
        term.shown = event.index;
        let term = &terms[own];
        terms
            .iter()
            .filter(|other| other.answer.event != term.answer.event)
            .find_map(|other| runs.ruled_out(term, other))
    }

    fn releases(&mut self, op: &Release) {
        let lease = self.leases.entry(op.lease.clone()).or_default();
        for term in &mut lease.terms {
            let same = op.token.is_none() || term.token.is_none() || op.token == term.token;
            term.released |= term.holder == op.holder && same;
        }
        lease.requests.releases(op);
    }
}

/// A ttl as it was asked for, or else the header's; none where neither tells.
pub(crate) fn asked_or(asked: Nanos, header: Nanos) -> Option<Nanos> {
    Some(if asked == 0 { header } else { asked }).filter(|ttl| *ttl > 0)
}

/// How long a term can have run by the store's clock.
struct Runs<'a> {
    rates: &'a Rates,
    drift: u64,
    delay: Nanos,
}

impl<'a> Runs<'a> {
    fn of(rates: &'a Rates, drift: u64, delay: Nanos) -> Self {
        Runs {
            rates,
            drift,
            delay,
        }
    }

    fn most(&self, term: &Term, until: Nanos) -> Nanos {
        self.rates.most_elapsed(self.drift, term.from.time, until)
    }

    /// Whether nobody else can have been granted the lease by then.
    fn closed(&self, term: &Term, until: Nanos) -> bool {
        self.most(term, until) < term.ttl.saturating_add(self.delay)
    }

    /// Once it is over, a renewal that is on its way may yet prolong it.
    fn matters(&self, term: &Term, now: Nanos) -> bool {
        let closed = term.ttl.saturating_add(self.delay);
        self.most(term, now) < closed.saturating_mul(2)
    }

    fn ruled_out(&self, a: &Term, b: &Term) -> Option<RuledOut> {
        let (first, then) = in_order(a, b)?;
        // Who does not number its requests may be told again of what it has; two tokens
        // are two grants.
        let tokens = first.token.is_some() && then.token.is_some();
        let numbered = first.request.min(then.request) > 0;
        let again = first.holder == then.holder && !numbered && !tokens;
        if again || first.released || !self.closed(first, then.answer.time) {
            return None;
        }
        let after = self.most(first, then.answer.time);
        let (first, then) = (Box::new(first.clone()), Box::new(then.clone()));
        Some(RuledOut::Granted(TooEarly { first, then, after }))
    }
}

/// Which of two terms came first: by token, or, where there is none, by one having
/// been answered before the other was asked for. Tokens that went back tell nothing:
/// they are `token-monotonicity`'s.
fn in_order<'a>(a: &'a Term, b: &'a Term) -> Option<(&'a Term, &'a Term)> {
    let before = |first: &Term, then: &Term| first.answer.event < then.asked;
    let (first, then) = match (a.token, b.token) {
        (Some(one), Some(other)) if one == other => return None,
        (Some(one), Some(other)) if one < other => (a, b),
        (Some(_), Some(_)) => (b, a),
        _ if before(a, b) => (a, b),
        _ if before(b, a) => (b, a),
        _ => return None,
    };
    (!before(then, first)).then_some((first, then))
}

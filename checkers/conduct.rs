//! `conduct`: a leader that learns it is deposed stops; one that resigns stops first.
//!
//! Convicted, after a call of a process was answered `stale-token` for its current
//! term: a fence, write, delete or read with that token invoked later; a new belief in
//! that token (where beliefs are recorded); the old one not ended when the process next
//! calls, at a later instant. (Not at the very instant of the answer: on a real clock the
//! answer and the end of belief are recorded one after the other.)
//! And a release invoked while the belief in its token is still recorded as live, or
//! while work under that token is open. An answer to a straggler of an earlier term
//! says nothing of the current one.

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::history::{
    Answer, Body, Event, Follow, Kind, Lead, Name, Nanos, Observation, Op, Release, STALE_TOKEN,
    Token,
};
use crate::judge::{Checker, Invoked, Step};
use crate::rates::{is_crash, nodes};
use crate::verdict::{Evidence, Verdict};

/// What a process has on one lease.
#[derive(Default)]
struct Term {
    /// The newest token it was granted, believed in or used.
    current: Option<Token>,
    /// Told stale for its current term: the token, and the answer.
    told: Option<(Token, u64)>,
    /// Its live beliefs: holder, token, end, event.
    beliefs: Vec<Belief>,
    /// Open work: its invoke and token.
    open: Vec<(u64, Option<Token>)>,
}

struct Belief {
    holder: Name,
    token: Option<Token>,
    until: Option<Nanos>,
    index: u64,
}

impl Belief {
    fn lives_at(&self, now: Nanos) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

/// A belief whose holder was told that its token is stale.
struct MustEnd {
    token: Token,
    told_at: Nanos,
    answer: u64,
    lead: u64,
}

#[derive(Default)]
pub(crate) struct Conduct {
    /// By (process, lease).
    terms: BTreeMap<(Name, Name), Term>,
    /// Beliefs that must end before their process next calls, by (process, lease).
    must_end: BTreeMap<(Name, Name), Vec<MustEnd>>,
    calls: bool,
    found: Option<Evidence>,
}

impl Conduct {
    pub fn new() -> Self {
        Self::default()
    }

    /// The process calls: what had to end before must have.
    fn settle(&mut self, event: &Event, lease: &Name) {
        if self.must_end.is_empty() {
            return;
        }
        let whose = (event.process.clone(), lease.clone());
        let Some(must_end) = self.must_end.get_mut(&whose) else {
            return;
        };
        let term = self.terms.get(&whose);
        let mut found = None;
        must_end.retain(|due| {
            if event.time <= due.told_at {
                return true;
            }
            let mut beliefs = term.into_iter().flat_map(|term| &term.beliefs);
            if beliefs.any(|belief| belief.index == due.lead && belief.lives_at(event.time)) {
                found = Some(Evidence::new(
                    format!(
                        "{} was told that token {} is stale and went on believing",
                        event.process, due.token
                    ),
                    [due.lead],
                    due.answer,
                    "its belief ends at once",
                ));
            }
            false
        });
        if must_end.is_empty() {
            self.must_end.remove(&whose);
        }
        self.found = self.found.take().or(found);
    }

    fn invoked(&mut self, event: &Event, op: &Op) {
        self.calls |= !matches!(op, Op::Acquire(_) | Op::Renew(_));
        let term = self
            .terms
            .entry((event.process.clone(), op.lease().clone()))
            .or_default();
        match op {
            Op::Acquire(_) | Op::Renew(_) => {}
            Op::Release(release) => {
                self.found = resigned_early(event, release, term);
            }
            _ => {
                let token = op.token();
                if let Some((stale, answer)) = term.told.filter(|(stale, _)| token == Some(*stale))
                {
                    self.found = Some(Evidence::new(
                        format!(
                            "{} sent a {} with token {stale} after it was told that it is stale",
                            event.process,
                            op.f().name()
                        ),
                        [answer],
                        event.index,
                        "no more work under that token",
                    ));
                }
                // An observer's read belongs to no term.
                if !matches!(op, Op::Read(_)) || token.is_some() {
                    term.open.push((event.index, token));
                }
                term.current = term.current.max(token);
            }
        }
    }

    fn completed(&mut self, event: &Event, answer: &Answer, invoked: &Invoked) {
        let op = &invoked.op;
        let key = (event.process.clone(), op.lease().clone());
        let Some(term) = self.terms.get_mut(&key) else {
            return;
        };
        if let (Op::Acquire(_), Answer::Token(token), Kind::Ok) = (op, answer, event.kind) {
            term.current = Some(*token);
        }
        if matches!(op, Op::Acquire(_) | Op::Renew(_) | Op::Release(_)) {
            return;
        }
        term.open.retain(|(invoke, _)| *invoke != invoked.index);
        let stale = event
            .error
            .as_ref()
            .is_some_and(|error| error.kind == STALE_TOKEN);
        let Some(token) = op
            .token()
            .filter(|token| stale && term.current == Some(*token))
        else {
            return;
        };
        term.told = term
            .told
            .filter(|(told, _)| *told == token)
            .or(Some((token, event.index)));
        let lives = |belief: &&Belief| belief.token == Some(token) && belief.lives_at(event.time);
        if let Some(belief) = term.beliefs.iter().find(lives) {
            self.must_end.entry(key).or_default().push(MustEnd {
                token,
                told_at: event.time,
                answer: event.index,
                lead: belief.index,
            });
        }
    }

    fn lead(&mut self, event: &Event, lead: &Lead) {
        let key = (event.process.clone(), lead.lease.clone());
        let term = self.terms.entry(key.clone()).or_default();
        if lead.token.is_some()
            && term
                .current
                .is_none_or(|current| lead.token >= Some(current))
        {
            term.current = lead.token;
        }
        let same = |belief: &Belief| belief.holder == lead.holder && belief.token == lead.token;
        let before = term
            .beliefs
            .iter()
            .position(same)
            .map(|at| term.beliefs.swap_remove(at));
        if let Some((token, answer)) = term.told.filter(|(told, _)| lead.token == Some(*told)) {
            let now = event.time;
            let over = lead.until.is_some_and(|until| until <= now);
            // A belief that has yet to end may be rewritten, as when a clock's rate changes; and
            // one that lived when it was told may be told to be over.
            let rewrites = |due: &MustEnd| {
                let rewritten = before.as_ref().filter(|belief| belief.index == due.lead);
                due.token == token
                    && rewritten.is_some_and(|belief| {
                        belief.lives_at(now) || over && belief.lives_at(due.told_at)
                    })
            };
            let mut pending = self.must_end.get_mut(&key).into_iter().flatten();
            let pending = pending.find(|due| rewrites(due));
            match pending {
                Some(due) => due.lead = event.index,
                None => {
                    self.found = Some(Evidence::new(
                        format!(
                            "{} believed in token {token} after it was told that it is stale",
                            event.process
                        ),
                        [answer],
                        event.index,
                        "no more belief in that token",
                    ));
                }
            }
        }
        term.beliefs.retain(|belief| belief.lives_at(event.time));
        term.beliefs.push(Belief {
            holder: lead.holder.clone(),
            token: lead.token,
            until: lead.until,
            index: event.index,
        });
    }

    fn follow(&mut self, event: &Event, follow: &Follow) {
        let key = (event.process.clone(), follow.lease.clone());
        let Some(term) = self.terms.get_mut(&key) else {
            return;
        };
        term.beliefs.retain(|belief| {
            belief.holder != follow.holder
                || (follow.token.is_some() && belief.token != follow.token)
        });
    }
}

fn resigned_early(event: &Event, release: &Release, term: &Term) -> Option<Evidence> {
    let who = &event.process;
    let believes = term.beliefs.iter().find(|belief| {
        belief.holder == release.holder
            && belief.token == release.token
            && belief.lives_at(event.time)
    });
    if let Some(belief) = believes {
        return Some(Evidence::new(
            format!("{who} sent its release while it still believed"),
            [belief.index],
            event.index,
            "its belief ends first",
        ));
    }
    let (invoke, _) = term
        .open
        .iter()
        .find(|(_, token)| *token == release.token)?;
    Some(Evidence::new(
        format!("{who} sent its release while its own work was still open"),
        [*invoke],
        event.index,
        "its work ends first",
    ))
}

impl Checker for Conduct {
    fn see(&mut self, step: &Step<'_>) {
        let event = step.event;
        match &event.body {
            Body::Invoke(op) => {
                self.settle(event, op.lease());
                if self.found.is_none() {
                    self.invoked(event, op);
                }
            }
            Body::Complete(_, answer) => {
                if let Some(invoked) = step.invoked {
                    self.completed(event, answer, invoked);
                }
            }
            Body::Observed(Observation::Lead(lead)) => self.lead(event, lead),
            Body::Observed(Observation::Follow(follow)) => self.follow(event, follow),
            Body::Nemesis(f, fault) if is_crash(f) => {
                for node in nodes(fault) {
                    let of_node = self
                        .terms
                        .iter_mut()
                        .filter(|((process, _), _)| process == node);
                    of_node.for_each(|(_, term)| {
                        term.beliefs.clear();
                        term.open.clear();
                    });
                }
            }
            _ => {}
        }
    }

    fn remembered(&self) -> Remembered {
        let terms = self.terms.values();
        let (beliefs, open) = terms.fold((0, 0), |(beliefs, open), term| {
            (beliefs + term.beliefs.len(), open + term.open.len())
        });
        Remembered::default()
            .and("processes", self.terms.len())
            .and("beliefs", beliefs + self.must_end.len())
            .and("open calls", open)
    }

    fn found(&self) -> bool {
        self.found.is_some()
    }

    fn verdict(self: Box<Self>) -> Verdict {
        // A belief that had to end before a next call that never came may yet have.
        match self.found {
            Some(evidence) => Verdict::Violated(evidence),
            None if self.calls => Verdict::Valid,
            None => {
                Verdict::NotClaimed("no work and no release of a client in this history".to_owned())
            }
        }
    }
}

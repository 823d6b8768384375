//! `conduct`: a leader that learns it is deposed stops; one that resigns stops first.
//!
//! Convicted, after a call of a process was answered `stale-token` for its current
//! term: a fence, write, delete or read with that token invoked later; its belief in
//! that token not ended at that very instant (where beliefs are recorded); a new one.
//! And a release invoked while the belief in its token is still recorded as live, or
//! while work under that token is open. An answer to a straggler of an earlier term
//! says nothing of the current one.

use std::collections::BTreeMap;

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

#[derive(Default)]
pub(crate) struct Conduct {
    /// By (process, lease).
    terms: BTreeMap<(Name, Name), Term>,
    /// Beliefs that must end at `now`: whose, the token, the answer, the lead.
    must_end: Vec<((Name, Name), Token, u64, u64)>,
    now: Nanos,
    calls: bool,
    found: Option<Evidence>,
}

impl Conduct {
    pub fn new() -> Self {
        Self::default()
    }

    /// The instant is over: what had to end at it must have.
    fn settle(&mut self) {
        for (key, token, answer, lead) in std::mem::take(&mut self.must_end) {
            let Some(term) = self.terms.get(&key) else {
                continue;
            };
            let believes = term.beliefs.iter().any(|belief| belief.index == lead);
            if believes && self.found.is_none() {
                self.found = Some(Evidence::new(
                    format!(
                        "{} was told that token {token} is stale and went on believing",
                        key.0
                    ),
                    [lead],
                    answer,
                    "its belief ends at once",
                ));
            }
        }
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
            self.must_end.push((key, token, event.index, belief.index));
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
            let rewritten = before.as_ref().map(|belief| belief.index);
            // A belief that has yet to end at this instant is judged when it is over.
            let pending = self.must_end.iter_mut().find(|(whose, told, _, lead)| {
                *whose == key && *told == token && Some(*lead) == rewritten
            });
            match pending {
                Some((_, _, _, lead)) => *lead = event.index,
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
    let who = &release.holder;
    let believes = term.beliefs.iter().find(|belief| {
        belief.holder == *who && belief.token == release.token && belief.lives_at(event.time)
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
        if event.time > self.now {
            self.settle();
            self.now = event.time;
            if self.found.is_some() {
                return;
            }
        }
        match &event.body {
            Body::Invoke(op) => self.invoked(event, op),
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

    fn found(&self) -> bool {
        self.found.is_some()
    }

    fn verdict(self: Box<Self>) -> Verdict {
        // A belief that had to end at the very last instant may yet have.
        match self.found {
            Some(evidence) => Verdict::Violated(evidence),
            None if self.calls => Verdict::Valid,
            None => {
                Verdict::NotClaimed("no work and no release of a client in this history".to_owned())
            }
        }
    }
}

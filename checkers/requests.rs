//! What holders have asked of a lease: since when a grant may date, and what release is
//! still under way.
//!
//! An acquire that is tried again under one request id counts from its first send. Who
//! does not number its requests may be told of what an earlier one was granted, so it
//! counts from the first send since all that it had asked was refused or released.

use std::collections::BTreeMap;

use crate::history::{Acquire, Name, Nanos, Release, Token};

/// An instant of true time, and the event of it.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub time: Nanos,
    pub event: u64,
}

/// The requests of one lease, by holder.
#[derive(Default)]
pub(crate) struct Requests {
    asks: BTreeMap<Name, Ask>,
    releases: BTreeMap<Name, Resigned>,
}

struct Ask {
    /// The newest; 0: not numbered.
    request: u64,
    /// The first send that an answer may go back to.
    first: Option<Moment>,
    /// How many are open, or were never answered.
    unanswered: usize,
    /// What it was granted was released: an answer tells of nothing new.
    spent: bool,
}

struct Resigned {
    /// The highest of them; `None`: any.
    token: Option<Token>,
    /// How many may yet take effect.
    unanswered: usize,
}

impl Requests {
    pub fn asks(&mut self, op: &Acquire, now: Moment) {
        let ask = self.asks.entry(op.holder.clone()).or_insert(Ask {
            request: op.request,
            first: None,
            unanswered: 0,
            spent: false,
        });
        if ask.request < op.request {
            (ask.request, ask.first, ask.spent) = (op.request, None, false);
            ask.unanswered = 0;
        }
        if ask.request == op.request {
            ask.first = ask.first.or(Some(now));
            ask.unanswered += 1;
        }
    }

    /// The acquire was refused. One that is not numbered leaves nothing behind.
    pub fn refused(&mut self, op: &Acquire) {
        if let Some(ask) = self.asks.get_mut(&op.holder)
            && ask.request == op.request
        {
            ask.unanswered = ask.unanswered.saturating_sub(1);
            if op.request == 0 && ask.unanswered == 0 {
                ask.first = None;
            }
        }
    }

    /// The acquire was answered ok: the first send that the grant may go back to. `None`
    /// for a late answer to an earlier request, whose first send is forgotten.
    pub fn granted(&mut self, op: &Acquire) -> Option<Moment> {
        let ask = self.asks.get_mut(&op.holder)?;
        if ask.request != op.request {
            return None;
        }
        ask.unanswered = ask.unanswered.saturating_sub(1);
        ask.first.filter(|_| !ask.spent)
    }

    pub fn releases(&mut self, op: &Release) {
        let resigned = self.releases.entry(op.holder.clone()).or_insert(Resigned {
            token: op.token,
            unanswered: 0,
        });
        let both = resigned.token.zip(op.token);
        resigned.token = both.map(|(before, token)| before.max(token));
        resigned.unanswered += 1;
    }

    /// A release was answered: it can no longer end what is granted from here on. Whether
    /// nothing that the holder asked for before is under way any more, nor an answer to it.
    pub fn released(&mut self, op: &Release) -> bool {
        if let Some(resigned) = self.releases.get_mut(&op.holder) {
            resigned.unanswered = resigned.unanswered.saturating_sub(1);
            if resigned.unanswered == 0 {
                self.releases.remove(&op.holder);
            }
        }
        let over = !self.releases.contains_key(&op.holder);
        let ask = self.asks.get_mut(&op.holder);
        let Some(ask) = ask.filter(|ask| over && ask.unanswered == 0) else {
            return false;
        };
        match ask.request {
            0 => ask.first = None,
            _ => ask.spent = true,
        }
        true
    }

    /// Whether a release under way may end a grant to this holder with this token.
    pub fn may_be_released(&self, holder: &Name, token: Option<Token>) -> bool {
        self.releases.get(holder).is_some_and(|resigned| {
            resigned.token.is_none() || token.is_none() || resigned.token >= token
        })
    }

    /// How many there are.
    pub fn remembered(&self) -> usize {
        self.asks.len() + self.releases.len()
    }
}

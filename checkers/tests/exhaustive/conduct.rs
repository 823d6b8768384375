//! `conduct`, stated again: what each process knew when it called, from all that came before.

use deposed_checkers::history::*;
use deposed_checkers::verdict::Check;
use proptest::prelude::*;

use crate::noise::{Call, May, Noise, calls, crashed, moves};
use crate::{Shares, compare_many, header, verdict_of};

fn works(call: &Call<'_>) -> bool {
    call.op.holder().is_none()
}

fn lead_of<'a>(event: &'a Event, process: &str, lease: &Name) -> Option<&'a Lead> {
    match &event.body {
        Body::Observed(Observation::Lead(lead)) => {
            (event.process == process && lead.lease == *lease).then_some(lead)
        }
        _ => None,
    }
}

/// A process and a lease.
struct Who<'a> {
    events: &'a [Event],
    all: Vec<&'a Call<'a>>,
    process: &'a Name,
    lease: &'a Name,
}

impl<'a> Who<'a> {
    /// Its current term before an event: granted last; higher ones that it believed in or
    /// used count since.
    fn current(&self, before: usize) -> Option<Token> {
        let mut current = None;
        for (at, event) in self.events[..before].iter().enumerate() {
            if let Some(lead) = lead_of(event, self.process, self.lease) {
                current = current.max(lead.token);
            }
            for call in &self.all {
                if call.invoke == at && works(call) {
                    current = current.max(call.op.token());
                }
                if call.ok() == Some(at) && call.granted().is_some() {
                    current = call.granted();
                }
            }
        }
        current
    }

    /// The token that it was told last is stale, when it was its current one, and since when.
    fn told(&self, before: usize) -> Option<(Token, usize)> {
        let mut told: Option<(Token, usize)> = None;
        for at in 0..before {
            let ends =
                |call: &&&Call<'_>| call.end.is_some_and(|(end, _)| end == at) && works(call);
            let Some(call) = self.all.iter().find(ends) else {
                continue;
            };
            let error = self.events[at].error.as_ref();
            let token = call
                .op
                .token()
                .filter(|token| self.current(at) == Some(*token));
            if let Some(token) = token
                && error.is_some_and(|error| error.kind == STALE_TOKEN)
            {
                told = told
                    .filter(|(before, _)| *before == token)
                    .or(Some((token, at)));
            }
        }
        told
    }

    /// Whether its belief in a token, if it has one, lives at an instant, of what came before
    /// an event.
    fn believes(&self, token: Option<Token>, before: usize, now: Nanos) -> bool {
        let since = crashed(self.events, self.process, before);
        let told = |event: &Event| match &event.body {
            Body::Observed(Observation::Lead(lead)) => {
                let mine = event.process == *self.process && lead.lease == *self.lease;
                (mine && lead.token == token).then_some(lead.until.is_none_or(|until| until > now))
            }
            Body::Observed(Observation::Follow(follow)) => {
                let mine = event.process == *self.process && follow.lease == *self.lease;
                (mine && follow.token == token).then_some(false)
            }
            _ => None,
        };
        self.events[since..before]
            .iter()
            .rev()
            .find_map(told)
            .unwrap_or(false)
    }

    /// Whether it may send this call.
    fn keeps(&self, call: &Call<'_>) -> bool {
        let (at, now) = (call.invoke, self.events[call.invoke].time);
        if works(call) {
            let told = self.told(at);
            if told.is_some_and(|(token, _)| call.op.token() == Some(token)) {
                return false;
            }
        }
        if let Op::Release(op) = call.op {
            let since = crashed(self.events, self.process, at);
            let open = self.all.iter().any(|other| {
                works(other)
                    && (since..at).contains(&other.invoke)
                    && other.end.is_none_or(|(end, _)| end > at)
                    && other.op.token() == op.token
            });
            if open || self.believes(op.token, at, now) {
                return false;
            }
        }
        true
    }
}

/// A belief that lived when its process was told that it is stale is over by the process's
/// first call at a later instant; and no other one in that token begins.
fn ends_what_is_stale(who: &Who<'_>) -> bool {
    let answers = (0..who.events.len()).filter(|at| {
        let ends = |call: &&&Call<'_>| call.end.is_some_and(|(end, _)| end == *at) && works(call);
        let stale = who.events[*at]
            .error
            .as_ref()
            .is_some_and(|error| error.kind == STALE_TOKEN);
        let current = who.current(*at);
        let call = who.all.iter().find(ends);
        stale && call.is_some_and(|call| call.op.token().is_some() && call.op.token() == current)
    });
    let next_call = |from: usize| {
        let told_at = who.events[from].time;
        let later = who
            .all
            .iter()
            .filter(|call| call.invoke > from && who.events[call.invoke].time > told_at);
        later.map(|call| call.invoke).min()
    };
    let mut kept = true;
    for at in answers {
        let token = who.current(at);
        if !who.believes(token, at, who.events[at].time) {
            continue;
        }
        // It went on, if the belief was there all the time.
        if let Some(next) = next_call(at) {
            let whole = (at..=next).all(|then| who.believes(token, then, who.events[then].time));
            kept &= !whole;
        }
    }
    for at in 0..who.events.len() {
        let Some(lead) = lead_of(&who.events[at], who.process, who.lease) else {
            continue;
        };
        let Some((token, told)) = who.told(at).filter(|(token, _)| lead.token == Some(*token))
        else {
            continue;
        };
        let whole = (told..=at).all(|then| who.believes(Some(token), then, who.events[then].time));
        let lived = who.believes(Some(token), told, who.events[told].time) && whole;
        let not_due = next_call(told).is_none_or(|next| next > at);
        // Over when it begins, it is what is left of the one before.
        let over = lead.until.is_some_and(|until| until <= who.events[at].time);
        let left = over && who.believes(Some(token), at, who.events[told].time);
        kept &= not_due && (lived || left);
    }
    kept
}

#[test]
fn conduct_is_the_rule() {
    use May::*;
    let may = [
        Acquire, Acquire, Acquire, Done, Done, Done, Done, Write, Write, Write, Fence, Read,
        IsStale, IsStale, IsStale, IsStale, IsStale, Lost, Release, Release, Release, Lead, Lead,
        Lead, Lead, Follow, Crash, Renew,
    ];
    compare_many(
        (3..24u8, moves(20..60)),
        |(wrong, moves), shares: &Shares| {
            let noise = Noise {
                may: &may,
                leases: 1 + wrong % 2,
                at_once: 2,
                wrong,
                instant: 1,
            };
            let events = noise.history(&moves);
            let calls = calls(&events);
            let asks = |call: &Call<'_>| matches!(call.op.f(), F::Acquire | F::Renew);
            let mut kept = true;
            for process in ["a", "b"].map(Name::from) {
                for lease in ["leader", "shard"].map(Name::from) {
                    let own =
                        |call: &&Call<'_>| *call.process == process && *call.op.lease() == lease;
                    let who = Who {
                        events: &events,
                        all: calls.iter().filter(own).collect(),
                        process: &process,
                        lease: &lease,
                    };
                    kept &= who.all.iter().all(|call| who.keeps(call)) && ends_what_is_stale(&who);
                }
            }
            let found = verdict_of(Check::Conduct, &header(), &events);
            if kept && calls.iter().all(asks) {
                prop_assert_eq!(found.word(), "not-claimed");
                return Result::Ok(());
            }
            shares.compare(&found, kept, &events)
        },
    );
}

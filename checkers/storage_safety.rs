//! `storage-safety`: nothing lands below a token that storage has seen, whatever
//! clocks and disks do.
//!
//! Node side, per storage node: an `applied` or `fenced` below the highest token
//! that node had applied, fenced or found after a restart; and a restart
//! (`recovered`) that found less than that, since a token is durable before it
//! counts as seen. Client side, across
//! nodes: a write, delete or fence that was acknowledged, though invoked after a
//! higher token's fence, write or delete had been acknowledged. Both are judged
//! where both are recorded: replicas promise the first each and the second
//! together. A retry of a write that was not answered is left out of the second: storage may repeat the first try's answer.

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::history::{Body, Event, F, Kind, Name, Observation, Op, Token};
use crate::judge::{Checker, Step};
use crate::retries::Retries;
use crate::verdict::{Evidence, Verdict};

/// How many tokens of a lease are remembered with whom they were used by.
const REMEMBERED: usize = 64;

#[derive(Default)]
pub(crate) struct StorageSafety {
    /// The highest token seen and the event that shows it, by (storage node, lease).
    seen: BTreeMap<(Name, Name), (Token, u64)>,
    /// The highest token acknowledged and the acknowledgement, by lease.
    acknowledged: BTreeMap<Name, (Token, u64)>,
    /// Open calls below an acknowledged token, by their invoke.
    doomed: BTreeMap<u64, Doomed>,
    /// Who last used a token, by lease: the highest [`REMEMBERED`].
    users: BTreeMap<Name, BTreeMap<Token, Name>>,
    retries: Retries,
    judged: bool,
    found: Option<Evidence>,
}

/// How many answers of storage nodes to a call are remembered: more than there are replicas.
const ANSWERS: usize = 16;

/// An open call below an acknowledged token.
struct Doomed {
    seen: Token,
    /// The event that shows it.
    shown: u64,
    f: F,
    lease: Name,
    token: Token,
    seq: Option<u64>,
    /// What storage nodes did with it.
    answers: Vec<u64>,
    /// Those that refused it.
    refused_by: Vec<Name>,
}

impl StorageSafety {
    pub fn new() -> Self {
        Self::default()
    }

    fn land(&mut self, event: &Event, f: F, lease: &Name, token: Token) {
        self.judged = true;
        let key = (event.process.clone(), lease.clone());
        let highest = self.seen.entry(key).or_insert((token, event.index));
        if token < highest.0 {
            let how = if f == F::Fence { "was taken" } else { "landed" };
            let (seen, shown) = *highest;
            let whose = self.whose(lease, token, seen);
            let sentence = below(f, token, how, seen) + &whose;
            self.found = Some(refused(sentence, seen, [shown], event.index));
        } else if token > highest.0 {
            *highest = (token, event.index);
        }
    }

    /// All that the node had seen must have been found, lease by lease.
    fn recovered(&mut self, event: &Event, highest: &BTreeMap<Name, Token>) {
        let from = (event.process.clone(), Name::default());
        let of_node = self
            .seen
            .range(from..)
            .take_while(|((node, _), _)| *node == event.process);
        for ((_, lease), &(seen, shown)) in of_node {
            let found = highest.get(lease).copied();
            if found.unwrap_or(0) < seen {
                self.found = Some(forgot(lease, found, seen, shown, event.index));
                return;
            }
        }
        for (lease, token) in highest {
            let key = (event.process.clone(), lease.clone());
            let highest = self.seen.entry(key).or_insert((*token, event.index));
            if *token > highest.0 {
                *highest = (*token, event.index);
            }
        }
    }

    fn uses(&mut self, event: &Event, lease: &Name, token: Token) {
        let users = self.users.entry(lease.clone()).or_default();
        if users.get(&token) != Some(&event.process) {
            users.insert(token, event.process.clone());
            if users.len() > REMEMBERED {
                users.pop_first();
            }
        }
    }

    /// Whose the token is, and whose the higher one, as the end of a sentence.
    fn whose(&self, lease: &Name, token: Token, seen: Token) -> String {
        let user = |token| self.users.get(lease).and_then(|users| users.get(&token));
        match (user(token), user(seen)) {
            (Some(own), Some(other)) if own == other => format!(": both were {own}'s"),
            (Some(own), Some(other)) => format!(": it was {own}'s, and token {seen} was {other}'s"),
            (Some(own), None) => format!(": it was {own}'s"),
            (None, _) => String::new(),
        }
    }

    fn invoked(&mut self, event: &Event, op: &Op) {
        let Some(token) = op.token() else { return };
        if !matches!(op, Op::Write(_) | Op::Delete(_) | Op::Fence(_)) {
            return;
        }
        self.uses(event, op.lease(), token);
        if self.retries.invoked(event, op) {
            return;
        }
        if let Some((seen, shown)) = self.acknowledged_above(op.lease(), token) {
            let seq = match op {
                Op::Write(op) => op.seq,
                Op::Delete(op) => op.seq,
                _ => None,
            };
            let doomed = Doomed {
                seen,
                shown,
                f: op.f(),
                lease: op.lease().clone(),
                token,
                seq,
                answers: Vec::new(),
                refused_by: Vec::new(),
            };
            self.doomed.insert(event.index, doomed);
        }
    }

    /// What a storage node did with a call that is open.
    fn answered(&mut self, event: &Event, call: (F, &Name, Token, Option<u64>), was_refused: bool) {
        let is_it = |doomed: &&mut Doomed| {
            (doomed.f, &doomed.lease, doomed.token, doomed.seq) == call
                && doomed.answers.len() < ANSWERS
        };
        for doomed in self.doomed.values_mut().filter(is_it) {
            doomed.answers.push(event.index);
            if was_refused && !doomed.refused_by.contains(&event.process) {
                doomed.refused_by.push(event.process.clone());
            }
        }
    }

    fn acknowledged_above(&self, lease: &Name, token: Token) -> Option<(Token, u64)> {
        self.acknowledged
            .get(lease)
            .copied()
            .filter(|(highest, _)| *highest > token)
    }

    fn completed(&mut self, event: &Event, invoke: u64, op: &Op) {
        self.retries.completed(event, invoke, op);
        let doomed = self.doomed.remove(&invoke);
        if event.kind != Kind::Ok || !matches!(op, Op::Write(_) | Op::Delete(_) | Op::Fence(_)) {
            return;
        }
        let Some(token) = op.token() else { return };
        self.judged = true;
        if let Some(doomed) = doomed {
            let seen = doomed.seen;
            let whose = self.whose(op.lease(), token, seen);
            let mut sentence = below(op.f(), token, "was sent and acknowledged", seen) + &whose;
            if let Some((last, others)) = doomed.refused_by.split_last() {
                sentence += "; ";
                if !others.is_empty() {
                    sentence += &format!("{} and ", others.join(", "));
                }
                sentence += &format!("{last} refused it");
            }
            let shown = doomed.answers.into_iter().chain([doomed.shown, invoke]);
            self.found = Some(refused(sentence, seen, shown, event.index));
        }
        let highest = self
            .acknowledged
            .entry(op.lease().clone())
            .or_insert((token, event.index));
        if token > highest.0 {
            *highest = (token, event.index);
        }
    }
}

fn forgot(lease: &Name, found: Option<Token>, seen: Token, shown: u64, culprit: u64) -> Evidence {
    let what = match found {
        Some(found) => format!("with highest token {found}"),
        None => format!("without a highest token for {lease}"),
    };
    Evidence::new(
        format!("storage came back {what} after it had seen {seen}"),
        [shown],
        culprit,
        format!("{seen} or more"),
    )
}

fn below(f: F, token: Token, how: &str, seen: Token) -> String {
    let f = f.name();
    format!("a {f} with token {token} {how} after storage had seen token {seen}")
}

fn refused(
    sentence: String,
    seen: Token,
    shown: impl IntoIterator<Item = u64>,
    culprit: u64,
) -> Evidence {
    let expected = format!("refused, storage had seen {seen}");
    Evidence::new(sentence, shown, culprit, expected)
}

impl Checker for StorageSafety {
    fn see(&mut self, step: &Step<'_>) {
        let event = step.event;
        match &event.body {
            Body::Invoke(op) => self.invoked(event, op),
            Body::Complete(..) => {
                let Some(invoked) = step.invoked else { return };
                self.completed(event, invoked.index, &invoked.op);
            }
            Body::Observed(Observation::Applied(applied)) => {
                if let Some(token) = applied.token {
                    let call = (applied.f, &applied.lease, token, applied.seq);
                    self.answered(event, call, false);
                    self.land(event, applied.f, &applied.lease, token);
                }
            }
            Body::Observed(Observation::Refused(refused)) => {
                let call = (refused.f, &refused.lease, refused.token, refused.seq);
                self.answered(event, call, true);
            }
            Body::Observed(Observation::Fenced(fenced)) => {
                let call = (F::Fence, &fenced.lease, fenced.token, None);
                self.answered(event, call, false);
                self.land(event, F::Fence, &fenced.lease, fenced.token);
            }
            Body::Observed(Observation::StorageRecovered(found)) => {
                self.recovered(event, &found.highest);
            }
            _ => {}
        }
    }

    fn remembered(&self) -> Remembered {
        Remembered::default()
            .and("leases", self.seen.len() + self.acknowledged.len())
            .and("open calls", self.doomed.len())
            .and("writes without an answer", self.retries.remembered())
    }

    fn found(&self) -> bool {
        self.found.is_some()
    }

    fn verdict(self: Box<Self>) -> Verdict {
        match self.found {
            Some(evidence) => Verdict::Violated(evidence),
            None if self.judged => Verdict::Valid,
            None => Verdict::NotClaimed(
                "no write, delete or fence with a token landed in this history".to_owned(),
            ),
        }
    }
}

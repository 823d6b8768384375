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

#[derive(Default)]
pub(crate) struct StorageSafety {
    /// The highest token seen and the event that shows it, by (storage node, lease).
    seen: BTreeMap<(Name, Name), (Token, u64)>,
    /// The highest token acknowledged and the acknowledgement, by lease.
    acknowledged: BTreeMap<Name, (Token, u64)>,
    /// Open calls below an acknowledged token, by their invoke.
    doomed: BTreeMap<u64, (Token, u64)>,
    retries: Retries,
    judged: bool,
    found: Option<Evidence>,
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
            self.found = Some(below(f, token, how, seen, shown, None, event.index));
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

    fn invoked(&mut self, event: &Event, op: &Op) {
        let Some(token) = op.token() else { return };
        if !matches!(op, Op::Write(_) | Op::Delete(_) | Op::Fence(_))
            || self.retries.invoked(event, op)
        {
            return;
        }
        if let Some(above) = self.acknowledged_above(op.lease(), token) {
            self.doomed.insert(event.index, above);
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
        if let Some((seen, shown)) = doomed {
            let how = "was sent and acknowledged";
            self.found = Some(below(
                op.f(),
                token,
                how,
                seen,
                shown,
                Some(invoke),
                event.index,
            ));
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

fn below(
    f: F,
    token: Token,
    how: &str,
    seen: Token,
    shown: u64,
    invoke: Option<u64>,
    culprit: u64,
) -> Evidence {
    Evidence::new(
        format!(
            "a {} with token {token} {how} after storage had seen token {seen}",
            f.name()
        ),
        [shown].into_iter().chain(invoke),
        culprit,
        format!("refused, storage had seen {seen}"),
    )
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
                    self.land(event, applied.f, &applied.lease, token);
                }
            }
            Body::Observed(Observation::Fenced(fenced)) => {
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

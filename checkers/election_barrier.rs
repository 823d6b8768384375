//! `election-barrier`: a new leader fences before its first read or write.
//!
//! Convicted: a read, write or delete with token n that was sent before any
//! `fence(n)` of that lease was acknowledged; and a fence with a token that was
//! never granted to who sends it since it last crashed, as one that storage was
//! asked for. Where only the node side is recorded: an `applied` with token n before
//! any `fenced` n.
//! A fence whose answer never came is not acknowledged: who works on all the same
//! works unfenced.
//!
//! Where the storage grants the leases itself (compare-and-swap, as the header's cluster
//! tells) the grant is the barrier, and who does not fence does no wrong: the check is
//! NotClaimed, but for fences with a token that was never granted. So it is where nobody
//! ever fences in another system than deposed's own (the header names neither that nor a
//! cluster): its storage may compare the token of each write, which is safe without a barrier
//! (storage-safety judges that). Once anybody there fences, everybody must.

use std::collections::BTreeMap;

use crate::budget::Remembered;
use crate::grants::{Grants, Side};
use crate::history::{Body, Event, F, Header, Kind, Name, Observation, Op, Token};
use crate::judge::{Checker, Step};
use crate::verdict::{Evidence, Verdict};
use crate::well_formed::Ids;

#[derive(Default)]
pub(crate) struct ElectionBarrier {
    grants: Grants,
    /// Tokens with an acknowledged fence, by lease.
    acknowledged: BTreeMap<Name, Tokens>,
    /// Tokens that a storage node recorded as fenced, by lease.
    fenced: BTreeMap<Name, Tokens>,
    /// Fences without an answer yet, by (lease, token): the invoke.
    sent: BTreeMap<(Name, Token), u64>,
    /// The last fence of each lease that failed: its token, its invoke and its answer.
    failed: BTreeMap<Name, (Token, [u64; 2])>,
    client_calls: bool,
    node_work: bool,
    /// Nobody need fence.
    grant_is_barrier: bool,
    /// Whether this system sets barriers: as its cluster tells, or as somebody fences.
    sets_barriers: bool,
    /// A fence that the client side alone convicts; `granted` events may still decide.
    client_foreign: Option<Evidence>,
    node_foreign: Option<Evidence>,
    unfenced: Option<Evidence>,
    node_unfenced: Option<Evidence>,
}

/// A set of tokens as ranges, since they rise by one from term to term.
#[derive(Default)]
struct Tokens(Ids);

impl Tokens {
    fn insert(&mut self, token: Token) {
        self.0.insert(token);
    }

    fn contains(&self, token: Token) -> bool {
        self.0.forgot(token) || self.0.contains(token)
    }

    fn remembered(&self) -> usize {
        1 + self.0.ranges()
    }
}

impl ElectionBarrier {
    pub fn new(header: &Header) -> Self {
        Self {
            grant_is_barrier: header.grant_is_barrier(),
            sets_barriers: header.sets_barriers(),
            ..Self::default()
        }
    }

    fn invoked(&mut self, event: &Event, op: &Op) {
        let Some(token) = op.token() else { return };
        let lease = op.lease();
        match op.f() {
            F::Fence => {
                (self.client_calls, self.sets_barriers) = (true, true);
                for (side, found) in [
                    (Side::Node, &mut self.node_foreign),
                    (Side::Client, &mut self.client_foreign),
                ] {
                    if found.is_none() && !self.grants.own(side, &event.process, op, token) {
                        let evidence = Evidence::new(
                            format!(
                                "{} fenced with token {token}, which is no token of its own",
                                event.process
                            ),
                            [],
                            event.index,
                            "a fence with the token that the lease was granted with",
                        );
                        *found = Some(evidence);
                    }
                }
                self.sent.insert((lease.clone(), token), event.index);
            }
            f @ (F::Write | F::Delete | F::Read) => {
                self.client_calls = true;
                let fenced = self
                    .acknowledged
                    .get(lease)
                    .is_some_and(|set| set.contains(token));
                if !fenced && !self.grant_is_barrier && self.unfenced.is_none() {
                    let fence = self.sent.get(&(lease.clone(), token));
                    let failed = self.failed.get(lease).filter(|(of, _)| *of == token);
                    let (how, shown) = match (fence, failed) {
                        (Some(fence), _) => (
                            format!("before its fence({token}) was acknowledged"),
                            vec![*fence],
                        ),
                        (None, Some((_, shown))) => (
                            format!("though its fence({token}) had failed"),
                            shown.to_vec(),
                        ),
                        (None, None) => (format!("without a fence({token})"), vec![]),
                    };
                    self.unfenced = Some(Evidence::new(
                        format!(
                            "{} sent a {} with token {token} {how}",
                            event.process,
                            f.name()
                        ),
                        shown,
                        event.index,
                        format!("fence({token}) acknowledged first"),
                    ));
                }
            }
            F::Acquire | F::Renew | F::Release => {}
        }
    }
}

impl Checker for ElectionBarrier {
    fn see(&mut self, step: &Step<'_>) {
        self.grants.see(step);
        let event = step.event;
        match &event.body {
            Body::Invoke(op) => self.invoked(event, op),
            Body::Complete(F::Fence, _) => {
                let Some(Op::Fence(op)) = step.invoked.map(|invoked| &invoked.op) else {
                    return;
                };
                if event.kind == Kind::Ok {
                    self.acknowledged
                        .entry(op.lease.clone())
                        .or_default()
                        .insert(op.token);
                }
                if event.kind != Kind::Info {
                    self.sent.remove(&(op.lease.clone(), op.token));
                }
                if event.kind == Kind::Fail
                    && let Some(invoked) = step.invoked
                {
                    let failed = (op.token, [invoked.index, event.index]);
                    self.failed.insert(op.lease.clone(), failed);
                }
            }
            Body::Observed(Observation::Fenced(fenced)) => {
                self.sets_barriers = true;
                self.fenced
                    .entry(fenced.lease.clone())
                    .or_default()
                    .insert(fenced.token);
            }
            Body::Observed(Observation::Applied(applied)) => {
                let Some(token) = applied.token else { return };
                self.node_work = true;
                let fenced = self
                    .fenced
                    .get(&applied.lease)
                    .is_some_and(|set| set.contains(token));
                if !fenced && !self.grant_is_barrier && self.node_unfenced.is_none() {
                    self.node_unfenced = Some(Evidence::new(
                        format!(
                            "a {} with token {token} landed before any fence({token})",
                            applied.f.name()
                        ),
                        [],
                        event.index,
                        format!("fence({token}) first"),
                    ));
                }
            }
            _ => {}
        }
    }

    fn remembered(&self) -> Remembered {
        let sets = self.acknowledged.values().chain(self.fenced.values());
        let tokens = sets.map(Tokens::remembered).sum();
        self.grants
            .remembered()
            .and("fences without an answer", self.sent.len())
            .and("leases", self.failed.len())
            .and("tokens that were fenced", tokens)
    }

    fn found(&self) -> bool {
        let unfenced = self.sets_barriers && self.unfenced.is_some();
        unfenced || (self.grants.granted_seen && self.node_foreign.is_some())
    }

    fn verdict(self: Box<Self>) -> Verdict {
        // Without any grant there is nothing that a fence could have carried instead.
        let foreign = match (self.grants.any_grant, self.grants.granted_seen) {
            (false, _) => None,
            (true, true) => self.node_foreign,
            (true, false) => self.client_foreign,
        };
        let node_side = !self.client_calls && !self.fenced.is_empty();
        let unfenced = if node_side {
            self.node_unfenced
        } else {
            self.unfenced.filter(|_| self.sets_barriers)
        };
        let first = [foreign, unfenced]
            .into_iter()
            .flatten()
            .min_by_key(|found| found.culprit);
        match first {
            Some(evidence) => Verdict::Violated(evidence),
            None if self.grant_is_barrier => Verdict::NotClaimed(
                "the storage grants the leases itself: a grant is the barrier".to_owned(),
            ),
            None if self.client_calls && !self.sets_barriers => Verdict::NotClaimed(
                "nobody fences in this history: record each new leader's fence(token) if it sets a \
                 barrier"
                    .to_owned(),
            ),
            None if self.client_calls || (node_side && self.node_work) => Verdict::Valid,
            None => Verdict::NotClaimed(
                "no fence, read or write with a token in this history".to_owned(),
            ),
        }
    }
}

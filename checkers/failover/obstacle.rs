//! What kept a write away while one was owed, as the evidence tells it.

use std::fmt;

use crate::faults::Faults;
use crate::history::{Body, Event, F, Kind, Name, Nanos, Observation, Op, Token};
use crate::judge::Step;
use crate::units::{span, time};

/// The last thing of a lease that kept a write away.
pub(super) struct Obstacle {
    pub event: u64,
    what: What,
}

enum What {
    /// Storage refused a write or a fence.
    Refused {
        node: Name,
        f: F,
        token: Token,
        seen: Token,
    },
    /// A client's write or fence failed, or was not answered.
    Failed {
        process: Name,
        f: F,
        token: Option<Token>,
        unanswered: bool,
        error: Option<Name>,
        /// The token was overtaken.
        stale: bool,
    },
    /// A belief that was over when it began.
    Over {
        process: Name,
        from: Nanos,
        until: Nanos,
    },
    /// The store refused an acquire.
    Denied { holder: Name, error: Name },
}

impl Obstacle {
    /// What an event tells of, and of which lease.
    pub fn of<'a>(step: &Step<'a>) -> Option<(&'a Name, Self)> {
        let event = step.event;
        let (lease, what) = match &event.body {
            Body::Observed(Observation::Refused(refused)) => {
                let what = What::Refused {
                    node: event.process.clone(),
                    f: refused.f,
                    token: refused.token,
                    seen: refused.seen,
                };
                (&refused.lease, what)
            }
            Body::Observed(Observation::Lead(lead)) => {
                let until = lead.until.filter(|until| *until <= event.time)?;
                let what = What::Over {
                    process: event.process.clone(),
                    from: event.time,
                    until,
                };
                (&lead.lease, what)
            }
            Body::Observed(Observation::Denied(denied)) if denied.f == F::Acquire => {
                let what = What::Denied {
                    holder: denied.holder.clone(),
                    error: denied.error.kind.clone(),
                };
                (&denied.lease, what)
            }
            Body::Complete(F::Fence | F::Write | F::Delete, _) if event.kind != Kind::Ok => {
                let op = &step.invoked?.op;
                (op.lease(), failed(event, op))
            }
            _ => return None,
        };
        Some((
            lease,
            Obstacle {
                event: event.index,
                what,
            },
        ))
    }

    /// Whether it is wrong by itself. An overtaken token is refused rightly, and so is an
    /// acquire while somebody has the lease.
    pub fn is_wrong(&self) -> bool {
        match &self.what {
            What::Refused { token, seen, .. } => token >= seen,
            What::Failed { stale, .. } => !stale,
            What::Over { .. } => true,
            What::Denied { .. } => false,
        }
    }

    /// Whether a later one tells more. What a client was told of a refusal that storage tells
    /// of itself does not.
    pub fn yields_to(&self, later: &Obstacle) -> bool {
        match (&self.what, &later.what) {
            (
                What::Refused { f, token, .. },
                What::Failed {
                    f: failed,
                    token: of,
                    ..
                },
            ) if f == failed && *of == Some(*token) => false,
            _ => later.is_wrong() || !self.is_wrong(),
        }
    }

    /// Where a term was over when it began: by how much, and what wall clocks have to do
    /// with it.
    pub fn reckoning(&self, store: Option<&Name>, faults: &Faults) -> Option<String> {
        let What::Over {
            process,
            from,
            until,
        } = &self.what
        else {
            return None;
        };
        let mut line = format!(
            "{process}'s belief of {} ended {} before it began, by true time",
            time(*from),
            span(from.saturating_sub(*until))
        );
        let of_node = |node: &Name| {
            let (last, in_all) = faults.steps(node, *from).next_back()?;
            let sign = if in_all < 0 { '-' } else { '+' };
            Some(format!(
                "{node}'s wall clock was stepped by {sign}{} in all, the last time at {}",
                span(in_all.unsigned_abs()),
                time(last.from)
            ))
        };
        let steps: Vec<String> = [Some(process), store]
            .into_iter()
            .flatten()
            .filter_map(of_node)
            .collect();
        if !steps.is_empty() {
            line += &format!("; {}", steps.join(", and "));
        }
        Some(line)
    }
}

fn failed(event: &Event, op: &Op) -> What {
    let error = event.error.as_ref();
    What::Failed {
        process: event.process.clone(),
        f: op.f(),
        token: op.token(),
        unanswered: event.kind == Kind::Info,
        error: error.map(|error| error.kind.clone()),
        stale: error.is_some_and(|error| error.presented < error.seen),
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Refused {
                node,
                f,
                token,
                seen,
            } => write!(
                out,
                "{node} refused a {} with token {token}, when it had seen {seen}",
                f.name()
            ),
            What::Failed {
                process,
                f,
                token,
                unanswered,
                error,
                ..
            } => {
                write!(out, "{process}'s {}", f.name())?;
                if let Some(token) = token {
                    write!(out, " with token {token}")?;
                }
                match unanswered {
                    true => write!(out, " was not answered")?,
                    false => write!(out, " failed")?,
                }
                match error {
                    Some(error) => write!(out, ": {error}"),
                    None => Ok(()),
                }
            }
            What::Over {
                process,
                from,
                until,
            } => write!(
                out,
                "{process} led from {} until {}, which was over when it began to",
                time(*from),
                time(*until)
            ),
            What::Denied { holder, error } => write!(
                out,
                "the last acquire, by {}, was refused: {error}",
                crate::owners::called(holder, "")
            ),
        }
    }
}

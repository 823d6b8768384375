//! Durable state that a candidate must not have: the term of the process before it.
//! Only the planted flaw `resume-after-restart` keeps it.

use deposed_checkers::history::{Name, Token};
use serde::{Deserialize, Serialize};

use super::super::Node;
use crate::disk::{commit_json, records_json};

/// Who led, and under which token.
#[derive(Serialize, Deserialize)]
pub(super) struct OldTerm {
    pub(super) holder: Name,
    pub(super) token: Token,
}

/// The last term of the lease on this machine.
pub(super) async fn read(node: &Node, lease: &Name) -> Option<OldTerm> {
    match records_json(node.disk()).await {
        Ok(mut terms) => terms.remove(lease.as_str()),
        Err(error) => {
            tracing::warn!(target: "deposed", "the old term is lost: {error}");
            None
        }
    }
}

/// Makes the present term the last one.
pub(super) async fn keep(node: &Node, lease: &Name, term: OldTerm) {
    if let Err(error) = commit_json(node.disk(), lease, &term).await {
        tracing::warn!(target: "deposed", "the term is not kept: {error}");
    }
}

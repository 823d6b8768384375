//! What is asked of storage.

use deposed_checkers::history::Token;

use super::Premise;
use crate::prove::{
    message::{Message, Says},
    reduce::{NOBODYS, Rules},
    scope::Scope,
    storage_node::{StorageNode, StorageStep},
};

/// As many tokens as storage may know of to be asked.
const MOST_TOKENS: Token = 1 << 6;

/// The first premise of these rules that does not hold of storage.
pub(in crate::prove) fn broken(node: &StorageNode, scope: &Scope, rules: Rules) -> Option<Premise> {
    if !rules.settled {
        return None;
    }
    if node.seen.max(node.highest()) >= MOST_TOKENS {
        return Some(Premise::HighestStays);
    }
    let node = node.renamed(|token| 2 * token);
    let (highest, changed) = (node.highest(), node.changed());
    for token in 1..=highest + 1 {
        for says in [Says::Fence, Says::Write, Says::Delete] {
            if says == Says::Delete && !scope.deletes {
                continue;
            }
            let message = Message::new(says, NOBODYS, 0, token);
            let (next, answers) = node.step(scope, StorageStep::Read(message));
            let word = answers.answer.map(Message::says);
            let again = token == highest && (says == Says::Fence || changed);
            let settled = match again {
                true => next == node && word != Some(Says::Stale),
                false => next == node && word == Some(Says::Stale),
            };
            if (token < highest || again) && !settled {
                return Some(Premise::RefusesStale);
            }
            if falls(&node, &next) {
                return Some(Premise::HighestStays);
            }
        }
    }
    let restarted = node.step(scope, StorageStep::Crash).0;
    falls(&node, &restarted).then_some(Premise::HighestStays)
}

fn falls(node: &StorageNode, next: &StorageNode) -> bool {
    let undone = node.changed() && next.highest() == node.highest() && !next.changed();
    next.highest() < node.highest() || undone
}

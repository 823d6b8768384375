//! Which writes are tries of an earlier one.

use std::collections::BTreeMap;

use crate::history::{Delete, Event, Kind, Name, Op, Write};

/// Storage keeps its last answer and repeats it to the same write under the same
/// (token, seq), whatever it has seen since: that a retry was acknowledged says
/// nothing of when it landed.
#[derive(Default)]
pub(crate) struct Retries {
    /// Writes and deletes with a seq of each (process, lease) that may have landed
    /// without an answer, of its newest token: their invoke and what they are.
    unanswered: BTreeMap<(Name, Name), Vec<(u64, Op)>>,
    /// How many those are.
    tries: usize,
}

impl Retries {
    /// Takes note of an invoke; true if it tries again what may have landed.
    pub fn invoked(&mut self, event: &Event, op: &Op) -> bool {
        let (Op::Write(Write { seq: Some(_), .. }) | Op::Delete(Delete { seq: Some(_), .. })) = op
        else {
            return false;
        };
        let key = (event.process.clone(), op.lease().clone());
        let tries = self.unanswered.entry(key).or_default();
        if tries
            .last()
            .is_some_and(|(_, last)| last.token() != op.token())
        {
            self.tries -= tries.len();
            tries.clear();
        }
        let again = tries.iter().any(|(_, tried)| tried == op);
        tries.push((event.index, op.clone()));
        self.tries += 1;
        again
    }

    /// How many tries are remembered.
    pub fn remembered(&self) -> usize {
        self.tries
    }

    /// Takes note of a completion.
    pub fn completed(&mut self, event: &Event, invoke: u64, op: &Op) {
        if event.kind == Kind::Info || !matches!(op, Op::Write(_) | Op::Delete(_)) {
            return;
        }
        let key = (event.process.clone(), op.lease().clone());
        if let Some(tries) = self.unanswered.get_mut(&key) {
            let before = tries.len();
            tries.retain(|(tried, _)| *tried != invoke);
            self.tries -= before - tries.len();
            if tries.is_empty() {
                self.unanswered.remove(&key);
            }
        }
    }
}

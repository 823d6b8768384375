//! Which writes are tries of an earlier one.

use std::collections::BTreeMap;

use crate::history::{Event, Name, Op, Token};

/// Storage keeps its last answer and repeats it to the same (token, seq), whatever
/// it has seen since: that a retry was acknowledged says nothing of when it landed.
#[derive(Default)]
pub(crate) struct Retries {
    /// The newest token and the highest seq invoked under it, by (process, lease).
    newest: BTreeMap<(Name, Name), (Option<Token>, u64)>,
}

impl Retries {
    /// Takes note of an invoke; true if its process invoked this seq, or a later
    /// one, under this token before.
    pub fn see(&mut self, event: &Event, op: &Op) -> bool {
        let seq = match op {
            Op::Write(op) => op.seq,
            Op::Delete(op) => op.seq,
            _ => None,
        };
        let Some(seq) = seq else { return false };
        let key = (event.process.clone(), op.lease().clone());
        let token = op.token();
        match self.newest.get_mut(&key) {
            Some((newest, highest)) if *newest == token => {
                let again = seq <= *highest;
                *highest = seq.max(*highest);
                again
            }
            Some(newest) => {
                *newest = (token, seq);
                false
            }
            None => {
                self.newest.insert(key, (token, seq));
                false
            }
        }
    }
}

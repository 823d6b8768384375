//! A resource that cannot check tokens: a mail relay, a third party's API.

use std::collections::{BTreeMap, VecDeque};

use deposed_checkers::history::Name;
use serde::{Deserialize, Serialize};

/// How many idempotency keys are remembered of each lease, the newest. A copy of a job
/// that comes after that many others are done is done again: whoever relies on keys
/// must have stopped retrying by then.
pub const KEYS_KEPT: usize = 256;

/// Does whatever it is asked to do, whoever asks, and counts what it did. With keys, it
/// drops what carries an idempotency key that it has seen.
///
/// What was done last for each recipient can be read, so that a new leader knows where
/// to go on. What [`record`](Self::record) returns must be durable before the answer
/// that changed it leaves; [`recover`](Self::recover) takes it back. Memory is bounded
/// by the leases, their recipients, and [`KEYS_KEPT`] a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EffectRelay {
    keys: bool,
    outboxes: BTreeMap<Name, OutboxRecord>,
}

/// What must be durable of the effects under one lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutboxRecord {
    /// How many were done.
    pub performed: u64,
    /// The last one done for each recipient.
    pub last: BTreeMap<Name, Name>,
    /// The newest idempotency keys, the oldest first, each with what was done for it.
    /// Empty for a relay that does not go by keys.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub seen: VecDeque<(Name, Name)>,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Performed {
    /// It was done now.
    Now,
    /// It is the very request that was done before: nothing was done, and the answer is
    /// the same again.
    Before,
    /// Its job was done before, at another request: nothing was done.
    ByAnother,
}

impl EffectRelay {
    /// A relay that has done nothing yet; whether it goes by idempotency keys.
    pub fn new(keys: bool) -> Self {
        Self::recover(keys, BTreeMap::new())
    }

    /// A relay that comes back with what it had made durable.
    pub fn recover(keys: bool, records: BTreeMap<Name, OutboxRecord>) -> Self {
        Self {
            keys,
            outboxes: records,
        }
    }

    /// Does what `value` says for the recipient `to`. The idempotency `key` names the
    /// job, whoever does it: two who do the same job send the same key.
    pub fn perform(&mut self, lease: &Name, to: &Name, key: &Name, value: Name) -> Performed {
        let outbox = self.outboxes.entry(lease.clone()).or_default();
        if self.keys {
            if let Some((_, done)) = outbox.seen.iter().find(|(seen, _)| seen == key) {
                return match *done == value {
                    true => Performed::Before,
                    false => Performed::ByAnother,
                };
            }
            if outbox.seen.len() == KEYS_KEPT {
                outbox.seen.pop_front();
            }
            outbox.seen.push_back((key.clone(), value.clone()));
        }
        outbox.performed += 1;
        outbox.last.insert(to.clone(), value);
        Performed::Now
    }

    /// The last effect done for a recipient.
    pub fn last(&self, lease: &Name, to: &Name) -> Option<&Name> {
        self.outboxes.get(lease)?.last.get(to)
    }

    /// How many effects were done under a lease.
    pub fn performed(&self, lease: &Name) -> u64 {
        self.outboxes
            .get(lease)
            .map_or(0, |outbox| outbox.performed)
    }

    /// What must be durable of a lease before the answer that changed it leaves; `None`
    /// while nothing was done under it.
    pub fn record(&self, lease: &Name) -> Option<&OutboxRecord> {
        self.outboxes.get(lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn perform(relay: &mut EffectRelay, key: &str, value: &str) -> Performed {
        relay.perform(&"leader".into(), &"k0".into(), &key.into(), value.into())
    }

    #[test]
    fn without_keys_it_does_whatever_comes_as_often_as_it_comes() {
        let mut relay = EffectRelay::new(false);
        for (value, done) in [("1/1.1", 1), ("1/1.1", 2), ("1/2.1", 3)] {
            assert_eq!(perform(&mut relay, "k0-1", value), Performed::Now);
            assert_eq!(relay.performed(&"leader".into()), done);
            let last = relay.last(&"leader".into(), &"k0".into());
            assert_eq!(last.map(Name::as_str), Some(value));
        }
    }

    #[test]
    fn with_keys_a_job_is_done_once_whoever_sends_it() {
        let mut relay = EffectRelay::new(true);
        let answers = [
            ("k0-1", "1/1.1"),
            ("k0-1", "1/1.1"),
            ("k0-1", "1/2.1"),
            ("k0-2", "2/2.2"),
        ]
        .map(|(key, value)| perform(&mut relay, key, value));
        use Performed::{Before, ByAnother, Now};
        assert_eq!(answers, [Now, Before, ByAnother, Now]);
        assert_eq!(relay.performed(&"leader".into()), 2);
        let last = relay.last(&"leader".into(), &"k0".into());
        assert_eq!(last.map(Name::as_str), Some("2/2.2"));
    }

    #[test]
    fn keys_are_of_one_lease_alone() {
        let mut relay = EffectRelay::new(true);
        perform(&mut relay, "k0-1", "1/1.1");
        let other = relay.perform(
            &"shard-1".into(),
            &"k0".into(),
            &"k0-1".into(),
            "1/1.1".into(),
        );
        assert_eq!(other, Performed::Now);
    }

    #[test]
    fn keys_outlive_a_restart() {
        let mut relay = EffectRelay::new(true);
        perform(&mut relay, "k0-1", "1/1.1");
        let lease = Name::from("leader");
        let record = serde_json::to_vec(&relay.record(&lease)).expect("it is plain data");
        let record = serde_json::from_slice(&record).expect("as it was written");
        let mut back = EffectRelay::recover(true, [(lease, record)].into());
        assert_eq!(back, relay);
        assert_eq!(perform(&mut back, "k0-1", "1/2.1"), Performed::ByAnother);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_key_is_forgotten_first() {
        let mut relay = EffectRelay::new(true);
        for job in 0..=KEYS_KEPT {
            perform(&mut relay, &format!("k0-{job}"), "x");
        }
        let lease = Name::from("leader");
        let kept = relay.record(&lease).map(|record| record.seen.len());
        assert_eq!(kept, Some(KEYS_KEPT));
        assert_eq!(perform(&mut relay, "k0-1", "y"), Performed::ByAnother);
        assert_eq!(perform(&mut relay, "k0-0", "y"), Performed::Now);
    }
}

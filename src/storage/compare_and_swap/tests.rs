//! The rules of compare-and-swap storage, one test each.

use super::*;
use crate::storage::{Certainty, TERMS_KEPT};

const TTL: Nanos = 10_000_000;

/// Storage of one lease, spoken to in short.
struct Desk(CompareAndSwapStorage);

fn desk() -> Desk {
    Desk(CompareAndSwapStorage::new(
        StoreLimits::default(),
        Planted::NONE,
    ))
}

fn lease() -> Name {
    "leader".into()
}

impl Desk {
    /// The token granted, if it is.
    fn acquire(&mut self, now: Nanos, holder: &str) -> Option<Token> {
        let granted = self
            .0
            .leases_mut()
            .acquire(now, &lease(), &holder.into(), 1, TTL);
        granted.ok().map(|grant| grant.token)
    }

    fn write(&mut self, now: Nanos, token: Token, seq: u64) -> Result<bool, Refusal> {
        let value = Value::from(format!("{token}.{seq}"));
        let applied = self.0.write(now, &lease(), token, seq, &"k".into(), value);
        applied.map(|applied| applied.fresh)
    }

    fn read(&self) -> Option<&str> {
        self.0.read(&lease(), &"k".into()).map(Value::as_str)
    }

    /// Storage goes away and comes back with what was durable, written and read as a
    /// file would be.
    fn restart(&mut self, now: Nanos) {
        let record = self.0.record(&lease()).map(|record| (lease(), record));
        let written = serde_json::to_string(&BTreeMap::from_iter(record)).unwrap();
        let records = serde_json::from_str(&written).unwrap();
        let limits = StoreLimits::default();
        self.0 = CompareAndSwapStorage::recover(limits, Planted::NONE, records, now);
    }
}

fn not_owner(presented: Token, granted: Token, applied_before: Certainty) -> Refusal {
    Refusal::NotOwner {
        presented,
        granted,
        applied_before,
    }
}

fn stale(presented: Token, seen: Token, applied_before: Certainty) -> Refusal {
    Refusal::StaleToken {
        presented,
        seen,
        applied_before,
    }
}

#[test]
fn only_the_owner_writes_and_only_before_its_expiry() {
    let mut desk = desk();
    let never = not_owner(1, 0, Certainty::NotApplied);
    assert_eq!(desk.write(0, 1, 1), Err(never), "nobody owns it");
    desk.acquire(0, "a#1");
    assert_eq!(desk.write(TTL - 1, 1, 1), Ok(true));
    let late = not_owner(1, 1, Certainty::NotApplied);
    assert_eq!(desk.write(TTL, 1, 2), Err(late), "its time is over");
    assert_eq!(desk.read(), Some("1.1"));
}

#[test]
fn a_grant_is_the_barrier() {
    let mut desk = desk();
    desk.acquire(0, "a#1");
    desk.write(1, 1, 1).unwrap();
    assert_eq!(desk.acquire(TTL, "b#1"), Some(2));
    // b has sent nothing to storage, and a's write is refused all the same.
    let zombie = stale(1, 2, Certainty::NotApplied);
    assert_eq!(desk.write(TTL, 1, 2), Err(zombie));
    assert_eq!(desk.read(), Some("1.1"));
}

#[test]
fn a_released_lease_has_no_owner() {
    let mut desk = desk();
    desk.acquire(0, "a#1");
    let released = desk.0.leases_mut().release(1, &lease(), &"a#1".into(), 1);
    released.unwrap();
    let late = not_owner(1, 1, Certainty::NotApplied);
    assert_eq!(desk.write(2, 1, 1), Err(late));
}

#[test]
fn a_token_that_was_never_granted_is_nobodys() {
    let mut desk = desk();
    desk.acquire(0, "a#1");
    let made_up = not_owner(2, 1, Certainty::NotApplied);
    assert_eq!(desk.write(1, 2, 1), Err(made_up));
    assert_eq!(desk.write(1, 1, 1), Ok(true), "and does the owner no harm");
}

#[test]
fn the_same_write_again_repeats_the_answer_and_an_older_one_is_refused() {
    let mut desk = desk();
    desk.acquire(0, "a#1");
    assert_eq!(desk.write(1, 1, 2), Ok(true));
    assert_eq!(desk.write(2, 1, 2), Ok(false));
    let old = Refusal::OldSeq {
        presented_seq: 1,
        last_seq: 2,
    };
    assert_eq!(desk.write(3, 1, 1), Err(old));
}

#[test]
fn a_refusal_tells_whether_an_earlier_copy_may_have_landed() {
    let mut desk = desk();
    desk.acquire(0, "a#1");
    desk.write(1, 1, 2).unwrap();
    let copy = not_owner(1, 1, Certainty::MayHaveApplied);
    assert_eq!(desk.write(TTL, 1, 2), Err(copy));
    for term in 1..=TERMS_KEPT as u64 {
        let token = desk.acquire(term * TTL, &format!("b#{term}"));
        desk.write(term * TTL, token.unwrap(), 1).unwrap();
    }
    let now = TERMS_KEPT as u64 * TTL;
    let seen = 1 + TERMS_KEPT as u64;
    let forgotten = stale(1, seen, Certainty::MayHaveApplied);
    assert_eq!(
        desk.write(now, 1, 9),
        Err(forgotten),
        "its term is forgotten"
    );
}

#[test]
fn lease_and_data_come_back_together() {
    let mut desk = desk();
    desk.acquire(0, "a#1");
    desk.write(1, 1, 1).unwrap();
    desk.restart(TTL * 5);
    assert_eq!(desk.read(), Some("1.1"));
    assert_eq!(desk.write(TTL * 5, 1, 1), Ok(false), "the answer, repeated");
    assert_eq!(desk.write(TTL * 6 - 1, 1, 2), Ok(true), "re-armed whole");
    assert_eq!(desk.acquire(TTL * 6, "b#1"), Some(2));
    desk.restart(TTL * 6);
    let zombie = stale(1, 2, Certainty::NotApplied);
    assert_eq!(desk.write(TTL * 6, 1, 3), Err(zombie));
    assert_eq!(desk.0.highest().collect::<Vec<_>>(), [(&lease(), 2)]);
}

#[test]
fn a_fence_compares_and_swaps_nothing() {
    let mut desk = desk();
    desk.acquire(0, "a#1");
    let before = desk.0.clone();
    assert_eq!(desk.0.fence(1, &lease(), 1), Ok(()));
    let over = not_owner(1, 1, Certainty::NotApplied);
    assert_eq!(desk.0.fence(TTL, &lease(), 1), Err(over));
    assert_eq!(desk.0, before);
}

/// The flaw is in what is not compared when the write lands.
#[cfg(feature = "flaws")]
#[test]
fn who_compares_elsewhere_lets_a_zombie_in() {
    let planted = Planted::one(Flaw::ComparesRemoteOwner);
    let mut desk = Desk(CompareAndSwapStorage::new(StoreLimits::default(), planted));
    desk.acquire(0, "a#1");
    assert_eq!(desk.0.fence(1, &lease(), 1), Ok(()), "it asked in time");
    desk.acquire(TTL, "b#1");
    assert_eq!(desk.write(TTL, 1, 1), Ok(true), "and wrote too late");
}

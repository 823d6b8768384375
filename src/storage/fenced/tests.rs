//! Storage's rules, one test each.

use super::*;

/// Storage of one lease, spoken to in short.
struct Desk(FencedStorage);

fn desk() -> Desk {
    Desk(FencedStorage::new(Planted::NONE))
}

fn lease() -> Name {
    "leader".into()
}

impl Desk {
    /// Whether it was applied anew, or the kind of refusal.
    fn write(
        &mut self,
        token: Token,
        seq: u64,
        key: &str,
        value: &str,
    ) -> Result<bool, &'static str> {
        let applied = self
            .0
            .write(&lease(), token, seq, &key.into(), value.into());
        applied
            .map(|applied| applied.fresh)
            .map_err(|refusal| refusal.kind())
    }

    fn delete(&mut self, token: Token, seq: u64, key: &str) -> Result<bool, &'static str> {
        let applied = self.0.delete(&lease(), token, seq, &key.into());
        applied
            .map(|applied| applied.fresh)
            .map_err(|refusal| refusal.kind())
    }

    fn fence(&mut self, token: Token) -> Result<(), &'static str> {
        self.0
            .fence(&lease(), token)
            .map_err(|refusal| refusal.kind())
    }

    fn read(&self, key: &str) -> Option<&str> {
        self.0.read(&lease(), &key.into()).map(Value::as_str)
    }

    fn highest(&self) -> Token {
        self.0.shard(&lease()).map_or(0, |shard| shard.highest)
    }

    /// What a refused write says of an earlier copy of itself.
    fn before(&mut self, token: Token, seq: u64) -> Certainty {
        match self
            .0
            .write(&lease(), token, seq, &"k".into(), "late".into())
        {
            Err(Refusal::StaleToken { applied_before, .. }) => applied_before,
            other => panic!("{other:?}"),
        }
    }

    fn fence_before(&mut self, token: Token) -> Certainty {
        match self.0.fence(&lease(), token) {
            Err(Refusal::StaleToken { applied_before, .. }) => applied_before,
            other => panic!("{other:?}"),
        }
    }

    /// Storage goes away and comes back with what was durable, written and read as a
    /// file would be.
    fn restart(&mut self) {
        let records: BTreeMap<Name, ShardRecord> = self
            .0
            .highest()
            .map(|(name, _)| (name.clone(), self.0.record(name).unwrap()))
            .collect();
        let written = serde_json::to_string(&records).unwrap();
        self.0 = FencedStorage::recover(Planted::NONE, serde_json::from_str(&written).unwrap());
    }
}

#[test]
fn a_token_equal_to_the_highest_is_accepted_and_a_lower_one_refused() {
    let mut desk = desk();
    assert_eq!(desk.write(7, 1, "k", "a"), Ok(true));
    assert_eq!(desk.write(7, 2, "k", "b"), Ok(true));
    assert_eq!(desk.write(8, 1, "k", "c"), Ok(true));
    assert_eq!(desk.write(7, 3, "k", "zombie"), Err("stale-token"));
    assert_eq!(desk.delete(7, 4, "k"), Err("stale-token"));
    assert_eq!(desk.fence(7), Err("stale-token"));
    assert_eq!(desk.read("k"), Some("c"));
}

#[test]
fn a_refusal_names_both_tokens() {
    let mut desk = desk();
    desk.fence(8).unwrap();
    let refusal = desk.0.fence(&lease(), 7).unwrap_err();
    let applied_before = Certainty::NotApplied;
    assert_eq!(
        refusal,
        Refusal::StaleToken {
            presented: 7,
            seen: 8,
            applied_before
        }
    );
}

#[test]
fn a_fence_keeps_the_zombie_out_before_the_new_leader_has_written() {
    let mut unfenced = desk();
    unfenced.write(1, 1, "k", "a").unwrap();
    assert_eq!(
        unfenced.write(1, 2, "k", "zombie"),
        Ok(true),
        "storage has not seen token 2"
    );
    let mut fenced = desk();
    fenced.write(1, 1, "k", "a").unwrap();
    fenced.fence(2).unwrap();
    assert_eq!(fenced.write(1, 2, "k", "zombie"), Err("stale-token"));
}

#[test]
fn a_fence_may_be_repeated_and_its_own_writes_follow() {
    let mut desk = desk();
    assert_eq!(desk.fence(2), Ok(()));
    assert_eq!(desk.fence(2), Ok(()));
    assert_eq!(desk.write(2, 1, "k", "a"), Ok(true));
    assert_eq!(desk.fence(2), Ok(()), "a late copy");
    assert_eq!(
        desk.write(2, 1, "k", "b"),
        Ok(false),
        "which does not begin the seqs anew"
    );
}

#[test]
fn the_same_token_and_seq_again_repeats_the_answer_and_does_nothing() {
    let mut desk = desk();
    desk.write(1, 1, "k", "a").unwrap();
    assert_eq!(desk.write(1, 1, "k", "b"), Ok(false));
    assert_eq!(desk.read("k"), Some("a"));
    desk.delete(1, 2, "k").unwrap();
    assert_eq!(desk.delete(1, 2, "k"), Ok(false));
}

#[test]
fn a_lower_seq_is_refused_so_that_a_late_copy_undoes_nothing() {
    let mut desk = desk();
    desk.write(1, 1, "k", "a").unwrap();
    desk.write(1, 2, "k", "b").unwrap();
    let refusal = desk.0.write(&lease(), 1, 1, &"k".into(), "a".into());
    assert_eq!(
        refusal,
        Err(Refusal::OldSeq {
            presented_seq: 1,
            last_seq: 2
        })
    );
    assert_eq!(
        desk.delete(1, 1, "k"),
        Err("old-seq"),
        "deletes stand in one row with writes"
    );
    assert_eq!(desk.read("k"), Some("b"));
}

#[test]
fn seqs_may_skip_and_begin_anywhere_in_each_term() {
    let mut desk = desk();
    assert_eq!(desk.write(1, 900, "k", "a"), Ok(true));
    assert_eq!(desk.write(1, 905, "k", "b"), Ok(true));
    assert_eq!(desk.write(2, 0, "k", "c"), Ok(true));
}

#[test]
fn a_delete_removes_the_value_and_leaves_the_token_seen() {
    let mut desk = desk();
    desk.write(7, 1, "k", "a").unwrap();
    assert_eq!(desk.delete(7, 2, "k"), Ok(true));
    assert_eq!(desk.read("k"), None);
    assert_eq!(desk.write(6, 1, "k", "zombie"), Err("stale-token"));
    assert_eq!(desk.delete(7, 3, "absent"), Ok(true));
}

#[test]
fn a_delete_shows_a_higher_token_as_a_write_does() {
    let mut desk = desk();
    desk.delete(7, 1, "absent").unwrap();
    assert_eq!(desk.write(6, 1, "k", "zombie"), Err("stale-token"));
}

#[test]
fn leases_do_not_know_each_other() {
    let mut storage = FencedStorage::new(Planted::NONE);
    let (x, y, key) = ("x".into(), "y".into(), "k".into());
    storage.write(&x, 9, 1, &key, "of x".into()).unwrap();
    storage.write(&y, 1, 1, &key, "of y".into()).unwrap();
    assert_eq!(storage.read(&x, &key).unwrap(), "of x");
    assert_eq!(storage.read(&y, &key).unwrap(), "of y");
    assert_eq!(storage.highest().collect::<Vec<_>>(), [(&x, 9), (&y, 1)]);
}

#[test]
fn a_restart_keeps_token_seq_and_value() {
    let mut desk = desk();
    desk.write(7, 3, "k", "a").unwrap();
    desk.fence(8).unwrap();
    let before = desk.0.clone();
    desk.restart();
    assert_eq!(desk.0, before);
    assert_eq!(desk.write(7, 4, "k", "zombie"), Err("stale-token"));
    assert_eq!(desk.read("k"), Some("a"));
    desk.write(8, 5, "k", "b").unwrap();
    desk.restart();
    assert_eq!(desk.write(8, 5, "k", "c"), Ok(false));
}

#[test]
fn refused_operations_leave_nothing_behind() {
    let mut desk = desk();
    desk.write(7, 3, "k", "a").unwrap();
    let before = desk.0.clone();
    let _ = desk.write(6, 9, "k", "b");
    let _ = desk.write(7, 2, "k", "b");
    let _ = desk.delete(6, 9, "k");
    let _ = desk.fence(6);
    assert_eq!(desk.0, before);
}

#[test]
fn a_write_whose_first_copy_was_applied_is_not_said_to_have_failed() {
    let mut desk = desk();
    desk.write(7, 1, "k", "a").unwrap();
    // Its answer is lost; token 8 comes; the second copy comes.
    desk.fence(8).unwrap();
    assert_eq!(desk.before(7, 1), Certainty::MayHaveApplied);
    assert_eq!(
        desk.before(7, 2),
        Certainty::NotApplied,
        "no later one than seq 1 was applied"
    );
}

#[test]
fn a_write_that_a_later_one_overtook_may_have_been_applied_before_it() {
    let mut desk = desk();
    desk.write(7, 5, "k", "a").unwrap();
    desk.fence(8).unwrap();
    assert_eq!(desk.before(7, 3), Certainty::MayHaveApplied);
}

#[test]
fn a_write_under_a_token_never_seen_surely_failed() {
    let mut desk = desk();
    desk.fence(8).unwrap();
    assert_eq!(desk.before(7, 1), Certainty::NotApplied);
}

#[test]
fn a_write_under_a_token_that_only_fenced_surely_failed() {
    let mut desk = desk();
    desk.fence(7).unwrap();
    desk.fence(8).unwrap();
    assert_eq!(desk.before(7, 1), Certainty::NotApplied);
}

#[test]
fn a_fence_whose_first_copy_was_taken_is_not_said_to_have_failed() {
    let mut desk = desk();
    desk.write(6, 1, "k", "a").unwrap();
    desk.fence(7).unwrap();
    desk.fence(8).unwrap();
    assert_eq!(desk.fence_before(7), Certainty::MayHaveApplied);
    assert_eq!(
        desk.fence_before(6),
        Certainty::NotApplied,
        "it wrote, but never fenced"
    );
    assert_eq!(desk.fence_before(5), Certainty::NotApplied);
}

#[test]
fn what_is_no_longer_remembered_may_have_been_applied() {
    let mut desk = desk();
    let terms = TERMS_KEPT as Token;
    for token in (10..).step_by(10).take(TERMS_KEPT + 1) {
        desk.write(token, 1, "k", "a").unwrap();
    }
    assert_eq!(desk.highest(), 10 * (terms + 1));
    assert_eq!(desk.before(10, 9), Certainty::MayHaveApplied, "forgotten");
    assert_eq!(
        desk.before(5, 9),
        Certainty::MayHaveApplied,
        "older than what was forgotten"
    );
    assert_eq!(desk.before(15, 9), Certainty::NotApplied, "never seen");
    assert_eq!(
        desk.before(20, 9),
        Certainty::NotApplied,
        "remembered: seq 1 was its last"
    );
    assert_eq!(desk.before(20, 1), Certainty::MayHaveApplied);
    assert_eq!(desk.0.shard(&lease()).unwrap().terms.len(), TERMS_KEPT);
}

#[test]
fn what_a_refusal_knows_outlives_a_restart() {
    let mut desk = desk();
    desk.write(7, 1, "k", "a").unwrap();
    desk.fence(8).unwrap();
    desk.restart();
    assert_eq!(desk.before(7, 1), Certainty::MayHaveApplied);
    assert_eq!(desk.before(7, 2), Certainty::NotApplied);
}

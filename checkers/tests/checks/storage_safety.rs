use deposed_checkers::history::{Observation, StorageRecovered};
use deposed_checkers::verdict::Check::StorageSafety;

use crate::tale::*;

#[test]
fn nothing_lands_below_a_token_that_was_seen() {
    tale()
        .takes_fence("s", 7)
        .applies("s", 7, 1)
        .applies("s", 8, 1)
        .passes(StorageSafety);
    let below = tale().takes_fence("s", 8).applies("s", 7, 1);
    let evidence = below.convicts(StorageSafety, "with token 7 landed", &[0, 1]);
    assert_eq!(
        evidence.sentence,
        "a write with token 7 landed after storage had seen token 8"
    );
    assert_eq!(evidence.expected, "refused, storage had seen 8");
    tale()
        .applies("s", 8, 1)
        .takes_fence("s", 7)
        .convicts(StorageSafety, "a fence", &[0, 1]);
}

#[test]
fn each_replica_has_its_own_order() {
    tale()
        .takes_fence("s1", 8)
        .applies("s2", 7, 1)
        .takes_fence("s2", 8)
        .passes(StorageSafety);
}

#[test]
fn a_restart_forgets_nothing() {
    let found = |token| {
        let highest = [("leader".into(), token)].into();
        Observation::StorageRecovered(StorageRecovered { highest })
    };
    tale()
        .takes_fence("s", 8)
        .saw("s", found(8))
        .applies("s", 8, 1)
        .passes(StorageSafety);
    tale()
        .takes_fence("s", 8)
        .saw("s", found(6))
        .applies("s", 7, 1)
        .convicts(StorageSafety, "token 8", &[0, 2]);
    tale()
        .saw("s", found(8))
        .applies("s", 7, 1)
        .convicts(StorageSafety, "token 8", &[0, 1]);
}

#[test]
fn what_was_acknowledged_binds_what_is_sent_later() {
    tale().fences("b", 8).convicts_nothing_for_a_late_write();
    tale()
        .fences("b", 8)
        .writes("a", 7)
        .convicts(StorageSafety, "acknowledged", &[1, 2, 3]);
    tale()
        .writes("b", 8)
        .fences("a", 7)
        .convicts(StorageSafety, "a fence", &[1, 2, 3]);
    tale().fences("b", 8).writes("b", 8).passes(StorageSafety);
    // Sent before, it may have landed before.
    tale()
        .invoke("a", write(7, 1))
        .fences("b", 8)
        .ends_ok(0)
        .passes(StorageSafety);
    // Nor does a read or an unacknowledged fence bind anyone.
    tale()
        .ok("b", read(8))
        .times_out("b", fence(8))
        .writes("a", 7)
        .passes(StorageSafety);
}

#[test]
fn a_retry_may_be_told_its_first_answer() {
    let retried = |seq| {
        tale()
            .times_out("a", write(7, 1))
            .fences("b", 8)
            .ok("a", write(7, seq))
    };
    retried(1).passes(StorageSafety);
    retried(2).convicts(StorageSafety, "acknowledged", &[3, 4, 5]);
}

#[test]
fn both_sides_count_where_both_are_recorded() {
    // The fence was answered and recorded nothing.
    tale()
        .applies("s", 7, 1)
        .fences("b", 8)
        .ok("a", write(7, 2))
        .convicts(StorageSafety, "acknowledged", &[2, 3, 4]);
}

#[test]
fn without_tokens_nothing_is_claimed() {
    tale()
        .acquires("a", None)
        .writes("a", None)
        .claims_nothing(StorageSafety, "token");
}

impl Tale {
    fn convicts_nothing_for_a_late_write(self) {
        self.times_out("a", write(7, 1))
            .stale("a", write(7, 2), 8)
            .passes(StorageSafety);
    }
}

use deposed_checkers::history::{F, Observation, Refused, StorageRecovered};
use deposed_checkers::verdict::{Check::StorageSafety, Verdict};

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
fn the_evidence_is_what_first_showed_the_higher_token() {
    tale()
        .takes_fence("s", 8)
        .applies("s", 8, 1)
        .saw("s", found(&[("leader", 8)]))
        .applies("s", 7, 1)
        .convicts(StorageSafety, "token 8", &[0, 3]);
}

#[test]
fn each_replica_has_its_own_order() {
    tale()
        .takes_fence("s1", 8)
        .applies("s2", 7, 1)
        .takes_fence("s2", 8)
        .passes(StorageSafety);
}

fn found(highest: &[(&str, u64)]) -> Observation {
    let highest = highest
        .iter()
        .map(|(lease, token)| ((*lease).into(), *token))
        .collect();
    Observation::StorageRecovered(StorageRecovered { highest })
}

#[test]
fn a_restart_forgets_nothing() {
    for highest in [8, 9] {
        tale()
            .takes_fence("s", 8)
            .saw("s", found(&[("leader", highest)]))
            .applies("s", highest, 1)
            .passes(StorageSafety);
    }
    tale()
        .saw("s", found(&[("leader", 8)]))
        .applies("s", 7, 1)
        .convicts(StorageSafety, "token 8", &[0, 1]);
    let fenced = tale().takes_fence("s", 3).takes_fence("s", 5);
    let applied = tale().applies("s", 3, 1).applies("s", 5, 2);
    let found_before = tale().applies("s", 3, 1).saw("s", found(&[("leader", 5)]));
    for before in [fenced, applied, found_before] {
        before
            .clone()
            .saw("s", found(&[("leader", 5)]))
            .passes(StorageSafety);
        // Whatever comes after it, and if nothing does.
        let evidence = before
            .clone()
            .saw("s", found(&[("leader", 3)]))
            .applies("s", 5, 3)
            .convicts(StorageSafety, "came back", &[1, 2]);
        assert_eq!(
            evidence.sentence,
            "storage came back with highest token 3 after it had seen 5"
        );
        assert_eq!(evidence.culprit, 2);
        assert_eq!(evidence.expected, "5 or more");
        for lost in [found(&[]), found(&[("other", 9)])] {
            let evidence =
                before
                    .clone()
                    .saw("s", lost)
                    .convicts(StorageSafety, "came back", &[1, 2]);
            assert_eq!(
                evidence.sentence,
                "storage came back without a highest token for leader after it had seen 5"
            );
            assert_eq!(evidence.culprit, 2);
        }
    }
}

#[test]
fn a_restart_answers_for_its_own_node() {
    tale()
        .takes_fence("s1", 8)
        .takes_fence("s3", 9)
        .saw("s2", found(&[("leader", 6)]))
        .saw("s2", found(&[("leader", 6)]))
        .saw("s4", found(&[]))
        .passes(StorageSafety);
    tale()
        .takes_fence("s1", 8)
        .takes_fence("s2", 7)
        .saw("s2", found(&[("leader", 6)]))
        .convicts(StorageSafety, "had seen 7", &[1, 2]);
    // A first boot with nothing, and one more before anything was seen.
    tale()
        .saw("s", found(&[]))
        .takes_fence("s", 1)
        .saw("s", found(&[("leader", 1)]))
        .passes(StorageSafety);
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
    // The highest, and what first showed it.
    tale()
        .fences("a", 6)
        .fences("b", 8)
        .writes("b", 8)
        .writes("c", 7)
        .convicts(StorageSafety, "seen token 8", &[3, 6, 7]);
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

#[test]
fn whose_the_tokens_are_is_told_as_far_as_it_is_known() {
    let called = |tale: Tale| tale.invoke("a", write(7, 1));
    let below = |tale: Tale| match tale.applies("s", 7, 1).verdict(StorageSafety) {
        Verdict::Violated(evidence) => evidence.sentence,
        verdict => panic!("{verdict:?}"),
    };
    let sentence = "a write with token 7 landed after storage had seen token 8";
    let both = called(tale()).invoke("b", fence(8)).takes_fence("s", 8);
    assert_eq!(
        below(both),
        format!("{sentence}: it was a's, and token 8 was b's")
    );
    let one = called(tale()).takes_fence("s", 8);
    assert_eq!(below(one), format!("{sentence}: it was a's"));
    let same = called(tale()).invoke("a", fence(8)).takes_fence("s", 8);
    assert_eq!(below(same), format!("{sentence}: both were a's"));
    // Nobody was seen to send it.
    assert_eq!(below(tale().takes_fence("s", 8)), sentence);
}

#[test]
fn what_the_replicas_answered_is_shown_beside_what_the_client_was_told() {
    let refuses = |tale: Tale, node: &str, seq| {
        let (f, lease, seq) = (F::Write, "leader".into(), Some(seq));
        let refused = Refused {
            f,
            lease,
            token: 1,
            seq,
            seen: 2,
        };
        tale.saw(node, Observation::Refused(refused))
    };
    let sent = tale().fences("b", 2).invoke("a", write(1, 9));
    // Of another write.
    let tale = refuses(sent, "s1", 8);
    let tale = refuses(refuses(tale, "s1", 9), "s2", 9);
    let evidence = tale.applies("s3", 1, 9).ends_ok(2).convicts(
        StorageSafety,
        "was sent and acknowledged",
        &[1, 2, 4, 5, 6, 7],
    );
    assert!(
        evidence
            .sentence
            .ends_with("token 2 was b's; s1 and s2 refused it"),
        "{}",
        evidence.sentence
    );
}

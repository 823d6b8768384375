use deposed_checkers::history::Op;
use deposed_checkers::verdict::Check::ElectionBarrier;
use serde_json::json;

use crate::tale::*;

#[test]
fn the_first_act_of_a_term_is_its_fence() {
    for op in [write(1, 1), read(1), delete(1)] {
        tale()
            .acquires("a", 1)
            .fences("a", 1)
            .ok("a", op.clone())
            .passes(ElectionBarrier);
        tale()
            .acquires("a", 1)
            .ok("a", op.clone())
            .fences("a", 1)
            .convicts(ElectionBarrier, "without a fence(1)", &[2]);
        tale()
            .acquires("a", 1)
            .fences("a", 1)
            .acquires("a", 2)
            .ok("a", op_under_two(op))
            .convicts(ElectionBarrier, "without a fence(2)", &[6]);
    }
}

fn op_under_two(op: Op) -> Op {
    match op {
        Op::Write(_) => write(2, 1),
        Op::Read(_) => read(2),
        _ => delete(2),
    }
}

#[test]
fn a_fence_that_was_not_acknowledged_is_none() {
    tale()
        .acquires("a", 1)
        .invoke("a", fence(1))
        .invoke("a", write(1, 1))
        .ends_ok(2)
        .convicts(ElectionBarrier, "before its fence(1)", &[2, 3]);
    tale()
        .acquires("a", 1)
        .times_out("a", fence(1))
        .writes("a", 1)
        .convicts(ElectionBarrier, "before its fence(1)", &[2, 4]);
    tale()
        .acquires("a", 1)
        .stale("a", fence(1), 2)
        .writes("a", 1)
        .convicts(
            ElectionBarrier,
            "though its fence(1) had failed",
            &[2, 3, 4],
        );
    // One that failed and is tried again is on its way.
    tale()
        .acquires("a", 1)
        .stale("a", fence(1), 2)
        .invoke("a", fence(1))
        .writes("a", 1)
        .convicts(ElectionBarrier, "before its fence(1)", &[4, 5]);
    // That of an earlier term tells nothing of this one.
    tale()
        .acquires("a", 1)
        .stale("a", fence(1), 2)
        .acquires("a", 2)
        .writes("a", 2)
        .convicts(ElectionBarrier, "without a fence(2)", &[6]);
}

#[test]
fn a_fence_that_was_acknowledged_stays_so_under_later_terms() {
    tale()
        .acquires("a", 1)
        .acquires("b", 2)
        .fences("b", 2)
        .fences("a", 1)
        .writes("b", 2)
        .writes("a", 1)
        .passes(ElectionBarrier);
}

#[test]
fn where_the_storage_grants_the_leases_no_barrier_is_claimed() {
    let mut granted = tale().acquires("a", 1).writes("a", 1);
    granted.header = {
        let mut header = serde_json::to_value(&granted.header).unwrap();
        header["cluster"] = json!({"storage": "compare-and-swap"});
        serde_json::from_value(header).unwrap()
    };
    granted.claims_nothing(ElectionBarrier, "a grant is the barrier");
}

/// Storage may compare the token of each write instead: such a system has no barrier to set.
#[test]
fn whom_nobody_asked_for_a_barrier_owes_none() {
    tale()
        .acquires("a", 1)
        .writes("a", 1)
        .acquires("b", 2)
        .writes("b", 2)
        .claims_nothing(ElectionBarrier, "nobody fences in this history");
    // Where one does, all must; whichever comes first.
    tale()
        .acquires("a", 1)
        .writes("a", 1)
        .acquires("b", 2)
        .fences("b", 2)
        .convicts(ElectionBarrier, "without a fence(1)", &[2]);
}

#[test]
fn a_fence_carries_the_leases_token() {
    tale()
        .acquires("a", 1)
        .fences("a", 2)
        .writes("a", 2)
        .convicts(ElectionBarrier, "no token of its own", &[2]);
    tale()
        .grants("a", 0, 1, 0)
        .acquires("a", 1)
        .fences("a", 2)
        .convicts(ElectionBarrier, "no token of its own", &[3]);
    // Nobody's grants are recorded here.
    tale().fences("a", 2).writes("a", 2).passes(ElectionBarrier);
}

#[test]
fn storage_alone_shows_it_too() {
    tale()
        .takes_fence("s", 1)
        .applies("s", 1, 1)
        .passes(ElectionBarrier);
    tale()
        .applies("s", 1, 1)
        .takes_fence("s", 1)
        .convicts(ElectionBarrier, "before any", &[0]);
    tale()
        .applies("s", 1, 1)
        .claims_nothing(ElectionBarrier, "no fence");
}

#[test]
fn observers_read_without_a_token() {
    tale()
        .acquires("a", 1)
        .fences("a", 1)
        .ok("r", read(None))
        .passes(ElectionBarrier);
    tale()
        .acquires("a", None)
        .writes("a", None)
        .claims_nothing(ElectionBarrier, "token");
}

/// Storage that grants the leases itself knows its owner without being told.
#[test]
fn where_the_grant_is_the_barrier_nobody_need_fence() {
    let compare_and_swap = || tale().storage(json!("compare-and-swap"));
    let unfenced = |tale: Tale| tale.acquires("a", 1).writes("a", 1);
    unfenced(compare_and_swap()).claims_nothing(ElectionBarrier, "a grant is the barrier");
    unfenced(tale().storage(json!("fenced"))).convicts(ElectionBarrier, "without a fence(1)", &[2]);
    compare_and_swap()
        .grants("a", 1, 1, 0)
        .applies("s", 1, 1)
        .claims_nothing(ElectionBarrier, "a grant is the barrier");
    // Who fences fences with its own token all the same.
    compare_and_swap()
        .acquires("a", 1)
        .fences("a", 1)
        .claims_nothing(ElectionBarrier, "a grant is the barrier");
    compare_and_swap().acquires("a", 1).fences("a", 2).convicts(
        ElectionBarrier,
        "no token of its own",
        &[2],
    );
}

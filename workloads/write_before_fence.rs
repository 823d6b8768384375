//! `write-before-fence`: why a new leader fences before it does anything else.

use deposed::prelude::*;

/// A deposed leader's write reaches storage after the new leader was elected and
/// before its first write. Storage that has only seen the old token must take it:
/// the barrier is what makes it see the new one in time.
pub fn workload() -> Workload {
    let writing = [Moment::invoking(F::Write)];
    let elected = [Moment::done(F::Fence)];
    let fenced = Arm {
        name: "highest-seen",
        storage: StorageKind::Fenced,
        without_barrier: false,
        lock_delay: 0,
    };
    Workload {
        story: "a deposed leader's write arrives between the new leader's fence and first write",
        nemesis: Nemesis::dense(
            1,
            2,
            vec![
                delay("write")
                    .between(Target::Leader, Target::Storage)
                    .aimed(&writing)
                    .lasting(Length::AroundTtl)
                    .weight(3),
                gc_pause(Target::Leader, Some(F::Write)).lasting(Length::AroundTtl),
                partition(Target::Leader, Target::Store)
                    .aimed(&writing)
                    .weight(2),
                delay("read-reply")
                    .only_on(&elected)
                    .lasting(Length::Short)
                    .weight(2),
                pause(Target::Leader)
                    .only_on(&elected)
                    .lasting(Length::Short),
            ],
        ),
        must_see: vec![Mark::StaleWriteRefused, Mark::StaleWriteRefusedByBarrier],
        catches: vec![
            (Flaw::FenceIsANoOp, Check::StorageSafety),
            (Flaw::NoBarrier, Check::ElectionBarrier),
            (Flaw::BarrierAfterWrite, Check::ElectionBarrier),
            (Flaw::TokenPerKey, Check::StorageSafety),
            (Flaw::OffByOne, Check::StorageSafety),
            (Flaw::CheckThenAct, Check::StorageSafety),
        ],
        compares: vec![
            fenced,
            Arm {
                name: "highest-seen without barrier",
                without_barrier: true,
                ..fenced
            },
            Arm {
                name: "compare-and-swap",
                storage: StorageKind::CompareAndSwap,
                ..fenced
            },
        ],
        ..Workload::named("write-before-fence")
    }
}

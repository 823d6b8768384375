//! `gc-pause`: a leader stops between its check and its act.

use deposed::prelude::*;

/// A stop-the-world pause of up to two ttls catches the leader after it has asked
/// `is_leader()` and before the act that relies on the answer. It wakes up deposed,
/// acts all the same, and only its token can stop it.
pub fn workload() -> Workload {
    let leader = Target::Leader;
    Workload {
        story: "the leader is paused before a read, write, fence or renewal, up to two ttls",
        nemesis: Nemesis::one_in(
            2,
            vec![
                gc_pause(leader, Some(F::Write)).weight(3),
                gc_pause(leader, Some(F::Read)),
                // Whoever is elected next stops between its grant and its barrier.
                gc_pause(Target::Follower, Some(F::Fence)).weight(2),
                gc_pause(leader, Some(F::Renew)),
                gc_pause(leader, None),
                pause(leader).aimed(&[Moment::done(F::Acquire), Moment::done(F::Fence)]),
            ],
        ),
        must_see: vec![
            Mark::PausedPastItsTerm,
            Mark::TakenOverAfterExpiry,
            Mark::StaleWriteRefused,
        ],
        catches: vec![
            (Flaw::AcceptsAnything, Check::StorageSafety),
            (Flaw::OffByOne, Check::StorageSafety),
            (Flaw::BeliefIsAFlag, Check::BeliefSafety),
            (Flaw::GrantsEarly, Check::LeaseLinearizable),
        ],
        ..Workload::named("gc-pause")
    }
}

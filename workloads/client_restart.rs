//! `client-restart`: leaders crash and start again.

use deposed::prelude::*;

/// The leader's process ends and is back soon, often within the lease that it had. It
/// is a new holder all the same: nothing tells it what of its last term's work was
/// done, so it waits for a term, and a token, of its own.
pub fn workload() -> Workload {
    let leader = Target::Leader;
    let elected = [Moment::done(F::Acquire), Moment::done(F::Fence)];
    let working = [Moment::invoking(F::Write), Moment::done(F::Renew)];
    Workload {
        story: "the leader crashes or loses power, and is back within its lease or after it",
        nemesis: Nemesis::one_in(
            2,
            vec![
                crash(leader)
                    .aimed(&working)
                    .lasting(Length::Short)
                    .weight(3),
                crash(leader).aimed(&elected).lasting(Length::Short),
                power_loss(leader).aimed(&working).weight(2),
                power_loss(leader).lasting(Length::AroundTtl),
                crash(Target::Follower),
            ],
        ),
        must_see: vec![Mark::Restarted, Mark::TakenOverAfterExpiry, Mark::Wrote],
        catches: vec![(Flaw::ResumeAfterRestart, Check::TokenMonotonicity)],
        ..Workload::named("client-restart")
    }
}

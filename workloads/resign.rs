//! `resign`: leaders give their leases back.

use deposed::prelude::*;

/// Every leader resigns after two ttls, in the midst of its work. Releases are lost,
/// come late, or come twice: perhaps when the same client has the lease again.
pub fn workload() -> Workload {
    let calm = Workload::named("resign").with_ttl(450 * MS);
    // Whoever has given up on its release asks again while the lease still runs: what the
    // delayed release then finds must be another term.
    let lease = LeaseConfig {
        backoff_min: calm.lease.ttl / 5,
        backoff_max: calm.lease.ttl / 4,
        ..calm.lease.clone()
    };
    let resigning = [Moment::invoking(F::Release)];
    Workload {
        story: "every leader resigns after two ttls; releases are lost, late, or doubled",
        traffic: Traffic {
            resign_every: Some(calm.lease.ttl * 2),
            ..calm.traffic.clone()
        },
        nemesis: Nemesis::dense(
            1,
            2,
            vec![
                delay("release").lasting(Length::AroundTtl).weight(3),
                delay("release-reply"),
                duplicate("release").weight(3),
                duplicate("release-reply"),
                lose("release"),
                lose("release-reply"),
                delay("write").aimed(&resigning),
                pause(Target::AnyClient).aimed(&resigning),
            ],
        ),
        must_see: vec![
            Mark::TakenOverAfterRelease,
            Mark::FrameDelayed,
            Mark::FrameDuplicated,
        ],
        catches: vec![
            (Flaw::ReleaseBeforeStepDown, Check::BeliefSafety),
            (Flaw::ReleaseBeforeStepDown, Check::Conduct),
            (Flaw::ReleaseBeforeDrain, Check::Conduct),
            (Flaw::ReleaseResetsCounter, Check::TokenMonotonicity),
            (Flaw::RandomTokens, Check::TokenMonotonicity),
            (Flaw::NarrowCounter, Check::TokenMonotonicity),
            (Flaw::SameTokenAgain, Check::BeliefSafety),
            (Flaw::ReleasesAnything, Check::LeaseLinearizable),
        ],
        lease,
        ..calm
    }
}

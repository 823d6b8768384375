//! What the store grants, renews, releases and forgets.

use deposed::prelude::*;

use super::{Case, at, crashed, cut_off, late, on, stalled, twice};

const RENEWED: Moment = Moment::done(F::Renew);
const GRANTED: Moment = Moment::done(F::Acquire);

pub(super) fn cases() -> Vec<Case> {
    let resigning = |workload: &mut Workload| workload.traffic.resign_every = Some(400 * MS);
    vec![
        Case::of(
            "expiry-decided-before-a-renewal",
            "a stuck store leader applies an expiry that it had decided before the lease was \
             renewed",
            &["etcd-io/etcd#12528, #15247"],
        )
        .under([
            on(RENEWED, 4, late("renew", 2, 60)),
            at(1500, late("renew", 4, 90)),
        ])
        .showing([Mark::FrameDelayed, Mark::Wrote])
        .planting(Flaw::StaleExpiry, Check::BeliefSafety),
        Case::of(
            "renewed-after-its-end",
            "the lease has run out, and a renewal answers ok all the same",
            &[
                "etcd-io/etcd#14758",
                "leandromoreira/redlock-rb#36",
                "fighthealthinsurance/fighthealthinsurance pull 972",
                "docker/libkv pull 120",
            ],
        )
        .under([on(RENEWED, 4, stalled(F::Renew, 500))])
        .showing([Mark::PausedPastItsTerm, Mark::TakenOverAfterExpiry])
        .planting(Flaw::RenewsTheDead, Check::LeaseLinearizable),
        Case::of(
            "two-of-one-name",
            "two processes go by one name, and each finds that the holder is itself",
            &[
                "kubernetes/kubernetes#61151, #22775",
                "kubernetes-csi/external-provisioner pull 690",
                "apache/curator#1211",
            ],
        )
        .under([
            on(GRANTED, 1, twice("renew", 6, 700)),
            on(RENEWED, 4, crashed(Target::Leader, 50)),
        ])
        .showing([
            Mark::FrameDuplicated,
            Mark::Restarted,
            Mark::TakenOverAfterExpiry,
        ])
        .planting(Flaw::RenewByName, Check::LeaseLinearizable),
        Case::of(
            "counter-restarts-with-its-last-owner",
            "the counter is dropped when the lease is given back, and starts again",
            &[
                "apache/pulsar pull 12193",
                "redisson/redisson#6510",
                "kubernetes/kubernetes#41956",
                "consul kvs.go, LockIndex of a deleted key",
            ],
        )
        .with(resigning)
        .showing([Mark::TakenOverAfterRelease])
        .planting(Flaw::ReleaseResetsCounter, Check::TokenMonotonicity),
        Case::of(
            "returning-holder-gets-its-old-token",
            "the same holder comes back and is handed the token that it had",
            &["kubernetes/kubernetes#61151"],
        )
        .with(|workload| workload.cluster.clients = 1)
        .under([on(RENEWED, 4, cut_off(600))])
        .showing([Mark::LeaderCutOff, Mark::Wrote])
        .planting(Flaw::SameHolderSameToken, Check::TokenMonotonicity),
        Case::of(
            "narrow-counter-wraps",
            "a sequence of few bits wraps, and a stale one counts as new",
            &[
                "python-zk/kazoo#730",
                "apache/kafka pull 8239, 21506, 3183",
                "PostHog/posthog pull 79901",
            ],
        )
        .with(resigning)
        .showing([Mark::TakenOverAfterRelease])
        .planting(Flaw::NarrowCounter, Check::TokenMonotonicity),
        Case::of(
            "tokens-that-do-not-rise",
            "what is called a fencing token is a random number: nobody can tell which is newer",
            &[
                "constructorfabric/gears-rust pull 4863",
                "awslabs/amazon-dynamodb-lock-client#1",
            ],
        )
        .with(resigning)
        .showing([Mark::TakenOverAfterRelease])
        .planting(Flaw::RandomTokens, Check::TokenMonotonicity),
        Case::of(
            "back-from-an-old-copy",
            "the store comes back from a backup, and its counter with it",
            &["etcd-io/etcd#16028", "hashicorp/vault#3226"],
        )
        .with(|workload| workload.cluster = Cluster::of(2).on_disks())
        .with(resigning)
        .under([
            at(
                600,
                Fault::Backup {
                    target: Target::Store,
                },
            ),
            at(
                1800,
                Fault::Restore {
                    target: Target::Store,
                    length: 50 * MS,
                },
            ),
        ])
        .showing([Mark::GrantedAfterRestore, Mark::TakenOverAfterRelease])
        .planting(Flaw::RestoredWithoutFloor, Check::TokenMonotonicity),
        Case::of(
            "lock-delay-in-memory-alone",
            "the lock-delay lives in the server's memory: a restart drops it",
            &["consul delay_oss.go"],
        )
        .with(|workload| workload.lease.lock_delay = 300 * MS)
        .under([
            on(RENEWED, 4, cut_off(900)),
            at(700, crashed(Target::Store, 20)),
        ])
        .showing([Mark::LeaderCutOff, Mark::LockDelayOutlivedRestart])
        .planting(Flaw::LockDelayForgotten, Check::LockDelay),
        Case::of(
            "copy-without-the-counter-takes-over",
            "a replica is promoted that never heard of the lock",
            &[
                "sibson/redbeat#163",
                "opsmill/infrahub#9450",
                "mike-marcacci/node-redlock#16",
            ],
        )
        .under([on(RENEWED, 4, crashed(Target::Store, 20))])
        .showing([Mark::Restarted, Mark::RenewedAcrossStoreRestart])
        .planting(Flaw::ForgetsCounter, Check::TokenMonotonicity),
        Case::of(
            "restart-forgets-the-lease",
            "a node restarts without what it had promised, and grants at once",
            &["Redis documentation of Redlock, crashes without fsync"],
        )
        .under([on(RENEWED, 4, crashed(Target::Store, 20))])
        .showing([Mark::Restarted, Mark::RenewedAcrossStoreRestart])
        .planting(Flaw::ForgetsLease, Check::BeliefSafety),
        Case::of(
            "released-by-somebody-else",
            "a release deletes whatever is there",
            &[
                "nateware/redis-objects#234",
                "abelaska/jedis-lock#2",
                "redis/redis-py#415",
                "lukas-krecan/ShedLock#74",
            ],
        )
        .with(resigning)
        .under([at(0, twice("release", 8, 200))])
        .showing([Mark::FrameDuplicated, Mark::TakenOverAfterRelease])
        .planting(Flaw::ReleasesAnything, Check::LeaseLinearizable),
        Case::of(
            "acquire-waits-for-itself",
            "the grant's answer is lost; the retry is a new waiter behind its own orphan",
            &["Netflix/curator#3", "apache/curator#566"],
        )
        .under([at(0, super::lost("acquire-reply", 1))])
        .showing([Mark::FrameLost, Mark::Wrote])
        .planting(Flaw::AcquireTwice, Check::LeaseLinearizable),
        Case::of(
            "wall-clock-steps-at-the-store",
            "one node's wall clock steps forward and its leases are over",
            &["the published critique of Redlock"],
        )
        .under([at(
            1000,
            Fault::Step {
                target: Target::Store,
                by: 2_000_000_000,
            },
        )])
        .showing([Mark::WallClockStepped, Mark::Wrote])
        .planting(Flaw::WallClockStore, Check::LeaseLinearizable),
    ]
}

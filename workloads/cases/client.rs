//! Belief, clocks and the renewal loop.

use deposed::prelude::*;

use super::{Case, at, crashed, cut_off, late, lost, on, stalled};

const RENEWED: Moment = Moment::done(F::Renew);

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::of(
            "renewal-call-outlives-the-lease",
            "the renewal call may take longer than the lease, and the leader steps down only \
             when it has returned",
            &["kubernetes/kubernetes#44887", "kubernetes/kubernetes#65090"],
        )
        .under([on(RENEWED, 4, cut_off(900))])
        .showing([Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::RenewCallOutlivesLease, Check::BeliefSafety),
        Case::of(
            "store-hangs",
            "the store takes the renewal and never answers; nothing limits the call",
            &["kubernetes/kubernetes#65090"],
        )
        .under([on(
            RENEWED,
            4,
            Fault::PartitionOneway {
                from: Target::Store,
                to: Target::Leader,
                length: 900 * MS,
            },
        )])
        .showing([Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::RenewCallOutlivesLease, Check::BeliefSafety),
        Case::of(
            "loss-is-never-told",
            "after a lost lease the loop sees another holder and goes on polling; nobody tells \
             the application",
            &[
                "kubernetes/kubernetes#23731",
                "Netflix/curator#216",
                "apache/curator#727",
                "etcd-io/etcd pull 5603",
                "hashicorp/vault#1184",
                "redisson/redisson#3636",
                "client-go IsLeader(), which compares names and no time",
            ],
        )
        .under([on(RENEWED, 4, cut_off(900))])
        .showing([Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::BeliefIsAFlag, Check::BeliefSafety),
        Case::of(
            "renewals-starve-beside-work",
            "the thread that renews stands still, the one that works does not, and counts \
             nothing down by itself",
            &["redisson/redisson#5698", "tikv/pd#1661"],
        )
        .under([on(RENEWED, 4, lost("renew", 12))])
        .showing([Mark::FrameLost, Mark::TakenOverAfterExpiry])
        .planting(Flaw::BeliefIsAFlag, Check::BeliefSafety),
        Case::of(
            "child-runs-on",
            "the minority side answers slowly; the work that the lease guards goes on for \
             minutes after it",
            &["hashicorp/consul#1843", "cilium/cilium pull 42920"],
        )
        .under([
            on(RENEWED, 4, late("renew-reply", 4, 500)),
            on(RENEWED, 4, cut_off(900)),
        ])
        .showing([Mark::FrameDelayed, Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::BeliefIsAFlag, Check::BeliefSafety),
        Case::of(
            "counted-from-the-answer",
            "the renewal is stamped when its slow answer comes, not when it was sent",
            &[
                "hopshadoop/hops#99",
                "client-go leaderelection.go, step-down against takeover",
                "etcd client lease.go, deadline from the answer",
                "hashicorp/raft replication.go, contact set after the reply",
            ],
        )
        .under([
            on(Moment::invoking(F::Renew), 5, late("renew-reply", 1, 45)),
            on(RENEWED, 5, cut_off(900)),
        ])
        .showing([Mark::FrameDelayed, Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::CountFromReply, Check::BeliefSafety),
        Case::of(
            "answers-read-after-a-pause",
            "the store's answer lies in the socket while its reader is paused, and is counted \
             from the reading",
            &["the published critique of Redlock"],
        )
        .under([
            on(
                Moment::invoking(F::Acquire),
                3,
                Fault::Pause {
                    target: Target::AnyClient,
                    length: 400 * MS,
                },
            ),
            on(Moment::done(F::Acquire), 1, stalled(F::Renew, 250)),
            on(Moment::invoking(F::Renew), 3, late("renew-reply", 2, 80)),
            on(RENEWED, 3, cut_off(900)),
        ])
        .showing([Mark::FrameDelayed, Mark::PausedPastItsTerm, Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::CountFromReply, Check::BeliefSafety),
        Case::of(
            "counted-from-the-last-try",
            "a proposed remedy: of many tries, count from the one that was answered",
            &["mike-marcacci/node-redlock pull 167"],
        )
        .under([
            at(0, lost("acquire-reply", 1)),
            on(Moment::done(F::Acquire), 1, cut_off(900)),
        ])
        .showing([Mark::FrameLost, Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::CountFromLastTry, Check::BeliefSafety),
        Case::of(
            "born-expired",
            "counted from the first of many tries a fresh lease can be over at birth: ours is \
             renewed before it is believed",
            &["mike-marcacci/node-redlock#169, #296, #299"],
        )
        .under([at(0, late("acquire-reply", 2, 320))])
        .showing([Mark::FrameDelayed, Mark::Wrote]),
        Case::of(
            "lost-only-after-two-ttls",
            "the loss is announced two ttls after the last answer; the lease is another's after one",
            &["microsoft/etcd3#57"],
        )
        .under([on(RENEWED, 4, cut_off(900))])
        .showing([Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::LostAfterTwoTtls, Check::BeliefSafety),
        Case::of(
            "waiter-trusts-a-dead-lease",
            "whoever queues for the lease is answered after its own lease ran out, and believes",
            &[
                "etcd-io/etcd#11456, #9921",
                "cagriekin/charts pull 327",
                "etcd Election.Campaign, no look at its own key after the wait",
            ],
        )
        .with(|workload| {
            workload.traffic.resign_every = Some(300 * MS);
            // Time between the grant and its arrival, for the pause to fall into.
            (workload.network.min_latency, workload.network.max_latency) = (5 * MS, 15 * MS);
        })
        .under([1, 2, 3, 4, 5, 6].map(|nth| {
            on(
                Moment::done(F::Release),
                nth,
                Fault::Pause {
                    target: Target::Follower,
                    length: 420 * MS,
                },
            )
        }))
        .showing([Mark::TakenOverAfterRelease])
        .planting(Flaw::WaiterTrustsDeadLease, Check::BeliefSafety),
        Case::of(
            "gives-up-after-one-loss",
            "the elector is good for one term: whoever lost once never contends again",
            &["kuberhealthy/kuberhealthy#1533", "k0sproject/k0s pull 1795"],
        )
        .under([
            on(RENEWED, 4, cut_off(600)),
            on(RENEWED, 14, cut_off(600)),
        ])
        .showing([Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::NeverContendsAgain, Check::Failover),
        Case::of(
            "one-try-is-the-budget",
            "a try may take as long as the whole lease: one slow call ends the leadership",
            &["home-operations/kopiur pull 324"],
        )
        .with(|workload| workload.name = "steady-leader")
        .under([at(1000, lost("renew", 1))])
        .showing([Mark::FrameLost, Mark::Wrote])
        .planting(Flaw::OneTryIsTheBudget, Check::Failover),
        Case::of(
            "released-before-it-stepped-down",
            "the release is sent, then the flag is cleared: between them two lead",
            &["vmware/pinniped pull 800"],
        )
        .with(|workload| workload.traffic.resign_every = Some(400 * MS))
        .under([at(0, late("release-reply", 30, 80))])
        .showing([Mark::FrameDelayed, Mark::TakenOverAfterRelease])
        .planting(Flaw::ReleaseBeforeStepDown, Check::BeliefSafety),
        Case::of(
            "released-before-it-drained",
            "the lease is given back while guarded work is still on its way",
            &["kubernetes/kubernetes pull 139504"],
        )
        .with(|workload| workload.traffic.resign_every = Some(400 * MS))
        .under([at(0, late("write", 30, 60))])
        .showing([Mark::FrameDelayed, Mark::TakenOverAfterRelease])
        .planting(Flaw::ReleaseBeforeDrain, Check::Conduct),
        Case::of(
            "countdown-by-another-machine's-clock",
            "the store's absolute time is compared with the client's own wall clock",
            &["milvus-io/talon#165", "lukas-krecan/ShedLock#231"],
        )
        .under([
            at(
                500,
                Fault::Step {
                    target: Target::Clients,
                    by: -2_000_000_000,
                },
            ),
            on(RENEWED, 8, cut_off(900)),
        ])
        .showing([Mark::WallClockStepped, Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::WallClockExpiry, Check::BeliefSafety),
        Case::of(
            "countdown-stops-in-suspend",
            "the countdown's clock stops while the machine sleeps",
            &["golang/go: its monotonic clock stands still in suspend"],
        )
        .under([on(
            RENEWED,
            4,
            Fault::Suspend {
                target: Target::Leader,
                length: 900 * MS,
            },
        )])
        .showing([Mark::PausedPastItsTerm, Mark::TakenOverAfterExpiry])
        .planting(Flaw::ClockStopsInSuspend, Check::BeliefSafety),
        Case::of(
            "old-token-after-a-restart",
            "a holder that restarts takes up the lease and the token of its former life",
            &["cockroachdb/cockroach#7996", "cockroachdb/cockroach#23105"],
        )
        .under([on(RENEWED, 4, crashed(Target::Leader, 50))])
        .showing([Mark::Restarted, Mark::TakenOverAfterExpiry])
        .planting(Flaw::ResumeAfterRestart, Check::TokenMonotonicity),
        Case::of(
            "reads-before-its-epoch",
            "the state is read, then the epoch is taken: an older writer slips in between",
            &["slatedb/slatedb pull 271"],
        )
        .showing([Mark::Wrote])
        .planting(Flaw::ReadsBeforeBarrier, Check::ElectionBarrier),
        Case::of(
            "fence-goes-to-whoever-asks",
            "storage hands a fresh epoch to whoever asks last: a deposed leader fences its \
             successor",
            &["PostHog/posthog pull 76100, 76169"],
        )
        .under([
            at(
                800,
                Fault::Partition {
                    a: Target::Clients,
                    b: Target::Storage,
                    length: 1300 * MS,
                },
            ),
            at(850, cut_off(600)),
            at(1500, cut_off(600)),
        ])
        .showing([Mark::IdledUnfenced, Mark::LeaderCutOff, Mark::TakenOverAfterExpiry])
        .planting(Flaw::BarrierWithFreshToken, Check::ElectionBarrier),
    ]
}

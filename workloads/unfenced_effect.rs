//! `unfenced-effect`: what leaders do cannot be fenced, an e-mail say.

use deposed::prelude::*;

/// Leaders pause past their terms, are cut off, and their effects come late, before a
/// resource that checks no token. A lock-delay longer than any pause and any delay of a
/// frame keeps a deposed leader's effects ahead of its successor; idempotency keys keep
/// a job from being done twice. Neither does the other's work.
pub fn workload() -> Workload {
    let lease = LeaseConfig::for_ttl(300 * MS);
    // A pause of up to 1.2 ttls, a second one before the frame leaves, a try to connect,
    // and 1.2 ttls on the way: all of it is over before the lease is free.
    let lease = LeaseConfig {
        lock_delay: lease.ttl * 4,
        ..lease
    };
    let (leader, store, relay) = (Target::Leader, Target::Store, Target::Storage);
    let acting = [Moment::invoking(F::Write)];
    let both = Arm {
        name: "both",
        storage: StorageKind::Effects { keys: true },
        without_barrier: false,
        lock_delay: lease.lock_delay,
    };
    let without_keys = StorageKind::Effects { keys: false };
    Workload {
        story: "a resource that checks no tokens: lock-delay and idempotency keys in their place",
        cluster: Cluster::of(3).with_storage(both.storage).on_disks(),
        traffic: Traffic {
            keys: 4,
            resign_every: Some(lease.ttl * 3 / 2),
            ..Traffic::for_ttl(lease.ttl)
        },
        nemesis: Nemesis::dense(
            1,
            1,
            vec![
                gc_pause(leader, Some(F::Write))
                    .lasting(Length::AroundTtl)
                    .weight(4),
                gc_pause(leader, None).lasting(Length::AroundTtl),
                partition(leader, store)
                    .aimed(&acting)
                    .lasting(Length::AroundTtl)
                    .weight(2),
                delay("effect").lasting(Length::AroundTtl).weight(3),
                delay("effect").lasting(Length::Short).weight(2),
                hold(leader, relay)
                    .aimed(&acting)
                    .lasting(Length::Short)
                    .weight(2),
                duplicate("effect").lasting(Length::Short),
                lose("effect-reply"),
                crash(leader).lasting(Length::Short),
                crash(relay).lasting(Length::Short),
                crash(store).lasting(Length::Short),
            ],
        ),
        must_see: vec![
            Mark::PausedPastItsTerm,
            Mark::LandedInLockDelay,
            Mark::RefusedInLockDelay,
            Mark::DuplicateDropped,
            Mark::TakenOverAfterExpiry,
            Mark::TakenOverAfterRelease,
        ],
        catches: vec![(Flaw::ReleaseBeforeDrain, Check::ZombieWrite)],
        compares: vec![
            Arm {
                name: "neither",
                storage: without_keys,
                lock_delay: 0,
                ..both
            },
            Arm {
                name: "lock-delay",
                storage: without_keys,
                ..both
            },
            Arm {
                name: "idempotency keys",
                lock_delay: 0,
                ..both
            },
            both,
        ],
        lease,
        ..Workload::named("unfenced-effect")
    }
}

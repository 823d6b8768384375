//! What is refused, in which words, and what is let through.

use super::*;
use crate::{
    fault::{Fault, Injection, Moment, Target, Trigger},
    lease::LeaseConfig,
    workload::{MS, Workload},
};

type Spoil = fn(&mut Header);

#[test]
fn what_a_world_cannot_run_is_refused_in_a_sentence_that_names_it() {
    let header = Header::of(&Workload::named("w"), 1, "deposed", None);
    assert_eq!(header.validate(), Ok(()));
    let rate = |rate_ppb| Injection {
        when: Trigger::At(0),
        fault: Fault::Rate {
            target: Target::Store,
            rate_ppb,
            length: 1,
        },
    };
    assert_eq!(header.can_inject(&rate(1_000_000)), Ok(()));
    assert!(header.can_inject(&rate(0)).is_err());
    let lose = |kind: &str, count| Injection {
        when: Trigger::At(0),
        fault: Fault::Lose {
            kind: kind.into(),
            from: Target::Everyone,
            to: Target::Everyone,
            count,
        },
    };
    assert_eq!(header.can_inject(&lose("renew", 1)), Ok(()));
    let misspelt = header
        .can_inject(&lose("renwe", 1))
        .expect_err("no such kind");
    assert!(misspelt.contains("did you mean 'renew'?"), "{misspelt}");
    assert!(header.can_inject(&lose("renew", 0)).is_err());
    let elsewhere = Header {
        system: "mine".into(),
        ..header.clone()
    };
    assert_eq!(elsewhere.can_inject(&lose("ping", 1)), Ok(()));
    let spoilt: [(Spoil, &str); 24] = [
        (
            |h| h.lease = LeaseConfig::for_ttl(3601 * SECOND),
            "'ttl' is 3601000000000 ns",
        ),
        (
            |h| {
                let fault = Fault::Step {
                    target: Target::Client(3),
                    by: 1,
                };
                h.schedule.push(Injection {
                    when: Trigger::At(0),
                    fault,
                });
            },
            "client 3 is its target, and the last of 3 is 2",
        ),
        (
            |h| {
                let fault = Fault::Starve {
                    target: Target::Store,
                    one_in: 1,
                    length: 1,
                };
                h.schedule.push(Injection {
                    when: Trigger::At(0),
                    fault,
                });
            },
            "entry 0 of the header's schedule (starve) cannot be injected: its 'one_in'",
        ),
        (
            |h| {
                let fault = Fault::Flaky {
                    a: Target::Store,
                    b: Target::Clients,
                    lose_ppb: 600_000_000,
                    delay_ppb: 400_000_001,
                    by: 1,
                    length: 1,
                };
                h.schedule.push(Injection {
                    when: Trigger::At(0),
                    fault,
                });
            },
            "together more than 1000000000",
        ),
        (
            |h| {
                h.lease = LeaseConfig {
                    ttl: 0,
                    ..h.lease.clone()
                }
            },
            "the header's 'lease'",
        ),
        (
            |h| {
                let fault = Fault::Step {
                    target: Target::Minority,
                    by: 1,
                };
                let when = Trigger::At(0);
                h.schedule.push(Injection { when, fault });
            },
            "the storage has none",
        ),
        (
            |h| {
                h.cluster.storage = StorageKind::Quorum { replicas: 3 };
                let fault = Fault::Step {
                    target: Target::Replica(3),
                    by: 1,
                };
                let when = Trigger::At(0);
                h.schedule.push(Injection { when, fault });
            },
            "replica 3 is its target, and the last of 3 is 2",
        ),
        (
            |h| h.cluster.storage = StorageKind::Quorum { replicas: 4 },
            "a quorum of 4 replicas",
        ),
        (|h| h.cluster.clients = 0, "0 clients"),
        (|h| h.cluster.clients = 27, "27 clients"),
        (
            |h| {
                h.cluster.storage = StorageKind::Effects { keys: true };
                h.traffic.delete_one_in = 2;
            },
            "'delete_one_in'",
        ),
        (
            |h| {
                h.cluster.storage = StorageKind::Effects { keys: false };
                h.traffic.without_barrier = true;
            },
            "'without_barrier'",
        ),
        (|h| h.traffic.leases = 0, "0 leases"),
        (|h| h.traffic.leases = u32::MAX, "4294967295 leases"),
        (|h| h.chaos = u64::MAX, "longer than an hour"),
        (|h| h.network.min_latency = 999_999, "999999 to"),
        (|h| h.network.max_latency = 1, "to 1 ns"),
        (|h| h.clocks = [("a".into(), 0)].into(), "'a' runs at 0"),
        (|h| h.lease.try_timeout = 1, "'try_timeout' is 1 ns"),
        // A fast clock counts a try's milliseconds sooner.
        (
            |h| h.clocks = [("b".into(), 10 * TRUE_RATE)].into(),
            "a connection may take 80000000 ns",
        ),
        (
            |h| h.traffic.resign_every = Some(0),
            "'resign_every' is 0 ns, and from its election to its first acknowledged write",
        ),
        (
            |h| h.offsets = [("b".into(), u64::MAX)].into(),
            "'b' is more than",
        ),
        (
            |h| {
                let (target, length) = (Target::Store, 1);
                let fault = Fault::Rate {
                    target,
                    rate_ppb: 0,
                    length,
                };
                h.schedule.push(Injection {
                    when: Trigger::At(0),
                    fault,
                });
            },
            "entry 0",
        ),
        (
            |h| {
                let moment = Moment::done(deposed_checkers::history::F::Write);
                let when = Trigger::On {
                    moment,
                    nth: 0,
                    plus: 0,
                };
                let fault = Fault::Step {
                    target: Target::Store,
                    by: 1,
                };
                h.schedule.push(Injection { when, fault });
            },
            "its 'nth' is 0",
        ),
    ];
    for (spoil, named) in spoilt {
        let mut header = header.clone();
        spoil(&mut header);
        let error = header.validate().expect_err(named).to_string();
        assert!(error.contains(named), "{named}: {error}");
    }
}

fn crowd(clients: u8, leases: u32, write_every: Nanos) -> Header {
    let mut header = Header::of(&Workload::named("w"), 1, "deposed", None);
    header.cluster.clients = clients;
    header.traffic.leases = leases;
    header.traffic.write_every = write_every;
    header
}

fn paused(length: Nanos) -> Injection {
    Injection {
        when: Trigger::At(0),
        fault: Fault::Pause {
            target: Target::Store,
            length,
        },
    }
}

/// A client opens a connection a try to a server that is paused, and none comes back.
#[test]
fn a_run_that_may_take_every_port_is_refused() {
    let mut header = crowd(3, 100, 75 * MS);
    header.chaos = 30 * SECOND;
    assert_eq!(
        header.validate(),
        Ok(()),
        "nothing keeps a server from accepting"
    );
    header.schedule = vec![paused(30 * SECOND)];
    let error = header.validate().expect_err("30 s, 200 ways").to_string();
    assert!(error.contains("'try_timeout'"), "{error}");
    header.schedule = vec![paused(10 * SECOND)];
    assert_eq!(header.validate(), Ok(()));
}

#[test]
fn a_run_whose_history_does_not_fit_in_memory_is_refused() {
    assert_eq!(crowd(26, 100, 0).validate(), Ok(()), "for some seconds");
    let mut long = crowd(26, 100, 0);
    long.chaos = 60 * SECOND;
    let error = long
        .validate()
        .expect_err("200000 events a second")
        .to_string();
    assert!(error.contains("'write_every'"), "{error}");
    let mut hour = crowd(3, 1, 75 * MS);
    (hour.chaos, hour.calm) = (3590 * SECOND, 10 * SECOND);
    assert_eq!(hour.validate(), Ok(()), "an hour of the usual");
}

/// At the very limit the ports suffice: turmoil would panic otherwise.
#[test]
fn what_is_let_through_has_ports_enough() {
    let mut header = crowd(2, 50, 75 * MS);
    (header.chaos, header.calm) = (28 * SECOND, SECOND);
    header.schedule = vec![paused(28 * SECOND)];
    assert_eq!(header.validate(), Ok(()));
    header.chaos *= 2;
    header.schedule = vec![paused(header.chaos)];
    assert!(header.validate().is_err(), "it was near the limit");
    (header.chaos, header.calm) = (28 * SECOND, SECOND);
    header.schedule = vec![paused(28 * SECOND)];
    let system: std::sync::Arc<dyn crate::system::System> =
        std::sync::Arc::new(crate::system::Deposed);
    let outcome = crate::campaign::outcome(&header, &system);
    let panicked = outcome
        .defects
        .iter()
        .any(|defect| defect.contains("panicked"));
    assert!(!panicked, "{:?}", outcome.defects);
}

fn injected(fault: Fault) -> Injection {
    let when = Trigger::At(0);
    Injection { when, fault }
}

/// What can be seen beforehand to strike nothing, or to change nothing.
#[test]
fn an_entry_that_does_nothing_is_refused() {
    use deposed_checkers::history::F;
    let header = Header::of(&Workload::named("w"), 1, "deposed", None);
    let length = 100 * MS;
    let rate = |rate_ppb| {
        let target = Target::Client(0);
        injected(Fault::Rate {
            target,
            rate_ppb,
            length,
        })
    };
    let partition = |a, b| injected(Fault::Partition { a, b, length });
    let on = |f| Injection {
        when: Trigger::On {
            moment: Moment::done(f),
            nth: 1,
            plus: 0,
        },
        ..paused(length)
    };
    let before = |f| {
        let (target, before) = (Target::Leader, Some(f));
        injected(Fault::GcPause {
            target,
            before,
            length,
        })
    };
    let refuses = |header: &Header, entry: &Injection, says: &str| {
        let refused = header.can_inject(entry).expect_err(says);
        assert!(refused.contains(says), "{refused}\n  not {says}");
    };
    let (both, never) = ("nothing passes between two of them", "would never strike");
    let leaders = partition(Target::Leader, Target::Leader);
    let servers = partition(Target::Store, Target::Storage);
    refuses(&header, &leaders, both);
    refuses(
        &header,
        &partition(Target::Client(0), Target::Follower),
        both,
    );
    refuses(&header, &servers, both);
    assert_eq!(
        header.can_inject(&partition(Target::Leader, Target::Servers)),
        Ok(())
    );
    for entry in [on(F::Delete), before(F::Delete)] {
        refuses(&header, &entry, never);
        refuses(&header, &entry, "set 'delete_one_in' to 10");
    }
    for entry in [on(F::Release), before(F::Release)] {
        refuses(&header, &entry, never);
    }
    assert_eq!(header.can_inject(&on(F::Renew)), Ok(()));
    refuses(&header, &rate(TRUE_RATE), "at which the clock runs already");

    // Where it does something it is let through.
    let mut off = header.clone();
    off.clocks = [("a".into(), TRUE_RATE + 1)].into();
    assert_eq!(off.can_inject(&rate(TRUE_RATE)), Ok(()));
    refuses(&off, &rate(TRUE_RATE + 1), "runs already");
    let mut twice = header.clone();
    twice.schedule = vec![rate(TRUE_RATE / 2), rate(TRUE_RATE)];
    assert_eq!(twice.validate(), Ok(()), "the later one counts");
    let mut busy = header.clone();
    (busy.traffic.delete_one_in, busy.traffic.resign_every) = (2, Some(SECOND));
    for entry in [on(F::Delete), before(F::Delete), on(F::Release)] {
        assert_eq!(busy.can_inject(&entry), Ok(()));
    }
    // What another system's nodes tell each other is not known.
    let elsewhere = Header {
        system: "mine".into(),
        ..header
    };
    for entry in [leaders, servers, on(F::Delete), on(F::Release)] {
        assert_eq!(elsewhere.can_inject(&entry), Ok(()));
    }
}

/// What is drawn has nothing in it that would be refused, not even where clocks may not
/// drift at all and every drawn rate is the true one.
#[test]
fn what_is_drawn_for_clocks_that_may_not_drift_can_be_injected() {
    let mut workload = Workload {
        nemesis: crate::nemesis::Nemesis::one_in(1, vec![crate::nemesis::rate(Target::Store)]),
        ..Workload::named("w")
    };
    let drawn = Header::of(&workload, 1, "deposed", None);
    assert!(!drawn.schedule.is_empty());
    assert_eq!(drawn.validate(), Ok(()));
    workload.lease.max_drift_ppb = 0;
    let drawn = Header::of(&workload, 1, "deposed", None);
    assert_eq!((drawn.schedule.len(), drawn.validate()), (0, Ok(())));
}

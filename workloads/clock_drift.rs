//! `clock-drift`: the worst clocks that are within the bound.

use deposed::prelude::*;

/// The store's clock is fast, the clients' are slow, as far apart as the lease's
/// bound of 10 % allows, and the leader is cut off just after a renewal. Its belief
/// must end before its lease, by the drift margin and nothing else. (The margin must
/// be several ticks wide to show, hence the coarse clocks.)
pub fn workload() -> Workload {
    let lease = drifting(300 * MS);
    Workload {
        story: "a fast store and slow clients, at the bound; the leader is cut off on a renewal",
        traffic: Traffic::for_ttl(lease.ttl),
        lease,
        clocks: Clocks::AtTheBound,
        nemesis: Nemesis::one_in(3, vec![cut_off_on_renewal()]),
        must_see: vec![
            Mark::ClocksApart,
            Mark::LeaderCutOff,
            Mark::TakenOverAfterExpiry,
        ],
        catches: vec![(Flaw::NoDriftMargin, Check::BeliefSafety)],
        ..Workload::named("clock-drift")
    }
}

/// Timing for clocks that may be 10 % apart.
pub(crate) fn drifting(ttl: Nanos) -> LeaseConfig {
    let mut lease = LeaseConfig {
        max_drift_ppb: 100_000_000,
        ..LeaseConfig::for_ttl(ttl)
    };
    lease.try_timeout = lease.safe_window() / 6;
    lease
}

/// The leader is alone from the moment its renewal is answered.
pub(crate) fn cut_off_on_renewal() -> Choice {
    isolate(Target::Leader)
        .only_on(&[Moment::done(F::Renew)])
        .lasting(Length::Long)
}

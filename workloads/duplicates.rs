//! `duplicates`: frames come twice, the second time in another term.

use deposed::prelude::*;

/// Every kind of frame arrives once more, at once or up to two ttls later, when its
/// term is over and the lease has another owner, or the same one again.
pub fn workload() -> Workload {
    let mut choices = each_kind(duplicate);
    choices.extend(
        ["renew", "release", "write"].map(|kind| duplicate(kind).lasting(Length::Long).weight(4)),
    );
    let calm = Workload::named("duplicates").with_ttl(450 * MS);
    Workload {
        story: "frames of every kind come twice, the second time up to two ttls later",
        cluster: Cluster::of(2),
        traffic: Traffic {
            delete_one_in: 10,
            resign_every: Some(calm.lease.ttl / 2),
            ..calm.traffic.clone()
        },
        nemesis: Nemesis::dense(2, 5, choices),
        must_see: vec![
            Mark::FrameDuplicated,
            Mark::TakenOverAfterRelease,
            Mark::StaleWriteRefused,
        ],
        catches: vec![
            (Flaw::RenewByName, Check::LeaseLinearizable),
            (Flaw::RenewsTheDead, Check::LeaseLinearizable),
            (Flaw::ReleasesAnything, Check::LeaseLinearizable),
            (Flaw::AppliesTwice, Check::RegisterLinearizable),
            (Flaw::CleanupDropsFence, Check::StorageSafety),
        ],
        ..calm
    }
}

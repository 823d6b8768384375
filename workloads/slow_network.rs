//! `slow-network`: answers come late.

use deposed::prelude::*;

/// Links slow down to beyond a try's timeout, or hold everything back and then let
/// go of it at once; single frames of every kind come late. A late answer must not
/// make a window longer, nor revive a belief that is over.
pub fn workload() -> Workload {
    let (leader, client) = (Target::Leader, Target::AnyClient);
    let (renewed, granted) = (Moment::done(F::Renew), Moment::done(F::Acquire));
    let mut choices = each_kind(delay);
    choices.extend([
        delay("renew-reply").lasting(Length::Short).weight(6),
        latency(client, Target::Store).weight(4),
        latency(client, Target::Storage).weight(3),
        hold(leader, Target::Store)
            .only_on(&[renewed])
            .lasting(Length::Long)
            .weight(6),
        hold(leader, Target::Storage).aimed(&[granted]).weight(3),
    ]);
    let calm = Workload::named("slow-network").with_ttl(400 * MS);
    Workload {
        story: "latency beyond the try timeout, links held back, late frames of every kind",
        // Deletes and releases, too, or their frames would not be there to suffer.
        traffic: Traffic {
            delete_one_in: 10,
            resign_every: Some(calm.lease.ttl * 3),
            ..calm.traffic.clone()
        },
        nemesis: Nemesis::dense(2, 4, choices),
        must_see: vec![
            Mark::FrameDelayed,
            Mark::TakenOverAfterExpiry,
            Mark::StaleWriteRefused,
        ],
        catches: vec![
            (Flaw::CountFromReply, Check::BeliefSafety),
            (Flaw::RenewsTheDead, Check::LeaseLinearizable),
        ],
        ..calm
    }
}

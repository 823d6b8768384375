//! They elect, fail over and refuse a zombie's write, and the checkers that judge
//! simulated histories judge this one.

use deposed::{
    checkers::{
        history::{Body, Event, F, Kind, Observation},
        judge::judge,
        verdict::{Check, Verdict},
    },
    node::gate::GcPause,
    run::checkers_header,
};
use serde_json::json;
use tokio::task::LocalSet;

use super::{Loopback, header};

fn acknowledged_write(event: &Event) -> bool {
    event.kind == Kind::Ok && matches!(event.body, Body::Complete(F::Write, _))
}

#[tokio::test]
async fn elects_fails_over_and_refuses_a_zombie_write_over_real_tcp() {
    let header = header();
    let (history, panics) = LocalSet::new()
        .run_until(async {
            let loopback = Loopback::boot(&header).await.expect("boots");
            let (at, old) = loopback.until("a first write", 0, acknowledged_write).await;
            // The leader is stopped where it hurts: it has checked, it is about to write.
            // Recorded as what it is: no term that ran out meanwhile did so in quiet.
            let at_old = json!({"node": old, "before": "write"});
            loopback.recorder.nemesis("gc-pause", at_old);
            loopback.gate(&old).arm(GcPause {
                length: 0,
                before: Some(F::Write),
            });
            let by_another = |event: &Event| acknowledged_write(event) && event.process != old;
            let (at, _) = loopback
                .until("a write by the successor", at, by_another)
                .await;
            loopback.recorder.nemesis("resume", json!({"node": old}));
            loopback.gate(&old).open();
            let refused = |event: &Event| {
                matches!(&event.body, Body::Observed(Observation::Refused(refused))
                    if refused.f == F::Write && refused.token < refused.seen)
            };
            let (at, _) = loopback
                .until("the zombie's write is refused", at, refused)
                .await;
            let told = |event: &Event| {
                event.process == old
                    && event
                        .error
                        .as_ref()
                        .is_some_and(|error| error.kind == "stale-token")
            };
            loopback.until("the zombie is told so", at, told).await;
            (loopback.recorder.finish(), loopback.panics.borrow().clone())
        })
        .await;

    assert!(panics.is_empty(), "{panics:?}");
    let verdicts = judge(&checkers_header(&header), &history);
    for (check, verdict) in &verdicts.0 {
        let undecided = matches!(verdict, Verdict::Unknown(_));
        assert!(!verdict.is_violated() && !undecided, "{check}: {verdict:?}");
    }
    for check in [
        Check::TokenMonotonicity,
        Check::StorageSafety,
        Check::ZombieWrite,
        Check::BeliefSafety,
        Check::ElectionBarrier,
        Check::LeaseLinearizable,
        Check::Conduct,
    ] {
        assert_eq!(verdicts.of(check), Some(&Verdict::Valid), "{check}");
    }
}

//! What clients alone can tell of a broken promise, in words.

use crate::history::Event;
use crate::owners::named;
use crate::terms::RuledOut;
use crate::verdict::Evidence;

/// What a client was told, and cannot be.
pub(super) fn impossible(event: &Event, ruled_out: RuledOut) -> Evidence {
    match ruled_out {
        RuledOut::Granted(early) => {
            let expected = format!(
                "refused while {} holds it",
                early.first.named(&early.then.holder)
            );
            early.evidence(event, ",", expected)
        }
        RuledOut::Refused(term, invoke, answer) => Evidence::new(
            format!(
                "{} asked again for what it had been granted and held, and was refused",
                term.named("")
            ),
            term.grounds().into_iter().chain([invoke]),
            answer,
            "the same grant again",
        ),
        RuledOut::Renewed(renew, (invoke, answer), token, shown) => Evidence::new(
            format!(
                "a renewal by {} was answered ok though token {token} had been granted before it \
                 was sent",
                named(&renew.holder, renew.token, "")
            ),
            [shown, invoke],
            answer,
            "refused",
        ),
    }
}

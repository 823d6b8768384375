//! Events in words: an operation, its outcome, what a node saw, a fault, a time.

use deposed_checkers::history::{
    Answer, Body, Event, Failure, Kind, Name, Nanos, Observation, Op, RatePpb, STALE_TOKEN,
    TRUE_RATE, Token,
};
pub use deposed_checkers::units::{span, time};
use serde_json::Value;

/// A clock's rate beside true time: `+25 %`, `-0.05 %`.
pub(super) fn rate(ppb: RatePpb) -> String {
    let (sign, off) = match ppb >= TRUE_RATE {
        true => ('+', ppb - TRUE_RATE),
        false => ('-', TRUE_RATE - ppb),
    };
    let percent = TRUE_RATE / 100;
    let decimals = format!("{:07}", off % percent);
    match decimals.trim_end_matches('0') {
        "" => format!("{sign}{} %", off / percent),
        decimals => format!("{sign}{}.{decimals} %", off / percent),
    }
}

/// An operation: `write x=40 @7`. The lease is named unless it is `leader`.
pub fn op(op: &Op) -> String {
    let words = match op {
        Op::Acquire(_) => "acquire".to_owned(),
        Op::Renew(renew) => format!("renew{}", at(renew.token)),
        Op::Release(release) => format!("release{}", at(release.token)),
        Op::Fence(fence) => format!("fence {}", fence.token),
        Op::Write(write) => {
            format!(
                "write {}={}{}",
                write.key,
                plain(&write.value),
                at(write.token)
            )
        }
        Op::Delete(delete) => format!("delete {}{}", delete.key, at(delete.token)),
        Op::Read(read) => format!("read {}{}", read.key, at(read.token)),
    };
    words + &on(op.lease())
}

/// What became of a call: `ok`, `token 7`, `refused, storage had seen 8`.
pub(super) fn outcome(kind: Kind, answer: &Answer, error: Option<&Failure>) -> String {
    match (kind, answer) {
        (Kind::Invoke, _) => String::new(),
        (Kind::Ok, Answer::None) => "ok".to_owned(),
        (Kind::Ok, Answer::Token(token)) => format!("token {token}"),
        (Kind::Ok, Answer::Value(Value::Null)) => "absent".to_owned(),
        (Kind::Ok, Answer::Value(value)) => plain(value),
        (Kind::Fail, _) => match error {
            Some(Failure {
                kind,
                seen: Some(seen),
                ..
            }) if kind == STALE_TOKEN => {
                format!("refused, storage had seen {seen}")
            }
            Some(error) => format!("failed: {}", error.kind),
            None => "failed".to_owned(),
        },
        (Kind::Info, _) => match error {
            // An earlier try may have come through.
            Some(Failure {
                kind,
                seen: Some(seen),
                ..
            }) if kind == STALE_TOKEN => {
                format!("unknown: a try was refused, storage had seen {seen}")
            }
            Some(error) => format!("unknown: {}", error.kind),
            None => "unknown".to_owned(),
        },
    }
}

/// What a node saw from the inside: `granted token 7 to a#1`.
pub(super) fn observation(observation: &Observation) -> String {
    match observation {
        Observation::Lead(lead) => {
            let until = match lead.until {
                None => "for good".to_owned(),
                // Its clock stands still.
                Some(Nanos::MAX) => "without an end for now".to_owned(),
                Some(until) => format!("until {}", time(until)),
            };
            format!("leads{} {until}{}", at(lead.token), on(&lead.lease))
        }
        Observation::Follow(follow) => {
            format!("leads no more{}{}", at(follow.token), on(&follow.lease))
        }
        Observation::Granted(granted) => format!(
            "granted{} to {}{}",
            token(granted.token),
            granted.holder,
            on(&granted.lease)
        ),
        Observation::Renewed(renewed) => format!(
            "renewed{} for {}{}",
            token(renewed.token),
            renewed.holder,
            on(&renewed.lease)
        ),
        Observation::Released(released) => format!(
            "released{} by {}{}",
            token(released.token),
            released.holder,
            on(&released.lease)
        ),
        Observation::Expired(expired) => {
            format!("expired{}{}", token(expired.token), on(&expired.lease))
        }
        Observation::Denied(denied) => format!(
            "denied {}{} to {}: {}{}",
            denied.f.name(),
            at(denied.token),
            denied.holder,
            denied.error.kind,
            on(&denied.lease)
        ),
        Observation::StoreRecovered(recovered) => {
            let leases = recovered.leases.iter().map(|(name, lease)| {
                let holder = lease.holder.as_deref().unwrap_or("nobody");
                format!("{name} at {}, held by {holder}", lease.counter)
            });
            found(leases)
        }
        Observation::Restored(restored) => {
            format!("restored from an old copy, floor {}", restored.floor)
        }
        Observation::Applied(applied) => {
            let value = applied
                .value
                .as_ref()
                .map(|value| format!("={}", plain(value)));
            format!(
                "applied {} {}{}{}{}",
                applied.f.name(),
                applied.key,
                value.unwrap_or_default(),
                at(applied.token),
                on(&applied.lease)
            )
        }
        Observation::Fenced(fenced) => format!("fenced {}{}", fenced.token, on(&fenced.lease)),
        Observation::Refused(refused) => format!(
            "refused {} @{}, had seen {}{}",
            refused.f.name(),
            refused.token,
            refused.seen,
            on(&refused.lease)
        ),
        Observation::Dropped(dropped) => format!(
            "dropped write {}={}, its job was done{}",
            dropped.key,
            plain(&dropped.value),
            on(&dropped.lease)
        ),
        Observation::StorageRecovered(recovered) => {
            let seen = recovered.highest.iter();
            found(seen.map(|(lease, token)| format!("{lease} had seen {token}")))
        }
    }
}

fn found(what: impl Iterator<Item = String>) -> String {
    let what: Vec<String> = what.collect();
    match &what[..] {
        [] => "recovered, with nothing on disk".to_owned(),
        what => format!("recovered: {}", what.join("; ")),
    }
}

/// Faults that take what a process had in memory, or put another disk under it. It may be
/// back at once: these have no least length.
pub(crate) const LOSSES: [&str; 3] = ["crash", "power-loss", "restore"];

/// A fault: `isolate a for 300ms`, `lose 2 RenewReply from store to a`.
pub fn fault(name: &str, value: &Value) -> String {
    let mut words = name.to_owned();
    let mut add = |word: String| {
        words.push(' ');
        words.push_str(&word);
    };
    let number = |field: &str| value[field].as_u64();
    // `resume` says by itself what it ends.
    if let Some(healed) = value["fault"].as_str()
        && name != "resume"
    {
        add(healed.to_owned());
    }
    // A void fault struck nobody; its target says whom it was meant for.
    if name == "void" {
        add(format!(
            "on {}",
            value["target"]
                .to_string()
                .replace(['"', '{', '}', '[', ']'], "")
        ));
    }
    if let Some(count) = number("count") {
        add(count.to_string());
    }
    if let Some(kind) = value["kind"].as_str() {
        add(kind.to_owned());
    }
    if let Some(node) = value["node"].as_str() {
        add(node.to_owned());
    }
    // An end names all whom it concerns, a cluster for an isolated node.
    match nodes(&value["nodes"]) {
        nodes if nodes.is_empty() || (name == "heal" && nodes.len() > 2) => {}
        nodes => add(nodes.join(", ")),
    }
    if let Some(halves) = value["halves"].as_array() {
        let halves: Vec<String> = halves.iter().map(|half| nodes(half).join(", ")).collect();
        add(halves.join(" | "));
    }
    if let Some(bridge) = value["bridge"].as_str() {
        add(format!("over {bridge}"));
    }
    if let Some(one_in) = number("one_in") {
        add(format!("to one tick in {one_in}"));
    }
    if let (Some(lose), Some(delay)) = (number("lose_ppb"), number("delay_ppb")) {
        let percent = |ppb: u64| ppb / 10_000_000;
        add(format!(
            "losing {} %, delaying {} %",
            percent(lose),
            percent(delay)
        ));
    }
    for end in ["from", "to"] {
        match nodes(&value[end]) {
            nodes if nodes.is_empty() => {}
            nodes if nodes.len() > 3 => add(format!("{end} anyone")),
            nodes => add(format!("{end} {}", nodes.join(", "))),
        }
    }
    if let Some(before) = value["before"].as_str() {
        add(format!("before its next {before}"));
    }
    if let (Some(min), Some(max)) = (number("min"), number("max")) {
        add(format!("{} to {}", span(min), span(max)));
    }
    if let Some(rate) = number("rate_ppb") {
        add(format!("at {rate} ppb"));
    }
    if let Some(by) = value["by"].as_i64() {
        let sign = if by < 0 { "-" } else { "" };
        add(format!("by {sign}{}", span(by.unsigned_abs())));
    }
    match number("for") {
        Some(0) if LOSSES.contains(&name) => add("and restart at once".to_owned()),
        Some(length) => add(format!("for {}", span(length))),
        None => {}
    }
    words
}

/// The nodes that a fault's field names: one, or a list.
pub(crate) fn nodes(value: &Value) -> Vec<&str> {
    match value {
        Value::String(node) => vec![node],
        Value::Array(nodes) => nodes.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The action of an event and its outcome, without its time and process. A
/// completion does not say what was asked: its call's words do, where known.
pub(super) fn of(event: &Event, asked: Option<&str>) -> (String, String) {
    match &event.body {
        Body::Invoke(asked) => (op(asked), String::new()),
        Body::Complete(f, answer) => (
            asked.unwrap_or(f.name()).to_owned(),
            outcome(event.kind, answer, event.error.as_ref()),
        ),
        Body::Observed(seen) => (observation(seen), String::new()),
        Body::Nemesis(name, value) => (fault(name, value), String::new()),
        Body::Foreign(name, Value::Null) => (name.to_string(), String::new()),
        Body::Foreign(name, value) => (format!("{name} {}", plain(value)), String::new()),
    }
}

fn at(token: Option<Token>) -> String {
    token.map(|token| format!(" @{token}")).unwrap_or_default()
}

fn token(token: Option<Token>) -> String {
    token
        .map(|token| format!(" token {token}"))
        .unwrap_or_default()
}

fn on(lease: &Name) -> String {
    match lease.as_str() {
        "leader" => String::new(),
        lease => format!(" on {lease}"),
    }
}

/// A value as a person writes it: a string without its quotes, unless it would
/// run into its neighbours or across lines.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()) => {
            text.clone()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stale_token_is_told_with_what_storage_had_seen() {
        let stale = Failure::stale_token(1, 2);
        for (kind, told) in [
            (Kind::Fail, "refused, storage had seen 2"),
            (Kind::Info, "unknown: a try was refused, storage had seen 2"),
        ] {
            assert_eq!(outcome(kind, &Answer::None, Some(&stale)), told);
        }
        let timeout = Failure::new("timeout");
        assert_eq!(
            outcome(Kind::Info, &Answer::None, Some(&timeout)),
            "unknown: timeout"
        );
    }

    #[test]
    fn a_fault_says_what_to_whom_and_for_how_long() {
        let cases = [
            (fault("calm", &json!({})), "calm"),
            (
                fault(
                    "void",
                    &json!({"fault": "hold", "target": ["leader", "store"]}),
                ),
                "void hold on leader,store",
            ),
            (
                fault(
                    "isolate",
                    &json!({"target": "leader", "node": "a", "for": 300_000_000}),
                ),
                "isolate a for 300ms",
            ),
            (
                fault(
                    "partition",
                    &json!({"a": "leader", "b": "store", "nodes": ["a", "store"], "for": 1_500_000_000}),
                ),
                "partition a, store for 1.5s",
            ),
            (
                fault(
                    "lose",
                    &json!({"kind": "RenewReply", "from": ["store"], "to": ["a"], "count": 2}),
                ),
                "lose 2 RenewReply from store to a",
            ),
            (
                fault(
                    "delay",
                    &json!({"kind": "Write", "from": ["a", "b", "c"], "to": ["store", "storage", "a", "b", "c"], "count": 1, "by": 40_000_000}),
                ),
                "delay 1 Write from a, b, c to anyone by 40ms",
            ),
            (
                fault(
                    "heal",
                    &json!({"fault": "isolate", "nodes": ["store", "storage", "a", "b"]}),
                ),
                "heal isolate",
            ),
            (
                fault(
                    "gc-pause",
                    &json!({"target": "leader", "node": "a", "before": "write", "for": 200_000_000}),
                ),
                "gc-pause a before its next write for 200ms",
            ),
            (
                fault(
                    "halves",
                    &json!({"halves": [["store", "a"], ["b"]], "for": 1_000_000}),
                ),
                "halves store, a | b for 1ms",
            ),
            (
                fault(
                    "bridge",
                    &json!({"halves": [["store"], ["b"]], "bridge": "a", "for": 1_000_000}),
                ),
                "bridge store | b over a for 1ms",
            ),
            (
                fault(
                    "flaky",
                    &json!({"nodes": ["a", "b"], "lose_ppb": 250_000_000, "delay_ppb": 100_000_000, "by": 2_000_000, "for": 1_000_000}),
                ),
                "flaky a, b losing 25 %, delaying 10 % by 2ms for 1ms",
            ),
            (
                fault("crash", &json!({"node": "store", "for": 0})),
                "crash store and restart at once",
            ),
            (
                fault(
                    "starve",
                    &json!({"node": "a", "one_in": 20, "for": 1_000_000}),
                ),
                "starve a to one tick in 20 for 1ms",
            ),
            (
                fault("resume", &json!({"fault": "suspend", "node": "a"})),
                "resume a",
            ),
            (
                fault("step", &json!({"node": "b", "by": -250_000_000})),
                "step b by -250ms",
            ),
            (
                fault("rate", &json!({"node": "b", "rate_ppb": 990_000_000})),
                "rate b at 990000000 ppb",
            ),
        ];
        for (said, expected) in cases {
            assert_eq!(said, expected);
        }
    }
}

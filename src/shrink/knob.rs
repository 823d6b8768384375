//! The numbers of a run that can be turned down.

use deposed_checkers::history::{Nanos, TRUE_RATE};
use serde_json::Value;

use crate::{
    fault::{Injection, Trigger},
    report::words::LOSSES,
    run::Header,
    world::TICK,
};

/// A number of a header: how far it is from what is plainest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Knob {
    /// How long things go wrong.
    Chaos,
    /// How long after the fault before it (the start, for the first) this one strikes, in
    /// the order of their times; those after it come along.
    Gap(usize),
    /// A number of an entry, by its JSON pointer: whatever faults there are or will be,
    /// theirs are found.
    Number(usize, String),
}

impl Knob {
    /// Every knob of the schedule: gaps, then each entry's own numbers.
    pub(super) fn all(header: &Header) -> Vec<Self> {
        let mut knobs: Vec<Self> = (0..in_order(header).len()).map(Knob::Gap).collect();
        for (entry, injection) in header.schedule.iter().enumerate() {
            let Ok(value) = serde_json::to_value(injection) else {
                continue;
            };
            let mut paths = Vec::new();
            numbers(&value, "", &mut paths);
            knobs.extend(paths.into_iter().map(|path| Knob::Number(entry, path)));
        }
        knobs
    }

    /// How far it is turned up; `None` where there is no such number.
    pub(super) fn read(&self, header: &Header) -> Option<u64> {
        match self {
            Knob::Chaos => Some(header.chaos),
            Knob::Gap(nth) => gap(&in_order(header), *nth),
            Knob::Number(entry, path) => {
                let value = serde_json::to_value(header.schedule.get(*entry)?).ok()?;
                let number = whole(value.pointer(path)?)?;
                let away = number - plainest(path);
                // Short as it is, it is made no longer.
                let is_least = number <= least(&value, path);
                match is_least {
                    true => None,
                    false => u64::try_from(away.unsigned_abs()).ok(),
                }
            }
        }
    }

    /// The header with the number turned to this.
    pub(super) fn turn(&self, header: &Header, to: u64) -> Option<Header> {
        let mut turned = header.clone();
        match self {
            Knob::Chaos => {
                turned.chaos = to;
                drop_late(&mut turned);
            }
            Knob::Gap(nth) => {
                let order = in_order(header);
                let earlier = gap(&order, *nth)?.checked_sub(to)?;
                for &(time, entry) in &order[*nth..] {
                    let time = time.saturating_sub(earlier);
                    strike_at(&mut turned.schedule[entry], time);
                }
            }
            Knob::Number(entry, path) => {
                let entry = turned.schedule.get_mut(*entry)?;
                let mut value = serde_json::to_value(&*entry).ok()?;
                let (plainest, least) = (plainest(path), least(&value, path));
                let number = value.pointer_mut(path)?;
                let away = match whole(number)? < plainest {
                    true => -i128::from(to),
                    false => i128::from(to),
                };
                *number = json_number((plainest + away).max(least))?;
                *entry = serde_json::from_value(value).ok()?;
            }
        }
        Some(turned)
    }
}

/// Drops the faults that would strike when chaos is over: they never do.
pub(super) fn drop_late(header: &mut Header) {
    let chaos = header.chaos;
    let in_time = |entry: &Injection| time_of(entry).is_none_or(|time| time < chaos);
    header.schedule.retain(in_time);
}

/// From when on an entry may strike; `None`: whenever its event occurs.
pub(super) fn time_of(entry: &Injection) -> Option<Nanos> {
    match entry.when {
        Trigger::At(at) => Some(at),
        Trigger::Next { after, .. } => Some(after),
        Trigger::On { .. } => None,
    }
}

fn strike_at(entry: &mut Injection, time: Nanos) {
    match &mut entry.when {
        Trigger::At(at) => *at = time,
        Trigger::Next { after, .. } => *after = time,
        Trigger::On { .. } => {}
    }
}

/// The entries that have a time, by it.
pub(super) fn in_order(header: &Header) -> Vec<(Nanos, usize)> {
    let entries = header.schedule.iter().enumerate();
    let timed = entries.filter_map(|(place, entry)| Some((time_of(entry)?, place)));
    let mut order: Vec<(Nanos, usize)> = timed.collect();
    order.sort_unstable();
    order
}

fn gap(order: &[(Nanos, usize)], nth: usize) -> Option<Nanos> {
    let before = match nth.checked_sub(1) {
        Some(before) => order.get(before)?.0,
        None => 0,
    };
    Some(order.get(nth)?.0 - before)
}

/// The pointers of all numbers.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::Object(fields) => {
            for (name, field) in fields {
                numbers(field, &format!("{path}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// A clock's plainest rate is the true one; of all else there is best nothing.
fn plainest(path: &str) -> i128 {
    match path.ends_with("/rate_ppb") {
        true => i128::from(TRUE_RATE),
        false => 0,
    }
}

/// A fault lasts for a step at the least: one that lasts for nothing reads as if nothing had
/// struck, but for a crash, which may be over at once.
fn least(fault: &Value, path: &str) -> i128 {
    let may_be_over_at_once = || {
        let name = fault["fault"].as_str();
        name.is_some_and(|name| LOSSES.contains(&name))
    };
    match path {
        "/for" if !may_be_over_at_once() => i128::from(TICK),
        "/for" => 0,
        _ => i128::MIN,
    }
}

fn whole(number: &Value) -> Option<i128> {
    let unsigned = number.as_u64().map(i128::from);
    unsigned.or_else(|| number.as_i64().map(i128::from))
}

fn json_number(number: i128) -> Option<Value> {
    let unsigned = u64::try_from(number).ok().map(Value::from);
    unsigned.or_else(|| i64::try_from(number).ok().map(Value::from))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{fault::reading::schedule, workload::Workload};

    fn header(entries: Value) -> Header {
        let mut header = Header::of(&Workload::named("w"), 0, "deposed", None);
        header.schedule = schedule(&entries).expect("a schedule");
        header
    }

    #[test]
    fn a_gap_moves_what_follows_and_nothing_else() {
        let header = header(json!([
            {"when": {"at": 700}, "fault": "halves", "for": 1},
            {"when": {"on": {"f": "renew", "type": "ok", "nth": 3}}, "fault": "halves", "for": 1},
            {"when": {"next": {"f": "renew", "type": "ok", "after": 400}}, "fault": "halves", "for": 1},
            {"when": {"at": 900}, "fault": "halves", "for": 1},
        ]));
        let gaps = [0, 1, 2, 3].map(|nth| Knob::Gap(nth).read(&header));
        assert_eq!(gaps, [Some(400), Some(300), Some(200), None]);
        let moved = Knob::Gap(1).turn(&header, 50).expect("there is room");
        let times: Vec<_> = moved.schedule.iter().map(time_of).collect();
        assert_eq!(times, [Some(450), None, Some(400), Some(650)]);
        assert_eq!(Knob::Gap(1).turn(&header, 301), None, "never later");
    }

    #[test]
    fn numbers_go_towards_what_is_plainest_from_their_own_side() {
        let header = header(json!([
            {"when": {"at": 5}, "fault": "step", "target": "leader", "by": -80},
            {"when": {"at": 5}, "fault": "rate", "target": {"client": 2}, "rate_ppb": 900_000_000, "for": 7},
        ]));
        let knobs = Knob::all(&header);
        let turned_up: Vec<_> = knobs
            .iter()
            .map(|knob| (knob, knob.read(&header)))
            .collect();
        let of = |entry, path: &str| {
            let knob = Knob::Number(entry, path.to_owned());
            let found = turned_up.iter().find(|(other, _)| **other == knob);
            found
                .unwrap_or_else(|| panic!("no {path} in {turned_up:?}"))
                .1
        };
        assert_eq!(of(0, "/by"), Some(80));
        assert_eq!(of(1, "/rate_ppb"), Some(100_000_000));
        assert_eq!(of(1, "/target/client"), Some(2));
        assert_eq!(of(1, "/for"), None, "shorter than a step");
        assert_eq!(of(1, "/when/at"), Some(5));
        let turned = |entry, path: &str, to| {
            let turned = Knob::Number(entry, path.to_owned()).turn(&header, to);
            serde_json::to_value(&turned.expect("it is there").schedule[entry]).expect("plain data")
        };
        assert_eq!(turned(0, "/by", 3)["by"], -3);
        assert_eq!(turned(1, "/rate_ppb", 1)["rate_ppb"], 999_999_999);
        assert_eq!(turned(1, "/target/client", 0)["target"]["client"], 0);
    }

    #[test]
    fn a_fault_lasts_for_a_step_and_a_crash_may_be_over_at_once() {
        let header = header(json!([
            {"when": {"at": 5}, "fault": "isolate", "target": "leader", "for": 300_000_000},
            {"when": {"at": 5}, "fault": "crash", "target": "store", "for": 300_000_000},
        ]));
        let least = |entry| {
            let length = Knob::Number(entry, "/for".to_owned());
            let turned = length.turn(&header, 0).expect("it has a length");
            serde_json::to_value(&turned.schedule[entry]).expect("plain data")["for"].clone()
        };
        assert_eq!((least(0), least(1)), (TICK.into(), 0.into()));
    }
}

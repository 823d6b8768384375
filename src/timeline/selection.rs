//! Which part of a history is shown.

use deposed_checkers::history::{Event, F, Kind, NEMESIS, Name, Nanos, Observation};

use super::{Chart, Role, name_of};

/// The types of events, and what else `--kind` may say without an event of it.
const TYPES: [(&str, Kind); 4] = [
    ("invoke", Kind::Invoke),
    ("ok", Kind::Ok),
    ("fail", Kind::Fail),
    ("info", Kind::Info),
];

/// Every kind that `--kind` knows in any history.
pub fn kinds() -> Vec<&'static str> {
    let calls = F::ALL.iter().map(|call| call.name());
    let types = TYPES.iter().map(|(word, _)| *word);
    let kinds = calls.chain(Observation::NAMES).chain(types);
    kinds.chain([NEMESIS]).collect()
}

/// What to show; by default everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// From this true time on.
    pub from: Option<Nanos>,
    /// Up to this true time, inclusive.
    pub to: Option<Nanos>,
    /// Of these processes; of all when there are none.
    pub processes: Vec<Name>,
    /// Of these `f`s or types, or `nemesis`; of all when there are none.
    pub kinds: Vec<Name>,
}

impl Selection {
    /// Whether an event is shown.
    pub fn takes(&self, event: &Event) -> bool {
        self.from.is_none_or(|from| from <= event.time)
            && self.to.is_none_or(|to| event.time <= to)
            && self.takes_process(&event.process)
            && self.takes_kind(name_of(&event.body), event.kind, event.process == NEMESIS)
    }

    /// Whether a process is shown.
    pub fn takes_process(&self, process: &Name) -> bool {
        self.processes.is_empty() || self.processes.contains(process)
    }

    /// Whether events of this `f` and type, by the nemesis or not, are shown.
    pub fn takes_kind(&self, f: &str, kind: Kind, nemesis: bool) -> bool {
        let named = |given: &Name| {
            let typed = TYPES.iter().any(|(word, of)| given == word && *of == kind);
            given == f || typed || (nemesis && given == NEMESIS)
        };
        self.kinds.is_empty() || self.kinds.iter().any(named)
    }

    /// The first and the last time that are drawn.
    pub fn window(&self, chart: &Chart) -> (Nanos, Nanos) {
        let from = self.from.unwrap_or(chart.start);
        (from, self.to.unwrap_or(chart.end).max(from))
    }

    /// Whether there is anything to draw: an event, or where kinds are not what is asked for,
    /// something that lasts.
    pub fn finds(&self, chart: &Chart) -> bool {
        let (from, to) = self.window(chart);
        let shown = |lane: usize| self.takes_process(&chart.lanes[lane].name);
        let event = chart.points.iter().any(|point| {
            let nemesis = chart.lanes[point.lane].role == Role::Nemesis;
            (from..=to).contains(&point.time)
                && shown(point.lane)
                && self.takes_kind(&chart.names[point.f], point.kind, nemesis)
        });
        let lasting = || {
            let mut spans = chart.spans.iter();
            spans.any(|span| shown(span.lane) && span.from <= to && from < span.to)
        };
        event || (self.kinds.is_empty() && lasting())
    }

    /// What is asked for that a history with these processes and `f`s has not, and that no
    /// history would have by that name: a slip of the pen, and not a kind that just does not
    /// occur.
    pub fn slip(&self, processes: &[Name], names: &[Name]) -> Option<String> {
        let missing = self
            .processes
            .iter()
            .find(|process| !processes.contains(process));
        if let Some(process) = missing {
            let all = processes.join(", ");
            return Some(format!("no process is called '{process}'; there are {all}"));
        }
        let known = |kind: &&Name| {
            let all = kinds();
            all.contains(&kind.as_str()) || names.contains(kind)
        };
        let kind = self.kinds.iter().find(|kind| !known(kind))?;
        let types = TYPES.map(|(word, _)| word).join(", ");
        let names = names.join(", ");
        Some(format!(
            "no event is of the kind '{kind}'; there are {names}, and the types {types}"
        ))
    }
}

/// A time as a person gives it: `1.2s`, `850ms`, `12us`, or nanoseconds.
///
/// # Errors
/// With what would do instead.
pub fn instant(text: &str) -> Result<Nanos, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &text[..text.len() - unit.len()];
    let scale: Nanos = match unit {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err("give a time such as 1.2s, 850ms, or nanoseconds".to_owned()),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || (number.contains('.') && !digits(part)) {
        return Err("give a time such as 1.2s, 850ms, or nanoseconds".to_owned());
    }
    let too_late = || format!("the latest time is {} ns", Nanos::MAX);
    let whole: Nanos = whole.parse().map_err(|_| too_late())?;
    let whole = whole.checked_mul(scale).ok_or_else(too_late)?;
    // What is finer than a nanosecond is no time.
    let mut part_ns = 0;
    let mut place = scale;
    if scale == 1 && !part.is_empty() {
        return Err(format!(
            "there is no part of a nanosecond; give its unit, as in {number}s"
        ));
    }
    for digit in part.bytes() {
        place /= 10;
        part_ns += Nanos::from(digit - b'0') * place;
    }
    whole.checked_add(part_ns).ok_or_else(too_late)
}

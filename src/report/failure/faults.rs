//! Which faults are told beside the evidence: those that had a part in it, and no other.

use std::collections::{BTreeMap, VecDeque};

use deposed_checkers::{
    history::{Answer, Body, Event, F, Kind, Name, Nanos, Observation, Token},
    verdict::Check,
};
use serde_json::Value;

use super::{
    super::words::{self, LOSSES},
    Row,
};

/// How many faults are shown beside the evidence.
const SHOWN: usize = 5;
/// How many faults are remembered to choose from.
const KEPT: usize = 4096;
/// What is recorded of a single frame that a rule struck.
const STRIKES: [&str; 3] = ["lost", "delayed", "duplicated"];
/// Faults of links.
const LINKS: [&str; 8] = [
    "partition",
    "partition-oneway",
    "isolate",
    "halves",
    "bridge",
    "hold",
    "latency",
    "flaky",
];
/// The rules themselves: that they were armed tells nothing.
const RULES: [&str; 3] = ["lose", "delay", "duplicate"];
/// Faults that only cost time.
const STOPS: [&str; 5] = ["pause", "paused", "suspend", "starve", "slow-sync"];

/// A term: of which lease, and its token.
pub(super) type Term = (Name, Option<Token>);

/// A fault beside the evidence.
pub(super) struct Fault {
    name: String,
    /// Whom it names.
    value: Value,
    time: Nanos,
    pub(super) row: Row,
    /// The call that it struck a frame of, by its invoke.
    struck: Option<u64>,
    /// The terms that those whom it names renewed once it was over: what only costs time did
    /// not cost them those.
    outlived: Vec<Term>,
}

/// The faults between the first row of an exhibit and its culprit.
#[derive(Default)]
pub(super) struct Faults {
    faults: VecDeque<Fault>,
}

/// What the evidence is about.
pub(super) struct About<'a> {
    pub(super) check: Check,
    /// Its rows, before any fault.
    pub(super) rows: &'a [Row],
    pub(super) culprit: u64,
    /// All of its events: some may be in no row.
    pub(super) events: &'a [u64],
}

/// Whether links that carry nothing, or little, tell something: they do where a client could
/// not do what it should, and not where a node broke its own word.
fn asks_for_links(check: Check) -> bool {
    match check {
        Check::StorageSafety | Check::ZombieWrite | Check::ElectionBarrier | Check::Failover => {
            true
        }
        Check::WellFormed
        | Check::TokenMonotonicity
        | Check::BeliefSafety
        | Check::LeaseLinearizable
        | Check::MutexLinearizable
        | Check::LockDelay
        | Check::RegisterLinearizable
        | Check::Conduct => false,
    }
}

/// Whether a check is of what a server remembers, which no lost time takes from it.
fn is_of_memory(check: Check) -> bool {
    matches!(
        check,
        Check::TokenMonotonicity
            | Check::LeaseLinearizable
            | Check::MutexLinearizable
            | Check::LockDelay
    )
}

/// Whether a check is of one client's writes, which faults of others have no part in.
fn is_of_a_write(check: Check) -> bool {
    matches!(
        check,
        Check::StorageSafety | Check::ZombieWrite | Check::ElectionBarrier
    )
}

/// Whether a check's evidence names every fault that decides it, so that another beside it
/// would only mislead.
fn names_its_faults(check: Check) -> bool {
    check == Check::BeliefSafety
}

/// Whether a fault of this kind can have a part in what the check convicts.
fn may_decide(check: Check, name: &str, value: &Value) -> bool {
    if names_its_faults(check) || RULES.contains(&name) {
        return false;
    }
    if is_of_links(name, value) {
        return asks_for_links(check);
    }
    !(is_a_stop(name, value) && is_of_memory(check))
}

/// A fault's kind, of its end as well.
fn kind<'v>(name: &'v str, value: &'v Value) -> &'v str {
    match name {
        "heal" | "resume" => value["fault"].as_str().unwrap_or(name),
        name => name,
    }
}

fn is_of_links(name: &str, value: &Value) -> bool {
    LINKS.contains(&kind(name, value))
}

fn is_a_stop(name: &str, value: &Value) -> bool {
    name == "resume" || STOPS.contains(&kind(name, value))
}

impl Faults {
    /// Looks at the next event, which is no part of the evidence and before its culprit.
    pub(super) fn see(
        &mut self,
        check: Check,
        event: &Event,
        calls: &Calls,
        row: impl Fn() -> Row,
    ) {
        match &event.body {
            Body::Nemesis(name, value)
                if may_decide(check, name, value)
                    && (calls.struck.is_some() || !STRIKES.contains(&name.as_str())) =>
            {
                self.faults.push_back(Fault {
                    name: name.to_string(),
                    value: value.clone(),
                    time: event.time,
                    row: row(),
                    struck: calls.struck,
                    outlived: Vec::new(),
                });
                if self.faults.len() > KEPT {
                    self.faults.pop_front();
                }
            }
            _ => {}
        }
        if let Some((sent, term)) = &calls.renewed {
            self.outlived_by(&event.process, *sent, term);
        }
    }

    /// A renewal that was sent then was acknowledged.
    fn outlived_by(&mut self, client: &Name, sent: Nanos, term: &Term) {
        for fault in &mut self.faults {
            let over = fault.value["for"]
                .as_u64()
                .map_or(fault.time, |length| fault.time.saturating_add(length));
            if over <= sent
                && !fault.outlived.contains(term)
                && fault.named().contains(&client.as_str())
            {
                fault.outlived.push(term.clone());
            }
        }
    }

    /// Those that had a part in it, the latest few.
    pub(super) fn told(self, about: &About<'_>, calls: &Calls) -> Vec<Row> {
        let mut faults = self.faults;
        let concerned = about.concerned();
        let term = about.term();
        let mut losses: BTreeMap<&Name, Vec<u64>> = BTreeMap::new();
        for process in &concerned {
            losses.insert(process, about.last_losses(process, &faults));
        }
        let decides = |fault: &Fault| {
            if let Some(invoke) = fault.struck {
                return calls.are_of(invoke, about.events);
            }
            let named = fault.named();
            let mut whom = concerned
                .iter()
                .filter(|process| named.contains(&process.as_str()));
            if LOSSES.contains(&fault.name.as_str()) {
                return whom.any(|process| losses[process].contains(&fault.row.index));
            }
            let only_costs_time =
                is_of_links(&fault.name, &fault.value) || is_a_stop(&fault.name, &fault.value);
            whom.next().is_some()
                && !(only_costs_time && term.is_some_and(|term| fault.outlived.contains(term)))
        };
        let decided: Vec<bool> = faults.iter().map(decides).collect();
        let mut decided = decided.into_iter();
        faults.retain(|_| decided.next().unwrap_or(false));
        let mut rows: Vec<Row> = faults.into_iter().map(|fault| fault.row).collect();
        tell_something(&mut rows);
        let spare = rows.len().saturating_sub(SHOWN);
        let mut rows = rows.split_off(spare);
        // What began may have been left out.
        tell_something(&mut rows);
        rows
    }
}

impl Fault {
    /// All that it names; nobody, where it is armed for every link and concerns nobody in
    /// particular.
    fn named(&self) -> Vec<&str> {
        let named = ["node", "nodes", "from", "to"].map(|field| words::nodes(&self.value[field]));
        if named[2].len() > 2 || named[3].len() > 2 {
            return Vec::new();
        }
        let halves = self.value["halves"].as_array().into_iter().flatten();
        [named.concat(), halves.flat_map(words::nodes).collect()].concat()
    }
}

impl About<'_> {
    /// Whose faults may have decided it: of a write, its client's, and those of a server that
    /// is shown to have come back; else everybody's in it.
    fn concerned(&self) -> Vec<Name> {
        let mut concerned: Vec<Name> = match is_of_a_write(self.check) {
            false => self.rows.iter().map(|row| row.process.clone()).collect(),
            true => {
                let back = self.rows.iter().filter(|row| row.came_back);
                let back = back.map(|row| row.process.clone());
                back.chain(self.writer()).collect()
            }
        };
        concerned.sort_unstable();
        concerned.dedup();
        concerned
    }

    fn culprits_row(&self) -> Option<&Row> {
        self.rows.iter().find(|row| row.index == self.culprit)
    }

    /// Who sent what landed: storage applied it in the words in which it was asked.
    fn writer(&self) -> Option<Name> {
        let culprit = self.culprits_row()?;
        let Some(asked) = culprit.action.strip_prefix("applied ") else {
            return Some(culprit.process.clone());
        };
        let sent = self.rows.iter().rev().find(|row| row.action == asked);
        sent.map(|row| row.process.clone())
    }

    fn term(&self) -> Option<&Term> {
        self.culprits_row()?.term.as_ref()
    }

    /// The last loss before each row in which a process came back, or before the culprit
    /// where none is shown: what was lost before it had been lost already.
    fn last_losses(&self, process: &Name, faults: &VecDeque<Fault>) -> Vec<u64> {
        let back = self.rows.iter().filter(|row| row.came_back);
        let back = back.filter(|row| row.process == *process);
        let mut ends: Vec<u64> = back.map(|row| row.index).collect();
        if ends.is_empty() {
            ends.push(self.culprit);
        }
        let losses = faults
            .iter()
            .filter(|fault| LOSSES.contains(&fault.name.as_str()))
            .filter(|fault| fault.named().contains(&process.as_str()));
        let losses: Vec<u64> = losses.map(|fault| fault.row.index).collect();
        let last = |end: u64| losses.iter().copied().filter(|at| *at < end).max();
        ends.into_iter().filter_map(last).collect()
    }
}

fn tell_something(rows: &mut Vec<Row>) {
    let actions: Vec<(u64, String)> = rows
        .iter()
        .map(|row| (row.index, row.action.clone()))
        .collect();
    rows.retain(|row| tells_something(row, &actions));
}

/// An end whose beginning lies before the evidence or is not told tells nothing, nor does a
/// pause that was armed and not met.
fn tells_something(row: &Row, all: &[(u64, String)]) -> bool {
    let mut words = row.action.split(' ');
    let (name, whom) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let begun = |starts: &[String]| {
        let said = |action: &str| starts.iter().any(|start| action.starts_with(start));
        let before = || all.iter().filter(|(index, _)| *index < row.index);
        let begun = before().rfind(|(_, action)| said(action));
        let ended = before().rfind(|(_, action)| *action == row.action);
        begun.is_some_and(|(begun, _)| ended.is_none_or(|(ended, _)| ended < begun))
    };
    match name {
        "gc-pause" | "power-cut" => false,
        "resume" => begun(&["pause", "paused", "suspend"].map(|stop| format!("{stop} {whom} "))),
        "restart" => begun(&LOSSES.map(|end| format!("{end} {whom} "))),
        "heal" => begun(&[whom.to_owned()]),
        _ => true,
    }
}

/// A call that is open.
struct Open {
    sent: Nanos,
    f: F,
    term: Term,
}

/// The calls of a history, as far as faults beside the evidence ask for them.
#[derive(Default)]
pub(super) struct Calls {
    open: BTreeMap<u64, Open>,
    /// By client and kind: the invoke, and the call's id.
    last: BTreeMap<(Name, &'static str), (u64, Option<u64>)>,
    /// Calls that a frame was struck of and that are open, by their id.
    hurt: BTreeMap<u64, u64>,
    /// Those that are not: by their invoke, the completion.
    completed: BTreeMap<u64, u64>,
    /// The call that the last event struck a frame of, by its invoke.
    struck: Option<u64>,
    /// If the last event acknowledged a renewal: when that was sent, and of which term.
    renewed: Option<(Nanos, Term)>,
    /// The term that the last event is of.
    pub(super) term: Option<Term>,
}

impl Calls {
    pub(super) fn see(&mut self, event: &Event) {
        (self.struck, self.renewed, self.term) = (None, None, None);
        match (&event.body, event.call) {
            (Body::Invoke(op), call) => {
                let key = (event.process.clone(), op.f().name());
                self.last.insert(key, (event.index, call));
                let term = (op.lease().clone(), op.token());
                if let Some(call) = call {
                    let (sent, f, term) = (event.time, op.f(), term.clone());
                    self.open.insert(call, Open { sent, f, term });
                }
                self.term = Some(term);
            }
            (Body::Complete(_, answer), Some(call)) => {
                if let Some(invoke) = self.hurt.remove(&call) {
                    self.completed.insert(invoke, event.index);
                }
                let Some(Open { sent, f, mut term }) = self.open.remove(&call) else {
                    return;
                };
                if let Answer::Token(token) = answer {
                    term.1 = Some(*token);
                }
                if f == F::Renew && event.kind == Kind::Ok {
                    self.renewed = Some((sent, term.clone()));
                }
                self.term = Some(term);
            }
            (Body::Observed(Observation::Lead(lead)), _) => {
                self.term = Some((lead.lease.clone(), lead.token));
            }
            (Body::Observed(Observation::Applied(applied)), _) => {
                self.term = Some((applied.lease.clone(), applied.token));
            }
            (Body::Nemesis(name, value), _) => self.struck = self.struck_by(name, value),
            _ => {}
        }
    }

    /// The invoke of the call that a fault struck a frame of.
    fn struck_by(&mut self, name: &str, value: &Value) -> Option<u64> {
        if !STRIKES.contains(&name) {
            return None;
        }
        let kind = value["kind"].as_str()?;
        let (end, kind) = match kind.strip_suffix("-reply") {
            Some(kind) => ("to", kind),
            None => ("from", kind),
        };
        let client = words::nodes(&value[end]).into_iter().next()?;
        let asked = |((process, f), _): &(&(Name, &str), _)| process == client && *f == kind;
        let (_, &(invoke, call)) = self.last.iter().find(asked)?;
        if let Some(call) = call {
            self.hurt.insert(call, invoke);
        }
        Some(invoke)
    }

    /// Whether a call is among these events.
    fn are_of(&self, invoke: u64, events: &[u64]) -> bool {
        let completed = self.completed.get(&invoke);
        events.contains(&invoke) || completed.is_some_and(|at| events.contains(at))
    }
}

#[cfg(test)]
mod tests {
    use deposed_checkers::{
        reader::Reader,
        verdict::{Evidence, Verdict, Verdicts},
    };
    use serde_json::json;

    use super::{super::Exhibits, *};

    /// A history; its evidence is what is marked so.
    #[derive(Default)]
    struct Tale {
        lines: Vec<String>,
        evidence: Vec<u64>,
    }

    impl Tale {
        fn line(
            mut self,
            who: &str,
            kind: &str,
            call: Option<u64>,
            f: &str,
            value: &Value,
        ) -> Self {
            let index = self.lines.len();
            let mut line = json!({
                "index": index, "time": index * 1_000_000, "process": who, "type": kind,
                "f": f, "value": value,
            });
            if let Some(call) = call {
                line["call"] = call.into();
            }
            self.lines.push(line.to_string());
            self
        }

        fn in_evidence(mut self) -> Self {
            self.evidence.push(self.lines.len() as u64 - 1);
            self
        }

        fn strikes(self, fault: &str, value: &Value) -> Self {
            self.line("nemesis", "info", None, fault, value)
        }

        fn acquires(self, who: &str, token: u64) -> Self {
            let asked = json!({"lease": "leader", "holder": format!("{who}#1"), "ttl": 9});
            let answer = json!({"token": token});
            let call = Some(self.lines.len() as u64);
            self.line(who, "invoke", call, "acquire", &asked)
                .line(who, "ok", call, "acquire", &answer)
                .in_evidence()
        }

        fn sends_a_renewal(self, who: &str, token: u64) -> Self {
            let asked = json!({"lease": "leader", "holder": format!("{who}#1"), "token": token});
            self.line(who, "invoke", Some(1_000), "renew", &asked)
        }

        fn renewed(self, who: &str) -> Self {
            self.line(who, "ok", Some(1_000), "renew", &Value::Null)
        }

        fn comes_back(self) -> Self {
            let found = json!({"leases": {}, "clock": 1});
            self.line("store", "info", None, "recovered", &found)
        }

        /// A late write of a with token 1 that its storage applies.
        fn late_write(self) -> Self {
            let write = json!({"lease": "leader", "token": 1, "key": "x", "value": 40});
            let applied =
                json!({"f": "write", "lease": "leader", "token": 1, "key": "x", "value": 40});
            self.line("a", "invoke", Some(1_001), "write", &write)
                .in_evidence()
                .line("storage", "info", None, "applied", &applied)
                .in_evidence()
        }

        fn grants(self, who: &str, token: u64) -> Self {
            let granted = json!({"lease": "leader", "holder": format!("{who}#1"), "token": token, "ttl": 9, "clock": 1});
            self.line("store", "info", None, "granted", &granted)
                .in_evidence()
        }

        /// The faults beside the evidence of a check, in their words.
        fn told(&self, check: Check) -> Vec<String> {
            let evidence = Evidence {
                sentence: String::new(),
                events: self.evidence.clone(),
                culprit: *self.evidence.last().expect("evidence"),
                expected: String::new(),
                reckoning: Vec::new(),
            };
            let verdicts = Verdicts(vec![(check, Verdict::Violated(evidence))]);
            let mut exhibits = Exhibits::of(&verdicts);
            let lines = self.lines.iter().map(|line| line.clone() + "\n");
            let text = "{\"deposed\":1}\n".to_owned() + &lines.collect::<String>();
            let (_, events) = Reader::new(text.as_bytes(), "tale").expect("a header");
            events.for_each(|event| exhibits.see(&event.expect("an event")));
            let Exhibits {
                mut exhibits,
                asked,
                ..
            } = exhibits;
            let text = exhibits.remove(0).text(&asked);
            let faults = text
                .lines()
                .filter_map(|line| line.split_once("  nemesis  "));
            faults.map(|(_, fault)| fault.to_owned()).collect()
        }
    }

    fn cut(whom: [&str; 2]) -> Value {
        json!({"nodes": whom, "for": 1_000_000})
    }

    fn node(node: &str) -> Value {
        json!({"node": node, "for": 1_000_000})
    }

    #[test]
    fn beside_a_late_write_are_the_faults_of_who_sent_it_and_of_nobody_else() {
        let tale = Tale::default()
            .acquires("a", 1)
            .strikes("crash", &node("storage"))
            .strikes("restart", &json!({"node": "storage"}))
            .strikes("partition", &cut(["b", "store"]))
            .strikes("paused", &node("a"))
            .acquires("b", 2)
            .strikes("resume", &json!({"node": "a", "fault": "pause"}))
            .late_write();
        let told = tale.told(Check::ZombieWrite);
        assert_eq!(told, ["paused a for 1ms", "resume a"]);
    }

    #[test]
    fn a_fault_that_the_term_outlived_is_not_told() {
        let before = || {
            Tale::default()
                .acquires("a", 1)
                .strikes("partition", &cut(["a", "store"]))
                .strikes(
                    "heal",
                    &json!({"fault": "partition", "nodes": ["a", "store"]}),
                )
        };
        let told = |tale: Tale| tale.acquires("b", 2).late_write().told(Check::ZombieWrite);
        let both = ["partition a, store for 1ms", "heal partition a, store"];
        assert_eq!(told(before()), both);
        let outlived = before().sends_a_renewal("a", 1).renewed("a");
        assert_eq!(told(outlived), [""; 0]);
        // Another's renewal tells nothing, nor one of a later term.
        assert_eq!(told(before().sends_a_renewal("c", 1).renewed("c")), both);
        assert_eq!(told(before().sends_a_renewal("a", 3).renewed("a")), both);
        // Nor does one that was under way when the fault struck.
        let under_way = Tale::default()
            .acquires("a", 1)
            .sends_a_renewal("a", 1)
            .strikes("paused", &node("a"))
            .renewed("a");
        assert_eq!(told(under_way), ["paused a for 1ms"]);
    }

    #[test]
    fn of_crashes_the_last_before_a_server_came_back_is_told() {
        let restart = json!({"node": "store"});
        let tale = Tale::default()
            .grants("a", 1)
            .strikes("pause", &node("store"))
            .strikes("crash", &node("store"))
            .strikes("restart", &restart)
            .comes_back()
            .strikes("power-loss", &node("store"))
            .strikes("restart", &restart)
            .comes_back()
            .in_evidence()
            .strikes("crash", &node("store"))
            .strikes("restart", &restart)
            .grants("b", 1);
        for check in [
            Check::TokenMonotonicity,
            Check::LeaseLinearizable,
            Check::LockDelay,
        ] {
            let told = tale.told(check);
            assert_eq!(
                told,
                ["power-loss store for 1ms", "restart store"],
                "{check}"
            );
        }
    }

    #[test]
    fn of_a_clients_crashes_the_last_is_told() {
        let told = Tale::default()
            .acquires("a", 1)
            .strikes("crash", &node("a"))
            .strikes("restart", &json!({"node": "a"}))
            .strikes("power-loss", &node("a"))
            .strikes("restart", &json!({"node": "a"}))
            .acquires("a", 1)
            .told(Check::Conduct);
        assert_eq!(told, ["power-loss a for 1ms", "restart a"]);
    }

    #[test]
    fn no_more_than_a_handful_is_told_and_an_end_goes_with_its_beginning() {
        let told = |steps: usize| {
            let mut tale = Tale::default()
                .acquires("a", 1)
                .strikes("suspend", &node("a"));
            for _ in 0..steps {
                tale = tale.strikes("step", &json!({"node": "a", "by": 5}));
            }
            let tale = tale.strikes("resume", &json!({"node": "a", "fault": "suspend"}));
            tale.acquires("b", 2).late_write().told(Check::ZombieWrite)
        };
        assert_eq!(told(3).len(), 5);
        assert_eq!(told(3)[4], "resume a");
        assert_eq!(told(5), ["step a by 5ns"; 4]);
    }
}

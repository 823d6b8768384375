//! A failure as a person wants it: one sentence, the shortest evidence, the next
//! commands.

use std::collections::{BTreeMap, VecDeque};

use deposed_checkers::{
    history::{Body, Event, Name},
    verdict::{Check, Evidence, Verdict, Verdicts},
};
use serde_json::Value;

use super::{
    text::{Calls, argument, printable},
    words,
};

/// How many faults are shown beside the evidence.
const FAULTS_SHOWN: usize = 5;
/// How many faults are remembered to choose from.
const FAULTS_KEPT: usize = 4096;
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

/// One row of evidence.
struct Row {
    index: u64,
    time: String,
    process: Name,
    action: String,
    outcome: String,
}

/// The evidence of one violated check, gathered while the history passes by.
struct Exhibit {
    check: Check,
    evidence: Evidence,
    rows: Vec<Row>,
    /// Faults since the first row, until the culprit.
    faults: VecDeque<Fault>,
}

/// A fault beside the evidence.
struct Fault {
    /// Whom it names.
    value: Value,
    row: Row,
    /// The call that it struck a frame of, by its invoke.
    struck: Option<u64>,
}

/// Which call a struck frame is of: the last of its kind that its client had made.
#[derive(Default)]
struct Frames {
    /// By client and kind: the invoke, and the call's id.
    last: BTreeMap<(Name, &'static str), (u64, Option<u64>)>,
    /// Struck calls that are open, by their id.
    open: BTreeMap<u64, u64>,
    /// Those that are not: by their invoke, the completion.
    completed: BTreeMap<u64, u64>,
}

impl Frames {
    fn see(&mut self, event: &Event) {
        match (&event.body, event.call) {
            (Body::Invoke(op), call) => {
                let key = (event.process.clone(), op.f().name());
                self.last.insert(key, (event.index, call));
            }
            (Body::Complete(..), Some(call)) => {
                if let Some(invoke) = self.open.remove(&call) {
                    self.completed.insert(invoke, event.index);
                }
            }
            _ => {}
        }
    }

    /// The invoke of the call that a fault struck a frame of.
    fn struck(&mut self, name: &str, value: &Value) -> Option<u64> {
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
            self.open.insert(call, invoke);
        }
        Some(invoke)
    }

    /// Whether a call is among these events.
    fn are_of(&self, invoke: u64, events: &[u64]) -> bool {
        let completed = self.completed.get(&invoke);
        events.contains(&invoke) || completed.is_some_and(|at| events.contains(at))
    }
}

/// The evidence of all violated checks. Show it every event, in order.
pub struct Exhibits {
    calls: Calls,
    frames: Frames,
    exhibits: Vec<Exhibit>,
}

impl Exhibits {
    /// Of the violated checks among these.
    pub fn of(verdicts: &Verdicts) -> Self {
        let exhibit = |(check, evidence): (Check, &Evidence)| Exhibit {
            check,
            evidence: evidence.clone(),
            rows: Vec::new(),
            faults: VecDeque::new(),
        };
        Self {
            calls: Calls::default(),
            frames: Frames::default(),
            exhibits: verdicts.violated().map(exhibit).collect(),
        }
    }

    /// Whether later events can no longer be part of it.
    pub fn complete(&self, index: u64) -> bool {
        let last = |exhibit: &Exhibit| exhibit.evidence.events.iter().max().copied();
        self.exhibits
            .iter()
            .filter_map(last)
            .all(|last| last < index)
    }

    /// Looks at the next event.
    pub fn see(&mut self, event: &Event) {
        let (action, outcome) = self.calls.words(event);
        self.frames.see(event);
        let struck = match &event.body {
            Body::Nemesis(name, value) => self.frames.struck(name, value),
            _ => None,
        };
        for exhibit in &mut self.exhibits {
            let row = || Row {
                index: event.index,
                time: words::time(event.time),
                process: event.process.clone(),
                action: action.clone(),
                outcome: outcome.clone(),
            };
            if exhibit.evidence.events.contains(&event.index) {
                exhibit.rows.push(row());
            } else if let Body::Nemesis(name, value) = &event.body
                && !names_its_faults(exhibit.check)
                && !exhibit.rows.is_empty()
                && event.index < exhibit.evidence.culprit
                && !RULES.contains(&name.as_str())
                && (asks_for_links(exhibit.check) || !is_of_links(name, value))
                && (struck.is_some() || !STRIKES.contains(&name.as_str()))
            {
                exhibit.faults.push_back(Fault {
                    value: value.clone(),
                    row: row(),
                    struck,
                });
                if exhibit.faults.len() > FAULTS_KEPT {
                    exhibit.faults.pop_front();
                }
            }
        }
    }
}

/// Whether links that carry nothing, or little, tell something: they do where a client could
/// not do what it should, and not where a node broke its own word.
fn asks_for_links(check: Check) -> bool {
    match check {
        Check::StorageSafety
        | Check::ZombieWrite
        | Check::ElectionBarrier
        | Check::RegisterLinearizable
        | Check::Failover => true,
        Check::WellFormed
        | Check::TokenMonotonicity
        | Check::BeliefSafety
        | Check::LeaseLinearizable
        | Check::MutexLinearizable
        | Check::LockDelay
        | Check::Conduct => false,
    }
}

/// Whether a fault is one of links, or its end.
fn is_of_links(name: &str, value: &Value) -> bool {
    let name = match name {
        "heal" => value["fault"].as_str().unwrap_or(name),
        name => name,
    };
    LINKS.contains(&name)
}

/// Whether a check's evidence names every fault that decides it, so that another beside it
/// would only mislead.
fn names_its_faults(check: Check) -> bool {
    check == Check::BeliefSafety
}

impl Exhibit {
    fn text(self, frames: &Frames) -> String {
        let Evidence {
            sentence,
            culprit,
            expected,
            events,
            reckoning,
        } = self.evidence;
        let mut rows = self.rows;
        let processes: Vec<Name> = rows.iter().map(|row| row.process.clone()).collect();
        let mut faults = self.faults;
        faults.retain(|fault| {
            fault
                .struck
                .is_none_or(|invoke| frames.are_of(invoke, &events))
        });
        rows.extend(telling(faults, &processes));
        rows.sort_by_key(|row| row.index);
        let widest = |column: fn(&Row) -> &str| {
            let lengths = rows.iter().map(|row| column(row).chars().count());
            lengths.max().unwrap_or(0)
        };
        let (time, process) = (widest(|row| &row.time), widest(|row| &row.process));
        // Only rows with an outcome need its column to line up.
        let action = widest(
            |row| match row.outcome.is_empty() && row.process == "nemesis" {
                true => "",
                false => &row.action,
            },
        );
        let outcome = widest(|row| &row.outcome);
        let lines = rows.iter().map(|row| {
            let mark = if row.index == culprit { '>' } else { ' ' };
            let mut line = format!(
                "   {mark} {:>time$}  {:<process$}  {:<action$}    {:<outcome$}",
                row.time, row.process, row.action, row.outcome
            );
            if row.index == culprit && !expected.is_empty() {
                line += &format!("   expected: {expected}");
            }
            printable(line.trim_end())
        });
        let mut lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            let indices = events.iter().map(u64::to_string);
            let indices: Vec<String> = indices.collect();
            lines.push(format!("     events {}", indices.join(", ")));
        }
        if !reckoning.is_empty() {
            lines.push(String::new());
            lines.extend(
                reckoning
                    .iter()
                    .map(|line| format!("     {}", printable(line))),
            );
        }
        let sentence = printable(&sentence);
        format!("  {}: {sentence}\n\n{}\n", self.check, lines.join("\n"))
    }
}

/// The faults that matter most to these processes, the latest few: of the last but one,
/// who did what the last (a server, as a rule) should have refused, before the others.
fn telling(faults: VecDeque<Fault>, processes: &[Name]) -> Vec<Row> {
    let actor = processes
        .len()
        .checked_sub(2)
        .map(|last_but_one| &processes[last_but_one]);
    let mut ranked: Vec<(bool, Row)> = Vec::new();
    for Fault { value, row, .. } in faults {
        let named = ["node", "nodes", "from", "to"].map(|field| words::nodes(&value[field]));
        // A rule armed for every link concerns nobody in particular.
        let broad = named[2].len() > 2 || named[3].len() > 2;
        let halves = value["halves"].as_array().into_iter().flatten();
        let named = [named.concat(), halves.flat_map(words::nodes).collect()].concat();
        if !broad
            && named
                .iter()
                .any(|node| processes.iter().any(|process| process == node))
        {
            let acts = actor.is_some_and(|actor| named.contains(&actor.as_str()));
            ranked.push((acts, row));
        }
    }
    ranked.sort_by_key(|(acts, row)| (*acts, row.index));
    let mut rows: Vec<Row> = ranked.into_iter().map(|(_, row)| row).collect();
    tell_something(&mut rows);
    let spare = rows.len().saturating_sub(FAULTS_SHOWN);
    let mut rows = rows.split_off(spare);
    // What began may have been left out.
    tell_something(&mut rows);
    rows
}

fn tell_something(rows: &mut Vec<Row>) {
    let actions: Vec<(u64, String)> = rows
        .iter()
        .map(|row| (row.index, row.action.clone()))
        .collect();
    rows.retain(|row| tells_something(row, &actions));
}

/// An end whose beginning lies before the evidence tells nothing, nor does a pause that
/// was armed and not met.
fn tells_something(row: &Row, all: &[(u64, String)]) -> bool {
    let mut words = row.action.split(' ');
    let (name, whom) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let begun = |starts: &[String]| {
        let said = |action: &str| starts.iter().any(|start| action.starts_with(start));
        all.iter()
            .any(|(index, action)| *index < row.index && said(action))
    };
    match name {
        "gc-pause" | "power-cut" => false,
        "resume" => begun(&["pause", "paused", "suspend"].map(|stop| format!("{stop} {whom} "))),
        "restart" => begun(&["crash", "power-loss", "restore"].map(|end| format!("{end} {whom} "))),
        "heal" => begun(&[whom.to_owned()]),
        _ => true,
    }
}

/// A failed run or history.
pub struct Failure<'a> {
    /// What failed: `partition-leader  seed 4`.
    pub title: &'a str,
    /// What is wrong with the run itself.
    pub defects: &'a [String],
    /// What the checkers say.
    pub verdicts: &'a Verdicts,
    /// The gathered evidence.
    pub exhibits: Exhibits,
    /// Where the history is.
    pub file: Option<&'a str>,
    /// What can be done with it there.
    pub next: Next,
}

/// What can be done with a history next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To look at it, and no more: it lacks what a replay needs.
    Look,
    /// To replay it, too.
    Replay,
    /// And to shrink it: a check was violated.
    Shrink,
    /// It has been shrunk, and is worth keeping.
    Keep,
}

impl Next {
    /// The commands, a line each.
    pub fn commands(self, file: &str) -> String {
        let file = argument(file);
        let replay = format!("  replay   deposed replay {file}\n");
        let look = format!("  look     deposed show   {file}\n");
        match self {
            Next::Look => look,
            Next::Replay => replay + &look,
            Next::Shrink => format!("{replay}{look}  shrink   deposed shrink {file}\n"),
            Next::Keep => format!("{replay}{look}  keep     deposed keep   {file}\n"),
        }
    }
}

impl Failure<'_> {
    /// The whole text, ending in a line feed.
    pub fn text(self) -> String {
        let mut parts = vec![format!("FAILED  {}\n", self.title)];
        for defect in self.defects {
            parts.push(format!("  defect: {}\n", printable(defect)));
        }
        let Exhibits {
            exhibits, frames, ..
        } = self.exhibits;
        parts.extend(exhibits.into_iter().map(|exhibit| exhibit.text(&frames)));
        let others = others(self.verdicts);
        if !others.is_empty() {
            parts.push(others);
        }
        if let Some(file) = self.file {
            parts.push(self.next.commands(file));
        }
        parts.join("\n")
    }
}

/// The checks that were not violated: ok in one line, the rest with their reasons.
pub fn others(verdicts: &Verdicts) -> String {
    let ok = verdicts.0.iter().filter(|(_, v)| *v == Verdict::Valid);
    let ok: Vec<String> = ok.map(|(check, _)| format!("{check} ok")).collect();
    let mut lines = String::new();
    if !ok.is_empty() {
        lines += &format!("  {}\n", ok.join(" · "));
    }
    for (check, verdict) in &verdicts.0 {
        match verdict {
            Verdict::NotClaimed(why) => {
                lines += &format!("  {check} not claimed: {}\n", printable(why));
            }
            Verdict::Unknown(why) => lines += &format!("  {check} unknown: {}\n", printable(why)),
            Verdict::Valid | Verdict::Violated(_) => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::text::tests::story, *};

    fn stale_write() -> Verdicts {
        Verdicts(vec![
            (
                Check::StorageSafety,
                Verdict::Violated(Evidence {
                    sentence: "a write with token 7 landed after storage had seen token 8".into(),
                    events: vec![2, 6, 9, 13],
                    culprit: 13,
                    expected: "refused, storage had seen 8".into(),
                    reckoning: Vec::new(),
                }),
            ),
            (Check::BeliefSafety, Verdict::Valid),
            (Check::ElectionBarrier, Verdict::Valid),
            (Check::Failover, Verdict::NotClaimed("no calm in it".into())),
            (Check::Conduct, Verdict::Unknown("no budget".into())),
        ])
    }

    fn exhibits(verdicts: &Verdicts) -> Exhibits {
        let mut exhibits = Exhibits::of(verdicts);
        story().iter().for_each(|event| exhibits.see(event));
        exhibits
    }

    #[test]
    fn a_violation_is_one_sentence_its_evidence_and_the_next_commands() {
        let verdicts = stale_write();
        let failure = Failure {
            title: "partition-leader  seed 8877673959163467592",
            defects: &[],
            verdicts: &verdicts,
            exhibits: exhibits(&verdicts),
            file: Some("runs/partition-leader-8877673959163467592.jsonl"),
            next: Next::Shrink,
        };
        let expected = "\
FAILED  partition-leader  seed 8877673959163467592

  storage-safety: a write with token 7 landed after storage had seen token 8

     12.980s  a        acquire          token 7
     13.100s  nemesis  isolate a for 1.05s
     13.944s  b        acquire          token 8
     13.951s  b        fence 8          ok
     14.150s  nemesis  heal isolate
   > 14.203s  a        write x=40 @7    ok        expected: refused, storage had seen 8

  belief-safety ok · election-barrier ok
  failover not claimed: no calm in it
  conduct unknown: no budget

  replay   deposed replay runs/partition-leader-8877673959163467592.jsonl
  look     deposed show   runs/partition-leader-8877673959163467592.jsonl
  shrink   deposed shrink runs/partition-leader-8877673959163467592.jsonl
";
        assert_eq!(failure.text(), expected);
    }

    #[test]
    fn a_defect_is_a_failure_without_a_check() {
        let verdicts = Verdicts(vec![(Check::BeliefSafety, Verdict::Valid)]);
        let defects = ["a task of a panicked: index out of bounds".to_owned()];
        let failure = Failure {
            title: "gc-pause  seed 4  flaw no-barrier",
            defects: &defects,
            verdicts: &verdicts,
            exhibits: exhibits(&verdicts),
            file: None,
            next: Next::Look,
        };
        let expected = "\
FAILED  gc-pause  seed 4  flaw no-barrier

  defect: a task of a panicked: index out of bounds

  belief-safety ok
";
        assert_eq!(failure.text(), expected);
    }

    #[test]
    fn at_most_a_handful_of_faults_and_only_on_those_involved() {
        let row = |index| Row {
            index,
            time: String::new(),
            process: "nemesis".into(),
            action: String::new(),
            outcome: String::new(),
        };
        let fault = |index, value| Fault {
            value,
            row: row(index),
            struck: None,
        };
        let of = |index| if index < 2 { "a" } else { "b" };
        let mut faults: VecDeque<Fault> = (0..8)
            .map(|index| fault(index, serde_json::json!({"node": of(index)})))
            .collect();
        faults.push_back(fault(8, serde_json::json!({"node": "c"})));
        let everywhere = serde_json::json!({"from": ["a", "b", "c"], "to": ["a"]});
        faults.push_back(fault(9, everywhere));
        let processes = ["b", "a", "storage"].map(Name::from);
        let shown = telling(faults, &processes);
        let shown: Vec<u64> = shown.iter().map(|row| row.index).collect();
        assert_eq!(
            shown,
            [5, 6, 7, 0, 1],
            "the deposed leader's, then the latest of its successor's"
        );
    }

    /// Whether a fault that strikes between the send of a's first write and its answer is
    /// told beside the evidence of a check, where these events show it.
    fn is_told(check: Check, events: [u64; 2], name: &str, value: Value) -> bool {
        let evidence = Evidence {
            sentence: String::new(),
            events: events.to_vec(),
            culprit: events[1],
            expected: String::new(),
            reckoning: Vec::new(),
        };
        let verdicts = Verdicts(vec![(check, Verdict::Violated(evidence))]);
        let mut exhibits = Exhibits::of(&verdicts);
        for event in story() {
            exhibits.see(&event);
            if event.index == 12 {
                let body = Body::Nemesis(name.into(), value.clone());
                let process = "nemesis".into();
                exhibits.see(&Event {
                    process,
                    body,
                    call: None,
                    ..event
                });
            }
        }
        let Exhibits {
            mut exhibits,
            frames,
            ..
        } = exhibits;
        let text = exhibits.remove(0).text(&frames);
        text.lines()
            .any(|line| line.contains(&format!("  {name} ")))
    }

    #[test]
    fn of_single_frames_those_of_the_calls_in_evidence_are_told() {
        let frame =
            |from: &str, to: &str, kind: &str| json!({"from": from, "to": to, "kind": kind});
        let (first, second) = ([2, 13], [6, 15]);
        let told = |events, name, value| is_told(Check::StorageSafety, events, name, value);
        for name in ["delayed", "lost", "duplicated"] {
            assert!(told(first, name, frame("a", "storage", "write")));
            assert!(told(first, name, frame("storage", "a", "write-reply")));
            // Another call's, or none's that is known.
            assert!(!told(second, name, frame("a", "storage", "write")));
            assert!(!told(first, name, frame("b", "storage", "write")));
            assert!(!told(first, name, frame("a", "store", "acquire")));
        }
        let rule = json!({"from": ["a"], "to": ["storage"], "kind": "write", "count": 1, "by": 5});
        assert!(!told(first, "delay", rule));
    }

    #[test]
    fn faults_of_links_are_told_where_they_keep_a_client_from_something() {
        let cut = || json!({"nodes": ["a", "store"], "for": 5});
        for (check, told) in [
            (Check::StorageSafety, true),
            (Check::ElectionBarrier, true),
            (Check::TokenMonotonicity, false),
            (Check::Conduct, false),
        ] {
            assert_eq!(is_told(check, [2, 13], "partition", cut()), told, "{check}");
            let pause = json!({"node": "a", "for": 5});
            assert!(is_told(check, [2, 13], "pause", pause), "{check}");
        }
    }

    #[test]
    fn evidence_that_names_its_faults_has_no_other_beside_it() {
        let pause = || json!({"node": "a", "for": 5});
        assert!(is_told(Check::ZombieWrite, [2, 13], "pause", pause()));
        assert!(!is_told(Check::BeliefSafety, [2, 13], "pause", pause()));
    }

    #[test]
    fn an_end_goes_with_a_beginning_that_has_no_room() {
        let row = |index: u64, action: &str| Fault {
            value: json!({"node": "a"}),
            row: Row {
                index,
                time: String::new(),
                process: "nemesis".into(),
                action: action.to_owned(),
                outcome: String::new(),
            },
            struck: None,
        };
        let told = |between: u64| {
            let mut faults = VecDeque::from([row(0, "suspend a for 1s")]);
            faults.extend((1..=between).map(|index| row(index, "rate a at 1 ppb")));
            faults.push_back(row(9, "resume a"));
            let processes = ["a", "storage"].map(Name::from);
            telling(faults, &processes).last().map(|row| row.index)
        };
        assert_eq!(told(3), Some(9));
        assert_eq!(told(5), Some(5));
    }
}

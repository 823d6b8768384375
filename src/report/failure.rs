//! A failure as a person wants it: one sentence, the shortest evidence, the next
//! commands.

mod faults;

use deposed_checkers::{
    history::{Body, Event, Name, Observation},
    verdict::{Check, Evidence, Verdict, Verdicts},
};
use faults::{About, Faults, Term};

use super::{
    text::{Calls, argument, printable},
    words,
};

/// One row of evidence.
struct Row {
    index: u64,
    time: String,
    process: Name,
    action: String,
    outcome: String,
    /// The term that it is of.
    term: Option<Term>,
    /// A server came back, with what its disk held.
    came_back: bool,
}

/// The evidence of one violated check, gathered while the history passes by.
struct Exhibit {
    check: Check,
    evidence: Evidence,
    rows: Vec<Row>,
    /// Faults since the first row, until the culprit.
    faults: Faults,
}

/// The evidence of all violated checks. Show it every event, in order.
pub struct Exhibits {
    calls: Calls,
    asked: faults::Calls,
    exhibits: Vec<Exhibit>,
}

impl Exhibits {
    /// Of the violated checks among these.
    pub fn of(verdicts: &Verdicts) -> Self {
        let exhibit = |(check, evidence): (Check, &Evidence)| Exhibit {
            check,
            evidence: evidence.clone(),
            rows: Vec::new(),
            faults: Faults::default(),
        };
        Self {
            calls: Calls::default(),
            asked: faults::Calls::default(),
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
        self.asked.see(event);
        for exhibit in &mut self.exhibits {
            let row = || Row {
                index: event.index,
                time: words::time(event.time),
                process: event.process.clone(),
                action: action.clone(),
                outcome: outcome.clone(),
                term: self.asked.term.clone(),
                came_back: came_back(event),
            };
            if exhibit.evidence.events.contains(&event.index) {
                exhibit.rows.push(row());
            } else if !exhibit.rows.is_empty() && event.index < exhibit.evidence.culprit {
                exhibit.faults.see(exhibit.check, event, &self.asked, row);
            }
        }
    }
}

fn came_back(event: &Event) -> bool {
    matches!(
        event.body,
        Body::Observed(
            Observation::StoreRecovered(_)
                | Observation::StorageRecovered(_)
                | Observation::Restored(_)
        )
    )
}

impl Exhibit {
    fn text(self, calls: &faults::Calls) -> String {
        let Evidence {
            sentence,
            culprit,
            expected,
            events,
            reckoning,
        } = self.evidence;
        let mut rows = self.rows;
        let about = About {
            check: self.check,
            rows: &rows,
            culprit,
            events: &events,
        };
        let faults = self.faults.told(&about, calls);
        rows.extend(faults);
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
            let expected = match expected.is_empty() {
                true => String::new(),
                false => format!("   expected: {}", printable(&expected)),
            };
            lines.push(format!("     events {}{expected}", indices.join(", ")));
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
            exhibits, asked, ..
        } = self.exhibits;
        parts.extend(exhibits.into_iter().map(|exhibit| exhibit.text(&asked)));
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
    use serde_json::{Value, json};

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
            asked,
            ..
        } = exhibits;
        let text = exhibits.remove(0).text(&asked);
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
            let crash = json!({"node": "a", "for": 5});
            assert!(is_told(check, [2, 13], "crash", crash), "{check}");
        }
    }

    #[test]
    fn evidence_that_names_its_faults_has_no_other_beside_it() {
        let pause = || json!({"node": "a", "for": 5});
        assert!(is_told(Check::ZombieWrite, [2, 13], "pause", pause()));
        assert!(!is_told(Check::BeliefSafety, [2, 13], "pause", pause()));
    }
}

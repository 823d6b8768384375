//! What a history says of its leaders over time: when one served, when there was none,
//! and what had ended the term before.
//!
//! A client *leads* while `is_leader()` is true: from its `lead` to the end of that belief.
//! It *serves* once it has taken over (a new leader loads its state, and its callers have
//! to find it), and while its process runs: a leader that is paused leads, and serves
//! nobody. A term that ended while its leader's process was up, however still it stood, is
//! a *false failover*; one that ended with a crash is a true one.

use std::collections::BTreeMap;

use deposed_checkers::history::{Body, Event, Name, Nanos, Observation, Op, Token};
use serde_json::Value;

/// What one history shows, or several added up. Durations are ns of true time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// How long the runs were.
    pub simulated: Nanos,
    /// How long somebody led.
    pub led: Nanos,
    /// How long somebody served.
    pub serving: Nanos,
    /// Pauses that struck a leader.
    pub pauses: u64,
    /// Crashes that struck a leader.
    pub crashes: u64,
    /// False failovers in a window in which the leader was paused.
    pub false_by_pause: u64,
    /// False failovers of leaders that had not been paused: a slow network, a bad clock.
    pub false_unprovoked: u64,
    /// Renewals sent, retries included.
    pub renewals: u64,
    /// Each spell in which nobody served.
    pub down: Spells,
    /// Each spell in which nobody led.
    pub leaderless: Spells,
}

/// Spells without something, by what began them. One that the run's end cut short counts
/// for as long as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spells {
    /// The first election of a run, added up: nothing had gone wrong.
    pub at_start: Nanos,
    /// Begun by a crash.
    pub by_crash: Vec<Nanos>,
    /// Begun by a pause.
    pub by_pause: Vec<Nanos>,
    /// Begun by neither.
    pub unprovoked: Vec<Nanos>,
}

impl Measures {
    /// Measures a history of so long a run; a new leader serves `takeover` after its
    /// election.
    pub fn of(history: &[Event], length: Nanos, takeover: Nanos) -> Self {
        let mut record = Record::default();
        history.iter().for_each(|event| record.see(event));
        record.end(length);
        let led = record.terms.iter().map(|term| (term.from, term.to));
        let led = union(led.collect());
        let served = union(record.served(takeover));
        let ended = record.terms.iter().filter(|term| term.to < length);
        let falsely: Vec<Cause> = ended
            .map(|term| record.cause_of_end(term))
            .filter(|cause| *cause != Cause::Crash)
            .collect();
        let count = |cause| falsely.iter().filter(|other| **other == cause).count() as u64;
        Self {
            simulated: length,
            led: covered(&led),
            serving: covered(&served),
            pauses: record.pauses,
            crashes: record.crashes,
            false_by_pause: count(Cause::Pause),
            false_unprovoked: count(Cause::Nothing),
            renewals: record.renewals,
            down: spells(&served, length, |at| record.cause_of_stop(at)),
            leaderless: spells(&led, length, |at| record.cause_of_loss(at)),
        }
    }

    /// Adds those of another history.
    pub fn add(&mut self, other: &Measures) {
        self.simulated += other.simulated;
        self.led += other.led;
        self.serving += other.serving;
        self.pauses += other.pauses;
        self.crashes += other.crashes;
        self.false_by_pause += other.false_by_pause;
        self.false_unprovoked += other.false_unprovoked;
        self.renewals += other.renewals;
        self.down.add(&other.down);
        self.leaderless.add(&other.leaderless);
    }
}

impl Spells {
    fn add(&mut self, other: &Spells) {
        self.at_start += other.at_start;
        self.by_crash.extend(&other.by_crash);
        self.by_pause.extend(&other.by_pause);
        self.unprovoked.extend(&other.unprovoked);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Crash,
    Pause,
    Nothing,
}

/// A client's belief, from its beginning to its end.
struct Term {
    client: Name,
    token: Option<Token>,
    from: Nanos,
    /// The send that the belief counts from.
    sent: Nanos,
    to: Nanos,
    /// It ended with its process.
    crashed: bool,
}

/// A process stood still.
struct Still {
    client: Name,
    from: Nanos,
    to: Nanos,
}

#[derive(Default)]
struct Record {
    terms: Vec<Term>,
    /// By client: the place of the term that it is in.
    open: BTreeMap<Name, usize>,
    stills: Vec<Still>,
    /// By client: since when it stands still.
    still: BTreeMap<Name, Nanos>,
    /// By client: its last crash.
    crashed: BTreeMap<Name, Nanos>,
    pauses: u64,
    crashes: u64,
    renewals: u64,
}

impl Record {
    fn see(&mut self, event: &Event) {
        let (now, process) = (event.time, &event.process);
        match &event.body {
            Body::Invoke(Op::Renew(_)) => self.renewals += 1,
            Body::Observed(Observation::Lead(lead)) => {
                let sent = lead.sent.unwrap_or(now);
                let until = lead.until.unwrap_or(Nanos::MAX);
                match self.open.get(process).map(|&at| &mut self.terms[at]) {
                    Some(term) if term.token == lead.token => (term.sent, term.to) = (sent, until),
                    _ => {
                        self.close(process, now);
                        self.open.insert(process.clone(), self.terms.len());
                        self.terms.push(Term {
                            client: process.clone(),
                            token: lead.token,
                            from: now,
                            sent,
                            to: until,
                            crashed: false,
                        });
                    }
                }
            }
            Body::Observed(Observation::Follow(_)) => self.close(process, now),
            Body::Nemesis(fault, value) => self.fault(fault, value, now),
            _ => {}
        }
    }

    fn fault(&mut self, fault: &str, value: &Value, now: Nanos) {
        let Some(node) = value.get("node").and_then(Value::as_str) else {
            return;
        };
        let node = Name::from(node);
        let leads = self
            .open
            .get(&node)
            .is_some_and(|&at| now < self.terms[at].to);
        match fault {
            "pause" | "paused" | "suspend" => {
                self.pauses += u64::from(leads);
                self.still.entry(node).or_insert(now);
            }
            "resume" => self.awake(&node, now),
            "crash" | "power-loss" => {
                self.crashes += u64::from(leads);
                self.awake(&node, now);
                self.crashed.insert(node, now);
            }
            _ => {}
        }
    }

    fn awake(&mut self, client: &Name, now: Nanos) {
        if let Some(from) = self.still.remove(client) {
            self.stills.push(Still {
                client: client.clone(),
                from,
                to: now,
            });
        }
    }

    /// Ends the term that a client is in, if it has not run out before.
    fn close(&mut self, client: &Name, now: Nanos) {
        if let Some(at) = self.open.remove(client)
            && now < self.terms[at].to
        {
            self.terms[at].to = now;
            self.terms[at].crashed = self.crashed.get(client) == Some(&now);
        }
    }

    fn end(&mut self, length: Nanos) {
        for client in self.still.keys().cloned().collect::<Vec<_>>() {
            self.awake(&client, length);
        }
        for term in &mut self.terms {
            term.to = term.to.min(length);
        }
    }

    fn stills_of(&self, client: &Name) -> impl Iterator<Item = &Still> {
        self.stills
            .iter()
            .filter(move |still| still.client == *client)
    }

    /// When somebody served: each term from the end of its takeover, less its pauses.
    fn served(&self, takeover: Nanos) -> Vec<(Nanos, Nanos)> {
        let mut served = Vec::new();
        for term in &self.terms {
            let mut from = term.from.saturating_add(takeover);
            for still in self.stills_of(&term.client) {
                if still.to <= from || still.from >= term.to {
                    continue;
                }
                served.push((from, still.from));
                from = still.to;
            }
            served.push((from, term.to));
        }
        served
    }

    /// What ended a term: its process crashed, or was paused at some time in the window
    /// that ran out.
    fn cause_of_end(&self, term: &Term) -> Cause {
        let mut stills = self.stills_of(&term.client);
        match () {
            () if term.crashed => Cause::Crash,
            () if stills.any(|still| still.from < term.to && term.sent < still.to) => Cause::Pause,
            () => Cause::Nothing,
        }
    }

    fn cause_of_loss(&self, at: Nanos) -> Cause {
        let ended = self.terms.iter().find(|term| term.to == at);
        ended.map_or(Cause::Nothing, |term| self.cause_of_end(term))
    }

    fn cause_of_stop(&self, at: Nanos) -> Cause {
        match self.cause_of_loss(at) {
            Cause::Nothing if self.stills.iter().any(|still| still.from == at) => Cause::Pause,
            cause => cause,
        }
    }
}

fn covered(intervals: &[(Nanos, Nanos)]) -> Nanos {
    intervals.iter().map(|(from, to)| to - from).sum()
}

/// Intervals in order, merged where they meet.
fn union(mut intervals: Vec<(Nanos, Nanos)>) -> Vec<(Nanos, Nanos)> {
    intervals.retain(|(from, to)| from < to);
    intervals.sort_unstable();
    let mut merged: Vec<(Nanos, Nanos)> = Vec::new();
    for (from, to) in intervals {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// What lies between intervals in order, and before and after them.
fn spells(intervals: &[(Nanos, Nanos)], length: Nanos, cause: impl Fn(Nanos) -> Cause) -> Spells {
    let mut spells = Spells::default();
    let mut free = 0;
    for &(from, to) in intervals.iter().chain([&(length, length)]) {
        let spell = from.saturating_sub(free);
        match (spell, free) {
            (0, _) => {}
            (_, 0) => spells.at_start = spell,
            _ => match cause(free) {
                Cause::Crash => spells.by_crash.push(spell),
                Cause::Pause => spells.by_pause.push(spell),
                Cause::Nothing => spells.unprovoked.push(spell),
            },
        }
        free = to;
    }
    spells
}

#[cfg(test)]
mod tests {
    use deposed_checkers::reader::Reader;

    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    /// A history in seconds.
    #[derive(Default)]
    struct Tale(Vec<String>);

    impl Tale {
        fn line(mut self, at: u64, who: &str, kind: &str, f: &str, value: &str) -> Self {
            let (index, time) = (self.0.len(), at * SECOND);
            self.0.push(format!(
                r#"{{"index":{index},"time":{time},"process":"{who}","type":"{kind}","f":"{f}","value":{value}}}"#
            ));
            self
        }

        /// Believes from here, by what was sent here, until then.
        fn leads(self, at: u64, who: &str, token: u64, until: u64) -> Self {
            let (sent, until) = (at * SECOND, until * SECOND);
            let lead = format!(
                r#"{{"lease":"leader","holder":"{who}#1","token":{token},"until":{until},"sent":{sent}}}"#
            );
            self.line(at, who, "info", "lead", &lead)
        }

        fn follows(self, at: u64, who: &str, token: u64) -> Self {
            let follow = format!(r#"{{"lease":"leader","holder":"{who}#1","token":{token}}}"#);
            self.line(at, who, "info", "follow", &follow)
        }

        fn renews(self, at: u64, who: &str) -> Self {
            let renew = format!(r#"{{"lease":"leader","holder":"{who}#1","token":1,"try":1}}"#);
            self.line(at, who, "invoke", "renew", &renew)
        }

        fn strikes(self, at: u64, fault: &str, who: &str) -> Self {
            let value = format!(r#"{{"node":"{who}"}}"#);
            self.line(at, "nemesis", "info", fault, &value)
        }

        fn measured(&self, length: u64, takeover: u64) -> Measures {
            let lines = self.0.iter().map(|line| line.clone() + "\n");
            let text = "{\"deposed\":1}\n".to_owned() + &lines.collect::<String>();
            let (_, events) = Reader::new(text.as_bytes(), "tale").expect("a header");
            let history: Vec<Event> = events.map(|event| event.expect("an event")).collect();
            Measures::of(&history, length * SECOND, takeover * SECOND)
        }
    }

    fn seconds(spells: &[Nanos]) -> Vec<u64> {
        spells.iter().map(|spell| spell / SECOND).collect()
    }

    /// a is paused at 5 with a belief until 10, and b leads from 12.
    fn deposed_by_a_pause() -> Tale {
        Tale::default()
            .leads(2, "a", 1, 10)
            .strikes(5, "pause", "a")
            .leads(12, "b", 2, 40)
            .strikes(15, "resume", "a")
            .follows(15, "a", 1)
    }

    #[test]
    fn a_term_that_runs_out_on_a_paused_leader_is_a_false_failover() {
        let measures = deposed_by_a_pause().measured(30, 0);
        assert_eq!((measures.pauses, measures.crashes), (1, 0));
        assert_eq!((measures.false_by_pause, measures.false_unprovoked), (1, 0));
        assert_eq!(seconds(&measures.leaderless.by_pause), [2], "10 to 12");
        assert_eq!(seconds(&measures.down.by_pause), [7], "5 to 12");
        assert!(measures.down.by_crash.is_empty() && measures.down.unprovoked.is_empty());
    }

    #[test]
    fn a_crash_is_a_true_failover() {
        let measures = Tale::default()
            .leads(2, "a", 1, 10)
            .strikes(5, "crash", "a")
            .follows(5, "a", 1)
            .leads(12, "b", 2, 40)
            .measured(30, 2);
        assert_eq!((measures.pauses, measures.crashes), (0, 1));
        assert_eq!((measures.false_by_pause, measures.false_unprovoked), (0, 0));
        assert_eq!(seconds(&measures.leaderless.by_crash), [7]);
        assert_eq!(seconds(&measures.down.by_crash), [9], "b takes over for 2");
    }

    #[test]
    fn a_term_that_ends_on_a_leader_that_never_stood_still_was_provoked_by_nothing() {
        let slow = Tale::default().leads(2, "a", 1, 10).leads(12, "b", 2, 40);
        let measures = slow.measured(30, 0);
        assert_eq!((measures.false_by_pause, measures.false_unprovoked), (0, 1));
        assert_eq!(seconds(&measures.leaderless.unprovoked), [2]);
        // A pause that was over before the last renewal has nothing to do with it.
        let long_ago = Tale::default()
            .leads(2, "a", 1, 10)
            .strikes(3, "pause", "a")
            .strikes(4, "resume", "a")
            .leads(5, "a", 1, 13)
            .leads(15, "b", 2, 40)
            .measured(30, 0);
        assert_eq!((long_ago.false_by_pause, long_ago.false_unprovoked), (0, 1));
    }

    #[test]
    fn a_pause_that_the_lease_outlives_is_downtime_and_no_failover() {
        let measures = Tale::default()
            .leads(2, "a", 1, 10)
            .strikes(5, "pause", "a")
            .strikes(8, "resume", "a")
            .leads(8, "a", 1, 40)
            .measured(30, 0);
        assert_eq!((measures.pauses, measures.false_by_pause), (1, 0));
        assert_eq!(seconds(&measures.down.by_pause), [3]);
        assert!(measures.leaderless.by_pause.is_empty());
        assert_eq!((measures.led, measures.serving), (28 * SECOND, 25 * SECOND));
    }

    #[test]
    fn a_pause_of_somebody_else_is_not_the_leaders() {
        let measures = Tale::default()
            .leads(2, "a", 1, 40)
            .strikes(5, "pause", "b")
            .strikes(8, "crash", "c")
            .measured(30, 0);
        assert_eq!((measures.pauses, measures.crashes), (0, 0));
        assert_eq!(measures.serving, 28 * SECOND);
    }

    #[test]
    fn the_first_election_is_told_apart_and_the_last_spell_is_cut_by_the_end() {
        let measures = Tale::default()
            .leads(2, "a", 1, 10)
            .strikes(5, "crash", "a")
            .follows(5, "a", 1)
            .measured(30, 1);
        assert_eq!(measures.leaderless.at_start, 2 * SECOND);
        assert_eq!(measures.down.at_start, 3 * SECOND, "and its takeover");
        assert_eq!(seconds(&measures.leaderless.by_crash), [25]);
        let never = Tale::default().measured(30, 1);
        assert_eq!(never.leaderless.at_start, 30 * SECOND);
        let to_the_end = Tale::default().leads(2, "a", 1, 40).measured(30, 0);
        assert_eq!(
            to_the_end.false_unprovoked, 0,
            "the run ended, not the term"
        );
    }

    #[test]
    fn every_renewal_that_was_sent_counts() {
        let tale = Tale::default().leads(2, "a", 1, 40).renews(5, "a");
        assert_eq!(tale.renews(6, "a").measured(30, 0).renewals, 2);
    }

    #[test]
    fn what_two_runs_show_is_added() {
        let tale = deposed_by_a_pause().renews(20, "b").renews(21, "b");
        let one = tale.measured(30, 0);
        let mut sum = one.clone();
        sum.add(&one);
        assert_eq!((sum.simulated, sum.led), (60 * SECOND, 52 * SECOND));
        assert_eq!(sum.serving, 42 * SECOND);
        assert_eq!((sum.pauses, sum.false_by_pause, sum.renewals), (2, 2, 4));
        assert_eq!(seconds(&sum.down.by_pause), [7, 7]);
        assert_eq!(sum.down.at_start, 4 * SECOND);
    }
}

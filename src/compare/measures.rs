//! What a history says of its deposed leaders, in numbers.
//!
//! A write belongs to the grant of its token, or, where it carries none, to its process's
//! latest grant before it was sent. It is a deposed leader's if the store had recorded a
//! later grant of the lease when it reached storage. There it was refused (or dropped by
//! its idempotency key); or it landed before any successor had completed an operation,
//! which harms nobody, as the successor reads after it; or it landed after one, which is
//! what `zombie-write` convicts.

use std::collections::{BTreeMap, BTreeSet};

use deposed_checkers::history::{
    Acquire, Applied, Body, Event, F, Kind, Name, Nanos, Observation, Op, Token,
};

/// What one history shows, or several added up. Durations are ns of true time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Writes and deletes of a deposed leader that reached storage after its successor
    /// was granted the lease: the sum of the next three.
    pub tried: u64,
    /// Of these, those that storage refused or dropped.
    pub refused: u64,
    /// Of these, those that landed before any successor had completed an operation.
    pub early: u64,
    /// Of these, those that landed after one had.
    pub landed: u64,
    /// Effects of a job that had been done before. Only where writes carry no token.
    pub doubled: u64,
    /// How often a lease went to another holder.
    pub leader_changes: u64,
    /// From a successor's grant to the first moment from which storage could refuse its
    /// predecessors: its first fence or write there. One a leader change that came so far;
    /// none where storage cannot refuse, and none where it grants the lease itself: it
    /// refuses from the grant on, and there is nothing to measure.
    pub windows: Vec<Nanos>,
    /// From a leader's last acknowledged write or delete to the first of the next, who is
    /// another holder.
    pub failovers: Vec<Nanos>,
}

impl Measures {
    /// Measures a history.
    pub fn of(history: &[Event]) -> Self {
        let mut ledger = Ledger::default();
        history.iter().for_each(|event| ledger.see(event));
        ledger.measures
    }

    /// Adds those of another history.
    pub fn add(&mut self, other: Measures) {
        self.tried += other.tried;
        self.refused += other.refused;
        self.early += other.early;
        self.landed += other.landed;
        self.doubled += other.doubled;
        self.leader_changes += other.leader_changes;
        self.windows.extend(other.windows);
        self.failovers.extend(other.failovers);
    }
}

/// The middle of some durations (the upper of two middles) and the longest.
pub fn middle_and_longest(durations: &[Nanos]) -> Option<(Nanos, Nanos)> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    Some((*sorted.get(sorted.len() / 2)?, *sorted.last()?))
}

struct Grant {
    holder: Name,
    request: u64,
    token: Option<Token>,
    time: Nanos,
    /// The node that granted it.
    by: Name,
    /// It took the lease over from another holder.
    takes_over: bool,
    /// An operation under it has completed.
    worked: bool,
    /// Storage has taken a fence or a write under it.
    seen_by_storage: bool,
}

/// A call that is open.
enum Open {
    Acquire {
        holder: Name,
        request: u64,
    },
    /// Under which grant, by its place; none that the store recorded.
    Work(Option<usize>),
}

/// One lease's grants, and what belongs to them. Grants go by their place.
#[derive(Default)]
struct Lease {
    grants: Vec<Grant>,
    /// The grant that each process last learnt of.
    latest: BTreeMap<Name, usize>,
    /// Whose the writes without a token are, by key and value.
    unmarked: BTreeMap<(Name, String), usize>,
    /// The last acknowledged write: its grant and its time.
    written: Option<(usize, Nanos)>,
    /// Jobs done, by key and number.
    jobs: BTreeSet<(Name, String)>,
}

#[derive(Default)]
struct Ledger {
    leases: BTreeMap<Name, Lease>,
    open: BTreeMap<u64, (Name, Open)>,
    measures: Measures,
}

impl Lease {
    fn of_token(&self, token: Token) -> Option<usize> {
        self.grants
            .iter()
            .rposition(|grant| grant.token == Some(token))
    }

    fn deposed(&self, grant: usize) -> bool {
        grant + 1 < self.grants.len()
    }

    /// Whether somebody granted the lease later has completed an operation.
    fn succeeded(&self, grant: usize) -> bool {
        self.grants[grant + 1..].iter().any(|later| later.worked)
    }
}

impl Ledger {
    fn see(&mut self, event: &Event) {
        match (&event.body, event.call) {
            (Body::Invoke(op), Some(call)) => self.invoked(event, call, op),
            (Body::Complete(f, _), Some(call)) => self.completed(event, call, *f),
            (Body::Observed(observation), _) => self.observed(event, observation),
            _ => {}
        }
    }

    fn invoked(&mut self, event: &Event, call: u64, op: &Op) {
        let lease = self.leases.entry(op.lease().clone()).or_default();
        let open = match op {
            Op::Acquire(Acquire {
                holder, request, ..
            }) => Open::Acquire {
                holder: holder.clone(),
                request: *request,
            },
            Op::Renew(_) | Op::Release(_) => return,
            Op::Fence(_) | Op::Write(_) | Op::Delete(_) | Op::Read(_) => {
                let grant = match op.token() {
                    Some(token) => lease.of_token(token),
                    None => lease.latest.get(&event.process).copied(),
                };
                if let (Op::Write(write), None, Some(grant)) = (op, op.token(), grant) {
                    let what = (write.key.clone(), write.value.to_string());
                    lease.unmarked.insert(what, grant);
                }
                Open::Work(grant)
            }
        };
        self.open.insert(call, (op.lease().clone(), open));
    }

    fn completed(&mut self, event: &Event, call: u64, f: F) {
        let Some((lease, open)) = self.open.remove(&call) else {
            return;
        };
        let lease = self.leases.entry(lease).or_default();
        if event.kind != Kind::Ok {
            return;
        }
        match open {
            Open::Acquire { holder, request } => {
                let granted = lease
                    .grants
                    .iter()
                    .rposition(|grant| grant.holder == holder && grant.request == request);
                if let Some(granted) = granted {
                    lease.latest.insert(event.process.clone(), granted);
                }
            }
            Open::Work(Some(grant)) => {
                lease.grants[grant].worked = true;
                if let F::Write | F::Delete = f {
                    match lease.written {
                        // It was answered late: others have written since.
                        Some((before, _)) if before > grant => return,
                        Some((before, time))
                            if lease.grants[before].holder != lease.grants[grant].holder =>
                        {
                            self.measures.failovers.push(event.time - time);
                        }
                        _ => {}
                    }
                    lease.written = Some((grant, event.time));
                }
            }
            Open::Work(None) => {}
        }
    }

    fn observed(&mut self, event: &Event, observation: &Observation) {
        match observation {
            Observation::Granted(granted) => {
                let lease = self.leases.entry(granted.lease.clone()).or_default();
                let before = lease.grants.last();
                let takes_over = before.is_some_and(|before| before.holder != granted.holder);
                self.measures.leader_changes += u64::from(takes_over);
                lease.grants.push(Grant {
                    holder: granted.holder.clone(),
                    request: granted.request,
                    token: granted.token,
                    time: event.time,
                    by: event.process.clone(),
                    takes_over,
                    worked: false,
                    seen_by_storage: false,
                });
            }
            Observation::Fenced(fenced) => {
                let lease = self.leases.entry(fenced.lease.clone()).or_default();
                if let Some(grant) = lease.of_token(fenced.token) {
                    self.storage_has_seen(event, &fenced.lease, grant);
                }
            }
            Observation::Applied(applied) => self.applied(event, applied),
            Observation::Refused(refused) if refused.f != F::Fence => {
                let lease = self.leases.entry(refused.lease.clone()).or_default();
                let grant = lease.of_token(refused.token);
                if grant.is_some_and(|grant| lease.deposed(grant)) {
                    self.measures.tried += 1;
                    self.measures.refused += 1;
                }
            }
            Observation::Dropped(dropped) => {
                let lease = self.leases.entry(dropped.lease.clone()).or_default();
                let what = (dropped.key.clone(), dropped.value.to_string());
                let grant = lease.unmarked.get(&what).copied();
                if grant.is_some_and(|grant| lease.deposed(grant)) {
                    self.measures.tried += 1;
                    self.measures.refused += 1;
                }
            }
            _ => {}
        }
    }

    fn applied(&mut self, event: &Event, applied: &Applied) {
        let lease = self.leases.entry(applied.lease.clone()).or_default();
        let value = applied.value.as_ref();
        let grant = match applied.token {
            Some(token) => lease.of_token(token),
            None => {
                let value = value.map_or(String::new(), ToString::to_string);
                lease.unmarked.get(&(applied.key.clone(), value)).copied()
            }
        };
        if applied.token.is_none()
            && let Some(job) = value.and_then(|value| value.as_str()?.split('/').next())
            && !lease.jobs.insert((applied.key.clone(), job.to_owned()))
        {
            self.measures.doubled += 1;
        }
        let Some(grant) = grant else { return };
        if lease.deposed(grant) {
            self.measures.tried += 1;
            match lease.succeeded(grant) {
                true => self.measures.landed += 1,
                false => self.measures.early += 1,
            }
        }
        match applied.token {
            Some(_) => self.storage_has_seen(event, &applied.lease, grant),
            None => lease.grants[grant].worked = true,
        }
    }

    /// Storage has taken a fence or a write with the grant's token.
    fn storage_has_seen(&mut self, event: &Event, lease: &Name, grant: usize) {
        let lease = self.leases.entry(lease.clone()).or_default();
        let grant = &mut lease.grants[grant];
        grant.worked = true;
        let elsewhere = grant.by != event.process;
        if grant.takes_over && !grant.seen_by_storage && elsewhere {
            self.measures.windows.push(event.time - grant.time);
        }
        grant.seen_by_storage = true;
    }
}

#[cfg(test)]
mod tests {
    use deposed_checkers::reader::Reader;

    use super::*;

    /// Builds a history of one lease, an event every ten milliseconds.
    #[derive(Default)]
    struct Tale(Vec<String>);

    impl Tale {
        fn line(mut self, process: &str, kind: &str, call: u64, f: &str, value: &str) -> Self {
            let index = self.0.len() as u64;
            let call = match call {
                0 => String::new(),
                call => format!(r#""call":{call},"#),
            };
            let time = index * 10_000_000;
            self.0.push(format!(
                r#"{{"index":{index},"time":{time},"process":"{process}","type":"{kind}",{call}"f":"{f}","value":{value}}}"#
            ));
            self
        }

        /// Three events.
        fn acquires(self, who: &str, call: u64, token: u64) -> Self {
            let lease = format!(r#""lease":"leader","holder":"{who}#1","request":{token},"ttl":9"#);
            self.line(who, "invoke", call, "acquire", &format!("{{{lease}}}"))
                .line(
                    "store",
                    "info",
                    0,
                    "granted",
                    &format!(r#"{{{lease},"token":{token},"clock":1}}"#),
                )
                .line(
                    who,
                    "ok",
                    call,
                    "acquire",
                    &format!(r#"{{"token":{token}}}"#),
                )
        }

        fn writes(self, who: &str, call: u64, token: Option<u64>, value: &str) -> Self {
            let write = write(token, value);
            self.line(who, "invoke", call, "write", &write)
        }

        fn lands(self, node: &str, token: Option<u64>, value: &str) -> Self {
            let f = r#"{"f":"write","#;
            let applied = f.to_owned() + &write(token, value)[1..];
            self.line(node, "info", 0, "applied", &applied)
        }

        fn fenced(self, token: u64) -> Self {
            let fenced = format!(r#"{{"lease":"leader","token":{token}}}"#);
            self.line("storage", "info", 0, "fenced", &fenced)
        }

        fn answered(self, who: &str, call: u64) -> Self {
            self.line(who, "ok", call, "write", "null")
        }

        fn measured(self) -> Measures {
            let text = format!("{{\"deposed\":1}}\n{}\n", self.0.join("\n"));
            let (_, events) = Reader::new(text.as_bytes(), "tale").expect("a header");
            let history: Vec<Event> = events.map(|event| event.expect("an event")).collect();
            Measures::of(&history)
        }
    }

    fn write(token: Option<u64>, value: &str) -> String {
        let token = token.map_or(String::new(), |token| {
            format!(r#""token":{token},"seq":1,"#)
        });
        format!(r#"{{"lease":"leader",{token}"key":"k0","value":"{value}"}}"#)
    }

    /// a leads and has sent a write, b leads: seven events.
    fn two_terms(token: Option<u64>) -> Tale {
        Tale::default()
            .acquires("a", 1, 1)
            .writes("a", 2, token, "1/1.1")
            .acquires("b", 3, 2)
    }

    fn verdict(measures: &Measures) -> [u64; 4] {
        let Measures {
            tried,
            refused,
            early,
            landed,
            ..
        } = *measures;
        [tried, refused, early, landed]
    }

    #[test]
    fn a_write_is_a_deposed_leaders_once_another_was_granted_the_lease() {
        let own = Tale::default()
            .acquires("a", 1, 1)
            .writes("a", 2, Some(1), "1/1.1")
            .lands("storage", Some(1), "1/1.1");
        assert_eq!(verdict(&own.measured()), [0, 0, 0, 0]);
        // Before its successor did anything, and after its fence.
        let early = two_terms(Some(1)).lands("storage", Some(1), "1/1.1");
        assert_eq!(verdict(&early.measured()), [1, 0, 1, 0]);
        let late = two_terms(Some(1))
            .fenced(2)
            .lands("storage", Some(1), "1/1.1");
        assert_eq!(verdict(&late.measured()), [1, 0, 0, 1]);
        let refused = r#"{"f":"write","lease":"leader","token":1,"seq":1,"seen":2}"#;
        let refused = two_terms(Some(1))
            .fenced(2)
            .line("storage", "info", 0, "refused", refused);
        assert_eq!(verdict(&refused.measured()), [1, 1, 0, 0]);
    }

    #[test]
    fn what_the_deposed_leader_did_before_is_no_work_of_its_successor() {
        let early = Tale::default()
            .acquires("a", 1, 1)
            .writes("a", 2, Some(1), "1/1.1")
            .answered("a", 2)
            .acquires("b", 3, 2)
            .lands("storage", Some(1), "1/1.1");
        assert_eq!(verdict(&early.measured()), [1, 0, 1, 0]);
    }

    #[test]
    fn a_refused_fence_is_no_write_that_was_tried() {
        let refused = r#"{"f":"fence","lease":"leader","token":1,"seen":2}"#;
        let fence = two_terms(Some(1))
            .fenced(2)
            .line("storage", "info", 0, "refused", refused);
        assert_eq!(verdict(&fence.measured()), [0, 0, 0, 0]);
    }

    #[test]
    fn a_successors_read_is_its_first_operation() {
        let read = r#"{"lease":"leader","token":2,"key":"k0"}"#;
        let late = two_terms(Some(1))
            .line("b", "invoke", 4, "read", read)
            .line("b", "ok", 4, "read", r#"{"value":null}"#)
            .lands("storage", Some(1), "1/1.1");
        assert_eq!(verdict(&late.measured()), [1, 0, 0, 1]);
    }

    #[test]
    fn a_write_without_a_token_is_its_senders() {
        let late = two_terms(None)
            .writes("b", 4, None, "2/2.1")
            .lands("storage", None, "2/2.1")
            .lands("storage", None, "1/1.1")
            .measured();
        assert_eq!((verdict(&late), late.doubled), ([1, 0, 0, 1], 0));
        assert!(late.windows.is_empty(), "such a resource never refuses");
        let dropped = r#"{"lease":"leader","key":"k0","value":"1/1.1"}"#;
        let dropped = two_terms(None).line("storage", "info", 0, "dropped", dropped);
        assert_eq!(verdict(&dropped.measured()), [1, 1, 0, 0]);
    }

    #[test]
    fn a_job_done_again_is_doubled_whoever_does_it() {
        let tale = two_terms(None)
            .writes("b", 4, None, "1/2.1")
            .lands("storage", None, "1/2.1");
        assert_eq!(tale.measured().doubled, 0);
        let tale = two_terms(None)
            .writes("b", 4, None, "1/2.1")
            .lands("storage", None, "1/2.1")
            .lands("storage", None, "1/1.1")
            .lands("storage", None, "1/1.1");
        assert_eq!(tale.measured().doubled, 2);
    }

    #[test]
    fn the_window_closes_when_storage_has_seen_the_successor() {
        // The grant is the sixth event.
        let fenced = two_terms(Some(1))
            .fenced(2)
            .lands("storage", Some(2), "2/2.1");
        assert_eq!(fenced.measured().windows, [20_000_000], "once a grant");
        let unfenced =
            two_terms(Some(1))
                .writes("b", 4, Some(2), "2/2.1")
                .lands("storage", Some(2), "2/2.1");
        assert_eq!(unfenced.measured().windows, [30_000_000]);
        let one_machine = two_terms(Some(1)).lands("store", Some(2), "2/2.1");
        assert!(one_machine.measured().windows.is_empty(), "it has none");
        let first = Tale::default().acquires("a", 1, 1).fenced(1);
        assert!(first.measured().windows.is_empty(), "it deposed nobody");
    }

    #[test]
    fn a_failover_is_from_the_last_write_of_one_to_the_first_of_another() {
        let measures = Tale::default()
            .acquires("a", 1, 1)
            .writes("a", 2, Some(1), "1/1.1")
            .answered("a", 2)
            .writes("a", 5, Some(1), "1/1.2")
            .answered("a", 5)
            .acquires("b", 3, 2)
            .writes("b", 4, Some(2), "2/2.1")
            .answered("b", 4)
            .measured();
        assert_eq!(measures.failovers, [50_000_000]);
        assert_eq!(measures.leader_changes, 1);
    }

    #[test]
    fn an_answer_that_comes_after_the_successors_is_no_failover_back() {
        let measures = two_terms(Some(1))
            .writes("b", 4, Some(2), "2/2.1")
            .answered("b", 4)
            .answered("a", 2)
            .writes("b", 5, Some(2), "2/2.2")
            .answered("b", 5)
            .measured();
        assert!(measures.failovers.is_empty(), "{:?}", measures.failovers);
    }

    #[test]
    fn a_write_without_a_token_is_its_own_senders_whatever_ids_others_chose() {
        // Both ask with the first id of their own.
        let mut tale = Tale::default();
        for (who, call) in [("a", 1), ("b", 2)] {
            let lease = format!(r#""lease":"leader","holder":"{who}#1","request":1,"ttl":9"#);
            let granted = format!(r#"{{{lease},"clock":1}}"#);
            tale = tale
                .line(who, "invoke", call, "acquire", &format!("{{{lease}}}"))
                .line("store", "info", 0, "granted", &granted);
        }
        let dropped = r#"{"lease":"leader","key":"k0","value":"1/1.1"}"#;
        let measures = tale
            .line("a", "ok", 1, "acquire", "null")
            .writes("a", 3, None, "1/1.1")
            .line("storage", "info", 0, "dropped", dropped)
            .measured();
        assert_eq!(verdict(&measures), [1, 1, 0, 0]);
    }

    #[test]
    fn the_measures_of_two_histories_are_added() {
        let one = Measures {
            tried: 10,
            refused: 4,
            early: 3,
            landed: 3,
            doubled: 7,
            leader_changes: 4,
            windows: vec![1],
            failovers: vec![2],
        };
        let mut sum = one.clone();
        sum.add(one);
        let both = Measures {
            tried: 20,
            refused: 8,
            early: 6,
            landed: 6,
            doubled: 14,
            leader_changes: 8,
            windows: vec![1, 1],
            failovers: vec![2, 2],
        };
        assert_eq!(sum, both);
    }

    #[test]
    fn the_middle_and_the_longest() {
        assert_eq!(middle_and_longest(&[]), None);
        assert_eq!(middle_and_longest(&[3, 1, 9]), Some((3, 9)));
        assert_eq!(middle_and_longest(&[4, 1]), Some((4, 4)));
    }
}

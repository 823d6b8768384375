//! Runs the checkers over a history, all in one pass.

use crate::belief_safety::BeliefSafety;
use crate::budget::{Budget, Remembered};
use crate::conduct::Conduct;
use crate::election_barrier::ElectionBarrier;
use crate::failover::Failover;
use crate::history::{Body, Event, Header, Nanos, Op};
use crate::lease_linearizable::LeaseLinearizable;
use crate::lock_delay::LockDelay;
use crate::register_linearizable::RegisterLinearizable;
use crate::storage_safety::StorageSafety;
use crate::token_monotonicity::TokenMonotonicity;
use crate::verdict::{Check, Evidence, Verdict, Verdicts};
use crate::well_formed::Pairing;
use crate::zombie_write::ZombieWrite;

/// What a checker is shown: an event, and for a completion the call that it completes.
pub(crate) struct Step<'a> {
    pub event: &'a Event,
    pub invoked: Option<&'a Invoked>,
}

/// A call as it was invoked, by the process that completes it.
pub(crate) struct Invoked {
    pub index: u64,
    pub time: Nanos,
    pub op: Op,
}

/// One rule, judging event by event.
pub(crate) trait Checker {
    /// Looks at one event. Not called again once [`Checker::found`] is true.
    fn see(&mut self, step: &Step<'_>);

    /// What it has to remember at present.
    fn remembered(&self) -> Remembered;

    /// Whether a violation was found: the first is the one reported.
    fn found(&self) -> bool;

    /// The verdict, after the last event.
    fn verdict(self: Box<Self>) -> Verdict;
}

/// `mutex-linearizable` of a history whose locks are leases: they run out, so
/// `lease-linearizable` judges them.
struct NoPlainLock;

impl Checker for NoPlainLock {
    fn see(&mut self, _: &Step<'_>) {}

    fn remembered(&self) -> Remembered {
        Remembered::default()
    }

    fn found(&self) -> bool {
        false
    }

    fn verdict(self: Box<Self>) -> Verdict {
        Verdict::NotClaimed("a lease is no plain lock: lease-linearizable judges it".to_owned())
    }
}

/// Judges a history while it is read.
///
/// Memory is bounded by what is open (calls, beliefs, terms, writes that may yet
/// land, values that can still be read), and by a [`Budget`] where that is too much; not
/// by the length of the history.
///
/// ```
/// use deposed_checkers::judge::Judge;
/// use deposed_checkers::verdict::Check;
///
/// let text = r#"{"deposed":1}
/// {"index":0,"time":0,"process":"storage","type":"info","f":"fenced","value":{"lease":"leader","token":2}}
/// "#;
/// let (header, reader) = deposed_checkers::reader::Reader::new(text.as_bytes(), "text")?;
/// let mut judge = Judge::new(&header);
/// for event in reader {
///     judge.see(&event?);
/// }
/// assert_eq!(judge.finish().of(Check::StorageSafety).unwrap().word(), "valid");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Judge {
    pairing: Pairing<Invoked>,
    malformed: Option<Evidence>,
    /// The first line that no check knows.
    passed_over: Option<String>,
    judge_form: bool,
    checkers: Vec<(Check, Judging)>,
    budget: Budget,
    /// Events until it is counted again what is remembered.
    count_in: usize,
    /// Why nothing is looked at any more: the calls that are open are too many.
    gave_up: Option<String>,
}

/// A checker, or why it has given up.
enum Judging {
    By(Box<dyn Checker + Send>),
    GaveUp(String),
}

/// So many events pass at least from one count of what is remembered to the next.
const COUNTED_EVERY: usize = 256;

impl Judge {
    /// A judge of every check that leases have.
    pub fn new(header: &Header) -> Self {
        Self::of(header, &Check::OF_LEASES)
    }

    /// A judge of these checks alone.
    pub fn of(header: &Header, checks: &[Check]) -> Self {
        let mut checkers = Vec::new();
        for check in Check::ALL
            .into_iter()
            .filter(|check| checks.contains(check))
        {
            let checker: Box<dyn Checker + Send> = match check {
                // The pairing that feeds the others judges it.
                Check::WellFormed => continue,
                Check::TokenMonotonicity => Box::new(TokenMonotonicity::new()),
                Check::StorageSafety => Box::new(StorageSafety::new()),
                Check::ZombieWrite => Box::new(ZombieWrite::new(header)),
                Check::BeliefSafety => Box::new(BeliefSafety::new(header)),
                Check::ElectionBarrier => Box::new(ElectionBarrier::new(header)),
                Check::LeaseLinearizable => Box::new(LeaseLinearizable::new(header)),
                Check::RegisterLinearizable => Box::new(RegisterLinearizable::new()),
                Check::MutexLinearizable => Box::new(NoPlainLock),
                Check::LockDelay => Box::new(LockDelay::new(header)),
                Check::Failover => Box::new(Failover::new(header)),
                Check::Conduct => Box::new(Conduct::new()),
            };
            checkers.push((check, Judging::By(checker)));
        }
        Judge {
            pairing: Pairing::new(),
            malformed: None,
            passed_over: None,
            judge_form: checks.contains(&Check::WellFormed),
            checkers,
            budget: Budget::default(),
            count_in: COUNTED_EVERY,
            gave_up: None,
        }
    }

    /// The same judge, which may remember so much and no more.
    pub fn within(self, budget: Budget) -> Self {
        let count_in = COUNTED_EVERY.min(1 + budget.things() / 4);
        Judge {
            budget,
            count_in,
            ..self
        }
    }

    /// Shows the judge the next event. Nothing is read after a malformed one:
    /// what it says can no longer be told apart from what happened.
    pub fn see(&mut self, event: &Event) {
        if self.malformed.is_some() || self.gave_up.is_some() {
            return;
        }
        let keep = |op: &Op| Invoked {
            index: event.index,
            time: event.time,
            op: op.clone(),
        };
        let invoked = match self.pairing.see(event, keep) {
            Ok(invoked) => invoked,
            Err(rule) => {
                self.malformed = Some(rule.evidence(event.index));
                return;
            }
        };
        if let (Body::Foreign(f, _), None) = (&event.body, &self.passed_over) {
            self.passed_over = Some(format!(
                "'{f}' of {} at index {} is nothing that a check knows: what it tells was not \
                 judged",
                event.process, event.index
            ));
        }
        let step = Step {
            event,
            invoked: invoked.as_ref(),
        };
        for (_, judging) in &mut self.checkers {
            if let Judging::By(checker) = judging
                && !checker.found()
            {
                checker.see(&step);
            }
        }
        self.count_in -= 1;
        if self.count_in == 0 {
            self.count();
        }
    }

    /// Counts what is remembered: the more it is the more seldom, so that counting costs
    /// no more than an event.
    fn count(&mut self) {
        let calls = self.pairing.remembered();
        let mut most = calls.things;
        for (_, judging) in &mut self.checkers {
            let Judging::By(checker) = judging else {
                continue;
            };
            let remembered = checker.remembered();
            if let Some(why) = remembered.beyond(self.budget)
                && !checker.found()
            {
                *judging = Judging::GaveUp(why);
            } else {
                most = most.max(remembered.things);
            }
        }
        self.count_in = COUNTED_EVERY
            .max(most / 4)
            .min(1 + self.budget.things() / 4);
        self.gave_up = calls.beyond(self.budget);
        if self.gave_up.is_some() {
            self.pairing.forget();
        }
    }

    /// Whether nothing more is judged: too many calls are open for the [`Budget`].
    pub fn gave_up(&self) -> bool {
        self.gave_up.is_some()
    }

    /// The checks that are sure by now to be violated, whatever may follow.
    pub fn convicted(&self) -> impl Iterator<Item = Check> {
        let found = |(check, judging): &(Check, Judging)| match judging {
            Judging::By(checker) if checker.found() => Some(*check),
            _ => None,
        };
        self.checkers.iter().filter_map(found)
    }

    /// The verdicts, in the order of [`Check::ALL`]. Of a malformed history, only
    /// what was convicted before stands; the rest is Unknown.
    /// So it is where too many calls were open for the [`Budget`].
    pub fn finish(self) -> Verdicts {
        let undecided = match &self.malformed {
            Some(rule) => Some(format!("the history is malformed: {}", rule.sentence)),
            None => self.gave_up.clone(),
        };
        let mut verdicts = Vec::with_capacity(self.checkers.len() + 1);
        if self.judge_form {
            let verdict = match (self.malformed, self.gave_up, self.passed_over) {
                (Some(rule), _, _) => Verdict::Violated(rule),
                (None, Some(why), _) => Verdict::Unknown(why),
                (None, None, Some(why)) => Verdict::NotClaimed(why),
                (None, None, None) => Verdict::Valid,
            };
            verdicts.push((Check::WellFormed, verdict));
        }
        for (check, judging) in self.checkers {
            let verdict = match (judging, &undecided) {
                (Judging::GaveUp(why), _) => Verdict::Unknown(why),
                (Judging::By(checker), Some(why)) if !checker.found() => {
                    Verdict::Unknown(why.clone())
                }
                (Judging::By(checker), _) => checker.verdict(),
            };
            verdicts.push((check, verdict));
        }
        Verdicts(verdicts)
    }
}

/// Judges a history held in memory by every check that leases have.
pub fn judge(header: &Header, events: &[Event]) -> Verdicts {
    let mut judge = Judge::new(header);
    for event in events {
        judge.see(event);
    }
    judge.finish()
}

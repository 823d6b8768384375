//! `mutex-linearizable`: locks by key, in one pass.

use std::collections::{BTreeMap, VecDeque};

use super::Model;
use super::calls::{Call, Calls, Ended};
use super::guess::{no_token, token};
use crate::budget::Budget;
use crate::history::Kind;
use crate::linearizable::mutex::{Mutex, Step};
use crate::linearizable::owned::{self, Owned};
use crate::linearizable::states::Id;
use crate::linearizable::surplus::{Shown, SinceStart};
use crate::linearizable::{Does, NEVER, Operation};
use crate::verdict::Verdict;

mod evidence;

use evidence::{of_anybody, of_owned};

/// How many operations of a lock without owners are remembered for evidence.
const REMEMBERED: usize = 512;

/// The states of a lock without owners.
const FREE: Id = 0;
const HELD: Id = 1;

/// About what one operation takes that is held in memory.
const BYTES: u64 = 96;

/// About what a lock takes, of either kind.
const ANYBODY_BYTES: u64 = 1_000;
const OWNED_BYTES: u64 = 500;

/// About what one takes of the operations that a lock did last.
const LAST_BYTES: u64 = 80;

/// About what one process takes that held a lock.
const RELEASED_BYTES: u64 = 60;

pub(super) struct Locks {
    model: Model,
    budget: Budget,
    /// By key.
    locks: Vec<Lock>,
    /// Bytes of what is remembered of the keys, about.
    remembered: u64,
    /// Operations held in memory, of all locks.
    held: u64,
    any: bool,
    wrong: Option<(usize, Wrong)>,
    unknown: Option<String>,
}

enum Lock {
    Anybody(Box<Anybody>),
    Owned(Owned),
}

impl Lock {
    /// About what it takes, beside what is under way.
    fn bytes(&self) -> u64 {
        match self {
            Lock::Anybody(lock) => ANYBODY_BYTES + lock.last.len() as u64 * LAST_BYTES,
            Lock::Owned(lock) => OWNED_BYTES + lock.remembered() as u64 * RELEASED_BYTES,
        }
    }
}

/// A lock without owners, and what it did last.
#[derive(Default)]
struct Anybody {
    mutex: Mutex,
    /// By invoke.
    live: BTreeMap<u64, (Step, u32)>,
    /// Never answered: acquires, and releases.
    lost: [Vec<Operation>; 2],
    last: VecDeque<Operation>,
    forgot: bool,
    since_start: SinceStart,
}

enum Wrong {
    Owned(owned::Wrong),
    Anybody(Box<Stuck>),
}

/// A lock without owners when no order was left.
struct Stuck {
    /// The operations to look at.
    operations: Vec<Operation>,
    /// Whether those are all.
    whole: bool,
    /// What all that there were show.
    since_start: Option<Shown>,
    /// The one that failed, where that is what is wrong.
    failed: Option<(Operation, Step)>,
    /// The completion without an order, where it is one.
    now: Option<u64>,
}

/// One that may have happened at any time since its invoke, or not.
fn open(step: Step, invoke: u64, process: u32) -> Operation {
    Operation {
        invoke,
        complete: NEVER,
        must: false,
        does: does(step),
        process,
    }
}

fn does(step: Step) -> Does {
    match step {
        Step::Acquire => Does::Swap(FREE, HELD),
        Step::Release => Does::Swap(HELD, FREE),
    }
}

impl Anybody {
    fn remembers(&mut self, operation: Operation) {
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
            self.forgot = true;
        }
        self.last.push_back(operation);
    }

    /// What was remembered, in the order of the invokes, with all that may have happened.
    fn operations(&self) -> Vec<Operation> {
        let mut operations: Vec<Operation> = self.last.iter().copied().collect();
        let live = self.live.iter();
        operations.extend(live.map(|(invoke, (step, process))| open(*step, *invoke, *process)));
        operations.extend(self.lost.iter().flatten());
        operations.sort_by_key(|operation| operation.invoke);
        operations
    }

    fn begins(&mut self, step: Step, invoke: u64, process: u32) {
        self.mutex.begins(step, invoke);
        self.live.insert(invoke, (step, process));
        self.since_start.begins(step, open(step, invoke, process));
    }

    /// An operation ended; `Some` if no order is left.
    fn ends(&mut self, step: Step, operation: Operation, kind: Kind) -> Option<Box<Stuck>> {
        self.live.remove(&operation.invoke);
        if self.live.is_empty() {
            // An empty map may hold on to its memory.
            self.live = BTreeMap::new();
        }
        let happened = match kind {
            Kind::Ok => Some(true),
            Kind::Fail => Some(false),
            _ => None,
        };
        self.since_start.ends(step, operation, happened);
        let result = match kind {
            Kind::Ok => {
                self.remembers(operation);
                (self.mutex).happened(step, operation.invoke, operation.complete)
            }
            Kind::Fail => self.mutex.failed(step, operation.invoke),
            _ => {
                let lost = &mut self.lost[step as usize];
                // More cannot be of use.
                if lost.len() < REMEMBERED {
                    lost.push(open(step, operation.invoke, operation.process));
                }
                self.mutex.lost(step, operation.invoke);
                Ok(())
            }
        };
        result.err().map(|_| {
            Box::new(Stuck {
                operations: self.operations(),
                whole: !self.forgot,
                since_start: self.since_start.shown(),
                failed: (kind == Kind::Fail).then_some((operation, step)),
                now: (kind == Kind::Ok).then_some(operation.complete),
            })
        })
    }
}

impl Locks {
    pub fn new(model: Model, budget: Budget) -> Self {
        Locks {
            model,
            budget,
            locks: Vec::new(),
            remembered: 0,
            held: 0,
            any: false,
            wrong: None,
            unknown: None,
        }
    }

    fn lock(&mut self, key: usize) -> &mut Lock {
        while self.locks.len() <= key {
            let lock = match self.model {
                Model::Mutex => Lock::Anybody(Box::default()),
                _ => Lock::Owned(Owned::default()),
            };
            self.remembered += lock.bytes();
            self.locks.push(lock);
        }
        &mut self.locks[key]
    }

    /// About what is remembered of the keys, beside what is under way.
    pub fn bytes(&self) -> u64 {
        self.remembered
    }

    fn over(&self) -> bool {
        self.wrong.is_some() || self.unknown.is_some()
    }

    pub fn begins(&mut self, call: &Call) -> Result<(), String> {
        let step = step(self.model, &call.f)?;
        if self.over() {
            return Ok(());
        }
        match self.lock(call.key) {
            Lock::Owned(lock) if step == Step::Release => lock.releases(call.process, call.invoke),
            Lock::Owned(_) => {}
            Lock::Anybody(lock) => {
                let before = lock.mutex.held();
                lock.begins(step, call.invoke, call.process);
                let now = lock.mutex.held();
                self.holds(before, now, call.invoke);
            }
        }
        Ok(())
    }

    fn holds(&mut self, before: usize, now: usize, index: u64) {
        self.held = self.held + now as u64 - before as u64;
        let bytes = self.budget.bytes;
        if self.held * BYTES > bytes {
            self.unknown = Some(format!(
                "{} operations are under way or were never answered at index {index}; up to there \
                 the locks have an order: {}",
                self.held,
                self.budget.more_memory()
            ));
        }
    }

    pub fn convicted(&self) -> bool {
        self.wrong.is_some()
    }

    pub fn gives_up(&mut self, why: String) {
        if !self.over() {
            self.unknown = Some(format!("{why}; up to there the locks have an order"));
        }
    }

    pub fn ends(&mut self, ended: Ended<'_>) -> Result<(), String> {
        let step = step(self.model, &ended.call.f)?;
        if self.over() {
            return Ok(());
        }
        let Ended {
            call,
            kind,
            complete,
            value,
            token: apart,
        } = ended;
        self.any |= kind == Kind::Ok;
        let answered = owned::Call {
            process: call.process,
            invoke: call.invoke,
            complete,
        };
        let fenced = self.model == Model::FencedMutex;
        if fenced
            && (step, kind) == (Step::Acquire, Kind::Ok)
            && let Some(why) = no_token(apart, value)
        {
            return Err(why);
        }
        let lock = self.lock(call.key);
        let took = lock.bytes();
        let lock = match lock {
            Lock::Owned(lock) => {
                let result = match (step, kind) {
                    (Step::Acquire, Kind::Ok) => {
                        lock.acquired(answered, token(apart.unwrap_or(value)).filter(|_| fenced))
                    }
                    (Step::Release, Kind::Ok) => lock.released(answered),
                    (Step::Release, Kind::Fail) => lock.failed_release(answered),
                    (Step::Release, _) => {
                        lock.lost_release(call.process);
                        Ok(())
                    }
                    (Step::Acquire, _) => Ok(()),
                };
                self.wrong = result.err().map(|wrong| (call.key, Wrong::Owned(wrong)));
                self.remembered = self.remembered + self.locks[call.key].bytes() - took;
                return Ok(());
            }
            Lock::Anybody(lock) => lock,
        };
        let before = lock.mutex.held();
        let operation = Operation {
            invoke: call.invoke,
            complete,
            must: true,
            does: does(step),
            process: call.process,
        };
        let stuck = lock.ends(step, operation, kind);
        let now = lock.mutex.held();
        if let Some(stuck) = stuck {
            self.wrong = Some((call.key, Wrong::Anybody(stuck)));
            return Ok(());
        }
        self.remembered = self.remembered + self.locks[call.key].bytes() - took;
        self.holds(before, now, complete);
        Ok(())
    }

    pub fn verdict(self, calls: &Calls) -> Verdict {
        if let Some((key, wrong)) = self.wrong {
            let lock = calls
                .key(key)
                .map_or("the lock".to_owned(), |key| format!("lock {key}"));
            return Verdict::Violated(match wrong {
                Wrong::Owned(wrong) => of_owned(&lock, wrong, calls),
                Wrong::Anybody(stuck) => of_anybody(&lock, *stuck, calls, self.budget),
            });
        }
        match self.unknown {
            Some(why) => Verdict::Unknown(why),
            None if !self.any => {
                Verdict::NotClaimed("no acquire or release was answered in this history".to_owned())
            }
            None => Verdict::Valid,
        }
    }
}

fn step(model: Model, f: &str) -> Result<Step, String> {
    match f {
        "acquire" => Ok(Step::Acquire),
        "release" => Ok(Step::Release),
        _ => Err(super::registers::not_of(model, f)),
    }
}

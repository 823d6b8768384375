//! A story as what a run has to bring about: each frame with the times at which it is read,
//! and what each client does when.

use deposed_checkers::history::{F, Nanos, RatePpb, TRUE_RATE};

use super::{
    super::{
        action::Action,
        candidate::{Candidate, CandidateStep},
        message::{Message, Reader, Says},
        scope::Scope,
        storage_node::{StorageNode, StorageStep, call_of},
        store_node::{StoreNode, StoreStep},
        story::Story,
    },
    Pace,
};
use crate::{run::limits::CLOCK_RATES, workload::MS};

/// How long, on storage's clock, one that checks ahead of the change awaits in between.
const BETWEEN_CHECK_AND_ACT: Nanos = 20 * MS;

/// One sending of a message.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) what: Message,
    pub(super) sent: Nanos,
    /// When it leaves in a run: what a client does at once is sent ahead of the story's pace.
    pub(super) leaves: Nanos,
    /// When it is read: not at all if it is lost, twice if it is duplicated.
    pub(super) read: Vec<Nanos>,
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// It wakes by its timer.
    Wakes,
    /// Its leader calls storage.
    Acts(F),
    /// It resigns.
    Resigns,
    /// It reads an answer.
    Reads,
}

/// One thing that a client does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Does {
    pub(super) at: Nanos,
    /// In which tick of the story.
    pub(super) tick: u64,
    pub(super) deed: Deed,
}

/// See the module. Times are ns from the start of the run.
pub(super) struct Told {
    /// In the order in which they are sent.
    pub(super) frames: Vec<Frame>,
    /// By client, in order.
    pub(super) does: Vec<Vec<Does>>,
    /// By client: when it crashes.
    pub(super) client_crashes: Vec<Vec<Nanos>>,
    pub(super) store_crashes: Vec<Nanos>,
    pub(super) storage_crashes: Vec<Nanos>,
    /// Clients whose clocks skip ticks, a bit each.
    pub(super) skipped: u8,
    pub(super) deletes: bool,
    /// How long a term lasts until it is resigned: the first that is.
    pub(super) resigns_after: Option<Nanos>,
    /// That of the storage's clock, where its wait between check and change must be longer.
    pub(super) storage_rate: Option<RatePpb>,
    /// When the last action is over.
    pub(super) ends: Nanos,
}

/// What a process waits for that a story need not, ns.
#[derive(Clone, Copy)]
pub(super) struct Waits {
    /// Until it gives an answer up.
    pub(super) for_an_answer: Nanos,
    /// Until it contends again after a release.
    pub(super) for_others: Nanos,
}

/// How often a release is sent that nobody answers.
const RELEASE_TRIES: u64 = 3;

struct Walk<'s> {
    scope: &'s Scope,
    told: Told,
    now: Nanos,
    tick: u64,
    store: StoreNode,
    storage: StorageNode,
    clients: Vec<Candidate>,
    /// Places in `told.frames`.
    flight: Vec<usize>,
    /// By client: when its last grant was read.
    granted: Vec<Nanos>,
    /// By client: when its leader last called storage in this term. What is not in the
    /// story is lost, and never answered.
    called: Vec<Option<Nanos>>,
    /// By client: in which tick it last read an answer, and when it has done what it has done
    /// at once since.
    reading: Vec<Option<(u64, Nanos)>>,
    /// By client: its last release, a place in `told.frames`, until it contends again.
    released: Vec<Option<usize>>,
    /// A change that was checked ahead, and when.
    ahead: Option<(Message, Nanos)>,
}

impl Told {
    /// See the module.
    pub(super) fn of(story: &Story, scope: &Scope, pace: Pace, waits: Waits) -> Self {
        let told = Told {
            frames: Vec::new(),
            does: vec![Vec::new(); scope.clients],
            client_crashes: vec![Vec::new(); scope.clients],
            store_crashes: Vec::new(),
            storage_crashes: Vec::new(),
            skipped: 0,
            deletes: false,
            resigns_after: None,
            storage_rate: None,
            ends: pace.start,
        };
        let mut walk = Walk {
            scope,
            told,
            now: pace.start,
            tick: 0,
            store: StoreNode::new(scope),
            storage: StorageNode::new(scope),
            clients: (0..scope.clients)
                .map(|_| Candidate::new(scope, 0))
                .collect(),
            flight: Vec::new(),
            granted: vec![0; scope.clients],
            called: vec![None; scope.clients],
            reading: vec![None; scope.clients],
            released: vec![None; scope.clients],
            ahead: None,
        };
        for action in &story.actions {
            walk.act(*action, pace, waits);
        }
        walk.told.ends = walk.now;
        walk.told
    }
}

impl Walk<'_> {
    fn act(&mut self, action: Action, pace: Pace, waits: Waits) {
        if let Action::Tick { skips } = action {
            self.tick += 1;
            self.now += pace.tick;
            self.told.skipped |= skips;
            self.store = self.store.step(self.scope, StoreStep::Tick).0;
            for client in 0..self.clients.len() {
                let skips = skips & 1 << client != 0;
                self.client(client, CandidateStep::Tick { skips });
            }
            return;
        }
        match action {
            Action::Tick { .. } | Action::Look(_) => {}
            Action::Wake(client) => self.wake(client, waits),
            Action::Act { client, deletes } => self.work(client, deletes),
            Action::Resign(client) => {
                let granted = self.granted[client];
                self.told.resigns_after.get_or_insert(self.now - granted);
                self.note(client, Deed::Resigns);
                // It does so by its timer.
                self.reading[client] = None;
                self.client(client, CandidateStep::Resign);
                // A leader that resigns waits for what it has in hand.
                if let Some(called) = self.called[client].take() {
                    self.now = self.now.max(called + waits.for_an_answer);
                }
            }
            Action::CrashClient(client) => {
                self.told.client_crashes[client].push(self.now);
                self.called[client] = None;
                self.reading[client] = None;
                self.released[client] = None;
                self.client(client, CandidateStep::Crash);
            }
            Action::CrashStore => {
                self.told.store_crashes.push(self.now);
                self.store = self.store.step(self.scope, StoreStep::Crash).0;
            }
            Action::CrashStorage => {
                self.told.storage_crashes.push(self.now);
                self.storage = self.storage.step(self.scope, StorageStep::Crash).0;
            }
            Action::Lose(message) => {
                self.land(message, true);
            }
            Action::LookAhead(message) => {
                self.ahead = Some((message, self.now));
                let step = StorageStep::Check(message);
                self.storage = self.storage.step(self.scope, step).0;
            }
            Action::Deliver(message) => self.arrive(message, true),
            Action::Duplicate(message) => self.arrive(message, false),
        }
        self.now += pace.step;
    }

    fn wake(&mut self, client: usize, waits: Waits) {
        let (next, says) = self.clients[client].step(self.scope, client, CandidateStep::Wake);
        self.clients[client] = next.waited();
        let wakes = says.sent.map(Message::says);
        if wakes == Some(Says::Acquire)
            && let Some(release) = self.released[client].take()
        {
            self.now += waits.for_others;
            if self.told.frames[release].read.is_empty() {
                self.now += RELEASE_TRIES * waits.for_an_answer;
            }
        }
        self.note(client, Deed::Wakes);
        if let Some(message) = says.sent {
            if wakes == Some(Says::Release) {
                self.released[client] = Some(self.told.frames.len());
            }
            let leaves = self.goes_on(client);
            self.send(message, leaves);
        }
    }

    /// When a client does what the story has it do now: at once, if it has read an answer in
    /// the same tick.
    fn goes_on(&mut self, client: usize) -> Nanos {
        match &mut self.reading[client] {
            Some((tick, done)) if *tick == self.tick => {
                *done += MS;
                *done
            }
            _ => self.now,
        }
    }

    fn note(&mut self, client: usize, deed: Deed) {
        let (at, tick) = (self.now, self.tick);
        self.told.does[client].push(Does { at, tick, deed });
    }

    fn work(&mut self, client: usize, deletes: bool) {
        self.told.deletes |= deletes;
        if self.clients[client].may(self.scope, CandidateStep::Look) {
            self.client(client, CandidateStep::Look);
        }
        let before = self.told.frames.len();
        self.client(client, CandidateStep::Act { deletes });
        let sent = self.told.frames.get(before).map(|frame| frame.what);
        self.called[client] = Some(self.now);
        let call = sent.map_or(F::Read, |sent| call_of(sent.says()));
        self.note(client, Deed::Acts(call));
    }

    fn client(&mut self, client: usize, step: CandidateStep) {
        let (next, says) = self.clients[client].step(self.scope, client, step);
        // What it waits for, it may have waited for: see `Rules::waits`.
        self.clients[client] = next.waited();
        if let Some(message) = says.sent {
            let leaves = self.goes_on(client);
            self.send(message, leaves);
        }
    }

    /// A message that is sent again while it is under way is one in a story, and is read as
    /// that; the second frame is lost.
    fn send(&mut self, what: Message, leaves: Nanos) {
        let under_way = |at: &usize| self.told.frames[*at].what == what;
        if !self.flight.iter().any(under_way) {
            self.flight.push(self.told.frames.len());
        }
        self.told.frames.push(Frame {
            what,
            sent: self.now,
            leaves,
            read: Vec::new(),
        });
    }

    /// The frame of a message under way, which it is no more if it is the `last` time.
    fn land(&mut self, message: Message, last: bool) -> Option<usize> {
        let mut flight = self.flight.iter();
        let at = flight.position(|at| self.told.frames[*at].what == message)?;
        let frame = self.flight[at];
        if last {
            self.flight.remove(at);
        }
        Some(frame)
    }

    fn arrive(&mut self, message: Message, last: bool) {
        let Some(frame) = self.land(message, last) else {
            return;
        };
        match self.ahead.take_if(|(checked, _)| *checked == message) {
            Some((_, checked)) => {
                self.told.frames[frame].read.push(checked);
                let wait = (self.now - checked).max(BETWEEN_CHECK_AND_ACT);
                let rate = TRUE_RATE * BETWEEN_CHECK_AND_ACT / wait;
                self.told.storage_rate = Some(rate.max(CLOCK_RATES.0));
            }
            None => self.told.frames[frame].read.push(self.now),
        }
        let process = message.process();
        match message.says().reader() {
            Reader::Client => {
                if self.clients[process.client].life != process.life {
                    return;
                }
                self.note(process.client, Deed::Reads);
                self.reading[process.client] = Some((self.tick, self.now));
                self.client(process.client, CandidateStep::Read(message));
                if message.says() == Says::Granted {
                    self.granted[process.client] = self.now;
                }
                // Its leader goes on by itself, whether the story comes to that or not.
                let calls = matches!(message.says(), Says::Granted | Says::Fenced);
                if calls && self.clients[process.client].core.is_leader(0) {
                    self.called[process.client] = Some(self.now);
                }
            }
            Reader::Store => {
                let (next, says) = self.store.step(self.scope, StoreStep::Read(message));
                self.store = next;
                if let Some(answer) = says.answer {
                    self.send(answer, self.now);
                }
            }
            Reader::Storage => {
                let (next, says) = self.storage.step(self.scope, StorageStep::Read(message));
                self.storage = next;
                if let Some(answer) = says.answer {
                    self.send(answer, self.now);
                }
            }
        }
    }
}

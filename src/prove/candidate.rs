//! A client's process: the real core, its clock, and the leader that works under its term.
//!
//! The leader is the model's own, a shell as `node::leader` is: it looks at `is_leader()`
//! and then, in a step of its own and at any time after, does what it had looked for. It
//! fences until that is acknowledged, then changes the key once. It waits for no answer (as
//! one whose call timed out) but takes one that comes.

use deposed_checkers::{history::Token, verdict::Check};

use super::{
    message::{Message, Process, Says},
    scope::Scope,
};
use crate::{
    flaw::Flaw,
    lease::{LeaseClient, Request},
};

/// A client's process between two steps. Its clock reads 0: see [`LeaseClient::rebased`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    pub(super) core: LeaseClient,
    /// How often the client has started before.
    pub(super) life: u64,
    /// Ticks since its clock last skipped one, counted no further than until it may again.
    pub(super) since_skip: u8,
    /// What its leader does.
    pub(super) work: Option<Work>,
}

/// A leader's work under one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Work {
    /// The term's token.
    pub token: Token,
    /// It has looked at `is_leader()`, was told yes, and has not acted on it yet.
    pub looked: bool,
    /// Its fence was acknowledged.
    pub fenced: bool,
    /// Its change was sent.
    pub changed: bool,
    /// Its fence was sent. Told only with a planted flaw.
    pub tried: bool,
    /// Storage has told it that its token is stale, and it leads on. Only with a planted flaw.
    pub stale: bool,
}

/// What happens to a client's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CandidateStep {
    /// A tick of true time; its clock may skip it.
    Tick {
        /// Whether it does.
        skips: bool,
    },
    /// It wakes and sends what is due.
    Wake,
    /// It reads an answer.
    Read(Message),
    /// Its leader looks at `is_leader()`.
    Look,
    /// Its leader acts on what it saw.
    Act {
        /// Whether it deletes where it could write.
        deletes: bool,
    },
    /// It resigns.
    Resign,
    /// It crashes, and another process starts.
    Crash,
}

/// What it says of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateSays {
    /// The message that it sends: to the store if it woke, to storage if its leader acted.
    pub sent: Option<Message>,
    /// Its leader reads a key under this token. Only with a planted flaw.
    pub reads: Option<Token>,
    /// The check that what it did breaks.
    pub breaks: Option<Check>,
}

impl Candidate {
    /// A process that has just started.
    pub fn new(scope: &Scope, life: u64) -> Self {
        Self {
            core: LeaseClient::new(scope.config(), 0, scope.planted),
            life,
            since_skip: scope.drift.every().map_or(0, |every| every - 1),
            work: None,
        }
    }

    /// Whether the step can be taken and means anything.
    pub fn may(&self, scope: &Scope, step: CandidateStep) -> bool {
        match step {
            CandidateStep::Tick { skips } => {
                !skips
                    || scope
                        .drift
                        .every()
                        .is_some_and(|every| self.since_skip + 1 >= every)
            }
            CandidateStep::Look => {
                let work = self
                    .work
                    .filter(|work| self.core.token() == Some(work.token));
                let done = work.is_some_and(|work| work.looked || work.changed);
                let busy = self.work.is_some_and(|work| work.looked);
                self.core.is_leader(0) && !done && !busy
            }
            CandidateStep::Act { deletes } => {
                let looked = self.work.is_some_and(|work| work.looked);
                looked && (!deletes || scope.deletes)
            }
            CandidateStep::Wake
            | CandidateStep::Read(_)
            | CandidateStep::Resign
            | CandidateStep::Crash => true,
        }
    }

    /// The process after a step, and what it says. `client` is its number.
    pub fn step(&self, scope: &Scope, client: usize, step: CandidateStep) -> (Self, CandidateSays) {
        let mut next = self.clone();
        let life = self.life;
        let process = Process { client, life };
        let mut says = CandidateSays {
            sent: None,
            reads: None,
            breaks: None,
        };
        match step {
            CandidateStep::Tick { skips } => next.tick(scope, skips),
            CandidateStep::Wake => {
                let request = next.core.tick(0);
                says.sent = request
                    .as_ref()
                    .map(|request| Message::request(process, request));
                if let Some(Request::Release { .. }) = request
                    && next.core.is_leader(0)
                {
                    says.breaks = Some(Check::Conduct);
                }
            }
            CandidateStep::Read(message) => next.read(scope, message),
            CandidateStep::Look => {
                let token = self.core.token().unwrap_or(0);
                let work = self.work.filter(|work| work.token == token);
                let fresh = Work {
                    token,
                    looked: true,
                    fenced: false,
                    changed: false,
                    tried: false,
                    stale: false,
                };
                next.work = Some(Work {
                    looked: true,
                    ..work.unwrap_or(fresh)
                });
            }
            CandidateStep::Act { deletes } => next.act(scope, process, deletes, &mut says),
            CandidateStep::Resign => {
                next.core.resign(0);
                next.drain();
            }
            CandidateStep::Crash => {
                next = Candidate {
                    since_skip: self.since_skip,
                    ..Candidate::new(scope, life + 1)
                };
            }
        }
        next.put_work_away();
        (next, says)
    }

    fn tick(&mut self, scope: &Scope, skips: bool) {
        if skips {
            self.since_skip = 0;
            return;
        }
        if let Some(every) = scope.drift.every() {
            self.since_skip = (self.since_skip + 1).min(every - 1);
        }
        self.core = self.core.rebased(1);
    }

    fn read(&mut self, scope: &Scope, message: Message) {
        let token = message.token();
        match message.says() {
            Says::Fenced => {
                if let Some(work) = self.work.as_mut().filter(|work| work.token == token) {
                    work.fenced = true;
                }
            }
            Says::Stale => {
                self.core.on_stale_token(0, token);
                let leads_on = scope.planted.has(Flaw::StaleRetry);
                if let Some(work) = self.work.as_mut().filter(|work| work.token == token) {
                    work.stale = leads_on;
                    // Whoever is told gives the term up, and with it what was in hand.
                    work.looked &= leads_on;
                    self.drain();
                }
            }
            _ => {
                if let Some(reply) = message.reply() {
                    self.core.on_reply(0, &reply, 0);
                }
            }
        }
    }

    fn act(&mut self, scope: &Scope, process: Process, deletes: bool, says: &mut CandidateSays) {
        let planted = scope.planted;
        let Some(work) = &mut self.work else { return };
        let unfenced = planted.has(Flaw::NoBarrier)
            || planted.has(Flaw::BarrierAfterWrite)
            || planted.has(Flaw::WorksUnfenced) && work.tried;
        work.looked = false;
        if work.stale {
            says.breaks = Some(Check::Conduct);
        }
        if !work.fenced && planted.has(Flaw::ReadsBeforeBarrier) {
            says.reads = Some(work.token);
            says.breaks = Some(Check::ElectionBarrier);
        } else if work.fenced || unfenced {
            if !work.fenced {
                says.breaks = Some(Check::ElectionBarrier);
            }
            work.changed = true;
            let word = if deletes { Says::Delete } else { Says::Write };
            says.sent = Some(Message::new(word, process, 0, work.token));
        } else {
            work.tried = planted.has(Flaw::WorksUnfenced);
            says.sent = Some(Message::new(Says::Fence, process, 0, work.token));
        }
        self.drain();
    }

    /// A resigned term is released once nothing is in hand.
    fn drain(&mut self) {
        if self.work.is_none_or(|work| !work.looked) {
            self.core.drained(0);
        }
    }

    /// A leader whose term is over, and who has nothing in hand, has nothing to do with it.
    fn put_work_away(&mut self) {
        let over = |work: &Work| !work.looked && self.core.token() != Some(work.token);
        if self.work.as_ref().is_some_and(over) {
            self.work = None;
        }
    }

    /// See [`LeaseClient::waited`].
    pub fn waited(&self) -> Self {
        Self {
            core: self.core.waited(),
            ..self.clone()
        }
    }

    /// See [`LeaseClient::after_a_look`].
    pub fn after_a_look(&self) -> Self {
        let mut node = Self {
            core: self.core.after_a_look(0),
            ..self.clone()
        };
        node.put_work_away();
        node
    }

    /// Whether a message for it can change anything, now or later.
    pub fn awaits(&self, message: Message) -> bool {
        let token = message.token();
        match message.says() {
            Says::Fenced => self
                .work
                .is_some_and(|work| work.token == token && !work.fenced),
            Says::Stale => {
                self.core.token() == Some(token)
                    || self.work.is_some_and(|work| work.token == token)
            }
            _ => message
                .reply()
                .is_some_and(|reply| self.core.awaits(&reply)),
        }
    }

    /// The same with tokens and ids by other names: see [`LeaseClient::renamed`].
    pub fn renamed(
        &self,
        mut token: impl FnMut(Token) -> Token,
        request: impl FnMut(u64) -> u64,
        attempt: impl FnMut(u64) -> u64,
        life: u64,
    ) -> Self {
        let core = self.core.renamed(&mut token, request, attempt);
        let work = self.work.map(|work| Work {
            token: token(work.token),
            ..work
        });
        Self {
            core,
            life,
            work,
            ..*self
        }
    }
}

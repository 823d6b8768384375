//! The world between two steps, and what can happen next.

use deposed_checkers::verdict::Check;
use xxhash_rust::xxh3::xxh3_128;

use super::{
    action::Action,
    candidate::{Candidate, CandidateStep},
    catalogue::{Catalogue, View},
    message::{LAST_ID, Message, Process, Reader, Says},
    property::Broken,
    reduce::{NOBODYS, SOMEBODY},
    scope::{MOST_CLIENTS, MOST_IN_FLIGHT},
    storage_node::{StorageNode, StorageStep},
    store_node::{StoreNode, StoreStep},
};
use crate::flaw::Flaw;

/// Where everything is, by the numbers of a [`Catalogue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) store: u32,
    pub(super) storage: u32,
    /// One a client, then nothing.
    pub(super) clients: [u32; MOST_CLIENTS],
    /// A set: sorted, each once, then [`Message::NONE`].
    pub(super) flight: [Message; MOST_IN_FLIGHT],
}

/// No client.
pub(super) const NOBODY: u32 = u32::MAX;

impl State {
    /// What is in flight.
    pub fn in_flight(&self) -> impl Iterator<Item = Message> {
        self.flight
            .into_iter()
            .take_while(|message| *message != Message::NONE)
    }

    /// Which state this is, in 128 bits. Among `n` states two are taken for one with a
    /// probability of less than `n * n / 2^129`: for a billion, less than `2e-21`.
    pub fn fingerprint(&self) -> u128 {
        let mut bytes = [0; 4 * (2 + MOST_CLIENTS) + 8 * MOST_IN_FLIGHT];
        let (numbers, messages) = bytes.split_at_mut(4 * (2 + MOST_CLIENTS));
        let all = [self.store, self.storage].into_iter().chain(self.clients);
        for (place, number) in numbers.chunks_exact_mut(4).zip(all) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        for (place, message) in messages.chunks_exact_mut(8).zip(self.flight) {
            place.copy_from_slice(&message.bits().to_le_bytes());
        }
        xxh3_128(&bytes)
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.flight.copy_within(at + 1.., at);
        self.flight[MOST_IN_FLIGHT - 1] = Message::NONE;
    }

    pub(super) fn sort(&mut self) {
        self.flight.sort_unstable();
        let mut kept = 0;
        for at in 0..MOST_IN_FLIGHT {
            if self.flight[at] != Message::NONE
                && (kept == 0 || self.flight[kept - 1] != self.flight[at])
            {
                self.flight[kept] = self.flight[at];
                kept += 1;
            }
        }
        self.flight[kept..].fill(Message::NONE);
    }

    /// Puts a message in flight; false if there is no room.
    fn send(&mut self, message: Message, room: usize) -> bool {
        let count = self.in_flight().count();
        if self.flight[..count].contains(&message) {
            return true;
        }
        if count >= room {
            return false;
        }
        self.flight[count] = message;
        self.flight[..=count].sort_unstable();
        true
    }
}

/// Where an action leads.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// What happens.
    pub action: Action,
    /// The state that stands for where it leads.
    pub to: State,
    /// What is wrong there.
    pub broken: Option<Broken>,
}

impl Catalogue {
    /// The world before anything happened.
    pub fn start(&self) -> State {
        let mut view = View::new(self);
        let mut state = State {
            store: view.number_store(StoreNode::new(&self.scope)),
            storage: view.number_storage(StorageNode::new(&self.scope)),
            clients: [NOBODY; MOST_CLIENTS],
            flight: [Message::NONE; MOST_IN_FLIGHT],
        };
        for client in 0..self.scope.clients {
            state.clients[client] = view.number_candidate(Candidate::new(&self.scope, 0));
        }
        view.representative(state)
    }
}

impl View<'_> {
    /// Everything that can happen next and changes anything, in a fixed order.
    pub fn next(&mut self, state: &State, each: &mut impl FnMut(Next)) {
        let full = state.in_flight().count() >= self.all.scope.in_flight;
        let loses = full || !self.all.rules.late_loss;
        let looks_ahead = self.all.scope.planted.has(Flaw::CheckThenAct);
        for message in state.in_flight() {
            self.tell(state, Action::Deliver(message), each);
            self.tell(state, Action::Duplicate(message), each);
            if loses {
                self.tell(state, Action::Lose(message), each);
            }
            let change = matches!(message.says(), Says::Write | Says::Delete);
            if looks_ahead && change {
                self.tell(state, Action::LookAhead(message), each);
            }
        }
        self.arrives_by_itself(state, each);
        for client in 0..self.all.scope.clients {
            self.tell(state, Action::Wake(client), each);
            if !self.all.rules.acts {
                self.tell(state, Action::Look(client), each);
            }
            self.tell(
                state,
                Action::Act {
                    client,
                    deletes: false,
                },
                each,
            );
            if self.all.scope.deletes {
                self.tell(
                    state,
                    Action::Act {
                        client,
                        deletes: true,
                    },
                    each,
                );
            }
            self.tell(state, Action::Resign(client), each);
        }
        let skipping = match self.all.scope.drift.every() {
            None => 0,
            Some(_) => (1u8 << self.all.scope.clients) - 1,
        };
        for skips in 0..=skipping {
            self.tell(state, Action::Tick { skips }, each);
        }
        for client in 0..self.all.scope.clients {
            self.tell(state, Action::CrashClient(client), each);
        }
        self.tell(state, Action::CrashStore, each);
        self.tell(state, Action::CrashStorage, each);
    }

    /// What may arrive at any time and takes no place in flight: see [`Rules`].
    ///
    /// [`Rules`]: super::reduce::Rules
    fn arrives_by_itself(&mut self, state: &State, each: &mut impl FnMut(Next)) {
        let rules = self.all.rules;
        for client in 0..self.all.scope.clients {
            let about = &self.candidate(state.clients[client]).1;
            let (asks, token) = (about.asks, about.token);
            let life = about.life;
            let id = u64::from(about.requests.trailing_zeros());
            let process = Process { client, life };
            if asks && rules.unanswered {
                let acquire = Message::new(Says::Acquire, process, id, 0);
                self.tell(state, Action::Duplicate(acquire), each);
            }
            if asks && rules.refusals {
                let denied = Message::new(Says::Denied, process, id, 0);
                self.tell(state, Action::Duplicate(denied), each);
            }
            if let Some(token) = token.filter(|_| rules.refusals) {
                let stale = Message::new(Says::Stale, process, 0, token);
                self.tell(state, Action::Duplicate(stale), each);
            }
        }
        if rules.unanswered {
            let acquire = Message::new(Says::Acquire, SOMEBODY, 0, 0);
            self.tell(state, Action::Duplicate(acquire), each);
            let about = &self.store(state.store).1;
            let token = about.granted;
            if let Some((owner, _)) = about.asked[0] {
                let renew = Message::new(Says::Renew, owner, LAST_ID, token);
                self.tell(state, Action::Duplicate(renew), each);
                if owner == NOBODYS {
                    let release = Message::new(Says::Release, owner, 0, token);
                    self.tell(state, Action::Duplicate(release), each);
                }
            }
        }
    }

    fn tell(&mut self, state: &State, action: Action, each: &mut impl FnMut(Next)) {
        let Some((next, breaks)) = self.take(state, action) else {
            return;
        };
        if next == *state && breaks.is_none() {
            return;
        }
        let breaks = breaks.map(Broken::Check);
        let broken = breaks.or_else(|| self.broken(&next));
        // Of a core that does otherwise nothing is sure.
        let to = match broken {
            Some(Broken::Premise(_)) => next,
            _ => self.representative(next),
        };
        if to != *state || broken.is_some() {
            each(Next { action, to, broken });
        }
    }

    /// The state after an action, as it is; `None` if it cannot happen.
    fn take(&mut self, state: &State, action: Action) -> Option<(State, Option<Check>)> {
        let mut next = *state;
        let room = self.all.scope.in_flight;
        let client_step = |view: &mut Self, next: &mut State, client: usize, step| {
            let came = view.step_candidate(next.clients[client], client, step)?;
            next.clients[client] = came.to;
            if let Some(message) = came.sends {
                let by_itself = matches!(message.says(), Says::Acquire | Says::Release);
                let placeless = by_itself && view.all.rules.unanswered;
                if !placeless && !next.send(message, room) {
                    return None;
                }
                // A token that was not granted yet was granted to nobody.
                let to_storage = message.says().reader() == Reader::Storage;
                if to_storage && message.token() > view.store(next.store).1.granted {
                    return Some(Some(Check::TokenMonotonicity));
                }
            }
            Some(came.breaks)
        };
        let breaks = match action {
            Action::Tick { skips } => {
                next.store = self.step_store(next.store, StoreStep::Tick).to;
                for client in 0..self.all.scope.clients {
                    let skips = skips & 1 << client != 0;
                    client_step(self, &mut next, client, CandidateStep::Tick { skips })?;
                }
                None
            }
            Action::Wake(client) => client_step(self, &mut next, client, CandidateStep::Wake)?,
            Action::Look(client) => client_step(self, &mut next, client, CandidateStep::Look)?,
            Action::Act { client, deletes } => {
                if self.all.rules.acts {
                    client_step(self, &mut next, client, CandidateStep::Look)?;
                }
                client_step(self, &mut next, client, CandidateStep::Act { deletes })?
            }
            Action::Resign(client) => client_step(self, &mut next, client, CandidateStep::Resign)?,
            Action::CrashClient(client) => {
                client_step(self, &mut next, client, CandidateStep::Crash)?
            }
            Action::CrashStore => {
                let came = self.step_store(next.store, StoreStep::Crash);
                next.store = came.to;
                came.breaks
            }
            Action::CrashStorage => {
                let came = self.step_storage(next.storage, StorageStep::Crash);
                next.storage = came.to;
                came.breaks
            }
            Action::Lose(message) => {
                next.take_out(message)?;
                None
            }
            Action::LookAhead(message) => {
                next.storage = self
                    .step_storage(next.storage, StorageStep::Check(message))
                    .to;
                None
            }
            Action::Deliver(message) => {
                next.take_out(message)?;
                self.arrive(&mut next, message)?
            }
            Action::Duplicate(message) => self.arrive(&mut next, message)?,
        };
        Some((next, breaks))
    }

    /// A message arrives; `None` if there is no room for the answer.
    fn arrive(&mut self, next: &mut State, message: Message) -> Option<Option<Check>> {
        let process = message.process();
        let came = match message.says().reader() {
            Reader::Client => {
                // A process that is gone reads nothing.
                if self.lives(next, process) {
                    let number = next.clients[process.client];
                    let step = CandidateStep::Read(message);
                    let came = self.step_candidate(number, process.client, step)?;
                    next.clients[process.client] = came.to;
                }
                return Some(None);
            }
            Reader::Store => {
                let came = self.step_store(next.store, StoreStep::Read(message));
                next.store = came.to;
                came
            }
            Reader::Storage => {
                let came = self.step_storage(next.storage, StorageStep::Read(message));
                next.storage = came.to;
                came
            }
        };
        if let Some(answer) = came.sends {
            let dead = self.all.rules.dead_answers && !self.is_awaited(next, answer);
            if !dead && !next.send(answer, self.all.scope.in_flight) {
                return None;
            }
        }
        Some(came.breaks)
    }
}

impl View<'_> {
    pub(super) fn lives(&mut self, state: &State, process: Process) -> bool {
        let number = state.clients.get(process.client).copied();
        number.is_some_and(|number| self.candidate(number).1.life == process.life)
    }

    /// Whether an answer can change anything at the client that it is for.
    pub(super) fn is_awaited(&mut self, state: &State, answer: Message) -> bool {
        let refusal = matches!(
            answer.says(),
            Says::Denied | Says::RenewDenied | Says::Stale | Says::ReleaseDenied
        );
        if refusal && self.all.rules.refusals {
            return false;
        }
        let number = state.clients.get(answer.process().client).copied();
        number.is_some_and(|number| self.awaits(number, answer))
    }
}

impl State {
    fn take_out(&mut self, message: Message) -> Option<()> {
        let at = self.flight.iter().position(|place| *place == message)?;
        self.remove(at);
        Some(())
    }
}

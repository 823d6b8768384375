//! Tokens, ids and processes told by their rank among those that are somewhere.

use deposed_checkers::history::Token;

use crate::prove::{
    catalogue::{AboutStore, View},
    message::{GRAVE, Message, Process, Says},
    scope::{MOST_CLIENTS, MOST_IN_FLIGHT},
    state::State,
};

/// The rank of a number among those whose bit is set, from 0.
fn rank(among: u64, number: u64) -> u64 {
    match number {
        0 => 0,
        number => u64::from((among & (u64::MAX >> (64 - number))).count_ones()),
    }
}

/// The bits of the ranks alone.
fn is_compact(among: u64) -> bool {
    among & among.wrapping_add(1) == 0
}

/// A token's rank, from 1; 0 is no token.
fn token_rank(among: u64, token: Token) -> Token {
    match token {
        0 => 0,
        token => rank(among, token) + 1,
    }
}

/// Which numbers are somewhere, as bits.
#[derive(Default)]
struct Somewhere {
    tokens: u64,
    /// By client. Of one with a grave the life that lives.
    lives: [u64; MOST_CLIENTS],
    /// By client: the id of its last acquire.
    last_request: [u64; MOST_CLIENTS],
    /// By client: the ids of acquires that may be compared.
    requests: [u64; MOST_CLIENTS],
    attempts: [u64; MOST_CLIENTS],
    alive: [u64; MOST_CLIENTS],
    /// The processes that are gone, in the order of what they are known by, and the ids of
    /// their acquires.
    gone: [Option<(Process, u64)>; MOST_IN_FLIGHT + 2],
}

impl Somewhere {
    fn is_last_request_compact(&self, client: usize) -> bool {
        let last = u64::from(self.last_request[client].trailing_zeros());
        last == compared(self.requests[client], last)
    }

    fn lives(&self, process: Process) -> bool {
        self.alive.get(process.client) == Some(&process.life)
    }

    /// A process that is gone is noted, with the id of an acquire of its.
    fn bury(&mut self, process: Process, request: u64) {
        let place = self.gone.iter_mut().find(|place| match place {
            Some((other, _)) => *other == process,
            None => true,
        });
        let place = place.expect("one a message, and two in the store");
        place.get_or_insert((process, 0)).1 |= request;
    }

    fn grave(&self, process: Process) -> Option<(usize, u64)> {
        let is = |place: &Option<(Process, u64)>| place.is_some_and(|(other, _)| other == process);
        let at = self.gone.iter().position(is)?;
        self.gone[at].map(|(_, requests)| (at, requests))
    }

    fn process(&self, process: Process) -> Process {
        match self.grave(process) {
            Some((at, _)) => Process {
                client: GRAVE,
                life: at as u64,
            },
            None => Process {
                life: rank(self.lives[process.client], process.life),
                ..process
            },
        }
    }

    /// An acquire's id; one that nothing is compared with is told by the one before it.
    fn request(&self, process: Process, request: u64) -> u64 {
        let among = match self.grave(process) {
            Some((_, requests)) => requests,
            None => self.requests[process.client],
        };
        compared(among, request)
    }
}

/// The rank of a number among those that are compared, or of the last one before it.
fn compared(among: u64, number: u64) -> u64 {
    let rank = rank(among, number);
    match among & 1 << number {
        0 => rank.saturating_sub(1),
        _ => rank,
    }
}

impl View<'_> {
    pub(super) fn rename(&mut self, state: &mut State) {
        let clients = self.all.scope.clients;
        let graves = self.all.rules.graves;
        let store = self.store(state.store).1.clone();
        let mut there = Somewhere {
            tokens: store.tokens | self.storage(state.storage).1.tokens,
            alive: [u64::MAX; MOST_CLIENTS],
            ..Somewhere::default()
        };
        for client in 0..clients {
            let about = &self.candidate(state.clients[client]).1;
            there.tokens |= about.tokens;
            there.lives[client] = 1 << about.life;
            there.attempts[client] = about.attempts;
            there.alive[client] = about.life;
            there.last_request[client] = about.requests;
            if about.asks {
                there.requests[client] = about.requests;
            }
        }
        for message in state.in_flight() {
            if message.token() > 0 {
                there.tokens |= 1 << message.token();
            }
            let process = message.process();
            if !there.lives(process) {
                continue;
            }
            let id = 1 << message.id();
            match message.says() {
                Says::Acquire | Says::Granted | Says::Denied => {
                    there.requests[process.client] |= id;
                }
                Says::Renew | Says::Renewed | Says::RenewDenied => {
                    there.attempts[process.client] |= id;
                }
                _ => {}
            }
        }
        self.note_the_gone(state, &store, graves, &mut there);
        for (process, request) in store.asked.into_iter().flatten() {
            let asks = match there.grave(process) {
                Some((_, requests)) => requests,
                None => there.requests[process.client],
            };
            // Whatever is asked later has a higher id.
            if asks != 0 {
                match there
                    .gone
                    .iter_mut()
                    .flatten()
                    .find(|gone| gone.0 == process)
                {
                    Some(gone) => gone.1 |= 1 << request,
                    None => there.requests[process.client] |= 1 << request,
                }
            }
        }
        let asked = store.asked.map(|asked| {
            asked
                .map(|(process, request)| (there.process(process), there.request(process, request)))
        });
        let mut flight = state.flight;
        for place in flight
            .iter_mut()
            .take_while(|place| **place != Message::NONE)
        {
            let (says, process) = (place.says(), place.process());
            let id = match says {
                Says::Acquire | Says::Granted | Says::Denied => there.request(process, place.id()),
                Says::Renew | Says::Renewed | Says::RenewDenied if there.lives(process) => {
                    rank(there.attempts[process.client], place.id())
                }
                _ => 0,
            };
            let token = token_rank(there.tokens, place.token());
            *place = Message::new(says, there.process(process), id, token);
        }
        let mut compact = asked == store.asked && flight == state.flight;
        compact &= is_compact(there.tokens | 1);
        for client in 0..clients {
            compact &= there.alive[client] == rank(there.lives[client], there.alive[client])
                && is_compact(there.attempts[client])
                && there.is_last_request_compact(client);
        }
        if compact {
            return;
        }
        let token = |old: Token| token_rank(there.tokens, old);
        state.store = self.rename_store(state.store, (there.tokens, asked), token);
        state.storage = self.rename_storage(state.storage, there.tokens, token);
        for client in 0..clients {
            let (requests, attempts) = (there.requests[client], there.attempts[client]);
            let life = rank(there.lives[client], there.alive[client]);
            let names = (there.tokens, life, requests, attempts);
            state.clients[client] = self.rename_candidate(
                state.clients[client],
                names,
                token,
                |old| compared(requests, old),
                |old| rank(attempts, old),
            );
        }
        state.flight = flight;
        state.sort();
    }

    /// The processes that are gone, each by the first that is known of it: it owns the lease,
    /// or has a message in flight, in the order of what that says.
    fn note_the_gone(
        &self,
        state: &State,
        store: &AboutStore,
        graves: bool,
        there: &mut Somewhere,
    ) {
        let mut messages: Vec<Message> = Vec::new();
        for message in state.in_flight() {
            if !there.lives(message.process()) {
                messages.push(message);
            }
        }
        let owners = store.asked.into_iter().flatten();
        let gone = owners.filter(|(process, _)| !there.lives(*process));
        let gone: Vec<Process> = gone.map(|(process, _)| process).collect();
        if messages.is_empty() && gone.is_empty() {
            return;
        }
        if !graves {
            for process in gone.into_iter().chain(messages.iter().map(|m| m.process())) {
                there.lives[process.client] |= 1 << process.life;
            }
            for message in messages {
                if message.says() == Says::Acquire {
                    there.requests[message.process().client] |= 1 << message.id();
                }
            }
            return;
        }
        messages.sort_by_key(|message| (message.says(), message.token(), message.id()));
        for process in gone {
            there.bury(process, 0);
        }
        for message in messages {
            let acquire = message.says() == Says::Acquire;
            let request = if acquire { 1 << message.id() } else { 0 };
            there.bury(message.process(), request);
        }
    }
}

//! Which states are one, and why that loses nothing.
//!
//! A search visits one state of each class. Each rule maps a state to another that can do
//! the same steps, to states that are mapped alike, and breaks the same rules (a
//! bisimulation), but for those at the end and `late_loss`, `waits` and `acts`: there the
//! other can do all that the first can, and perhaps more (a simulation). So where nothing is
//! broken with the rules, nothing is without them. What is broken where clients or the
//! network do more than they would (`Rules::tellable`) is looked for again where they do
//! not. Each rule has a test that compares both searches.
//!
//! - **Time** is told from now on (`rebased` of the cores): only what is left of a ttl, a
//!   window or a wait matters, and it is never more than its longest. Ages so saturate by
//!   themselves: what is over is 0.
//! - **Copies.** Messages in flight are a set: of two equal ones, whatever the second does
//!   the first can do, since a message may be delivered and stay (it was duplicated). Nor
//!   need a message be duplicated before its copy arrives.
//! - **Late loss** (`late_loss`). A lost message is one that never arrives. It may as well
//!   stay in flight until its place is needed, so nothing is lost while there is room.
//! - **Dead answers** (`dead_answers`). An answer that its client does not await, or whose
//!   process is gone, never changes anything again (`LeaseClient::awaits`).
//! - **Settled requests** (`settled`). A renewal or a release of who is not the recorded
//!   owner changes nothing, now or later, and neither does a fence or a change below
//!   storage's highest token: tokens rise, and the highest outlives a restart. Such a request
//!   is its refusal already, or gone where nobody awaits that. Not with a planted flaw, to
//!   which none of this need apply.
//! - **Dead memories** (`memories`). A renewal that nobody can answer any more, since neither
//!   it nor its answer is in flight, can be forgotten, but for the newest, whose being there
//!   and being the newest is asked for; and so can a token that was called stale, if none as
//!   low is granted any more (`LeaseClient::forgetting`).
//! - **Waits** (`waits`). A tick is long: within it any number of moments pass, and a client
//!   that may send again a moment later may send again. So a wait before an acquire or a
//!   release is over at once. And of a release's three tries one does, since it may arrive
//!   at any time and again and again (`LeaseClient::waited`). This adds the states of clients
//!   that wait for less.
//! - **Overtaken terms** (`overtaken_terms`). What storage remembers of terms below its
//!   highest token words its refusals, and the model's leader does not read the wording
//!   (`FencedStorage::forgetting_overtaken_terms`).
//! - **Unreached tokens** (`unreached`). Storage whose highest token is below all that may yet
//!   be presented to it (in flight, in a client, or granted from now on) takes and refuses
//!   the same as storage that has seen nothing.
//! - **Acts** (`acts`). A leader that has looked acts at once. What it sends may be under way
//!   for as long as it likes, so whatever a late act brings about a late message does. It
//!   takes a place in flight meanwhile, which one that has only looked does not: what needs
//!   that place is found with one message more.
//! - **Graves** (`graves`). Of processes that are gone it does not matter whose they were:
//!   only which of their messages is the recorded owner's. Not with a planted flaw: one
//!   compares the name alone.
//! - **Names** (`names`). Tokens, request ids, renewal ids and lives of a client are compared
//!   and never reckoned with, but that a new one is one more than the highest. So they are
//!   told by their rank among those that are somewhere (`renamed` of the cores). Of a
//!   renewal by a process that is gone nobody reads the id.
//! - **What is over** (`over`). A client whose belief is over, or whose unproven term is, and
//!   one that has just been told that it has none, are one: each call that could tell ends
//!   such a term first (`LeaseClient::after_a_look`).
//! - **Symmetry** (`symmetry`). Clients differ by name alone: of all ways to name them the
//!   first in a fixed order stands for all.
//!
//! By these the world does more than it would. They rest on the cores being right in what
//! they name, and so are off wherever a flaw is planted:
//!
//! - **Refusals** (`refusals`). A refusal makes a client give up what it asks for or has, and
//!   tells it nothing. So a client may be refused at any time, whether anybody refuses or not,
//!   and no refusal need be in flight. That a token was called stale is forgotten with it: a
//!   client gives the term up that it was told of, and what it is granted later is higher.
//! - **Releases** (`releases`). A client that has resigned sends its release at once: as with
//!   acts, that may be under way for as long as the late one waits.
//! - **Unanswered requests** (`unanswered`). A request takes no place in flight if it may come
//!   at any time in any case. A client that asks for the lease may ask again whenever it
//!   likes, so its acquire may arrive as long as it asks. What nobody waits for is nobody's:
//!   - an acquire of a process that is gone, or by a request that its client has given up. The
//!     token that it brings nobody is told. One may arrive at any time. (Of the recorded
//!     owner it would be refused or granted again: here it is granted whenever another's is.)
//!   - a renewal or a release under the recorded owner's token, once that owner is gone or has
//!     given its term up, may arrive at any time; and such a renewal while the owner leads: it
//!     makes its lease longer, and its belief no longer.
//!   - a recorded owner that is gone, or has given up: no request tells it from another such.
//!   - a fence whose answer nobody awaits, or a change. It stays in flight.
//! - **Eager renewals** (`eager`). As with waits: a client may renew at any moment. Of its
//!   renewals only those are remembered that can be answered and can extend the belief, and
//!   of two that were sent at one instant one: the answer to either says the same
//!   (`LeaseClient::eager`). What is left of them in flight is a renewal that nobody awaits.

use deposed_checkers::history::Token;

use super::{
    catalogue::{AboutStore, View},
    message::{GRAVE, Message, Process, Reader, Says},
    scope::{MOST_CLIENTS, MOST_IN_FLIGHT},
    state::State,
    storage_node::StorageNode,
};

/// Which rules are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Nothing is lost while there is room.
    pub late_loss: bool,
    /// Answers that nobody awaits are gone.
    pub dead_answers: bool,
    /// Requests whose answer is settled are answered.
    pub settled: bool,
    /// What changes nothing any more is forgotten by clients.
    pub memories: bool,
    /// What a client waits for before it sends again is over.
    pub waits: bool,
    /// Storage forgets terms below its highest token.
    pub overtaken_terms: bool,
    /// Storage forgets tokens below all that may be presented.
    pub unreached: bool,
    /// A leader that has looked acts at once.
    pub acts: bool,
    /// Processes that are gone are nobody's. Needs `names`.
    pub graves: bool,
    /// Tokens and ids are told by their rank.
    pub names: bool,
    /// A term that is over is none.
    pub over: bool,
    /// A client may be refused at any time.
    pub refusals: bool,
    /// A client that has resigned releases at once.
    pub releases: bool,
    /// What is asked of the store takes no place in flight where nobody waits for the
    /// answer, or it can be sent again. Needs `waits`, `dead_answers`, `settled`, `graves` and
    /// `refusals`.
    pub unanswered: bool,
    /// A renewal may be sent at any time. Needs `memories` and `unanswered`.
    pub eager: bool,
    /// Clients are exchangeable.
    pub symmetry: bool,
}

/// Whose everything is that nobody waits for.
pub(super) const NOBODYS: Process = Process {
    client: GRAVE,
    life: 0,
};
/// Who asks for the lease and waits for no answer.
pub(super) const SOMEBODY: Process = Process {
    client: GRAVE,
    life: 1,
};

impl Rules {
    /// All of them.
    pub const ALL: Rules = Rules {
        late_loss: true,
        dead_answers: true,
        settled: true,
        memories: true,
        waits: true,
        overtaken_terms: true,
        unreached: true,
        acts: true,
        graves: true,
        names: true,
        over: true,
        refusals: true,
        releases: true,
        unanswered: true,
        eager: true,
        symmetry: true,
    };

    /// None of them: every number is what the cores say.
    pub const NONE: Rules = Rules {
        late_loss: false,
        dead_answers: false,
        settled: false,
        memories: false,
        waits: false,
        overtaken_terms: false,
        unreached: false,
        acts: false,
        graves: false,
        names: false,
        over: false,
        refusals: false,
        releases: false,
        unanswered: false,
        eager: false,
        symmetry: false,
    };

    /// Those under which each node does only what it would.
    pub const TELLABLE: Rules = Rules::ALL.tellable();

    /// Those that hold whatever flaw is planted.
    pub const FLAWED: Rules = Rules {
        settled: false,
        memories: false,
        unreached: false,
        graves: false,
        ..Rules::TELLABLE
    };

    /// The same without those by which clients and the network do more than they would:
    /// whatever breaks a rule then has a story.
    pub const fn tellable(self) -> Rules {
        Rules {
            refusals: false,
            releases: false,
            unanswered: false,
            eager: false,
            ..self
        }
    }
}

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
    /// The state that stands for this one's class.
    pub(super) fn representative(&mut self, mut state: State) -> State {
        let rules = self.all.rules;
        if rules.settled {
            self.settle(&mut state);
        }
        if rules.dead_answers {
            self.drop_dead_answers(&mut state);
        }
        if rules.unanswered {
            self.drop_unanswered(&mut state);
        }
        if rules.memories {
            self.drop_dead_memories(&mut state);
        }
        if rules.unreached {
            self.drop_unreached(&mut state);
        }
        if rules.names {
            self.rename(&mut state);
        }
        if rules.symmetry {
            self.exchange(&mut state);
        }
        state
    }

    fn settle(&mut self, state: &mut State) {
        let storage = self.storage(state.storage).1.clone();
        let mut settled = false;
        for at in 0..state.in_flight().count() {
            let message = state.flight[at];
            let (process, token) = (message.process(), message.token());
            let answer = match message.says().reader() {
                Reader::Client => continue,
                Reader::Store => match self.settled(state.store, message) {
                    Some(answer) => answer,
                    None => continue,
                },
                Reader::Storage => {
                    let fence = message.says() == Says::Fence;
                    let again = token == storage.highest && (fence || storage.changed);
                    if token > storage.highest || token == storage.highest && !again {
                        continue;
                    }
                    // One that may yet be answered otherwise is neither answer.
                    let stale = Message::new(Says::Stale, process, 0, token);
                    let mut awaited = self.is_awaited(state, stale);
                    if fence && again {
                        let fenced = Message::new(Says::Fenced, process, 0, token);
                        awaited |= self.is_awaited(state, fenced);
                    }
                    if again && awaited {
                        continue;
                    }
                    Message::new(Says::Stale, process, 0, token)
                }
            };
            let awaited = self.is_awaited(state, answer);
            state.flight[at] = if awaited { answer } else { Message::NONE };
            settled = true;
        }
        if settled {
            state.sort();
        }
    }

    fn drop_dead_answers(&mut self, state: &mut State) {
        let mut dropped = false;
        for at in 0..state.in_flight().count() {
            let message = state.flight[at];
            let of_client = message.says().reader() == Reader::Client;
            if of_client && !self.is_awaited(state, message) {
                state.flight[at] = Message::NONE;
                dropped = true;
            }
        }
        if dropped {
            state.sort();
        }
    }

    /// What is told by `arrives_by_itself` needs no place in flight, and whose it was that
    /// nobody waits for does not matter.
    fn drop_unanswered(&mut self, state: &mut State) {
        if let Some((owner, request)) = self.store(state.store).1.asked[0] {
            let is_grave = owner == NOBODYS && request == 0;
            if !is_grave && !self.is_owner_here(state) {
                let names = [Some((NOBODYS, 0)), None];
                state.store = self.rename_store(state.store, (u64::MAX, names), |token| token);
            }
        }
        let mut changed = false;
        for at in 0..state.in_flight().count() {
            let message = state.flight[at];
            let (process, token) = (message.process(), message.token());
            let other = match message.says() {
                Says::Acquire | Says::Release => Message::NONE,
                Says::Renew => {
                    let answer = Message::new(Says::Renewed, process, message.id(), 0);
                    match self.is_awaited(state, answer) {
                        true => message,
                        false => Message::NONE,
                    }
                }
                Says::Fence => {
                    let answer = Message::new(Says::Fenced, process, 0, token);
                    match self.is_awaited(state, answer) {
                        true => message,
                        false => Message::new(Says::Fence, NOBODYS, 0, token),
                    }
                }
                Says::Write | Says::Delete => Message::new(message.says(), NOBODYS, 0, token),
                _ => message,
            };
            changed |= other != message;
            state.flight[at] = other;
        }
        if changed {
            state.sort();
        }
    }

    /// Whether the recorded owner is a client that asks for the lease by the recorded
    /// request, or has a term of its token.
    pub(super) fn is_owner_here(&mut self, state: &State) -> bool {
        let about = &self.store(state.store).1;
        let Some((owner, request)) = about.asked[0] else {
            return false;
        };
        let token = about.granted;
        if !self.lives(state, owner) {
            return false;
        }
        let client = &self.candidate(state.clients[owner.client]).1;
        client.token == Some(token) || client.asks && client.requests == 1 << request
    }

    fn drop_dead_memories(&mut self, state: &mut State) {
        for client in 0..self.all.scope.clients {
            let about = &self.candidate(state.clients[client]).1;
            if !about.forgets {
                continue;
            }
            let life = about.life;
            let own = Process { client, life };
            let store = &self.store(state.store).1;
            let holding = store.asked.iter().flatten().any(|(owner, _)| *owner == own);
            let mut least = store.counter + u64::from(!holding);
            let mut answerable = 0;
            for message in state.in_flight().filter(|message| message.process() == own) {
                match message.says() {
                    Says::Renew | Says::Renewed | Says::RenewDenied => {
                        answerable |= 1 << message.id();
                    }
                    Says::Granted => least = least.min(message.token()),
                    _ => {}
                }
            }
            state.clients[client] = self.forgetting(state.clients[client], answerable, least);
        }
    }

    fn drop_unreached(&mut self, state: &mut State) {
        let highest = self.storage(state.storage).1.highest;
        if highest == 0 {
            return;
        }
        let store = &self.store(state.store).1;
        // The newest grant may be told again; older ones may not.
        if store.granted <= highest {
            return;
        }
        let mut presented = 0;
        let clients = self.all.scope.clients;
        for &number in &state.clients[..clients] {
            presented |= self.candidate(number).1.tokens;
        }
        for message in state.in_flight() {
            let to_storage = message.says().reader() == Reader::Storage;
            if to_storage || message.says() == Says::Granted {
                presented |= 1 << message.token();
            }
        }
        if presented & (u64::MAX >> (63 - highest)) == 0 {
            state.storage = self.number_storage(StorageNode::new(&self.all.scope));
        }
    }

    fn rename(&mut self, state: &mut State) {
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

    fn exchange(&mut self, state: &mut State) {
        let clients = self.all.scope.clients;
        let mut order = [0, 1, 2, 3];
        let mut hashes = [0; MOST_CLIENTS];
        for (hash, number) in hashes.iter_mut().zip(&state.clients[..clients]) {
            *hash = self.candidate(*number).1.hash;
        }
        order[..clients].sort_by_key(|&client| hashes[client]);
        let mut best = self.exchanged(state, order);
        // Of clients in the same state, what refers to them tells who comes first.
        let mut more = order;
        while next_order(&mut more[..clients], &hashes) {
            let other = self.exchanged(state, more);
            let key =
                |view: &mut Self, state: &State| (state.flight, view.store(state.store).1.hash);
            if key(self, &other) < key(self, &best) {
                best = other;
            }
        }
        *state = best;
    }

    /// The state with its clients in this order.
    fn exchanged(&mut self, state: &State, order: [usize; MOST_CLIENTS]) -> State {
        if order == [0, 1, 2, 3] {
            return *state;
        }
        let mut place_of = [0; MOST_CLIENTS];
        for (place, &client) in order.iter().enumerate() {
            place_of[client] = place;
        }
        let moved = |process: Process| Process {
            client: *place_of.get(process.client).unwrap_or(&process.client),
            ..process
        };
        let asked = self.store(state.store).1.asked;
        let names = asked.map(|asked| asked.map(|(process, request)| (moved(process), request)));
        let mut next = *state;
        if names != asked {
            // No token is renamed: the bits of all are.
            next.store = self.rename_store(state.store, (u64::MAX, names), |token| token);
        }
        for (place, &client) in order.iter().enumerate() {
            next.clients[place] = state.clients[client];
        }
        for place in &mut next.flight {
            if *place == Message::NONE {
                break;
            }
            *place = Message::new(
                place.says(),
                moved(place.process()),
                place.id(),
                place.token(),
            );
        }
        next.sort();
        next
    }
}

/// The next order in which clients of one hash change places; false after the last.
fn next_order(order: &mut [usize], hashes: &[u64; MOST_CLIENTS]) -> bool {
    let mut begin = 0;
    while begin < order.len() {
        let hash = hashes[order[begin]];
        let alike = order[begin..]
            .iter()
            .take_while(|&&client| hashes[client] == hash)
            .count();
        if next_permutation(&mut order[begin..begin + alike]) {
            return true;
        }
        begin += alike;
    }
    false
}

/// The next in the order of the alphabet; after the last the first again, and false.
fn next_permutation(row: &mut [usize]) -> bool {
    let Some(pivot) = row.windows(2).rposition(|pair| pair[0] < pair[1]) else {
        row.reverse();
        return false;
    };
    let swap = row.iter().rposition(|&other| other > row[pivot]);
    row.swap(pivot, swap.expect("the next one is larger"));
    row[pivot + 1..].reverse();
    true
}

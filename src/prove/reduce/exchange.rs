//! Of all ways to name the clients, the first.

use crate::prove::{
    catalogue::View,
    message::{Message, Process},
    scope::MOST_CLIENTS,
    state::State,
};

impl View<'_> {
    pub(super) fn exchange(&mut self, state: &mut State) {
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

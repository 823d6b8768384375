//! What in flight changes nothing, and whose everything is that nobody waits for.

use super::NOBODYS;
use crate::prove::{
    catalogue::View,
    message::{Message, Reader, Says},
    state::State,
};

impl View<'_> {
    pub(super) fn settle(&mut self, state: &mut State) {
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

    pub(super) fn drop_dead_answers(&mut self, state: &mut State) {
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
    pub(super) fn drop_unanswered(&mut self, state: &mut State) {
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
    pub(in crate::prove) fn is_owner_here(&mut self, state: &State) -> bool {
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
}

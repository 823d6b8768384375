//! Who stands still: a leader that does not renew when it is due. That is why its lease runs
//! out, so it is told, as a pause.

use deposed_checkers::history::Body;
use serde_json::{Value, json};

use super::{
    super::{
        candidate::CandidateStep,
        message::{Says, name_of},
    },
    scribe::Scribe,
};

impl Scribe {
    /// Notes, before a tick passes, who stands still over it.
    pub(super) fn note_who_stands_still(&mut self) {
        for client in 0..self.clients.len() {
            let candidate = &self.clients[client];
            let wakes = candidate.step(&self.scope, client, CandidateStep::Wake);
            let is_due = wakes.1.sent.map(|sent| sent.says()) == Some(Says::Renew);
            if !is_due || !candidate.core.is_leader(0) || self.stands_still[client].is_some() {
                continue;
            }
            self.stands_still[client] = Some(self.events.len());
            self.nemesis("pause", json!({ "node": name_of(client) }));
        }
    }

    /// A client does something, or reads what comes: it stands still no more.
    pub(super) fn goes_on(&mut self, client: usize) {
        let Some(at) = self.stands_still[client].take() else {
            return;
        };
        let pause = &mut self.events[at];
        let length = self.now - pause.time;
        if let Body::Nemesis(_, Value::Object(value)) = &mut pause.body {
            value.insert("for".to_owned(), length.into());
        }
        self.nemesis("resume", json!({ "node": name_of(client) }));
    }
}

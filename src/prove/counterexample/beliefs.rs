//! What clients tell of their beliefs: each that began, moved or ended.

use deposed_checkers::history::{Body, F, Follow, Kind, Lead, Name, Nanos, Observation, Token};

use super::{
    super::{
        message::{Process, name_of},
        store_node::lease,
    },
    TICK,
    scribe::Scribe,
};

/// A belief as it was last recorded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    holder: Name,
    token: Token,
    until: Option<Nanos>,
}

impl Scribe {
    /// Each belief that began, moved or ended.
    pub(super) fn tell_beliefs(&mut self) {
        for client in 0..self.clients.len() {
            let candidate = &self.clients[client];
            let life = candidate.life;
            let holder = Process { client, life }.holder();
            let remaining = candidate.core.remaining(0);
            let ticks = match self.skipped & 1 << client {
                0 => remaining,
                _ => self.scope.drift.longest(remaining, candidate.since_skip),
            };
            let belief = candidate.core.belief();
            let now = belief.map(|belief| Told {
                holder,
                token: belief.token,
                until: belief.until.map(|_| self.now + ticks * TICK),
            });
            let before = self.told[client].clone();
            // One that is over by itself is not told of again.
            if now == before || (remaining == 0 && now.is_some() && before.is_some()) {
                continue;
            }
            let token = |told: &Option<Told>| told.as_ref().map(|told| told.token);
            if let Some(before) = before.filter(|_| token(&now) != token(&self.told[client])) {
                let follow = Follow {
                    lease: lease(),
                    holder: before.holder,
                    token: Some(before.token),
                };
                self.observe(name_of(client), Observation::Follow(follow));
            }
            if let Some(told) = &now {
                let sent = self.send_behind(client);
                let lead = Lead {
                    lease: lease(),
                    holder: told.holder.clone(),
                    token: Some(told.token),
                    until: told.until,
                    sent,
                };
                self.observe(name_of(client), Observation::Lead(lead));
            }
            self.told[client] = now;
        }
    }

    /// When the call was sent whose answer made a belief begin or move.
    fn send_behind(&self, client: usize) -> Option<Nanos> {
        let completed = self.events.iter().rev().find(|event| {
            event.process == name_of(client)
                && event.kind == Kind::Ok
                && matches!(event.body, Body::Complete(F::Acquire | F::Renew, _))
        })?;
        let invoked = self
            .events
            .iter()
            .find(|event| event.kind == Kind::Invoke && event.call == completed.call)?;
        Some(invoked.time)
    }
}

//! What a search of all states asks of a store beside what it does: another store that
//! behaves alike, and what can change nothing any more. Nothing else calls these.

use deposed_checkers::history::{Name, Nanos, Token};

use super::{LeaseStore, Owner};

impl LeaseStore {
    /// The same store with `now` as time 0. Stores that behave alike from here on
    /// are equal, so that a search of all states meets each once.
    pub fn rebased(&self, now: Nanos) -> Self {
        let mut store = self.clone();
        store.closed_until = store.closed_until.saturating_sub(now);
        if store.closed_until == 0 {
            store.closed_for = 0;
        }
        for owner in store
            .leases
            .values_mut()
            .filter_map(|lease| lease.owner.as_mut())
        {
            owner.expiry = owner.expiry.saturating_sub(now);
            owner.free_at = owner.free_at.saturating_sub(now);
        }
        store
    }

    /// Whether a renewal or a release by this holder under this token can change anything,
    /// now or after a restart. If it cannot now it never will: a token is granted once.
    pub fn heeds(&self, lease: &Name, holder: &Name, token: Token) -> bool {
        let owner = self
            .leases
            .get(lease)
            .and_then(|lease| lease.owner.as_ref());
        owner.is_some_and(|owner| owner.is(holder, token) && !owner.released)
    }

    /// The same store with its tokens, and who asked for them in which request, told by
    /// other names. Where the new ones stand in the order of the old (and 0 stays 0), it
    /// behaves alike, but for a planted flaw that reckons with a token's digits.
    pub fn renamed(
        &self,
        mut token: impl FnMut(Token) -> Token,
        mut asked: impl FnMut(&Name, u64) -> (Name, u64),
    ) -> Self {
        let mut store = self.clone();
        store.floor = token(store.floor);
        for lease in store.leases.values_mut() {
            lease.counter = token(lease.counter);
            if let Some(Owner { record, .. }) = &mut lease.owner {
                record.token = token(record.token);
                (record.holder, record.request) = asked(&record.holder, record.request);
            }
        }
        store
    }
}

#[cfg(test)]
mod tests;

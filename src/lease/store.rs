//! The authority: grants leases by name and issues their fencing tokens.

mod proof;
mod restore;

use std::collections::BTreeMap;

use deposed_checkers::history::{Name, Nanos, Token};
use serde::{Deserialize, Serialize};

use super::message::{Denial, Extension, Grant, Release};
use super::record::{LeaseRecord, OwnerRecord};
use crate::flaw::{Flaw, Planted};

/// What a store accepts, and its lock-delay.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StoreLimits {
    /// The shortest ttl it grants.
    pub min_ttl: Nanos,
    /// The longest ttl it grants.
    pub max_ttl: Nanos,
    /// The longest name of a lease or a holder, in bytes.
    pub max_name_len: usize,
    /// How long after an *expiry* a lease stays closed to new owners.
    pub lock_delay: Nanos,
}

impl Default for StoreLimits {
    /// Any ttl from 1 ms to an hour, names of 256 bytes, no lock-delay.
    fn default() -> Self {
        Self {
            min_ttl: 1_000_000,
            max_ttl: 3_600_000_000_000,
            max_name_len: 256,
            lock_delay: 0,
        }
    }
}

/// Grants leases and issues fencing tokens, per lease: 1, 2, 3, … in the order of grants.
///
/// What [`record`](Self::record) returns must be durable before the answer that
/// changed it leaves; [`recover`](Self::recover) takes it back. Every call is
/// constant work but for the look-up by name, and memory is bounded by the number
/// of leases that were ever granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseStore {
    limits: StoreLimits,
    planted: Planted,
    leases: BTreeMap<Name, Lease>,
    /// No token up to here is granted. 0 unless restored.
    floor: Token,
    /// For how long from a restart nothing is granted, while that time is not over.
    closed_for: Nanos,
    /// Before this instant nothing is granted. 0 unless restored.
    closed_until: Nanos,
}

/// One lease, granted at least once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lease {
    counter: Token,
    owner: Option<Owner>,
}

/// The last owner. It stays on record until it is replaced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Owner {
    record: OwnerRecord,
    released: bool,
    /// Exclusive: at this instant the owner's time is over.
    expiry: Nanos,
    /// At this instant others may have the lease: expiry plus lock-delay.
    free_at: Nanos,
}

/// Who holds a lease right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holding<'a> {
    /// The holder.
    pub holder: &'a Name,
    /// Its token.
    pub token: Token,
    /// When its time is over, exclusive, on the store's clock.
    pub expiry: Nanos,
}

impl LeaseStore {
    /// A store that never granted anything.
    pub fn new(limits: StoreLimits, planted: Planted) -> Self {
        Self {
            limits,
            planted,
            leases: BTreeMap::new(),
            floor: 0,
            closed_for: 0,
            closed_until: 0,
        }
    }

    /// A store that comes back with what it had made durable.
    ///
    /// How long it was away is unknown, so each recorded owner that had not released
    /// gets its whole ttl again, and its whole lock-delay after that, even if it had
    /// expired; until it is replaced it may then renew.
    pub fn recover(
        limits: StoreLimits,
        planted: Planted,
        records: BTreeMap<Name, LeaseRecord>,
        now: Nanos,
    ) -> Self {
        let revive = |mut record: LeaseRecord| {
            if let Some(owner) = &mut record.owner
                && planted.has(Flaw::LockDelayForgotten)
            {
                owner.lock_delay = 0;
            }
            let owner = record.owner;
            let owner = owner.filter(|_| !planted.has(Flaw::ForgetsLease));
            Lease {
                counter: record.counter,
                owner: owner.map(|owner| Owner::armed(owner, record.released, now)),
            }
        };
        let leases = records
            .into_iter()
            .map(|(name, record)| (name, revive(record)))
            .collect();
        Self {
            limits,
            planted,
            leases,
            floor: 0,
            closed_for: 0,
            closed_until: 0,
        }
    }

    /// Asks for a lease. It is granted when it was never held, was released, or is
    /// past its expiry and lock-delay; at exactly that instant it is free.
    ///
    /// The recorded owner's own `request` again gets the same answer and changes
    /// nothing, so that a retry or a duplicated frame does no harm: not after an
    /// expiry either, since whoever retries counts from its first send. A *new*
    /// request from the live holder is refused: were it handed the same token, a
    /// delayed release of the first grant would end the second.
    ///
    /// # Errors
    ///
    /// [`Held`](Denial::Held), [`Superseded`](Denial::Superseded),
    /// [`TtlOutOfBounds`](Denial::TtlOutOfBounds), [`BadName`](Denial::BadName),
    /// [`TokensSpent`](Denial::TokensSpent).
    pub fn acquire(
        &mut self,
        now: Nanos,
        lease: &Name,
        holder: &Name,
        request: u64,
        ttl: Nanos,
    ) -> Result<Grant, Denial> {
        self.check_name(lease)?;
        self.check_name(holder)?;
        self.check_ttl(ttl)?;
        let planted = self.planted;
        let mut last = self.floor;
        let mut token = None;
        if let Some(found) = self.leases.get_mut(lease) {
            last = last.max(found.counter);
            if let Some(owner) = &mut found.owner {
                let own = owner.record.holder == *holder;
                if own && request < owner.record.request {
                    return Err(Denial::Superseded);
                }
                let taken = !owner.is_free(now, planted);
                if own
                    && request == owner.record.request
                    && !(taken && planted.has(Flaw::AcquireTwice))
                {
                    return match owner.released {
                        true => Err(Denial::Superseded),
                        false => Ok(owner.grant(false)),
                    };
                }
                if own && owner.is_live(now) && planted.has(Flaw::SameTokenAgain) {
                    owner.record.request = request;
                    owner.extend(now, ttl);
                    return Ok(owner.grant(true));
                }
                if taken {
                    return Err(Denial::Held {
                        remaining: owner.free_at.saturating_sub(now),
                    });
                }
            }
            if planted.has(Flaw::SameHolderSameToken) {
                let old = found
                    .owner
                    .as_ref()
                    .filter(|old| old.record.holder == *holder);
                token = old.map(|old| old.record.token);
            }
        }
        if now < self.closed_until {
            return Err(Denial::Held {
                remaining: self.closed_until - now,
            });
        }
        let token = token.or(self.token_after(lease, last));
        let token = token.ok_or(Denial::TokensSpent)?;
        let record = OwnerRecord {
            holder: holder.clone(),
            request,
            token,
            ttl,
            lock_delay: self.limits.lock_delay,
        };
        let owner = Owner::armed(record, false, now);
        let grant = owner.grant(true);
        self.leases.insert(
            lease.clone(),
            Lease {
                counter: token,
                owner: Some(owner),
            },
        );
        Ok(grant)
    }

    /// Extends a live owner's lease to `ttl` from now; never shortens it. `_attempt`
    /// names the try in histories, and a repeated try extends again: that is
    /// harmless, as its sender counts from the send.
    ///
    /// # Errors
    ///
    /// [`Expired`](Denial::Expired) to the recorded owner from its expiry on,
    /// [`NotOwner`](Denial::NotOwner) to anyone else,
    /// [`TtlOutOfBounds`](Denial::TtlOutOfBounds).
    pub fn renew(
        &mut self,
        now: Nanos,
        lease: &Name,
        holder: &Name,
        token: Token,
        _attempt: u64,
        ttl: Nanos,
    ) -> Result<Extension, Denial> {
        self.check_ttl(ttl)?;
        let planted = self.planted;
        let owner = self.recorded_owner(lease).ok_or(Denial::NotOwner)?;
        let by_name = planted.has(Flaw::RenewByName) && same_name(&owner.record.holder, holder);
        let checked = !planted.has(Flaw::RenewsTheDead);
        if checked && (owner.released || !(owner.is(holder, token) || by_name)) {
            return Err(Denial::NotOwner);
        }
        if checked && !owner.is_live(now) {
            return Err(Denial::Expired);
        }
        let doomed = planted.has(Flaw::StaleExpiry) && owner.expiry <= owner.next_sweep(now);
        let durable_changed = !doomed && owner.extend(now, ttl);
        Ok(Extension {
            ttl,
            durable_changed,
        })
    }

    /// Gives a lease back, before its expiry or after it while nobody has replaced
    /// the owner. It is free at once, with no lock-delay; its token stays spent.
    ///
    /// Releasing again what is released is answered alike and changes nothing, so
    /// that a release whose answer was lost can be retried.
    ///
    /// # Errors
    ///
    /// [`NotOwner`](Denial::NotOwner).
    pub fn release(
        &mut self,
        _now: Nanos,
        lease: &Name,
        holder: &Name,
        token: Token,
    ) -> Result<Release, Denial> {
        let planted = self.planted;
        let found = self.leases.get_mut(lease).ok_or(Denial::NotOwner)?;
        let owner = found.owner.as_mut().ok_or(Denial::NotOwner)?;
        if !owner.is(holder, token) && !planted.has(Flaw::ReleasesAnything) {
            return Err(Denial::NotOwner);
        }
        let fresh = !owner.released;
        owner.released = true;
        (owner.expiry, owner.free_at) = (0, 0);
        if fresh && planted.has(Flaw::ReleaseResetsCounter) {
            found.counter = found.counter.saturating_sub(1);
        }
        Ok(Release { fresh })
    }

    /// What must be durable of a lease before the answer that changed it leaves;
    /// `None` while it was never granted.
    pub fn record(&self, lease: &Name) -> Option<LeaseRecord> {
        let lease = self.leases.get(lease)?;
        Some(lease.record(self.planted))
    }

    /// Every lease's record, by name.
    pub fn records(&self) -> impl Iterator<Item = (&Name, LeaseRecord)> {
        self.leases
            .iter()
            .map(|(name, lease)| (name, lease.record(self.planted)))
    }

    /// Who holds a lease at `now`.
    pub fn holding(&self, now: Nanos, lease: &Name) -> Option<Holding<'_>> {
        let owner = self.leases.get(lease)?.owner.as_ref()?;
        owner.is_live(now).then_some(Holding {
            holder: &owner.record.holder,
            token: owner.record.token,
            expiry: owner.expiry,
        })
    }

    fn recorded_owner(&mut self, lease: &Name) -> Option<&mut Owner> {
        self.leases.get_mut(lease)?.owner.as_mut()
    }

    /// The token after `last`; `None` once they are spent.
    fn token_after(&self, lease: &Name, last: Token) -> Option<Token> {
        if self.planted.has(Flaw::NarrowCounter) {
            let found = self.leases.get(lease);
            return Some(found.map_or(250, |found| (found.counter + 1) % 256));
        }
        if self.planted.has(Flaw::RandomTokens) {
            return Some((last + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16);
        }
        last.checked_add(1)
    }

    fn check_name(&self, name: &Name) -> Result<(), Denial> {
        match name.is_empty() || name.len() > self.limits.max_name_len {
            true => Err(Denial::BadName),
            false => Ok(()),
        }
    }

    fn check_ttl(&self, ttl: Nanos) -> Result<(), Denial> {
        let (min, max) = (self.limits.min_ttl, self.limits.max_ttl);
        match ttl == 0 || ttl < min || ttl > max {
            true => Err(Denial::TtlOutOfBounds { min, max }),
            false => Ok(()),
        }
    }
}

impl Lease {
    fn record(&self, planted: Planted) -> LeaseRecord {
        let forgets = planted.has(Flaw::ForgetsCounter);
        LeaseRecord {
            counter: if forgets { 0 } else { self.counter },
            owner: self.owner.as_ref().map(|owner| owner.record.clone()),
            released: self.owner.as_ref().is_some_and(|owner| owner.released),
        }
    }
}

impl Owner {
    /// An owner whose ttl begins now, unless it has released.
    fn armed(record: OwnerRecord, released: bool, now: Nanos) -> Self {
        let mut owner = Self {
            record,
            released,
            expiry: 0,
            free_at: 0,
        };
        if !released {
            owner.extend(now, owner.record.ttl);
        }
        owner
    }

    /// Moves the expiry to `ttl` from now unless it is later already; whether the
    /// record changed.
    fn extend(&mut self, now: Nanos, ttl: Nanos) -> bool {
        self.expiry = self.expiry.max(now.saturating_add(ttl));
        self.free_at = self.expiry.saturating_add(self.record.lock_delay);
        let grown = ttl > self.record.ttl;
        self.record.ttl = self.record.ttl.max(ttl);
        grown
    }

    /// When a sweep, every half ttl, next decides what runs out before the one after
    /// it. Only with a planted flaw: a correct store decides when it is asked.
    fn next_sweep(&self, now: Nanos) -> Nanos {
        let every = (self.record.ttl / 2).max(1);
        (now / every + 1) * every
    }

    fn is(&self, holder: &Name, token: Token) -> bool {
        self.record.holder == *holder && self.record.token == token
    }

    fn is_live(&self, now: Nanos) -> bool {
        !self.released && now < self.expiry
    }

    fn is_free(&self, now: Nanos, planted: Planted) -> bool {
        let early = if planted.has(Flaw::GrantsEarly) {
            self.record.ttl / 10
        } else {
            0
        };
        self.released || now >= self.free_at.saturating_sub(early)
    }

    fn grant(&self, fresh: bool) -> Grant {
        Grant {
            token: self.record.token,
            ttl: self.record.ttl,
            fresh,
        }
    }
}

/// Whether two holders are processes of one name: what stands before the nonce.
fn same_name(a: &Name, b: &Name) -> bool {
    a.split('#').next() == b.split('#').next()
}

#[cfg(all(test, feature = "flaws"))]
mod flaws;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

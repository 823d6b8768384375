//! Lease and data in one state machine, as in etcd: a write is compared with the
//! lease's owner and applied in one step.

use std::collections::BTreeMap;

use deposed_checkers::history::{Name, Nanos, Token};
use serde::{Deserialize, Serialize};

use super::fenced::{Applied, FencedStorage, Refusal, ShardRecord, Value};
use crate::{
    flaw::{Flaw, Planted},
    lease::{LeaseRecord, LeaseStore, StoreLimits},
};

/// Key-value storage that is its own lease store: a write lands only if its token is
/// that of the lease's owner, who must be live by this store's clock. Expired or
/// released means no owner.
///
/// It needs no election barrier. [`FencedStorage`] learns of a new leader from the
/// leader, and before that takes the old one's writes; here the grant itself, which
/// is the next step of the same state machine, refuses every earlier token. A new
/// leader's first read sees all that will ever land under an earlier token, without
/// a [`fence`](Self::fence).
///
/// What [`record`](Self::record) returns, lease and data, must become durable in one
/// transaction before the answer that changed it leaves; [`recover`](Self::recover)
/// takes it back. Were they committed apart, a power loss between the two could bring
/// back an earlier owner beside a later owner's data.
///
/// ```
/// use deposed::flaw::Planted;
/// use deposed::lease::{Denial, StoreLimits};
/// use deposed::storage::{CompareAndSwapStorage, Refusal};
///
/// let (lease, key) = ("leader".into(), "k".into());
/// let mut storage = CompareAndSwapStorage::new(StoreLimits::default(), Planted::NONE);
/// let ttl = 10_000_000_000;
/// storage.leases_mut().acquire(0, &lease, &"a#1".into(), 1, ttl).unwrap();
/// storage.write(1, &lease, 1, 1, &key, "of a".into()).unwrap();
///
/// // Its time is over: nobody has taken the lease yet, and its write is refused.
/// let late = storage.write(ttl, &lease, 1, 2, &key, "late".into());
/// assert!(matches!(late, Err(Refusal::NotOwner { presented: 1, .. })));
///
/// // Another is granted the lease, and that is all the barrier there is.
/// storage.leases_mut().acquire(ttl, &lease, &"b#1".into(), 1, ttl).unwrap();
/// let zombie = storage.write(ttl, &lease, 1, 2, &key, "of the zombie".into());
/// assert!(matches!(zombie, Err(Refusal::StaleToken { presented: 1, seen: 2, .. })));
/// assert_eq!(storage.read(&lease, &key).unwrap(), "of a");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompareAndSwapStorage {
    planted: Planted,
    leases: LeaseStore,
    /// Compares nothing that the owner's token has not passed.
    data: FencedStorage,
}

/// All there is to one lease and its data; the whole of it is durable, together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CompareAndSwapRecord {
    /// The lease.
    pub lease: LeaseRecord,
    /// What was written under it; left out: nothing yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ShardRecord>,
}

impl CompareAndSwapStorage {
    /// Storage that never granted anything.
    pub fn new(limits: StoreLimits, planted: Planted) -> Self {
        Self {
            planted,
            leases: LeaseStore::new(limits, planted),
            data: FencedStorage::new(planted),
        }
    }

    /// Storage that comes back with what it had made durable; its leases as in
    /// [`LeaseStore::recover`].
    pub fn recover(
        limits: StoreLimits,
        planted: Planted,
        records: BTreeMap<Name, CompareAndSwapRecord>,
        now: Nanos,
    ) -> Self {
        let mut leases = BTreeMap::new();
        let mut data = BTreeMap::new();
        for (name, record) in records {
            if let Some(shard) = record.data {
                data.insert(name.clone(), shard);
            }
            leases.insert(name, record.lease);
        }
        Self {
            planted,
            leases: LeaseStore::recover(limits, planted, leases, now),
            data: FencedStorage::recover(planted, data),
        }
    }

    /// The leases, to look at.
    pub fn leases(&self) -> &LeaseStore {
        &self.leases
    }

    /// The leases, to acquire, renew and release. What changed is part of the lease's
    /// [`record`](Self::record).
    pub fn leases_mut(&mut self) -> &mut LeaseStore {
        &mut self.leases
    }

    /// Writes a key, if the token is the owner's at `now`. `seq` rises within a token,
    /// in one row with deletes; the same (token, seq) again, from the owner, repeats
    /// the answer.
    ///
    /// # Errors
    ///
    /// [`StaleToken`](Refusal::StaleToken) below the last token granted,
    /// [`NotOwner`](Refusal::NotOwner) if the last one's time is over or the token was
    /// never granted, [`OldSeq`](Refusal::OldSeq) below the token's last seq.
    pub fn write(
        &mut self,
        now: Nanos,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
        value: Value,
    ) -> Result<Applied, Refusal> {
        if !self.planted.has(Flaw::ComparesRemoteOwner) {
            self.compare(now, lease, token, Some(seq))?;
        }
        self.data.write(lease, token, seq, key, value)
    }

    /// Deletes a key, if the token is the owner's at `now`; one that is absent may be
    /// deleted.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub fn delete(
        &mut self,
        now: Nanos,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
    ) -> Result<Applied, Refusal> {
        if !self.planted.has(Flaw::ComparesRemoteOwner) {
            self.compare(now, lease, token, Some(seq))?;
        }
        self.data.delete(lease, token, seq, key)
    }

    /// Compares, and swaps nothing: whether a write under this token would land at
    /// `now`. No leader needs it; see the type.
    ///
    /// # Errors
    ///
    /// [`StaleToken`](Refusal::StaleToken), [`NotOwner`](Refusal::NotOwner).
    pub fn fence(&self, now: Nanos, lease: &Name, token: Token) -> Result<(), Refusal> {
        self.compare(now, lease, token, None)
    }

    /// What a key holds.
    pub fn read(&self, lease: &Name, key: &Name) -> Option<&Value> {
        self.data.read(lease, key)
    }

    /// What must become durable, in one transaction, before the answer that changed
    /// it leaves; `None` while the lease was never granted.
    pub fn record(&self, lease: &Name) -> Option<CompareAndSwapRecord> {
        Some(CompareAndSwapRecord {
            lease: self.leases.record(lease)?,
            data: self.data.record(lease),
        })
    }

    /// The last token granted, per lease: every lower one is refused.
    pub fn highest(&self) -> impl Iterator<Item = (&Name, Token)> {
        self.leases
            .records()
            .map(|(lease, record)| (lease, record.counter))
    }

    /// Whether the token is the live owner's.
    fn compare(
        &self,
        now: Nanos,
        lease: &Name,
        presented: Token,
        seq: Option<u64>,
    ) -> Result<(), Refusal> {
        let owner = self.leases.holding(now, lease);
        if owner.is_some_and(|owner| owner.token == presented) {
            return Ok(());
        }
        let granted = self.leases.record(lease).map_or(0, |lease| lease.counter);
        let applied_before = self.data.certainty(lease, presented, seq);
        Err(if presented < granted {
            Refusal::StaleToken {
                presented,
                seen: granted,
                applied_before,
            }
        } else {
            Refusal::NotOwner {
                presented,
                granted,
                applied_before,
            }
        })
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

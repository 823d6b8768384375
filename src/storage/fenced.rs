//! One storage node that remembers the highest token it has seen, per lease.

mod proof;

use std::collections::{BTreeMap, BTreeSet};

use compact_str::CompactString;
use deposed_checkers::history::{Name, Token};
use serde::{Deserialize, Serialize};

use crate::flaw::{Flaw, Planted};

/// What a key holds. Inline up to 24 bytes.
pub type Value = CompactString;

/// How many terms of a lease are remembered one by one.
pub const TERMS_KEPT: usize = 8;

/// Key-value storage whose writes carry a fencing token. Each lease has keys of its own.
///
/// A token equal to the highest seen is accepted, a lower one refused: the same
/// leader goes on, an earlier one does not. Storage can refuse token 1 only after it
/// has seen token 2, which is why a new leader calls [`fence`](Self::fence) before
/// its first read or write.
///
/// What [`record`](Self::record) returns must become durable, all of it together,
/// before the answer that changed it leaves; [`recover`](Self::recover) takes it
/// back. Memory is bounded by the keys and leases, not by the history.
///
/// ```
/// use deposed::flaw::Planted;
/// use deposed::storage::{FencedStorage, Refusal};
///
/// let (lease, key) = ("leader".into(), "k".into());
/// let mut storage = FencedStorage::new(Planted::NONE);
/// storage.fence(&lease, 7)?;
/// storage.write(&lease, 7, 1, &key, "of the leader".into())?;
///
/// // The leader is paused; another is elected, under token 8, and fences.
/// storage.fence(&lease, 8)?;
/// let zombie = storage.write(&lease, 7, 2, &key, "of the zombie".into());
/// assert!(matches!(zombie, Err(Refusal::StaleToken { presented: 7, seen: 8, .. })));
/// assert_eq!(storage.read(&lease, &key).unwrap(), "of the leader");
/// # Ok::<(), Refusal>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FencedStorage {
    planted: Planted,
    shards: BTreeMap<Name, ShardRecord>,
    /// The highest token by lease and key. Only with a planted flaw.
    by_key: BTreeMap<(Name, Name), Token>,
    /// Checked and to be taken, by lease, token and seq. Only with a planted flaw.
    checked: BTreeSet<(Name, Token, u64)>,
}

/// All there is to one lease's data; the whole of it is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShardRecord {
    /// The highest token seen. Deletes do not touch it.
    pub highest: Token,
    /// The newest terms seen, oldest first, [`TERMS_KEPT`] at most.
    #[serde(default)]
    pub terms: Vec<TermRecord>,
    /// The highest token seen that `terms` no longer holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<Token>,
    /// The keys that are there.
    #[serde(default)]
    pub values: BTreeMap<Name, Value>,
}

/// What was taken under one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TermRecord {
    /// The token.
    pub token: Token,
    /// Whether a fence was taken under it.
    #[serde(default)]
    pub fenced: bool,
    /// The last write or delete applied under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<u64>,
}

/// A write or a delete was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Applied {
    /// False: the same (token, seq) again, the answer repeated, nothing changed.
    pub fresh: bool,
}

/// Whether an earlier copy of what is refused can have been applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// It surely was not, here: the caller may count it as failed.
    NotApplied,
    /// It may have been, its answer lost: the outcome is indefinite.
    MayHaveApplied,
}

/// Why storage refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// A newer leader has been here.
    #[error("token {presented} is stale: token {seen} has been seen")]
    StaleToken {
        /// The token that came.
        presented: Token,
        /// The highest token seen.
        seen: Token,
        /// Whether an earlier copy of the same operation can have been applied
        /// before `seen` came.
        applied_before: Certainty,
    },
    /// A later operation under the same token has been applied. Whether this one
    /// was before that is not known.
    #[error("seq {presented_seq} is old: seq {last_seq} has been applied")]
    OldSeq {
        /// The seq that came.
        presented_seq: u64,
        /// The last one applied under the token.
        last_seq: u64,
    },
    /// Nobody leads under this token: its time is over and nobody has followed, or it
    /// was never granted. Only storage that grants the leases itself can tell.
    #[error("token {presented} is no owner's: the last one granted is {granted}")]
    NotOwner {
        /// The token that came.
        presented: Token,
        /// The last token granted.
        granted: Token,
        /// Whether an earlier copy of the same operation can have been applied while
        /// the token was the owner's.
        applied_before: Certainty,
    },
}

impl Refusal {
    /// The error's name in a history and on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Refusal::StaleToken { .. } => "stale-token",
            Refusal::OldSeq { .. } => "old-seq",
            Refusal::NotOwner { .. } => "not-owner",
        }
    }
}

impl FencedStorage {
    /// Storage that has seen no token.
    pub fn new(planted: Planted) -> Self {
        Self::recover(planted, BTreeMap::new())
    }

    /// Storage that comes back with what it had made durable.
    pub fn recover(planted: Planted, mut records: BTreeMap<Name, ShardRecord>) -> Self {
        if planted.has(Flaw::ForgetsHighest) {
            records.values_mut().for_each(|shard| shard.highest = 0);
        }
        Self {
            planted,
            shards: records,
            by_key: BTreeMap::new(),
            checked: BTreeSet::new(),
        }
    }

    /// Writes a key. `seq` rises within a token, in one row with deletes: whoever
    /// gives two operations one seq loses the second.
    ///
    /// # Errors
    ///
    /// [`StaleToken`](Refusal::StaleToken) below the highest token seen,
    /// [`OldSeq`](Refusal::OldSeq) below the token's last seq.
    pub fn write(
        &mut self,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
        value: Value,
    ) -> Result<Applied, Refusal> {
        self.apply(lease, token, seq, key, |values| {
            values.insert(key.clone(), value);
        })
    }

    /// Deletes a key; one that is absent may be deleted. The token stays seen.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub fn delete(
        &mut self,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
    ) -> Result<Applied, Refusal> {
        self.apply(lease, token, seq, key, |values| {
            values.remove(key);
        })
    }

    /// The election barrier: from here on every lower token is refused.
    ///
    /// # Errors
    ///
    /// [`StaleToken`](Refusal::StaleToken) below the highest token seen.
    pub fn fence(&mut self, lease: &Name, token: Token) -> Result<(), Refusal> {
        if self.planted.has(Flaw::FenceIsANoOp) {
            return Ok(());
        }
        let shard = self.admit(lease, token, None, |term| term.fenced)?;
        shard.term(token).fenced = true;
        shard.forget_old_terms();
        Ok(())
    }

    /// Checks a change's token ahead of the change. Only with a planted flaw: what is
    /// found good here is taken later without another look.
    pub fn check(&mut self, lease: &Name, token: Token, seq: u64) {
        let seen = self.shards.get(lease).map_or(0, |shard| shard.highest);
        if token >= seen && self.planted.has(Flaw::CheckThenAct) {
            self.checked.insert((lease.clone(), token, seq));
        }
    }

    /// What a key holds. Reads carry no token; a leader fences before its first.
    pub fn read(&self, lease: &Name, key: &Name) -> Option<&Value> {
        self.shards.get(lease)?.values.get(key)
    }

    /// What must become durable, together, before the answer that changed it leaves;
    /// `None` while the lease was never named. Copies every value: see
    /// [`shard`](Self::shard).
    pub fn record(&self, lease: &Name) -> Option<ShardRecord> {
        self.shards.get(lease).cloned()
    }

    /// [`record`](Self::record), to look at.
    pub fn shard(&self, lease: &Name) -> Option<&ShardRecord> {
        self.shards.get(lease)
    }

    /// The highest token seen, per lease.
    pub fn highest(&self) -> impl Iterator<Item = (&Name, Token)> {
        self.shards
            .iter()
            .map(|(lease, shard)| (lease, shard.highest))
    }

    /// Whether a write or delete with this token and seq (a fence: no seq) can have been
    /// applied, as far as is remembered.
    pub(super) fn certainty(&self, lease: &Name, token: Token, seq: Option<u64>) -> Certainty {
        let Some(shard) = self.shards.get(lease) else {
            return Certainty::NotApplied;
        };
        shard.certainty(token, |term| match seq {
            Some(seq) => term.last_seq.is_some_and(|last| seq <= last),
            None => term.fenced,
        })
    }

    fn apply(
        &mut self,
        lease: &Name,
        token: Token,
        seq: u64,
        key: &Name,
        change: impl FnOnce(&mut BTreeMap<Name, Value>),
    ) -> Result<Applied, Refusal> {
        let planted = self.planted;
        let shard = self.admit(lease, token, Some((seq, key)), |term| {
            term.last_seq.is_some_and(|last| seq <= last)
        })?;
        let term = shard.term(token);
        match term.last_seq {
            Some(last_seq) if seq <= last_seq && planted.has(Flaw::AppliesTwice) => {}
            Some(last_seq) if seq < last_seq => {
                return Err(Refusal::OldSeq {
                    presented_seq: seq,
                    last_seq,
                });
            }
            Some(last_seq) if seq == last_seq => return Ok(Applied { fresh: false }),
            _ => term.last_seq = Some(seq),
        }
        change(&mut shard.values);
        shard.forget_old_terms();
        if planted.has(Flaw::CleanupDropsFence) && shard.values.is_empty() {
            *shard = ShardRecord::default();
        }
        Ok(Applied { fresh: true })
    }

    /// Refuses an overtaken token; else the token has been seen. `change` is the seq
    /// and the key of a write or delete; `may_have` tells from what is remembered of
    /// the token's term whether an earlier copy of the operation can have been applied.
    fn admit(
        &mut self,
        lease: &Name,
        token: Token,
        change: Option<(u64, &Name)>,
        may_have: impl FnOnce(&TermRecord) -> bool,
    ) -> Result<&mut ShardRecord, Refusal> {
        let planted = self.planted;
        let shard = self.shards.entry(lease.clone()).or_default();
        let mut seen = shard.highest;
        let mut passes = planted.has(Flaw::AcceptsAnything);
        if let Some((seq, key)) = change {
            if planted.has(Flaw::TokenPerKey) {
                let of_key = self.by_key.entry((lease.clone(), key.clone())).or_default();
                seen = *of_key;
                *of_key = seen.max(token);
            }
            if planted.has(Flaw::CheckThenAct) {
                passes = self.checked.remove(&(lease.clone(), token, seq));
            }
        }
        let oldest = seen.saturating_sub(u64::from(planted.has(Flaw::OffByOne)));
        let twice = planted.has(Flaw::RefusesEqual) && token == seen;
        if (token < oldest || twice) && !passes {
            let applied_before = shard.certainty(token, may_have);
            return Err(Refusal::StaleToken {
                presented: token,
                seen,
                applied_before,
            });
        }
        shard.highest = shard.highest.max(token);
        Ok(shard)
    }
}

impl ShardRecord {
    pub(super) fn certainty(
        &self,
        token: Token,
        may_have: impl FnOnce(&TermRecord) -> bool,
    ) -> Certainty {
        let possible = match self.terms.iter().find(|term| term.token == token) {
            Some(term) => may_have(term),
            // Tokens are first seen in rising order, so what is newer than all that
            // was forgotten, and not remembered, was never seen.
            None => self.forgotten.is_some_and(|forgotten| token <= forgotten),
        };
        if possible {
            Certainty::MayHaveApplied
        } else {
            Certainty::NotApplied
        }
    }

    /// The token's term, from now on remembered.
    pub(super) fn term(&mut self, token: Token) -> &mut TermRecord {
        let at = match self.terms.binary_search_by_key(&token, |term| term.token) {
            Ok(at) => at,
            Err(at) => {
                self.terms.insert(
                    at,
                    TermRecord {
                        token,
                        fenced: false,
                        last_seq: None,
                    },
                );
                at
            }
        };
        &mut self.terms[at]
    }

    pub(super) fn forget_old_terms(&mut self) {
        while self.terms.len() > TERMS_KEPT {
            self.forgotten = self.forgotten.max(Some(self.terms.remove(0).token));
        }
    }
}

#[cfg(all(test, feature = "flaws"))]
mod flaws;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

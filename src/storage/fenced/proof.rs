//! What a search of all states asks of storage beside what it does: other storage that
//! behaves alike. Nothing else calls these.

use deposed_checkers::history::Token;

use super::FencedStorage;

impl FencedStorage {
    /// The same storage with its tokens told by other names. Where the new ones stand in the
    /// order of the old (and 0 stays 0), it behaves alike, but for a planted flaw that
    /// reckons with a token's digits.
    pub fn renamed(&self, mut token: impl FnMut(Token) -> Token) -> Self {
        let mut storage = self.clone();
        for shard in storage.shards.values_mut() {
            shard.highest = token(shard.highest);
            for term in &mut shard.terms {
                term.token = token(term.token);
            }
            shard.forgotten = shard.forgotten.map(&mut token);
        }
        for seen in storage.by_key.values_mut() {
            *seen = token(*seen);
        }
        let checked = storage.checked.into_iter();
        storage.checked = checked
            .map(|(lease, of, seq)| (lease, token(of), seq))
            .collect();
        storage
    }

    /// The same storage without what it remembers of terms that are overtaken. It takes and
    /// refuses the same; a refusal may say of an earlier copy that it was not applied,
    /// where it was.
    pub fn forgetting_overtaken_terms(&self) -> Self {
        let mut storage = self.clone();
        for shard in storage.shards.values_mut() {
            let highest = shard.highest;
            shard.terms.retain(|term| term.token >= highest);
            shard.forgotten = None;
        }
        storage
    }
}

#[cfg(test)]
mod tests;

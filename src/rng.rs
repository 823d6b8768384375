//! Randomness: every stream is split from the run's seed by what it is for, so that
//! a change in one place leaves the others as they were.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The random stream of one purpose: `("schedule", 0)`, or a node's name and its boot.
///
/// ChaCha8 gives the same numbers in every version and on every machine.
pub fn stream(seed: u64, purpose: &str, part: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&part.to_le_bytes());
    key[16..24].copy_from_slice(&fnv1a(purpose).to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// The FNV-1a hash: short, and fixed for all time.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::stream;

    #[test]
    fn streams_differ_by_seed_purpose_and_part_and_repeat_themselves() {
        let first = |seed, purpose, part| stream(seed, purpose, part).random::<u64>();
        let a = first(1, "a", 0);
        assert_eq!(a, first(1, "a", 0));
        assert_ne!(a, first(2, "a", 0));
        assert_ne!(a, first(1, "b", 0));
        assert_ne!(a, first(1, "a", 1));
    }
}

//! How much memory a search takes, and how little no search of its size gets by with.

use super::scope::Scope;

/// The program, its threads, and what a search before this one left behind, in bytes.
const BESIDE: u64 = 24_000_000;

/// The least that a search can begin with, in bytes.
pub const LEAST_MEMORY: u64 = 32_000_000;

/// A visited state's fingerprint, in bytes.
const FINGERPRINT: u64 = size_of::<u128>() as u64;

/// What the process takes at most, in bytes, where so many are asked for: an allocator keeps
/// what it was given back, rounds up, and has a place for each thread.
pub(super) fn of_the_process(asked: u64) -> u64 {
    BESIDE + asked + asked / 2
}

/// For how many a table or a list has room once so many more are in it, if it grows as they
/// do: to twice as many.
pub(super) fn room(length: usize, capacity: usize, more: usize) -> usize {
    match length.saturating_add(more) > capacity {
        true => capacity.saturating_mul(2).max(length.saturating_add(more)),
        false => capacity,
    }
}

/// Fewer states than this a search of a correct system does not visit.
///
/// A client has not asked yet, or it has, and of the window that counts from its send
/// anything is left from all of it to nothing: clients wake when they like, so each may have
/// woken at any tick before, whatever the others did. Which of them is which does not matter
/// (`Rules::symmetry`). Nor does it matter to them whether the store has granted the lease
/// to somebody who is gone, and how much of its ttl is left. The rules keep all of these
/// apart.
pub fn least_states(scope: &Scope) -> u64 {
    let client = scope.config().safe_window() + 2;
    let store = scope.ttl + 2;
    // So many ways there are to be in one of these, each, in no order.
    let clients = scope.clients as u64;
    let ways = (0..clients).fold(1, |ways, nth| ways * (client + nth) / (nth + 1));
    ways * store
}

/// What a search of a correct system takes at the least, in bytes.
pub fn least_memory(scope: &Scope) -> u64 {
    BESIDE + least_states(scope) * FINGERPRINT
}

#[cfg(test)]
mod tests {
    use std::{num::NonZero, sync::atomic::AtomicBool};

    use super::*;
    use crate::prove::{End, Rules, Search};

    #[test]
    fn no_search_visits_fewer_states_than_the_least() {
        for (clients, ttl, drift) in [
            (1, 1, "0"),
            (1, 6, "0"),
            (2, 2, "0"),
            (2, 3, "1/3"),
            (3, 1, "0"),
        ] {
            let scope = Scope {
                clients,
                ttl,
                in_flight: 1,
                drift: drift.parse().expect("a drift"),
                ..Scope::default()
            };
            let least = least_states(&scope);
            let found = Search {
                scope,
                rules: Rules::ALL,
                jobs: NonZero::<usize>::MIN,
                max_memory: u64::MAX,
                within: None,
                max_depth: usize::MAX,
                stop: &AtomicBool::new(false),
            }
            .run();
            assert_eq!(found.end, End::Holds);
            assert!(found.states >= least, "{} and not {least}", found.states);
            assert!(found.memory >= BESIDE + least * FINGERPRINT);
        }
    }

    #[test]
    fn a_list_has_room_for_what_comes() {
        assert_eq!(room(3, 4, 1), 4);
        assert_eq!(room(4, 4, 1), 8);
        assert_eq!(room(4, 4, 100), 104);
    }
}

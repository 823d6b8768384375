//! One piece of work a key, on several threads, with the results in the keys' order.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

/// Does the work on each item, at most `jobs` at once; what it results in, if anything, in the
/// order of the items, whichever thread was first.
#[expect(
    clippy::disallowed_methods,
    reason = "each item's result depends on that item alone, and goes to its own place"
)]
pub(super) fn in_order<T: Send, R: Send>(
    items: Vec<T>,
    jobs: usize,
    work: impl Fn(T) -> Option<R> + Sync,
) -> Vec<R> {
    let jobs = jobs.clamp(1, items.len().max(1));
    if jobs == 1 {
        return items.into_iter().filter_map(work).collect();
    }
    let results: Mutex<Vec<(usize, R)>> = Mutex::default();
    let queue = Mutex::new(items.into_iter().enumerate());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((place, item)) = next else { return };
                    let Some(result) = work(item) else { continue };
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push((place, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

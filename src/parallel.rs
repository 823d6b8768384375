//! Work on many threads, results in the order of the plan: one simulation a thread.

use std::{
    collections::BTreeMap,
    num::NonZero,
    ops::ControlFlow,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

/// The most threads that are started.
pub const MOST_JOBS: usize = 256;

/// Does every item's `work`, on `jobs` threads at most (never more than there are items
/// or [`MOST_JOBS`]). `each` is shown every result, on the calling thread, in the order
/// of the items, as soon as all before it are done; when it breaks off or fails, or
/// once `stop` is true, what is in hand is finished and nothing is begun.
///
/// # Errors
/// What `each` returns.
#[expect(
    clippy::disallowed_methods,
    reason = "results come in the order of the items"
)]
pub fn in_order<Item: Send, Done: Send>(
    items: impl Iterator<Item = Item> + Clone + Send,
    jobs: NonZero<usize>,
    stop: &AtomicBool,
    work: impl Fn(Item) -> Done + Sync,
    each: impl FnMut(Done) -> Result<ControlFlow<()>, String>,
) -> Result<(), String> {
    // More threads than this would find nothing to do.
    let most = items.clone().take(MOST_JOBS).count().max(1);
    let jobs = jobs.get().min(most);
    let queue = Mutex::new(items.enumerate());
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        // Bounded, so that results do not pile up behind a slow reader.
        let (done, results) = mpsc::sync_channel(jobs);
        for _ in 0..jobs {
            let (done, queue, enough, work) = (done.clone(), &queue, &enough, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && !enough.load(Ordering::Relaxed) {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((place, item)) = next else {
                        return;
                    };
                    if done.send((place, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let result = show(results, each);
        enough.store(true, Ordering::Relaxed);
        result
    })
}

/// Shows what comes in any order in the order of its places.
fn show<T>(
    incoming: mpsc::Receiver<(usize, T)>,
    mut each: impl FnMut(T) -> Result<ControlFlow<()>, String>,
) -> Result<(), String> {
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for (place, item) in incoming {
        waiting.insert(place, item);
        while let Some(item) = waiting.remove(&next) {
            if each(item)?.is_break() {
                return Ok(());
            }
            next += 1;
        }
    }
    Ok(())
}

/// As many threads as the machine has cores.
pub fn all_cores() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_a_break_ends_them() {
        let (send, receive) = mpsc::channel();
        for (place, item) in [(2, 'c'), (0, 'a'), (3, 'd'), (1, 'b')] {
            send.send((place, item)).expect("the receiver is there");
        }
        drop(send);
        let mut seen = String::new();
        let result = show(receive, |item| {
            seen.push(item);
            Ok(match item {
                'c' => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        });
        assert_eq!((result, seen.as_str()), (Ok(()), "abc"));
    }

    #[test]
    fn every_item_is_done_once_whatever_the_number_of_threads() {
        for jobs in [1, 2, 7, 1000] {
            let mut seen = Vec::new();
            let jobs = NonZero::new(jobs).expect("not zero");
            let done = in_order(
                0..50,
                jobs,
                &AtomicBool::new(false),
                |item| item * 2,
                |done| {
                    seen.push(done);
                    Ok(ControlFlow::Continue(()))
                },
            );
            assert_eq!(done, Ok(()));
            assert_eq!(seen, (0..50).map(|item| item * 2).collect::<Vec<_>>());
        }
    }
}

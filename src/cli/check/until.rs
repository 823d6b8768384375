//! When judging ends before its end: its time is over, or it is interrupted.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

use crate::shrink::monotonic;

/// How long a Ctrl-C may go unnoticed.
const PAUSE: Duration = Duration::from_millis(50);

/// What `judge` comes to, which is told once it is to stop.
#[expect(
    clippy::disallowed_methods,
    reason = "who asks for a limit on real time gets one: its verdict depends on the machine"
)]
pub(super) fn until<T>(
    within: Option<Duration>,
    interrupted: &AtomicBool,
    judge: impl FnOnce(&AtomicBool) -> T,
) -> T {
    let until = within.map(|within| monotonic().saturating_add(within));
    let is_over = || {
        let late = until.is_some_and(|until| monotonic() >= until);
        late || interrupted.load(Ordering::Relaxed)
    };
    // No time at all is over before a thread can tell.
    let stop = AtomicBool::new(is_over());
    let (judging, ends) = channel::<()>();
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            while !is_over() {
                let left = until.map_or(PAUSE, |until| until.saturating_sub(monotonic()));
                if ends.recv_timeout(PAUSE.min(left)) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        let judged = judge(stop);
        drop(judging);
        judged
    })
}

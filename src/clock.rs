//! Clocks. A node reads time from its [`Clock`] and from nowhere else.
//!
//! Lease code compares *durations* on one monotonic clock that counts through
//! suspend (Linux's `CLOCK_BOOTTIME`), so a clock's offset does not matter and its
//! rate matters only within the configured bound. The wall clock and the run clock are
//! there for systems that (wrongly) use them ([`unfit`]): the one steps, the other
//! stands still in suspend.

pub mod unfit;

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use deposed_checkers::history::{Nanos, RatePpb, TRUE_RATE};
use tokio::sync::Notify;

/// A future that may cross threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A machine's clocks. `Send + Sync`: an application holds one, and has threads.
pub trait Clock: Send + Sync {
    /// The boot clock, ns: monotonic, counts through suspend, starts anywhere.
    fn now(&self) -> Nanos;

    /// The wall clock, ns since some epoch: it may step either way. Nothing in a
    /// correct lease protocol reads it.
    fn wall(&self) -> Nanos;

    /// The run clock, ns: monotonic, stands still in suspend, as what `Instant` reads on
    /// Linux (`CLOCK_MONOTONIC`). Nothing in a correct lease protocol reads it.
    fn run_clock(&self) -> Nanos;

    /// The true time at which [`Clock::run_clock`] will read `run`, at its present rate:
    /// [`Nanos::MAX`] while it stands still.
    fn true_time_of_run(&self, run: Nanos) -> Nanos {
        self.true_time_of(moved(self.now(), self.run_clock(), run))
    }

    /// The true time (ns since the start of the run) at which [`Clock::now`] will
    /// read `local`, at the clock's present rate, rounded up: `now() < local` holds
    /// exactly until then.
    fn true_time_of(&self, local: Nanos) -> Nanos;

    /// Resolves once [`Clock::now`] reads at least `local`.
    fn sleep_until(&self, local: Nanos) -> BoxFuture<()>;
}

/// True time: what histories are stamped with, ns since the start of the run.
pub trait TrueTime: Send + Sync {
    /// Nanoseconds since the start of the run.
    fn true_now(&self) -> Nanos;
}

/// How a local clock maps true time: a rate, an offset and the point from which
/// both hold. Integer arithmetic; exact to the nanosecond and the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drift {
    base_true: Nanos,
    base_local: Nanos,
    rate: RatePpb,
}

impl Drift {
    /// A clock that reads `offset` at true time 0 and runs at `rate`.
    ///
    /// # Panics
    /// If `rate` is 0: a clock that stands still has no inverse.
    pub fn new(rate: RatePpb, offset: Nanos) -> Self {
        assert!(rate > 0, "a drifting clock needs a rate above zero");
        Self {
            base_true: 0,
            base_local: offset,
            rate,
        }
    }

    /// The local reading at a true time, rounded down.
    pub fn local_at(&self, true_time: Nanos) -> Nanos {
        // Asked at every step; up to 18 s at a time need no wide division.
        if let Some(elapsed) = true_time.checked_sub(self.base_true)
            && let Some(product) = elapsed.checked_mul(self.rate)
        {
            return self.base_local.saturating_add(product / TRUE_RATE);
        }
        let elapsed = i128::from(true_time) - i128::from(self.base_true);
        let scaled = (elapsed * i128::from(self.rate)).div_euclid(i128::from(TRUE_RATE));
        clamp(i128::from(self.base_local) + scaled)
    }

    /// The first true time at which the local reading is at least `local`.
    pub fn true_at(&self, local: Nanos) -> Nanos {
        if let Some(ahead) = local.checked_sub(self.base_local)
            && let Some(product) = ahead.checked_mul(TRUE_RATE)
        {
            return self.base_true.saturating_add(product.div_ceil(self.rate));
        }
        let (rate, unit) = (i128::from(self.rate), i128::from(TRUE_RATE));
        let ahead = (i128::from(local) - i128::from(self.base_local)) * unit;
        let elapsed = ahead.div_euclid(rate) + i128::from(ahead.rem_euclid(rate) != 0);
        clamp(i128::from(self.base_true) + elapsed)
    }

    /// The same clock from `true_time` on at another rate; its reading does not jump.
    ///
    /// # Panics
    /// If `rate` is 0.
    pub fn with_rate_from(&self, true_time: Nanos, rate: RatePpb) -> Self {
        assert!(rate > 0, "a drifting clock needs a rate above zero");
        Self {
            base_true: true_time,
            base_local: self.local_at(true_time),
            rate,
        }
    }

    /// The present rate.
    pub fn rate(&self) -> RatePpb {
        self.rate
    }
}

/// What a clock that reads `now` will read when another, which reads `other` now, reads
/// `then`.
fn moved(now: Nanos, other: Nanos, then: Nanos) -> Nanos {
    clamp(i128::from(now) + i128::from(then) - i128::from(other))
}

fn clamp(ns: i128) -> Nanos {
    Nanos::try_from(ns.max(0)).unwrap_or(Nanos::MAX)
}

/// What the wall clock of a [`DriftingClock`] is ahead of its boot clock until it steps:
/// 2000-01-01, so that it can step back.
pub const WALL_EPOCH: Nanos = 946_684_800_000_000_000;

/// A clock with a rate and an offset of its own over a source of true time.
#[derive(Clone)]
pub struct DriftingClock {
    source: Arc<dyn TrueTime>,
    state: Arc<Mutex<DriftState>>,
    changed: Arc<Notify>,
}

#[derive(Clone, Copy)]
struct DriftState {
    drift: Drift,
    /// What the wall clock is ahead of the boot clock.
    wall_ahead: i128,
    sleep: Sleep,
}

/// How a machine has been suspended, on its boot clock.
#[derive(Clone, Copy, Default)]
struct Sleep {
    /// In all the times that are over.
    slept: Nanos,
    /// How many suspends keep it asleep now.
    suspends: u32,
    since: Nanos,
}

impl Sleep {
    fn run_clock(self, boot: Nanos) -> Nanos {
        let until = if self.suspends > 0 { self.since } else { boot };
        until.saturating_sub(self.slept)
    }
}

impl DriftingClock {
    /// A clock over `source`.
    pub fn new(source: Arc<dyn TrueTime>, drift: Drift) -> Self {
        let state = DriftState {
            drift,
            wall_ahead: i128::from(WALL_EPOCH),
            sleep: Sleep::default(),
        };
        Self {
            source,
            state: Arc::new(Mutex::new(state)),
            changed: Arc::default(),
        }
    }

    /// From now on the clock runs at `rate`. Sleepers reckon anew.
    pub fn set_rate(&self, rate: RatePpb) {
        let now = self.source.true_now();
        self.change(|state| state.drift = state.drift.with_rate_from(now, rate));
        self.changed.notify_waiters();
    }

    /// Steps the wall clock; the boot clock does not notice.
    pub fn step_wall(&self, by: i64) {
        self.change(|state| state.wall_ahead += i128::from(by));
    }

    /// Suspends the machine, once more if it is: its run clock stands still.
    pub fn suspend(&self) {
        let boot = self.now();
        self.change(|state| {
            if state.sleep.suspends == 0 {
                state.sleep.since = boot;
            }
            state.sleep.suspends += 1;
        });
    }

    /// Takes one [`DriftingClock::suspend`] back; after the last the run clock goes on.
    pub fn wake(&self) {
        let boot = self.now();
        self.change(|state| {
            let sleep = &mut state.sleep;
            if sleep.suspends == 1 {
                sleep.slept += boot.saturating_sub(sleep.since);
            }
            sleep.suspends = sleep.suspends.saturating_sub(1);
        });
    }

    /// Whether the machine is suspended.
    pub fn suspended(&self) -> bool {
        self.read().sleep.suspends > 0
    }

    /// The reading at a given true time, at the present rate.
    pub fn local_at(&self, true_time: Nanos) -> Nanos {
        self.read().drift.local_at(true_time)
    }

    /// The present rate.
    pub fn rate(&self) -> RatePpb {
        self.read().drift.rate()
    }

    fn read(&self) -> DriftState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut DriftState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Clock for DriftingClock {
    fn now(&self) -> Nanos {
        self.read().drift.local_at(self.source.true_now())
    }

    fn wall(&self) -> Nanos {
        let state = self.read();
        clamp(i128::from(state.drift.local_at(self.source.true_now())) + state.wall_ahead)
    }

    fn run_clock(&self) -> Nanos {
        let state = self.read();
        let boot = state.drift.local_at(self.source.true_now());
        state.sleep.run_clock(boot)
    }

    fn true_time_of(&self, local: Nanos) -> Nanos {
        self.read().drift.true_at(local)
    }

    fn true_time_of_run(&self, run: Nanos) -> Nanos {
        let DriftState { drift, sleep, .. } = self.read();
        match sleep.suspends {
            0 => drift.true_at(run.saturating_add(sleep.slept)),
            _ => Nanos::MAX,
        }
    }

    fn sleep_until(&self, local: Nanos) -> BoxFuture<()> {
        let clock = self.clone();
        Box::pin(async move {
            loop {
                // Listening begins before the reckoning, so no change falls between.
                let changed = clock.changed.notified();
                if clock.now() >= local {
                    return;
                }
                let wait = clock
                    .true_time_of(local)
                    .saturating_sub(clock.source.true_now());
                tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep(Duration::from_nanos(wait)) => {}
                }
            }
        })
    }
}

/// A clock that moves only when told to: for unit tests of lease code.
///
/// ```
/// use deposed::clock::{Clock, ManualClock};
/// let clock = ManualClock::default();
/// clock.advance(5);
/// assert_eq!(clock.now(), 5);
/// ```
#[derive(Clone, Default)]
pub struct ManualClock {
    now: Arc<Mutex<Nanos>>,
    moved: Arc<Notify>,
}

impl ManualClock {
    /// Moves time forward and wakes whoever sleeps until then.
    pub fn advance(&self, by: Nanos) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(by);
        self.moved.notify_waiters();
    }
}

impl TrueTime for ManualClock {
    fn true_now(&self) -> Nanos {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Nanos {
        self.true_now()
    }

    fn wall(&self) -> Nanos {
        self.true_now()
    }

    fn run_clock(&self) -> Nanos {
        self.true_now()
    }

    fn true_time_of(&self, local: Nanos) -> Nanos {
        local
    }

    fn sleep_until(&self, local: Nanos) -> BoxFuture<()> {
        let clock = self.clone();
        Box::pin(async move {
            loop {
                let moved = clock.moved.notified();
                if clock.now() >= local {
                    return;
                }
                moved.await;
            }
        })
    }
}

/// The production clock: the machine's boot clock, on Linux `CLOCK_BOOTTIME`, which
/// counts through suspend. (`std::time::Instant` does not there: a leader whose
/// machine slept would believe in a lease that ended while it slept.)
///
/// All processes of one machine share it, so it is also the true time by which
/// histories of local processes are stamped.
#[derive(Clone, Copy, Debug)]
pub struct BootClock {
    start: Nanos,
}

impl BootClock {
    /// A clock whose *true time* starts now.
    pub fn starting_now() -> Self {
        Self { start: boot_time() }
    }
}

impl TrueTime for BootClock {
    fn true_now(&self) -> Nanos {
        boot_time().saturating_sub(self.start)
    }
}

impl Clock for BootClock {
    fn now(&self) -> Nanos {
        boot_time()
    }

    fn wall(&self) -> Nanos {
        read(rustix::time::ClockId::Realtime)
    }

    fn run_clock(&self) -> Nanos {
        read(rustix::time::ClockId::Monotonic)
    }

    fn true_time_of(&self, local: Nanos) -> Nanos {
        local.saturating_sub(self.start)
    }

    fn sleep_until(&self, local: Nanos) -> BoxFuture<()> {
        let clock = *self;
        Box::pin(async move {
            // tokio's timer may run on a clock that stops in suspend: look again.
            loop {
                let wait = local.saturating_sub(clock.now());
                if wait == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_nanos(wait)).await;
            }
        })
    }
}

fn boot_time() -> Nanos {
    #[cfg(target_os = "linux")]
    return read(rustix::time::ClockId::Boottime);
    #[cfg(not(target_os = "linux"))]
    read(rustix::time::ClockId::Monotonic)
}

fn read(id: rustix::time::ClockId) -> Nanos {
    let time = rustix::time::clock_gettime(id);
    clamp(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn a_slow_clock_reads_less_and_its_instants_come_later() {
        let slow = Drift::new(TRUE_RATE / 2, 0);
        assert_eq!(slow.local_at(10 * SECOND), 5 * SECOND);
        assert_eq!(slow.true_at(5 * SECOND), 10 * SECOND);
    }

    #[test]
    fn an_offset_moves_readings_and_no_duration() {
        let (zero, ahead) = (Drift::new(TRUE_RATE, 0), Drift::new(TRUE_RATE, 42 * SECOND));
        assert_eq!(ahead.local_at(7), zero.local_at(7) + 42 * SECOND);
        assert_eq!(ahead.local_at(9) - ahead.local_at(7), 2);
    }

    #[test]
    fn a_change_of_rate_never_makes_the_reading_jump() {
        let before = Drift::new(1_003_000_000, 17);
        let after = before.with_rate_from(123_456_789, 997_000_000);
        assert_eq!(before.local_at(123_456_789), after.local_at(123_456_789));
    }

    #[test]
    fn a_step_moves_the_wall_clock_only() {
        let clock =
            DriftingClock::new(Arc::new(ManualClock::default()), Drift::new(TRUE_RATE, 100));
        clock.step_wall(-60);
        assert_eq!((clock.now(), clock.wall()), (100, WALL_EPOCH + 40));
    }

    proptest::proptest! {
        #[test]
        fn the_reading_is_below_an_instant_exactly_until_its_true_time(
            rate in 1u64..3_000_000_000, offset in 0u64..1_000_000, from in 0u64..1_000_000_000,
            later_rate in 1u64..3_000_000_000, ahead in 1u64..10_000_000_000,
        ) {
            let drift = Drift::new(rate, offset).with_rate_from(from, later_rate);
            let local = drift.local_at(from) + ahead;
            let at = drift.true_at(local);
            proptest::prop_assert!(drift.local_at(at) >= local);
            proptest::prop_assert!(drift.local_at(at - 1) < local);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleeper_reckons_anew_when_the_rate_changes() {
        struct Tokio(tokio::time::Instant);
        impl TrueTime for Tokio {
            fn true_now(&self) -> Nanos {
                Nanos::try_from(self.0.elapsed().as_nanos()).unwrap_or(Nanos::MAX)
            }
        }
        let start = tokio::time::Instant::now();
        let clock = DriftingClock::new(Arc::new(Tokio(start)), Drift::new(TRUE_RATE, 0));
        let slow_down = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            clock.set_rate(TRUE_RATE / 2);
        };
        tokio::join!(clock.sleep_until(4 * SECOND), slow_down);
        assert_eq!(start.elapsed(), Duration::from_secs(6));
    }
}

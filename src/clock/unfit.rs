//! Clocks that no lease may count on, in the shape of the one that it may: for systems
//! that count on them all the same, as many real ones do.

use std::sync::Arc;

use deposed_checkers::history::Nanos;

use super::{BoxFuture, Clock, moved};

/// The run clock in the place of the boot clock: what counts on `Instant` does so on
/// Linux, and believes in a lease that ended while its machine slept.
#[derive(Clone)]
pub struct RunClock(pub Arc<dyn Clock>);

impl Clock for RunClock {
    fn now(&self) -> Nanos {
        self.0.run_clock()
    }

    fn run_clock(&self) -> Nanos {
        self.0.run_clock()
    }

    fn wall(&self) -> Nanos {
        self.0.wall()
    }

    fn true_time_of(&self, local: Nanos) -> Nanos {
        self.0.true_time_of_run(local)
    }

    fn sleep_until(&self, local: Nanos) -> BoxFuture<()> {
        let (clock, machine) = (self.clone(), self.0.clone());
        Box::pin(async move { sleep_on(&clock, &*machine, local).await })
    }
}

/// The wall clock in the place of the boot clock: it steps, and two machines' differ.
#[derive(Clone)]
pub struct WallClock(pub Arc<dyn Clock>);

impl Clock for WallClock {
    fn now(&self) -> Nanos {
        self.0.wall()
    }

    fn run_clock(&self) -> Nanos {
        self.0.run_clock()
    }

    fn wall(&self) -> Nanos {
        self.0.wall()
    }

    fn true_time_of(&self, local: Nanos) -> Nanos {
        let machine = &self.0;
        machine.true_time_of(moved(machine.now(), machine.wall(), local))
    }

    fn sleep_until(&self, local: Nanos) -> BoxFuture<()> {
        let (clock, machine) = (self.clone(), self.0.clone());
        Box::pin(async move { sleep_on(&clock, &*machine, local).await })
    }
}

/// Sleeps as long as a clock's reading says, by the machine's boot clock, and looks again:
/// the two may have come apart meanwhile.
async fn sleep_on(clock: &dyn Clock, machine: &dyn Clock, local: Nanos) {
    loop {
        let left = local.saturating_sub(clock.now());
        if left == 0 {
            return;
        }
        machine
            .sleep_until(machine.now().saturating_add(left))
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Drift, DriftingClock, ManualClock, TrueTime};
    use deposed_checkers::history::TRUE_RATE;

    #[test]
    fn a_lease_counted_on_the_run_clock_ends_later_by_the_time_slept() {
        let time = ManualClock::default();
        let machine = DriftingClock::new(Arc::new(time.clone()), Drift::new(TRUE_RATE, 7));
        let run = RunClock(Arc::new(machine.clone()));
        assert_eq!((run.now(), run.true_time_of(107)), (7, 100));
        time.advance(30);
        machine.suspend();
        machine.suspend();
        time.advance(50);
        machine.wake();
        assert_eq!((run.now(), machine.now()), (37, 87), "one suspend is left");
        assert_eq!(run.true_time_of(107), Nanos::MAX, "not while it sleeps");
        machine.wake();
        assert_eq!((run.now(), run.true_time_of(107)), (37, 150));
        time.advance(20);
        assert_eq!((run.now(), machine.now(), time.true_now()), (57, 107, 100));
    }

    #[test]
    fn a_lease_counted_on_the_wall_clock_moves_with_its_steps() {
        let machine =
            DriftingClock::new(Arc::new(ManualClock::default()), Drift::new(TRUE_RATE, 100));
        let wall = WallClock(Arc::new(machine.clone()));
        let end = wall.now() + 50;
        assert_eq!(wall.true_time_of(end), 50);
        machine.step_wall(-60);
        assert_eq!(wall.true_time_of(end), 110);
        machine.step_wall(90);
        assert_eq!(wall.true_time_of(end), 20);
    }
}

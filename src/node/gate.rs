//! The pause gate: how a process is stopped and goes on, as a stop-the-world pause
//! does it. Timers fire late, socket buffers keep their bytes, clocks run on. A starved
//! process is stopped and let go on by turns.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use deposed_checkers::history::{F, Nanos};
use tokio::task::LocalSet;

use crate::net::LocalFuture;

/// Stops and continues one process. Open at first.
#[derive(Clone, Default)]
pub struct Gate(Rc<State>);

#[derive(Default)]
struct State {
    /// How many pauses hold the gate closed.
    pauses: Cell<u32>,
    /// Whether others have the processor just now.
    starved: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// Tasks that were to run after the gate closed.
    held: RefCell<Vec<Waker>>,
    /// The oldest first.
    armed: RefCell<VecDeque<GcPause>>,
    caught: Cell<Option<Caught>>,
}

/// A pause that waits for the process to reach a gc point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcPause {
    /// For how long.
    pub length: Nanos,
    /// Only the point before a call of this kind; `None`: any point.
    pub before: Option<F>,
}

/// A gc point that ran into an armed pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caught {
    /// For how long the process stops.
    pub length: Nanos,
    /// The call that was about to begin, if one was.
    pub before: Option<F>,
}

impl Gate {
    /// Stops the process, once more if it is stopped already.
    pub fn close(&self) {
        self.0.pauses.set(self.0.pauses.get() + 1);
    }

    /// Takes one [`Gate::close`] back; after the last the process goes on.
    pub fn open(&self) {
        self.0.pauses.set(self.0.pauses.get().saturating_sub(1));
        self.go_on();
    }

    /// Takes the processor from the process, or gives it back.
    pub fn starve(&self, starved: bool) {
        self.0.starved.set(starved);
        self.go_on();
    }

    fn go_on(&self) {
        if !self.closed() {
            let process = self.0.waker.borrow_mut().take();
            let held = self.0.held.take();
            held.into_iter().chain(process).for_each(Waker::wake);
        }
    }

    /// Whether the process is stopped.
    pub fn closed(&self) -> bool {
        self.0.pauses.get() > 0 || self.0.starved.get()
    }

    /// For a new boot: takes all pauses back and forgets what was armed.
    pub fn reset(&self) {
        self.0.pauses.set(0);
        self.0.held.borrow_mut().clear();
        self.disarm();
        self.0.caught.set(None);
    }

    /// Arms a pause for the next fitting gc point. Of several that fit, the one that
    /// was armed first strikes; the others wait for the next.
    pub fn arm(&self, pause: GcPause) {
        self.0.armed.borrow_mut().push_back(pause);
    }

    /// Takes back the armed pauses that have not caught anything.
    pub fn disarm(&self) {
        self.0.armed.borrow_mut().clear();
    }

    /// What ran into an armed pause since last asked. Whoever asks must
    /// [`Gate::open`] the gate after that long.
    pub fn take_caught(&self) -> Option<Caught> {
        self.0.caught.take()
    }

    /// A task of the process. A gc point stops the one that reaches it, and with this
    /// also those that were to run after it in the same instant.
    pub async fn hold<T>(&self, task: impl Future<Output = T>) -> T {
        let mut task = std::pin::pin!(task);
        poll_fn(|context| match self.closed() {
            true => {
                self.0.held.borrow_mut().push(context.waker().clone());
                Poll::Pending
            }
            false => task.as_mut().poll(context),
        })
        .await
    }

    /// A gc point: an armed pause that fits begins here, after `stopping`.
    pub async fn gc_point(&self, before: Option<F>, stopping: impl FnOnce()) {
        let Some(length) = self.strike(before) else {
            return;
        };
        self.0.caught.set(Some(Caught { length, before }));
        stopping();
        self.close();
        tokio::task::yield_now().await;
    }

    /// The length of the first armed pause that fits, which is armed no longer.
    fn strike(&self, before: Option<F>) -> Option<Nanos> {
        let mut armed = self.0.armed.borrow_mut();
        let fits = |pause: &GcPause| pause.before.is_none() || pause.before == before;
        let first = armed.iter().position(fits)?;
        armed.remove(first).map(|pause| pause.length)
    }
}

/// A process: its body and all that it spawns locally, polled only while the gate
/// is open. `tokio::spawn` would escape it, hence `spawn_local`.
pub struct Process {
    gate: Gate,
    tasks: LocalSet,
    body: LocalFuture<'static, ()>,
    span: tracing::Span,
}

impl Process {
    /// A process called `name` behind a gate.
    pub fn new(name: &str, gate: Gate, body: LocalFuture<'static, ()>) -> Self {
        // turmoil's own span is filtered out by a filter on our target alone.
        let span = tracing::info_span!(target: "deposed", "node", name);
        Self {
            gate,
            tasks: LocalSet::new(),
            body,
            span,
        }
    }

    fn stop(&self, context: &Context<'_>) -> Poll<()> {
        *self.gate.0.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Future for Process {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let me = self.get_mut();
        if me.gate.closed() {
            return me.stop(context);
        }
        let _in_span = me.span.enter();
        let running = std::pin::pin!(me.tasks.run_until(&mut me.body)).poll(context);
        if running.is_pending() && me.gate.closed() {
            return me.stop(context);
        }
        running
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Runs a body that counts to `steps`, one millisecond a step, behind a gate.
    fn counting(gate: &Gate, steps: u32) -> (Rc<Cell<u32>>, Process) {
        let count = Rc::new(Cell::new(0));
        let (counted, at) = (count.clone(), gate.clone());
        let body = Box::pin(async move {
            for _ in 0..steps {
                tokio::time::sleep(Duration::from_millis(1)).await;
                at.gc_point(Some(F::Write), || ()).await;
                counted.set(counted.get() + 1);
            }
        });
        (count, Process::new("p", gate.clone(), body))
    }

    async fn a_second() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_gate_stops_the_process_and_opening_it_lets_it_go_on() {
        let gate = Gate::default();
        let (count, process) = counting(&gate, 10);
        let driver = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            gate.close();
            gate.close();
            let stopped_at = count.get();
            assert!((1..10).contains(&stopped_at), "in the middle: {stopped_at}");
            a_second().await;
            assert_eq!(count.get(), stopped_at, "stopped");
            gate.open();
            a_second().await;
            assert_eq!(count.get(), stopped_at, "two pauses overlap: still stopped");
            gate.open();
        };
        tokio::join!(process, driver);
        assert_eq!(count.get(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn each_armed_pause_catches_one_fitting_gc_point() {
        let gate = Gate::default();
        let (count, process) = counting(&gate, 10);
        let (length, before) = (7, Some(F::Renew));
        gate.arm(GcPause { length, before });
        let driver = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(
                count.get() > 0,
                "a renewal's pause lets a write's gc point pass"
            );
            assert_eq!(gate.take_caught(), None);
            let before = Some(F::Write);
            for length in [9, 11] {
                gate.arm(GcPause { length, before });
            }
            a_second().await;
            let stopped_at = count.get();
            assert!((1..10).contains(&stopped_at), "in the middle: {stopped_at}");
            assert_eq!(gate.take_caught(), Some(Caught { length: 9, before }));
            a_second().await;
            assert_eq!(count.get(), stopped_at, "stopped");
            gate.open();
            a_second().await;
            assert_eq!(count.get(), stopped_at + 1, "stopped by the second");
            let length = 11;
            assert_eq!(gate.take_caught(), Some(Caught { length, before }));
            gate.open();
            a_second().await;
            assert_eq!(gate.take_caught(), None, "the renewal's waits still");
            gate.disarm();
            gate.gc_point(Some(F::Renew), || ()).await;
            assert_eq!(gate.take_caught(), None, "disarmed");
        };
        tokio::join!(process, driver);
        assert_eq!((count.get(), gate.take_caught()), (10, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_gc_point_stops_the_tasks_that_were_to_run_after_it() {
        let gate = Gate::default();
        gate.arm(GcPause {
            length: 7,
            before: None,
        });
        let ran = Rc::new(Cell::new(false));
        let (at, later, runs) = (gate.clone(), gate.clone(), ran.clone());
        let body = Box::pin(async move {
            let task = async move { later.hold(async { runs.set(true) }).await };
            #[expect(clippy::disallowed_methods, reason = "the task holds the gate itself")]
            let task = tokio::task::spawn_local(task);
            at.gc_point(None, || ()).await;
            task.await.expect("it ends");
        });
        let process = Process::new("p", gate.clone(), body);
        let driver = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(!ran.get(), "it ran in a process that is stopped");
            gate.open();
        };
        tokio::join!(process, driver);
        assert!(ran.get());
    }
}

//! Records what happens in a run: events in the order in which they are noted,
//! stamped with true time.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use deposed_checkers::history::{
    Answer, Body, Event, F, Failure, Kind, NEMESIS, Name, Nanos, Observation, Op,
};
use serde_json::Value;

use crate::clock::TrueTime;

/// Where nodes and the nemesis note what happens. Cheap to clone; one a run.
#[derive(Clone)]
pub struct Recorder {
    /// `None`: nothing is kept (a node in service).
    log: Option<Rc<RefCell<Log>>>,
    time: Arc<dyn TrueTime>,
}

#[derive(Default)]
struct Log {
    events: Vec<Event>,
    calls: u64,
    closed: bool,
}

impl Recorder {
    /// A recorder that keeps every event in memory until [`Recorder::finish`].
    pub fn new(time: Arc<dyn TrueTime>) -> Self {
        Self {
            log: Some(Rc::default()),
            time,
        }
    }

    /// A recorder for a node in service: it keeps nothing, and still logs.
    pub fn none(time: Arc<dyn TrueTime>) -> Self {
        Self { log: None, time }
    }

    /// True time now, ns since the start of the run.
    pub fn now(&self) -> Nanos {
        self.time.true_now()
    }

    /// Notes that a call begins. Its outcome is told to the returned [`Call`].
    pub fn invoke(&self, process: &Name, op: Op) -> Call {
        let f = op.f();
        let id = self.log.as_ref().map_or(0, |log| {
            let mut log = log.borrow_mut();
            log.calls += 1;
            log.calls
        });
        self.note(process, Kind::Invoke, Some(id), Body::Invoke(op), None);
        Call {
            recorder: self.clone(),
            process: process.clone(),
            id,
            f,
            open: true,
        }
    }

    /// Notes what a node sees from the inside.
    pub fn observe(&self, process: &Name, observation: Observation) {
        self.note(process, Kind::Info, None, Body::Observed(observation), None);
    }

    /// Notes a fault, before it is applied.
    pub fn nemesis(&self, fault: impl Into<Name>, value: Value) {
        self.note(
            &NEMESIS.into(),
            Kind::Info,
            None,
            Body::Nemesis(fault.into(), value),
            None,
        );
    }

    fn note(
        &self,
        process: &Name,
        kind: Kind,
        call: Option<u64>,
        body: Body,
        error: Option<Failure>,
    ) {
        if let Some(log) = &self.log {
            let mut log = log.borrow_mut();
            if log.closed {
                return;
            }
            let index = log.events.len() as u64;
            let event = Event {
                index,
                time: self.now(),
                process: process.clone(),
                kind,
                call,
                body,
                error,
            };
            tracing::debug!(target: "deposed", time = event.time, process = %event.process, "{}", story(&event));
            log.events.push(event);
        }
    }

    /// How many events there are so far.
    pub fn len(&self) -> usize {
        self.log.as_ref().map_or(0, |log| log.borrow().events.len())
    }

    /// Whether nothing was recorded yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shows the events from `from` on, in the order in which they were noted.
    pub fn look(&self, from: usize, mut see: impl FnMut(&Event)) {
        if let Some(log) = &self.log {
            log.borrow().events.iter().skip(from).for_each(&mut see);
        }
    }

    /// The events from `from` on, in the order of the history. Asked between two steps
    /// of a world: whatever is noted later is not stamped earlier.
    pub fn since(&self, from: usize) -> Vec<Event> {
        let mut events = Vec::new();
        self.look(from, |event| events.push(event.clone()));
        events.sort_by_key(|event| event.time);
        events
    }

    /// Ends the record: later notes are dropped, so that tearing a world down
    /// leaves no trace. Events come back by time, then by the order in which they
    /// were noted, numbered from 0.
    pub fn finish(&self) -> Vec<Event> {
        let Some(log) = &self.log else {
            return Vec::new();
        };
        let mut log = log.borrow_mut();
        log.closed = true;
        let mut events = std::mem::take(&mut log.events);
        // Nodes run one after another within a tick: the order in which they noted
        // things can differ from the order of the stamps. The sort is stable.
        events.sort_by_key(|event| event.time);
        for (index, event) in (0..).zip(&mut events) {
            event.index = index;
        }
        events
    }
}

/// A call that was invoked. Dropped without an outcome (its task was cut off, its
/// process crashed) it is recorded as `info`: it may have happened.
#[must_use = "a call dropped without an outcome is recorded as indefinite"]
pub struct Call {
    recorder: Recorder,
    process: Name,
    id: u64,
    f: F,
    open: bool,
}

impl Call {
    /// The call happened.
    pub fn ok(self, answer: Answer) {
        self.end(Kind::Ok, answer, None);
    }

    /// The call surely did not happen.
    pub fn fail(self, failure: Failure) {
        self.end(Kind::Fail, Answer::None, Some(failure));
    }

    /// The call may have happened.
    pub fn info(self, failure: Failure) {
        self.end(Kind::Info, Answer::None, Some(failure));
    }

    fn end(mut self, kind: Kind, answer: Answer, failure: Option<Failure>) {
        self.open = false;
        let body = Body::Complete(self.f, answer);
        self.recorder
            .note(&self.process, kind, Some(self.id), body, failure);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.open {
            let body = Body::Complete(self.f, Answer::None);
            let cut = Some(Failure::new("cut-off"));
            self.recorder
                .note(&self.process, Kind::Info, Some(self.id), body, cut);
        }
    }
}

fn story(event: &Event) -> String {
    crate::report::text::line(event)
}

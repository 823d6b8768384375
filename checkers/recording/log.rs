//! The lines of a recording, in the order in which they are told.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::lines;
use super::{Cause, Incomplete};
use crate::history::{Body, Event, F, Header, Kind, Name, Nanos};
use crate::writer::Writer;

/// Who writes the line that tells why a recording ended.
const RECORDER: &str = "recorder";

/// What has been written, and the calls that are open.
pub(super) struct Log<W: Write> {
    /// None once the recording is finished.
    writer: Option<Writer<W>>,
    clock: Box<dyn Fn() -> Nanos + Send>,
    recorded: u64,
    unrecorded: u64,
    last_time: Nanos,
    last_call: u64,
    /// By the id of its span.
    open: BTreeMap<u64, Call>,
    cause: Option<Cause>,
}

/// A call whose span is open.
struct Call {
    f: F,
    process: Name,
    id: u64,
    /// What was recorded of its answer.
    answer: Map<String, Value>,
    answered: bool,
}

impl<W: Write> Log<W> {
    pub(super) fn new(
        out: W,
        header: &Header,
        clock: Box<dyn Fn() -> Nanos + Send>,
    ) -> io::Result<Self> {
        Ok(Log {
            writer: Some(Writer::new(out, header)?),
            clock,
            recorded: 0,
            unrecorded: 0,
            last_time: 0,
            last_call: 0,
            open: BTreeMap::new(),
            cause: None,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        self.writer.is_some()
    }

    /// An observation, or what is wrong with it.
    pub(super) fn observe(&mut self, observed: Result<Event, String>) {
        match observed {
            Ok(event) => self.write(event),
            Err(why) => self.end(Cause::NoLine(why)),
        }
    }

    /// A call begins with its span.
    pub(super) fn invoke(&mut self, span: u64, invoked: Result<Event, String>) {
        let event = match invoked {
            Ok(event) => event,
            Err(why) => return self.end(Cause::NoLine(why)),
        };
        let Body::Invoke(op) = &event.body else {
            unreachable!("lines::invoke makes invokes");
        };
        self.last_call += 1;
        let call = Call {
            f: op.f(),
            process: event.process.clone(),
            id: self.last_call,
            answer: Map::new(),
            answered: false,
        };
        self.open.insert(span, call);
        self.write(Event {
            call: Some(self.last_call),
            ..event
        });
    }

    /// A part of the answer; all of it once the outcome is among it.
    pub(super) fn answer(&mut self, span: u64, fields: Map<String, Value>) {
        // Not there: its invoke ended the recording.
        let Some(call) = self.open.get_mut(&span) else {
            return;
        };
        if call.answered {
            let why = format!(
                "the span `{}` records more after its `outcome`: record that last",
                call.f.name()
            );
            return self.end(Cause::NoLine(why));
        }
        call.answer.extend(fields);
        if call.answer.contains_key(lines::OUTCOME) {
            call.answered = true;
            let answer = std::mem::take(&mut call.answer);
            let completion = lines::completion(call.f, &call.process, answer);
            let id = call.id;
            self.complete(id, completion);
        }
    }

    /// The span is gone. A call that was not answered may have happened.
    pub(super) fn close(&mut self, span: u64) {
        let Some(mut call) = self.open.remove(&span) else {
            return;
        };
        if !call.answered {
            let answer = &mut call.answer;
            answer.insert(lines::OUTCOME.to_owned(), "info".into());
            answer
                .entry("error")
                .or_insert_with(|| "closed-without-outcome".into());
            let completion = lines::completion(call.f, &call.process, call.answer);
            self.complete(call.id, completion);
        }
    }

    fn complete(&mut self, id: u64, completion: Result<Event, String>) {
        let named = completion.map(|event| Event {
            call: Some(id),
            ..event
        });
        self.observe(named);
    }

    /// Gives the event its place and writes it.
    fn write(&mut self, event: Event) {
        if self.cause.is_some() {
            self.unrecorded += 1;
            return;
        }
        let (before, now) = (self.last_time, (self.clock)());
        if now < before {
            return self.end(Cause::ClockWentBack { before, now });
        }
        self.last_time = now;
        if let Err(error) = self.put(event) {
            self.end(Cause::Write(error));
        }
    }

    fn put(&mut self, mut event: Event) -> io::Result<()> {
        if let Some(writer) = &mut self.writer {
            (event.index, event.time) = (self.recorded, self.last_time);
            writer.write(&event)?;
            self.recorded += 1;
        }
        Ok(())
    }

    /// Ends the history here, unless it has ended; where it can still be written, its last
    /// line tells why. What comes of calls that are open is not told: they may have happened.
    fn end(&mut self, cause: Cause) {
        if self.writer.is_none() {
            return;
        }
        self.unrecorded += 1;
        if self.cause.is_some() {
            return;
        }
        if !matches!(cause, Cause::Write(_)) {
            let note = json!({"why": cause.to_string()});
            let note = Event {
                index: 0,
                time: 0,
                process: RECORDER.into(),
                kind: Kind::Info,
                call: None,
                body: Body::Foreign("recording-ended".into(), note),
                error: None,
            };
            let recorded = self.recorded;
            // The cause is told either way, and the note is no event of the program's.
            let _ = self.put(note);
            self.recorded = recorded;
        }
        self.cause = Some(cause);
    }

    pub(super) fn finish(&mut self) -> Result<W, Incomplete> {
        let writer = self.writer.take().expect("finished once");
        self.open.clear();
        let (recorded, unrecorded) = (self.recorded, self.unrecorded);
        let incomplete = |cause| Incomplete {
            recorded,
            unrecorded,
            cause,
        };
        let out = writer.finish();
        match (self.cause.take(), out) {
            (Some(cause), _) => Err(incomplete(cause)),
            (None, Err(error)) => Err(incomplete(Cause::Write(error))),
            (None, Ok(out)) => Ok(out),
        }
    }
}

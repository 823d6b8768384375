//! Writes histories as JSON lines. The same header and events give the same
//! bytes: fields come in a fixed order, floats in their shortest form.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::history::{Answer, Body, Event, Failure, Header, Kind, Name, Observation, Op, Token};

/// Writes a header, then events, one a line.
///
/// Wrap a file in a [`std::io::BufWriter`]; an event is one `write` call.
pub struct Writer<W: Write> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    ///
    /// Whatever `out` fails with.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let mut writer = Writer {
            out,
            line: Vec::with_capacity(512),
        };
        writer.put(header)?;
        Ok(writer)
    }

    /// Writes one event.
    ///
    /// # Errors
    ///
    /// Whatever `out` fails with.
    pub fn write(&mut self, event: &Event) -> io::Result<()> {
        self.put(&Line::of(event))
    }

    /// Flushes, and gives the output back.
    ///
    /// # Errors
    ///
    /// Whatever `out` fails with.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }
}

/// An event's line, without the line feed.
pub fn event_line(event: &Event) -> String {
    // Names and JSON values always have a JSON form; there is nothing to fail.
    serde_json::to_string(&Line::of(event)).unwrap_or_default()
}

/// The fields of a line, in the order in which they are written.
#[derive(serde::Serialize)]
struct Line<'a> {
    index: u64,
    time: u64,
    process: &'a Name,
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<u64>,
    f: &'a str,
    value: Shape<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl<'a> Line<'a> {
    fn of(event: &'a Event) -> Self {
        let (f, value) = match &event.body {
            Body::Invoke(op) => (op.f().name(), Shape::Op(op)),
            Body::Complete(f, Answer::None) => (f.name(), Shape::Null),
            Body::Complete(f, Answer::Token(token)) => (f.name(), Shape::Token(*token)),
            Body::Complete(f, Answer::Value(value)) => (f.name(), Shape::Value(value)),
            Body::Observed(seen) => (seen.name(), Shape::Observed(seen)),
            Body::Nemesis(f, value) | Body::Foreign(f, value) => (f.as_str(), Shape::Any(value)),
        };
        Line {
            index: event.index,
            time: event.time,
            process: &event.process,
            kind: event.kind,
            call: event.call,
            f,
            value,
            error: event.error.as_ref(),
        }
    }
}

/// What `value` looks like.
enum Shape<'a> {
    Null,
    Op(&'a Op),
    Token(Token),
    Value(&'a Value),
    Observed(&'a Observation),
    Any(&'a Value),
}

impl Serialize for Shape<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Shape::Null => serializer.serialize_unit(),
            Shape::Op(op) => op.serialize(serializer),
            Shape::Token(token) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("token", token)?;
                map.end()
            }
            Shape::Value(value) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("value", value)?;
                map.end()
            }
            Shape::Observed(seen) => seen.serialize(serializer),
            Shape::Any(value) => value.serialize(serializer),
        }
    }
}

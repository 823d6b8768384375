//! The operations that Jepsen logs: `INFO  jepsen.util - PROCESS TYPE F VALUE`.

use std::io::Read;

use super::{
    ENTRY_LIMIT, Place, Problem, Value, edn,
    fault::Fault,
    operation::{Operation, kind, unasked},
    source::Source,
};
use crate::history::Kind;
use crate::units::a;

/// A stream of log lines.
pub(super) struct Log<R> {
    source: Source<R>,
}

impl<R: Read> Log<R> {
    pub(super) fn new(input: R) -> Self {
        Log {
            source: Source::new(input),
        }
    }

    /// The next operation. Empty lines are passed over.
    pub(super) fn next(&mut self) -> Result<Option<Operation>, Fault> {
        loop {
            if self.source.peek()?.is_none() {
                return Ok(None);
            }
            let place = self.source.place();
            let (line, ended) = self.line()?;
            if line.trim().is_empty() {
                continue;
            }
            let operation = operation(&line, place)?;
            // A 1 may have been a 12; a bracket or a quote says itself that it closes.
            if !ended && !line.trim_end().ends_with([']', ')', '}', '"']) {
                return Err(Fault::at(place, Problem::TornLine));
            }
            return Ok(Some(operation));
        }
    }

    /// A line, and whether it has an end.
    fn line(&mut self) -> Result<(String, bool), Fault> {
        let place = self.source.place();
        let mut line = Vec::new();
        let mut ended = false;
        while let Some(byte) = self.source.next()? {
            if byte == b'\n' {
                ended = true;
                break;
            }
            if line.len() == ENTRY_LIMIT {
                return Err(Fault::at(place, Problem::TooLong));
            }
            line.push(byte);
        }
        let line = String::from_utf8(line).map_err(|_| Fault::at(place, Problem::NotUtf8))?;
        Ok((line, ended))
    }
}

/// One line. What a log puts before its level (a date, a thread) is passed over.
fn operation(line: &str, place: Place) -> Result<Operation, Fault> {
    const LOGGER: &str = "jepsen.util";
    let at = |rest: &str| {
        let before = &line[..line.len() - rest.len()];
        let column = place.column + before.chars().count() as u64;
        Place { column, ..place }
    };
    let other = || {
        let what = "the line is none of jepsen.util's operations, as INFO  jepsen.util - 0 :invoke \
                    :read nil; take those alone, as by grep 'jepsen.util - '";
        Fault::at(place, syntax(what))
    };
    let (_, after) = line.split_once(LOGGER).ok_or_else(other)?;
    let rest = after.trim_start().strip_prefix('-').ok_or_else(other)?;
    let (process, rest) = word(rest);
    let (type_word, rest) = word(rest);
    let (f, values) = word(rest);
    if process.is_empty() || type_word.is_empty() || f.is_empty() {
        let what = "the line ends early: it has a process, a type, an operation and a value";
        return Err(Fault::at(at(values), syntax(what)));
    }
    let kind =
        kind(type_word.trim_start_matches(':')).map_err(|problem| Fault::at(place, problem))?;
    let behind = at(values);
    let mut values = edn::forms(values, behind)?.into_iter();
    if values.len() == 0 && unasked(kind, f.trim_start_matches(':')) {
        let what = format!(
            "the line ends early: {} has a value",
            a(f.trim_start_matches(':'))
        );
        return Err(Fault::at(behind, syntax(what)));
    }
    let (mut value, mut error) = (values.next().unwrap_or(Value::Nil), values.next());
    if values.next().is_some() {
        let what = "the line has more than a value and an error";
        return Err(Fault::at(place, syntax(what)));
    }
    // `:info :write :timed-out` says why, and not what: a read that timed out read nothing known.
    if matches!(kind, Kind::Info | Kind::Fail) && matches!(value, Value::Word(_)) && error.is_none()
    {
        error = Some(std::mem::replace(&mut value, Value::Nil));
    }
    Ok(Operation {
        index: None,
        time: None,
        process: process.trim_start_matches(':').into(),
        kind,
        f: f.trim_start_matches(':').into(),
        key: None,
        token: None,
        value,
        error,
        place,
    })
}

/// The first word, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

fn syntax(what: impl Into<String>) -> Problem {
    Problem::Syntax {
        format: "a Jepsen log",
        what: what.into(),
    }
}

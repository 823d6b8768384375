//! Operations as JSON objects: an array of them, as elle-cli reads, or one after another.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{
    DEPTH_LIMIT, Place, Problem, Value, fault::Fault, operation::Operation, source::Source,
};
use crate::{history::Name, line};

/// A stream of objects.
pub(super) struct Json<R> {
    objects: Objects<R>,
}

impl<R: Read> Json<R> {
    pub(super) fn new(input: R) -> Self {
        Json {
            objects: Objects::new(input),
        }
    }

    /// The next operation.
    pub(super) fn next(&mut self) -> Result<Option<Operation>, Fault> {
        let Some((place, text)) = self.objects.next()? else {
            return Ok(None);
        };
        match parsed(text, place)? {
            Value::Map(fields) => Operation::of_fields(fields, place).map(Some),
            _ => Err(Fault::at(place, syntax("an operation is an object"))),
        }
    }
}

/// Splits a stream into the texts of its objects.
pub(super) struct Objects<R> {
    source: Source<R>,
    state: State,
    text: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Beginning,
    /// In an array, before its first object.
    Opened,
    /// In an array, after an object.
    Between,
    /// In an array, after a comma.
    Comma,
    /// One object after another.
    Loose,
    After,
}

impl<R: Read> Objects<R> {
    pub(super) fn new(input: R) -> Self {
        Objects {
            source: Source::new(input),
            state: State::Beginning,
            text: Vec::new(),
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<(Place, &str)>, Fault> {
        loop {
            self.source.end();
            while matches!(self.source.peek()?, Some(b' ' | b'\t' | b'\r' | b'\n')) {
                self.source.pass()?;
            }
            let next = self.source.peek()?;
            self.state = match (self.state, next) {
                (State::Beginning | State::Loose | State::After, None) => return Ok(None),
                (_, None) => return Err(self.source.fault(Problem::Unclosed(']'))),
                (State::Beginning, Some(b'[')) => State::Opened,
                (State::Opened | State::Between, Some(b']')) => State::After,
                (State::Between, Some(b',')) => State::Comma,
                (State::Beginning | State::Loose, Some(b'{')) => {
                    self.state = State::Loose;
                    return self.object().map(Some);
                }
                (State::Opened | State::Comma, Some(b'{')) => {
                    self.state = State::Between;
                    return self.object().map(Some);
                }
                (State::Between, Some(_)) => {
                    return Err(self.source.fault(syntax("a comma or ']' is missing")));
                }
                (State::After, Some(_)) => {
                    let what = "the history's array is closed, and more follows";
                    return Err(self.source.fault(syntax(what)));
                }
                (_, Some(_)) => {
                    let what =
                        "an operation is an object, as {\"process\": 0, \"type\": \"invoke\", …}";
                    return Err(self.source.fault(syntax(what)));
                }
            };
            self.source.pass()?;
        }
    }

    /// The text of the object that begins here.
    fn object(&mut self) -> Result<(Place, &str), Fault> {
        self.source.begin();
        self.text.clear();
        let place = self.source.place();
        let (mut depth, mut quoted) = (0_usize, false);
        loop {
            let Some(next) = self.source.peek()? else {
                return Err(self.source.torn());
            };
            match (quoted, next) {
                (true, b'"') => quoted = false,
                (true, b'\\') => {
                    self.source.pass()?;
                    self.text.push(next);
                    let Some(escaped) = self.source.next()? else {
                        return Err(self.source.torn());
                    };
                    self.text.push(escaped);
                    continue;
                }
                (true, _) => {}
                (false, b'"') => quoted = true,
                (false, b'{' | b'[') => {
                    depth += 1;
                    if depth > DEPTH_LIMIT {
                        return Err(self.source.fault(Problem::TooDeep));
                    }
                }
                (false, b'}' | b']') => depth -= 1,
                (false, _) => {}
            }
            self.source.pass()?;
            self.text.push(next);
            if depth == 0 {
                break;
            }
        }
        let text = std::str::from_utf8(&self.text);
        let text = text.map_err(|_| Fault::at(place, Problem::NotUtf8))?;
        Ok((place, text))
    }
}

fn syntax(what: impl Into<String>) -> Problem {
    Problem::Syntax {
        format: "JSON",
        what: what.into(),
    }
}

/// The place behind a text that begins at another.
fn after(place: Place, text: &str) -> Place {
    let lines = text.matches('\n').count() as u64;
    let last = text.rsplit('\n').next().unwrap_or_default();
    let characters = last.chars().count() as u64;
    Place {
        line: place.line + lines,
        column: match lines {
            0 => place.column + characters,
            _ => 1 + characters,
        },
    }
}

/// Reads one object, whose text begins at a place.
pub(super) fn parsed<'a, T: Deserialize<'a>>(text: &'a str, place: Place) -> Result<T, Fault> {
    if let Some(number) = line::number_too_large(text) {
        let offset = number.as_ptr() as usize - text.as_ptr() as usize;
        let at = after(place, &text[..offset]);
        return Err(Fault::at(at, Problem::NumberTooLarge(number.to_owned())));
    }
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let what = message
            .rsplit_once(" at line ")
            .map_or(&*message, |(what, _)| what);
        let what = match what {
            "key must be a string" => "key must be a string: write keys in quotes, as \"process\"",
            what => what,
        };
        // serde counts bytes, and the column of the last one read.
        let begin = match error.line() {
            0 | 1 => 0,
            line => text
                .match_indices('\n')
                .nth(line - 2)
                .map_or(0, |(at, _)| at + 1),
        };
        let mut offset = (begin + error.column().saturating_sub(1)).min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        Fault::at(after(place, &text[..offset]), syntax(what))
    })
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value)
            .map_or_else(|_| Value::Number(value.to_string().into()), Value::Int))
    }

    /// JSON has one kind of number: 1.0 is 1.
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() == 0.0 && value.abs() <= EXACT {
            return Ok(Value::Int(value as i64));
        }
        Ok(Value::Number(format!("{value:?}").into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(key) = entries.next_key::<Name>()? {
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!(
                    "the key {key} stands twice in an object"
                )));
            }
            map.insert(key, entries.next_value()?);
        }
        Ok(Value::Map(map))
    }
}

//! Jepsen's histories: EDN, as a vector or list of maps or as one map after another.
//!
//! The forms are read here, and not by a library: of those that are kept, the nearest
//! (clojure-reader 0.7) refuses `\u0041`, `"\u00e9"` and `##NaN`, which Clojure prints,
//! reads 1e400 as infinity and takes `1.50M` for a number of two digits, so that two values
//! could become one; none of them reads from a stream, so that a scanner which knows strings,
//! characters, comments and discards would be needed before it anyway.

use std::collections::BTreeMap;
use std::io::Read;

use super::{
    DEPTH_LIMIT, Place, Problem, Value, fault::Fault, operation::Operation, source::Source,
};
use crate::history::Name;

mod atoms;

use atoms::{atom, character, pattern, string};

/// A stream of maps.
pub(super) struct Edn<R> {
    source: Source<R>,
    state: State,
}

enum State {
    Beginning,
    /// Within a vector or list, and what closes it.
    Within(u8),
    /// One map after another, up to the end.
    Loose,
    /// Nothing more may follow.
    After,
}

impl<R: Read> Edn<R> {
    pub(super) fn new(input: R) -> Self {
        Edn {
            source: Source::new(input),
            state: State::Beginning,
        }
    }

    /// The next operation.
    pub(super) fn next(&mut self) -> Result<Option<Operation>, Fault> {
        loop {
            self.source.end();
            let next = blank(&mut self.source)?;
            match (&self.state, next) {
                (State::Beginning, Some(open @ (b'[' | b'('))) => {
                    self.source.pass()?;
                    self.state = State::Within(closing(open));
                }
                (State::Within(close), None) => {
                    let problem = Problem::Unclosed(char::from(*close));
                    return Err(self.source.fault(problem));
                }
                (State::Within(close), Some(next)) if next == *close => {
                    self.source.pass()?;
                    self.state = State::After;
                }
                (State::After, Some(_)) => {
                    let what = "the history's vector is closed, and more follows";
                    return Err(self.source.fault(syntax(what)));
                }
                (State::Beginning | State::Loose | State::After, None) => return Ok(None),
                (State::Beginning | State::Within(_) | State::Loose, Some(_)) => {
                    if let Some(operation) = self.operation()? {
                        if matches!(self.state, State::Beginning) {
                            self.state = State::Loose;
                        }
                        return Ok(Some(operation));
                    }
                }
            }
        }
    }

    fn operation(&mut self) -> Result<Option<Operation>, Fault> {
        let place = self.source.place();
        self.source.begin();
        match optional(&mut self.source, 0)? {
            None => Ok(None),
            Some(Value::Map(fields)) => Operation::of_fields(fields, place).map(Some),
            // #jepsen.history.Op{…}
            Some(Value::Tagged(tag, inner)) => match *inner {
                Value::Map(fields) => Operation::of_fields(fields, place).map(Some),
                // #jepsen.history.DenseHistory […] is long: it would have to be held whole.
                _ => Err(Fault::at(
                    place,
                    syntax(format!(
                        "#{tag} is no operation: operations are maps; cut the tag off"
                    )),
                )),
            },
            Some(_) => Err(Fault::at(
                place,
                syntax("an operation is a map, as {:process 0, :type :invoke, :f :read}"),
            )),
        }
    }
}

/// The EDN forms of a text that is at hand, which begins at a place.
pub(super) fn forms(text: &str, place: Place) -> Result<Vec<Value>, Fault> {
    let mut source = Source::at(text.as_bytes(), place, text.len());
    let mut forms = Vec::new();
    while blank(&mut source)?.is_some() {
        forms.extend(optional(&mut source, 0)?);
    }
    Ok(forms)
}

fn syntax(what: impl Into<String>) -> Problem {
    Problem::Syntax {
        format: "EDN",
        what: what.into(),
    }
}

fn closing(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}

/// Passes white space, commas and comments; the byte that comes then.
fn blank<R: Read>(source: &mut Source<R>) -> Result<Option<u8>, Fault> {
    loop {
        match source.peek()? {
            Some(b' ' | b'\t' | b'\r' | b'\n' | b',' | 0x0B | 0x0C) => source.pass()?,
            Some(b';') => source.pass_line()?,
            next => return Ok(next),
        }
    }
}

/// A form that must be there.
fn form<R: Read>(source: &mut Source<R>, depth: usize) -> Result<Value, Fault> {
    loop {
        match blank(source)? {
            None => return Err(source.torn()),
            Some(b')' | b']' | b'}') => {
                return Err(source.fault(syntax("a bracket is closed, and a value is missing")));
            }
            Some(_) => {}
        }
        if let Some(value) = optional(source, depth)? {
            return Ok(value);
        }
    }
}

/// A form, or none where it was one to discard. A byte of it is there.
fn optional<R: Read>(source: &mut Source<R>, depth: usize) -> Result<Option<Value>, Fault> {
    if depth > DEPTH_LIMIT {
        return Err(source.fault(Problem::TooDeep));
    }
    let place = source.place();
    let Some(next) = source.peek()? else {
        return Err(source.torn());
    };
    let value = match next {
        b'{' => {
            source.pass()?;
            Value::Map(map(source, depth, None)?)
        }
        b'[' | b'(' => {
            source.pass()?;
            Value::List(items(source, depth, closing(next))?)
        }
        b'"' => {
            source.pass()?;
            Value::Text(string(source, place)?)
        }
        b'\\' => {
            source.pass()?;
            Value::Text(character(source, place)?)
        }
        b'#' => {
            source.pass()?;
            return dispatch(source, depth, place);
        }
        b')' | b']' | b'}' => {
            let what = format!("'{}' closes nothing", char::from(next));
            return Err(source.fault(syntax(what)));
        }
        b'^' | b'`' | b'~' | b'@' | b'\'' => {
            let what = format!("'{}' begins no value: it is code's", char::from(next));
            return Err(source.fault(syntax(what)));
        }
        _ => atom(source, place)?,
    };
    Ok(Some(value))
}

/// What stands between brackets.
fn items<R: Read>(source: &mut Source<R>, depth: usize, close: u8) -> Result<Vec<Value>, Fault> {
    let mut items = Vec::new();
    loop {
        match blank(source)? {
            None => return Err(source.torn()),
            Some(next) if next == close => {
                source.pass()?;
                return Ok(items);
            }
            Some(_) => items.extend(optional(source, depth + 1)?),
        }
    }
}

/// A map; its keys are in a namespace where it has one: `#:jepsen{:f :read}`.
fn map<R: Read>(
    source: &mut Source<R>,
    depth: usize,
    namespace: Option<&str>,
) -> Result<BTreeMap<Name, Value>, Fault> {
    let mut fields = BTreeMap::new();
    loop {
        match blank(source)? {
            None => return Err(source.torn()),
            Some(b'}') => {
                source.pass()?;
                return Ok(fields);
            }
            Some(_) => {}
        }
        let place = source.place();
        let Some(key) = optional(source, depth + 1)? else {
            continue;
        };
        let key = match (key, namespace) {
            (Value::Word(name), Some(namespace)) => match name.strip_prefix("_/") {
                Some(bare) => bare.into(),
                None if name.contains('/') => name,
                None => format!("{namespace}/{name}").into(),
            },
            (Value::Word(name) | Value::Text(name), _) => name,
            (other, _) => other.to_string().into(),
        };
        let value = form(source, depth + 1)?;
        if fields.contains_key(&key) {
            let what = format!("the key {key} stands twice in a map");
            return Err(Fault::at(place, syntax(what)));
        }
        fields.insert(key, value);
    }
}

/// What follows a `#`.
fn dispatch<R: Read>(
    source: &mut Source<R>,
    depth: usize,
    place: Place,
) -> Result<Option<Value>, Fault> {
    let value = match source.peek()? {
        None => return Err(source.torn()),
        Some(b'_') => {
            source.pass()?;
            form(source, depth + 1)?;
            return Ok(None);
        }
        Some(b'{') => {
            source.pass()?;
            Value::Set(items(source, depth, b'}')?)
        }
        Some(b'#') => {
            source.pass()?;
            let name = token(source)?;
            match name.as_str() {
                "NaN" | "Inf" | "-Inf" => Value::Number(format!("##{name}").into()),
                _ => return Err(Fault::at(place, syntax(format!("##{name} is no number")))),
            }
        }
        Some(b':') => {
            source.pass()?;
            let namespace = token(source)?;
            match blank(source)? {
                Some(b'{') => source.pass()?,
                _ => {
                    return Err(Fault::at(
                        place,
                        syntax(format!("#:{namespace} needs a map")),
                    ));
                }
            }
            Value::Map(map(source, depth, Some(&namespace))?)
        }
        Some(b'"') => {
            source.pass()?;
            Value::Tagged(
                "regex".into(),
                Box::new(Value::Text(pattern(source, place)?)),
            )
        }
        Some(b'\'') => {
            source.pass()?;
            Value::Tagged("var".into(), Box::new(Value::Word(token(source)?)))
        }
        Some(_) => {
            let tag = token(source)?;
            if !tag.starts_with(|first: char| first.is_alphabetic()) {
                return Err(Fault::at(place, syntax("'#' is followed by no tag")));
            }
            Value::Tagged(tag, Box::new(form(source, depth + 1)?))
        }
    };
    Ok(Some(value))
}

/// The bytes up to the next bracket, string or blank.
fn token<R: Read>(source: &mut Source<R>) -> Result<Name, Fault> {
    let place = source.place();
    let mut bytes = Vec::new();
    while let Some(next) = source.peek()? {
        if is_end(next) {
            break;
        }
        source.pass()?;
        bytes.push(next);
    }
    text(bytes, place)
}

fn is_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0x0B | b',' | b';' | b'"') || is_bracket(byte)
}

fn is_bracket(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'[' | b']' | b'{' | b'}')
}

fn text(bytes: Vec<u8>, place: Place) -> Result<Name, Fault> {
    let text = String::from_utf8(bytes).map_err(|_| Fault::at(place, Problem::NotUtf8))?;
    Ok(text.into())
}

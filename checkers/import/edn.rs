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

/// A keyword, a symbol, a number, or one of the three words.
fn atom<R: Read>(source: &mut Source<R>, place: Place) -> Result<Value, Fault> {
    let token = token(source)?;
    let first_two = token.as_bytes().get(..2).unwrap_or(token.as_bytes());
    let value = match *first_two {
        [b':', ..] => {
            let name = token.trim_start_matches(':');
            if name.is_empty() {
                return Err(Fault::at(place, syntax("':' is followed by no name")));
            }
            Value::Word(name.into())
        }
        [b'0'..=b'9', ..] | [b'+' | b'-', b'0'..=b'9'] => number(&token)
            .ok_or_else(|| Fault::at(place, syntax(format!("{token} is no number"))))?,
        _ => match token.as_str() {
            "nil" => Value::Nil,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Word(token),
        },
    };
    Ok(value)
}

/// A number: exact, or as it was written.
fn number(token: &str) -> Option<Value> {
    let whole = token.strip_suffix('N').unwrap_or(token);
    let (sign, digits) = match whole.as_bytes()[0] {
        b'-' => ("-", &whole[1..]),
        b'+' => ("", &whole[1..]),
        _ => ("", whole),
    };
    if digits.bytes().all(|digit| digit.is_ascii_digit()) {
        // 017 is fifteen to Clojure, and nothing to EDN.
        if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        return Some(match format!("{sign}{digits}").parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Number(format!("{sign}{digits}").into()),
        });
    }
    let fits = is_decimal(digits.strip_suffix('M').unwrap_or(digits))
        || is_ratio(digits)
        || is_hexadecimal(digits);
    fits.then(|| Value::Number(format!("{sign}{digits}").into()))
}

/// `1.5`, `1e9`, `1.`
fn is_decimal(text: &str) -> bool {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (
            number,
            exponent.strip_prefix(['+', '-']).unwrap_or(exponent),
        ),
        None => (text, "0"),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    !whole.is_empty() && !exponent.is_empty() && digits(whole) && digits(part) && digits(exponent)
}

fn is_ratio(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    text.split_once('/')
        .is_some_and(|(over, under)| digits(over) && digits(under))
}

/// As `#object[…]` prints addresses.
fn is_hexadecimal(text: &str) -> bool {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    digits.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// A string whose opening quote has passed.
fn string<R: Read>(source: &mut Source<R>, place: Place) -> Result<Name, Fault> {
    let mut bytes = Vec::new();
    loop {
        let at = source.place();
        match source.next()? {
            None => return Err(source.torn()),
            Some(b'"') => return text(bytes, place),
            Some(b'\\') => {
                let escaped = escape(source, at)?;
                bytes.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Some(byte) => bytes.push(byte),
        }
    }
}

/// What follows a backslash in a string.
fn escape<R: Read>(source: &mut Source<R>, place: Place) -> Result<char, Fault> {
    let unknown = |what: String| Fault::at(place, syntax(format!("{what} is no character")));
    let Some(next) = source.next()? else {
        return Err(source.torn());
    };
    let escaped = match next {
        b't' => '\t',
        b'r' => '\r',
        b'n' => '\n',
        b'b' => '\u{8}',
        b'f' => '\u{C}',
        b'\\' | b'"' => char::from(next),
        b'0'..=b'7' => {
            let mut code = u32::from(next - b'0');
            for _ in 0..2 {
                match source.peek()? {
                    Some(digit @ b'0'..=b'7') => {
                        source.pass()?;
                        code = code * 8 + u32::from(digit - b'0');
                    }
                    _ => break,
                }
            }
            char::from_u32(code).ok_or_else(|| unknown(format!("\\{code:o}")))?
        }
        b'u' => {
            let code = unit(source, place)?;
            match code {
                // Java's characters have 16 bits: those beyond are two.
                0xD800..=0xDBFF => {
                    let low = match (source.next()?, source.next()?) {
                        (Some(b'\\'), Some(b'u')) => unit(source, place)?,
                        _ => return Err(unknown(format!("\\u{code:04x}"))),
                    };
                    let low = low.checked_sub(0xDC00).filter(|low| *low < 0x400);
                    low.and_then(|low| char::from_u32(0x10000 + ((code - 0xD800) << 10) + low))
                        .ok_or_else(|| unknown(format!("\\u{code:04x}")))?
                }
                code => char::from_u32(code).ok_or_else(|| unknown(format!("\\u{code:04x}")))?,
            }
        }
        other => return Err(unknown(format!("\\{}", other.escape_ascii()))),
    };
    Ok(escaped)
}

/// Four hexadecimal digits.
fn unit<R: Read>(source: &mut Source<R>, place: Place) -> Result<u32, Fault> {
    let mut code = 0;
    for _ in 0..4 {
        let digit = source
            .next()?
            .and_then(|digit| char::from(digit).to_digit(16));
        let digit = digit
            .ok_or_else(|| Fault::at(place, syntax("\\u is followed by four digits, 0 to f")))?;
        code = code * 16 + digit;
    }
    Ok(code)
}

/// A regular expression: its backslashes are its own.
fn pattern<R: Read>(source: &mut Source<R>, place: Place) -> Result<Name, Fault> {
    let mut bytes = Vec::new();
    loop {
        match source.next()? {
            None => return Err(source.torn()),
            Some(b'"') => return text(bytes, place),
            Some(byte) => {
                bytes.push(byte);
                if byte == b'\\' {
                    bytes.extend(source.next()?);
                }
            }
        }
    }
}

/// A character: `\a`, `\newline`, `\u0041`, `\o101`, `\(`.
fn character<R: Read>(source: &mut Source<R>, place: Place) -> Result<Name, Fault> {
    let mut bytes = Vec::new();
    // The first byte is the character's, even where it is a bracket.
    let Some(first) = source.next()? else {
        return Err(source.torn());
    };
    bytes.push(first);
    while let Some(next) = source.peek()? {
        if is_end(next) {
            break;
        }
        source.pass()?;
        bytes.push(next);
    }
    let name = text(bytes, place)?;
    let coded = |digits: &str, radix| {
        let all = digits.chars().all(|digit| digit.is_digit(radix));
        let code = u32::from_str_radix(digits, radix).ok().filter(|_| all);
        code.and_then(char::from_u32)
    };
    let character = match name.as_str() {
        "newline" => Some('\n'),
        "return" => Some('\r'),
        "space" => Some(' '),
        "tab" => Some('\t'),
        "formfeed" => Some('\u{C}'),
        "backspace" => Some('\u{8}'),
        other => {
            let mut chars = other.chars();
            match (chars.next(), chars.as_str()) {
                (Some(one), "") => Some(one),
                (Some('u'), digits) if digits.len() == 4 => coded(digits, 16),
                (Some('o'), digits) if digits.len() <= 3 => coded(digits, 8),
                _ => None,
            }
        }
    };
    match character {
        Some(character) => Ok(Name::from_iter([character])),
        None => Err(Fault::at(
            place,
            syntax(format!("\\{name} is no character")),
        )),
    }
}

//! What stands in a form and holds no other: words, numbers, strings, characters.

use std::io::Read;

use super::{Fault, Name, Place, Source, Value, is_end, syntax, text, token};

/// A keyword, a symbol, a number, or one of the three words.
pub(super) fn atom<R: Read>(source: &mut Source<R>, place: Place) -> Result<Value, Fault> {
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
pub(super) fn string<R: Read>(source: &mut Source<R>, place: Place) -> Result<Name, Fault> {
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
pub(super) fn pattern<R: Read>(source: &mut Source<R>, place: Place) -> Result<Name, Fault> {
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
pub(super) fn character<R: Read>(source: &mut Source<R>, place: Place) -> Result<Name, Fault> {
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

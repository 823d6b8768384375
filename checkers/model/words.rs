//! Foreign values and processes, as they are said.

use compact_str::{CompactString, ToCompactString, format_compact};

use crate::history::Name;
use crate::import::Value;
use crate::register_linearizable::Datum;

/// A value as something that can be looked up; `None` for nil, which is absence.
pub(super) fn datum(value: &Value) -> Option<Datum> {
    match value {
        Value::Nil => None,
        Value::Text(text) => Some(Datum::Text(text.clone())),
        Value::Tagged(_, value) => datum(value),
        other => Some(Datum::Other(other.to_compact_string())),
    }
}

/// A text cut in the middle where it is long.
pub(super) fn short(text: &str) -> String {
    const EACH: usize = 24;
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= 2 * EACH + 1 {
        return text.to_owned();
    }
    let (start, end) = (&chars[..EACH], &chars[chars.len() - EACH..]);
    let text = |part: &[char]| part.iter().collect::<String>();
    format!("{}…{}", text(start), text(end))
}

/// A process as it is named in a sentence: `process 3`, or its own name.
pub(super) fn process(name: &Name) -> CompactString {
    match name.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format_compact!("process {name}"),
        false => name.clone(),
    }
}

/// Values as alternatives: `0, 2 or 4`.
pub(super) fn either(values: &[String]) -> String {
    match values {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

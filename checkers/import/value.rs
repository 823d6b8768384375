//! Values as text, and texts of values.

use std::fmt;

use super::Value;
use crate::history::Name;

impl Value {
    /// The text of a word, a string or a whole number: what names a process or an operation.
    pub(crate) fn name(&self) -> Option<Name> {
        match self {
            Value::Text(name) | Value::Word(name) => Some(name.clone()),
            Value::Int(number) => Some(number.to_string().into()),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nil => f.write_str("nil"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Number(number) => f.write_str(number),
            Value::Text(text) => quoted(text, f),
            Value::Word(word) => write!(f, ":{word}"),
            Value::List(items) => listed("[", items, "]", f),
            Value::Set(items) => listed("#{", items, "}", f),
            Value::Map(fields) => {
                f.write_str("{")?;
                for (at, (key, value)) in fields.iter().enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    match is_word(key) {
                        true => write!(f, "{comma}:{key} {value}")?,
                        false => {
                            f.write_str(comma)?;
                            quoted(key, f)?;
                            write!(f, " {value}")?;
                        }
                    }
                }
                f.write_str("}")
            }
            Value::Tagged(tag, value) => write!(f, "#{tag} {value}"),
        }
    }
}

fn listed(open: &str, items: &[Value], close: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(open)?;
    for (at, item) in items.iter().enumerate() {
        let space = if at == 0 { "" } else { " " };
        write!(f, "{space}{item}")?;
    }
    f.write_str(close)
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            control if control.is_control() => write!(f, "\\u{:04x}", u32::from(control))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

fn is_word(key: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "_-./*!?+=<>$%&".contains(c);
    key.starts_with(|c: char| c.is_alphabetic()) && key.chars().all(inside)
}

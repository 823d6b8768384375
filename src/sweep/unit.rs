//! How people write a duration, a part, a range; and how it is told.

use std::fmt;

use deposed_checkers::history::{Nanos, TRUE_RATE};

use crate::workload::{MS, SECOND};

/// One, in parts per billion.
pub(super) const WHOLE: u64 = TRUE_RATE;

/// A part of the window, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Fraction {
    pub(super) text: String,
    pub(super) ppb: u64,
}

impl Fraction {
    /// `1/3`, or `0.33`.
    ///
    /// # Errors
    /// It is no number between 0 and 1, both excluded.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value = match text.split_once('/') {
            Some((over, under)) => number(over)? / number(under)?,
            None => number(text)?,
        };
        match value > 0.0 && value < 1.0 {
            true => Ok(Self {
                text: text.to_owned(),
                ppb: ppb(value),
            }),
            false => Err(
                "a renewal is due within the window: give a part between 0 and 1, as 1/3"
                    .to_owned(),
            ),
        }
    }
}

pub(super) fn range<T: PartialOrd + Copy>(
    text: &str,
    one: impl Fn(&str) -> Result<T, String>,
) -> Result<(T, T), String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let bounds = (one(least)?, one(most)?);
    match bounds.0 <= bounds.1 {
        true => Ok(bounds),
        false => Err(format!(
            "the range is upside down; turn it: {most}..{least}"
        )),
    }
}

/// A duration: `200ms`, `15s`, `1m 30s`.
///
/// # Errors
/// It is none, or nothing.
pub fn length(text: &str) -> Result<Nanos, String> {
    match length_or_none(text)? {
        0 => Err("a duration of nothing does not do here".to_owned()),
        length => Ok(length),
    }
}

/// The same, and nothing: `0s`.
///
/// # Errors
/// It is no duration.
pub fn length_or_none(text: &str) -> Result<Nanos, String> {
    let length = humantime::parse_duration(text.trim())
        .map_err(|_| format!("'{text}' is no duration; give one as 200ms or 15s"))?;
    u64::try_from(length.as_nanos()).map_err(|_| format!("'{text}' is longer than can be counted"))
}

/// A number that is at least 0, and is one.
///
/// # Errors
/// It is not.
pub fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .trim()
        .parse()
        .map_err(|_| format!("'{text}' is no number"))?;
    match number.is_finite() && number >= 0.0 {
        true => Ok(number),
        false => Err(format!("{text} does not do; give a number from 0 up")),
    }
}

/// `99.95%` or `0.9995`, as a part of one.
///
/// # Errors
/// It is no such part.
pub fn part(text: &str) -> Result<f64, String> {
    let part = match text.trim().strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    match part <= 1.0 {
        true => Ok(part),
        false => Err(format!(
            "{text} is more than all; give it as 99.95% or 0.9995"
        )),
    }
}

pub(super) fn percent(text: &str) -> Result<u64, String> {
    part(text).map(ppb)
}

fn ppb(part: f64) -> u64 {
    (part * WHOLE as f64).round() as u64
}

/// A duration as people write it: `1.5s`, `200ms`.
pub struct Length(pub Nanos);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            nanos if nanos >= SECOND => write!(f, "{}s", nanos as f64 / SECOND as f64),
            nanos => write!(f, "{}ms", nanos as f64 / MS as f64),
        }
    }
}

pub(super) struct Percent(pub(super) u64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0 as f64 * 100.0 / WHOLE as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_part_is_refused() {
        for text in ["0", "1", "1/0", "0/0", "3/2", "-1/3", "x"] {
            assert!(Fraction::parse(text).is_err(), "{text}");
        }
        assert!(part("101%").is_err() && part("1.1").is_err());
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(part("99.95%").map(ppb), Ok(999_500_000));
        assert_eq!(Length(1_500 * MS).to_string(), "1.5s");
    }
}

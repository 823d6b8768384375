//! What an option's value may be, and the sentence where it is something else.

use std::{num::NonZero, time::Duration};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use deposed_checkers::{
    history::{LeaseTiming, TRUE_RATE},
    import::Format,
    model::Model,
};

use super::{FormatArg, Unit};
use crate::sweep::unit;

pub(super) fn unit_parser() -> impl TypedValueParser<Value = Unit> {
    let names = PossibleValuesParser::new(Unit::ALL.map(|unit| unit.names().0));
    names.map(|name| {
        let named = Unit::ALL.into_iter().find(|unit| unit.names().0 == name);
        named.unwrap_or(Unit::Nanoseconds)
    })
}

/// Takes the formats' names, and tells them where it is given another.
pub(super) fn format_parser() -> impl TypedValueParser<Value = FormatArg> {
    let foreign = Format::ALL.map(Format::name);
    let names = PossibleValuesParser::new(["deposed"].into_iter().chain(foreign));
    names.map(|name| match name.parse() {
        Ok(format) => FormatArg::Of(format),
        Err(_) => FormatArg::Deposed,
    })
}

/// The same for models.
pub(super) fn model_parser() -> impl TypedValueParser<Value = Model> {
    let names = PossibleValuesParser::new(Model::ALL.map(Model::name));
    names.map(|name| {
        let named = Model::ALL.into_iter().find(|model| model.name() == name);
        named.unwrap_or(Model::Lease)
    })
}

pub(super) fn at_least_one(text: &str) -> Result<NonZero<u64>, String> {
    let number: u64 = text.parse().map_err(|_| not_a_number(text))?;
    NonZero::new(number).ok_or_else(|| "nothing would be run; give 1 or more".to_owned())
}

pub(super) fn a_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| not_a_number(text))
}

/// `ttl=15s,drift=1%,margin=100ms,lock-delay=5s`.
pub(super) fn a_lease(text: &str) -> Result<LeaseTiming, String> {
    let mut timing = LeaseTiming::default();
    let mut told = Vec::new();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = name.trim();
        if told.contains(&name) {
            return Err(format!("{name} is given twice; give it once"));
        }
        told.push(name);
        let length = || unit::length_or_none(value).map_err(|why| format!("{name}: {why}"));
        match name {
            "ttl" => timing.ttl = length()?,
            "margin" => timing.safety_margin = length()?,
            "lock-delay" => timing.lock_delay = length()?,
            "drift" => {
                let number = unit::number(value.trim().trim_end_matches('%'));
                let drift = number.map_err(|why| format!("{name}: {why}"))?;
                let drift = match value.trim().ends_with('%') {
                    true => drift / 100.0,
                    false => drift,
                };
                timing.max_drift_ppb = (drift * 1e9).round() as u64;
                if timing.max_drift_ppb >= TRUE_RATE {
                    return Err(format!(
                        "{name}: a clock that is off by {value} may stand still; give less, as 1%"
                    ));
                }
            }
            other => {
                return Err(format!(
                    "'{other}' is none of ttl, drift, margin and lock-delay"
                ));
            }
        }
    }
    if timing.ttl == 0 {
        return Err("a lease has a ttl: ttl=15s".to_owned());
    }
    let kept = u128::from(timing.ttl) * u128::from(TRUE_RATE - timing.max_drift_ppb);
    let kept = kept / u128::from(TRUE_RATE);
    match kept <= u128::from(timing.safety_margin) {
        // Nobody could ever believe, and no check would have anything to look at.
        true => Err(
            "drift and margin leave nothing of the ttl to lead in; give less of them, or the ttl \
             that clients count with"
                .to_owned(),
        ),
        false => Ok(timing),
    }
}

pub(super) fn a_time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "give a number and a unit: 30s, 2m, 500ms".to_owned())
}

pub(super) fn a_size(text: &str) -> Result<u64, String> {
    let size = text.parse().map(|size: bytesize::ByteSize| size.as_u64());
    size.map_err(|_| "give a number and a unit: 512MB, 2GB".to_owned())
}

pub(super) fn not_a_number(text: &str) -> String {
    match !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit()) {
        true => format!("the highest is {}", u64::MAX),
        false => "give a whole number".to_owned(),
    }
}

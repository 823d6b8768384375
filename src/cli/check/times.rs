//! What the times of another tool's history are counted in, and whether that can be.

use deposed_checkers::{
    history::Nanos,
    import::{Entry, Problem, ReadError},
};

use crate::cli::arguments::Unit;

/// Which part of a ttl a history hardly lasts as short as.
const PART: Nanos = 1_000;

/// From 2010 on, to 2040: in seconds since 1970.
const NOWADAYS: std::ops::Range<u64> = 1_262_304_000..2_208_988_800;

/// From when to when a history goes, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times(Option<(Nanos, Nanos)>);

impl Times {
    pub fn see(&mut self, time: Option<Nanos>) {
        if let Some(time) = time {
            let (first, _) = self.0.unwrap_or((time, time));
            self.0 = Some((first, time));
        }
    }

    /// Whether leases of this ttl can hardly have been looked at for so short a time.
    fn too_short(self, ttl: Nanos) -> Option<(Nanos, Nanos)> {
        let (first, last) = self.0?;
        let span = last.saturating_sub(first);
        (span > 0 && span < ttl / PART).then_some((first, span))
    }

    /// Another unit in which these are times of day, where as nanoseconds they are hardly any.
    pub fn other_unit(self, ttl: Nanos) -> Option<Unit> {
        let (first, _) = self.too_short(ttl)?;
        let others = [Unit::Seconds, Unit::Milliseconds, Unit::Microseconds];
        others.into_iter().find(|unit| {
            let a_second = Unit::Seconds.nanos() / unit.nanos();
            NOWADAYS.contains(&(first / a_second))
        })
    }

    /// What is said where they may be counted in something else.
    pub fn hint(self, ttl: Nanos) -> Option<String> {
        use deposed_checkers::units::span;
        self.too_short(ttl).map(|(_, all)| {
            format!(
                "all of it is within {}, and a lease lasts {}: if its times are no nanoseconds, \
                 --time-unit ms tells what they are",
                span(all),
                span(ttl)
            )
        })
    }
}

/// The entry, its time in nanoseconds.
pub(super) fn in_nanos(
    entry: Result<Entry, ReadError>,
    unit: Unit,
    file: &str,
) -> Result<Entry, ReadError> {
    let mut entry = entry?;
    let Some(time) = entry.time else {
        return Ok(entry);
    };
    entry.time = time.checked_mul(unit.nanos());
    match entry.time {
        Some(_) => Ok(entry),
        None => Err(ReadError {
            file: file.to_owned(),
            place: Some(entry.place),
            problem: Problem::Field {
                field: "time",
                what: format!(
                    "{time} {} are more than can be counted in nanoseconds; is it the right unit?",
                    unit.names().1
                ),
            },
        }),
    }
}

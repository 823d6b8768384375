//! One number made smaller and rounder, by proptest's binary search.

use proptest::{num::u64::BinarySearch, strategy::ValueTree};

/// Nothing in the simulation is finer than a step: lengths are not searched below it.
const FINEST: u64 = crate::world::TICK;

/// Looks for the smallest of the roundest values below a start that still do: nothing at
/// all, then one digit and zeros, then two and zeros, down to milliseconds (small numbers:
/// to ones).
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    start: u64,
    /// The unit whose multiples are looked at.
    unit: u64,
    /// The least unit.
    finest: u64,
    rung: Rung,
}

#[derive(Clone, Debug)]
enum Rung {
    /// Nothing at all is tried.
    Zero,
    /// The start, rounded down to the unit, is tried.
    Round,
    /// A multiple of the unit does; a smaller one is looked for.
    Search(BinarySearch),
    Done,
}

impl Ladder {
    /// From a value that does.
    pub(super) fn new(start: u64) -> Self {
        let unit = start
            .checked_ilog10()
            .map_or(1, |digits| 10_u64.pow(digits));
        let rung = match start {
            0 => Rung::Done,
            _ => Rung::Zero,
        };
        let finest = if start < FINEST { 1 } else { FINEST };
        Self {
            start,
            unit,
            finest,
            rung,
        }
    }

    /// The value to try next.
    pub(super) fn next(&self) -> Option<u64> {
        match &self.rung {
            Rung::Zero => Some(0),
            Rung::Round => Some(self.multiples() * self.unit),
            Rung::Search(search) => Some(search.current() * self.unit),
            Rung::Done => None,
        }
    }

    /// Whether that value does.
    pub(super) fn answer(&mut self, does: bool) {
        match &mut self.rung {
            Rung::Zero if does => self.rung = Rung::Done,
            Rung::Zero => self.round(),
            Rung::Round if does => self.search(),
            Rung::Round => {
                self.unit /= 10;
                self.round();
            }
            Rung::Search(search) => {
                let more = match does {
                    true => search.simplify(),
                    false => search.complicate(),
                };
                if !more {
                    let least = search.current();
                    self.descend(least);
                }
            }
            Rung::Done => {}
        }
    }

    fn round(&mut self) {
        match self.start % self.unit {
            _ if self.unit < self.finest => self.rung = Rung::Done,
            // It is round already.
            0 => self.search(),
            _ => self.rung = Rung::Round,
        }
    }

    fn search(&mut self) {
        // Nothing at all did not do.
        let mut search = BinarySearch::new_above(1, self.multiples());
        match search.simplify() {
            true => self.rung = Rung::Search(search),
            false => self.descend(self.multiples()),
        }
    }

    /// The least multiple is known. Of 1 and zeros the tenths are as round.
    fn descend(&mut self, least: u64) {
        self.rung = Rung::Done;
        if least == 1 && self.unit > self.finest {
            self.start = self.unit;
            self.unit /= 10;
            self.search();
        }
    }

    fn multiples(&self) -> u64 {
        self.start / self.unit
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The value that a ladder comes to, and how many it tried.
    fn climb(start: u64, does: impl Fn(u64) -> bool) -> (u64, u32) {
        let (mut ladder, mut best, mut tried) = (Ladder::new(start), start, 0);
        while let Some(value) = ladder.next() {
            tried += 1;
            assert!(tried < 200, "{start} never ends");
            let good = does(value);
            if good {
                best = value;
            }
            ladder.answer(good);
        }
        (best, tried)
    }

    #[test]
    fn a_length_becomes_the_roundest_that_does() {
        let ms = 1_000_000;
        for (start, least, found) in [
            (557_427_311, 0, 0),
            (557_427_311, 301 * ms, 400 * ms),
            (557_427_311, 301 * ms - 1, 400 * ms),
            (557_427_311, 300 * ms, 300 * ms),
            (557_427_311, 501 * ms, 510 * ms),
            (557_427_311, 557 * ms, 557 * ms),
            (557_427_311, 557_427_311, 557_427_311),
            (7, 3, 3),
            (1, 1, 1),
            (123_456, 1, 1),
            (123_456, 2_500, 3_000),
            (1_000 * ms, 250 * ms, 300 * ms),
            (1_047 * ms, 12 * ms, 20 * ms),
        ] {
            assert_eq!(
                climb(start, |value| value >= least).0,
                found,
                "{start} {least}"
            );
        }
    }

    proptest! {
        /// Never more than the start, always one that does, in a few dozen tries.
        #[test]
        fn what_it_comes_to_does(start: u64, least: u64) {
            let least = least.min(start);
            let (found, tried) = climb(start, |value| value >= least);
            prop_assert!((least..=start).contains(&found));
            prop_assert!(tried <= 100, "{} tries", tried);
        }
    }
}

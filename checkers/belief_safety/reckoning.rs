//! Why two led at once, by the clocks: what the deposed leader had counted, and what the
//! store, when it gave the lease away. Local against true time, in sentences.

use super::overlap::{Overlap, Passing, nanos};
use crate::history::Nanos;
use crate::owners::called;
use crate::units::{span, time};

impl Overlap<'_> {
    /// The arithmetic.
    pub fn reckoning(&self) -> Vec<String> {
        let mut lines = vec![self.both()];
        lines.extend(self.counted_until());
        lines.extend(self.has_no_end());
        lines.extend(self.stood_still());
        lines.extend(self.was_stepped());
        lines.extend(self.counted_from_later());
        lines.extend(self.has_crashed());
        lines.extend(self.given_away());
        lines
    }

    fn both(&self) -> String {
        let ends = [self.deposed.end(), self.successor.end()];
        match ends.into_iter().flatten().min() {
            Some(end) => format!(
                "both led from {} on, and by their own clocks would have until {}: {} of true time",
                time(self.now),
                time(end),
                span(end.saturating_sub(self.now))
            ),
            None => format!(
                "both led from {} on, and neither had an end",
                time(self.now)
            ),
        }
    }

    /// What the deposed leader's clock counts, from the send behind its belief to the end.
    fn counted_until(&self) -> Option<String> {
        let (deposed, own) = (self.deposed, self.counted()?);
        let until = deposed.end()?;
        let mut line = format!(
            "{} counted from {} until {}: {}",
            deposed.process,
            time(deposed.sent),
            time(until),
            by_clock(own, until.saturating_sub(deposed.sent))
        );
        if let (Some(timing), Some(safe)) = (self.timing, self.safe()) {
            line += &format!(
                "; of a ttl of {} less drift and margin, {} are safe",
                span(timing.ttl),
                span(safe)
            );
        }
        Some(line)
    }

    /// When a belief should have ended that has no end.
    fn has_no_end(&self) -> Option<String> {
        let deposed = self.deposed;
        if deposed.until.is_some() || !deposed.sent_is_known {
            return None;
        }
        let safe = self.safe()?;
        let who = &deposed.process;
        let counted = |until| nanos(self.rates.elapsed(who, deposed.sent, until));
        if counted(self.now) < safe {
            return None;
        }
        // Its clock may have changed its rate meanwhile.
        let (mut before, mut over) = (deposed.sent, self.now);
        while over.saturating_sub(before) > 1 {
            let between = before + (over - before) / 2;
            match counted(between) < safe {
                true => before = between,
                false => over = between,
            }
        }
        Some(format!(
            "{who}'s window of {} from its send at {} was over at {}; it believed on without an end",
            span(safe),
            time(deposed.sent),
            time(over)
        ))
    }

    fn stood_still(&self) -> Option<String> {
        let (deposed, slept) = (self.deposed, self.slept()?);
        let who = &deposed.process;
        let Some(own) = self.counted() else {
            let read = self.rates.elapsed(who, deposed.sent, slept.from);
            return Some(format!(
                "{who} counted from {}, and its machine has slept since {}: its run clock stands \
                 still at {}, and its belief has no end before it wakes",
                time(deposed.sent),
                time(slept.from),
                span(nanos(read))
            ));
        };
        let still = match slept.on {
            true => "stands still",
            false => "stood still",
        };
        Some(format!(
            "its run clock {still} for {} while the machine slept, from {} on: by it, {who} \
             counted {}",
            span(slept.asleep),
            time(slept.from),
            span(own.saturating_sub(slept.asleep))
        ))
    }

    fn was_stepped(&self) -> Option<String> {
        let stepped = self.stepped()?;
        let by = |(count, in_all, last): (usize, i64, Nanos)| {
            let sign = if in_all < 0 { '-' } else { '+' };
            let by = span(in_all.unsigned_abs());
            match count {
                1 => format!("{sign}{by} at {}", time(last)),
                _ => format!("{sign}{by} in all, the last time at {}", time(last)),
            }
        };
        let own = stepped
            .own
            .map(|steps| format!("its wall clock was stepped by {}", by(steps)));
        let stores = self
            .store()
            .zip(stepped.stores)
            .map(|(store, steps)| format!("{store}'s wall clock was stepped by {}", by(steps)));
        let steps: Vec<String> = [own, stores].into_iter().flatten().collect();
        Some(format!(
            "{}: by wall clocks, {} counted {}",
            steps.join(", and "),
            self.deposed.process,
            span(self.counted()?.saturating_sub(stepped.by))
        ))
    }

    /// Whatever it counted from (an answer, a later try, a restart), a right one is earlier.
    fn counted_from_later(&self) -> Option<String> {
        let (deposed, promise) = (self.deposed, self.promise(self.deposed)?);
        (deposed.sent_is_known && deposed.sent > promise.from).then(|| {
            format!(
                "that is later than the store began to, at {}: {} did not count from the send of \
                 what it was granted",
                time(promise.from),
                deposed.process
            )
        })
    }

    fn has_crashed(&self) -> Option<String> {
        let (crash, promise) = (self.crashed()?, self.promise(self.deposed)?);
        Some(format!(
            "{} crashed at {}: what it was granted at {} was no longer its own",
            self.deposed.process,
            time(crash.from),
            time(promise.granted)
        ))
    }

    /// What the store had counted of the deposed leader's ttl, when it granted the lease anew.
    fn given_away(&self) -> Option<String> {
        let (deposed, store) = (&self.deposed.process, self.store());
        let who = |granted| {
            format!(
                "{} granted {} the lease at {}",
                store.map_or("store", |store| store.as_str()),
                self.successor.process,
                time(granted)
            )
        };
        let clock =
            |from: Nanos, granted: Nanos, counted| by_clock(counted, granted.saturating_sub(from));
        let owed = |ttl, from| {
            format!(
                "of the {} it owed {deposed} from {} on",
                span(ttl),
                time(from)
            )
        };
        match self.passing() {
            Passing::Released(promise, taken, granted) => {
                let who = who(granted);
                let at = time(taken.at);
                Some(match self.sent_before(promise, taken) {
                    Some((sent, _)) => format!(
                        "{who}: at {at} it took the release that {deposed} had sent at {} for an \
                         earlier grant, and ended the one of {} with it",
                        time(sent),
                        time(promise.granted)
                    ),
                    None if taken.holder == self.deposed.holder => {
                        match taken.token.zip(promise.token) {
                            Some((old, held)) if old != held => format!(
                                "{who}: it took a release of {deposed}'s token {old} at {at}, \
                                 though {deposed} held it under token {held}"
                            ),
                            _ => format!(
                                "{who}: {deposed} had released it at {at}, and went on believing"
                            ),
                        }
                    }
                    None => format!(
                        "{who}: it had taken a release by {} at {at}, though {} held it",
                        called(&taken.holder, &self.deposed.holder),
                        called(&self.deposed.holder, &taken.holder)
                    ),
                })
            }
            Passing::TooEarly(promise, granted, counted) => {
                let mut line = format!(
                    "{}, when it had counted only {} {}",
                    who(granted),
                    clock(promise.from, granted, counted),
                    owed(promise.ttl, promise.from)
                );
                if let Some(back) = self.returned() {
                    line += &match back.found {
                        true => format!(
                            ": it came back at {} and found its owner, and owed it all of that anew",
                            time(back.at)
                        ),
                        false => {
                            format!(
                                ": it came back at {} and had forgotten {deposed}",
                                time(back.at)
                            )
                        }
                    };
                } else if let Some((last, by)) = self.store_stepped(promise) {
                    line += &format!(
                        ": its wall clock was stepped by +{} since, the last time at {}",
                        span(by),
                        time(last.from)
                    );
                }
                Some(line)
            }
            Passing::RanOut(promise, granted, counted) => Some(format!(
                "{}, when it had counted {}, all {}",
                who(granted),
                clock(promise.from, granted, counted),
                owed(promise.ttl, promise.from)
            )),
            Passing::Untold => self.released_untold().map(|(sent, _)| {
                format!(
                    "{deposed} sent its release at {}, and went on believing",
                    time(sent)
                )
            }),
        }
    }
}

/// A stretch by a node's own clock, with the true one where they differ.
fn by_clock(own: Nanos, truth: Nanos) -> String {
    match own == truth {
        true => span(own),
        false => format!("{} by its own clock ({} in truth)", span(own), span(truth)),
    }
}

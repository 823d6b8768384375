//! What the nemesis of a workload may do, and how a seed turns that into a schedule.
//!
//! Schedules are dense (2 to 5 faults a ttl) and mixed: uniform in time, aimed at
//! events, of boundary lengths (near the ttl, near a third of it), in bursts. Measured
//! on a model of these cores, each part of that mixture convicts flaws that the others
//! miss.
//!
//! An aimed fault waits for the next such event from a drawn time on. (Aimed at the nth
//! of a whole run, three in ten never found their event in `chaos`.)

mod menu;
mod uniform;

use deposed_checkers::history::{Nanos, TRUE_RATE};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::{
    fault::{Fault, Injection, Moment, Schedule, Trigger},
    lease::LeaseConfig,
    world::TICK,
};

pub use menu::{
    FRAMES, FRAMES_OF_STORAGES, backup, bridge, crash, delay, duplicate, each_kind, flaky,
    full_disk, gc_pause, halves, hold, io_error, isolate, latency, lose, lose_exactly, partition,
    partition_oneway, pause, power_cut, power_loss, rate, restore, slow_sync, starve, step,
    suspend,
};

/// What may go wrong, and how often.
#[derive(Clone, Debug, Default)]
pub struct Nemesis {
    /// Faults in [`Nemesis::per`] ttls: the least and the most.
    pub faults: (u32, u32),
    /// See [`Nemesis::faults`].
    pub per: u32,
    /// Whether the second half of each slot stays free of faults drawn by time.
    pub spaced: bool,
    /// What they are drawn from.
    pub choices: Vec<Choice>,
}

/// A kind of fault that may be drawn.
#[derive(Clone, Debug)]
pub struct Choice {
    /// How often, against the other choices.
    pub weight: u32,
    /// The fault; its length, delay, count or rate is drawn.
    pub fault: Fault,
    /// How long it lasts.
    pub length: Length,
    /// Events it may be aimed at.
    pub aims: Vec<Moment>,
    /// Whether it is never drawn at a mere time.
    pub only_aimed: bool,
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A mixture: short, near a third of the ttl, near the ttl, up to two ttls.
    Mixed,
    /// Up to a third of the ttl.
    Short,
    /// From just below the ttl to a quarter above it.
    AroundTtl,
    /// From one ttl to two.
    Long,
    /// Exactly this.
    Exactly(Nanos),
}

impl Nemesis {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        Self::default()
    }

    /// Between `least` and `most` faults in each ttl.
    pub fn dense(least: u32, most: u32, choices: Vec<Choice>) -> Self {
        Self {
            faults: (least, most),
            per: 1,
            spaced: false,
            choices,
        }
    }

    /// One fault in so many ttls: for stories that need room to unfold.
    pub fn one_in(ttls: u32, choices: Vec<Choice>) -> Self {
        Self {
            faults: (1, 1),
            per: ttls,
            spaced: false,
            choices,
        }
    }

    /// One fault in so many ttls, and at least half of that between two (of those
    /// drawn by time): for stories about what a single fault may not do.
    pub fn spaced(ttls: u32, choices: Vec<Choice>) -> Self {
        Self {
            spaced: true,
            ..Self::one_in(ttls, choices)
        }
    }

    /// Draws a schedule.
    pub fn draw(&self, rng: &mut ChaCha8Rng, lease: &LeaseConfig, chaos: Nanos) -> Schedule {
        let total_weight: u32 = self.choices.iter().map(|choice| choice.weight).sum();
        if total_weight == 0 || self.per == 0 {
            return Schedule::new();
        }
        let mut draw = Draw {
            rng,
            lease,
            total_weight,
            nemesis: self,
        };
        let span = lease.ttl.saturating_mul(u64::from(self.per)).max(1);
        let mut schedule = Schedule::new();
        for slot in 0..chaos.div_ceil(span) {
            let count = draw.rng.random_range(self.faults.0..=self.faults.1);
            let from = slot * span;
            let to = (from + if self.spaced { span / 2 } else { span }).min(chaos);
            // A sixth of the slots strike all at once.
            let burst = self.per == 1 && draw.rng.random_ratio(1, 6);
            let centre = draw.rng.random_range(from..to);
            for _ in 0..count {
                let at = if burst {
                    centre + draw.rng.random_range(0..=lease.ttl / 8)
                } else {
                    draw.rng.random_range(from..to)
                };
                schedule.push(draw.injection(at, burst));
            }
        }
        schedule
    }
}

struct Draw<'a> {
    rng: &'a mut ChaCha8Rng,
    lease: &'a LeaseConfig,
    total_weight: u32,
    nemesis: &'a Nemesis,
}

impl<'a> Draw<'a> {
    fn injection(&mut self, at: Nanos, burst: bool) -> Injection {
        let choice = self.choice();
        let aimed = choice.only_aimed || (!burst && self.rng.random_ratio(3, 5));
        let when = if aimed && !choice.aims.is_empty() {
            let moment = choice.aims[self.rng.random_range(0..choice.aims.len())];
            let plus = match self.rng.random_range(0..3) {
                _ if choice.only_aimed => 0,
                0 => self.rng.random_range(0..=self.lease.ttl / 3),
                1 => self.rng.random_range(0..=self.lease.ttl / 15),
                _ => 0,
            };
            Trigger::Next {
                moment,
                after: at,
                plus,
            }
        } else {
            Trigger::At(at)
        };
        Injection {
            when,
            fault: self.fill(choice),
        }
    }

    fn choice(&mut self) -> &'a Choice {
        let nemesis = self.nemesis;
        let mut ticket = self.rng.random_range(0..self.total_weight);
        for choice in &nemesis.choices {
            if ticket < choice.weight {
                return choice;
            }
            ticket -= choice.weight;
        }
        unreachable!("the ticket is below the sum of the weights")
    }

    /// The choice's fault with everything drawn that is to be drawn.
    fn fill(&mut self, choice: &Choice) -> Fault {
        let drawn = self.length(choice.length);
        let frames = self.rng.random_range(1..=3);
        let mut fault = choice.fault.clone();
        if let Some(length) = fault.length_mut() {
            *length = drawn;
        }
        match &mut fault {
            // A commit is some ten operations, an opening some fifty.
            Fault::PowerCut { operations, .. } => *operations = self.rng.random_range(1..=60),
            Fault::IoError { count, .. } => *count = frames,
            Fault::SlowSync { by, .. } => {
                *by = self
                    .rng
                    .random_range(TICK..=(self.lease.ttl / 3).max(2 * TICK));
            }
            Fault::Latency { min, max, .. } => {
                let longest = (self.lease.try_timeout * 3 / 2).max(2 * TICK);
                *min = self.rng.random_range(TICK..=longest / 2);
                *max = self.rng.random_range(*min..=longest);
            }
            Fault::Starve { one_in, .. } => {
                // From a slow process to one that renews once or twice a window.
                let scarcest = u32::try_from(self.lease.ttl / 3 / TICK).unwrap_or(u32::MAX);
                *one_in = self.rng.random_range(5..=scarcest.max(5));
            }
            Fault::Flaky {
                lose_ppb,
                delay_ppb,
                by,
                ..
            } => {
                *lose_ppb = self.rng.random_range(50_000_000..=500_000_000);
                *delay_ppb = self.rng.random_range(50_000_000..=500_000_000);
                *by = self.lease.try_timeout * 2;
            }
            Fault::Lose { count, .. } => *count = if *count == 0 { frames } else { *count },
            Fault::Delay { count, by, .. } | Fault::Duplicate { count, by, .. } => {
                *count = if *count == 0 { frames } else { *count };
                *by = drawn;
            }
            Fault::Rate { rate_ppb, .. } => {
                let half = self.lease.max_drift_ppb / 2;
                *rate_ppb = self.rng.random_range(TRUE_RATE - half..=TRUE_RATE + half);
            }
            Fault::Step { by, .. } => {
                let most = i64::try_from(self.lease.ttl * 4).unwrap_or(i64::MAX);
                *by = self.rng.random_range(-most..=most);
            }
            // Whom it strikes, when and for how long is all.
            _ => {}
        }
        fault
    }

    fn length(&mut self, length: Length) -> Nanos {
        let ttl = self.lease.ttl;
        match length {
            Length::Exactly(length) => length,
            Length::Short => self.rng.random_range(1..=ttl / 3),
            Length::AroundTtl => ttl - ttl / 20 + self.rng.random_range(0..=ttl / 4),
            Length::Long => self.rng.random_range(ttl..=ttl * 2),
            Length::Mixed => match self.rng.random_range(0..4) {
                0 => self.rng.random_range(1..=ttl / 3),
                1 => ttl / 3 + self.rng.random_range(0..=ttl / 20),
                2 => ttl - ttl / 20 + self.rng.random_range(0..=ttl / 4),
                _ => self.rng.random_range(ttl / 2..=ttl * 2),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rng::stream,
        workload::{MS, SECOND},
    };

    #[test]
    fn spaced_faults_never_add_up() {
        let lease = LeaseConfig::for_ttl(100 * MS);
        let nemesis = Nemesis::spaced(2, vec![lose("renew")]);
        let schedule = nemesis.draw(&mut stream(7, "schedule", 0), &lease, 10 * SECOND);
        let times = schedule.iter().map(|injection| match injection.when {
            Trigger::At(at) => at,
            aimed => panic!("nothing to aim at: {aimed:?}"),
        });
        let times: Vec<_> = times.collect();
        assert_eq!(times.len(), 50);
        assert!(times.windows(2).all(|two| two[1] - two[0] > 100 * MS));
    }
}

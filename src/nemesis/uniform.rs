//! What other harnesses draw: a few faults a minute, at any time, of any length. Kept to
//! measure our own schedules against.

use deposed_checkers::history::Nanos;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Choice, Draw, Length, Nemesis};
use crate::{
    fault::{Injection, Schedule, Trigger},
    lease::LeaseConfig,
    workload::SECOND,
};

/// Faults a minute: the least and the most.
pub const PER_MINUTE: (u64, u64) = (1, 12);

impl Nemesis {
    /// Draws a sparse uniform schedule from the same choices, each as likely as the
    /// others: so many faults a minute as is drawn once for the run, none of them aimed,
    /// each up to two ttls long.
    pub fn draw_uniform(
        &self,
        rng: &mut ChaCha8Rng,
        lease: &LeaseConfig,
        chaos: Nanos,
    ) -> Schedule {
        if self.choices.is_empty() || chaos == 0 {
            return Schedule::new();
        }
        let per_minute = rng.random_range(PER_MINUTE.0..=PER_MINUTE.1);
        let minute = 60 * SECOND;
        let expected = per_minute.saturating_mul(chaos);
        let whole = expected / minute;
        let one_more = rng.random_range(0..minute) < expected % minute;
        let mut draw = Draw {
            rng,
            lease,
            total_weight: 0,
            nemesis: self,
        };
        let mut schedule = Schedule::new();
        for _ in 0..whole + u64::from(one_more) {
            let at = draw.rng.random_range(0..chaos);
            let length = draw.rng.random_range(1..=lease.ttl.saturating_mul(2));
            let choice = &self.choices[draw.rng.random_range(0..self.choices.len())];
            let choice = Choice {
                length: Length::Exactly(length),
                ..choice.clone()
            };
            schedule.push(Injection {
                when: Trigger::At(at),
                fault: draw.fill(&choice),
            });
        }
        schedule
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fault::Target, nemesis::pause, rng::stream, workload::MS};

    #[test]
    fn one_to_twelve_faults_a_minute_at_mere_times() {
        let lease = LeaseConfig::for_ttl(100 * MS);
        let nemesis = Nemesis::dense(2, 5, vec![pause(Target::Leader)]);
        let mut counts = Vec::new();
        for seed in 0..200 {
            let mut rng = stream(seed, "schedule", 0);
            let schedule = nemesis.draw_uniform(&mut rng, &lease, 60 * SECOND);
            let aimed = |entry: &Injection| !matches!(entry.when, Trigger::At(_));
            assert!(!schedule.iter().any(aimed));
            counts.push(schedule.len());
        }
        counts.sort_unstable();
        assert_eq!((counts[0], counts[199]), (1, 12));
    }
}

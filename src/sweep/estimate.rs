//! What a cell's runs say together.
//!
//! Rates and parts are sums of what one fault costs times how many there are in an hour.
//! False failovers are a part of the pauses, so their interval is Clopper and Pearson's,
//! exact and honest where none was seen. For all else no distribution can be assumed
//! (lengths are a mixture, and bounded by the lease), so the faults are drawn anew 1,000
//! times with replacement: the bootstrap, under a fixed seed. What nothing provoked comes
//! at random times, and is drawn as such.

use super::{
    measures::{Measures, Spells},
    plan::{Cell, Plan},
    setting::{Environment, Setting},
    statistics::{Interval, mean, proportion, quantile, resampled, thinned},
};
use crate::rng::stream;

/// Samples drawn anew for an interval.
const SAMPLES: usize = 1000;
const SECONDS_AN_HOUR: f64 = 3600.0;

/// A cell's numbers. Durations are in seconds.
#[derive(Clone, Debug)]
pub struct Estimate<'p> {
    /// Which cell.
    pub cell: Cell<'p>,
    /// How many pauses and crashes it rests on.
    pub faults: (u64, u64),
    /// False failovers an hour.
    pub false_failovers: Interval,
    /// The part of the time in which a leader serves.
    pub availability: Interval,
    /// From a crash until the next leader serves, the median; nothing where no leader was
    /// there to crash.
    pub failover_p50: Option<Interval>,
    /// The same, the 99th percentile.
    pub failover_p99: Option<Interval>,
    /// How long nobody leads when nobody does, the median; nothing where somebody always
    /// led.
    pub leaderless_p50: Option<Interval>,
    /// The same, the 99th percentile.
    pub leaderless_p99: Option<Interval>,
    /// Renewals sent in an hour of leadership.
    pub renewals: Interval,
    /// Whether no other setting in the environment is more available and fails over sooner.
    pub on_front: bool,
}

/// An environment, with the estimate of each setting.
pub struct Panel<'p> {
    /// Which environment.
    pub environment: &'p Environment,
    /// In the order of the plan.
    pub estimates: Vec<Estimate<'p>>,
}

impl<'p> Panel<'p> {
    /// Every environment's estimates from what its runs measured, by cell and run.
    pub fn all(plan: &'p Plan, measured: &[Vec<Measures>]) -> Vec<Self> {
        let mut cells = plan.cells();
        let panel = |environment: &'p Environment| {
            let mine = cells.by_ref().take(plan.settings.len());
            let estimates = mine.map(|cell| {
                let runs = measured.get(cell.place).map_or(&[][..], Vec::as_slice);
                Estimate::of(plan, cell, runs)
            });
            let mut estimates: Vec<Estimate<'p>> = estimates.collect();
            mark_front(&mut estimates);
            Panel {
                environment,
                estimates,
            }
        };
        plan.environments.iter().map(panel).collect()
    }

    /// The cheapest in renewals of the settings that surely are so available (with the
    /// whole of their interval), and how many those are; or else the most available.
    pub fn recommended(&self, availability: f64) -> Result<(&Estimate<'p>, usize), &Estimate<'p>> {
        let reach = |estimate: &&Estimate<'_>| estimate.availability.low >= availability;
        let reaching = || self.estimates.iter().filter(reach);
        let cheapest = reaching().min_by(|a, b| {
            let (a, b) = (&a.renewals, &b.renewals);
            a.value.total_cmp(&b.value)
        });
        match cheapest {
            Some(cheapest) => Ok((cheapest, reaching().count())),
            None => {
                let best = |a: &&Estimate<'_>, b: &&Estimate<'_>| {
                    b.availability.value.total_cmp(&a.availability.value)
                };
                // A plan that was validated has a setting.
                Err(self
                    .estimates
                    .iter()
                    .min_by(best)
                    .unwrap_or(&self.estimates[0]))
            }
        }
    }
}

/// Marks those that none other is better than in both.
fn mark_front(estimates: &mut [Estimate<'_>]) {
    let point = |e: &Estimate<'_>| Some((e.availability.value, e.failover_p99?.value));
    let points: Vec<Option<(f64, f64)>> = estimates.iter().map(point).collect();
    let better = |a: &(f64, f64), b: &(f64, f64)| a.0 >= b.0 && a.1 <= b.1 && a != b;
    for (estimate, point) in estimates.iter_mut().zip(&points) {
        let mut others = points.iter().flatten();
        let beaten = |point: &(f64, f64)| others.any(|other| better(other, point));
        estimate.on_front = !point.as_ref().is_none_or(beaten);
    }
}

/// What spells cost, by what began them, in seconds.
struct Costs {
    by_crash: Vec<f64>,
    by_pause: Vec<f64>,
    unprovoked: Vec<f64>,
}

/// How much one of each counts in an hour.
struct Weights {
    crash: f64,
    pause: f64,
    unprovoked: f64,
}

impl Costs {
    /// Those of spells; faults that began none cost nothing.
    fn of(spells: &Spells, (pauses, crashes): (u64, u64)) -> Self {
        let padded = |spells: &[u64], faults: u64| {
            let mut costs: Vec<f64> = spells.iter().map(|&spell| seconds(spell)).collect();
            let faults = usize::try_from(faults).unwrap_or(costs.len());
            costs.resize(faults.max(costs.len()), 0.0);
            costs
        };
        Self {
            by_crash: padded(&spells.by_crash, crashes),
            by_pause: padded(&spells.by_pause, pauses),
            unprovoked: padded(&spells.unprovoked, 0),
        }
    }

    fn drawn_anew(&self, rng: &mut rand_chacha::ChaCha8Rng) -> Self {
        Self {
            by_crash: resampled(&self.by_crash, rng),
            by_pause: resampled(&self.by_pause, rng),
            unprovoked: thinned(&self.unprovoked, rng),
        }
    }

    /// Seconds an hour.
    fn an_hour(&self, weights: &Weights) -> f64 {
        let unprovoked: f64 = self.unprovoked.iter().sum();
        mean(&self.by_crash) * weights.crash
            + mean(&self.by_pause) * weights.pause
            + unprovoked * weights.unprovoked
    }

    /// Of the spells that there were.
    fn quantile(&self, weights: &Weights, part: f64) -> Option<f64> {
        let each = |rate: f64, costs: &[f64]| rate / costs.len().max(1) as f64;
        let kinds = [
            (&self.by_crash, each(weights.crash, &self.by_crash)),
            (&self.by_pause, each(weights.pause, &self.by_pause)),
            (&self.unprovoked, weights.unprovoked),
        ];
        let mut weighted: Vec<(f64, f64)> = kinds
            .iter()
            .flat_map(|(costs, weight)| costs.iter().map(|cost| (*cost, *weight)))
            .filter(|(cost, weight)| *cost > 0.0 && *weight > 0.0)
            .collect();
        quantile(&mut weighted, part)
    }
}

impl<'p> Estimate<'p> {
    fn of(plan: &Plan, cell: Cell<'p>, runs: &[Measures]) -> Self {
        let mut sum = Measures::default();
        runs.iter().for_each(|run| sum.add(run));
        let faults = (sum.pauses, sum.crashes);
        let hours = seconds(sum.led) / SECONDS_AN_HOUR;
        let weights = Weights {
            crash: plan.crashes_per_day / 24.0,
            pause: cell.environment.pauses.per_hour,
            unprovoked: match hours > 0.0 {
                true => 1.0 / hours,
                false => 0.0,
            },
        };
        let mut rng = stream(cell.place as u64, "bootstrap", 0);
        let down = Costs::of(&sum.down, faults);
        let leaderless = Costs::of(&sum.leaderless, faults);
        let samples: Vec<(Costs, Costs)> = (0..SAMPLES)
            .map(|_| (down.drawn_anew(&mut rng), leaderless.drawn_anew(&mut rng)))
            .collect();
        let available = |down: &Costs| {
            let hour = SECONDS_AN_HOUR - down.an_hour(&weights);
            (hour / SECONDS_AN_HOUR).max(0.0)
        };
        let availability = Interval::of_samples(
            available(&down),
            samples.iter().map(|(down, _)| available(down)).collect(),
        );
        let only_crashes = Weights {
            crash: 1.0,
            pause: 0.0,
            unprovoked: 0.0,
        };
        let failover = |part: f64| {
            let of = |costs: &Costs| costs.quantile(&only_crashes, part);
            let drawn = samples.iter().filter_map(|(down, _)| of(down));
            Some(Interval::of_samples(of(&down)?, drawn.collect()))
        };
        let without = |part: f64| {
            let of = |costs: &Costs| costs.quantile(&weights, part);
            let drawn = samples.iter().filter_map(|(_, costs)| of(costs));
            Some(Interval::of_samples(of(&leaderless)?, drawn.collect()))
        };
        let unprovoked = sum.false_unprovoked as f64 * weights.unprovoked;
        Self {
            cell,
            faults,
            false_failovers: proportion(sum.false_by_pause, sum.pauses)
                .times(weights.pause)
                .plus(unprovoked),
            availability,
            failover_p50: failover(0.5),
            failover_p99: failover(0.99),
            leaderless_p50: without(0.5),
            leaderless_p99: without(0.99),
            renewals: renewals(runs, &mut rng),
            on_front: false,
        }
    }

    /// What was chosen.
    pub fn setting(&self) -> &'p Setting {
        self.cell.setting
    }
}

/// In an hour of leadership: whole runs are drawn anew.
fn renewals(runs: &[Measures], rng: &mut rand_chacha::ChaCha8Rng) -> Interval {
    use rand::RngExt;
    let rate = |sent: u64, led: u64| match led {
        0 => 0.0,
        led => sent as f64 / seconds(led) * SECONDS_AN_HOUR,
    };
    let total = |picked: &mut dyn Iterator<Item = &Measures>| {
        let add = |(sent, led), run: &Measures| (sent + run.renewals, led + run.led);
        let (sent, led) = picked.fold((0, 0), add);
        rate(sent, led)
    };
    let value = total(&mut runs.iter());
    let samples = (0..if runs.is_empty() { 0 } else { SAMPLES }).map(|_| {
        let mut drawn = (0..runs.len()).map(|_| &runs[rng.random_range(0..runs.len())]);
        total(&mut drawn)
    });
    Interval::of_samples(value, samples.collect())
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

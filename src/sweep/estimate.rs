//! What a cell's runs say together.
//!
//! Rates and parts are sums of what one fault costs times how many there are in an hour.
//! False failovers are a part of the pauses, so their interval is Clopper and Pearson's,
//! exact and honest where none was seen. For all else no distribution can be assumed
//! (lengths are a mixture, and bounded by the lease). A quantile's bounds are two of the
//! samples, or are not known. For means the faults are drawn anew 1,000 times with
//! replacement: the bootstrap, under a fixed seed; what nothing provoked comes at random
//! times, and is drawn as such. That cannot draw what was never seen, and a false failover
//! costs more than most that was, so availability is lowered by those that there may be.

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
    /// The part of the time in which a leader serves. The lower bound allows for as many
    /// false failovers as there may be.
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

    /// The cheapest in renewals of the settings that are so available with the whole of
    /// their interval, and how many those are; or else the most available.
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
    fn quantile(&self, weights: &Weights, part: f64) -> Option<Interval> {
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
        let available = |down: &Costs| {
            let hour = SECONDS_AN_HOUR - down.an_hour(&weights);
            (hour / SECONDS_AN_HOUR).max(0.0)
        };
        let drawn = (0..SAMPLES).map(|_| available(&down.drawn_anew(&mut rng)));
        let mut availability = Interval::of_samples(available(&down), drawn.collect());
        let deposed = proportion(sum.false_by_pause, sum.pauses);
        let unseen = (deposed.high - deposed.value) * weights.pause;
        let cost = of_a_false_failover(&sum, plan.failover(cell));
        availability.low = (availability.low - unseen * cost / SECONDS_AN_HOUR).max(0.0);
        let only_crashes = Weights {
            crash: 1.0,
            pause: 0.0,
            unprovoked: 0.0,
        };
        let failover = |part: f64| down.quantile(&only_crashes, part);
        let without = |part: f64| leaderless.quantile(&weights, part);
        let unprovoked = sum.false_unprovoked as f64 * weights.unprovoked;
        Self {
            cell,
            faults,
            false_failovers: deposed.times(weights.pause).plus(unprovoked),
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

/// For how long nobody serves in a false failover, seconds: the mean of those that were
/// seen, or where none was, `most`. They are not told apart from pauses that deposed
/// nobody, and taken to be the longest.
fn of_a_false_failover(sum: &Measures, most: u64) -> f64 {
    let mut spells = sum.down.by_pause.clone();
    spells.sort_unstable_by(|a, b| b.cmp(a));
    spells.truncate(usize::try_from(sum.false_by_pause).unwrap_or(usize::MAX));
    match spells.is_empty() {
        true => seconds(most),
        false => mean(&spells.into_iter().map(seconds).collect::<Vec<_>>()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        sweep::{
            setting::{Drift, Pauses, network},
            unit::Fraction,
        },
        workload::SECOND,
    };

    /// A ttl of 15 s, six pauses an hour, no crashes, 5 s until a new leader serves.
    fn availability(measures: &Measures) -> Interval {
        let half = Fraction::parse("1/2").expect("a part");
        let plan = Plan {
            version: "test",
            system: "deposed".to_owned(),
            settings: vec![Setting::new(15 * SECOND, &half)],
            environments: vec![Environment {
                pauses: Pauses::parse("200ms,1.2,6").expect("pauses"),
                net: network("1ms..20ms").expect("a network"),
                drift: Drift::parse("0%").expect("a drift"),
            }],
            crashes_per_day: 0.0,
            takeover: 5 * SECOND,
            seeds: 1,
            faults: 40,
        };
        let panels = Panel::all(&plan, &[vec![measures.clone()]]);
        panels[0].estimates[0].availability
    }

    #[test]
    fn availability_allows_for_false_failovers_that_were_not_seen() {
        let harmless = Measures {
            led: 3600 * SECOND,
            pauses: 40,
            ..Measures::default()
        };
        let available = availability(&harmless);
        assert_eq!(available.value, 1.0);
        // Of 40 none: up to 8.81 % (Clopper and Pearson), six pauses an hour, and each
        // costs a lease and a takeover: 20 s, and some for tries and candidates.
        let lost = |seconds: f64| 0.0881 * 6.0 * seconds / 3600.0;
        let within = 1.0 - lost(26.0)..1.0 - lost(20.0);
        assert!(within.contains(&available.low), "{available:?}");
    }

    #[test]
    fn what_a_false_failover_costs_is_what_was_seen() {
        let spells = [[8 * SECOND; 10].as_slice(), &[SECOND / 5; 30]].concat();
        let mut measures = Measures {
            led: 3600 * SECOND,
            pauses: 40,
            false_by_pause: 10,
            ..Measures::default()
        };
        measures.down.by_pause = spells.clone();
        let ten = availability(&measures);
        // As if no pause had deposed anybody, but for the cost of those that may have.
        measures.false_by_pause = 40;
        let all = availability(&measures);
        assert_eq!(all.value, ten.value, "the same spells");
        // 10 of 40: up to 41.2 %. 40 of 40 are all that there can be.
        let lost = (all.low - ten.low) * 3600.0;
        let expected = (0.4120 - 0.25) * 6.0 * 8.0;
        assert!((lost - expected).abs() < 0.01, "{lost}, not {expected}");
    }
}

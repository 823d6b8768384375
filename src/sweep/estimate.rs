//! What a cell's runs say together.
//!
//! Rates and parts are sums of what one fault costs times how many there are in an hour.
//! False failovers are a part of the pauses, so their interval is Clopper and Pearson's,
//! exact and honest where none was seen; those that nothing provoked are added as seen,
//! without bounds of their own: runs are a fraction of an hour, whose bounds would drown
//! all else. For all else no distribution can be assumed
//! (lengths are a mixture, and bounded by the lease). A quantile's bounds are two of the
//! samples, or are not known. For means the faults are drawn anew 1,000 times with
//! replacement: the bootstrap, under a fixed seed; what nothing provoked comes at random
//! times, and is drawn as such. That cannot draw what was never seen, and a false failover
//! costs more than most that was, so availability is lowered by those that there may be.
//! Renewals go on evenly, and runs are few: theirs is Student's, of runs.

use super::{
    measures::{Measures, Spells},
    plan::{Cell, Plan},
    setting::{Environment, Setting},
    statistics::{Interval, mean, proportion, quantile, ratio, resampled, thinned},
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
    /// How many false failovers nothing provoked, in how many hours of leadership.
    pub unprovoked: u64,
    /// For how long somebody led, hours.
    pub hours_led: f64,
    /// False failovers an hour. Its bounds are those of false failovers by pauses: those that
    /// nothing provoked are added as they were seen, since the runs are a fraction of an hour,
    /// and none in half an hour may still be seven an hour.
    pub false_failovers: Interval,
    /// The part of the time in which a leader serves. The lower bound allows for as many
    /// false failovers as there may be.
    pub availability: Interval,
    /// From a crash until the next leader serves, the median; nothing where no leader was
    /// there to crash.
    pub failover_p50: Option<Interval>,
    /// The same, the 95th percentile.
    pub failover_p95: Option<Interval>,
    /// The same, the 99th percentile.
    pub failover_p99: Option<Interval>,
    /// How long nobody leads when nobody does, the median; nothing where somebody always
    /// led.
    pub leaderless_p50: Option<Interval>,
    /// The same, the 95th percentile.
    pub leaderless_p95: Option<Interval>,
    /// The same, the 99th percentile.
    pub leaderless_p99: Option<Interval>,
    /// Renewals sent in an hour of leadership.
    pub renewals: Interval,
    /// Whether no other setting in the environment is more available and fails over sooner
    /// (the 95th percentile), as measured.
    pub on_front: bool,
    /// Whether that holds wherever in their intervals the numbers are.
    pub settled: bool,
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
    /// their interval, and all of those; or else the most available.
    pub fn recommended(&self, availability: f64) -> Result<Recommended<'_, 'p>, &Estimate<'p>> {
        let reach = |estimate: &&Estimate<'_>| estimate.availability.low >= availability;
        let reaching = || self.estimates.iter().filter(reach);
        let cheapest = reaching().min_by(|a, b| {
            let (a, b) = (&a.renewals, &b.renewals);
            a.value.total_cmp(&b.value)
        });
        match cheapest {
            Some(cheapest) => Ok((cheapest, reaching().collect())),
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

/// One of several, and all of them.
type Recommended<'a, 'p> = (&'a Estimate<'p>, Vec<&'a Estimate<'p>>);

/// Marks those that none other is better than in both; and of all whether their intervals
/// settle it.
fn mark_front(estimates: &mut [Estimate<'_>]) {
    let point = |e: &Estimate<'_>| Some((e.availability, e.failover_p95?));
    let points: Vec<Option<(Interval, Interval)>> = estimates.iter().map(point).collect();
    let places = |place: usize| {
        let Some((available, failover)) = points[place] else {
            return (false, false);
        };
        let others = points
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place);
        let mut beaten = [false; 3];
        for (other_available, other_failover) in others.filter_map(|(_, other)| *other) {
            let better = |a: f64, b: f64, c: f64, d: f64| a >= b && c <= d && (a, c) != (b, d);
            // At the best that it may be, as measured, at the worst.
            beaten[0] |=
                other_available.high >= available.low && other_failover.low <= failover.high;
            beaten[1] |= better(
                other_available.value,
                available.value,
                other_failover.value,
                failover.value,
            );
            beaten[2] |=
                other_available.low >= available.high && other_failover.high <= failover.low;
        }
        let [perhaps, measured, surely] = beaten;
        (!measured, if measured { surely } else { !perhaps })
    };
    let places: Vec<(bool, bool)> = (0..estimates.len()).map(places).collect();
    for (estimate, (on_front, settled)) in estimates.iter_mut().zip(places) {
        (estimate.on_front, estimate.settled) = (on_front, settled);
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
            unprovoked: sum.false_unprovoked,
            hours_led: hours,
            false_failovers: deposed.times(weights.pause).plus(unprovoked),
            availability,
            failover_p50: failover(0.5),
            failover_p95: failover(0.95),
            failover_p99: failover(0.99),
            leaderless_p50: without(0.5),
            leaderless_p95: without(0.95),
            leaderless_p99: without(0.99),
            renewals: renewals(runs),
            on_front: false,
            settled: false,
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

/// In an hour of leadership.
fn renewals(runs: &[Measures]) -> Interval {
    let each = |run: &Measures| (run.renewals as f64, seconds(run.led) / SECONDS_AN_HOUR);
    ratio(&runs.iter().map(each).collect::<Vec<_>>())
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

    /// Of ttls 1 s, 2 s and so on: availability and failover, each with its bounds.
    fn placed(points: &[[(f64, f64, f64); 2]]) -> Vec<(bool, bool)> {
        let half = Fraction::parse("1/2").expect("a part");
        let plan = Plan {
            version: "test",
            system: "deposed".to_owned(),
            settings: (1..=points.len() as u64)
                .map(|ttl| Setting::new(ttl * SECOND, &half))
                .collect(),
            environments: vec![Environment {
                pauses: Pauses::parse("200ms,1.2,6").expect("pauses"),
                net: network("1ms..20ms").expect("a network"),
                drift: Drift::parse("0%").expect("a drift"),
            }],
            crashes_per_day: 0.0,
            takeover: 0,
            seeds: 1,
            faults: 3,
        };
        let interval = |(low, value, high)| Interval { value, low, high };
        let cells = plan.cells().zip(points);
        let estimates = cells.map(|(cell, [available, failover])| {
            let mut estimate = Estimate::of(&plan, cell, &[]);
            estimate.availability = interval(*available);
            estimate.failover_p95 = Some(interval(*failover));
            estimate
        });
        let mut estimates: Vec<Estimate<'_>> = estimates.collect();
        mark_front(&mut estimates);
        estimates
            .iter()
            .map(|estimate| (estimate.on_front, estimate.settled))
            .collect()
    }

    #[test]
    fn a_place_on_the_front_is_settled_where_no_interval_could_change_it() {
        let quick = [(0.97, 0.98, 0.985), (1.0, 2.0, 3.0)];
        let slow = [(0.99, 0.995, 0.999), (8.0, 9.0, 10.0)];
        let worse = [(0.90, 0.91, 0.92), (11.0, 12.0, 13.0)];
        let settled = [(true, true), (true, true), (false, true)];
        assert_eq!(placed(&[quick, slow, worse]), settled);
        // As available as the quick one, perhaps: then it is beaten.
        let wide = [(0.96, 0.995, 0.999), (8.0, 9.0, 10.0)];
        assert_eq!(placed(&[quick, wide]), [(true, true), (true, false)]);
        // Beaten as measured, and perhaps not.
        let close = [(0.96, 0.975, 0.99), (3.5, 4.0, 5.0)];
        assert_eq!(placed(&[quick, close]), [(true, true), (false, false)]);
        // A bound that is not known settles nothing.
        let unknown = [(0.97, 0.98, 0.985), (1.0, 2.0, f64::INFINITY)];
        assert_eq!(placed(&[unknown, slow, worse])[0], (true, false));
        assert_eq!(placed(&[unknown, worse])[1], (false, false));
    }
}

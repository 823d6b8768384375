//! How sure a number is. All intervals are of 95 %.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Poisson};

/// A number, and between which it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound; infinite where nothing bounds it.
    pub high: f64,
}

impl Interval {
    /// All of it times a factor.
    pub fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    /// All of it and a number that is known.
    pub fn plus(self, known: f64) -> Self {
        Self {
            value: self.value + known,
            low: self.low + known,
            high: self.high + known,
        }
    }

    /// An estimate, and the middle 95 % of what it was on samples drawn anew.
    pub fn of_samples(value: f64, mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = (part * samples.len() as f64) as usize;
            samples
                .get(place.min(samples.len().saturating_sub(1)))
                .copied()
        };
        Self {
            value,
            low: at(0.025).unwrap_or(value).min(value),
            high: at(0.975).unwrap_or(value).max(value),
        }
    }
}

/// A sum of parts over a sum of wholes, with Student's interval: as many parts and wholes
/// as there are runs, and how far each is from the common ratio. One run bounds nothing.
pub fn ratio(runs: &[(f64, f64)]) -> Interval {
    let part: f64 = runs.iter().map(|(part, _)| part).sum();
    let whole: f64 = runs.iter().map(|(_, whole)| whole).sum();
    if whole <= 0.0 {
        return Interval::default();
    }
    let value = part / whole;
    let off = |(part, whole): &(f64, f64)| part - value * whole;
    let squares: f64 = runs.iter().map(|run| off(run).powi(2)).sum();
    let many = runs.len() as f64;
    let (low, high) = match runs.len() {
        ..=1 => (0.0, f64::INFINITY),
        _ => {
            let error = (squares * many / (many - 1.0)).sqrt() / whole;
            let reach = student(runs.len() as u64 - 1) * error;
            ((value - reach).max(0.0), value + reach)
        }
    };
    Interval { value, low, high }
}

/// The 97.5th percentile of Student's distribution: from the tables for few degrees of
/// freedom, by its expansion around the normal one for more (Fisher and Cornish).
fn student(degrees: u64) -> f64 {
    const FEW: [f64; 5] = [12.706, 4.303, 3.182, 2.776, 2.571];
    let few = usize::try_from(degrees).ok().and_then(|n| n.checked_sub(1));
    if let Some(few) = few.and_then(|n| FEW.get(n)) {
        return *few;
    }
    let (z, n) = (1.959_964_f64, degrees as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / n + second / n.powi(2) + third / n.powi(3)
}

/// A part of so many trials, with the exact interval of Clopper and Pearson: it is honest
/// where nothing was seen, and where all was.
pub fn proportion(hits: u64, trials: u64) -> Interval {
    if trials == 0 {
        return Interval {
            value: 0.0,
            low: 0.0,
            high: 1.0,
        };
    }
    let hits = hits.min(trials);
    // The part at which so many hits or fewer are as rare as `tail`.
    let part_where = |hits: u64, tail: f64| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            match at_most(hits, trials, middle) > tail {
                true => low = middle,
                false => high = middle,
            }
        }
        (low + high) / 2.0
    };
    Interval {
        value: hits as f64 / trials as f64,
        low: match hits {
            0 => 0.0,
            hits => part_where(hits - 1, 0.975),
        },
        high: match hits == trials {
            true => 1.0,
            false => part_where(hits, 0.025),
        },
    }
}

/// How likely `hits` or fewer of so many trials are, each with this probability.
fn at_most(hits: u64, trials: u64, probability: f64) -> f64 {
    let hits = usize::try_from(hits).unwrap_or(usize::MAX);
    cumulated(trials, probability).nth(hits).unwrap_or(1.0)
}

/// How likely 0 hits are, 1 or fewer, and so on up to all of the trials.
fn cumulated(trials: u64, probability: f64) -> impl Iterator<Item = f64> {
    let odds = (probability / (1.0 - probability)).ln();
    let mut log = trials as f64 * (1.0 - probability).ln();
    let mut sum = 0.0;
    (0..=trials).map(move |hits| {
        if hits > 0 {
            log += ((trials - hits + 1) as f64 / hits as f64).ln() + odds;
        }
        sum += log.exp();
        f64::min(sum, 1.0)
    })
}

/// The smallest value that at least this part of the weight does not exceed; nothing of
/// nothing.
///
/// How many samples lie below the true quantile is binomial, so its bounds are two of the
/// samples. Of too few none bounds it: it is 0 or more then, as durations are, and nothing
/// is known above. Of samples that do not weigh the same fewer count (Kish).
pub fn quantile(weighted: &mut [(f64, f64)], part: f64) -> Option<Interval> {
    weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    let squares: f64 = weighted.iter().map(|(_, weight)| weight * weight).sum();
    let at = |part: f64| {
        let mut sum = 0.0;
        let reached = weighted.iter().find(|(_, weight)| {
            sum += weight;
            // What was added in another order differs in its last digits.
            sum >= total * part * (1.0 - 1e-12)
        });
        reached.or(weighted.last()).map(|(value, _)| *value)
    };
    let value = at(part)?;
    let counting = (total * total / squares * (1.0 + 1e-12)) as u64;
    let ranked = |rank: u64| at(rank as f64 / counting as f64);
    let (low, high) = bounding(counting, part);
    Some(Interval {
        value,
        low: low.and_then(ranked).unwrap_or(0.0).min(value),
        high: high.and_then(ranked).unwrap_or(f64::INFINITY).max(value),
    })
}

/// Which of so many samples in order, from 1, are a quantile's bounds; nothing where none
/// is.
fn bounding(samples: u64, part: f64) -> (Option<u64>, Option<u64>) {
    let (mut low, mut high) = (0, 0);
    for likely in cumulated(samples, part) {
        low += u64::from(likely <= 0.025);
        high += u64::from(likely < 0.975);
    }
    let (low, high) = (Some(low), Some(high + 1));
    (
        low.filter(|&rank| rank > 0),
        high.filter(|&rank| rank <= samples),
    )
}

/// As many as there are, drawn from them with replacement.
pub fn resampled(values: &[f64], rng: &mut ChaCha8Rng) -> Vec<f64> {
    let draw = |_| values[rng.random_range(0..values.len())];
    (0..values.len()).map(draw).collect()
}

/// Of events that came at random times: each none, one or several times over.
pub fn thinned(values: &[f64], rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut drawn = Vec::new();
    for &value in values {
        // One is a rate that a Poisson distribution can have.
        let times = Poisson::new(1.0).map_or(1.0, |poisson| poisson.sample(rng));
        drawn.extend(std::iter::repeat_n(value, times as usize));
    }
    drawn
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    match values.len() {
        0 => 0.0,
        many => values.iter().sum::<f64>() / many as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    #[test]
    fn a_proportions_interval_is_that_of_the_tables() {
        // Clopper and Pearson (1934), and the rule of three where nothing was seen.
        for (hits, trials, low, high) in [
            (0, 10, 0.0, 0.3085),
            (1, 10, 0.0025, 0.4450),
            (5, 10, 0.1871, 0.8129),
            (10, 10, 0.6915, 1.0),
            (0, 300, 0.0, 0.0122),
        ] {
            let part = proportion(hits, trials);
            assert!(
                near(part.low, low) && near(part.high, high),
                "{hits} of {trials}: {part:?}"
            );
        }
        let unknown = proportion(0, 0);
        assert_eq!((unknown.low, unknown.high), (0.0, 1.0));
    }

    #[test]
    fn a_quantile_goes_by_weight() {
        let mut even = [(3.0, 1.0), (1.0, 1.0), (2.0, 1.0), (4.0, 1.0)];
        let value = |weighted: &mut [(f64, f64)], part| Some(quantile(weighted, part)?.value);
        assert_eq!(value(&mut even, 0.5), Some(2.0));
        assert_eq!(value(&mut even, 0.99), Some(4.0));
        let mut heavy = [(1.0, 0.001), (9.0, 1.0)];
        assert_eq!(value(&mut heavy, 0.5), Some(9.0));
        assert_eq!(value(&mut [], 0.5), None);
    }

    #[test]
    fn a_quantiles_bounds_are_the_samples_that_the_tables_name() {
        // The median: the tables of the sign test. The 99th percentile: 368 is the first
        // number of samples of which all lie below it in less than a fortieth of the cases.
        for (samples, part, low, high) in [
            (5, 0.5, None, None),
            (6, 0.5, Some(1), Some(6)),
            (10, 0.5, Some(2), Some(9)),
            (20, 0.5, Some(6), Some(15)),
            (100, 0.5, Some(40), Some(61)),
            (20, 0.99, Some(19), None),
            (367, 0.99, Some(359), None),
            (368, 0.99, Some(360), Some(368)),
        ] {
            assert_eq!(bounding(samples, part), (low, high), "{samples} at {part}");
            let mut even: Vec<(f64, f64)> = (1..=samples).map(|n| (n as f64, 0.3)).collect();
            let quantile = quantile(&mut even, part).expect("samples");
            let (low, high) = (
                low.unwrap_or(0) as f64,
                high.map_or(f64::INFINITY, |n| n as f64),
            );
            assert_eq!(
                (quantile.low, quantile.high),
                (low, high),
                "{samples} at {part}"
            );
        }
    }

    #[test]
    fn samples_that_weigh_next_to_nothing_bound_nothing() {
        let mut weighted: Vec<(f64, f64)> = (1..=100).map(|n| (f64::from(n), 1e-6)).collect();
        weighted.extend([(200.0, 1.0), (300.0, 1.0)]);
        let quantile = quantile(&mut weighted, 0.5).expect("samples");
        assert_eq!((quantile.low, quantile.high), (0.0, f64::INFINITY));
    }

    #[test]
    fn the_middle_of_the_samples_is_the_interval() {
        let samples = (0..1000).map(f64::from).collect();
        let interval = Interval::of_samples(500.0, samples);
        assert_eq!((interval.low, interval.high), (25.0, 975.0));
        let one = Interval::of_samples(7.0, Vec::new());
        assert_eq!((one.low, one.high), (7.0, 7.0));
    }

    #[test]
    fn students_percentiles_are_those_of_the_tables() {
        for (degrees, tabled) in [
            (1, 12.706),
            (4, 2.776),
            (6, 2.447),
            (10, 2.228),
            (30, 2.042),
        ] {
            let ours = student(degrees);
            assert!((ours - tabled).abs() < 2e-3, "{degrees}: {ours}");
        }
    }

    #[test]
    fn a_ratio_is_as_sure_as_its_runs_agree_and_one_run_bounds_nothing() {
        let one = ratio(&[(6.0, 2.0)]);
        assert_eq!((one.value, one.low, one.high), (3.0, 0.0, f64::INFINITY));
        assert_eq!(ratio(&[]), Interval::default());
        let agreeing = ratio(&[(3.0, 1.0), (6.0, 2.0), (9.0, 3.0)]);
        assert_eq!((agreeing.low, agreeing.high), (3.0, 3.0));
        // Equal wholes: the mean's interval. Of 2, 3, 4 it is 3 and 4.303 times 1 / sqrt 3.
        let mean = ratio(&[(2.0, 1.0), (3.0, 1.0), (4.0, 1.0)]);
        assert!(near(mean.high, 3.0 + 4.303 / 3_f64.sqrt()), "{mean:?}");
        assert!(near(mean.low, 3.0 - 4.303 / 3_f64.sqrt()), "{mean:?}");
    }

    #[test]
    fn events_at_random_times_are_drawn_as_many_on_average() {
        let mut rng = stream(0, "test", 0);
        let values = vec![1.0; 10_000];
        let drawn = thinned(&values, &mut rng).len();
        assert!((9_700..=10_300).contains(&drawn), "{drawn}");
        assert_eq!(resampled(&values, &mut rng).len(), 10_000);
    }
}

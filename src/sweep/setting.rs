//! What is chosen (a lease's timing) and what it has to live with (pauses, the network,
//! clocks).

use std::fmt;

use deposed_checkers::history::Nanos;
use serde::Serialize;

use super::unit::{Fraction, Length, Percent, WHOLE, length, number, percent, range};
use crate::{
    lease::LeaseConfig,
    workload::{MS, Network, SECOND},
};

/// A lease's timing, before the clocks that it must allow for are known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// What it is called: `5s 1/3`, or a preset's name.
    pub name: String,
    /// Which settings differ from it in the ttl alone: `1/3`; of a preset, its name.
    pub series: String,
    /// The timing, allowing for true clocks.
    pub lease: LeaseConfig,
}

impl Setting {
    /// A ttl that is renewed after a part of the window. Of what is left of the window a
    /// quarter is one try's, and never more than a sixth of the whole.
    pub fn new(ttl: Nanos, renew: &Fraction) -> Self {
        let mut lease = LeaseConfig::for_ttl(ttl);
        lease.max_drift_ppb = 0;
        lease.renew_fraction_ppb = renew.ppb;
        let window = lease.safe_window();
        lease.try_timeout = (window / 6).min(window.saturating_sub(lease.renew_after()) / 4);
        Self {
            name: format!("{} {}", Length(ttl), renew.text),
            series: renew.text.clone(),
            lease,
        }
    }

    /// Whether it is a preset, which has a name of its own.
    pub fn is_preset(&self) -> bool {
        self.name == self.series
    }

    /// The setting of a system that people run.
    ///
    /// # Errors
    /// No preset has this name; the sentence lists them.
    pub fn preset(name: &str) -> Result<Self, String> {
        let found = PRESETS.iter().find(|preset| preset.name == name);
        let Some(preset) = found else {
            return Err(format!(
                "no preset is called '{name}'; these are: {}",
                preset_names().join(", ")
            ));
        };
        let lease = LeaseConfig {
            ttl: preset.ttl,
            max_drift_ppb: 0,
            safety_margin: preset.ttl - preset.window,
            renew_fraction_ppb: ratio(preset.renew, preset.window),
            try_timeout: preset.retry,
            backoff_min: preset.poll.0,
            backoff_max: preset.poll.1,
            lock_delay: preset.lock_delay,
        };
        Ok(Self {
            name: name.to_owned(),
            series: name.to_owned(),
            lease,
        })
    }

    /// The timing where clocks are off by so much: what the window must allow for.
    pub fn allowing_for(&self, drift: Drift) -> LeaseConfig {
        // Two clocks that are off in opposite directions.
        let max_drift_ppb = drift.most.saturating_mul(2);
        let mut lease = LeaseConfig {
            max_drift_ppb,
            ..self.lease.clone()
        };
        let window = self.lease.safe_window().max(1);
        // Tries keep their share of a window that has become shorter.
        let part = u128::from(self.lease.try_timeout) * u128::from(lease.safe_window());
        lease.try_timeout = u64::try_from(part / u128::from(window)).unwrap_or(u64::MAX);
        lease
    }
}

/// A system's defaults in our terms.
struct Preset {
    name: &'static str,
    ttl: Nanos,
    /// How long a leader acts without a renewal.
    window: Nanos,
    /// When a renewal is due.
    renew: Nanos,
    /// When an unanswered one is sent again.
    retry: Nanos,
    /// How often a candidate asks.
    poll: (Nanos, Nanos),
    lock_delay: Nanos,
}

/// Kubernetes (client-go): lease 15 s, renew deadline 10 s, retry 2 s with a jitter of up
/// to 1.2 more. What does not map: its candidates each count 15 s from when they saw the
/// lease change, where ours ask a store that knows; a renewal may hang for 5 s there. etcd:
/// the election session's 60 s, kept alive every third. Chubby: 12 s sessions, without
/// their 45 s of grace. ZooKeeper: a session of 10 ticks of 2 s, pinged at a third. Consul:
/// `consul lock`'s 15 s session, renewed at half, and 15 s of lock-delay; its sessions may
/// live up to twice their ttl, ours do not. Where a system notifies candidates, ours ask,
/// but for the store's hint of when the lease is over.
const PRESETS: [Preset; 5] = [
    Preset {
        name: "kubernetes",
        ttl: 15 * SECOND,
        window: 10 * SECOND,
        renew: 2 * SECOND,
        retry: 2 * SECOND,
        poll: (2 * SECOND, 4_400 * MS),
        lock_delay: 0,
    },
    Preset {
        name: "etcd",
        ttl: 60 * SECOND,
        window: 59 * SECOND,
        renew: 20 * SECOND,
        retry: 5 * SECOND,
        poll: (SECOND, 2 * SECOND),
        lock_delay: 0,
    },
    Preset {
        name: "chubby",
        ttl: 12 * SECOND,
        window: 11_800 * MS,
        renew: 5 * SECOND,
        retry: SECOND,
        poll: (SECOND, 2 * SECOND),
        lock_delay: 0,
    },
    Preset {
        name: "zookeeper",
        ttl: 20 * SECOND,
        window: 13_300 * MS,
        renew: 6_700 * MS,
        retry: 2 * SECOND,
        poll: (SECOND, 2 * SECOND),
        lock_delay: 0,
    },
    Preset {
        name: "consul",
        ttl: 15 * SECOND,
        window: 14_700 * MS,
        renew: 7_500 * MS,
        retry: 2 * SECOND,
        poll: (SECOND, 2 * SECOND),
        lock_delay: 15 * SECOND,
    },
];

/// What a setting has to live with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Environment {
    /// How leaders are paused.
    pub pauses: Pauses,
    /// The network.
    pub net: Network,
    /// How far clocks are off.
    pub drift: Drift,
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Network {
            min_latency,
            max_latency,
        } = self.net;
        write!(
            f,
            "{}, network {} to {}, clocks off by {} to {}",
            self.pauses,
            Length(min_latency),
            Length(max_latency),
            Percent(self.drift.least),
            Percent(self.drift.most)
        )
    }
}

/// Pauses of lognormal length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pauses {
    /// As it was named or written.
    pub name: String,
    /// The median length.
    pub median: Nanos,
    /// The standard deviation of its logarithm.
    pub sigma: f64,
    /// How many an hour strike a leader.
    pub per_hour: f64,
}

/// Names for distributions: median, sigma, how many an hour. Collections that stop a
/// process for a moment and now and then for seconds; a virtual machine on the move.
const NAMED_PAUSES: [(&str, Nanos, f64, f64); 2] = [
    ("gc", 200 * MS, 1.2, 6.0),
    ("vm-migration", 2 * SECOND, 0.8, 0.5),
];

/// The presets that there are.
pub fn preset_names() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

/// The longest that a pause lasts; a run must end.
pub const LONGEST_PAUSE: Nanos = 600 * SECOND;

impl Pauses {
    /// The distributions that have a name.
    pub fn names() -> Vec<&'static str> {
        NAMED_PAUSES.iter().map(|(name, ..)| *name).collect()
    }

    /// `gc`, `vm-migration`, or `median,sigma` or `median,sigma,per-hour` (6 when left out).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let named = NAMED_PAUSES.iter().find(|(name, ..)| *name == text);
        if let Some(&(name, median, sigma, per_hour)) = named {
            return Ok(Self {
                name: name.to_owned(),
                median,
                sigma,
                per_hour,
            });
        }
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let (median, sigma, per_hour) = match parts[..] {
            [median, sigma] => (median, sigma, "6"),
            [median, sigma, per_hour] => (median, sigma, per_hour),
            _ => {
                return Err(
                    "give gc, vm-migration, or a median, a sigma and how many an hour, as in \
                     200ms,1.2,6"
                        .to_owned(),
                );
            }
        };
        let pauses = Self {
            name: text.to_owned(),
            median: length(median)?,
            sigma: number(sigma)?,
            per_hour: number(per_hour)?,
        };
        match pauses.median {
            MS..=LONGEST_PAUSE if pauses.sigma <= 10.0 => Ok(pauses),
            MS..=LONGEST_PAUSE => Err(format!("a sigma of {sigma} is above 10")),
            _ => Err(format!("a median of {median} is not within 1ms to 10m")),
        }
    }
}

impl fmt::Display for Pauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pauses of {} (sigma {}), {} an hour",
            Length(self.median),
            self.sigma,
            self.per_hour
        )
    }
}

/// How far clocks are off true time, either way, parts per billion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The least.
    pub least: u64,
    /// The most; a lease must allow for twice this between two clocks.
    pub most: u64,
}

impl Drift {
    /// `0%..0.5%`, or one bound for both.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (least, most) = range(text, percent)?;
        match most < WHOLE / 2 {
            true => Ok(Self { least, most }),
            false => Err("clocks that are off by half or more keep no lease".to_owned()),
        }
    }
}

/// Reads `1ms..20ms`, or one bound for both.
///
/// # Errors
/// What is wrong with it.
pub fn network(text: &str) -> Result<Network, String> {
    let (min_latency, max_latency) = range(text, length)?;
    match min_latency {
        MS.. => Ok(Network {
            min_latency,
            max_latency,
        }),
        _ => Err("the least latency is a millisecond".to_owned()),
    }
}

fn ratio(part: Nanos, whole: Nanos) -> u64 {
    u64::try_from(u128::from(part) * u128::from(WHOLE) / u128::from(whole.max(1))).unwrap_or(WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_keeps_a_lease_also_on_clocks_that_are_off() {
        for preset in &PRESETS {
            let setting = Setting::preset(preset.name).expect("its own name");
            for most in [0, 5_000_000, 20_000_000] {
                let lease = setting.allowing_for(Drift { least: 0, most });
                assert_eq!(lease.validate(), Ok(()), "{} at {most}", preset.name);
            }
        }
    }

    #[test]
    fn kubernetes_is_fifteen_ten_and_two_seconds() {
        let kubernetes = Setting::preset("kubernetes").expect("a preset").lease;
        let seconds = |nanos: Nanos| nanos / SECOND;
        assert_eq!(seconds(kubernetes.ttl), 15);
        assert_eq!(seconds(kubernetes.safe_window()), 10);
        assert_eq!(seconds(kubernetes.renew_after()), 2);
        assert_eq!(seconds(kubernetes.try_timeout), 2);
    }

    #[test]
    fn every_part_of_the_window_leaves_room_for_two_lost_renewals() {
        for text in ["1/100", "1/4", "1/3", "1/2", "2/3", "0.9", "99/100"] {
            let fraction = Fraction::parse(text).expect("a part");
            let setting = Setting::new(5 * SECOND, &fraction);
            let lease = setting.allowing_for(Drift {
                least: 0,
                most: 5_000_000,
            });
            assert_eq!(lease.validate(), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (text, says) in [
            ("200ms,-1", "give a number from 0 up"),
            ("200ms,NaN", "give a number from 0 up"),
            ("200ms,11", "above 10"),
            ("0s,1", "nothing"),
            ("1h,1", "within 1ms to 10m"),
            ("200ms", "as in 200ms,1.2,6"),
            ("200ms,1,x", "'x' is no number"),
        ] {
            let error = Pauses::parse(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
        for (text, says) in [
            ("20ms..1ms", "turn it: 1ms..20ms"),
            ("1us..1ms", "a millisecond"),
            ("5", "no duration"),
        ] {
            let error = network(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
        for text in ["2%..1%", "50%", "-1%", "NaN%"] {
            assert!(Drift::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(
            Drift::parse("0%..0.5%"),
            Ok(Drift {
                least: 0,
                most: 5_000_000
            })
        );
        let net = network("1ms..20ms").expect("a range");
        assert_eq!((net.min_latency, net.max_latency), (MS, 20 * MS));
        let pauses = Pauses::parse("1s,0.5,12").expect("three parts");
        assert_eq!(
            (pauses.median, pauses.sigma, pauses.per_hour),
            (SECOND, 0.5, 12.0)
        );
    }
}

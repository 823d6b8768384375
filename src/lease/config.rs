//! The timing that a lease's clients and its store agree on.

use deposed_checkers::history::Nanos;
use serde::{Deserialize, Serialize};

/// One, in parts per billion.
pub const PPB: u64 = 1_000_000_000;

/// How a client keeps a lease. Durations are nanoseconds on the clock of whoever
/// measures them: `ttl` and `lock_delay` on the store's, the rest on the client's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseConfig {
    /// How long a grant or a renewal lasts at the store.
    pub ttl: Nanos,
    /// The bound on *relative* clock drift, in parts per billion, up to which at
    /// most one client believes. Each clock alone may be off by half of it.
    pub max_drift_ppb: u64,
    /// Taken off the client's window on top of the drift.
    pub safety_margin: Nanos,
    /// After which part of the window a renewal is due, in parts per billion.
    pub renew_fraction_ppb: u64,
    /// How long one try waits before the next is sent. Its answer is still read after that.
    pub try_timeout: Nanos,
    /// The shortest wait after a refusal.
    pub backoff_min: Nanos,
    /// The longest wait after a refusal, and the wait after a release.
    pub backoff_max: Nanos,
    /// How long the store refuses new owners after an expiry. For resources that
    /// cannot check tokens (Chubby, section 2.4).
    pub lock_delay: Nanos,
}

impl LeaseConfig {
    /// Sensible timing for a ttl: 1 % drift, a margin of a hundredth, renewal after
    /// a third of the window, tries of a sixth of it, two to four acquires a ttl against a
    /// lease that is held, no lock-delay.
    pub fn for_ttl(ttl: Nanos) -> Self {
        let mut config = Self {
            ttl,
            max_drift_ppb: PPB / 100,
            safety_margin: ttl / 100,
            renew_fraction_ppb: 333_333_333,
            try_timeout: 0,
            backoff_min: ttl / 4,
            backoff_max: ttl / 2,
            lock_delay: 0,
        };
        config.try_timeout = config.safe_window() / 6;
        config
    }

    /// How long a client may act after the *send* that a belief counts from, on its
    /// own clock: `ttl * (1 - max_drift) - safety_margin`, rounded down, at least 0.
    ///
    /// The store's lease begins no earlier than the send and lasts `ttl / store_rate`
    /// of true time; the window lasts `safe_window / client_rate`. The first ends no
    /// earlier than the second exactly if `client_rate / store_rate >= 1 - max_drift`.
    pub fn safe_window(&self) -> Nanos {
        let kept = PPB.saturating_sub(self.max_drift_ppb);
        part(self.ttl, kept).saturating_sub(self.safety_margin)
    }

    /// How long after the send behind a belief its renewal is due.
    pub fn renew_after(&self) -> Nanos {
        part(self.safe_window(), self.renew_fraction_ppb)
    }

    /// Whether a client can keep a lease with this timing.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let window = self.safe_window();
        if window == 0 {
            return Err(ConfigError::NoWindow);
        }
        if self.renew_fraction_ppb == 0 || self.renew_fraction_ppb >= PPB {
            return Err(ConfigError::RenewFraction(self.renew_fraction_ppb));
        }
        if self.try_timeout == 0 {
            return Err(ConfigError::NoTryTimeout);
        }
        let three_tries = self.try_timeout.saturating_mul(3);
        let answered = self.renew_after().saturating_add(three_tries);
        if answered >= window {
            return Err(ConfigError::TryTooLong { answered, window });
        }
        if self.backoff_min == 0 || self.backoff_min > self.backoff_max {
            return Err(ConfigError::Backoff {
                min: self.backoff_min,
                max: self.backoff_max,
            });
        }
        Ok(())
    }
}

/// `whole * ppb / 1e9`, rounded down.
pub(super) fn part(whole: Nanos, ppb: u64) -> Nanos {
    let product = u128::from(whole) * u128::from(ppb) / u128::from(PPB);
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Why a [`LeaseConfig`] cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Drift bound and margin eat the whole ttl.
    #[error("the drift bound and the safety margin leave nothing of the ttl to act in")]
    NoWindow,
    /// A renewal would be due at once or never.
    #[error(
        "the renew fraction must lie between 0 and 1, both excluded, and is {0} parts per billion"
    )]
    RenewFraction(u64),
    /// Tries would follow each other without end.
    #[error("the try timeout is 0")]
    NoTryTimeout,
    /// Two lost renewals would cost the lease.
    #[error(
        "after two lost renewals the third may be answered {answered} ns into a window of {window} ns"
    )]
    TryTooLong {
        /// When the third try runs out, counted from the send behind the belief.
        answered: Nanos,
        /// The safe window.
        window: Nanos,
    },
    /// The pauses between acquires are not a range above 0.
    #[error("the backoff from {min} ns to {max} ns is not a range above 0")]
    Backoff {
        /// The shortest.
        min: Nanos,
        /// The longest.
        max: Nanos,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn config() -> LeaseConfig {
        LeaseConfig::for_ttl(10 * SECOND)
    }

    #[test]
    fn the_safe_window_is_the_ttl_less_drift_and_margin() {
        assert_eq!(config().safe_window(), 9_800_000_000);
        let exact = LeaseConfig {
            max_drift_ppb: 0,
            safety_margin: 0,
            ..config()
        };
        assert_eq!(exact.safe_window(), exact.ttl);
        let odd = LeaseConfig {
            ttl: 999,
            max_drift_ppb: 1,
            safety_margin: 0,
            ..config()
        };
        assert_eq!(odd.safe_window(), 998, "rounded down, to the safe side");
    }

    #[test]
    fn a_margin_or_drift_above_the_ttl_leaves_nothing_and_never_wraps() {
        let margin = LeaseConfig {
            safety_margin: u64::MAX,
            ..config()
        };
        let drift = LeaseConfig {
            max_drift_ppb: u64::MAX,
            ..config()
        };
        for config in [margin, drift] {
            assert_eq!(config.safe_window(), 0);
            assert_eq!(config.validate(), Err(ConfigError::NoWindow));
        }
        let longest = LeaseConfig {
            ttl: u64::MAX,
            safety_margin: 0,
            max_drift_ppb: 0,
            ..config()
        };
        assert_eq!(longest.safe_window(), u64::MAX);
    }

    #[test]
    fn the_defaults_are_valid_from_a_microsecond_to_a_year() {
        let mut ttl = 1_000;
        while ttl < 365 * 86_400 * SECOND {
            assert_eq!(LeaseConfig::for_ttl(ttl).validate(), Ok(()), "ttl {ttl}");
            ttl = ttl * 7 / 5;
        }
    }

    #[test]
    fn a_third_try_must_be_over_before_the_window_is() {
        // A window of 900, a renewal due after 300.
        let timing = |try_timeout| LeaseConfig {
            ttl: 1_000,
            max_drift_ppb: 0,
            safety_margin: 100,
            renew_fraction_ppb: 333_333_334,
            try_timeout,
            ..config()
        };
        assert_eq!(timing(199).validate(), Ok(()));
        let spills = ConfigError::TryTooLong {
            answered: 900,
            window: 900,
        };
        assert_eq!(timing(200).validate(), Err(spills));
    }

    #[test]
    fn a_renewal_must_be_due_within_the_window() {
        for renew_fraction_ppb in [0, PPB, u64::MAX] {
            let config = LeaseConfig {
                renew_fraction_ppb,
                ..config()
            };
            assert_eq!(
                config.validate(),
                Err(ConfigError::RenewFraction(renew_fraction_ppb))
            );
        }
    }

    #[test]
    fn pauses_must_be_above_zero_and_in_order() {
        let config = config();
        let never = LeaseConfig {
            try_timeout: 0,
            ..config.clone()
        };
        assert_eq!(never.validate(), Err(ConfigError::NoTryTimeout));
        let none = LeaseConfig {
            backoff_min: 0,
            ..config.clone()
        };
        let turned = LeaseConfig {
            backoff_min: 2,
            backoff_max: 1,
            ..config.clone()
        };
        let fixed = LeaseConfig {
            backoff_min: 2,
            backoff_max: 2,
            ..config
        };
        assert_eq!(fixed.validate(), Ok(()));
        for config in [none, turned] {
            assert!(matches!(
                config.validate(),
                Err(ConfigError::Backoff { .. })
            ));
        }
    }
}

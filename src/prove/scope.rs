//! How large the world is that is searched.

use std::{fmt, str::FromStr};

use deposed_checkers::history::Nanos;

use crate::{
    flaw::Planted,
    lease::{LeaseConfig, PPB, StoreLimits},
};

/// The most clients: a message names its client in two bits.
pub const MOST_CLIENTS: usize = 4;
/// The most messages in flight.
pub const MOST_IN_FLIGHT: usize = 6;
/// The longest ttl, in ticks.
pub const LONGEST_TTL: u64 = 30;
/// The least drift above none: one tick skipped in so many.
pub const LEAST_DRIFT: u8 = 100;

/// The bounds of a search, and what is planted in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// How many clients contend.
    pub clients: usize,
    /// The ttl in ticks of the store's clock.
    pub ttl: u64,
    /// How many different messages may be under way at a time.
    pub in_flight: usize,
    /// How far clients' clocks may fall behind the store's.
    pub drift: Drift,
    /// The lock-delay in ticks of the store's clock.
    pub lock_delay: u64,
    /// Whether a term's last change may be a delete.
    pub deletes: bool,
    /// The planted flaw.
    pub planted: Planted,
}

impl Default for Scope {
    /// Two clients, a ttl of three ticks, three messages in flight, clocks that agree.
    fn default() -> Self {
        Self {
            clients: 2,
            ttl: 3,
            in_flight: 3,
            drift: Drift::NONE,
            lock_delay: 0,
            deletes: false,
            planted: Planted::NONE,
        }
    }
}

/// A client's clock may skip one tick in so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drift(u8);

impl Drift {
    /// Clocks that run alike.
    pub const NONE: Drift = Drift(0);

    /// One tick in `every`; `None`: none.
    pub fn every(self) -> Option<u8> {
        (self.0 > 0).then_some(self.0)
    }

    /// In parts per billion, rounded up.
    pub fn ppb(self) -> u64 {
        self.every()
            .map_or(0, |every| PPB.div_ceil(u64::from(every)))
    }

    /// How many ticks of the store's clock pass at most until a client's has counted
    /// `ticks`, if it skipped last `since` ticks ago.
    pub fn longest(self, ticks: u64, since: u8) -> u64 {
        let Some(every) = self.every() else {
            return ticks;
        };
        let (mut passed, mut counted, mut since) = (0, 0, since);
        while counted < ticks {
            passed += 1;
            if since + 1 >= every {
                since = 0;
            } else {
                (counted, since) = (counted + 1, since + 1);
            }
        }
        passed
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.every() {
            None => f.write_str("0"),
            Some(every) => write!(f, "1/{every}"),
        }
    }
}

impl FromStr for Drift {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Drift::NONE);
        }
        let every: Option<u64> = text.strip_prefix("1/").and_then(|every| every.parse().ok());
        match every {
            Some(1) => Err(
                "a clock that skips every tick stands still; give a drift below 1, \
                            such as 1/4"
                    .to_owned(),
            ),
            Some(every) if (2..=u64::from(LEAST_DRIFT)).contains(&every) => {
                Ok(Drift(u8::try_from(every).unwrap_or(LEAST_DRIFT)))
            }
            _ => Err(format!(
                "give 0, or one tick in so many that a clock may skip, from 1/2 to 1/{LEAST_DRIFT}"
            )),
        }
    }
}

impl Scope {
    /// Whether these bounds can be searched at all.
    ///
    /// # Errors
    /// One sentence: what is wrong, and what to do.
    pub fn validate(&self) -> Result<(), String> {
        if !(1..=MOST_CLIENTS).contains(&self.clients) {
            return Err(format!(
                "{} clients cannot be searched: give 1 to {MOST_CLIENTS} with --clients",
                self.clients
            ));
        }
        if !(1..=MOST_IN_FLIGHT).contains(&self.in_flight) {
            return Err(format!(
                "{} messages in flight cannot be searched: give 1 to {MOST_IN_FLIGHT} with \
                 --in-flight",
                self.in_flight
            ));
        }
        if !(1..=LONGEST_TTL).contains(&self.ttl) {
            return Err(format!(
                "a ttl of {} ticks cannot be searched: give 1 to {LONGEST_TTL} with --ttl",
                self.ttl
            ));
        }
        if self.config().safe_window() == 0 {
            return Err(format!(
                "a drift of {} leaves nothing of a ttl of {} to lead in: give a longer --ttl or \
                 less --drift",
                self.drift, self.ttl
            ));
        }
        Ok(())
    }

    /// The clients' timing, in ticks: the most permissive there is. A renewal is due a tick
    /// after the send that it renews, and another each tick; after a refusal nothing is waited
    /// for. Whatever slower timing does, this does too, since a client may be as late as it
    /// likes.
    pub fn config(&self) -> LeaseConfig {
        let config = LeaseConfig {
            ttl: self.ttl,
            max_drift_ppb: self.drift.ppb(),
            safety_margin: 0,
            renew_fraction_ppb: 0,
            try_timeout: 1,
            backoff_min: 0,
            backoff_max: 0,
            lock_delay: self.lock_delay,
        };
        // Rounded up, so that it comes to one tick and not to none.
        let window = config.safe_window().max(1);
        LeaseConfig {
            renew_fraction_ppb: PPB.div_ceil(window),
            ..config
        }
    }

    /// What the store accepts.
    pub fn limits(&self) -> StoreLimits {
        StoreLimits {
            min_ttl: 1,
            max_ttl: Nanos::MAX,
            lock_delay: self.lock_delay,
            ..StoreLimits::default()
        }
    }
}

//! Which ttl? The same pauses and crashes of leaders on many lease settings, measured:
//! false failovers, availability against failover time, time without a leader, renewals.
//!
//! A [`Plan`] is settings times environments times seeds; a run's history gives its
//! [`Measures`], which the [`Journal`] keeps; a cell's runs together give an [`Estimate`].

pub mod estimate;
pub mod journal;
pub mod measures;
pub mod plan;
pub mod setting;
pub mod statistics;
pub mod unit;

pub use estimate::{Estimate, Panel};
pub use journal::{Journal, Row, Standing};
pub use measures::Measures;
pub use plan::{Cell, Plan};
pub use setting::{Environment, Setting};

//! Reports: what people read.

pub mod campaign;
pub mod comparison;
pub mod failure;
pub mod html;
pub mod hunt;
pub mod index;
pub mod lanes;
pub mod shelf;
pub mod shrinking;
pub mod sweep;
pub mod tally;
pub mod text;
pub mod words;

/// Why a report ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// Something from outside does not do: what, where, and what to do about it.
    #[error("{0}")]
    BadInput(String),
    /// Nobody reads on: a closed pipe.
    #[error("nobody reads the report")]
    ReaderLeft,
}

//! Reports: what people read.

pub mod text;

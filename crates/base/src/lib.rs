//! Time, PostgreSQL-compatible random streams, distributions.
//!
//! What every other crate stands on: a time type and PostgreSQL's random number generator.
//! This crate knows nothing of databases, does no I/O and never reads a clock.

pub mod distribution;
pub mod hash;
pub mod prng;
pub mod time;

pub use prng::{Prng, splitmix64};
pub use time::Nanos;

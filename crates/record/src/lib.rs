//! What a run leaves behind: [`histogram`]s of latencies, [`outcome`]s of transactions, and [`interval`]s, which hold
//! both for a stretch of time. This crate never reads a clock: times are handed in.

pub mod histogram;
pub mod interval;
pub mod outcome;

pub use histogram::Histogram;
pub use interval::{Interval, Phase, Timeline};
pub use outcome::{Code, Outcomes};

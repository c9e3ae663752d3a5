//! Histograms, outcomes, intervals, transaction logs; never reads a clock.
//!
//! What a run leaves behind: [`histogram`]s of latencies, [`outcome`]s of transactions, and [`interval`]s, which hold
//! both for a stretch of time; [`log`]s of single transactions in pgbench's formats; and files of [`merged`] histograms.
//! This crate never reads a clock: times are handed in.

pub mod histogram;
pub mod interval;
pub mod log;
pub mod merged;
pub mod outcome;
mod used;

pub use histogram::Histogram;
pub use interval::{Interval, Phase, Timeline};
pub use log::TransactionLog;
pub use outcome::{Code, Outcomes};

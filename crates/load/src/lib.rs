//! Rows of datasets; COPY, and pages of heaps and B-trees.
//!
//! Datasets and how they get into a server.
//!
//! A dataset is one file under [`datasets`] that says its tables and their rows ([`rows`]). [`copy`] brings it into any
//! server by binary COPY, over several [`session`]s; [`heap`] writes the files of a stopped one. [`size`] says beforehand
//! how large it will be.

pub mod binary;
pub mod copy;
mod crew;
pub mod datasets;
pub mod error;
pub mod heap;
pub mod lines;
pub mod numeric;
pub mod rows;
pub mod session;
pub mod size;
pub mod statistics;

pub use error::LoadError;
pub use rows::{Dataset, Row, Table};

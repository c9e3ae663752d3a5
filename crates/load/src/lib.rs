//! Datasets and how they get into a server.
//!
//! A dataset is one file that says its tables and its rows ([`tpcb`]); [`copy`] brings it into any server over a
//! [`session::Session`] by binary COPY, in one transaction: afterwards it is there whole, or not at all.

pub mod copy;
pub mod error;
pub mod rows;
pub mod session;
pub mod size;
pub mod tpcb;

pub use copy::{Loaded, Progress, load};
pub use error::LoadError;
pub use rows::{Dataset, Table};

//! The datasets, one file each.

pub mod feed;
pub mod pk;
pub mod tpcb;

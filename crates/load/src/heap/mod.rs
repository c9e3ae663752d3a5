//! The files of a heap and its B-tree as PostgreSQL 14 to 18 would have written them: pages of 8 kB, little-endian
//! machines.
//!
//! Everything is arithmetic on the row's number: which page a row is on, which leaf its key is on, which block a page of the
//! index got. So any page can be made alone, and many at a time. [`relation`] says what is on a block of a file; [`files`]
//! writes them.

pub mod btree;
pub mod checksum;
pub mod files;
pub mod page;
pub mod place;
pub mod relation;
pub mod tuple;
pub mod visibility;

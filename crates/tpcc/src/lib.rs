//! TPC-C: rows, transactions, terminals.
//!
//! TPC-C after the standard's revision 5.11: tables and rows ([`populate`]), the five transactions as code
//! ([`transactions`]), and the clients that carry them out ([`workload`]).
//!
//! A transaction is an `async fn` over an [`exchange::Exchange`]: it asks statements and awaits their rows. Whether each
//! statement makes a round trip by itself, or those that do not depend on each other share one, is the client's to decide
//! ([`options::RoundTrips`]); the transaction's code is the same.

pub mod counts;
pub mod exchange;
pub mod listing;
pub mod options;
pub mod populate;
pub mod random;
pub mod schema;
pub mod transactions;
pub mod workload;

pub use options::Options;
pub use populate::Tpcc;
pub use workload::TpccWorkload;

//! What the clients of a side do.

use crate::counts::Counts;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// How a transaction's statements travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundTrips {
    /// One round trip for each statement.
    #[default]
    Statements,
    /// Statements that do not depend on each other share one: a pipeline.
    Pipelined,
    /// One for all: a function in the server.
    Functions,
}

impl FromStr for RoundTrips {
    type Err = String;
    fn from_str(s: &str) -> Result<RoundTrips, String> {
        match s {
            "statements" => Ok(RoundTrips::Statements),
            "pipelined" => Ok(RoundTrips::Pipelined),
            "functions" => Ok(RoundTrips::Functions),
            other => Err(format!("\"{other}\" is unknown; it is statements, pipelined or functions")),
        }
    }
}

/// Whose warehouse a client works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Home {
    /// Any, drawn for each transaction.
    #[default]
    Random,
    /// Its own: clients are spread over the warehouses of all sets.
    Bound,
    /// That of its terminal, and its district too: ten terminals a warehouse (clause 4.2.2).
    Terminal,
}

impl FromStr for Home {
    type Err = String;
    fn from_str(s: &str) -> Result<Home, String> {
        match s {
            "random" => Ok(Home::Random),
            "bound" => Ok(Home::Bound),
            "terminal" => Ok(Home::Terminal),
            other => Err(format!("\"{other}\" is unknown; it is random, bound or terminal")),
        }
    }
}

/// What the clients of one side do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Warehouses of each set.
    pub warehouses: u32,
    /// Sets of tables.
    pub sets: u32,
    /// What the rows were populated with.
    pub data_seed: u64,
    /// How often each transaction is chosen, in the order of [`KINDS`].
    pub weights: [u64; 5],
    /// How statements travel.
    pub round_trips: RoundTrips,
    /// Which warehouse.
    pub home: Home,
    /// BEGIN's isolation level; empty: the server's default.
    pub isolation: String,
    /// What the standard's keying and think times (clause 5.2.5.7) are multiplied by; 0: no waits. With waits,
    /// transactions are dealt from a deck (clause 5.2.4.2).
    pub waits: f64,
    /// A file that each order is appended to when its commit is acknowledged, as a line: client, set, warehouse, district
    /// and order. The kernel has it before the client goes on.
    pub orders: Option<PathBuf>,
    /// What its clients have drawn.
    pub counts: Arc<Counts>,
}

impl Options {
    /// Whether a transaction is one call.
    pub fn as_function(&self) -> bool {
        self.round_trips == RoundTrips::Functions
    }
}

#[cfg(test)]
impl Options {
    pub(crate) fn of_tests() -> Options {
        Options {
            warehouses: 2,
            sets: 1,
            data_seed: 1,
            weights: [10, 10, 1, 1, 1],
            round_trips: RoundTrips::Statements,
            home: Home::Random,
            isolation: String::new(),
            waits: 0.0,
            orders: None,
            counts: Arc::default(),
        }
    }
}

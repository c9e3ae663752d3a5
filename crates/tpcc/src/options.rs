//! What the clients of a side do.

use crate::counts::Counts;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// Distribution of a transaction's statements over round trips.
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

/// Choice of the warehouse that a client works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Home {
    /// Any, drawn for each transaction.
    #[default]
    Random,
    /// Its own: clients are spread over the warehouses of all sets.
    Bound,
    /// Warehouse of the client's terminal, and its district too: ten terminals per warehouse (clause 4.2.2).
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

/// Options for the clients of one side.
#[derive(Clone, Debug)]
pub struct Options {
    /// Warehouses of each set.
    pub warehouses: u32,
    /// Sets of tables.
    pub sets: u32,
    /// Seed with which the rows were populated.
    pub data_seed: u64,
    /// Relative frequency of each transaction, in the order of [`KINDS`].
    pub weights: [u64; 5],
    /// Distribution of the statements over round trips.
    pub round_trips: RoundTrips,
    /// Which warehouse.
    pub home: Home,
    /// BEGIN's isolation level; empty: the server's default.
    pub isolation: String,
    /// Multiplier of the standard's keying and think times (clause 5.2.5.7); 0: no waits. If there are waits,
    /// transactions are dealt from a deck (clause 5.2.4.2).
    pub waits: f64,
    /// A file that each order is appended to when its commit is acknowledged, as a line: client, set, warehouse, district
    /// and order. The kernel has it before the client goes on.
    pub orders: Option<PathBuf>,
    /// Counts of what the clients have drawn.
    pub counts: Arc<Counts>,
}

impl Options {
    /// Returns true if a transaction is a single function call.
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

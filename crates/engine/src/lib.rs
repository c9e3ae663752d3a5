//! Workers, clients, drivers: drives load and measures it; the only measuring clock.
//!
//! Drives load and measures it.
//!
//! [`run::run`] starts worker threads; a [`worker::Worker`] owns some clients, each a state machine ([`client`]), and a
//! [`driver::Driver`], which is all that it knows of sockets and time. What clients send comes from a
//! [`workload::Workload`]; when, in an open loop, from a [`schedule::Arrivals`]; what an error leads to is a `policy`'s to
//! decide. Workers hand over one [`pgdyno_record::Interval`] after the other; nothing is averaged on the way.

mod backlog;
pub mod client;
pub mod driver;
pub mod error;
pub mod events;
pub mod plan;
mod policy;
pub mod run;
pub mod schedule;
pub mod shell;
pub mod stub;
pub mod worker;
pub mod workload;

pub use backlog::Place;
pub use error::EngineError;
pub use events::EventKind;
pub use pgdyno_protocol::QueryMode;
pub use plan::{Duet, Limit, LogPlan, OnError, Plan, Rate, Voice};
pub use run::{Observation, Observer, Summary, run};
pub use workload::script::{Scheduled, Script, ScriptWorkload, Side};
pub use workload::{Workload, WorkloadOn};

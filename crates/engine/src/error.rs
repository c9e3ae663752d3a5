//! Why a run could not begin or had to end early. What was measured until then has been handed over.

use pgdyno_protocol::{ProtocolError, SqlState};
use pgdyno_script::ScriptError;
use std::fmt;

/// Error that ends a run early.
#[derive(Clone, Debug)]
pub enum EngineError {
    /// The plan cannot be carried out: which part and what to do.
    Plan(String),
    /// No socket connection: where, why.
    Connect {
        /// The endpoint.
        endpoint: String,
        /// The operating system's word.
        reason: String,
        /// The operating system's number, if it refused.
        errno: Option<i32>,
        /// Failure in libpq's wording.
        classic: String,
    },
    /// A connection was made but no session: where, why.
    Session {
        /// The endpoint.
        endpoint: String,
        /// Error that prevented the session.
        error: ProtocolError,
        /// Failure in libpq's wording.
        classic: String,
    },
    /// An expression failed, or the server refuses a statement for good.
    Script(Box<ScriptError>),
    /// A client ended early and the plan says that this ends the run. The number of its worker.
    Aborted(usize),
    /// A connection was lost and the plan says that this ends the run.
    Lost(String),
    /// The operating system refused something.
    System(String),
    /// A limit of this machine is too low for the plan: which one, and what to do.
    Limit(String),
}

impl EngineError {
    /// Returns the reason for the missing connection or session in libpq's wording; `None` for other errors.
    pub fn classic(&self) -> Option<&str> {
        match self {
            EngineError::Connect { classic, .. } | EngineError::Session { classic, .. } => Some(classic),
            _ => None,
        }
    }
}

impl EngineError {
    /// The operating system's number, if it refused a connection.
    pub fn errno(&self) -> Option<i32> {
        match self {
            EngineError::Connect { errno, .. } => *errno,
            _ => None,
        }
    }

    /// Name of the kind of error, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            EngineError::Plan(_) => "plan",
            EngineError::Connect { .. } => "connect",
            EngineError::Session { .. } => "session",
            EngineError::Script(_) => "script",
            EngineError::Aborted(_) => "aborted",
            EngineError::Lost(_) => "lost",
            EngineError::System(_) => "system",
            EngineError::Limit(_) => "limit",
        }
    }

    /// The server's code, if a server refused a session.
    pub fn sqlstate(&self) -> Option<SqlState> {
        match self {
            EngineError::Session { error: ProtocolError::Server(e), .. } => e.code,
            _ => None,
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Plan(m) | EngineError::Lost(m) | EngineError::System(m) | EngineError::Limit(m) => {
                f.write_str(m)
            }
            EngineError::Connect { endpoint, reason, .. } => write!(f, "cannot connect to {endpoint}: {reason}"),
            EngineError::Session { endpoint, error, .. } => write!(f, "cannot begin a session at {endpoint}: {error}"),
            EngineError::Script(e) => write!(f, "{e}"),
            EngineError::Aborted(worker) => write!(f, "a client of worker {worker} ended early"),
        }
    }
}

impl std::error::Error for EngineError {}

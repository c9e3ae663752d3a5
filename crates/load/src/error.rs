//! Why a dataset is not there.

use pgdyno_postgres::{ProtocolError, ServerError, SqlState};
use std::fmt;
use std::path::{Path, PathBuf};

/// Errors that can occur while loading.
#[derive(Clone, Debug)]
pub enum LoadError {
    /// No connection: where, why.
    Connect {
        /// The endpoint.
        endpoint: String,
        /// Reason for the failure.
        reason: String,
        /// The server's code, if it refused.
        code: Option<SqlState>,
    },
    /// The server refused a command: which, and its words.
    Server {
        /// Operation that was in progress.
        doing: String,
        /// The server's words.
        error: Box<ServerError>,
    },
    /// The protocol or the socket broke.
    Wire(String),
    /// A file could not be made or written: what, which, why.
    File {
        /// create, write, sync.
        doing: &'static str,
        /// Its path.
        path: PathBuf,
        /// The system's words.
        reason: String,
        /// The system's number of it.
        errno: Option<i32>,
    },
    /// The caller wanted no more.
    Interrupted,
}

impl LoadError {
    /// A failed operation on a file.
    pub fn file(doing: &'static str, path: &Path, error: std::io::Error) -> LoadError {
        LoadError::File { doing, path: path.to_path_buf(), reason: error.to_string(), errno: error.raw_os_error() }
    }
}

impl LoadError {
    /// The server's code, if it is a server's error.
    pub fn sqlstate(&self) -> Option<SqlState> {
        match self {
            LoadError::Server { error, .. } => error.code,
            LoadError::Connect { code, .. } => *code,
            _ => None,
        }
    }

    /// Name of the kind of error, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            LoadError::Connect { .. } => "connect",
            LoadError::Server { .. } => "server",
            LoadError::Wire(_) => "lost",
            LoadError::File { .. } => "file",
            LoadError::Interrupted => "stopped",
        }
    }

    /// The operating system's number, if this machine refused something.
    pub fn errno(&self) -> Option<i32> {
        match self {
            LoadError::File { errno, .. } => *errno,
            _ => None,
        }
    }
}

impl From<ProtocolError> for LoadError {
    fn from(e: ProtocolError) -> LoadError {
        LoadError::Wire(e.to_string())
    }
}

impl From<std::io::Error> for LoadError {
    fn from(e: std::io::Error) -> LoadError {
        LoadError::Wire(format!("the connection broke: {e}"))
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Connect { endpoint, reason, .. } => write!(f, "cannot connect to {endpoint}: {reason}"),
            LoadError::Server { doing, error } => write!(f, "{doing}: {error}"),
            LoadError::File { doing, path, reason, .. } => write!(f, "cannot {doing} {}: {reason}", path.display()),
            LoadError::Wire(m) => f.write_str(m),
            LoadError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for LoadError {}

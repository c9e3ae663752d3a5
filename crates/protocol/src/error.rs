//! Why a connection could not be made or kept.

use crate::server_error::ServerError;
use std::fmt;

/// Error while interpreting the bytes of a server. Each error states its cause; most suggest a remedy.
#[derive(Clone, Debug, PartialEq)]
pub enum ProtocolError {
    /// The server refused: its own words.
    Server(Box<ServerError>),
    /// Bytes that are no PostgreSQL message.
    Protocol(String),
    /// TLS could not be set up.
    Tls(String),
    /// Authentication cannot go on for a reason of ours: no password, an unknown method.
    Auth(String),
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtocolError::Server(e) => write!(f, "{e}"),
            ProtocolError::Protocol(m) => write!(f, "not a PostgreSQL server, or a broken one: {m}"),
            ProtocolError::Tls(m) => write!(f, "TLS: {m}"),
            ProtocolError::Auth(m) => write!(f, "authentication: {m}"),
        }
    }
}

impl std::error::Error for ProtocolError {}

//! Kinds of events that a worker reports.

/// Kind of an event. Python has the same names (`pgdyno.model.EventKind`), and a test compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A connection was lost.
    ConnectionLost,
    /// The server broke the protocol, and the connection was given up.
    ProtocolViolation,
    /// A client has a connection again.
    Reconnected,
    /// An attempt to connect failed.
    ConnectFailed,
    /// The first error of its code.
    FirstError,
    /// pgbench's message of this level.
    Error,
    /// pgbench's message of this level.
    Info,
    /// pgbench's message of this level.
    Debug,
    /// pgbench's output without a level.
    Output,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [EventKind; 9] = [
        EventKind::ConnectionLost,
        EventKind::ProtocolViolation,
        EventKind::Reconnected,
        EventKind::ConnectFailed,
        EventKind::FirstError,
        EventKind::Error,
        EventKind::Info,
        EventKind::Debug,
        EventKind::Output,
    ];

    /// Returns the name as records have it.
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::ConnectionLost => "connection_lost",
            EventKind::ProtocolViolation => "protocol_violation",
            EventKind::Reconnected => "reconnected",
            EventKind::ConnectFailed => "connect_failed",
            EventKind::FirstError => "first_error",
            EventKind::Error => "error",
            EventKind::Info => "info",
            EventKind::Debug => "debug",
            EventKind::Output => "output",
        }
    }
}

//! SQLSTATE codes.

use std::fmt;

/// Five characters that say what kind of error a server reports; the first two are its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// The connection was lost.
    pub const CONNECTION_FAILURE: SqlState = SqlState(*b"08006");
    /// The client could not establish a connection.
    pub const CANNOT_CONNECT: SqlState = SqlState(*b"08001");
    /// The server does not speak the protocol as it should.
    pub const PROTOCOL_VIOLATION: SqlState = SqlState(*b"08P01");
    /// A transaction was rolled back.
    pub const TRANSACTION_ROLLBACK: SqlState = SqlState(*b"40000");
    /// An expression of the script failed in the client ("client side" has no class of its own in the standard;
    /// F0000 and HV000 are taken, so pgdyno uses a code in the class that is reserved for implementations).
    pub const SCRIPT: SqlState = SqlState(*b"XP001");
    /// A transaction block was left open where none may be.
    pub const ACTIVE_TRANSACTION: SqlState = SqlState(*b"25001");
    /// An error that carried no code.
    pub const UNKNOWN: SqlState = SqlState(*b"XX000");

    /// Parses a code from text. Anything but five ASCII letters and digits gives [`SqlState::UNKNOWN`].
    pub fn parse(text: &str) -> SqlState {
        match <[u8; 5]>::try_from(text.as_bytes()) {
            Ok(code) if code.iter().all(u8::is_ascii_alphanumeric) => SqlState(code),
            _ => SqlState::UNKNOWN,
        }
    }

    /// Returns the code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }

    /// Class 42 (syntax error or access rule violation) and 26 (invalid statement name): the same statement will fail
    /// again, however often it is sent.
    pub fn is_permanent(&self) -> bool {
        // And a statement that MySQL does not prepare.
        matches!(&self.0[..2], b"42" | b"26" | b"0A") || &self.0 == b"M1295"
    }

    /// Returns true if the server is about to end this connection (class 57P: shutdown, crash, dropped database,
    /// timeout).
    pub fn ends_connection(&self) -> bool {
        &self.0[..3] == b"57P"
    }

    /// Serialization failure or deadlock, and MySQL's lock wait that timed out: worth a retry.
    pub fn is_retryable(&self) -> bool {
        matches!(&self.0, b"40001" | b"40P01" | b"M1205")
    }

    /// PostgreSQL's name of the condition, where a load test is likely to meet it.
    pub fn name(&self) -> Option<&'static str> {
        Some(match &self.0 {
            b"08006" => "connection_failure",
            b"08001" => "sqlclient_unable_to_establish_sqlconnection",
            b"08P01" => "protocol_violation",
            b"22012" => "division_by_zero",
            b"23502" => "not_null_violation",
            b"23503" => "foreign_key_violation",
            b"23505" => "unique_violation",
            b"23514" => "check_violation",
            b"25001" => "active_sql_transaction",
            b"25006" => "read_only_sql_transaction",
            b"28000" => "invalid_authorization_specification",
            b"28P01" => "invalid_password",
            b"3D000" => "invalid_catalog_name",
            b"40001" => "serialization_failure",
            b"40P01" => "deadlock_detected",
            b"42501" => "insufficient_privilege",
            b"42601" => "syntax_error",
            b"42703" => "undefined_column",
            b"42883" => "undefined_function",
            b"42P01" => "undefined_table",
            b"53100" => "disk_full",
            b"53200" => "out_of_memory",
            b"53300" => "too_many_connections",
            b"55P03" => "lock_not_available",
            b"57014" => "query_canceled",
            b"57P01" => "admin_shutdown",
            b"57P02" => "crash_shutdown",
            b"57P03" => "cannot_connect_now",
            b"M1205" => "lock_wait_timeout",
            b"XP001" => "pgdyno_script_error",
            b"XX000" => "internal_error",
            _ => return None,
        })
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! What a connection is made of.

use pgdyno_protocol::tls::TlsSettings;
use pgdyno_protocol::{Attempt, Endpoint, SslMode, Target};
use std::fmt;

/// Connection settings: account, server, database and TLS. `Debug` does not print the password.
#[derive(Clone)]
pub struct Config {
    /// Account.
    pub user: String,
    /// Password, where one is known.
    pub password: Option<String>,
    /// Database; empty: none is selected.
    pub database: String,
    /// System variables that the session begins with, with their values as SQL.
    pub settings: Vec<(String, String)>,
    /// Name of the program, which the server shows.
    pub program: String,
    /// TLS mode.
    pub ssl_mode: SslMode,
    /// TLS's settings; needed unless `ssl_mode` is disable or the endpoint is a Unix-domain socket.
    pub tls: Option<TlsSettings>,
    /// Address of the server.
    pub endpoint: Endpoint,
    /// Without TLS, the server's public key is taken from the server itself (`--get-server-public-key`).
    pub ask_public_key: bool,
    /// Over TLS that does not verify the server, the password may be sent as it is (`--enable-cleartext-plugin`).
    pub clear_password: bool,
    /// LOAD DATA LOCAL may send data.
    pub sends_data: bool,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("user", &self.user)
            .field("database", &self.database)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("ssl_mode", &self.ssl_mode)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// A connection without password or TLS; for tests and benchmarks.
    pub fn plain(endpoint: Endpoint, user: &str, database: &str) -> Config {
        Config {
            user: user.into(),
            password: None,
            database: database.into(),
            settings: Vec::new(),
            program: "pgdyno".into(),
            ssl_mode: SslMode::Disable,
            tls: None,
            endpoint,
            ask_public_key: false,
            clear_password: false,
            sends_data: false,
        }
    }

    /// Returns true if nobody between the two can read what passes.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.endpoint, Endpoint::Unix(_))
    }
}

impl Target for Config {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn attempts(&self) -> &'static [Attempt] {
        // The greeting tells whether the server has TLS: no second attempt is needed, and a refusal is final.
        match self.ssl_mode {
            SslMode::Disable => &[Attempt::Clear],
            _ if self.is_local() => &[Attempt::Clear],
            _ => &[Attempt::Encrypted],
        }
    }

    fn wants_writes(&self) -> bool {
        false
    }
}

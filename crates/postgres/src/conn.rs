//! What a connection is made of: where the server is, who asks, and how TLS is wanted.

use pgdyno_protocol::{Endpoint, SslMode};
use std::fmt;
use std::str::FromStr;

/// libpq's `channel_binding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Not used.
    Disable,
    /// Used where server and TLS allow it.
    #[default]
    Prefer,
    /// No connection without it.
    Require,
}

impl FromStr for ChannelBinding {
    type Err = String;
    fn from_str(s: &str) -> Result<ChannelBinding, String> {
        Ok(match s {
            "disable" => ChannelBinding::Disable,
            "prefer" | "" => ChannelBinding::Prefer,
            "require" => ChannelBinding::Require,
            other => {
                return Err(format!("channel_binding \"{other}\" is unknown; it is disable, prefer or require"));
            }
        })
    }
}

/// Connection settings: role, server, database and TLS. `Debug` does not print the password.
#[derive(Clone)]
pub struct Config {
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, where one is known.
    pub password: Option<String>,
    /// Further startup parameters: `application_name`, `options` ...
    pub parameters: Vec<(String, String)>,
    /// TLS mode.
    pub ssl_mode: SslMode,
    /// Channel binding mode.
    pub channel_binding: ChannelBinding,
    /// Address of the server.
    pub endpoint: Endpoint,
    /// Sessions that refuse writes are ended, and the next address is tried: libpq's `target_session_attrs=read-write`.
    pub read_write: bool,
    /// The server is a program of pgdyno's, which is told the kinds of values.
    pub tells_kinds: bool,
    /// TLS's settings; needed unless `ssl_mode` is disable or the endpoint is a Unix-domain socket.
    pub tls: Option<pgdyno_protocol::tls::TlsSettings>,
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
    /// A connection over a Unix-domain socket or TCP without password or TLS; for tests and benchmarks.
    pub fn plain(endpoint: Endpoint, user: &str, database: &str) -> Config {
        Config {
            user: user.into(),
            database: database.into(),
            password: None,
            parameters: Vec::new(),
            ssl_mode: SslMode::Disable,
            channel_binding: ChannelBinding::Prefer,
            endpoint,
            read_write: false,
            tells_kinds: false,
            tls: None,
        }
    }
}

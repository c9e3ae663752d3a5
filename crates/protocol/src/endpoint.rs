//! Where a server is, and how TLS is wanted.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Address at which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix-domain socket.
    Unix(PathBuf),
    /// TCP: the name as the user gave it (certificates are checked against it) and the addresses it resolved to.
    Tcp {
        /// Host name or address.
        host: String,
        /// Resolved addresses, tried in turn.
        addresses: Vec<SocketAddr>,
    },
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "socket {}", path.display()),
            Endpoint::Tcp { host, addresses } => match addresses.first() {
                Some(a) => write!(f, "{host} port {}", a.port()),
                None => f.write_str(host),
            },
        }
    }
}

impl Endpoint {
    /// Returns the reason for a failed connection in libpq's words.
    pub fn classic_failure(&self, reason: &str) -> String {
        // Rust adds the number of the operating system's error.
        let reason = reason.split(" (os error").next().unwrap_or(reason);
        let absent = ["No such file", "Connection refused"].iter().any(|w| reason.starts_with(w));
        match self {
            Endpoint::Unix(path) => {
                let hint = "\n\tIs the server running locally and accepting connections on that socket?";
                let hint = if absent { hint } else { "" };
                format!("connection to server on socket \"{}\" failed: {reason}{hint}", path.display())
            }
            Endpoint::Tcp { host, addresses } => {
                let hint = "\n\tIs the server running on that host and accepting TCP/IP connections?";
                let hint = if absent { hint } else { "" };
                let (address, port) = addresses.first().map_or((host.clone(), 0), |a| (a.ip().to_string(), a.port()));
                let shown = if address == *host { String::new() } else { format!(" ({address})") };
                format!("connection to server at \"{host}\"{shown}, port {port} failed: {reason}{hint}")
            }
        }
    }
}

/// libpq's `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS only when the server refuses without.
    Allow,
    /// TLS where the server has it.
    #[default]
    Prefer,
    /// TLS, whatever the certificate.
    Require,
    /// TLS with a certificate that a trusted root signed.
    VerifyCa,
    /// TLS with a certificate that a trusted root signed and that names the host.
    VerifyFull,
}

impl FromStr for SslMode {
    type Err = String;
    fn from_str(s: &str) -> Result<SslMode, String> {
        Ok(match s {
            "disable" => SslMode::Disable,
            "allow" => SslMode::Allow,
            "prefer" | "" => SslMode::Prefer,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            other => {
                return Err(format!(
                    "sslmode \"{other}\" is unknown; it is disable, allow, prefer, require, verify-ca or verify-full"
                ));
            }
        })
    }
}

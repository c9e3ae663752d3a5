//! What a server tells of a session at its beginning.

/// Information about the session that the server sends at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// Number of the session in the server, for cancel requests.
    pub process: u32,
    /// The secret that goes with it.
    pub secret: Vec<u8>,
    /// `server_version`, `TimeZone` ... in the order they came.
    pub parameters: Vec<(String, String)>,
    /// True if the connection is encrypted.
    pub encrypted: bool,
    /// True if the session refuses writes, as far as the server tells it.
    pub read_only: bool,
}

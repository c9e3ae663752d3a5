//! From the first byte to the first ReadyForQuery.

use crate::auth::Auth;
use crate::backend::{self, ServerError, next_message, tag};
use crate::conn::{Config, Endpoint, SslMode};
use crate::error::WireError;
use crate::frontend;
use crate::tls::Link;
use std::sync::Arc;

/// No server has more than this to say in one message before the session has begun.
const MAX_GREETING: usize = 256 * 1024;

/// What the server told about the session while it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// Process id of the backend, for cancel requests.
    pub process: u32,
    /// The secret that goes with it.
    pub secret: Vec<u8>,
    /// `server_version`, `TimeZone` ... in the order they came.
    pub parameters: Vec<(String, String)>,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
}

/// How far the handshake is.
#[derive(Debug)]
pub enum Progress {
    /// More bytes are needed.
    Pending,
    /// The session is ready.
    Ready(Box<SessionInfo>),
}

/// Connecting, as a state machine:
///
/// - `SslReply`: entered when TLS is wanted and SSLRequest is in the output; waits for one byte. `S` begins TLS and
///   goes on to `Tls`; `N` goes on to `Session` in the clear where `sslmode` allows that, else fails.
/// - `Tls`: entered with a link; every byte passes through it. When its handshake is over, StartupMessage is sealed and
///   the state is `Session`.
/// - `Session`: StartupMessage is sent; messages are answered until ReadyForQuery, which ends it.
pub struct Handshake {
    config: Arc<Config>,
    state: State,
    link: Link,
    auth: Auth,
    info: SessionInfo,
    plain: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    SslReply,
    Tls,
    Session,
}

/// Whether an attempt to connect begins with TLS. `sslmode` prefer and allow have a second attempt the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// With TLS, where the server has it.
    Encrypted,
    /// In the clear.
    Clear,
}

impl Attempt {
    /// The attempts that `config` allows, in order.
    pub fn of(config: &Config) -> &'static [Attempt] {
        use Attempt::{Clear, Encrypted};
        if matches!(config.endpoint, Endpoint::Unix(_)) {
            return &[Clear];
        }
        match config.ssl_mode {
            SslMode::Disable => &[Clear],
            SslMode::Allow => &[Clear, Encrypted],
            SslMode::Prefer => &[Encrypted, Clear],
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Encrypted],
        }
    }
}

impl Handshake {
    /// Begins; what must be sent first is appended to `out`.
    pub fn start(config: Arc<Config>, attempt: Attempt, out: &mut Vec<u8>) -> Handshake {
        let mut this = Handshake {
            config,
            state: State::Session,
            link: Link::Plain,
            auth: Auth::default(),
            info: SessionInfo::default(),
            plain: Vec::new(),
        };
        match attempt {
            Attempt::Encrypted => {
                frontend::ssl_request(out);
                this.state = State::SslReply;
            }
            Attempt::Clear => this.startup(out),
        }
        this
    }

    fn startup(&mut self, out: &mut Vec<u8>) {
        let mut parameters = vec![("user", self.config.user.as_str()), ("database", self.config.database.as_str())];
        if !self.config.parameters.iter().any(|(name, _)| name == "client_encoding") {
            parameters.push(("client_encoding", "UTF8"));
        }
        parameters.extend(self.config.parameters.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        frontend::startup(out, &parameters);
        self.state = State::Session;
    }

    /// Takes what arrived from the socket; what must be sent is appended to `out`.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<Progress, WireError> {
        if self.state == State::SslReply {
            let Some((reply, rest)) = bytes.split_first() else { return Ok(Progress::Pending) };
            // Anything behind the one byte came before TLS and could have been slipped in (CVE-2021-23222).
            match reply {
                b'S' if rest.is_empty() => self.begin_tls(out)?,
                b'S' => return Err(WireError::Protocol("data behind the answer to SSLRequest".into())),
                b'N' if matches!(self.config.ssl_mode, SslMode::Prefer | SslMode::Allow) => {
                    self.startup(out);
                    bytes = rest;
                }
                b'N' => {
                    return Err(WireError::Tls(
                        "the server does not offer TLS, but sslmode asks for it; set ssl=on in the server, or use \
                         sslmode=prefer"
                            .into(),
                    ));
                }
                b'E' => return Err(WireError::Protocol("the server answered SSLRequest with an error".into())),
                other => {
                    return Err(WireError::Protocol(format!("the answer to SSLRequest was 0x{other:02x}")));
                }
            }
            if self.state == State::Tls {
                return Ok(Progress::Pending);
            }
        }
        let mut reply = Vec::new();
        let opened = self.link.open(bytes, &mut self.plain, &mut reply);
        out.extend_from_slice(&reply);
        opened?;
        if let (State::Tls, Link::Tls(conn)) = (self.state, &self.link) {
            if conn.is_handshaking() {
                return Ok(Progress::Pending);
            }
            self.info.encrypted = true;
            let mut startup = Vec::new();
            self.startup(&mut startup);
            self.link.seal(&startup, out)?;
        }
        let plain = std::mem::take(&mut self.plain);
        let mut at = 0;
        while let Some((message, length)) = next_message(&plain[at..])? {
            at += length;
            if self.message(message, out)? {
                self.plain = plain[at..].to_vec();
                return Ok(Progress::Ready(Box::new(std::mem::take(&mut self.info))));
            }
        }
        self.plain = plain[at..].to_vec();
        if self.plain.len() > MAX_GREETING {
            return Err(WireError::Protocol("a message of this size while the session begins".into()));
        }
        Ok(Progress::Pending)
    }

    /// Takes the link, for the session that follows; and bytes behind ReadyForQuery, normally none.
    pub fn into_link(self) -> (Link, Vec<u8>) {
        (self.link, self.plain)
    }

    fn begin_tls(&mut self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let settings = self.config.tls.as_ref().ok_or_else(|| WireError::Tls("no TLS settings were loaded".into()))?;
        self.link = Link::Tls(settings.connect(&self.config.endpoint)?);
        self.state = State::Tls;
        self.link.open(&[], &mut self.plain, out)
    }

    /// Answers one message; true when the session is ready.
    fn message(&mut self, message: backend::Message<'_>, out: &mut Vec<u8>) -> Result<bool, WireError> {
        match message.tag {
            tag::AUTHENTICATION => {
                let mut answer = Vec::new();
                self.auth.answer(message.body, &self.config, self.link.server_end_point(), &mut answer)?;
                self.link.seal(&answer, out)?;
            }
            tag::PARAMETER_STATUS => {
                let (name, value) = backend::parameter_status(message.body)?;
                self.info.parameters.push((name.to_owned(), value.to_owned()));
            }
            tag::BACKEND_KEY_DATA => (self.info.process, self.info.secret) = backend::backend_key(message.body)?,
            tag::NOTICE | tag::NEGOTIATE_VERSION => {}
            tag::ERROR => return Err(WireError::Server(Box::new(ServerError::parse(message.body)))),
            tag::READY_FOR_QUERY => return backend::ready_for_query(message.body).map(|_| true),
            other => {
                return Err(WireError::Protocol(format!("message '{}' while the session begins", other as char)));
            }
        }
        Ok(false)
    }
}

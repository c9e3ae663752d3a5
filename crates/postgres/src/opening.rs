//! From the first byte to the first message: TLS, where it is wanted.

use crate::conn::Config;
use crate::frontend;
use pgdyno_protocol::ProtocolError;
use pgdyno_protocol::tls::Link;
use std::sync::Arc;

/// Asks for TLS:
///
/// - `SslReply`: SSLRequest is sent; waits for one byte. `S` begins TLS and goes on to `Tls`; `N` is the end, in the
///   clear, where that is allowed, else fails.
/// - `Tls`: every byte passes through the link. Its handshake's end is the end.
pub(crate) struct Opening {
    config: Arc<Config>,
    state: State,
    /// Going on without TLS is allowed.
    may_be_clear: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    SslReply,
    Tls,
}

impl Opening {
    /// Begins; what must be sent first is appended to `out`.
    pub fn start(config: Arc<Config>, may_be_clear: bool, out: &mut Vec<u8>) -> Opening {
        frontend::ssl_request(out);
        Opening { config, state: State::SslReply, may_be_clear }
    }

    /// Takes what arrived from the socket; what must be sent is appended to `reply`. Once the link is ready: what has
    /// arrived behind, in the clear.
    pub fn feed<'b>(
        &mut self,
        link: &mut Link,
        wire: &'b [u8],
        plain: &'b mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<Option<&'b [u8]>, ProtocolError> {
        let mut wire = wire;
        if self.state == State::SslReply {
            let Some((answer, rest)) = wire.split_first() else { return Ok(None) };
            // Anything behind the one byte came before TLS and could have been slipped in (CVE-2021-23222).
            match answer {
                b'S' if rest.is_empty() => self.begin_tls(link, reply)?,
                b'S' => return Err(ProtocolError::Protocol("data behind the answer to SSLRequest".into())),
                b'N' if self.may_be_clear => return Ok(Some(rest)),
                b'N' => {
                    return Err(ProtocolError::Tls(
                        "the server does not offer TLS, but sslmode asks for it; set ssl=on in the server, or use \
                         sslmode=prefer"
                            .into(),
                    ));
                }
                b'E' => return Err(ProtocolError::Protocol("the server answered SSLRequest with an error".into())),
                other => {
                    return Err(ProtocolError::Protocol(format!("the answer to SSLRequest was 0x{other:02x}")));
                }
            }
            wire = rest;
        }
        plain.clear();
        link.open(wire, plain, reply)?;
        match link {
            Link::Tls(conn) if conn.is_handshaking() => Ok(None),
            _ => Ok(Some(plain)),
        }
    }

    fn begin_tls(&mut self, link: &mut Link, reply: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let settings =
            self.config.tls.as_ref().ok_or_else(|| ProtocolError::Tls("no TLS settings were loaded".into()))?;
        *link = Link::Tls(settings.connect(&self.config.endpoint)?);
        self.state = State::Tls;
        link.open(&[], &mut Vec::new(), reply)
    }
}

/// A CancelRequest, on a connection of its own: encrypted where the session is that it concerns, as libpq has it. A
/// secret that a session keeps to itself must not travel in the clear.
pub struct Cancel {
    opening: Option<Opening>,
    link: Link,
    process: u32,
    secret: Vec<u8>,
}

impl Cancel {
    /// Begins; what must be sent first is appended to `out`. True: that is all.
    pub fn start(
        config: Arc<Config>,
        encrypted: bool,
        process: u32,
        secret: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> (Cancel, bool) {
        let opening = encrypted.then(|| Opening::start(config, false, out));
        let mut this = Cancel { opening, link: Link::Plain, process, secret };
        let done = this.opening.is_none();
        if done {
            frontend::cancel_request(out, this.process, &this.secret);
            this.secret.clear();
        }
        (this, done)
    }

    /// Takes what arrived from the socket; what must be sent is appended to `out`. True: that is all.
    pub fn feed(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        let Some(opening) = &mut self.opening else { return Ok(true) };
        if opening.feed(&mut self.link, wire, &mut Vec::new(), out)?.is_none() {
            return Ok(false);
        }
        let mut request = Vec::new();
        frontend::cancel_request(&mut request, self.process, &self.secret);
        self.link.seal(&request, out)?;
        self.opening = None;
        Ok(true)
    }
}

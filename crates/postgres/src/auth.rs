//! Authentication: trust, password, md5, SCRAM-SHA-256 with and without channel binding.

use crate::backend::cstr;
use crate::conn::{ChannelBinding, Config};
use crate::frontend;
use pgdyno_protocol::ProtocolError;
use pgdyno_protocol::tls::Link;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, ScramSha256};

/// The client's side of an authentication under way. The server chooses the method once; what it asks for beyond that is
/// refused, as is an end that it has not earned.
#[derive(Default)]
pub(crate) struct Auth {
    state: State,
    /// SCRAM is bound to the TLS connection.
    bound: bool,
}

#[derive(Default)]
enum State {
    /// The server has asked for nothing yet.
    #[default]
    Open,
    /// A password was sent; the server's word is awaited.
    Answered,
    /// SCRAM is under way: the server has not proved itself yet.
    Scram(Box<ScramSha256>),
    /// The server has proved that it knows the password.
    Proved,
    /// AuthenticationOk.
    Done,
}

impl Auth {
    /// Reads an Authentication message and appends the answer to `out`, as it stands in the clear. `link` is what the
    /// session runs over.
    pub fn answer(
        &mut self,
        body: &[u8],
        config: &Config,
        link: &Link,
        out: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let short = || ProtocolError::Protocol("an Authentication message that ends too early".into());
        let (kind, rest) = body.split_first_chunk::<4>().ok_or_else(short)?;
        let kind = u32::from_be_bytes(*kind);
        match (kind, &mut self.state) {
            (_, State::Done) => Err(ProtocolError::Protocol("a request for authentication behind its end".into())),
            (0, State::Scram(_)) => {
                Err(ProtocolError::Auth("the server ended SCRAM without proving that it knows the password".into()))
            }
            (0, state) => {
                if config.channel_binding == ChannelBinding::Require && !(self.bound && matches!(state, State::Proved))
                {
                    return Err(ProtocolError::Auth(
                        "channel_binding=require, but the server authenticated without it".into(),
                    ));
                }
                self.state = State::Done;
                Ok(())
            }
            (11, State::Scram(scram)) => {
                refuse_iterations(rest)?;
                scram.update(rest).map_err(|e| ProtocolError::Auth(format!("SCRAM: {e}")))?;
                frontend::sasl(out, scram.message());
                Ok(())
            }
            (12, State::Scram(scram)) => {
                scram
                    .finish(rest)
                    .map_err(|e| ProtocolError::Auth(format!("SCRAM: the server's proof is wrong: {e}")))?;
                self.state = State::Proved;
                Ok(())
            }
            (11 | 12, _) => Err(ProtocolError::Protocol("SASL data outside SASL".into())),
            (3 | 5 | 10, State::Answered | State::Scram(_) | State::Proved) => Err(ProtocolError::Protocol(
                "a second request for authentication, by the same or another method".into(),
            )),
            (3, State::Open) => {
                refuse_unbound(config)?;
                frontend::password(out, password(config)?);
                self.state = State::Answered;
                Ok(())
            }
            (5, State::Open) => {
                refuse_unbound(config)?;
                let salt = *rest.first_chunk::<4>().ok_or_else(short)?;
                let hash = md5_hash(config.user.as_bytes(), password(config)?.as_bytes(), salt);
                frontend::password(out, &hash);
                self.state = State::Answered;
                Ok(())
            }
            (10, State::Open) => self.begin_scram(rest, config, link, out),
            (other, _) => {
                let name = match other {
                    2 => "Kerberos V5",
                    7..=9 => "GSSAPI or SSPI",
                    _ => "unknown",
                };
                Err(ProtocolError::Auth(format!(
                    "the server asks for method {other} ({name}); pgdyno knows trust, password, md5 and SCRAM-SHA-256. \
                     Give the role one of these in pg_hba.conf"
                )))
            }
        }
    }

    /// Returns true if AuthenticationOk has arrived.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    fn begin_scram(
        &mut self,
        mechanisms: &[u8],
        config: &Config,
        link: &Link,
        out: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let (mut plain, mut plus) = (false, false);
        let mut rest = mechanisms;
        while rest.first().is_some_and(|b| *b != 0) {
            let (name, after) = cstr(rest)?;
            plain |= name == sasl::SCRAM_SHA_256;
            plus |= name == sasl::SCRAM_SHA_256_PLUS;
            rest = after;
        }
        if plus && link.is_plain() {
            // Never offered without TLS: somebody between has taken TLS away.
            return Err(ProtocolError::Auth(
                "the server offers SCRAM-SHA-256-PLUS over a connection without TLS".into(),
            ));
        }
        let wanted = config.channel_binding != ChannelBinding::Disable;
        let (binding, mechanism) = match link.server_end_point() {
            Some(hash) if wanted && plus => {
                self.bound = true;
                (sasl::ChannelBinding::tls_server_end_point(hash), sasl::SCRAM_SHA_256_PLUS)
            }
            // The client could bind but the server does not offer it: saying so defeats a downgrade by someone between.
            Some(_) if wanted && plain => (sasl::ChannelBinding::unrequested(), sasl::SCRAM_SHA_256),
            _ if plain => (sasl::ChannelBinding::unsupported(), sasl::SCRAM_SHA_256),
            _ => {
                return Err(ProtocolError::Auth(
                    "the server offers no SASL mechanism that pgdyno knows (SCRAM-SHA-256)".into(),
                ));
            }
        };
        if config.channel_binding == ChannelBinding::Require && !self.bound {
            return Err(ProtocolError::Auth(
                "channel_binding=require needs TLS and a server that offers SCRAM-SHA-256-PLUS".into(),
            ));
        }
        let scram = ScramSha256::new(password(config)?.as_bytes(), binding);
        frontend::sasl_initial(out, mechanism, scram.message());
        self.state = State::Scram(Box::new(scram));
        Ok(())
    }
}

fn refuse_unbound(config: &Config) -> Result<(), ProtocolError> {
    if config.channel_binding == ChannelBinding::Require {
        return Err(ProtocolError::Auth(
            "channel_binding=require, but the server asks for a plain or md5 password".into(),
        ));
    }
    Ok(())
}

fn password(config: &Config) -> Result<&str, ProtocolError> {
    config.password.as_deref().ok_or_else(|| {
        ProtocolError::Auth(format!(
            "the server asks for the password of \"{}\" and none was given; set PGPASSWORD, or write it to ~/.pgpass",
            config.user
        ))
    })
}
/// Iterations of SCRAM that are reckoned, seconds of work; the server's default is 4,096.
const ITERATIONS_MAX: u64 = 10_000_000;

/// Refuses a server that would keep us reckoning, or have us show a hash that is none: its first message is `r=nonce,s=salt,i=iterations`.
fn refuse_iterations(first: &[u8]) -> Result<(), ProtocolError> {
    let asked = first.split(|b| *b == b',').find_map(|part| part.strip_prefix(b"i="));
    let asked = asked.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| digits.parse::<u64>().ok());
    match asked {
        Some(n) if n > ITERATIONS_MAX => Err(ProtocolError::Auth(format!(
            "SCRAM: the server asks for {n} iterations; pgdyno does at most {ITERATIONS_MAX}"
        ))),
        Some(0) => Err(ProtocolError::Auth("SCRAM: the server asks for 0 iterations".into())),
        _ => Ok(()),
    }
}

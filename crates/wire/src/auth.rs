//! Authentication: trust, password, md5, SCRAM-SHA-256 with and without channel binding.

use crate::backend::cstr;
use crate::conn::{ChannelBinding, Config};
use crate::error::WireError;
use crate::frontend;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, ScramSha256};

/// The client's side of an authentication under way.
#[derive(Default)]
pub struct Auth {
    scram: Option<ScramSha256>,
    bound: bool,
    done: bool,
}

impl Auth {
    /// Reads an Authentication message and appends the answer to `out`. `end_point` is TLS's channel binding.
    pub fn answer(
        &mut self,
        body: &[u8],
        config: &Config,
        end_point: Option<Vec<u8>>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let short = || WireError::Protocol("an Authentication message that ends too early".into());
        let (kind, rest) = body.split_first_chunk::<4>().ok_or_else(short)?;
        match u32::from_be_bytes(*kind) {
            0 => {
                if config.channel_binding == ChannelBinding::Require && !(self.bound && self.done) {
                    return Err(WireError::Auth(
                        "channel_binding=require, but the server authenticated without it".into(),
                    ));
                }
                if self.scram.is_some() && !self.done {
                    return Err(WireError::Auth(
                        "the server ended SCRAM without proving that it knows the password".into(),
                    ));
                }
                Ok(())
            }
            3 => {
                self.refuse_unbound(config)?;
                frontend::password(out, password(config)?);
                Ok(())
            }
            5 => {
                self.refuse_unbound(config)?;
                let salt = *rest.first_chunk::<4>().ok_or_else(short)?;
                let hash = md5_hash(config.user.as_bytes(), password(config)?.as_bytes(), salt);
                frontend::password(out, &hash);
                Ok(())
            }
            10 => self.begin_scram(rest, config, end_point, out),
            11 => {
                let scram = self.scram.as_mut().ok_or_else(|| WireError::Protocol("SASL data before SASL".into()))?;
                scram.update(rest).map_err(|e| WireError::Auth(format!("SCRAM: {e}")))?;
                frontend::sasl(out, scram.message());
                Ok(())
            }
            12 => {
                let scram = self.scram.as_mut().ok_or_else(|| WireError::Protocol("SASL end before SASL".into()))?;
                scram.finish(rest).map_err(|e| WireError::Auth(format!("SCRAM: the server's proof is wrong: {e}")))?;
                self.done = true;
                Ok(())
            }
            other => {
                let name = match other {
                    2 => "Kerberos V5",
                    7..=9 => "GSSAPI or SSPI",
                    _ => "unknown",
                };
                Err(WireError::Auth(format!(
                    "the server asks for method {other} ({name}); pgdyno knows trust, password, md5 and SCRAM-SHA-256. \
                     Give the role one of these in pg_hba.conf"
                )))
            }
        }
    }

    fn refuse_unbound(&self, config: &Config) -> Result<(), WireError> {
        if config.channel_binding == ChannelBinding::Require {
            return Err(WireError::Auth(
                "channel_binding=require, but the server asks for a plain or md5 password".into(),
            ));
        }
        Ok(())
    }

    fn begin_scram(
        &mut self,
        mechanisms: &[u8],
        config: &Config,
        end_point: Option<Vec<u8>>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let (mut plain, mut plus) = (false, false);
        let mut rest = mechanisms;
        while rest.first().is_some_and(|b| *b != 0) {
            let (name, after) = cstr(rest)?;
            plain |= name == sasl::SCRAM_SHA_256;
            plus |= name == sasl::SCRAM_SHA_256_PLUS;
            rest = after;
        }
        let wanted = config.channel_binding != ChannelBinding::Disable;
        let (binding, mechanism) = match end_point {
            Some(hash) if wanted && plus => {
                self.bound = true;
                (sasl::ChannelBinding::tls_server_end_point(hash), sasl::SCRAM_SHA_256_PLUS)
            }
            // The client could bind but the server does not offer it: saying so defeats a downgrade by someone between.
            Some(_) if wanted && plain => (sasl::ChannelBinding::unrequested(), sasl::SCRAM_SHA_256),
            _ if plain => (sasl::ChannelBinding::unsupported(), sasl::SCRAM_SHA_256),
            _ => {
                return Err(WireError::Auth(
                    "the server offers no SASL mechanism that pgdyno knows (SCRAM-SHA-256)".into(),
                ));
            }
        };
        if config.channel_binding == ChannelBinding::Require && !self.bound {
            return Err(WireError::Auth(
                "channel_binding=require needs TLS and a server that offers SCRAM-SHA-256-PLUS".into(),
            ));
        }
        let scram = ScramSha256::new(password(config)?.as_bytes(), binding);
        frontend::sasl_initial(out, mechanism, scram.message());
        self.scram = Some(scram);
        Ok(())
    }
}

fn password(config: &Config) -> Result<&str, WireError> {
    config.password.as_deref().ok_or_else(|| {
        WireError::Auth(format!(
            "the server asks for the password of \"{}\" and none was given; set PGPASSWORD, or write it to ~/.pgpass",
            config.user
        ))
    })
}

//! From the server's greeting to the first request: TLS, authentication, system variables.

use crate::auth::{Plugin, encrypted};
use crate::config::Config;
use crate::errors;
use crate::packet::{self, Reader, packet};
use pgdyno_protocol::tls::Link;
use pgdyno_protocol::{Attempt, ProtocolError, SessionInfo, SslMode};
use std::sync::Arc;

/// Abilities of client and server ("Capabilities Flags").
pub(crate) mod capability {
    pub const LONG_PASSWORD: u32 = 1;
    /// UPDATE counts the rows that it has found, as PostgreSQL's does, and not those that it has changed.
    pub const FOUND_ROWS: u32 = 2;
    pub const LONG_FLAG: u32 = 4;
    pub const CONNECT_WITH_DB: u32 = 8;
    pub const LOCAL_FILES: u32 = 0x80;
    pub const PROTOCOL_41: u32 = 0x200;
    pub const SSL: u32 = 0x800;
    pub const TRANSACTIONS: u32 = 0x2000;
    pub const SECURE_CONNECTION: u32 = 0x8000;
    pub const MULTI_STATEMENTS: u32 = 0x1_0000;
    pub const MULTI_RESULTS: u32 = 0x2_0000;
    pub const PS_MULTI_RESULTS: u32 = 0x4_0000;
    pub const PLUGIN_AUTH: u32 = 0x8_0000;
    pub const CONNECT_ATTRS: u32 = 0x10_0000;
    pub const AUTH_LENENC: u32 = 0x20_0000;
    pub const DEPRECATE_EOF: u32 = 0x100_0000;
}
use capability as c;

/// utf8mb4_general_ci, which all servers have.
const CHARSET: u8 = 45;
/// Longest packet that we say we take, bytes; the server's own limit is `max_allowed_packet`.
const MAX_PACKET: u32 = 1 << 30;

/// Step of the beginning.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The server's greeting is awaited.
    Greeting,
    /// TLS is being set up.
    Tls,
    /// An answer to our proof is awaited.
    Proof,
    /// The server's public key is awaited.
    PublicKey,
    /// System variables are being set.
    Settings,
}

/// A session that begins.
pub(crate) struct Handshake {
    config: Arc<Config>,
    attempt: Attempt,
    step: Step,
    plugin: Plugin,
    challenge: Vec<u8>,
    /// Abilities of both.
    pub capabilities: u32,
    info: SessionInfo,
    /// The number of the next packet, whoever sends it.
    pub sequence: u8,
}

/// Result of a packet of the beginning.
pub(crate) enum Outcome {
    /// More is awaited.
    More,
    /// The session is ready; a status of the server.
    Began(Box<SessionInfo>, u16),
}

impl Handshake {
    pub fn new(config: Arc<Config>, attempt: Attempt) -> Handshake {
        Handshake {
            config,
            attempt,
            step: Step::Greeting,
            plugin: Plugin::Native,
            challenge: Vec::new(),
            capabilities: 0,
            info: SessionInfo::default(),
            sequence: 0,
        }
    }

    /// TLS is being set up: what arrives are no packets yet.
    pub fn is_opening(&self) -> bool {
        self.step == Step::Tls
    }

    /// The server speaks first, in the clear, also where TLS follows.
    pub fn awaits_greeting(&self) -> bool {
        self.step == Step::Greeting
    }

    /// TLS is there: the login is appended to `out`.
    pub fn opened(&mut self, link: &mut Link, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        self.info.encrypted = true;
        self.login(link, out)
    }

    /// Takes a packet.
    pub fn packet(&mut self, payload: &[u8], link: &mut Link, out: &mut Vec<u8>) -> Result<Outcome, ProtocolError> {
        if payload.first() == Some(&0xff) {
            return Err(ProtocolError::Server(Box::new(errors::read(payload)?.error)));
        }
        match (&self.step, payload.first()) {
            (Step::Greeting, _) => {
                self.greeting(payload)?;
                self.begin(link, out)?;
            }
            (Step::Proof, Some(0xfe)) => self.switch(payload, link, out)?,
            (Step::Proof, Some(1)) if self.plugin == Plugin::CachingSha2 => match payload {
                // The server knows the password's hash: OK follows.
                [1, 3] => {}
                [1, 4] => self.prove_in_full(link, out)?,
                _ => return Err(unexpected("an unknown step of caching_sha2_password")),
            },
            (Step::PublicKey, Some(1)) => {
                let proof = encrypted(self.password(), &self.challenge, &payload[1..])?;
                self.step = Step::Proof;
                self.send(link, out, |o| o.extend_from_slice(&proof))?;
            }
            (Step::Proof, Some(0)) if !self.config.settings.is_empty() => {
                self.step = Step::Settings;
                self.sequence = 0;
                let list: Vec<String> =
                    self.config.settings.iter().map(|(name, value)| format!("SESSION {name} = {value}")).collect();
                self.send(link, out, |o| {
                    o.push(3);
                    o.extend_from_slice(format!("SET {}", list.join(", ")).as_bytes());
                })?;
            }
            (Step::Proof | Step::Settings, Some(0)) => {
                let mut r = Reader::new(payload);
                r.u8()?;
                r.length()?;
                r.length()?;
                let status = r.u16()?;
                return Ok(Outcome::Began(Box::new(std::mem::take(&mut self.info)), status));
            }
            (_, first) => {
                let first = first.map_or("empty".into(), |b| format!("0x{b:02x}"));
                return Err(unexpected(&format!("a packet ({first}) while the session begins")));
            }
        }
        Ok(Outcome::More)
    }

    /// Reads the server's greeting ("Protocol::HandshakeV10").
    fn greeting(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let mut r = Reader::new(payload);
        let version = r.u8()?;
        if version != 10 {
            return Err(unexpected(&format!("protocol version {version}")));
        }
        let server = String::from_utf8_lossy(r.until_zero()?).into_owned();
        self.info.process = r.u32()?;
        self.challenge = r.bytes(8)?.to_vec();
        r.u8()?;
        let low = r.u16()?;
        r.u8()?;
        r.u16()?;
        let high = r.u16()?;
        let length = usize::from(r.u8()?);
        r.bytes(10)?;
        let theirs = u32::from(high) << 16 | u32::from(low);
        if theirs & c::PROTOCOL_41 == 0 || theirs & c::SECURE_CONNECTION == 0 {
            return Err(unexpected("a server older than MySQL 4.1"));
        }
        // The challenge's second part ends in a zero.
        let second = r.bytes(length.saturating_sub(8).max(13).min(r.rest().len()))?;
        self.challenge.extend_from_slice(second.strip_suffix(&[0]).unwrap_or(second));
        let name = r.rest().split(|b| *b == 0).next().unwrap_or_default();
        self.plugin = Plugin::named(&String::from_utf8_lossy(name)).unwrap_or(Plugin::Native);
        self.info.parameters.push(("server_version".into(), server));
        let ours = c::LONG_PASSWORD
            | c::FOUND_ROWS
            | c::LONG_FLAG
            | c::PROTOCOL_41
            | c::TRANSACTIONS
            | c::SECURE_CONNECTION
            | c::MULTI_STATEMENTS
            | c::MULTI_RESULTS
            | c::PS_MULTI_RESULTS
            | c::PLUGIN_AUTH
            | c::CONNECT_ATTRS
            | c::AUTH_LENENC
            | c::DEPRECATE_EOF
            | if self.config.database.is_empty() { 0 } else { c::CONNECT_WITH_DB }
            | if self.config.sends_data { c::LOCAL_FILES } else { 0 }
            | if self.attempt == Attempt::Encrypted { c::SSL } else { 0 };
        self.capabilities = ours & theirs;
        Ok(())
    }

    /// Behind the greeting: TLS, where it is wanted and there, else the login.
    fn begin(&mut self, link: &mut Link, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if self.attempt == Attempt::Clear {
            return self.login(link, out);
        }
        if self.capabilities & c::SSL == 0 {
            if matches!(self.config.ssl_mode, SslMode::Prefer | SslMode::Allow) {
                return self.login(link, out);
            }
            return Err(ProtocolError::Tls(
                "the server does not offer TLS, but it is asked for; set ssl_cert and ssl_key in the server, or use \
                 ssl-mode=PREFERRED"
                    .into(),
            ));
        }
        let capabilities = self.capabilities;
        self.send(link, out, |o| head(o, capabilities))?;
        let settings =
            self.config.tls.as_ref().ok_or_else(|| ProtocolError::Tls("no TLS settings were loaded".into()))?;
        *link = Link::Tls(settings.connect(&self.config.endpoint)?);
        self.step = Step::Tls;
        link.open(&[], &mut Vec::new(), out)
    }

    /// "Protocol::HandshakeResponse41".
    fn login(&mut self, link: &mut Link, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        // Which plugin an account has is known only when the server has its name. What is not for an eavesdropper waits
        // for that.
        if matches!(self.plugin, Plugin::Clear | Plugin::Ed25519) {
            self.plugin = Plugin::Native;
        }
        let proof = self.plugin.answer(self.password(), &self.challenge, self.is_private(link))?;
        let (config, plugin, capabilities) = (self.config.clone(), self.plugin, self.capabilities);
        self.step = Step::Proof;
        self.send(link, out, |o| {
            head(o, capabilities);
            zero_ended(o, config.user.as_bytes());
            if capabilities & c::AUTH_LENENC != 0 {
                packet::string(o, &proof);
            } else {
                o.push(proof.len() as u8);
                o.extend_from_slice(&proof);
            }
            if capabilities & c::CONNECT_WITH_DB != 0 {
                zero_ended(o, config.database.as_bytes());
            }
            if capabilities & c::PLUGIN_AUTH != 0 {
                zero_ended(o, plugin.name().as_bytes());
            }
            if capabilities & c::CONNECT_ATTRS != 0 {
                let mut attributes = Vec::new();
                packet::string(&mut attributes, b"program_name");
                packet::string(&mut attributes, config.program.as_bytes());
                packet::string(o, &attributes);
            }
        })
    }

    /// "Protocol::AuthSwitchRequest": the account has another plugin.
    fn switch(&mut self, payload: &[u8], link: &mut Link, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let mut r = Reader::new(&payload[1..]);
        let name = String::from_utf8_lossy(r.until_zero()?).into_owned();
        self.plugin = Plugin::named(&name).ok_or_else(|| {
            ProtocolError::Auth(format!(
                "the account \"{}\" authenticates by the plugin {name}, which pgdyno does not have; use an account with \
                 mysql_native_password, caching_sha2_password or ed25519",
                self.config.user
            ))
        })?;
        self.challenge = r.rest().strip_suffix(&[0]).unwrap_or(r.rest()).to_vec();
        if self.plugin == Plugin::Ed25519 {
            // Its challenge may end in a zero of its own.
            self.challenge = r.rest()[..r.rest().len().min(32)].to_vec();
        }
        let is_private = match self.plugin {
            Plugin::Clear => self.may_be_clear(link),
            _ => self.is_private(link),
        };
        let proof = self.plugin.answer(self.password(), &self.challenge, is_private)?;
        self.send(link, out, |o| o.extend_from_slice(&proof))
    }

    /// `caching_sha2_password`, where the server has no hash in its cache: it must see the password itself.
    fn prove_in_full(&mut self, link: &mut Link, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if self.is_private(link) {
            let password = [self.password(), &[0]].concat();
            return self.send(link, out, |o| o.extend_from_slice(&password));
        }
        if !self.config.ask_public_key {
            return Err(ProtocolError::Auth(
                "caching_sha2_password needs TLS for the first login of an account; use ssl-mode=REQUIRED, or \
                 get-server-public-key=1 where nobody can stand between this machine and the server"
                    .into(),
            ));
        }
        self.step = Step::PublicKey;
        self.send(link, out, |o| o.push(2))
    }

    fn send(
        &mut self,
        link: &mut Link,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), ProtocolError> {
        let mut plain = Vec::new();
        self.sequence = packet(&mut plain, self.sequence, write);
        link.seal(&plain, out)
    }

    fn password(&self) -> &[u8] {
        self.config.password.as_deref().unwrap_or_default().as_bytes()
    }

    /// The password may be sent as it is to whoever asks for it.
    fn may_be_clear(&self, link: &Link) -> bool {
        let verifies = matches!(self.config.ssl_mode, SslMode::VerifyCa | SslMode::VerifyFull);
        self.config.is_local() || (!link.is_plain() && (verifies || self.config.clear_password))
    }

    fn is_private(&self, link: &Link) -> bool {
        !link.is_plain() || self.config.is_local()
    }
}

/// Appends the beginning of the request for TLS and of the login.
fn head(out: &mut Vec<u8>, capabilities: u32) {
    out.extend_from_slice(&capabilities.to_le_bytes());
    out.extend_from_slice(&MAX_PACKET.to_le_bytes());
    out.push(CHARSET);
    out.extend_from_slice(&[0; 23]);
}

fn zero_ended(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

fn unexpected(what: &str) -> ProtocolError {
    ProtocolError::Protocol(what.to_owned())
}

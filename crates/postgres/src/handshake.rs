//! From the startup message to the first ReadyForQuery: authentication, then parameters.

use crate::auth::Auth;
use crate::backend::{self, Message, tag};
use crate::conn::Config;
use crate::frontend;
use pgdyno_protocol::tls::Link;
use pgdyno_protocol::{ProtocolError, SessionInfo};
use std::sync::Arc;

/// A session that begins. Until AuthenticationOk the server may only ask for authentication, or refuse; behind it comes
/// what it tells of the session, and ReadyForQuery ends it.
pub(crate) struct Handshake {
    config: Arc<Config>,
    auth: Auth,
    info: SessionInfo,
}

impl Handshake {
    /// Begins, over a link that is ready; StartupMessage is appended to `out`.
    pub fn start(config: Arc<Config>, link: &mut Link, out: &mut Vec<u8>) -> Result<Handshake, ProtocolError> {
        let mut parameters = vec![("user", config.user.as_str()), ("database", config.database.as_str())];
        parameters.extend(config.parameters.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        let mut startup = Vec::new();
        frontend::startup(&mut startup, &parameters);
        link.seal(&startup, out)?;
        let info = SessionInfo { encrypted: !link.is_plain(), ..SessionInfo::default() };
        Ok(Handshake { config, auth: Auth::default(), info })
    }

    /// Answers one message; the session, when it is ready.
    pub fn message(
        &mut self,
        message: Message<'_>,
        link: &mut Link,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<SessionInfo>>, ProtocolError> {
        match message.tag {
            tag::AUTHENTICATION => {
                let mut answer = Vec::new();
                self.auth.answer(message.body, &self.config, link, &mut answer)?;
                link.seal(&answer, out)?;
            }
            tag::ERROR => return Err(ProtocolError::Server(Box::new(backend::server_error(message.body)))),
            tag::NEGOTIATE_VERSION => {}
            other if !self.auth.is_done() => {
                return Err(ProtocolError::Protocol(format!(
                    "message '{}' before the session was authenticated",
                    other as char
                )));
            }
            tag::PARAMETER_STATUS => {
                let (name, value) = backend::parameter_status(message.body)?;
                self.info.parameters.push((name.to_owned(), value.to_owned()));
            }
            tag::BACKEND_KEY_DATA => (self.info.process, self.info.secret) = backend::backend_key(message.body)?,
            tag::NOTICE => {}
            tag::READY_FOR_QUERY => {
                backend::ready_for_query(message.body)?;
                self.info.read_only = is_read_only(&self.info.parameters);
                return Ok(Some(Box::new(std::mem::take(&mut self.info))));
            }
            other => {
                return Err(ProtocolError::Protocol(format!("message '{}' while the session begins", other as char)));
            }
        }
        Ok(None)
    }
}

/// Returns true if the session refuses writes, like libpq's `target_session_attrs=read-write`. Relies on parameters
/// that servers report since version 14.
fn is_read_only(parameters: &[(String, String)]) -> bool {
    let is_on = |(name, value): &(String, String)| {
        matches!(name.as_str(), "in_hot_standby" | "default_transaction_read_only") && value == "on"
    };
    parameters.iter().any(is_on)
}

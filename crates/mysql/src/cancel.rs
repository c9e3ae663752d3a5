//! KILL QUERY, over a connection of its own.

use crate::config::Config;
use crate::conversation::Conversation;
use pgdyno_protocol::{Attempt, Conversation as _, Event, ProtocolError};
use std::sync::Arc;

/// A request to stop what a session is doing: a session of the same account that asks for it.
pub struct Cancel {
    conversation: Conversation<()>,
    process: u32,
}

impl pgdyno_protocol::Cancel for Cancel {
    type Config = Config;

    fn start(
        config: Arc<Config>,
        encrypted: bool,
        process: u32,
        _: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(Cancel, bool), ProtocolError> {
        let attempt = if encrypted { Attempt::Encrypted } else { Attempt::Clear };
        Ok((Cancel { conversation: Conversation::start(config, attempt, out)?, process }, false))
    }

    fn feed(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        let mut plain = Vec::new();
        let mut input = self.conversation.open(wire, &mut plain, out)?;
        while let Some(event) = self.conversation.next(&mut input, out)? {
            let mut request = Vec::new();
            match event {
                Event::Began(_) => self.conversation.command((), &format!("KILL QUERY {}", self.process), &mut request),
                Event::Synchronised(()) | Event::Refused(_) => {
                    self.conversation.goodbye(&mut request);
                    self.conversation.seal(&request, out)?;
                    return Ok(true);
                }
                _ => continue,
            }
            self.conversation.seal(&request, out)?;
        }
        Ok(false)
    }
}

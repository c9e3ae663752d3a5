//! Bytes to and from sockets, through each connection's conversation.

use crate::client::Connection;
use crate::driver::{Driver, Token};
use pgdyno_base::Nanos;
use pgdyno_protocol::{Conversation, Dialect};

/// Bytes read at a time; shared by all clients of a worker, so that a connection needs almost no memory of its own.
const READ_BUFFER: usize = 64 * 1024;

/// Result of a read.
pub(super) enum Received {
    /// So many bytes; and whether more may be there.
    Bytes(usize, bool),
    /// Nothing is there.
    Nothing,
    /// The connection is gone: why.
    Gone(String),
}

/// The driver, and the buffers that all connections share.
pub(super) struct Sockets<D> {
    pub driver: D,
    /// Bytes of the last read.
    pub buffer: Vec<u8>,
    /// Decrypted bytes of the last read.
    pub plain: Vec<u8>,
    /// Bytes being written.
    pub out: Vec<u8>,
}

impl<D: Driver> Sockets<D> {
    pub fn new(driver: D) -> Sockets<D> {
        Sockets { driver, buffer: vec![0; READ_BUFFER], plain: Vec::new(), out: Vec::new() }
    }

    #[inline]
    pub fn now(&mut self) -> Nanos {
        self.driver.now()
    }

    #[inline]
    pub fn receive(&mut self, i: Token) -> Received {
        match self.driver.recv(i, &mut self.buffer) {
            Ok(None) => Received::Nothing,
            Ok(Some(0)) => Received::Gone("the server closed the connection".into()),
            Ok(Some(n)) => Received::Bytes(n, n == READ_BUFFER),
            Err(e) => Received::Gone(e.to_string()),
        }
    }

    /// Sends what was asked; `Err`: the connection is gone, and nothing of it has left.
    #[inline]
    pub fn send<P: Dialect>(&mut self, i: Token, connection: &mut Connection<P>, bytes: &[u8]) -> Result<(), String> {
        if connection.conversation.is_plain() {
            return self.send_raw(i, connection, bytes);
        }
        let mut wire = Vec::new();
        connection.conversation.seal(bytes, &mut wire).map_err(|e| e.to_string())?;
        self.send_raw(i, connection, &wire)
    }

    /// Sends socket bytes; keeps what the socket does not take.
    #[inline]
    pub fn send_raw<P: Dialect>(
        &mut self,
        i: Token,
        connection: &mut Connection<P>,
        bytes: &[u8],
    ) -> Result<(), String> {
        if bytes.is_empty() {
            return Ok(());
        }
        if !connection.unsent.is_empty() {
            connection.unsent.extend_from_slice(bytes);
            connection.conversation.mark_sent();
            return Ok(());
        }
        let n = self.driver.send(i, bytes).map_err(|e| e.to_string())?;
        connection.conversation.mark_sent();
        if n < bytes.len() {
            connection.unsent.extend_from_slice(&bytes[n..]);
            self.driver.watch_writable(i, true).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// The socket takes bytes again.
    pub fn flush<P: Dialect>(&mut self, i: Token, connection: &mut Connection<P>) -> Result<(), String> {
        let n = self.driver.send(i, &connection.unsent[connection.taken..]).map_err(|e| e.to_string())?;
        connection.taken += n;
        let all = connection.taken == connection.unsent.len();
        if all {
            connection.unsent = Vec::new();
            connection.taken = 0;
        }
        // Edge-triggered: asking again makes the driver look again.
        self.driver.watch_writable(i, !all).map_err(|e| e.to_string())
    }
}

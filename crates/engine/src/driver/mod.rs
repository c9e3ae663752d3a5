//! Sockets and time behind one small trait, so that the same clients run on epoll, on io_uring, on the portable `polling`
//! library, and on a simulator with virtual time.

#[cfg(target_os = "linux")]
pub mod epoll;
pub mod portable;
pub mod sim;
mod socket;
#[cfg(target_os = "linux")]
pub mod uring;

use pgdyno_base::Nanos;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Names a connection: the number of its client within the worker.
pub type Token = usize;

/// Resolved address to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix-domain socket.
    Unix(PathBuf),
    /// TCP.
    Tcp(SocketAddr),
}

/// A connection can be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which connection.
    pub token: Token,
    /// Something arrived, or the peer closed.
    pub readable: bool,
    /// It can take bytes, or the attempt to connect is over.
    pub writable: bool,
    /// The peer may have closed: read to the end, no further event will tell. What arrives together with the end (a
    /// FATAL error) makes one event with it.
    pub closed: bool,
}

/// Interface between a worker and the outside world. Events are edge-triggered: after an event, read until fewer bytes
/// arrive than requested.
pub trait Driver {
    /// Returns the name of the mechanism that waits for events.
    fn name(&self) -> &'static str;
    /// Time since an origin that all drivers of a run share.
    fn now(&mut self) -> Nanos;
    /// CPU time that this thread has used.
    fn cpu_time(&mut self) -> Nanos;
    /// Time that this thread was ready to run and waited for a CPU, where the system tells: the client's own machine was
    /// too busy for it.
    fn run_delay(&mut self) -> Nanos {
        Nanos::ZERO
    }
    /// Begins to connect; a writable event tells that it is over, [`Driver::connected`] how.
    fn connect(&mut self, token: Token, address: &Address) -> io::Result<()>;
    /// The result of connecting; from here on only readable events are reported.
    fn connected(&mut self, token: Token) -> io::Result<()>;
    /// Sends what the socket takes; `WouldBlock` counts as zero bytes.
    fn send(&mut self, token: Token, bytes: &[u8]) -> io::Result<usize>;
    /// Receives what is there; `None` when nothing is, `Some(0)` when the peer has closed.
    fn recv(&mut self, token: Token, buf: &mut [u8]) -> io::Result<Option<usize>>;
    /// Turns writable events on or off.
    fn watch_writable(&mut self, token: Token, on: bool) -> io::Result<()>;
    /// Closes the connection, if there is one.
    fn close(&mut self, token: Token);
    /// Waits until something happens or `until` has come; appends to `events`. `now` is a time read just before.
    fn wait(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()>;
}

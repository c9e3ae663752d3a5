//! The `polling` library: kqueue on macOS and the BSDs, epoll on Linux. Slower than [`super::epoll`] by the timer and
//! wake-up descriptors that it re-arms at each wait; measured in `benches/`, and the reason why both are here.

use super::{Address, Driver, Event, Token, socket};
use pgdyno_base::Nanos;
use polling::{PollMode, Poller};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use std::io;
use std::time::{Duration, Instant};

/// The portable driver.
pub struct Portable {
    clock: socket::Clock,
    poller: Poller,
    sockets: Vec<Option<OwnedFd>>,
    ready: polling::Events,
    mode: PollMode,
}

impl Portable {
    /// A driver whose time counts from `origin`. Call it on the thread that will use it.
    pub fn new(origin: Instant) -> io::Result<Portable> {
        let poller = Poller::new()?;
        let mode = if poller.supports_edge() { PollMode::Edge } else { PollMode::Level };
        Ok(Portable {
            clock: socket::Clock::new(origin),
            poller,
            sockets: Vec::new(),
            ready: polling::Events::new(),
            mode,
        })
    }

    fn socket(&self, token: Token) -> io::Result<&OwnedFd> {
        self.sockets.get(token).and_then(Option::as_ref).ok_or_else(socket::missing)
    }

    fn interest(token: Token, writable: bool) -> polling::Event {
        if writable { polling::Event::all(token) } else { polling::Event::readable(token) }
    }
}

impl Driver for Portable {
    fn name(&self) -> &'static str {
        "polling"
    }

    fn now(&mut self) -> Nanos {
        self.clock.now()
    }

    fn cpu_time(&mut self) -> Nanos {
        self.clock.cpu_time()
    }

    fn run_delay(&mut self) -> Nanos {
        self.clock.run_delay()
    }

    fn connect(&mut self, token: Token, address: &Address) -> io::Result<()> {
        let fd = socket::connect(address)?;
        // SAFETY: the poller must not outlive a registered descriptor's registration: `close`, the only place where a
        // descriptor is dropped before the poller itself, deletes it from the poller first, and struct fields drop in
        // order of declaration, the poller before the sockets.
        unsafe { self.poller.add_with_mode(fd.as_raw_fd(), Self::interest(token, true), self.mode)? };
        if self.sockets.len() <= token {
            self.sockets.resize_with(token + 1, || None);
        }
        self.close(token);
        self.sockets[token] = Some(fd);
        Ok(())
    }

    fn connected(&mut self, token: Token) -> io::Result<()> {
        socket::connected(self.socket(token)?)?;
        self.watch_writable(token, false)
    }

    fn send(&mut self, token: Token, bytes: &[u8]) -> io::Result<usize> {
        socket::send(self.socket(token)?, bytes)
    }

    fn recv(&mut self, token: Token, buf: &mut [u8]) -> io::Result<Option<usize>> {
        socket::recv(self.socket(token)?, buf)
    }

    fn watch_writable(&mut self, token: Token, on: bool) -> io::Result<()> {
        self.poller.modify_with_mode(self.socket(token)?.as_fd(), Self::interest(token, on), self.mode)
    }

    fn close(&mut self, token: Token) {
        if let Some(fd) = self.sockets.get_mut(token).and_then(Option::take) {
            let _ = self.poller.delete(fd.as_fd());
        }
    }

    fn wait(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let span: Duration = (until - now).into();
        self.ready.clear();
        self.poller.wait(&mut self.ready, Some(span))?;
        events.extend(self.ready.iter().map(|e| {
            let hung_up = e.is_interrupt() || e.is_err().unwrap_or(false);
            // The library does not tell a half-closed connection from one with data, so every event may be the last.
            Event { token: e.key, readable: e.readable || hung_up, writable: e.writable || hung_up, closed: true }
        }));
        Ok(())
    }
}

impl Drop for Portable {
    fn drop(&mut self) {
        (0..self.sockets.len()).for_each(|token| self.close(token));
    }
}

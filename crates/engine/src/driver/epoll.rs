//! Linux epoll, edge-triggered: one `epoll_wait`, one `recv` and one `send` a statement, and nothing else.

use super::{Address, Driver, Event, Token, socket};
use pgdyno_base::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::time::Instant;

const MILLISECOND: Nanos = Nanos::from_millis(1);

/// Events taken at a time.
const BATCH: usize = 256;

/// The epoll driver.
pub struct Epoll {
    clock: socket::Clock,
    epoll: OwnedFd,
    sockets: Vec<Option<OwnedFd>>,
    ready: Vec<epoll::Event>,
}

impl Epoll {
    /// A driver whose time counts from `origin`. Call it on the thread that will use it.
    pub fn new(origin: Instant) -> io::Result<Epoll> {
        Ok(Epoll {
            clock: socket::Clock::new(origin),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            sockets: Vec::new(),
            ready: Vec::with_capacity(BATCH),
        })
    }

    #[inline]
    fn socket(&self, token: Token) -> io::Result<&OwnedFd> {
        self.sockets.get(token).and_then(Option::as_ref).ok_or_else(socket::missing)
    }

    fn interest(writable: bool) -> epoll::EventFlags {
        let base = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        if writable { base | epoll::EventFlags::OUT } else { base }
    }
}

impl Driver for Epoll {
    fn name(&self) -> &'static str {
        "epoll"
    }

    #[inline]
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
        epoll::add(&self.epoll, &fd, epoll::EventData::new_u64(token as u64), Self::interest(true))?;
        if self.sockets.len() <= token {
            self.sockets.resize_with(token + 1, || None);
        }
        self.sockets[token] = Some(fd);
        Ok(())
    }

    fn connected(&mut self, token: Token) -> io::Result<()> {
        socket::connected(self.socket(token)?)?;
        self.watch_writable(token, false)
    }

    #[inline]
    fn send(&mut self, token: Token, bytes: &[u8]) -> io::Result<usize> {
        socket::send(self.socket(token)?, bytes)
    }

    #[inline]
    fn recv(&mut self, token: Token, buf: &mut [u8]) -> io::Result<Option<usize>> {
        socket::recv(self.socket(token)?, buf)
    }

    fn watch_writable(&mut self, token: Token, on: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token as u64);
        Ok(epoll::modify(&self.epoll, self.socket(token)?, data, Self::interest(on))?)
    }

    fn close(&mut self, token: Token) {
        // Closing takes the socket out of the epoll set: nobody else holds a copy of the descriptor.
        if let Some(slot) = self.sockets.get_mut(token) {
            *slot = None;
        }
    }

    fn wait(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let mut span = until - now;
        if Nanos::ZERO < span && span < MILLISECOND {
            // epoll_wait counts in milliseconds, which is too coarse for a schedule; ppoll on the set itself does not.
            let timeout = Timespec { tv_sec: 0, tv_nsec: span.0 as _ };
            match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => span = Nanos::ZERO,
                Err(e) => return Err(e.into()),
            }
        }
        // Rounded down: what is left is waited for the next time.
        let span = Nanos(span.0 - span.0 % MILLISECOND.0);
        let timeout = Timespec { tv_sec: (span.0 / 1_000_000_000) as i64, tv_nsec: (span.0 % 1_000_000_000) as _ };
        self.ready.clear();
        let waited = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.ready), Some(&timeout));
        match waited {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let closed = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let readable =
            epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let writable = epoll::EventFlags::OUT | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        events.extend(self.ready.iter().map(|e| {
            let flags = e.flags;
            Event {
                token: e.data.u64() as Token,
                readable: flags.intersects(readable),
                writable: flags.intersects(writable),
                closed: flags.intersects(closed),
            }
        }));
        Ok(())
    }
}

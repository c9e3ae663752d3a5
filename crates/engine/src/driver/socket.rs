//! Non-blocking sockets, for both real drivers.

use super::Address;
use pgdyno_base::Nanos;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustix::time::ClockId;
use std::io;
use std::time::Instant;

/// A socket that has begun to connect to `address`.
pub fn connect(address: &Address) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (fd, begun) = match address {
        Address::Unix(path) => {
            let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            let begun = net::connect(&fd, &SocketAddrUnix::new(path)?);
            (fd, begun)
        }
        Address::Tcp(addr) => {
            let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let fd = net::socket_with(family, SocketType::STREAM, flags, None)?;
            sockopt::set_tcp_nodelay(&fd, true)?;
            sockopt::set_socket_keepalive(&fd, true)?;
            let begun = net::connect(&fd, addr);
            (fd, begun)
        }
    };
    match begun {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(e) => Err(e.into()),
    }
}

/// Returns `Ok` if connecting has succeeded, otherwise the error of the socket.
pub fn connected(fd: &OwnedFd) -> io::Result<()> {
    sockopt::socket_error(fd)?.map_err(io::Error::from)
}

/// Sends what the socket takes.
#[inline]
pub fn send(fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match net::send(fd, bytes, net::SendFlags::NOSIGNAL) {
            Ok(n) => return Ok(n),
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Receives what is there.
#[inline]
pub fn recv(fd: &OwnedFd, buf: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match net::recv(fd, &mut *buf, net::RecvFlags::empty()) {
            Ok((n, _)) => return Ok(Some(n)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// The clock of the real drivers.
#[derive(Debug)]
pub struct Clock {
    /// Reading of the monotonic clock at time zero, nanoseconds.
    zero: u64,
    /// The scheduler's figures of this thread, where the system has them.
    schedstat: Option<std::fs::File>,
}

impl Clock {
    /// Counts from `origin`.
    pub fn new(origin: Instant) -> Clock {
        // Timers of this thread fire when asked, not up to 50 µs later: an open loop's schedule depends on it.
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let zero = nanoseconds(ClockId::Monotonic) - Nanos::from(origin.elapsed()).0;
        Clock { zero, schedstat: std::fs::File::open("/proc/thread-self/schedstat").ok() }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Nanos {
        Nanos(nanoseconds(ClockId::Monotonic).saturating_sub(self.zero))
    }

    /// The CPU time of the calling thread.
    pub fn cpu_time(&self) -> Nanos {
        Nanos(nanoseconds(ClockId::ThreadCPUTime))
    }

    /// Returns the time that the calling thread was ready to run but waited for a CPU. Returns zero if the system does
    /// not provide it.
    pub fn run_delay(&self) -> Nanos {
        use std::os::unix::fs::FileExt;
        let mut buffer = [0; 96];
        let read = self.schedstat.as_ref().and_then(|f| f.read_at(&mut buffer, 0).ok()).unwrap_or(0);
        // Nanoseconds on a CPU, nanoseconds waiting for one, time slices.
        let text = std::str::from_utf8(&buffer[..read]).unwrap_or_default();
        Nanos(text.split_ascii_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0))
    }
}

/// Returns the reading of a clock, nanoseconds. The monotonic clock is the clock of `Instant`; the arithmetic of
/// `Instant` costs more than the call.
#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    let t = rustix::time::clock_gettime(clock);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// No such connection: a mistake of the caller's, but not one to die of.
pub fn missing() -> io::Error {
    io::Error::from(io::ErrorKind::NotConnected)
}

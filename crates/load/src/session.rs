//! A blocking session: for administrative commands and COPY, where one connection does one thing after the other.

use crate::error::LoadError;
use pgdyno_wire::backend::{self, ServerError, next_message, tag};
use pgdyno_wire::handshake::Attempt;
use pgdyno_wire::tls::Link;
use pgdyno_wire::{Config, Endpoint, Handshake, Progress, WireError, frontend};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a session that waits looks whether it shall stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long a cancelled command may take to end; then the connection is dropped, and the server rolls back.
const GRACE: Duration = Duration::from_secs(5);

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn open(endpoint: &Endpoint, timeout: Duration) -> std::io::Result<Stream> {
        let stream = match endpoint {
            Endpoint::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            Endpoint::Tcp { addresses, .. } => {
                let mut last = std::io::Error::new(ErrorKind::NotFound, "the host has no address");
                let mut open = None;
                for address in addresses {
                    match TcpStream::connect_timeout(address, timeout) {
                        Ok(s) => {
                            open = Some(s);
                            break;
                        }
                        Err(e) => last = e,
                    }
                }
                let s = open.ok_or(last)?;
                s.set_nodelay(true)?;
                // A command may take hours without a byte; a peer that is gone must be found all the same.
                rustix::net::sockopt::set_socket_keepalive(&s, true)?;
                Stream::Tcp(s)
            }
        };
        stream.set_timeouts(timeout)?;
        Ok(stream)
    }

    fn set_timeouts(&self, timeout: Duration) -> std::io::Result<()> {
        match self {
            Stream::Unix(s) => s.set_read_timeout(Some(timeout)).and_then(|()| s.set_write_timeout(Some(timeout))),
            Stream::Tcp(s) => s.set_read_timeout(Some(timeout)).and_then(|()| s.set_write_timeout(Some(timeout))),
        }
    }

    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = match self {
                Stream::Unix(s) => s.read(buf),
                Stream::Tcp(s) => s.read(buf),
            };
            match read {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Stream::Unix(s) => s.write(bytes),
            Stream::Tcp(s) => s.write(bytes),
        }
    }

    /// For what is small and sent once: a time-out is a failure.
    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Stream::Unix(s) => s.write_all(bytes),
            Stream::Tcp(s) => s.write_all(bytes),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(s) => s.as_fd(),
            Stream::Tcp(s) => s.as_fd(),
        }
    }
}

/// An established session.
pub struct Session {
    stream: Stream,
    link: Link,
    input: Vec<u8>,
    endpoint: Endpoint,
    /// Process id and secret, for a cancel request.
    backend: (u32, Vec<u8>),
    /// Set by another thread: what the server is doing is cancelled.
    interrupt: Arc<AtomicBool>,
    /// When the command at hand was cancelled.
    cancelled: Option<Instant>,
}

impl Session {
    /// Connects; everything up to the first ReadyForQuery must happen within `timeout`. When `interrupt` becomes true,
    /// the command at hand is cancelled and fails as [`LoadError::Interrupted`].
    pub fn connect(config: &Arc<Config>, timeout: Duration, interrupt: &Arc<AtomicBool>) -> Result<Session, LoadError> {
        let mut last = None;
        for attempt in Attempt::of(config) {
            match Self::attempt(config, *attempt, timeout, interrupt) {
                Ok(session) => return Ok(session),
                Err(e) => last = Some(e),
            }
        }
        Err(last.unwrap_or(LoadError::Interrupted))
    }

    fn attempt(
        config: &Arc<Config>,
        attempt: Attempt,
        timeout: Duration,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Session, LoadError> {
        let cannot = |reason: String| LoadError::Connect { endpoint: config.endpoint.to_string(), reason };
        let mut stream = Stream::open(&config.endpoint, timeout).map_err(|e| cannot(e.to_string()))?;
        let mut out = Vec::new();
        let mut handshake = Handshake::start(config.clone(), attempt, &mut out);
        let mut buf = vec![0; 16 * 1024];
        loop {
            stream.write_all(&out).map_err(|e| cannot(e.to_string()))?;
            out.clear();
            let n = match stream.read(&mut buf) {
                Ok(0) => return Err(cannot("the server closed the connection before the session began".into())),
                Ok(n) => n,
                Err(e) if is_timeout(&e) => {
                    return Err(cannot(format!("no answer within {} s", timeout.as_secs())));
                }
                Err(e) => return Err(cannot(e.to_string())),
            };
            let progress = handshake.feed(&buf[..n], &mut out);
            if progress.is_err() {
                let _ = stream.write_all(&out);
            }
            if let Progress::Ready(info) = progress.map_err(|e| cannot(e.to_string()))? {
                stream.set_timeouts(LOOK)?;
                let (link, input) = handshake.into_link();
                return Ok(Session {
                    stream,
                    link,
                    input,
                    endpoint: config.endpoint.clone(),
                    backend: (info.process, info.secret),
                    interrupt: interrupt.clone(),
                    cancelled: None,
                });
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), LoadError> {
        if self.link.is_plain() {
            return self.write(bytes);
        }
        let mut wire = Vec::new();
        self.link.seal(bytes, &mut wire)?;
        self.write(&wire)
    }

    /// Writes all, however long the server takes for it; looks up now and then.
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), LoadError> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if is_timeout(&e) => self.look_up()?,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Nothing has happened for a while: shall we stop? Cancels once, and gives up when that does not help.
    fn look_up(&mut self) -> Result<(), LoadError> {
        match self.cancelled {
            None if self.interrupt.load(Ordering::Relaxed) => self.cancel(),
            Some(since) if since.elapsed() > GRACE => return Err(LoadError::Interrupted),
            _ => {}
        }
        Ok(())
    }

    /// The next message: its tag and body.
    fn receive(&mut self) -> Result<(u8, Vec<u8>), LoadError> {
        let mut buf = vec![0; 16 * 1024];
        loop {
            if let Some((message, length)) = next_message(&self.input)? {
                let found = (message.tag, message.body.to_vec());
                self.input.drain(..length);
                return Ok(found);
            }
            let n = match self.stream.read(&mut buf) {
                Ok(n) => n,
                Err(e) if is_timeout(&e) => {
                    self.look_up()?;
                    continue;
                }
                Err(e) => return Err(e.into()),
            };
            if n == 0 {
                return Err(LoadError::Wire("the server closed the connection".into()));
            }
            let mut reply = Vec::new();
            self.link.open(&buf[..n], &mut self.input, &mut reply)?;
            if !reply.is_empty() {
                self.stream.write_all(&reply)?;
            }
        }
    }

    /// Asks the server to give up the command at hand.
    fn cancel(&mut self) {
        self.cancelled = Some(Instant::now());
        if let Ok(mut stream) = Stream::open(&self.endpoint, Duration::from_secs(1)) {
            let mut out = Vec::new();
            frontend::cancel_request(&mut out, self.backend.0, &self.backend.1);
            let _ = stream.write_all(&out);
            // The server closes the connection when it has passed the request on.
            let _ = stream.read(&mut [0; 1]);
        }
    }

    /// Reads up to ReadyForQuery; the first error on the way is the result.
    fn finish(&mut self, doing: &str) -> Result<(), LoadError> {
        let mut error = None;
        loop {
            let (tag, body) = self.receive()?;
            match tag {
                tag::ERROR if error.is_none() => {
                    let e = ServerError::parse(&body);
                    let fatal = matches!(e.severity.as_str(), "FATAL" | "PANIC");
                    error = Some(LoadError::Server { doing: doing.to_owned(), error: Box::new(e) });
                    if fatal {
                        break;
                    }
                }
                tag::READY_FOR_QUERY => {
                    backend::ready_for_query(&body)?;
                    break;
                }
                _ => {}
            }
        }
        match error {
            Some(_) if self.cancelled.is_some() => Err(LoadError::Interrupted),
            Some(e) => Err(e),
            None => Ok(()),
        }
    }

    /// Carries out commands; results are thrown away. `doing` begins the message of an error.
    pub fn execute(&mut self, doing: &str, sql: &str) -> Result<(), LoadError> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(LoadError::Interrupted);
        }
        let mut out = Vec::new();
        frontend::query(&mut out, sql);
        self.send(&out)?;
        self.finish(doing)
    }

    /// COPY FROM STDIN: `fill` appends CopyData messages to the buffer until it returns false.
    pub fn copy_in(
        &mut self,
        doing: &str,
        sql: &str,
        mut fill: impl FnMut(&mut Vec<u8>) -> Result<bool, LoadError>,
    ) -> Result<(), LoadError> {
        let mut out = Vec::new();
        frontend::query(&mut out, sql);
        self.send(&out)?;
        loop {
            let (tag, body) = self.receive()?;
            match tag {
                tag::COPY_IN_RESPONSE => break,
                tag::ERROR => {
                    let error = Box::new(ServerError::parse(&body));
                    // What follows, or that nothing does after a fatal error, is no news.
                    return Err(match self.finish(doing) {
                        Err(LoadError::Interrupted) => LoadError::Interrupted,
                        _ => LoadError::Server { doing: doing.to_owned(), error },
                    });
                }
                tag::READY_FOR_QUERY => {
                    return Err(WireError::Protocol("the server does not take COPY data".into()).into());
                }
                _ => {}
            }
        }
        let mut more = true;
        let mut broken = None;
        while more && broken.is_none() {
            out.clear();
            match fill(&mut out) {
                Ok(m) => more = m,
                Err(e) => {
                    out.clear();
                    frontend::copy_fail(&mut out, "stopped by the client");
                    self.send(&out)?;
                    let _ = self.finish(doing);
                    return Err(e);
                }
            }
            // A server that has failed (a full disk) says so at once and throws the rest away: listen while sending.
            let failed = self.send(&out).err();
            if matches!(failed, Some(LoadError::Interrupted)) {
                return Err(LoadError::Interrupted);
            }
            if failed.is_some() || self.has_failed()? {
                broken = Some(failed);
            }
        }
        if broken.is_none() {
            out.clear();
            frontend::copy_done(&mut out);
            self.send(&out)?;
        } else {
            out.clear();
            frontend::copy_fail(&mut out, "the server has stopped taking data");
            let _ = self.send(&out);
        }
        match (self.finish(doing), broken.flatten()) {
            (Err(LoadError::Wire(_)), Some(cause)) => Err(cause),
            (result, _) => result,
        }
    }

    /// Whether the server has said that it failed. What else it says meanwhile (notices, parameters) is left out.
    fn has_failed(&mut self) -> Result<bool, LoadError> {
        let mut fds = [PollFd::from_borrowed_fd(self.stream.fd(), PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        if !matches!(poll(&mut fds, Some(&now)), Ok(n) if n > 0) {
            return Ok(false);
        }
        let mut buf = vec![0; 16 * 1024];
        let n = match self.stream.read(&mut buf) {
            Ok(0) => return Err(LoadError::Wire("the server closed the connection".into())),
            Ok(n) => n,
            Err(e) if is_timeout(&e) => 0,
            Err(e) => return Err(e.into()),
        };
        let mut reply = Vec::new();
        self.link.open(&buf[..n], &mut self.input, &mut reply)?;
        self.write(&reply)?;
        while let Some((message, length)) = next_message(&self.input)? {
            if message.tag == tag::ERROR {
                return Ok(true);
            }
            self.input.drain(..length);
        }
        Ok(false)
    }
}

fn is_timeout(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut out = Vec::new();
        frontend::terminate(&mut out);
        let _ = self.send(&out);
    }
}

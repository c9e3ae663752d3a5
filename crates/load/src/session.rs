//! A blocking session: for administrative commands and COPY, where one connection does one thing after the other.

use crate::error::LoadError;
use pgdyno_protocol::{
    Attempt, Cancel, Conversation, Dialect, Effect, Endpoint, Event, ProtocolError, QueryMode, Refusal, Sending,
    Statement, Target,
};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a waiting session checks for a request to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Time limit for a cancelled command to end. After that the connection is dropped, and the server rolls back.
const GRACE: Duration = Duration::from_secs(5);

/// Bytes read at a time.
const BUFFER: usize = 16 * 1024;

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

/// Result of a query.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Its rows, values as text.
    pub rows: Vec<Vec<Option<String>>>,
}

/// An established session.
pub struct Session<P: Dialect> {
    stream: Stream,
    conversation: P::Conversation<()>,
    config: Arc<P::Config>,
    /// Received bytes in decrypted form that are still to be examined.
    input: Vec<u8>,
    /// Up to here it was looked at.
    taken: usize,
    /// Process id and secret, for a cancel request; and whether it must be encrypted.
    backend: (u32, Vec<u8>),
    encrypted: bool,
    /// Set by another thread: what the server is doing is cancelled.
    interrupt: Arc<AtomicBool>,
    /// Time at which the current command was cancelled.
    cancelled: Option<Instant>,
    /// It ends without a goodbye: the server waits for data, and would take it for them.
    is_cut: bool,
}

impl<P: Dialect> Session<P> {
    /// Connects; everything up to the first ReadyForQuery must happen within `timeout`. When `interrupt` becomes true,
    /// the command at hand is cancelled and fails as [`LoadError::Interrupted`].
    pub fn connect(
        config: &Arc<P::Config>,
        timeout: Duration,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Session<P>, LoadError> {
        let mut last = None;
        for attempt in config.attempts() {
            match Self::attempt(config, *attempt, timeout, interrupt) {
                Ok(session) => return Ok(session),
                Err(e) => last = Some(e),
            }
        }
        Err(last.unwrap_or(LoadError::Interrupted))
    }

    fn attempt(
        config: &Arc<P::Config>,
        attempt: Attempt,
        timeout: Duration,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Session<P>, LoadError> {
        let cannot =
            |reason: String| LoadError::Connect { endpoint: config.endpoint().to_string(), reason, code: None };
        let refused = |e: ProtocolError| LoadError::Connect {
            endpoint: config.endpoint().to_string(),
            reason: e.to_string(),
            code: match e {
                ProtocolError::Server(e) => e.code,
                _ => None,
            },
        };
        let deadline = Instant::now() + timeout;
        let mut stream = Stream::open(config.endpoint(), timeout).map_err(|e| cannot(e.to_string()))?;
        let mut out = Vec::new();
        let mut conversation =
            P::Conversation::<()>::start(config.clone(), attempt, &mut out).map_err(|e| cannot(e.to_string()))?;
        let (mut buf, mut plain) = (vec![0; BUFFER], Vec::new());
        loop {
            stream.write_all(&out).map_err(|e| cannot(e.to_string()))?;
            out.clear();
            let n = match stream.read(&mut buf) {
                Ok(0) => return Err(cannot("the server closed the connection before the session began".into())),
                Ok(n) if Instant::now() < deadline => n,
                Ok(_) => return Err(cannot(format!("no session within {} s", timeout.as_secs()))),
                Err(e) if is_timeout(&e) => {
                    return Err(cannot(format!("no answer within {} s", timeout.as_secs())));
                }
                Err(e) => return Err(cannot(e.to_string())),
            };
            let opened = conversation.open(&buf[..n], &mut plain, &mut out).map(<[u8]>::to_vec);
            let mut input = Vec::new();
            let event = opened.and_then(|opened| {
                let mut rest = &opened[..];
                let event = conversation.next(&mut rest, &mut out);
                input = rest.to_vec();
                event
            });
            if event.is_err() {
                // An alert that says why.
                let _ = stream.write_all(&out);
            }
            if let Some(Event::Began(info)) = event.map_err(refused)? {
                stream.set_timeouts(LOOK)?;
                return Ok(Session {
                    stream,
                    conversation,
                    config: config.clone(),
                    input,
                    taken: 0,
                    backend: (info.process, info.secret),
                    encrypted: info.encrypted,
                    interrupt: interrupt.clone(),
                    cancelled: None,
                    is_cut: false,
                });
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), LoadError> {
        if self.conversation.is_plain() {
            return self.write(bytes);
        }
        let mut wire = Vec::new();
        self.conversation.seal(bytes, &mut wire)?;
        self.write(&wire)
    }

    /// Writes all, however long the server takes for it; looks up now and then.
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), LoadError> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if is_timeout(&e) => {
                    // The server may be waiting for us as well: that its notices are read.
                    self.take_arrived()?;
                    self.look_up()?;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Shall we stop? Cancels once, and gives up when that does not help.
    fn look_up(&mut self) -> Result<(), LoadError> {
        match self.cancelled {
            None if self.interrupt.load(Ordering::Relaxed) => self.cancel(),
            Some(since) if since.elapsed() > GRACE => return Err(LoadError::Interrupted),
            _ => {}
        }
        Ok(())
    }

    /// The next event of what has arrived.
    fn event(&mut self) -> Result<Option<Event<()>>, LoadError> {
        let mut reply = Vec::new();
        let mut rest = &self.input[self.taken..];
        let event = self.conversation.next(&mut rest, &mut reply);
        self.taken = self.input.len() - rest.len();
        self.write(&reply)?;
        Ok(event?)
    }

    /// Takes what arrived.
    fn arrived(&mut self, wire: &[u8]) -> Result<(), LoadError> {
        let (mut plain, mut reply) = (Vec::new(), Vec::new());
        let opened = self.conversation.open(wire, &mut plain, &mut reply).map(<[u8]>::to_vec);
        self.write(&reply)?;
        self.input.drain(..self.taken);
        self.taken = 0;
        self.input.extend_from_slice(&opened?);
        Ok(())
    }

    /// Waits for the next event.
    fn receive(&mut self) -> Result<Event<()>, LoadError> {
        let mut buf = vec![0; BUFFER];
        loop {
            if let Some(event) = self.event()? {
                return Ok(event);
            }
            // Also where the server never falls silent: notices are no events.
            self.look_up()?;
            match self.stream.read(&mut buf) {
                Ok(0) => return Err(LoadError::Wire("the server closed the connection".into())),
                Ok(n) => self.arrived(&buf[..n])?,
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Asks the server to give up the command at hand.
    fn cancel(&mut self) {
        self.cancelled = Some(Instant::now());
        // What cannot be cancelled is given up when the time of grace is over.
        let _ = self.send_cancel();
    }

    fn send_cancel(&self) -> Result<(), LoadError> {
        let mut stream = Stream::open(self.config.endpoint(), Duration::from_secs(1))?;
        let mut out = Vec::new();
        let (process, secret) = self.backend.clone();
        let (mut cancel, mut done) = P::Cancel::start(self.config.clone(), self.encrypted, process, secret, &mut out)?;
        stream.write_all(&out)?;
        let mut buf = vec![0; BUFFER];
        while !done {
            let n = stream.read(&mut buf)?;
            if n == 0 {
                return Ok(());
            }
            out.clear();
            done = cancel.feed(&buf[..n], &mut out)?;
            stream.write_all(&out)?;
        }
        // The server closes the connection when it has passed the request on; TLS may have said something before.
        while matches!(stream.read(&mut buf), Ok(n) if n > 0) {}
        Ok(())
    }

    /// Begins a request.
    fn query(&mut self, sql: &str) -> Result<(), LoadError> {
        let mut out = Vec::new();
        self.conversation.command((), sql, &mut out);
        self.conversation.mark_sent();
        self.send(&out)
    }

    /// Waits until the request is answered to its end; the first error on the way is the result.
    fn finish(&mut self, doing: &str) -> Result<(), LoadError> {
        let mut error = None;
        loop {
            match self.receive()? {
                Event::Refused(refusal) => {
                    let fatal = refusal.fatal;
                    error.get_or_insert_with(|| refused(doing, *refusal));
                    if fatal {
                        break;
                    }
                }
                Event::Synchronised(()) => break,
                Event::CopyIn(()) => {
                    let mut out = Vec::new();
                    if !self.conversation.refuse_data("no data is copied here", &mut out) {
                        self.is_cut = true;
                        return Err(ProtocolError::Protocol("the server waits for data here".into()).into());
                    }
                    self.send(&out)?;
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
        self.query(sql)?;
        self.finish(doing)
    }

    /// Returns the columns and rows of a query, values as text; `None` is NULL.
    pub fn rows(&mut self, doing: &str, sql: &str) -> Result<Rows, LoadError> {
        let mut out = Vec::new();
        let (effect, label) = (Effect::STATEMENT, ());
        let statement =
            Statement { command: 0, slot: 0, name: "", text: sql, parameters: 0, effect, reads: true, names: true };
        let mode = QueryMode::Simple;
        let sending = Sending { mode, prepare: false, in_pipeline: false, part: label, result: label, end: label };
        let whole = |o: &mut Vec<u8>| o.extend_from_slice(sql.as_bytes());
        self.conversation.statement(&statement, &sending, &mut out, whole, |_, _| pgdyno_protocol::Given::Null);
        self.conversation.mark_sent();
        self.send(&out)?;
        let (mut found, mut error) = (Rows::default(), None);
        loop {
            match self.receive()? {
                Event::Columns((), names) => found.columns = names,
                Event::Row(()) => {
                    let text = |v: &[u8]| String::from_utf8_lossy(v).into_owned();
                    found.rows.push(self.conversation.row()?.map(|v| v.map(text)).collect());
                }
                Event::Refused(refusal) => {
                    let fatal = refusal.fatal;
                    error.get_or_insert_with(|| refused(doing, *refusal));
                    if fatal {
                        break;
                    }
                }
                Event::Synchronised(()) => break,
                _ => {}
            }
        }
        error.map_or(Ok(found), Err)
    }

    /// Takes what has arrived, without waiting for more; a flood of notices is taken in parts.
    fn take_arrived(&mut self) -> Result<(), LoadError> {
        const AT_MOST: usize = 64;
        let mut buf = vec![0; BUFFER];
        for _ in 0..AT_MOST {
            let mut fds = [PollFd::from_borrowed_fd(self.stream.fd(), PollFlags::IN)];
            let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
            if !matches!(poll(&mut fds, Some(&now)), Ok(n) if n > 0) {
                return Ok(());
            }
            match self.stream.read(&mut buf) {
                Ok(0) => return Err(LoadError::Wire("the server closed the connection".into())),
                Ok(n) => self.arrived(&buf[..n])?,
                Err(e) if is_timeout(&e) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Returns the server's error for the current command if it has arrived, without waiting for it.
    fn refusal(&mut self) -> Result<Option<Refusal<()>>, LoadError> {
        self.take_arrived()?;
        while let Some(event) = self.event()? {
            if let Event::Refused(refusal) = event {
                return Ok(Some(*refusal));
            }
        }
        Ok(None)
    }
}

impl<P: Dialect> Session<P> {
    /// Sends the data of a load, as `sql` asks for it: `fill` writes them by `Conversation::data` until it returns false.
    pub fn copy_in(
        &mut self,
        doing: &str,
        sql: &str,
        mut fill: impl FnMut(&mut P::Conversation<()>, &mut Vec<u8>) -> Result<bool, LoadError>,
    ) -> Result<(), LoadError> {
        self.query(sql)?;
        loop {
            match self.receive()? {
                Event::CopyIn(()) => break,
                Event::Refused(refusal) => {
                    let error = refused(doing, *refusal);
                    // What follows, or that nothing does after a fatal error, is no news.
                    let _ = self.finish(doing);
                    return Err(if self.cancelled.is_some() { LoadError::Interrupted } else { error });
                }
                Event::Synchronised(()) => {
                    return Err(ProtocolError::Protocol("the server does not take data".into()).into());
                }
                _ => {}
            }
        }
        let mut out = Vec::new();
        let mut more = true;
        let mut broken = None;
        while more && broken.is_none() {
            out.clear();
            match fill(&mut self.conversation, &mut out) {
                Ok(m) => more = m,
                Err(e) => {
                    out.clear();
                    if self.conversation.refuse_data("stopped by the client", &mut out) {
                        self.send(&out)?;
                        let _ = self.finish(doing);
                    } else {
                        self.is_cut = true;
                    }
                    return Err(e);
                }
            }
            // A server that has failed (a full disk) says so at once and throws the rest away: listen while sending.
            let failed = self.send(&out).err();
            if matches!(failed, Some(LoadError::Interrupted)) {
                return Err(LoadError::Interrupted);
            }
            match (failed, self.refusal()?) {
                (failed, Some(refusal)) => broken = Some((failed, Some(refused(doing, refusal)))),
                (Some(failed), None) => broken = Some((Some(failed), None)),
                (None, None) => {}
            }
        }
        out.clear();
        if broken.is_none() {
            self.conversation.end_data(&mut out);
            self.send(&out)?;
        } else {
            self.is_cut = !self.conversation.refuse_data("the server has stopped taking data", &mut out);
            if !self.is_cut {
                let _ = self.send(&out);
            }
        }
        let lost = || LoadError::Wire("the connection was given up".into());
        let finished = if self.is_cut { Err(lost()) } else { self.finish(doing) };
        match broken {
            None => finished,
            // The server's own words say most; else what is said at the end, and why sending failed.
            Some((_, Some(_))) if self.cancelled.is_some() => Err(LoadError::Interrupted),
            Some((_, Some(refused))) => Err(refused),
            Some((Some(cause), None)) => match finished {
                Err(LoadError::Wire(_)) => Err(cause),
                result => result,
            },
            Some((None, None)) => finished,
        }
    }
}

fn refused(doing: &str, refusal: Refusal<()>) -> LoadError {
    LoadError::Server { doing: doing.to_owned(), error: Box::new(refusal.error) }
}

fn is_timeout(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl<P: Dialect> Drop for Session<P> {
    fn drop(&mut self) {
        if self.is_cut {
            return;
        }
        let (mut out, mut wire) = (Vec::new(), Vec::new());
        self.conversation.goodbye(&mut out);
        // Once: a server that reads no more, and will not fall silent, would keep us for ever.
        if self.conversation.is_plain() {
            let _ = self.stream.write(&out);
        } else if self.conversation.seal(&out, &mut wire).is_ok() {
            let _ = self.stream.write(&wire);
        }
    }
}

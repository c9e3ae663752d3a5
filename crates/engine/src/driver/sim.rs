//! A world with virtual time: connections lead to scripted servers whose latencies are known exactly, nothing else takes
//! any time, and the same seed gives the same run.

use super::{Address, Driver, Event, Token};
use crate::stub::{Request, StubSession, error_response};
use pgdyno_base::{Nanos, Prng};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

/// Behaviour of the simulated server. All fields can be set freely.
pub struct SimServer {
    /// Latency of statements. Arguments: connection, number of the request on this server, time of its arrival.
    pub latency: Box<dyn FnMut(Token, u64, Nanos) -> Nanos + Send>,
    /// The answer to some requests is an error instead: its SQLSTATE.
    pub fail: Box<dyn FnMut(Token, u64) -> Option<&'static str> + Send>,
    /// Times when the server dies, and when it takes connections again. All connections are cut.
    pub outages: Vec<(Nanos, Nanos)>,
    /// Accepts connections and never answers.
    pub mute: bool,
    /// Cuts what it sends into random pieces.
    pub fragment: Option<Prng>,
    /// Sockets take only a part of what is written, now and then.
    pub short_writes: Option<Prng>,
    /// Parameters, notifications and notices come between its messages.
    pub chatter: Option<Prng>,
    /// Each part of a pipeline is refused at its first statement, before the rest of it has come.
    pub early_error: Option<&'static str>,
    /// The answer to some requests breaks the protocol.
    pub distort: Box<dyn FnMut(Token, u64) -> Option<Distortion> + Send>,
}

/// Protocol violation in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distortion {
    /// A ReadyForQuery too many.
    SurplusReady,
    /// A CommandComplete too many.
    SurplusResult,
    /// ReadyForQuery, and nothing before it.
    OnlyReady,
    /// A thousand times ReadyForQuery.
    Flood,
    /// The first message is missing.
    MissingFirst,
    /// The last message, ReadyForQuery, is missing.
    MissingReady,
}

impl Default for SimServer {
    fn default() -> SimServer {
        SimServer {
            latency: Box::new(|_, _, _| Nanos::from_millis(1)),
            fail: Box::new(|_, _| None),
            outages: Vec::new(),
            mute: false,
            fragment: None,
            short_writes: None,
            chatter: None,
            early_error: None,
            distort: Box::new(|_, _| None),
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Connected,
    Refused,
    Arrives(Vec<u8>),
    /// The socket takes bytes again.
    Writable,
    Cut,
}

/// Scheduled event: time, sequence number among all scheduled events, connection, generation of the connection, event.
type Scheduled = (Nanos, u64, Token, u64, Happening);

#[derive(Default)]
struct Connection {
    session: StubSession,
    /// Told apart from earlier connections of the same token.
    generation: u64,
    open: bool,
    refused: bool,
    inbox: Vec<u8>,
    closed_by_peer: bool,
    /// Time at which the server is free again. It answers the requests of a connection one after the other.
    free_at: Nanos,
}

/// The simulator.
pub struct Sim {
    now: Nanos,
    server: SimServer,
    connections: Vec<Connection>,
    queue: BinaryHeap<Reverse<Scheduled>>,
    sequence: u64,
    requests: u64,
    /// Cancel requests that arrived.
    pub cancels: Vec<u32>,
}

impl Sim {
    /// A world with this server, at time zero.
    pub fn new(server: SimServer) -> Sim {
        Sim {
            now: Nanos::ZERO,
            server,
            connections: Vec::new(),
            queue: BinaryHeap::new(),
            sequence: 0,
            requests: 0,
            cancels: Vec::new(),
        }
    }

    fn schedule(&mut self, at: Nanos, token: Token, what: Happening) {
        self.sequence += 1;
        let generation = self.connections[token].generation;
        self.queue.push(Reverse((at, self.sequence, token, generation, what)));
    }

    fn is_down(&self, at: Nanos) -> bool {
        self.server.outages.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    fn deliver(&mut self, at: Nanos, token: Token, bytes: Vec<u8>) {
        // An answer that the server would have sent while it is down is never sent.
        if self.is_down(at) {
            return;
        }
        match &mut self.server.fragment {
            None => self.schedule(at, token, Happening::Arrives(bytes)),
            Some(rng) => {
                let mut cuts: Vec<usize> = (0..3).map(|_| rng.range_u64(0, bytes.len() as u64) as usize).collect();
                cuts.extend([0, bytes.len()]);
                cuts.sort_unstable();
                let pieces: Vec<Vec<u8>> =
                    cuts.windows(2).filter(|w| w[0] < w[1]).map(|w| bytes[w[0]..w[1]].to_vec()).collect();
                for piece in pieces {
                    self.schedule(at, token, Happening::Arrives(piece));
                }
            }
        }
    }

    fn happen(&mut self, token: Token, what: Happening) -> Event {
        let c = &mut self.connections[token];
        let mut event = Event { token, readable: true, writable: false, closed: false };
        match what {
            Happening::Connected => event = Event { token, readable: false, writable: true, closed: false },
            Happening::Refused => {
                c.refused = true;
                event = Event { token, readable: true, writable: true, closed: true };
            }
            Happening::Arrives(bytes) => c.inbox.extend(bytes),
            Happening::Writable => event = Event { token, readable: false, writable: true, closed: false },
            Happening::Cut => {
                c.closed_by_peer = true;
                event.closed = true;
            }
        }
        event
    }
}

/// Whole messages, one by one.
fn messages(bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while let Some(header) = rest.first_chunk::<5>() {
        let length = 1 + u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let (message, behind) = rest.split_at(length.min(rest.len()));
        found.push(message);
        rest = behind;
    }
    found
}

/// A ReadyForQuery outside a transaction.
const READY: &[u8] = b"Z\0\0\0\x05I";

fn distorted(bytes: &[u8], how: Distortion) -> Vec<u8> {
    let parts = messages(bytes);
    match how {
        Distortion::SurplusReady => [bytes, READY].concat(),
        Distortion::SurplusResult => [b"C\0\0\0\x0dSELECT 1\0", bytes].concat(),
        Distortion::OnlyReady => READY.to_vec(),
        Distortion::Flood => READY.repeat(1000),
        Distortion::MissingFirst => parts[1..].concat(),
        Distortion::MissingReady => parts[..parts.len() - 1].concat(),
    }
}

/// Returns `bytes` with ParameterStatus, NotificationResponse and NoticeResponse messages inserted at random between
/// its messages.
fn chattered(bytes: &[u8], rng: &mut Prng) -> Vec<u8> {
    const SAID: [&[u8]; 3] = [b"S\0\0\0\x11TimeZone\0UTC\0", b"A\0\0\0\x0c\0\0\0\x07ch\0\0", b"N\0\0\0\x0bMhello\0\0"];
    let mut out = Vec::new();
    for message in messages(bytes) {
        for _ in 0..rng.range_u64(0, 3) {
            out.extend_from_slice(SAID[rng.range_u64(0, 2) as usize]);
        }
        out.extend_from_slice(message);
    }
    out
}

impl Driver for Sim {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn now(&mut self) -> Nanos {
        self.now
    }

    fn cpu_time(&mut self) -> Nanos {
        Nanos::ZERO
    }

    fn connect(&mut self, token: Token, _address: &Address) -> io::Result<()> {
        while self.connections.len() <= token {
            self.connections.push(Connection::default());
        }
        let generation = self.connections[token].generation + 1;
        let mut session = StubSession::new(token as u32 + 1);
        session.early_error = self.server.early_error;
        self.connections[token] = Connection { session, generation, open: true, ..Connection::default() };
        let what = if self.is_down(self.now) { Happening::Refused } else { Happening::Connected };
        self.schedule(self.now, token, what);
        // The next outage will cut this connection.
        let next = self.server.outages.iter().map(|(from, _)| *from).filter(|from| *from >= self.now).min();
        if let Some(from) = next {
            self.schedule(from, token, Happening::Cut);
        }
        Ok(())
    }

    fn connected(&mut self, token: Token) -> io::Result<()> {
        if self.connections[token].refused { Err(io::ErrorKind::ConnectionRefused.into()) } else { Ok(()) }
    }

    fn send(&mut self, token: Token, bytes: &[u8]) -> io::Result<usize> {
        let now = self.now;
        if self.connections[token].closed_by_peer {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut bytes = bytes;
        if let Some(rng) = &mut self.server.short_writes {
            if bytes.len() > 1 && rng.range_u64(0, 3) == 0 {
                bytes = &bytes[..rng.range_u64(0, bytes.len() as u64 - 1) as usize];
                self.schedule(now + Nanos(1000), token, Happening::Writable);
            }
        }
        for reply in self.connections[token].session.feed(bytes) {
            if self.server.mute {
                continue;
            }
            match reply.request {
                Request::Startup => self.deliver(now, token, reply.bytes),
                Request::Terminate => {}
                Request::Cancel(process) => {
                    self.cancels.push(process);
                    // As a server does that has passed it on.
                    self.schedule(now, token, Happening::Cut);
                }
                Request::Statements => {
                    self.requests += 1;
                    let latency = (self.server.latency)(token, self.requests, now);
                    let begin = now.max(self.connections[token].free_at);
                    self.connections[token].free_at = begin + latency;
                    let bytes = match (self.server.fail)(token, self.requests) {
                        None => reply.bytes,
                        Some(code) => {
                            let mut bytes = error_response("ERROR", code, "as the script of the simulation says");
                            // ReadyForQuery stays.
                            bytes.extend_from_slice(&reply.bytes[reply.bytes.len() - 6..]);
                            bytes
                        }
                    };
                    let distortion = (self.server.distort)(token, self.requests);
                    let bytes = distortion.map_or_else(|| bytes.clone(), |d| distorted(&bytes, d));
                    let bytes = match &mut self.server.chatter {
                        Some(rng) => chattered(&bytes, rng),
                        None => bytes,
                    };
                    self.deliver(begin + latency, token, bytes);
                }
            }
        }
        Ok(bytes.len())
    }

    fn recv(&mut self, token: Token, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let c = &mut self.connections[token];
        if !c.open {
            return Err(super::socket::missing());
        }
        if c.inbox.is_empty() {
            return Ok(if c.closed_by_peer { Some(0) } else { None });
        }
        let n = c.inbox.len().min(buf.len());
        buf[..n].copy_from_slice(&c.inbox[..n]);
        c.inbox.drain(..n);
        Ok(Some(n))
    }

    fn watch_writable(&mut self, _token: Token, _on: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, token: Token) {
        if let Some(c) = self.connections.get_mut(token) {
            c.open = false;
            c.generation += 1;
        }
    }

    fn wait(&mut self, _now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        // Everything that happens at the next instant happens in one wait, as it may in the real world.
        let mut instant = None;
        while let Some(Reverse((at, ..))) = self.queue.peek() {
            if *at > until || instant.is_some_and(|t| t != *at) {
                break;
            }
            let Some(Reverse((at, _, token, generation, what))) = self.queue.pop() else { break };
            if self.connections[token].generation != generation {
                continue;
            }
            self.now = self.now.max(at);
            instant = Some(at);
            let event = self.happen(token, what);
            events.push(event);
        }
        if instant.is_none() {
            self.now = self.now.max(until);
        }
        Ok(())
    }
}

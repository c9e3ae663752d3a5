//! One client: a connection and what it is doing.
//!
//! ```text
//!            connect            socket ready           ReadyForQuery
//!  Offline ----------> Connecting ----------> Handshaking ----------> Idle
//!     ^  ^                 |                       |                   | a transaction is due
//!     |  +---- refused, timed out: back-off -------+                   v
//!     |                                                   +------> (script) ------> Sleeping
//!     |                                                   |       sends |  ^  \sleep    |
//!     |                                    answer is there|             v  |            |
//!     +---- connection lost, from anywhere                +---------- Busy +------------+
//!                                                                       | error inside a block
//!                                                                       v
//!  Finished <---- nothing more to do ---- Idle <---- ReadyForQuery -- RollingBack
//! ```

use crate::workload::Actor;
use pgdyno_base::Nanos;
use pgdyno_wire::backend::TransactionStatus;
use pgdyno_wire::tls::Link;
use pgdyno_wire::{Handshake, SqlState};

/// What a client is doing.
pub enum State {
    /// No connection. Entered at the start and when one is lost. Leaves when its timer (back-off) or its turn comes.
    Offline,
    /// A socket is connecting. Leaves when the socket is writable (connected or refused) or its timer fires (time-out).
    Connecting,
    /// TLS, authentication, parameters. Leaves on ReadyForQuery, an error, or its timer.
    Handshaking(Box<Handshake>),
    /// Connected, no transaction. In an open loop it waits in the worker's queue until one is due.
    Idle,
    /// A statement is with the server. Leaves on ReadyForQuery, which ends the statement.
    Busy {
        /// Which, over the whole workload.
        statement: usize,
        /// When it was sent.
        sent_at: Nanos,
    },
    /// In the script's `\sleep`. Leaves when its timer fires.
    Sleeping,
    /// A failed transaction block is being rolled back. Leaves on ReadyForQuery.
    RollingBack,
    /// Nothing more to do in this run.
    Finished,
}

/// The transaction that a client is in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transaction {
    /// One is under way.
    pub active: bool,
    /// When it was due (open loop) or begun (closed loop): latency counts from here.
    pub due: Nanos,
    /// Its script.
    pub script: usize,
    /// Its statements that have succeeded.
    pub statements: u64,
    /// The statement that it sent last, if it has sent any.
    pub last: Option<usize>,
}

/// What the server has said so far about the statement under way.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// An error: its code. The first counts.
    pub error: Option<(SqlState, String)>,
    /// COMMIT was answered by ROLLBACK: the block had failed.
    pub rolled_back: bool,
}

/// A client. Small: thousands fit into a worker; buffers hold only what is left over between reads and writes.
pub struct Client {
    /// What it is doing.
    pub state: State,
    /// What lies between protocol and socket.
    pub link: Link,
    /// The beginning of a message whose end has not arrived.
    pub partial: Vec<u8>,
    /// Bytes that the socket did not take.
    pub unsent: Vec<u8>,
    /// Which statements this connection has prepared.
    pub prepared: Vec<bool>,
    /// What it does.
    pub actor: Box<dyn Actor>,
    /// The transaction that it is in.
    pub transaction: Transaction,
    /// What the server said.
    pub answer: Answer,
    /// The session's transaction status as of the last ReadyForQuery.
    pub status: TransactionStatus,
    /// Told apart from earlier timers: only the newest fires.
    pub timer: u64,
    /// Failed attempts to connect in a row.
    pub failures: u32,
    /// Which of the ways to connect (TLS or not) is being tried.
    pub attempt: usize,
    /// Transactions begun.
    pub begun: u64,
    /// Backend's process id and secret, for a cancel request.
    pub backend: (u32, Vec<u8>),
    /// Which of the server's addresses it was connected to last.
    pub address: usize,
    /// It has had a session before.
    pub was_connected: bool,
}

impl Client {
    /// A client without a connection.
    pub fn new(actor: Box<dyn Actor>, statements: usize) -> Client {
        Client {
            state: State::Offline,
            link: Link::Plain,
            partial: Vec::new(),
            unsent: Vec::new(),
            prepared: vec![false; statements],
            actor,
            transaction: Transaction::default(),
            answer: Answer::default(),
            status: TransactionStatus::Idle,
            timer: 0,
            failures: 0,
            attempt: 0,
            begun: 0,
            backend: (0, Vec::new()),
            address: 0,
            was_connected: false,
        }
    }

    /// Forgets everything that belongs to a connection.
    pub fn disconnect(&mut self) {
        self.state = State::Offline;
        self.link = Link::Plain;
        self.partial = Vec::new();
        self.unsent = Vec::new();
        self.prepared.fill(false);
        self.answer = Answer::default();
        self.status = TransactionStatus::Idle;
        self.backend = (0, Vec::new());
        self.timer += 1;
    }

    /// Has a session.
    pub fn is_online(&self) -> bool {
        !matches!(self.state, State::Offline | State::Connecting | State::Handshaking(_))
    }
}

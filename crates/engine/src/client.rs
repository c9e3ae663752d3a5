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
//!                                                         |             | error inside a block
//!                                                         |             v
//!  Finished <---- nothing more to do ---- Idle <---- ReadyForQuery -- RollingBack
//! ```
//!
//! Within a pipeline the script goes on after each statement; Busy is entered when it ends, and left when all of its
//! synchronisations are answered. A transaction that may be tried again goes from RollingBack back into its script. With
//! a connection for each transaction, a client has its transaction before it is Connecting, and is Offline after it.

use crate::workload::Actor;
use pgdyno_base::Nanos;
use pgdyno_wire::backend::TransactionStatus;
use pgdyno_wire::tls::Link;
use pgdyno_wire::{Handshake, ServerError, SqlState};
use std::collections::VecDeque;

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
    /// A statement or a pipeline is with the server. Leaves on ReadyForQuery, which ends it.
    Busy {
        /// Which command, over the whole workload.
        command: usize,
        /// When it was sent.
        sent_at: Nanos,
    },
    /// The statements of a pipeline are being prepared. Leaves on ReadyForQuery.
    Preparing,
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
    /// How late it was begun.
    pub lag: Nanos,
    /// Its script.
    pub script: usize,
    /// Its statements that have succeeded.
    pub statements: u64,
    /// The statement that it sent last, if it has sent any.
    pub last: Option<usize>,
    /// How often it was begun again.
    pub retries: u64,
    /// The error that it is being rolled back for, and the command that met it.
    pub error: Option<(SqlState, usize)>,
}

/// What the server has said so far about the statement under way.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// An error: the first counts.
    pub error: Option<Box<Refusal>>,
    /// COMMIT was answered by ROLLBACK: the block had failed.
    pub rolled_back: bool,
    /// Queries that have been answered.
    pub results: u32,
    /// The statement was prepared on the way.
    pub parsed: bool,
    /// A column's name that no variable can have, and the query that it is of.
    pub unstorable: Option<(String, u32)>,
}

/// An error that the server reported.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// In its words.
    pub error: ServerError,
    /// How many queries of the statement had been answered before.
    pub query: u32,
    /// The statement, where it is one of a pipeline.
    pub command: Option<usize>,
}

/// Rows that go into variables.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Names of the columns, of a query that has any.
    pub columns: Option<Vec<String>>,
    /// Rows so far.
    pub rows: u64,
    /// The last of them.
    pub row: Vec<Option<Vec<u8>>>,
    /// The query is answered; what comes next belongs to another.
    pub complete: bool,
}

/// What a pipeline waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The result of a command.
    Command {
        /// Which.
        command: usize,
        /// When it was put into the pipeline, if nothing else times it.
        since: Option<Nanos>,
    },
    /// The answer to a synchronisation.
    Sync,
}

/// A pipeline that is open.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// What has not been sent yet.
    pub out: Vec<u8>,
    /// What has not been answered yet.
    pub awaited: VecDeque<Awaited>,
    /// Nothing more is put into it.
    pub ended: bool,
    /// Some of it was sent: if the connection is lost, nobody knows what was committed.
    pub sent: bool,
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
    /// How many of them it has taken since.
    pub taken: usize,
    /// Which commands this connection has prepared.
    pub prepared: Vec<bool>,
    /// Commands that are being prepared for a pipeline.
    pub preparing: VecDeque<usize>,
    /// The pipeline that is open.
    pub pipeline: Option<Box<Pipeline>>,
    /// Rows that go into variables; only while a statement that wants them is under way.
    pub captured: Option<Box<Captured>>,
    /// The command that is being timed, and since when.
    pub marked: Option<(usize, Nanos)>,
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
    /// Transactions begun, or skipped.
    pub begun: u64,
    /// The script of the next transaction, once it is chosen.
    pub chosen: Option<usize>,
    /// When connecting began.
    pub connecting_since: Nanos,
    /// Backend's process id and secret, for a cancel request.
    pub backend: (u32, Vec<u8>),
    /// Which of the server's addresses it is being connected to, or was last.
    pub address: usize,
    /// Which of them it begins with: the one that worked last.
    pub first_address: usize,
    /// It has had a session before.
    pub was_connected: bool,
}

impl Client {
    /// A client without a connection.
    pub fn new(actor: Box<dyn Actor>, commands: usize) -> Client {
        Client {
            state: State::Offline,
            link: Link::Plain,
            partial: Vec::new(),
            unsent: Vec::new(),
            taken: 0,
            prepared: vec![false; commands],
            preparing: VecDeque::new(),
            pipeline: None,
            captured: None,
            marked: None,
            actor,
            transaction: Transaction::default(),
            answer: Answer::default(),
            status: TransactionStatus::Idle,
            timer: 0,
            failures: 0,
            attempt: 0,
            begun: 0,
            chosen: None,
            connecting_since: Nanos::ZERO,
            backend: (0, Vec::new()),
            address: 0,
            first_address: 0,
            was_connected: false,
        }
    }

    /// Forgets everything that belongs to a connection.
    pub fn disconnect(&mut self) {
        self.state = State::Offline;
        self.link = Link::Plain;
        self.partial = Vec::new();
        self.unsent = Vec::new();
        self.taken = 0;
        self.prepared.fill(false);
        self.preparing.clear();
        self.pipeline = None;
        self.captured = None;
        self.marked = None;
        self.answer = Answer::default();
        self.status = TransactionStatus::Idle;
        self.backend = (0, Vec::new());
        self.timer += 1;
    }

    /// Has a session that is still needed.
    pub fn has_session(&self) -> bool {
        self.is_online() && !matches!(self.state, State::Finished)
    }

    /// Is past connecting: has a session, or needs none any more.
    pub fn is_online(&self) -> bool {
        !matches!(self.state, State::Offline | State::Connecting | State::Handshaking(_))
    }
}

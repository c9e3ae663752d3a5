//! One client: a connection and what it is doing.
//!
//! ```text
//!            connect            socket ready            session begins
//!  Offline ----------> Connecting ----------> Beginning ----------> Idle
//!     ^  ^                 |                      |                  | a transaction is due
//!     |  +---- refused, timed out: back-off ------+                  v
//!     |                                                  +------> (actor) -------> Sleeping
//!     |                                                  |         asks |  ^ Sleep    |
//!     |                          all of it is answered   |              v  |          |
//!     +---- connection lost, from anywhere               +------------ Busy +---------+
//!                                                        |              | error inside a block
//!                                                        |              v
//!  Finished <---- nothing more to do ---- Idle <---- answered ---- RollingBack
//! ```
//!
//! The actor writes requests and says when to wait for their answers: after each statement, or at a pipeline's end. A
//! transaction that may be tried again goes from RollingBack back to its actor. With a connection for each transaction, a
//! client has its transaction before it is Connecting, and is Offline after it.

use crate::workload::{Actor, Label};
use pgdyno_base::Nanos;
use pgdyno_protocol::{Dialect, Refusal, SqlState};

/// State of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection. Entered at the start and when one is lost. Leaves when its timer (back-off) or its turn comes.
    Offline,
    /// A socket is connecting. Leaves when the socket is writable (connected or refused) or its timer fires (time-out).
    Connecting,
    /// TLS, authentication, parameters. Leaves when the session has begun, on an error, or its timer.
    Beginning,
    /// Connected, no transaction. In an open loop it waits for one to be due.
    Idle,
    /// Requests are with the server. Leaves when all of them are answered.
    Busy {
        /// The command that an error is held against, where no request is.
        command: usize,
        /// Time at which the requests were sent.
        sent_at: Nanos,
    },
    /// Sleep in the script's `\sleep`, or a rest between transactions. Leaves when its timer fires.
    Sleeping,
    /// A failed transaction block is being rolled back. Leaves when that is answered.
    RollingBack,
    /// Nothing more to do in this run.
    Finished,
}

impl State {
    /// Returns the time at which the requests were sent that are with the server, if any are.
    pub fn sent_at(&self) -> Option<Nanos> {
        match self {
            State::Busy { sent_at, .. } => Some(*sent_at),
            _ => None,
        }
    }
}

/// The transaction that a client is in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transaction {
    /// One is under way.
    pub active: bool,
    /// Time at which it was due (open loop) or begun (closed loop); latency counts from here.
    pub due: Nanos,
    /// Delay between the due time and the start.
    pub lag: Nanos,
    /// Its script.
    pub script: usize,
    /// Its statements that have succeeded.
    pub statements: u64,
    /// The statement that it sent last, if it has sent any.
    pub last: Option<usize>,
    /// Number of retries.
    pub retries: u64,
    /// The error that it is being rolled back for, and the command that met it.
    pub error: Option<(SqlState, usize)>,
}

/// A connection, and what is known of the session on it. Small: thousands fit into a worker; buffers hold only what is
/// left over between reads and writes.
pub struct Connection<P: Dialect> {
    /// Protocol conversation on the connection.
    pub conversation: P::Conversation<Label>,
    /// Requests that are written but not sent yet. A pipeline is sent when it is long, or when it ends.
    pub held: Vec<u8>,
    /// Bytes that the socket did not take.
    pub unsent: Vec<u8>,
    /// Number of bytes of `unsent` that the socket has taken since.
    pub taken: usize,
    /// Which statements are prepared on it, by their slots.
    pub prepared: Vec<bool>,
    /// Backend's process id and secret, for a cancel request.
    pub backend: (u32, Vec<u8>),
    /// TLS: a cancel request takes it as well.
    pub encrypted: bool,
    /// Told apart from earlier connections of the client.
    pub number: u64,
}

impl<P: Dialect> Default for Connection<P> {
    fn default() -> Self {
        Connection {
            conversation: P::Conversation::default(),
            held: Vec::new(),
            unsent: Vec::new(),
            taken: 0,
            prepared: Vec::new(),
            backend: (0, Vec::new()),
            encrypted: false,
            number: 0,
        }
    }
}

/// A client.
pub struct Client<P: Dialect> {
    /// Current state.
    pub state: State,
    /// Its connection.
    pub connection: Connection<P>,
    /// Actor that decides the client's next step.
    pub actor: Box<dyn Actor<P>>,
    /// The transaction that it is in.
    pub transaction: Transaction,
    /// The first error among the answers that it waits for.
    pub refusal: Option<Box<Refusal<Label>>>,
    /// A COMMIT was answered by ROLLBACK: the block had failed.
    pub undone: bool,
    /// The command that is being timed, and since when.
    pub marked: Option<(usize, Nanos)>,
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
    /// Time at which connecting began.
    pub connecting_since: Nanos,
    /// Which of the server's addresses it is being connected to, or was last.
    pub address: usize,
    /// Which of them it begins with: the one that worked last.
    pub first_address: usize,
    /// It has had a session before.
    pub was_connected: bool,
}

impl<P: Dialect> Client<P> {
    /// A client without a connection; so many statements may be prepared on it.
    pub fn new(actor: Box<dyn Actor<P>>, slots: usize) -> Client<P> {
        Client {
            state: State::Offline,
            connection: Connection { prepared: vec![false; slots], ..Connection::default() },
            actor,
            transaction: Transaction::default(),
            refusal: None,
            undone: false,
            marked: None,
            timer: 0,
            failures: 0,
            attempt: 0,
            begun: 0,
            chosen: None,
            connecting_since: Nanos::ZERO,
            address: 0,
            first_address: 0,
            was_connected: false,
        }
    }

    /// Forgets everything that belongs to a connection.
    pub fn disconnect(&mut self) {
        let mut prepared = std::mem::take(&mut self.connection.prepared);
        prepared.fill(false);
        self.connection = Connection { prepared, number: self.connection.number + 1, ..Connection::default() };
        self.actor.disconnected();
        self.state = State::Offline;
        self.refusal = None;
        self.undone = false;
        self.marked = None;
        self.timer += 1;
    }

    /// Has a session that is still needed.
    pub fn has_session(&self) -> bool {
        self.is_online() && self.state != State::Finished
    }

    /// Is past connecting: has a session, or needs none any more.
    pub fn is_online(&self) -> bool {
        !matches!(self.state, State::Offline | State::Connecting | State::Beginning)
    }
}

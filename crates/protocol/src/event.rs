//! What a conversation tells of a server, as it happens.

use crate::server_error::ServerError;
use crate::session::SessionInfo;

/// Event of a conversation. `L` is the caller's label for its requests.
#[derive(Debug)]
pub enum Event<L> {
    /// The session has begun: requests may be made.
    Began(Box<SessionInfo>),
    /// A statement was prepared.
    Prepared(L),
    /// Names of the columns of a result whose rows are read.
    Columns(L, Vec<String>),
    /// A row of such a result: [`crate::Conversation::row`].
    Row(L),
    /// A command is carried out, so far as its transaction is.
    Result(L, CommandTag),
    /// The server refuses, or ends the session.
    Refused(Box<Refusal<L>>),
    /// A request, or a part of a pipeline, is answered to its end.
    Synchronised(L),
    /// The server waits for data: [`crate::Conversation::data`], or [`crate::Conversation::refuse_data`].
    CopyIn(L),
    /// The server sends COPY data, which is passed over.
    CopyOut(L),
    /// A notice, where they are read: [`crate::Conversation::read_notices`].
    Notice(Box<ServerError>),
}

/// Action that a completed command reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandTag {
    /// COMMIT: everything up to here is durable, as far as the server's settings make it so.
    Commit,
    /// ROLLBACK, of a block or to a savepoint.
    Rollback,
    /// A statement that found, or changed, no row.
    Nothing,
    /// Anything else.
    Other,
}

/// An error that the server reported.
#[derive(Clone, Debug)]
pub struct Refusal<L> {
    /// The request that met it; none: the session itself.
    pub label: Option<L>,
    /// Error in the server's words.
    pub error: ServerError,
    /// Queries of the request that had been answered before.
    pub query: u32,
    /// The session is over.
    pub fatal: bool,
}

/// Outcome, after a lost connection, of requests that were sent but not completely answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing that was under way can have committed.
    Nothing,
    /// Some of it may have: only the server knows.
    Unknown,
    /// The server confirmed a commit, and nothing was under way behind it.
    Committed,
}

impl CommandTag {
    /// Return true if it ends no transaction.
    #[inline]
    pub fn is_within(self) -> bool {
        !matches!(self, CommandTag::Commit | CommandTag::Rollback)
    }
}

impl<L> Refusal<L> {
    /// An error that the server reported, of a request or of the session.
    pub fn new(label: Option<L>, error: ServerError, query: u32) -> Refusal<L> {
        let fatal = matches!(error.severity.as_str(), "FATAL" | "PANIC");
        Refusal { label, error, query, fatal }
    }
}

/// A transaction's state, as the server tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    #[default]
    Idle,
    /// Inside a transaction block.
    InBlock,
    /// Inside a failed transaction block: the server accepts only ROLLBACK.
    Failed,
}

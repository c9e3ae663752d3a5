//! The traits that a product's protocol implements. The engine is generic over them, so that no call on the way of a
//! statement is dynamic.

use crate::effect::Effect;
use crate::endpoint::{Endpoint, SslMode};
use crate::error::ProtocolError;
use crate::event::{Event, Fate, TransactionStatus};
use crate::row::DataRow;
use std::str::FromStr;
use std::sync::Arc;

/// A product's protocol: its types.
pub trait Dialect: Send + Sync + Sized + 'static {
    /// Settings of a connection.
    type Config: Target;
    /// One connection; `L` is the caller's label for its requests.
    type Conversation<L: Copy + Send + 'static>: Conversation<L, Config = Self::Config>;
    /// A request to stop what a session is doing.
    type Cancel: Cancel<Config = Self::Config>;

    /// Statements can follow each other without an answer in between, and an error passes over those behind it.
    const PIPELINES: bool;
}

/// Settings of a connection, as far as connecting needs them.
pub trait Target: Send + Sync + 'static {
    /// Address of the server.
    fn endpoint(&self) -> &Endpoint;
    /// Ways to connect, with TLS or without, in order.
    fn attempts(&self) -> &'static [Attempt];
    /// Sessions that refuse writes are ended, and the next address is tried.
    fn wants_writes(&self) -> bool;
}

/// Way in which statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryMode {
    /// Text with the values in it, parsed each time.
    Simple,
    /// Parsed each time; values apart.
    Extended,
    /// Parsed once for each connection.
    Prepared,
}

impl FromStr for QueryMode {
    type Err = String;
    fn from_str(s: &str) -> Result<QueryMode, String> {
        match s {
            "simple" => Ok(QueryMode::Simple),
            "extended" => Ok(QueryMode::Extended),
            "prepared" => Ok(QueryMode::Prepared),
            other => Err(format!("protocol \"{other}\" is unknown; it is simple, extended or prepared")),
        }
    }
}

/// Connection attempt, with or without TLS at its beginning. `sslmode` prefer and allow have a second attempt the other
/// way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Connection with TLS, if the server offers it.
    Encrypted,
    /// Connection without encryption.
    Clear,
}

impl Attempt {
    /// The attempts that `mode` allows for a server at `endpoint`, in order.
    pub fn of(endpoint: &Endpoint, mode: SslMode) -> &'static [Attempt] {
        use Attempt::{Clear, Encrypted};
        if matches!(endpoint, Endpoint::Unix(_)) {
            return &[Clear];
        }
        match mode {
            SslMode::Disable => &[Clear],
            SslMode::Allow => &[Clear, Encrypted],
            SslMode::Prefer => &[Encrypted, Clear],
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Encrypted],
        }
    }
}

/// A statement, as the protocols need it.
pub struct Statement<'a> {
    /// Its number.
    pub command: usize,
    /// Its place among the prepared ones: its number, unless a command stands for several statements.
    pub slot: usize,
    /// Name under which it is prepared.
    pub name: &'a str,
    /// Its text, with placeholders.
    pub text: &'a str,
    /// Number of parameters.
    pub parameters: usize,
    /// Effect on its transaction.
    pub effect: Effect,
    /// Its rows are read.
    pub reads: bool,
    /// So are the names of its columns.
    pub names: bool,
}

/// Way in which one statement is sent, and the labels of the requests that it takes.
#[derive(Clone, Copy, Debug)]
pub struct Sending<L> {
    /// Way in which statements are sent.
    pub mode: QueryMode,
    /// It is not prepared on this connection yet.
    pub prepare: bool,
    /// Other statements follow without an answer in between.
    pub in_pipeline: bool,
    /// Label of what leads up to its execution.
    pub part: L,
    /// Label of its execution.
    pub result: L,
    /// Label of its end, where it is not in a pipeline.
    pub end: L,
}

/// Kind of the value of a parameter, which is appended as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// No value.
    Null,
    /// TRUE or FALSE.
    Boolean,
    /// A 64-bit integer.
    Integer,
    /// A double.
    Double,
    /// Text, or a value of whatever type the server makes of it.
    Text,
}

/// One connection's conversation with a server: requests are queued with what answers them, bytes go in, events come out.
pub trait Conversation<L: Copy>: Default + Send {
    /// Settings of a connection.
    type Config;

    /// Begins; what must be sent first is appended to `out`.
    fn start(config: Arc<Self::Config>, attempt: Attempt, out: &mut Vec<u8>) -> Result<Self, ProtocolError>;
    /// Notices become events; by default they are passed over.
    fn read_notices(&mut self, read: bool);
    /// The session has begun.
    fn is_open(&self) -> bool;
    /// Everything that was asked is answered.
    fn is_idle(&self) -> bool;
    /// Returns true if bytes pass to and from the socket unchanged.
    fn is_plain(&self) -> bool;
    /// The transaction's status as of the last answer.
    fn status(&self) -> TransactionStatus;
    /// The values of the last row that was read; `None` is NULL.
    fn row(&self) -> Result<DataRow<'_>, ProtocolError>;

    /// Writes a statement. `whole` appends its text with all values in it, `value` a parameter's value, and tells its kind.
    fn statement(
        &mut self,
        s: &Statement<'_>,
        sending: &Sending<L>,
        out: &mut Vec<u8>,
        whole: impl FnOnce(&mut Vec<u8>),
        value: impl FnMut(usize, &mut Vec<u8>) -> Given,
    );
    /// Writes a request that prepares a statement.
    fn prepare(&mut self, s: &Statement<'_>, label: L, out: &mut Vec<u8>);
    /// Writes a synchronisation: the end of a pipeline.
    fn sync(&mut self, label: L, out: &mut Vec<u8>);
    /// Writes a command whose rows nobody reads.
    fn command(&mut self, label: L, sql: &str, out: &mut Vec<u8>);
    /// Writes the goodbye.
    fn goodbye(&mut self, out: &mut Vec<u8>);
    /// Writes data of a load, which `write` appends.
    fn data(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>));
    /// Writes the end of the data of a load.
    fn end_data(&mut self, out: &mut Vec<u8>);
    /// Refuses the data that a statement wants the client to send. False: the protocol has no way to, and only the end of
    /// the connection makes the server forget what it was sent.
    fn refuse_data(&mut self, reason: &str, out: &mut Vec<u8>) -> bool;

    /// Marks all requests so far as sent, at least in part: they may have reached the server.
    fn mark_sent(&mut self);
    /// Appends to `wire` what must be sent so that the server reads `plain`.
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), ProtocolError>;
    /// Takes what arrived from the socket: what it says in the clear, for [`Conversation::next`]. What must be sent back
    /// is appended to `reply`, also where this fails.
    fn open<'b>(
        &mut self,
        wire: &'b [u8],
        plain: &'b mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<&'b [u8], ProtocolError>;
    /// The next event of `input`, which [`Conversation::open`] gave; `None` when all of it is taken. What must be sent
    /// back is appended to `reply`, sealed.
    fn next(&mut self, input: &mut &[u8], reply: &mut Vec<u8>) -> Result<Option<Event<L>>, ProtocolError>;

    /// Forgets the commits so far: [`Conversation::fate`] reports only on what follows.
    fn forget_commits(&mut self);
    /// Returns the outcome that a loss of the connection now would leave open. It depends on the requests sent and the
    /// answers received.
    fn fate(&self) -> Fate;
}

/// A request to stop what a session is doing, over a connection of its own.
pub trait Cancel: Sized {
    /// Settings of a connection.
    type Config;

    /// Begins; what must be sent first is appended to `out`. `encrypted`: the session to be stopped is. True: that is all.
    fn start(
        config: Arc<Self::Config>,
        encrypted: bool,
        process: u32,
        secret: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(Self, bool), ProtocolError>;
    /// Takes what arrived from the socket; what must be sent is appended to `out`. True: that is all.
    fn feed(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<bool, ProtocolError>;
}

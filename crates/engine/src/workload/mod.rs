//! What clients do. A workload has transactions, its "scripts", made of commands; each client has an [`Actor`], which
//! writes requests and says what to wait for. Scripts ([`script`]) are one kind; a workload that needs loops is ordinary
//! code behind the same traits.

pub mod script;

use pgdyno_base::{Nanos, Prng};
use pgdyno_protocol::QueryMode;
pub use pgdyno_protocol::Statement;
use pgdyno_protocol::{Conversation, DataRow, Dialect, Effect, Given, ProtocolError, Sending, ServerError};
use pgdyno_script::ScriptError;
use script::ScriptActor;

/// A command as the engine and the reports see it.
#[derive(Clone, Debug)]
pub struct CommandInfo {
    /// Its first line, as pgbench shows it.
    pub text: String,
    /// The whole statement; of a meta-command the same as `text`.
    pub sql: String,
    /// `SQL`, or the meta-command's name.
    pub name: String,
    /// Index of its script.
    pub script: usize,
    /// Its number within the script, from 0.
    pub number: usize,
    /// Line in the script, from 1.
    pub line: usize,
    /// It is sent to the server.
    pub is_sql: bool,
    /// Effect on its transaction.
    pub effect: Effect,
    /// Its actor reads its rows.
    pub reads: bool,
    /// Its parameters, in the extended and the prepared protocol.
    pub parameters: usize,
}

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its command, over the whole workload.
    pub command: u32,
    /// The statement that is prepared by it.
    pub slot: u32,
    /// Part of the answer to this request that ends the command.
    pub ends: Ends,
    /// Time at which the command was put into a pipeline, if it is timed from there; otherwise zero.
    pub since: Nanos,
}

/// Part of an answer that ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// It is a part of the command.
    Not,
    /// Its result: in a pipeline.
    AtResult,
    /// The synchronisation: of a statement by itself.
    AtSync,
}

impl Label {
    /// Label of requests that do not belong to a command.
    pub const NONE: Label = Label { command: u32::MAX, slot: 0, ends: Ends::Not, since: Nanos::ZERO };

    /// A part of a command.
    pub fn of(command: usize) -> Label {
        Label { command: command as u32, slot: command as u32, ends: Ends::Not, since: Nanos::ZERO }
    }

    fn of_statement(s: &Statement<'_>) -> Label {
        Label { slot: s.slot as u32, ..Label::of(s.command) }
    }
}

/// Next action of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send what was asked and wait until all of it is answered; then call again.
    Wait {
        /// The command that an error is held against, where no request is.
        command: usize,
        /// Kind of answer that the client waits for.
        what: Awaited,
    },
    /// Call again at once. Time may have passed.
    Again,
    /// Wait so long; then call again.
    Sleep(Nanos),
    /// This command, which the client carries out itself, begins; call again.
    Mark(usize),
    /// The transaction is over.
    Done,
}

/// Kind of answer that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// One statement.
    Statement,
    /// All of a pipeline.
    Pipeline,
    /// Statements that are being prepared.
    Preparation,
}

/// Reason that stops a client's transaction and does not come from the server.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The error with its place.
    pub place: ScriptError,
    /// The script.
    pub script: usize,
    /// The command, by its number in the script.
    pub number: usize,
    /// The command's name, as written.
    pub name: String,
    /// Cause of the failure.
    pub cause: Cause,
    /// The error itself; may be empty.
    pub message: String,
}

/// Cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An expression, or another meta-command: which step of it, in pgbench's words.
    MetaCommand(&'static str),
    /// A pipeline's command stands where it cannot be.
    Pipeline,
    /// The script has ended inside a pipeline.
    LeftInPipeline,
    /// A query did not return one row: its number within the statement.
    Rows(u32),
    /// A column's name cannot be a variable's: the query's number, `gset` or `aset`, and the name.
    Name(u32, &'static str, String),
}

/// Outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The client has the answer to its COMMIT.
    Committed,
    /// Nothing was committed: an error was answered, or COMMIT had not been sent.
    Failed,
    /// COMMIT was sent, and the connection was lost before its answer: only the server knows.
    Unknown,
}

/// Part of a workload that all clients share.
pub trait Workload: Send + Sync {
    /// Names of the scripts.
    fn scripts(&self) -> Vec<String>;
    /// All commands, of all scripts.
    fn commands(&self) -> &[CommandInfo];
    /// Returns the number of statements that a connection may have prepared: one per command, if a command is always
    /// the same statement.
    fn slots(&self) -> usize {
        self.commands().len()
    }
    /// Its actors read the server's notices.
    fn reads_notices(&self) -> bool {
        false
    }
    /// An error with the place of a command in its script.
    fn locate(&self, command: usize, message: &str) -> ScriptError;
}

/// A workload that can be driven on a product's servers.
pub trait WorkloadOn<P: Dialect>: Workload {
    /// A client's part. `rng` is its own stream of random numbers.
    fn actor(&self, client: usize, rng: Prng, default_seed: i64) -> Box<dyn Actor<P>>;
}

/// Behaviour of one client. Commands are numbered over the whole workload.
pub trait Actor<P: Dialect>: Send {
    /// Returns how long the client rests from `now` on before it begins its next transaction in a closed loop. The rest
    /// is not part of the latency.
    ///
    /// The engine calls this again when the rest is over. The result is then zero, unless there is more rest.
    fn rest(&mut self, _now: Nanos) -> Nanos {
        Nanos::ZERO
    }
    /// Begins a transaction; says of which script. `choose` is the worker's stream for choosing.
    fn begin(&mut self, choose: &mut Prng) -> usize;
    /// Goes on with it: writes what is to be sent, and says what to do then.
    fn step(&mut self, requests: &mut Requests<'_, P>) -> Result<Step, Box<Failure>>;
    /// Does the last step again, which waited for answers: what was sent was not carried out.
    fn again(&mut self, requests: &mut Requests<'_, P>) -> Result<Step, Box<Failure>> {
        self.step(requests)
    }
    /// The command that the last step came from.
    fn here(&self) -> usize;
    /// The transaction has failed; the next call is `begin`.
    fn abandon(&mut self);
    /// The transaction is tried again, with the same random numbers.
    fn retry(&mut self);
    /// The connection is gone: what was open on it is no more.
    fn disconnected(&mut self) {}
    /// Receives the outcome of its transaction. Called once for each transaction that was begun, its retries included.
    /// An error ends the run.
    fn settled(&mut self, _outcome: Settled) -> std::io::Result<()> {
        Ok(())
    }
    /// The server has sent a notice or a warning.
    fn noticed(&mut self, _notice: &ServerError) {}
    /// Reads what came of a command whose rows are read.
    fn read(&mut self, _command: usize, _piece: Piece<'_>) -> Result<(), ProtocolError> {
        Ok(())
    }
    /// Such a command is answered to its end.
    fn answered(&mut self, _command: usize) -> Result<(), Box<Failure>> {
        Ok(())
    }
    /// Itself, where it carries out a script: what pgbench's messages quote is asked of it.
    fn as_script(&self) -> Option<&ScriptActor> {
        None
    }
}

/// A piece of a result that is read.
pub enum Piece<'a> {
    /// The names of its columns.
    Columns(Vec<String>),
    /// A row: values as text, `None` is NULL.
    Row(DataRow<'a>),
    /// Its end.
    End,
}

/// Writer for the requests of an actor.
pub struct Requests<'a, P: Dialect> {
    pub(crate) conversation: &'a mut P::Conversation<Label>,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) prepared: &'a [bool],
    pub(crate) protocol: QueryMode,
    /// Start time of this step.
    pub(crate) now: Nanos,
    /// Commands in a pipeline are timed from where they are put into it.
    pub(crate) timed: bool,
    /// Lines that the actor shows, as `debug()` does.
    pub(crate) shown: &'a mut Vec<String>,
    /// Commands that were written, if they are reported: the command, and true if it is prepared along with it.
    pub(crate) written: &'a mut Vec<(usize, bool)>,
    pub(crate) last: Option<usize>,
    /// Nothing is to be carried out: only whether anything is left to do is asked.
    pub(crate) dry_run: bool,
}

impl<P: Dialect> Requests<'_, P> {
    /// Returns the way in which statements are sent.
    pub fn protocol(&self) -> QueryMode {
        self.protocol
    }

    /// Returns true if the statement in `slot` is prepared on this connection.
    pub fn is_prepared(&self, slot: usize) -> bool {
        self.prepared[slot]
    }

    /// Nothing is sent: only whether anything is left to do is asked.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Shows a line to the user.
    pub fn show(&mut self, line: String) {
        self.shown.push(line);
    }

    /// Writes a statement: by itself with its synchronisation, or `in_pipeline` without. `whole` writes its text with all
    /// values in it, `value` a parameter's, and tells its kind.
    #[inline]
    pub fn statement(
        &mut self,
        s: &Statement<'_>,
        in_pipeline: bool,
        whole: impl FnOnce(&mut Vec<u8>),
        value: impl FnMut(usize, &mut Vec<u8>) -> Given,
    ) {
        self.last = Some(s.command);
        let part = Label::of_statement(s);
        let prepared = self.protocol == QueryMode::Prepared;
        let prepare = self.protocol != QueryMode::Simple && (!prepared || !self.prepared[s.slot]);
        self.written.push((s.command, prepared && prepare && !in_pipeline));
        let since = if self.timed { self.now } else { Nanos::ZERO };
        let sending = Sending {
            mode: self.protocol,
            prepare,
            in_pipeline,
            part,
            result: if in_pipeline { Label { since, ends: Ends::AtResult, ..part } } else { part },
            end: Label { ends: Ends::AtSync, ..part },
        };
        self.conversation.statement(s, &sending, self.out, whole, value);
    }

    /// Writes a request that prepares a statement.
    pub fn prepare(&mut self, s: &Statement<'_>) {
        self.conversation.prepare(s, Label::of_statement(s), self.out);
    }

    /// Writes a synchronisation.
    pub fn sync(&mut self, command: usize) {
        self.conversation.sync(Label::of(command), self.out);
    }
}

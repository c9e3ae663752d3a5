//! What is done about trouble: whether an error is retried, counted, ends its client or the run, and what is said of it.
//! Two policies: pgdyno's own ([`Counting`]), and pgbench's ([`Classic`]), whose wording lives there too.

mod classic;
mod counting;

use crate::client::Transaction;
use crate::error::EngineError;
use crate::events::Events;
use crate::plan::Plan;
use crate::workload::script::ScriptActor;
use crate::workload::{Failure, Label, Workload};
use pgdyno_base::Nanos;
use pgdyno_protocol::{Refusal, ServerError, SqlState};

pub(crate) use classic::Classic;
pub(crate) use counting::Counting;

/// Reaction to a problem.
pub(crate) enum Decision {
    /// It is no trouble.
    GoOn,
    /// This statement could not be prepared; it is executed as if it were.
    ExecuteAllTheSame(usize),
    /// The transaction is rolled back; then it is tried again, where that may help, or has failed with this code.
    Recover(SqlState),
    /// The connection is given up and made again.
    Reconnect(String),
    /// The client ends.
    EndClient,
    /// The transaction counts as committed, and the client ends.
    CommitAndEndClient,
    /// The run ends. The transaction has failed with this code.
    EndRun(SqlState, EngineError),
}

/// The client that is in trouble.
pub(crate) struct Scene<'a> {
    pub plan: &'a Plan,
    pub workload: &'a dyn Workload,
    /// Its number within the run.
    pub client: usize,
    /// Its script, where it carries out one.
    pub script: Option<&'a ScriptActor>,
    /// Prepared statements of its connection, one flag per slot.
    pub prepared: &'a [bool],
    pub now: Nanos,
}

impl Scene<'_> {
    /// The statement that a request was made for.
    pub fn refused_statement(&self, refusal: &Refusal<Label>) -> Option<usize> {
        let command = refusal.label?.command as usize;
        self.workload.commands().get(command).filter(|c| c.is_sql).map(|_| command)
    }
}

/// Reactions to problems.
pub(crate) trait Policy: Send {
    /// The server has refused a request; `command` waits for the answers.
    fn refused(&self, scene: &Scene<'_>, events: &mut Events, command: usize, refusal: &Refusal<Label>) -> Decision;
    /// COMMIT was answered by ROLLBACK.
    fn undone(&self, scene: &Scene<'_>, events: &mut Events) -> Decision;
    /// The server refuses to roll back.
    fn rollback_refused(&self, scene: &Scene<'_>, events: &mut Events, error: &ServerError) -> Decision;
    /// The client's script cannot go on.
    fn script_failed(&self, scene: &Scene<'_>, events: &mut Events, failure: &Failure) -> Decision;
    /// The script has ended inside a transaction block, behind `command`.
    fn left_open(&self, scene: &Scene<'_>, events: &mut Events, command: usize) -> Decision;
    /// The server waits for COPY data, or sends some.
    fn copies(&self, scene: &Scene<'_>, events: &mut Events) -> Decision;
    /// Returns true if a lost connection ends its client. Its open transaction then counts as unfinished, unless it has
    /// committed or may have committed.
    fn loss_ends_client(&self, plan: &Plan) -> bool;
    /// Says what a lost connection is, where it ends its client.
    fn lost(&self, scene: &Scene<'_>, events: &mut Events, command: usize, said: Option<&Refusal<Label>>, reason: &str);
    /// No session could be made, while the run is on. [`Decision::Reconnect`] tries again.
    fn unreachable(&self, scene: &Scene<'_>, events: &mut Events, error: &EngineError) -> Decision;
    /// No session could be made before the run.
    fn cannot_begin(&self, _scene: &Scene<'_>, _events: &mut Events, _error: &EngineError) {}
    /// A transaction whose error is rolled back after the end has neither failed nor is it done.
    fn end_forgets_errors(&self) -> bool {
        false
    }
    /// A transaction is tried again, or has failed.
    fn tried(&self, _scene: &Scene<'_>, _events: &mut Events, _transaction: &Transaction, _again: bool) {}
    /// The server says something while a statement is under way.
    fn noticed(&self, _scene: &Scene<'_>, _events: &mut Events, _command: Option<usize>, _notice: &ServerError) {}
}

/// The policy of a plan.
pub(crate) fn of(plan: &Plan) -> Box<dyn Policy> {
    if plan.on_error.ends_clients() { Box::new(Classic) } else { Box::new(Counting) }
}

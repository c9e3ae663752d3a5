//! What an error leads to: the policy decides, and here it is carried out.

use super::{Worker, ask_policy};
use crate::client::{State, Transaction};
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use crate::policy::Decision;
use crate::workload::{Failure, Label, Settled};
use pgdyno_base::Nanos;
use pgdyno_protocol::{Conversation, Dialect, Refusal, ServerError, SqlState, TransactionStatus};

impl<P: Dialect, D: Driver> Worker<P, D> {
    /// The server has refused a request; `command` waits for the answers.
    pub(super) fn statement_refused(
        &mut self,
        i: Token,
        command: usize,
        refusal: &Refusal<Label>,
        now: Nanos,
    ) -> Result<(), EngineError> {
        self.clients[i].marked = None;
        let decision = ask_policy!(self, i, now, refused, command, refusal);
        self.carry_out(i, command, decision, now)
    }

    /// The client's script cannot go on.
    pub(super) fn script_failed(&mut self, i: Token, failure: &Failure, now: Nanos) -> Result<(), EngineError> {
        let decision = ask_policy!(self, i, now, script_failed, failure);
        if !matches!(decision, Decision::Recover(_)) {
            return self.carry_out(i, 0, decision, now);
        }
        (self.clients[i].refusal, self.clients[i].undone) = (None, false);
        if !self.clients[i].connection.conversation.is_idle() {
            // What was put into a pipeline may be on its way: only a new session is in a known state.
            return self.lost(i, now, "a pipeline was given up");
        }
        if self.clients[i].connection.conversation.status() != TransactionStatus::Idle {
            let command = self.clients[i].actor.here();
            return self.carry_out(i, command, decision, now);
        }
        // Not at once: a script that fails before it sends anything would never leave this worker alone.
        self.fail(i, SqlState::SCRIPT, now)?;
        self.clients[i].state = State::Sleeping;
        self.set_timer(i, now);
        Ok(())
    }

    /// The server refuses to roll back: the session is of no use any more.
    pub(super) fn rollback_refused(&mut self, i: Token, error: &ServerError, now: Nanos) -> Result<(), EngineError> {
        let decision = ask_policy!(self, i, now, rollback_refused, error);
        self.carry_out(i, 0, decision, now)
    }

    pub(super) fn carry_out(
        &mut self,
        i: Token,
        command: usize,
        decision: Decision,
        now: Nanos,
    ) -> Result<(), EngineError> {
        match decision {
            Decision::GoOn => Ok(()),
            Decision::ExecuteAllTheSame(statement) => {
                self.clients[i].connection.prepared[statement] = true;
                self.drive_again(i, now)
            }
            Decision::Recover(code) => self.recover(i, code, command, now),
            Decision::Reconnect(reason) => self.lost(i, now, &reason),
            Decision::EndClient => self.abort(i),
            Decision::CommitAndEndClient => {
                let t = std::mem::take(&mut self.clients[i].transaction);
                self.settled(i, Settled::Committed)?;
                self.tally.committed(self.who(i), &t, now)?;
                self.abort(i)
            }
            Decision::EndRun(code, error) => {
                self.fail(i, code, now)?;
                Err(error)
            }
        }
    }

    /// The transaction has met an error. Inside a block it must be rolled back before anything else.
    fn recover(&mut self, i: Token, code: SqlState, command: usize, now: Nanos) -> Result<(), EngineError> {
        let client = &mut self.clients[i];
        client.transaction.error = Some((code, command));
        if client.connection.conversation.status() == TransactionStatus::Idle {
            return self.rolled_back(i, now);
        }
        client.state = State::RollingBack;
        let mut out = Vec::new();
        client.connection.conversation.command(Label::NONE, "ROLLBACK", &mut out);
        if let Some(patience) = self.plan.answer_timeout {
            self.set_timer(i, now + patience);
        }
        self.debug(i, now, "receiving");
        self.send(i, &out)
    }

    /// The transaction is rolled back: it is tried again, or has failed.
    pub(super) fn rolled_back(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        self.clients[i].undone = false;
        let Some((code, command)) = self.clients[i].transaction.error.take() else {
            return self.next_transaction(i, now);
        };
        let t = self.clients[i].transaction;
        let over = self.is_over(now);
        if over && self.policy.end_forgets_errors() {
            self.clients[i].actor.abandon();
            self.finish(i);
            return Ok(());
        }
        let tries_left = self.plan.max_tries == 0 || t.retries + 1 < u64::from(self.plan.max_tries);
        let in_time = self.plan.latency_limit.is_none_or(|limit| now - t.due <= limit);
        // Also behind the end: what is under way is brought to its end, as long as the drain lasts.
        let again = code.is_retryable() && tries_left && in_time;
        ask_policy!(self, i, now, tried, &t, again);
        self.tally.command_error(command, again);
        if again {
            let client = &mut self.clients[i];
            client.transaction = Transaction { retries: t.retries + 1, statements: 0, last: None, ..t };
            client.actor.retry();
            return self.drive(i, now);
        }
        self.fail(i, code, now)?;
        if self.plan.connect_each {
            self.hang_up(i);
        }
        self.next_transaction(i, now)
    }

    /// Counts the client's transaction as failed; the script begins anew.
    fn fail(&mut self, i: Token, code: SqlState, now: Nanos) -> Result<(), EngineError> {
        let t = std::mem::take(&mut self.clients[i].transaction);
        if t.active {
            self.settled(i, Settled::Failed)?;
        }
        self.clients[i].actor.abandon();
        if !t.active {
            return Ok(());
        }
        self.tally.failed(self.who(i), &t, code, now)
    }

    /// The client ends early. Its connection is closed at once, so that it holds no locks.
    pub(super) fn abort(&mut self, i: Token) -> Result<(), EngineError> {
        let t = std::mem::take(&mut self.clients[i].transaction);
        if t.active {
            self.tally.unfinished(&t);
            self.settled_by_fate(i)?;
        }
        self.tally.interval.aborted += 1;
        self.turns.forget(i);
        self.finish(i);
        if self.plan.exit_on_abort { Err(EngineError::Aborted(self.number)) } else { Ok(()) }
    }
}

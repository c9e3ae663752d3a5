//! What an error leads to: another try, a failed transaction, the end of a client, the end of the run.

use super::Worker;
use crate::client::{Client, Refusal, State, Transaction};
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use crate::plan::OnError;
use crate::workload::ScriptFailure;
use pgdyno_base::Nanos;
use pgdyno_record::log::Ending;
use pgdyno_wire::backend::TransactionStatus;
use pgdyno_wire::{SqlState, frontend};

impl<D: Driver> Worker<D> {
    /// The server has refused a statement, or answered COMMIT by ROLLBACK.
    pub(super) fn statement_failed(&mut self, i: Token, command: usize, now: Nanos) -> Result<(), EngineError> {
        let client = &mut self.clients[i];
        client.marked = None;
        client.captured = None;
        client.pipeline = None;
        let answer = std::mem::take(&mut client.answer);
        let Some(refusal) = answer.error else {
            let code = SqlState::parse("40000");
            self.tell_error(i, now, code, "COMMIT was answered by ROLLBACK: the transaction had failed");
            return self.recover(i, code, command, now);
        };
        let code = refusal.error.state();
        if self.plan.on_error.ends_clients() {
            return self.classic_error(i, command, &refusal, answer.parsed, now);
        }
        let text = refusal.error.to_string();
        if code.is_permanent() && self.plan.on_error == OnError::EndRun {
            let place = self.workload.locate(command, &format!("the server refuses this statement: {text}"));
            let script = client_script(&self.clients[i]);
            self.interval.count(script, |o| o.fail(code.0));
            self.clients[i].transaction = Transaction::default();
            return Err(EngineError::Script(Box::new(place)));
        }
        self.tell_error(i, now, code, &text);
        self.recover(i, code, command, now)
    }

    /// The transaction has met an error. Inside a block it must be rolled back before anything else.
    pub(super) fn recover(&mut self, i: Token, code: SqlState, command: usize, now: Nanos) -> Result<(), EngineError> {
        self.clients[i].transaction.error = Some((code, command));
        if self.clients[i].status == TransactionStatus::Idle {
            return self.after_rollback(i, now);
        }
        self.clients[i].state = State::RollingBack;
        self.debug(i, now, || "receiving".into());
        let mut out = Vec::new();
        frontend::query(&mut out, "ROLLBACK");
        self.put(i, &out, now)
    }

    /// The server refuses to roll back: the session is of no use any more.
    pub(super) fn rollback_failed(&mut self, i: Token, refusal: &Refusal, now: Nanos) -> Result<(), EngineError> {
        if self.plan.on_error.ends_clients() {
            let (client, why) = (self.first_client + i, refusal.error.classic(None));
            let what = "aborted while rolling back the transaction after an error";
            self.say("error", i, now, format!("client {client} {what}; {why}"));
            return self.abort(i);
        }
        self.lost(i, now, &format!("the server refuses ROLLBACK: {}", refusal.error))
    }

    /// The transaction is rolled back: it is tried again, or has failed.
    pub(super) fn after_rollback(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        let Some((code, command)) = self.clients[i].transaction.error.take() else {
            return self.next_transaction(i, now);
        };
        let t = self.clients[i].transaction;
        let over = self.is_over(now);
        if over && self.plan.on_error.ends_clients() {
            // Neither failed nor done: as in pgbench, time is over.
            self.clients[i].actor.abandon();
            self.finish(i);
            return Ok(());
        }
        let tries_left = self.plan.max_tries == 0 || t.retries + 1 < u64::from(self.plan.max_tries);
        let in_time = self.plan.latency_limit.is_none_or(|limit| now - t.due <= limit);
        let again = code.is_retryable() && tries_left && in_time && !over;
        self.tell_try(i, &t, again, now);
        let errors = self.interval.command_errors.entry(command).or_default();
        if again {
            errors.retries += 1;
            let client = &mut self.clients[i];
            client.transaction = Transaction { retries: t.retries + 1, statements: 0, last: None, ..t };
            client.actor.retry();
            return self.drive(i, now);
        }
        errors.failures += 1;
        self.fail(i, code, now)?;
        if self.plan.connect_each {
            self.hang_up(i);
        }
        self.next_transaction(i, now)
    }

    /// Counts the client's transaction as failed; the script begins anew.
    fn fail(&mut self, i: Token, code: SqlState, now: Nanos) -> Result<(), EngineError> {
        let t = std::mem::take(&mut self.clients[i].transaction);
        self.interval.count(t.script, |o| o.fail(code.0));
        self.count_retries(&t);
        self.clients[i].actor.abandon();
        self.log(i, &t, ending(code), now)
    }

    /// The script cannot go on.
    pub(super) fn script_failed(&mut self, i: Token, f: &ScriptFailure, now: Nanos) -> Result<(), EngineError> {
        if self.plan.on_error.ends_clients() {
            let client = self.first_client + i;
            if !f.message.is_empty() && f.stage != "pipeline" {
                self.say("error", i, now, f.message.clone());
            }
            let why = match f.stage {
                "pipeline" => f.message.clone(),
                stage => format!("{stage} of meta-command failed"),
            };
            let (number, name, script) = (f.number, &f.name, f.script);
            self.say(
                "error",
                i,
                now,
                format!("client {client} aborted in command {number} ({name}) of script {script}; {why}"),
            );
            return self.abort(i);
        }
        if self.plan.on_error == OnError::EndRun {
            return Err(EngineError::Script(Box::new(f.place.clone())));
        }
        self.tell_error(i, now, SqlState::SCRIPT, &f.place.to_string());
        if self.clients[i].pipeline.is_some() {
            // What was put into it may be on its way: only a new session is in a known state.
            return self.lost(i, now, "a pipeline was given up");
        }
        if self.clients[i].status != TransactionStatus::Idle {
            let command = self.clients[i].actor.here();
            return self.recover(i, SqlState::SCRIPT, command, now);
        }
        // Not at once: a script that fails before it sends anything would never leave this worker alone.
        self.fail(i, SqlState::SCRIPT, now)?;
        self.clients[i].state = State::Sleeping;
        self.set_timer(i, now);
        Ok(())
    }

    /// The script has ended inside a transaction block: nothing of it is committed, and the next would run inside it.
    pub(super) fn left_open(&mut self, i: Token, last: Option<usize>, now: Nanos) -> Result<(), EngineError> {
        if self.plan.on_error.ends_clients() {
            // pgbench counts it before it complains.
            self.complete(i, now)?;
            let why = "end of script reached without completing the last transaction";
            self.say("error", i, now, format!("client {} aborted: {why}", self.first_client + i));
            return self.abort(i);
        }
        let what = "the script ends inside a transaction block: nothing is committed";
        let command = last.unwrap_or(0);
        if self.plan.on_error == OnError::EndRun {
            self.fail(i, SqlState::ACTIVE_TRANSACTION, now)?;
            let mut place = self.workload.locate(command, what);
            place.hint = "End the block with END (or ROLLBACK).".into();
            return Err(EngineError::Script(Box::new(place)));
        }
        self.tell_error(i, now, SqlState::ACTIVE_TRANSACTION, what);
        self.recover(i, SqlState::ACTIVE_TRANSACTION, command, now)
    }

    /// The script has ended inside a pipeline.
    pub(super) fn left_in_pipeline(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        if self.plan.on_error.ends_clients() {
            let why = "end of script reached with pipeline open";
            self.say("error", i, now, format!("client {} aborted: {why}", self.first_client + i));
            return self.abort(i);
        }
        let last = self.clients[i].transaction.last.unwrap_or(0);
        let mut place = self.workload.locate(last, "the script ends inside a pipeline");
        place.hint = "End it with \\endpipeline.".into();
        Err(EngineError::Script(Box::new(place)))
    }

    /// The client ends early. Its connection is closed at once, so that it holds no locks.
    pub(super) fn abort(&mut self, i: Token) -> Result<(), EngineError> {
        let t = std::mem::take(&mut self.clients[i].transaction);
        if t.active {
            self.interval.count(t.script, |o| o.unfinished += 1);
        }
        self.interval.aborted += 1;
        self.idle.retain(|c| *c != i);
        self.finish(i);
        if self.plan.exit_on_abort { Err(EngineError::Aborted(self.number)) } else { Ok(()) }
    }
}

fn client_script(client: &Client) -> usize {
    client.transaction.script
}

fn ending(code: SqlState) -> Ending {
    match &code.0 {
        b"40001" => Ending::Serialization,
        b"40P01" => Ending::Deadlock,
        _ => Ending::Other,
    }
}

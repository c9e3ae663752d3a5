//! Transactions: begun, driven statement by statement, completed or failed.

use super::Worker;
use crate::client::{Client, State, Transaction};
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use crate::plan::{Limit, Protocol};
use pgdyno_base::Nanos;
use pgdyno_record::Phase;
use pgdyno_script::Step;
use pgdyno_wire::backend::TransactionStatus;
use pgdyno_wire::{SqlState, frontend};

impl<D: Driver> Worker<D> {
    /// Open loop: begins what is due on the clients that are free.
    pub(super) fn start_due(&mut self, now: Nanos) -> Result<(), EngineError> {
        while let (Some(arrivals), false) = (&mut self.arrivals, self.idle.is_empty()) {
            let Some(due) = arrivals.take(now) else { break };
            let Some(i) = self.idle.pop_front() else { break };
            self.begin(i, due, now);
            self.drive(i, now)?;
        }
        Ok(())
    }

    /// A client is free: gives it the next transaction, at once or when one is due.
    pub(super) fn next_transaction(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        if self.choose_next(i, now) { self.drive(i, now) } else { Ok(()) }
    }

    /// Begins the next transaction of a free client, if there is one now; else the client waits or is finished.
    pub(super) fn choose_next(&mut self, i: Token, now: Nanos) -> bool {
        self.clients[i].state = State::Idle;
        if let Limit::Transactions(n) = self.plan.limit {
            if self.clients[i].begun >= n {
                self.finish(i);
                return false;
            }
        }
        match &mut self.arrivals {
            None if self.interval.slice.phase == Phase::Drain || now >= self.origin + self.timeline.end() => {
                self.finish(i);
                false
            }
            None => {
                self.begin(i, now, now);
                true
            }
            Some(arrivals) => {
                if let Some(due) = arrivals.take(now) {
                    self.begin(i, due, now);
                    true
                } else {
                    // Also when nothing more is due: the measurement is as long as it was planned to be.
                    if self.interval.slice.phase == Phase::Drain {
                        self.finish(i);
                    } else {
                        self.idle.push_back(i);
                    }
                    false
                }
            }
        }
    }

    #[inline]
    pub(super) fn begin(&mut self, i: Token, due: Nanos, now: Nanos) {
        let client = &mut self.clients[i];
        let script = client.actor.begin(&mut self.choose);
        client.transaction = Transaction { active: true, due, script, statements: 0, last: None };
        client.begun += 1;
        self.interval.outcomes.scheduled += 1;
        if self.arrivals.is_some() {
            self.interval.lag.record(now - due);
        }
    }

    /// Lets the client's script run until it has to wait for something.
    #[inline]
    pub(super) fn drive(&mut self, i: Token, mut now: Nanos) -> Result<(), EngineError> {
        loop {
            let client = &mut self.clients[i];
            match client.actor.step() {
                Ok(Step::Send(statement)) => return self.send_statement(i, statement),
                Ok(Step::Sleep(span)) => {
                    client.state = State::Sleeping;
                    self.set_timer(i, now + span);
                    return Ok(());
                }
                Ok(Step::Done) => {
                    let last = client.transaction.last;
                    if client.status != TransactionStatus::Idle {
                        return self.left_open(i, last, now);
                    }
                    self.complete(i, now);
                    if !self.choose_next(i, now) {
                        return Ok(());
                    }
                    if last.is_none() {
                        // A script without statements would never leave this loop; let the others have their turn.
                        self.clients[i].state = State::Sleeping;
                        self.set_timer(i, now);
                        return Ok(());
                    }
                }
                Err(error) => {
                    if !self.plan.continue_on_error {
                        return Err(EngineError::Script(error));
                    }
                    now = self.driver.now();
                    self.tell_error(i, now, SqlState::SCRIPT, &error.to_string());
                    if client_is_idle(&self.clients[i]) {
                        // Not at once: a script that fails before it sends anything would never leave this worker alone.
                        self.abandon(i, SqlState::SCRIPT);
                        self.clients[i].state = State::Sleeping;
                        self.set_timer(i, now);
                        return Ok(());
                    }
                    return self.fail(i, SqlState::SCRIPT, now);
                }
            }
        }
    }

    #[inline]
    pub(super) fn send_statement(&mut self, i: Token, statement: usize) -> Result<(), EngineError> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let client = &mut self.clients[i];
        let prepare = self.plan.protocol == Protocol::Prepared && !client.prepared[statement];
        client.actor.encode(statement, self.plan.protocol, prepare, &mut out);
        client.transaction.last = Some(statement);
        let sent_at = self.driver.now();
        client.state = State::Busy { statement, sent_at };
        let put = self.put(i, &out, sent_at);
        self.out = out;
        put
    }

    #[inline]
    pub(super) fn complete(&mut self, i: Token, now: Nanos) {
        let transaction = std::mem::take(&mut self.clients[i].transaction);
        self.interval.outcomes.committed += 1;
        self.interval.statements += transaction.statements;
        self.interval.scripts[transaction.script].record(now - transaction.due);
    }

    /// The transaction has failed. Inside a block it must be rolled back before the next can begin.
    pub(super) fn fail(&mut self, i: Token, code: SqlState, now: Nanos) -> Result<(), EngineError> {
        self.abandon(i, code);
        if client_is_idle(&self.clients[i]) {
            return self.next_transaction(i, now);
        }
        self.clients[i].state = State::RollingBack;
        let mut out = Vec::new();
        frontend::query(&mut out, "ROLLBACK");
        self.put(i, &out, now)
    }

    /// The server has refused a statement, or answered COMMIT by ROLLBACK.
    pub(super) fn statement_failed(&mut self, i: Token, statement: usize, now: Nanos) -> Result<(), EngineError> {
        let answer = std::mem::take(&mut self.clients[i].answer);
        let Some((code, text)) = answer.error else {
            let code = SqlState::parse("40000");
            self.tell_error(i, now, code, "COMMIT was answered by ROLLBACK: the transaction had failed");
            return self.fail(i, code, now);
        };
        if code.is_permanent() && !self.plan.continue_on_error {
            let place = self.workload.locate(statement, &format!("the server refuses this statement: {text}"));
            self.interval.outcomes.fail(code.0);
            self.clients[i].transaction = Transaction::default();
            return Err(EngineError::Script(Box::new(place)));
        }
        self.tell_error(i, now, code, &text);
        self.fail(i, code, now)
    }

    /// Counts the client's transaction as failed; the script begins anew.
    fn abandon(&mut self, i: Token, code: SqlState) {
        self.interval.outcomes.fail(code.0);
        self.clients[i].transaction = Transaction::default();
        self.clients[i].actor.abandon();
    }

    /// The script has ended inside a transaction block: nothing of it is committed, and the next would run inside it.
    fn left_open(&mut self, i: Token, last: Option<usize>, now: Nanos) -> Result<(), EngineError> {
        let what = "the script ends inside a transaction block: nothing is committed";
        if !self.plan.continue_on_error {
            self.abandon(i, SqlState::ACTIVE_TRANSACTION);
            let mut place = self.workload.locate(last.unwrap_or(0), what);
            place.hint = "End the block with END (or ROLLBACK).".into();
            return Err(EngineError::Script(Box::new(place)));
        }
        self.tell_error(i, now, SqlState::ACTIVE_TRANSACTION, what);
        self.fail(i, SqlState::ACTIVE_TRANSACTION, now)
    }
}

/// Outside a transaction block.
fn client_is_idle(client: &Client) -> bool {
    client.status == TransactionStatus::Idle
}

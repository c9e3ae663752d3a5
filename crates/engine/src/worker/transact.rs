//! Transactions: begun, driven command by command, completed, tried again, or failed.

use super::Worker;
use crate::client::{Client, Refusal, State, Transaction};
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use crate::plan::{Limit, OnError, Protocol};
use crate::workload::{Capturing, Encoding, ScriptFailure};
use pgdyno_base::Nanos;
use pgdyno_record::log::{Ending, Entry};
use pgdyno_script::Step;
use pgdyno_wire::backend::TransactionStatus;
use pgdyno_wire::{SqlState, frontend};

impl<D: Driver> Worker<D> {
    /// Open loop: begins what is due on the clients that are free.
    pub(super) fn start_due(&mut self, now: Nanos) -> Result<(), EngineError> {
        while self.arrivals.as_ref().and_then(|a| a.peek()).is_some_and(|due| due <= now) {
            let Some(i) = self.idle.pop_front() else { break };
            self.next_transaction(i, now)?;
        }
        Ok(())
    }

    /// A client is free: gives it the next transaction, at once or when one is due.
    pub(super) fn next_transaction(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        if self.choose_next(i, now)? { self.launch(i, now) } else { Ok(()) }
    }

    /// Drives a transaction that has just begun, or connects for it.
    fn launch(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        if self.plan.connect_each { self.open(i, now) } else { self.drive(i, now) }
    }

    /// Whether the time for the measurement is over.
    pub(super) fn is_over(&self, now: Nanos) -> bool {
        self.ending || now >= self.origin + self.plan.end()
    }

    /// Begins the next transaction of a free client, if there is one now; else the client waits or is finished.
    pub(super) fn choose_next(&mut self, i: Token, now: Nanos) -> Result<bool, EngineError> {
        if self.clients[i].has_session() {
            self.clients[i].state = State::Idle;
        }
        loop {
            let all_begun = matches!(self.plan.limit, Limit::Transactions(n) if self.clients[i].begun >= n);
            let closed = self.arrivals.is_none() || !self.plan.begin_what_was_due;
            if all_begun || (closed && self.is_over(now)) {
                self.finish(i);
                return Ok(false);
            }
            let client = &mut self.clients[i];
            let script = *client.chosen.get_or_insert_with(|| client.actor.begin(&mut self.choose));
            let Some(arrivals) = &mut self.arrivals else {
                self.begin(i, script, now, now);
                return Ok(true);
            };
            let Some(due) = arrivals.take(now) else {
                // Also when nothing more is due: the measurement is as long as it was planned to be. Not so pgbench's.
                let nothing_more = !self.plan.begin_what_was_due && arrivals.peek().is_none();
                if self.ending || nothing_more {
                    self.finish(i);
                } else {
                    self.idle.push_back(i);
                }
                return Ok(false);
            };
            // Too late already: it would miss the limit even if it took no time.
            if self.plan.latency_limit.is_some_and(|limit| due + limit < now) {
                self.clients[i].begun += 1;
                self.interval.count(script, |o| {
                    o.scheduled += 1;
                    o.skipped += 1;
                });
                let skipped = Transaction { script, ..Transaction::default() };
                self.log(i, &skipped, Ending::Skipped, now)?;
                continue;
            }
            self.begin(i, script, due, now);
            return Ok(true);
        }
    }

    #[inline]
    fn begin(&mut self, i: Token, script: usize, due: Nanos, now: Nanos) {
        let client = &mut self.clients[i];
        debug_assert!(!client.transaction.active, "client {i} begins a transaction within another");
        client.chosen = None;
        client.transaction = Transaction { active: true, due, script, ..Transaction::default() };
        client.begun += 1;
        self.interval.count(script, |o| o.scheduled += 1);
        if self.is_talkative {
            let name = self.workload.scripts()[script].clone();
            self.debug(i, now, || format!("executing script \"{name}\""));
        }
        if !self.plan.connect_each {
            self.really_begin(i, now);
        }
    }

    /// The transaction's connection is there: its script begins.
    #[inline]
    pub(super) fn really_begin(&mut self, i: Token, now: Nanos) {
        let transaction = &mut self.clients[i].transaction;
        if self.arrivals.is_some() {
            transaction.lag = now - transaction.due;
            self.interval.lag.record(transaction.lag);
        } else {
            transaction.due = now;
        }
    }

    /// Lets the client's script run until it has to wait for something.
    #[inline]
    pub(super) fn drive(&mut self, i: Token, mut now: Nanos) -> Result<(), EngineError> {
        loop {
            let client = &mut self.clients[i];
            let step = client.actor.step();
            if self.is_classic {
                self.show_debug(i, now);
            }
            let client = &mut self.clients[i];
            match step {
                Ok(Step::Send(command)) if client.pipeline.is_some() => {
                    if let Err(failure) = self.enqueue(i, command)? {
                        return self.script_failed(i, &failure, now);
                    }
                }
                Ok(Step::Send(command)) => return self.send_statement(i, command),
                Ok(Step::Mark(command)) => {
                    now = self.driver.now();
                    self.end_mark(i, now);
                    self.clients[i].marked = Some((command, now));
                    if self.is_talkative {
                        let info = &self.workload.commands()[command];
                        let (is_sql, text) = (info.is_sql, info.text.clone());
                        if !is_sql {
                            self.debug(i, now, || format!("executing {text}"));
                        }
                    }
                }
                Ok(Step::Sleep(span)) => {
                    client.state = State::Sleeping;
                    self.set_timer(i, now + span);
                    return Ok(());
                }
                Ok(Step::Shell(n)) => {
                    let done = client.actor.shell(n);
                    now = self.driver.now();
                    if let Err(failure) = done {
                        return self.script_failed(i, &failure, now);
                    }
                }
                Ok(Step::StartPipeline { first, end }) => match self.start_pipeline(i, first, end, now)? {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(failure) => return self.script_failed(i, &failure, now),
                },
                Ok(Step::SyncPipeline) => {
                    if let Err(failure) = self.sync_pipeline(i) {
                        return self.script_failed(i, &failure, now);
                    }
                }
                Ok(Step::EndPipeline) => match self.end_pipeline(i)? {
                    Ok(()) => return Ok(()),
                    Err(failure) => return self.script_failed(i, &failure, now),
                },
                Ok(Step::Done) => {
                    self.end_mark(i, now);
                    let client = &self.clients[i];
                    let last = client.transaction.last;
                    if client.pipeline.is_some() {
                        return self.left_in_pipeline(i, now);
                    }
                    if client.status != TransactionStatus::Idle {
                        return self.left_open(i, last, now);
                    }
                    self.complete(i, now)?;
                    if self.plan.connect_each {
                        self.hang_up(i);
                    }
                    if last.is_none() {
                        // A script without statements would never leave this loop; let the others have their turn, also
                        // in choosing.
                        self.clients[i].state = State::Sleeping;
                        self.set_timer(i, now);
                        return Ok(());
                    }
                    if !self.choose_next(i, now)? {
                        return Ok(());
                    }
                    if self.plan.connect_each {
                        return self.open(i, now);
                    }
                }
                Err(failure) => {
                    now = self.driver.now();
                    return self.script_failed(i, &failure, now);
                }
            }
        }
    }

    /// A meta-command that was timed is over.
    #[inline]
    fn end_mark(&mut self, i: Token, now: Nanos) {
        if let Some((command, since)) = self.clients[i].marked.take() {
            self.interval.command_latency[command].record(now - since);
        }
    }

    #[inline]
    pub(super) fn send_statement(&mut self, i: Token, command: usize) -> Result<(), EngineError> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let client = &mut self.clients[i];
        let capture = self.captures && self.workload.commands()[command].capture != Capturing::Nothing;
        let protocol = self.plan.protocol;
        let how = Encoding {
            protocol,
            prepare: protocol == Protocol::Prepared && !client.prepared[command],
            sync: true,
            describe: capture,
        };
        client.actor.encode(command, how, &mut out);
        client.captured = capture.then(Box::default);
        client.transaction.last = Some(command);
        // The statement is timed from here, not from its mark.
        client.marked = None;
        let sent_at = self.driver.now();
        client.state = State::Busy { command, sent_at };
        if self.is_talkative {
            let sent = self.clients[i].actor.sent(command, protocol);
            if how.prepare {
                self.debug(i, sent_at, || format!("preparing {sent}"));
            }
            self.debug(i, sent_at, || format!("sending {sent}"));
            self.debug(i, sent_at, || "receiving".into());
        }
        let put = self.put(i, &out, sent_at);
        self.out = out;
        put
    }

    #[inline]
    pub(super) fn complete(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        let t = std::mem::take(&mut self.clients[i].transaction);
        self.interval.count(t.script, |o| o.committed += 1);
        self.interval.statements += t.statements;
        let latency = now - t.due;
        self.interval.scripts[t.script].record(latency);
        if self.plan.latency_limit.is_some_and(|limit| latency > limit) {
            self.interval.late += 1;
        }
        self.count_retries(&t);
        self.log(i, &t, Ending::Committed, now)
    }

    fn count_retries(&mut self, t: &Transaction) {
        if t.retries > 0 {
            self.interval.count(t.script, |o| {
                o.retried += 1;
                o.retries += t.retries;
            });
        }
    }

    fn log(&mut self, i: Token, t: &Transaction, ending: Ending, now: Nanos) -> Result<(), EngineError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let entry = Entry {
            client: self.first_client + i,
            // Counted when they begin, so the one at hand is the last.
            number: self.clients[i].begun,
            script: t.script,
            ending,
            latency: if ending == Ending::Committed { now - t.due } else { Nanos::ZERO },
            lag: t.lag,
            retries: t.retries,
            at: now + self.wall_offset,
        };
        log.add(&entry).map_err(|e| EngineError::System(format!("cannot write the transaction log: {e}")))
    }

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
            return self.abort(i, now);
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
            return self.abort(i, now);
        }
        if self.plan.on_error == OnError::EndRun {
            return Err(EngineError::Script(Box::new(f.place.clone())));
        }
        self.tell_error(i, now, SqlState::SCRIPT, &f.place.to_string());
        self.clients[i].pipeline = None;
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
    fn left_open(&mut self, i: Token, last: Option<usize>, now: Nanos) -> Result<(), EngineError> {
        if self.plan.on_error.ends_clients() {
            // pgbench counts it before it complains.
            self.complete(i, now)?;
            let why = "end of script reached without completing the last transaction";
            self.say("error", i, now, format!("client {} aborted: {why}", self.first_client + i));
            return self.abort(i, now);
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
    fn left_in_pipeline(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        if self.plan.on_error.ends_clients() {
            let why = "end of script reached with pipeline open";
            self.say("error", i, now, format!("client {} aborted: {why}", self.first_client + i));
            return self.abort(i, now);
        }
        let last = self.clients[i].transaction.last.unwrap_or(0);
        let mut place = self.workload.locate(last, "the script ends inside a pipeline");
        place.hint = "End it with \\endpipeline.".into();
        Err(EngineError::Script(Box::new(place)))
    }

    /// The client ends early. Its connection is closed at once, so that it holds no locks.
    pub(super) fn abort(&mut self, i: Token, _now: Nanos) -> Result<(), EngineError> {
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

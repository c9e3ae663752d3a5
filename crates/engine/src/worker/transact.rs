//! Transactions: begun, driven command by command, completed.

use super::Worker;
use crate::client::{State, Transaction};
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use crate::plan::{Limit, Protocol};
use crate::workload::{Capturing, Encoding};
use pgdyno_base::Nanos;
use pgdyno_record::log::{Ending, Entry};
use pgdyno_script::Step;
use pgdyno_wire::backend::TransactionStatus;

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
                    // A large pipeline is sent in parts, and a part may find the connection gone.
                    if !self.clients[i].has_session() {
                        return Ok(());
                    }
                }
                Ok(Step::Send(command)) => return self.send_statement(i, command),
                Ok(Step::Mark(command)) => {
                    now = self.driver.now();
                    self.end_mark(i, now);
                    self.clients[i].marked = Some((command, now));
                    if self.is_talkative {
                        self.debug_command(i, command, now);
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
        if let (Some((command, since)), true) = (self.clients[i].marked.take(), self.plan.command_latency) {
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

    pub(super) fn count_retries(&mut self, t: &Transaction) {
        if t.retries > 0 {
            self.interval.count(t.script, |o| {
                o.retried += 1;
                o.retries += t.retries;
            });
        }
    }

    pub(super) fn log(&mut self, i: Token, t: &Transaction, ending: Ending, now: Nanos) -> Result<(), EngineError> {
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
}

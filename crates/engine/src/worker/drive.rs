//! Transactions: begun, driven step by step, completed.

use super::{Worker, ask_policy};
use crate::client::{State, Transaction};
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use crate::events::EventKind;
use crate::plan::Voice;
use crate::worker::turns::Turn;
use crate::workload::{Awaited, Failure, Requests, Settled, Step};
use pgdyno_base::Nanos;
use pgdyno_protocol::{Conversation, Dialect, TransactionStatus};

/// Pipeline size from which on requests are sent at once, bytes, as in libpq.
const FLUSH_AT: usize = 64 * 1024;

impl<P: Dialect, D: Driver> Worker<P, D> {
    /// Open loop: begins what is due on the clients that are free.
    pub(super) fn start_due(&mut self, now: Nanos) -> Result<(), EngineError> {
        while let Some(i) = self.turns.take_free(now) {
            self.next_transaction(i, now)?;
        }
        Ok(())
    }

    /// A client is free: gives it the next transaction, at once or when one is due.
    pub(super) fn next_transaction(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        if !self.choose_next(i, now)? {
            return Ok(());
        }
        if self.plan.connect_each { self.open(i, now) } else { self.drive(i, now) }
    }

    /// Returns true if the time for the measurement is over, or if the run is ending early.
    pub(super) fn is_over(&self, now: Nanos) -> bool {
        self.stage.ending || now >= self.tally.origin + self.plan.end()
    }

    /// Begins the next transaction of a free client, if there is one now; else the client waits or is finished.
    fn choose_next(&mut self, i: Token, now: Nanos) -> Result<bool, EngineError> {
        if self.clients[i].has_session() {
            self.clients[i].state = State::Idle;
        }
        if !self.turns.is_open() && !self.is_over(now) {
            let rest = self.clients[i].actor.rest(now);
            if rest > Nanos::ZERO {
                self.clients[i].state = State::Sleeping;
                self.set_timer(i, now + rest);
                return Ok(false);
            }
        }
        loop {
            let (is_over, ending) = (self.is_over(now), self.stage.ending);
            match self.turns.next(&self.plan, i, &mut self.clients[i], now, is_over, ending) {
                Turn::Begin { script, due } => {
                    self.begin(i, script, due, now);
                    return Ok(true);
                }
                Turn::Skip { script } => {
                    self.clients[i].begun += 1;
                    self.tally.skipped(self.who(i), script, now)?;
                }
                Turn::Wait => return Ok(false),
                Turn::Finish => {
                    self.finish(i);
                    return Ok(false);
                }
            }
        }
    }

    #[inline]
    fn begin(&mut self, i: Token, script: usize, due: Nanos, now: Nanos) {
        let client = &mut self.clients[i];
        debug_assert!(!client.transaction.active, "client {i} begins a transaction within another");
        client.chosen = None;
        client.transaction = Transaction { active: true, due, script, ..Transaction::default() };
        client.begun += 1;
        client.connection.conversation.forget_commits();
        self.tally.scheduled(script);
        if self.is_talkative() {
            let name = self.workload.scripts()[script].clone();
            self.debug(i, now, &format!("executing script \"{name}\""));
        }
        if !self.plan.connect_each {
            self.really_begin(i, now);
        }
    }

    /// The transaction's connection is there: its script begins.
    #[inline]
    pub(super) fn really_begin(&mut self, i: Token, now: Nanos) {
        let transaction = &mut self.clients[i].transaction;
        if self.turns.is_open() {
            transaction.lag = now - transaction.due;
            self.tally.lagged(transaction.lag);
        } else {
            transaction.due = now;
        }
    }

    /// One step of the client's actor, which writes its requests to `out`; or the last one `again`.
    #[inline]
    fn step(&mut self, i: Token, out: &mut Vec<u8>, now: Nanos, again: bool) -> Result<Step, Box<Failure>> {
        let client = &mut self.clients[i];
        let mut requests = Requests {
            conversation: &mut client.connection.conversation,
            out,
            prepared: &client.connection.prepared,
            protocol: self.plan.protocol,
            now,
            timed: client.marked.is_none(),
            shown: &mut self.shown,
            written: &mut self.written,
            last: client.transaction.last,
            dry_run: false,
        };
        let step = if again { client.actor.again(&mut requests) } else { client.actor.step(&mut requests) };
        client.transaction.last = requests.last;
        step
    }

    /// Lets the client's actor go on until it has to wait for something.
    #[inline]
    pub(super) fn drive(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        self.drive_from(i, now, false)
    }

    /// Repeats the client's last step, then continues like `drive`. The step writes its requests again, but does not
    /// prepare statements again that were prepared in the meantime.
    pub(super) fn drive_again(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        self.drive_from(i, now, true)
    }

    #[inline]
    fn drive_from(&mut self, i: Token, mut now: Nanos, again: bool) -> Result<(), EngineError> {
        let mut out = std::mem::take(&mut self.sockets.out);
        out.clear();
        if !self.clients[i].connection.held.is_empty() {
            out.append(&mut self.clients[i].connection.held);
        }
        let result = self.drive_with(i, &mut out, &mut now, again);
        self.sockets.out = out;
        result
    }

    fn drive_with(&mut self, i: Token, out: &mut Vec<u8>, now: &mut Nanos, mut again: bool) -> Result<(), EngineError> {
        loop {
            let step = self.step(i, out, *now, std::mem::take(&mut again));
            if !self.shown.is_empty() {
                self.show(i, *now);
            }
            match step {
                Ok(Step::Wait { command, what }) => {
                    // The statement is timed from here, not from its mark.
                    let sent_at = self.sockets.now();
                    if what == Awaited::Statement {
                        self.clients[i].marked = None;
                    }
                    self.clients[i].state = State::Busy { command, sent_at };
                    if let Some(patience) = self.plan.answer_timeout {
                        self.set_timer(i, sent_at + patience);
                    }
                    self.show_written(i, sent_at, Some(what));
                    return self.send(i, out);
                }
                Ok(Step::Again) => {
                    *now = self.sockets.now();
                    self.show_written(i, *now, None);
                    if out.len() >= FLUSH_AT {
                        self.send(i, out)?;
                        out.clear();
                        // A part may find the connection gone.
                        if !self.clients[i].transaction.active || !self.clients[i].has_session() {
                            return Ok(());
                        }
                    }
                }
                Ok(Step::Mark(command)) => {
                    *now = self.sockets.now();
                    self.end_mark(i, *now);
                    self.clients[i].marked = Some((command, *now));
                    self.show_command(i, command, *now);
                }
                Ok(Step::Sleep(span)) => {
                    let client = &mut self.clients[i];
                    client.connection.held.append(out);
                    client.state = State::Sleeping;
                    self.set_timer(i, *now + span);
                    return Ok(());
                }
                Ok(Step::Done) => {
                    let sent_nothing = self.clients[i].transaction.last.is_none();
                    if sent_nothing {
                        // It took as long as its own commands took.
                        *now = self.sockets.now();
                    }
                    if !self.done(i, *now)? {
                        return Ok(());
                    }
                    if sent_nothing {
                        // A script without statements would never leave this loop; let the others have their turn, also
                        // in choosing.
                        self.clients[i].state = State::Sleeping;
                        self.set_timer(i, *now);
                        return Ok(());
                    }
                    if !self.choose_next(i, *now)? {
                        return Ok(());
                    }
                    if self.plan.connect_each {
                        return self.open(i, *now);
                    }
                }
                Err(failure) => {
                    *now = self.sockets.now();
                    // What was put into a pipeline was never sent.
                    let unsent = !out.is_empty();
                    out.clear();
                    self.written.clear();
                    if unsent {
                        self.clients[i].connection.held.clear();
                    }
                    return self.script_failed(i, &failure, *now);
                }
            }
        }
    }

    /// The client's script has ended. False: it has no transaction behind it that is done.
    #[inline]
    fn done(&mut self, i: Token, now: Nanos) -> Result<bool, EngineError> {
        self.end_mark(i, now);
        let client = &mut self.clients[i];
        if client.connection.conversation.status() != TransactionStatus::Idle {
            let command = client.transaction.last.unwrap_or(0);
            let decision = ask_policy!(self, i, now, left_open, command);
            self.carry_out(i, command, decision, now)?;
            return Ok(false);
        }
        let t = std::mem::take(&mut client.transaction);
        self.settled(i, Settled::Committed)?;
        self.tally.committed(self.who(i), &t, now)?;
        if self.plan.connect_each {
            self.hang_up(i);
        }
        Ok(true)
    }

    /// A meta-command that was timed is over.
    #[inline]
    fn end_mark(&mut self, i: Token, now: Nanos) {
        if let Some((command, since)) = self.clients[i].marked.take() {
            self.tally.command(command, now - since);
        }
    }

    /// Sends what the client has asked.
    #[inline]
    pub(super) fn send(&mut self, i: Token, out: &[u8]) -> Result<(), EngineError> {
        match self.sockets.send(i, &mut self.clients[i].connection, out) {
            Ok(()) => Ok(()),
            Err(reason) => self.broken(i, &reason),
        }
    }

    /// Sends bytes as they are.
    pub(super) fn send_raw(&mut self, i: Token, bytes: &[u8]) -> Result<(), EngineError> {
        match self.sockets.send_raw(i, &mut self.clients[i].connection, bytes) {
            Ok(()) => Ok(()),
            Err(reason) => self.broken(i, &reason),
        }
    }

    // ------------------------------------------------------------ what pgbench's voice tells

    fn is_talkative(&self) -> bool {
        matches!(self.plan.voice, Voice::Pgbench { debug: true, .. })
    }

    pub(super) fn debug(&mut self, i: Token, now: Nanos, text: &str) {
        if self.is_talkative() {
            let client = self.first_client + i;
            self.events.say(EventKind::Debug, client, now, format!("client {client} {text}"));
        }
    }

    /// Reports the lines that the actor wants to show.
    fn show(&mut self, i: Token, now: Nanos) {
        for line in std::mem::take(&mut self.shown) {
            self.events.say(EventKind::Output, self.first_client + i, now, line);
        }
    }

    /// Reports, as debug messages, the requests that were written and the wait for their answers.
    #[inline]
    fn show_written(&mut self, i: Token, now: Nanos, what: Option<Awaited>) {
        if self.is_talkative() && what != Some(Awaited::Preparation) {
            for (command, prepares) in std::mem::take(&mut self.written) {
                let script = self.clients[i].actor.as_script();
                let sent = script.map_or_else(String::new, |s| s.sent(command, self.plan.protocol));
                if prepares {
                    self.debug(i, now, &format!("preparing {sent}"));
                }
                self.debug(i, now, &format!("sending {sent}"));
            }
            if what.is_some() {
                self.debug(i, now, "receiving");
            }
        }
        self.written.clear();
    }

    /// A meta-command begins: its words, but for expressions.
    fn show_command(&mut self, i: Token, command: usize, now: Nanos) {
        let info = &self.workload.commands()[command];
        if info.is_sql || !self.is_talkative() {
            return;
        }
        let words = match info.name.to_ascii_lowercase().as_str() {
            "set" => 2,
            "if" | "elif" => 1,
            _ => usize::MAX,
        };
        let shown: Vec<&str> = info.text.split_ascii_whitespace().take(words).collect();
        let shown = format!("executing {}", shown.join(" "));
        self.debug(i, now, &shown);
    }
}

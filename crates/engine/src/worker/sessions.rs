//! From no connection to a session, and what a lost connection means.

use super::{STOP_CHECK, Worker, ask_policy};
use crate::client::{Client, State};
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use crate::events::EventKind;
use crate::policy::Decision;
use crate::workload::{Label, Requests, Settled, Step};
use pgdyno_base::Nanos;
use pgdyno_protocol::{Conversation, Dialect, Event, Fate, ProtocolError, Refusal, SessionInfo, SqlState, Target};
use std::sync::atomic::Ordering;

impl<P: Dialect, D: Driver> Worker<P, D> {
    /// Connects all clients. The first failure is the result.
    pub fn connect(&mut self) -> Result<(), EngineError> {
        if self.plan.connect_each {
            self.reach.waiting.clear();
            return Ok(());
        }
        let mut events = Vec::new();
        loop {
            let now = self.sockets.now();
            self.connect_more(now)?;
            if self.clients.iter().all(Client::is_online) || self.stop.load(Ordering::Relaxed) != 0 {
                return Ok(());
            }
            let timer = self.timers.next().unwrap_or(Nanos::MAX);
            let until = Nanos(timer.0.min((now + STOP_CHECK).0));
            self.wait(now, until, &mut events)?;
            for event in &events {
                self.handle(*event)?;
            }
            self.fire_timers()?;
        }
    }

    pub(super) fn connect_more(&mut self, now: Nanos) -> Result<(), EngineError> {
        while let Some(i) = self.reach.next() {
            if self.clients[i].state == State::Offline {
                self.open(i, now)?;
            }
        }
        Ok(())
    }

    pub(super) fn set_timer(&mut self, i: Token, at: Nanos) {
        self.timers.set(&mut self.clients, i, at);
    }

    pub(super) fn open(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        let client = &mut self.clients[i];
        client.address = client.first_address + client.failures as usize;
        let Some(address) = self.reach.address(i, client.address) else {
            return Err(self.reach.cannot_connect(
                i,
                self.clients[i].address,
                format!("{} has no address", self.reach.config(i).endpoint()),
            ));
        };
        match self.sockets.driver.connect(i, &address) {
            Ok(()) => {
                self.reach.connecting += 1;
                client.state = State::Connecting;
                client.connecting_since = now;
                self.set_timer(i, now + self.plan.connect_timeout);
                Ok(())
            }
            // The listen queue of a Unix-domain socket is full: the server is slower than we are. Come back soon.
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                self.set_timer(i, now + Nanos::from_millis(2));
                Ok(())
            }
            Err(e) => self.connect_failed(i, now, self.reach.refused(i, self.clients[i].address, &e)),
        }
    }

    /// An attempt is over, without a session.
    pub(super) fn connect_failed(&mut self, i: Token, now: Nanos, error: EngineError) -> Result<(), EngineError> {
        self.sockets.driver.close(i);
        if matches!(self.clients[i].state, State::Connecting | State::Beginning) {
            self.reach.connecting -= 1;
        }
        let refused_by_server =
            matches!(&error, EngineError::Session { error: ProtocolError::Server(_) | ProtocolError::Tls(_), .. });
        let attempts = self.reach.config(i).attempts().len();
        let client = &mut self.clients[i];
        client.disconnect();
        // sslmode prefer and allow: the other way is tried at once.
        if refused_by_server && client.attempt + 1 < attempts {
            client.attempt += 1;
            return self.open(i, now);
        }
        client.attempt = 0;
        client.failures += 1;
        let (failures, addresses) = (client.failures as usize, self.reach.addresses(i));
        // Before the run, and for a transaction's own connection, each address of the host is tried once.
        if (!self.stage.running || self.plan.connect_each) && failures < addresses {
            return self.open(i, now);
        }
        // Within it the addresses of a cluster's members are tried one after the other, with a pause behind the last.
        if self.stage.running && !self.stage.ending && self.reach.config(i).wants_writes() && failures % addresses != 0
        {
            self.set_timer(i, now);
            return Ok(());
        }
        if !self.stage.running {
            ask_policy!(self, i, now, cannot_begin, &error);
            return Err(error);
        }
        if let Decision::EndClient = ask_policy!(self, i, now, unreachable, &error) {
            return self.abort(i);
        }
        if self.stage.ending {
            self.finish(i);
            return Ok(());
        }
        if failures == if self.reach.config(i).wants_writes() { addresses } else { 1 } {
            self.events.happened(EventKind::ConnectFailed, self.first_client + i, now, error.to_string());
        }
        self.back_off(i, now);
        Ok(())
    }

    fn back_off(&mut self, i: Token, now: Nanos) {
        let pause = self.reach.pause(i, &self.clients[i], self.plan.longest_pause);
        self.set_timer(i, now + pause);
    }

    /// The socket is connected, or not.
    pub(super) fn begin_session(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        if let Err(e) = self.sockets.driver.connected(i) {
            let error = self.reach.refused(i, self.clients[i].address, &e);
            return self.connect_failed(i, now, error);
        }
        let config = self.reach.config(i).clone();
        let attempts = config.attempts();
        let attempt = attempts[self.clients[i].attempt.min(attempts.len() - 1)];
        let mut out = Vec::new();
        match P::Conversation::<Label>::start(config, attempt, &mut out) {
            Ok(mut conversation) => {
                conversation.read_notices(self.events.is_classic() || self.workload.reads_notices());
                self.clients[i].connection.conversation = conversation;
                self.clients[i].state = State::Beginning;
                self.send_raw(i, &out)
            }
            Err(e) => self.no_session(i, now, e),
        }
    }

    /// The server, or what it says, does not let a session begin.
    pub(super) fn no_session(&mut self, i: Token, now: Nanos, error: ProtocolError) -> Result<(), EngineError> {
        let endpoint = self.reach.config(i).endpoint();
        let classic = endpoint.classic_failure(&match &error {
            ProtocolError::Server(e) => e.classic(None),
            other => other.to_string(),
        });
        let endpoint = endpoint.to_string();
        self.connect_failed(i, now, EngineError::Session { endpoint, error, classic })
    }

    /// The session has begun.
    pub(super) fn session_began(&mut self, i: Token, info: &SessionInfo, now: Nanos) -> Result<(), EngineError> {
        if self.reach.config(i).wants_writes() && info.read_only {
            let error =
                self.reach.cannot_connect(i, self.clients[i].address, "the session is read-only: a standby?".into());
            return self.connect_failed(i, now, error);
        }
        self.reach.connecting -= 1;
        let client = &mut self.clients[i];
        client.state = State::Idle;
        client.timer += 1;
        client.failures = 0;
        client.first_address = client.address;
        client.attempt = 0;
        client.connection.backend = (info.process, info.secret.clone());
        client.connection.encrypted = info.encrypted;
        if self.stage.running {
            self.tally.interval.connect.record(now - client.connecting_since);
        }
        if self.plan.connect_each {
            // The connection of one transaction is there.
            if !client.transaction.active {
                return self.next_transaction(i, now);
            }
            self.really_begin(i, now);
            return self.drive(i, now);
        }
        if std::mem::replace(&mut client.was_connected, true) && self.stage.running {
            self.tally.interval.reconnects += 1;
            let text = format!("connected again to {}", self.reach.place(i, self.clients[i].address));
            self.events.happened(EventKind::Reconnected, self.first_client + i, now, text);
        }
        if self.stage.running { self.next_transaction(i, now) } else { Ok(()) }
    }

    /// The connection cannot be written to. The answer that says why (a FATAL error) may still be in the socket.
    pub(super) fn broken(&mut self, i: Token, reason: &str) -> Result<(), EngineError> {
        let now = self.sockets.now();
        if !self.stage.running {
            return self.lost(i, now, reason);
        }
        let mut buffer = [0u8; 4096];
        let (mut plain, mut reply) = (Vec::new(), Vec::new());
        if let Ok(Some(n)) = self.sockets.driver.recv(i, &mut buffer) {
            let client = &mut self.clients[i];
            if let Ok(mut rest) = client.connection.conversation.open(&buffer[..n], &mut plain, &mut reply) {
                while let Ok(Some(event)) = client.connection.conversation.next(&mut rest, &mut reply) {
                    if let Event::Refused(refusal) = event {
                        client.refusal.get_or_insert(refusal);
                    }
                }
            }
        }
        self.lost(i, now, "the server closed the connection")
    }

    /// The server does not keep to the protocol: whatever it said, it is not believed any further.
    pub(super) fn violated(&mut self, i: Token, now: Nanos, error: ProtocolError) -> Result<(), EngineError> {
        if self.clients[i].state == State::Beginning {
            return self.no_session(i, now, error);
        }
        if !matches!(error, ProtocolError::Protocol(_)) {
            return self.lost(i, now, &error.to_string());
        }
        self.tally.interval.violations += 1;
        self.lose(i, now, EventKind::ProtocolViolation, SqlState::PROTOCOL_VIOLATION, &error.to_string())
    }

    /// The connection is gone. Decides what became of the transaction, and comes back later.
    pub(super) fn lost(&mut self, i: Token, now: Nanos, reason: &str) -> Result<(), EngineError> {
        self.lose(i, now, EventKind::ConnectionLost, SqlState::CONNECTION_FAILURE, reason)
    }

    fn lose(&mut self, i: Token, now: Nanos, kind: EventKind, code: SqlState, reason: &str) -> Result<(), EngineError> {
        if matches!(self.clients[i].state, State::Connecting | State::Beginning) {
            let why = match self.clients[i].state {
                State::Beginning => format!("{reason} before the session began"),
                _ => reason.to_owned(),
            };
            return self.connect_failed(i, now, self.reach.cannot_connect(i, self.clients[i].address, why));
        }
        self.sockets.driver.close(i);
        let ends_client = self.policy.loss_ends_client(&self.plan);
        let client = &mut self.clients[i];
        if matches!(client.state, State::Finished | State::Offline) {
            return Ok(());
        }
        let said = client.refusal.take();
        let here = match client.state {
            State::Busy { command, .. } => Some(command),
            _ => client.transaction.last,
        };
        let here = here.unwrap_or_else(|| client.actor.here());
        if client.transaction.active {
            let code = said.as_ref().map_or(code, |refusal| refusal.error.state());
            self.settle_lost(i, code, ends_client, now)?;
        }
        // While the client's connection is still known: what pgbench says of it depends on what was prepared.
        if ends_client && self.stage.running {
            let said: Option<&Refusal<Label>> = said.as_deref();
            ask_policy!(self, i, now, lost, here, said, reason);
        }
        self.clients[i].disconnect();
        self.turns.forget(i);
        if !self.stage.running {
            return Err(self.reach.cannot_connect(i, self.clients[i].address, reason.to_owned()));
        }
        self.tally.interval.lost += 1;
        if ends_client {
            return self.abort(i);
        }
        self.events.happened(kind, self.first_client + i, now, reason.to_owned());
        if !self.plan.reconnect {
            return Err(EngineError::Lost(format!(
                "the connection of client {} to {} was lost: {reason}",
                self.first_client + i,
                self.reach.config(i).endpoint()
            )));
        }
        if self.stage.ending {
            self.finish(i);
        } else {
            self.back_off(i, now);
        }
        Ok(())
    }

    /// Settles the transaction whose connection was lost. The outcome depends on the requests that were sent and the
    /// answers that arrived.
    fn settle_lost(&mut self, i: Token, code: SqlState, ends_client: bool, now: Nanos) -> Result<(), EngineError> {
        let fate = self.clients[i].connection.conversation.fate();
        // The commit was confirmed, and nothing is left to be done but to wait for ReadyForQuery, or to think.
        if fate == Fate::Committed && self.is_at_its_end(i) {
            let client = &mut self.clients[i];
            let t = std::mem::take(&mut client.transaction);
            self.settled(i, Settled::Committed)?;
            self.clients[i].actor.abandon();
            return self.tally.committed(self.who(i), &t, now);
        }
        self.settled_by_fate(i)?;
        let client = &mut self.clients[i];
        let t = std::mem::take(&mut client.transaction);
        client.actor.abandon();
        let code = t.error.map_or(code, |(code, _)| code);
        let who = self.who(i);
        match fate {
            // Nobody but the server knows; a pipeline may hold any number of commits. Of a script that commits several times,
            // a part is done.
            Fate::Unknown | Fate::Committed if ends_client => {
                self.tally.interval.count(t.script, |o| o.unknown += 1);
                Ok(())
            }
            Fate::Unknown | Fate::Committed => self.tally.unknown(who, &t, now),
            Fate::Nothing if ends_client => {
                self.tally.unfinished(&t);
                Ok(())
            }
            Fate::Nothing => self.tally.failed(who, &t, code, now),
        }
    }

    /// Tells the actor what became of its transaction, whose connection is lost or given up.
    pub(super) fn settled_by_fate(&mut self, i: Token) -> Result<(), EngineError> {
        let outcome = match self.clients[i].connection.conversation.fate() {
            Fate::Nothing => Settled::Failed,
            Fate::Unknown | Fate::Committed => Settled::Unknown,
        };
        self.settled(i, outcome)
    }

    /// Tells the actor what became of its transaction.
    pub(super) fn settled(&mut self, i: Token, outcome: Settled) -> Result<(), EngineError> {
        self.clients[i].actor.settled(outcome).map_err(|e| EngineError::System(e.to_string()))
    }

    /// Returns true if the client's transaction has nothing left to send.
    fn is_at_its_end(&mut self, i: Token) -> bool {
        let client = &mut self.clients[i];
        if client.refusal.is_some() || client.undone || !matches!(client.state, State::Busy { .. } | State::Sleeping) {
            return false;
        }
        loop {
            let (mut conversation, mut out) = (P::Conversation::<Label>::default(), Vec::new());
            let mut requests = Requests {
                conversation: &mut conversation,
                out: &mut out,
                prepared: &client.connection.prepared,
                protocol: self.plan.protocol,
                now: Nanos::ZERO,
                timed: false,
                shown: &mut self.shown,
                written: &mut self.written,
                last: None,
                dry_run: true,
            };
            let step = client.actor.step(&mut requests);
            self.shown.clear();
            self.written.clear();
            match step {
                // Time to think is not waited for; a shell command is not carried out for this, and is something left to do.
                Ok(Step::Mark(_) | Step::Sleep(_)) if out.is_empty() => {}
                step => return matches!(step, Ok(Step::Done)) && out.is_empty(),
            }
        }
    }

    /// Ends a session in order.
    pub(super) fn hang_up(&mut self, i: Token) {
        let mut out = Vec::new();
        self.clients[i].connection.conversation.goodbye(&mut out);
        // Whether the server hears it is no concern of ours.
        let _ = self.sockets.send(i, &mut self.clients[i].connection, &out);
        self.sockets.driver.close(i);
        self.clients[i].disconnect();
    }
}

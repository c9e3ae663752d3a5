//! From no connection to a session, and what a lost connection means.

use super::{CONNECTING, MAX_BACKOFF, MIN_BACKOFF, STOP_CHECK, Worker};
use crate::client::{Answer, Client, State};
use crate::driver::{Address, Driver, Token};
use crate::error::EngineError;
use crate::workload::StatementEffect;
use pgdyno_base::Nanos;
use pgdyno_record::log::Ending;
use pgdyno_wire::backend::TransactionStatus;
use pgdyno_wire::handshake::Attempt;
use pgdyno_wire::{Config, Endpoint, Handshake, Progress, SqlState, WireError, frontend};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<D: Driver> Worker<D> {
    /// Connects all clients. The first failure is the result.
    pub fn connect(&mut self) -> Result<(), EngineError> {
        if self.plan.connect_each {
            self.to_connect.clear();
            return Ok(());
        }
        let mut events = Vec::new();
        loop {
            let now = self.driver.now();
            self.connect_more(now)?;
            if self.clients.iter().all(Client::is_online) || self.stop.load(Ordering::Relaxed) != 0 {
                return Ok(());
            }
            let timer = self.timers.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at);
            let until = Nanos(timer.0.min((now + STOP_CHECK).0));
            events.clear();
            self.driver
                .wait(now, until, &mut events)
                .map_err(|e| EngineError::System(format!("waiting failed: {e}")))?;
            for event in &events {
                self.handle(*event)?;
            }
            self.fire_timers()?;
        }
    }

    pub(super) fn connect_more(&mut self, now: Nanos) -> Result<(), EngineError> {
        while self.connecting < CONNECTING {
            let Some(i) = self.to_connect.pop_front() else { break };
            if matches!(self.clients[i].state, State::Offline) {
                self.open(i, now)?;
            }
        }
        Ok(())
    }

    pub(super) fn open(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        self.clients[i].address = self.clients[i].first_address + self.clients[i].failures as usize;
        let Some(address) = self.address(i, self.clients[i].address) else {
            return Err(self.cannot_connect(i, format!("{} has no address", self.config(i).endpoint)));
        };
        match self.driver.connect(i, &address) {
            Ok(()) => {
                self.connecting += 1;
                self.clients[i].state = State::Connecting;
                self.clients[i].connecting_since = now;
                self.set_timer(i, now + self.plan.connect_timeout);
                Ok(())
            }
            // The listen queue of a Unix-domain socket is full: the server is slower than we are. Come back soon.
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                self.set_timer(i, now + Nanos::from_millis(2));
                Ok(())
            }
            Err(e) => self.connect_failed(i, now, self.cannot_connect(i, e.to_string())),
        }
    }

    /// The server's address; of a host with several, the `n`th, in turn.
    pub(super) fn address(&self, i: Token, n: usize) -> Option<Address> {
        match &self.config(i).endpoint {
            Endpoint::Unix(path) => Some(Address::Unix(path.clone())),
            Endpoint::Tcp { addresses, .. } => Some(Address::Tcp(*addresses.get(n % addresses.len().max(1))?)),
        }
    }

    /// The target of a client: clients are spread over the targets in turn.
    pub(super) fn config(&self, i: Token) -> &Arc<Config> {
        &self.configs[(self.first_client + i) % self.configs.len()]
    }

    pub(super) fn cannot_connect(&self, i: Token, reason: String) -> EngineError {
        let endpoint = &self.config(i).endpoint;
        EngineError::Connect { endpoint: endpoint.to_string(), classic: endpoint.classic_failure(&reason), reason }
    }

    /// An attempt is over, without a session.
    pub(super) fn connect_failed(&mut self, i: Token, now: Nanos, error: EngineError) -> Result<(), EngineError> {
        self.driver.close(i);
        if matches!(self.clients[i].state, State::Connecting | State::Handshaking(_)) {
            self.connecting -= 1;
        }
        let refused_by_server =
            matches!(&error, EngineError::Session { error: WireError::Server(_) | WireError::Tls(_), .. });
        let addresses = match &self.config(i).endpoint {
            Endpoint::Unix(_) => 1,
            Endpoint::Tcp { addresses, .. } => addresses.len(),
        };
        let attempts = Attempt::of(self.config(i)).len();
        let client = &mut self.clients[i];
        client.disconnect();
        // sslmode prefer and allow: the other way is tried at once.
        if refused_by_server && client.attempt + 1 < attempts {
            client.attempt += 1;
            return self.open(i, now);
        }
        client.attempt = 0;
        client.failures += 1;
        // Before the run, and for a transaction's own connection, each address of the host is tried once.
        if (!self.running || self.plan.connect_each) && (client.failures as usize) < addresses {
            return self.open(i, now);
        }
        if !self.running {
            let client = self.first_client + i;
            self.say("error", i, now, error.classic().map_or_else(|| error.to_string(), str::to_owned));
            self.say("error", i, now, format!("could not create connection for client {client}"));
            return Err(error);
        }
        if self.plan.on_error.ends_clients() && !self.plan.reconnect {
            let why = error.classic().map_or_else(|| error.to_string(), str::to_owned);
            self.say("error", i, now, why);
            self.say(
                "error",
                i,
                now,
                format!("client {} aborted while establishing connection", self.first_client + i),
            );
            return self.abort(i);
        }
        if self.ending {
            self.finish(i);
            return Ok(());
        }
        if self.clients[i].failures == 1 {
            self.tell("connect_failed", i, now, error.to_string());
        }
        self.back_off(i, now);
        Ok(())
    }

    /// Sets the timer for the next attempt: 10 ms, doubling up to 1 s, each between half and all of it, so that clients
    /// that were lost together do not come back together.
    pub(super) fn back_off(&mut self, i: Token, now: Nanos) {
        let pause = Nanos(MIN_BACKOFF.0 << self.clients[i].failures.min(10)).0.min(MAX_BACKOFF.0);
        let pause = self.jitter.range_u64(pause / 2, pause);
        self.set_timer(i, now + Nanos(pause));
    }

    pub(super) fn begin_session(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        if let Err(e) = self.driver.connected(i) {
            let error = self.cannot_connect(i, e.to_string());
            return self.connect_failed(i, now, error);
        }
        let config = self.config(i).clone();
        let attempts = Attempt::of(&config);
        let attempt = attempts[self.clients[i].attempt.min(attempts.len() - 1)];
        let mut out = Vec::new();
        let handshake = Handshake::start(config.clone(), attempt, &mut out);
        self.clients[i].state = State::Handshaking(Box::new(handshake));
        self.put(i, &out, now)
    }

    pub(super) fn shake_hands(&mut self, i: Token, bytes: &[u8], now: Nanos) -> Result<(), EngineError> {
        let State::Handshaking(handshake) = &mut self.clients[i].state else { return Ok(()) };
        let mut out = Vec::new();
        let progress = handshake.feed(bytes, &mut out);
        if !out.is_empty() {
            self.put(i, &out, now)?;
            // Sending may have found the connection gone, which is then dealt with.
            if !matches!(self.clients[i].state, State::Handshaking(_)) {
                return Ok(());
            }
        }
        match progress {
            Ok(Progress::Pending) => Ok(()),
            Err(error) => {
                let endpoint = &self.config(i).endpoint;
                let classic = endpoint.classic_failure(&match &error {
                    WireError::Server(e) => e.classic(None),
                    other => other.to_string(),
                });
                let endpoint = endpoint.to_string();
                self.connect_failed(i, now, EngineError::Session { endpoint, error, classic })
            }
            Ok(Progress::Ready(info)) => {
                let client = &mut self.clients[i];
                let State::Handshaking(handshake) = std::mem::replace(&mut client.state, State::Idle) else {
                    return Ok(());
                };
                self.connecting -= 1;
                client.timer += 1;
                client.failures = 0;
                client.first_address = client.address;
                client.attempt = 0;
                client.answer = Answer::default();
                client.backend = (info.process, info.secret.clone());
                (client.link, client.partial) = handshake.into_link();
                if self.running {
                    self.interval.connect.record(now - client.connecting_since);
                }
                if self.plan.connect_each {
                    return self.connected_for_one(i, now);
                }
                if std::mem::replace(&mut client.was_connected, true) && self.running {
                    self.interval.reconnects += 1;
                    self.tell("reconnected", i, now, format!("connected again to {}", self.config(i).endpoint));
                }
                if self.running { self.next_transaction(i, now) } else { Ok(()) }
            }
        }
    }

    /// The connection is gone. Decides what became of the transaction, and comes back later.
    pub(super) fn lost(&mut self, i: Token, now: Nanos, reason: &str) -> Result<(), EngineError> {
        if matches!(self.clients[i].state, State::Connecting | State::Handshaking(_)) {
            let why = match self.clients[i].state {
                State::Handshaking(_) => format!("{reason} before the session began"),
                _ => reason.to_owned(),
            };
            return self.connect_failed(i, now, self.cannot_connect(i, why));
        }
        self.driver.close(i);
        let client = &mut self.clients[i];
        if matches!(client.state, State::Finished | State::Offline) {
            return Ok(());
        }
        let said = client.answer.error.take();
        let ends_client = self.plan.on_error.ends_clients() && !self.plan.reconnect;
        let was_active = client.transaction.active;
        let here = match client.state {
            State::Busy { command, .. } => Some(command),
            _ => client.transaction.last,
        };
        if was_active {
            let t = std::mem::take(&mut client.transaction);
            let in_pipeline = client.pipeline.as_ref().is_some_and(|p| p.sent);
            let outcome = match (&client.state, in_pipeline) {
                (_, true) => None,
                (State::Busy { command, .. }, false)
                    if may_have_committed(client.status, self.workload.commands()[*command].effect) =>
                {
                    None
                }
                _ => Some(match (t.error, &said) {
                    (Some((code, _)), _) => code,
                    (None, Some(refusal)) => refusal.error.state(),
                    (None, None) => SqlState::CONNECTION_FAILURE,
                }),
            };
            client.actor.abandon();
            match outcome {
                // Nobody but the server knows; a pipeline may hold any number of commits.
                None => self.interval.count(t.script, |o| o.unknown += 1),
                Some(_) if ends_client => self.interval.count(t.script, |o| o.unfinished += 1),
                Some(code) => self.interval.count(t.script, |o| o.fail(code.0)),
            }
            if !ends_client {
                self.count_retries(&t);
                self.log(i, &t, Ending::Other, now)?;
            }
        }
        self.clients[i].disconnect();
        self.idle.retain(|t| *t != i);
        if !self.running {
            return Err(self.cannot_connect(i, reason.to_owned()));
        }
        self.interval.lost += 1;
        if ends_client {
            let here = here.unwrap_or_else(|| self.clients[i].actor.here());
            self.classic_loss(i, here, said.as_deref(), reason, now);
            return self.abort(i);
        }
        self.tell("connection_lost", i, now, reason.to_owned());
        if !self.plan.reconnect {
            return Err(EngineError::Lost(format!(
                "the connection of client {} to {} was lost: {reason}",
                self.first_client + i,
                self.config(i).endpoint
            )));
        }
        if self.ending {
            self.finish(i);
        } else {
            self.back_off(i, now);
        }
        Ok(())
    }

    /// The connection of one transaction is there.
    fn connected_for_one(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        if self.clients[i].transaction.active {
            self.really_begin(i, now);
            return self.drive(i, now);
        }
        self.next_transaction(i, now)
    }

    /// Ends a session in order.
    pub(super) fn hang_up(&mut self, i: Token) {
        let mut out = Vec::new();
        frontend::terminate(&mut out);
        // Whether the server hears it is no concern of ours.
        let sealed = if self.clients[i].link.is_plain() {
            Ok(out)
        } else {
            let mut wire = Vec::new();
            self.clients[i].link.seal(&out, &mut wire).map(|()| wire)
        };
        if let Ok(bytes) = sealed {
            let _ = self.driver.send(i, &bytes);
        }
        self.driver.close(i);
        self.clients[i].disconnect();
    }
}

/// Whether the answer that a lost connection did not deliver could have been that of a commit.
fn may_have_committed(status: TransactionStatus, effect: StatementEffect) -> bool {
    match (effect, status) {
        (StatementEffect::Commits, _) => true,
        (StatementEffect::Begins | StatementEffect::RollsBack, _) => false,
        (StatementEffect::Other, TransactionStatus::Idle) => true,
        (StatementEffect::Other, _) => false,
    }
}

//! From no connection to a session, and what a lost connection means.

use super::{CONNECTING, MAX_BACKOFF, MIN_BACKOFF, STOP_CHECK, Worker};
use crate::client::{Answer, Client, State};
use crate::driver::{Address, Driver, Token};
use crate::error::EngineError;
use crate::workload::StatementEffect;
use pgdyno_base::Nanos;
use pgdyno_record::Phase;
use pgdyno_wire::backend::TransactionStatus;
use pgdyno_wire::handshake::Attempt;
use pgdyno_wire::{Endpoint, Handshake, Progress, SqlState, WireError};
use std::cmp::Reverse;
use std::sync::atomic::Ordering;

impl<D: Driver> Worker<D> {
    /// Connects all clients. The first failure is the result.
    pub fn connect(&mut self) -> Result<(), EngineError> {
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
        self.clients[i].address = self.clients[i].failures as usize;
        let Some(address) = self.address(self.clients[i].address) else {
            return Err(self.cannot_connect(format!("{} has no address", self.config.endpoint)));
        };
        match self.driver.connect(i, &address) {
            Ok(()) => {
                self.connecting += 1;
                self.clients[i].state = State::Connecting;
                self.set_timer(i, now + self.plan.connect_timeout);
                Ok(())
            }
            // The listen queue of a Unix-domain socket is full: the server is slower than we are. Come back soon.
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                self.set_timer(i, now + Nanos::from_millis(2));
                Ok(())
            }
            Err(e) => self.connect_failed(i, now, self.cannot_connect(e.to_string())),
        }
    }

    /// The server's address; of a host with several, the `n`th, in turn.
    pub(super) fn address(&self, n: usize) -> Option<Address> {
        match &self.config.endpoint {
            Endpoint::Unix(path) => Some(Address::Unix(path.clone())),
            Endpoint::Tcp { addresses, .. } => Some(Address::Tcp(*addresses.get(n % addresses.len().max(1))?)),
        }
    }

    pub(super) fn cannot_connect(&self, reason: String) -> EngineError {
        EngineError::Connect { endpoint: self.config.endpoint.to_string(), reason }
    }

    /// An attempt is over, without a session.
    pub(super) fn connect_failed(&mut self, i: Token, now: Nanos, error: EngineError) -> Result<(), EngineError> {
        self.driver.close(i);
        if matches!(self.clients[i].state, State::Connecting | State::Handshaking(_)) {
            self.connecting -= 1;
        }
        let refused_by_server =
            matches!(&error, EngineError::Session { error: WireError::Server(_) | WireError::Tls(_), .. });
        let addresses = match &self.config.endpoint {
            Endpoint::Unix(_) => 1,
            Endpoint::Tcp { addresses, .. } => addresses.len(),
        };
        let client = &mut self.clients[i];
        client.disconnect();
        // sslmode prefer and allow: the other way is tried at once.
        if refused_by_server && client.attempt + 1 < Attempt::of(&self.config).len() {
            client.attempt += 1;
            self.to_connect.push_front(i);
            return Ok(());
        }
        client.attempt = 0;
        client.failures += 1;
        if !self.running {
            // Before the run, each address of the host is tried once.
            if (client.failures as usize) < addresses {
                self.to_connect.push_front(i);
                return Ok(());
            }
            return Err(error);
        }
        if client.failures == 1 {
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
            let error = self.cannot_connect(e.to_string());
            return self.connect_failed(i, now, error);
        }
        let attempts = Attempt::of(&self.config);
        let attempt = attempts[self.clients[i].attempt.min(attempts.len() - 1)];
        let mut out = Vec::new();
        let handshake = Handshake::start(self.config.clone(), attempt, &mut out);
        self.clients[i].state = State::Handshaking(Box::new(handshake));
        self.put(i, &out, now)
    }

    pub(super) fn shake_hands(&mut self, i: Token, bytes: &[u8], now: Nanos) -> Result<(), EngineError> {
        let State::Handshaking(handshake) = &mut self.clients[i].state else { return Ok(()) };
        let mut out = Vec::new();
        let progress = handshake.feed(bytes, &mut out);
        if !out.is_empty() {
            self.put(i, &out, now)?;
        }
        match progress {
            Ok(Progress::Pending) => Ok(()),
            Err(error) => {
                let endpoint = self.config.endpoint.to_string();
                self.connect_failed(i, now, EngineError::Session { endpoint, error })
            }
            Ok(Progress::Ready(info)) => {
                let client = &mut self.clients[i];
                let State::Handshaking(handshake) = std::mem::replace(&mut client.state, State::Idle) else {
                    return Ok(());
                };
                self.connecting -= 1;
                client.timer += 1;
                client.failures = 0;
                client.attempt = 0;
                client.answer = Answer::default();
                client.backend = (info.process, info.secret.clone());
                (client.link, client.partial) = handshake.into_link();
                if std::mem::replace(&mut client.was_connected, true) && self.running {
                    self.interval.reconnects += 1;
                    self.tell("reconnected", i, now, format!("connected again to {}", self.config.endpoint));
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
            return self.connect_failed(i, now, self.cannot_connect(why));
        }
        self.driver.close(i);
        let client = &mut self.clients[i];
        if matches!(client.state, State::Finished | State::Offline) {
            return Ok(());
        }
        if std::mem::take(&mut client.transaction).active {
            let said = client.answer.error.take();
            match client.state {
                State::Busy { statement, .. }
                    if may_have_committed(client.status, self.workload.statements()[statement].effect) =>
                {
                    self.interval.outcomes.unknown += 1;
                }
                _ => {
                    let code = said.as_ref().map_or(SqlState::CONNECTION_FAILURE, |(code, _)| *code);
                    self.interval.outcomes.fail(code.0);
                }
            }
            client.actor.abandon();
        }
        client.disconnect();
        self.idle.retain(|t| *t != i);
        if !self.running {
            return Err(self.cannot_connect(reason.to_owned()));
        }
        self.interval.lost += 1;
        self.tell("connection_lost", i, now, reason.to_owned());
        if !self.plan.reconnect {
            return Err(EngineError::Lost(format!(
                "the connection of client {} to {} was lost: {reason}",
                self.first_client + i,
                self.config.endpoint
            )));
        }
        if self.interval.slice.phase == Phase::Drain {
            self.finish(i);
        } else {
            self.back_off(i, now);
        }
        Ok(())
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

//! Timers, and what is told of events.

use super::{MAX_EVENTS, Report, RunEvent, Worker};
use crate::client::State;
use crate::driver::{Driver, Token};
use crate::error::EngineError;
use pgdyno_base::Nanos;
use pgdyno_wire::SqlState;
use std::cmp::Reverse;

impl<D: Driver> Worker<D> {
    pub(super) fn set_timer(&mut self, i: Token, at: Nanos) {
        let client = &mut self.clients[i];
        client.timer += 1;
        self.timers.push(Reverse((at, i, client.timer)));
        // Timers that were overtaken stay until they are due; with a connection for each transaction they would pile up.
        if self.timers.len() > 64 + 4 * self.clients.len() {
            let clients = &self.clients;
            self.timers.retain(|Reverse((_, i, timer))| clients[*i].timer == *timer);
        }
    }

    #[inline]
    pub(super) fn fire_timers(&mut self) -> Result<(), EngineError> {
        if self.timers.is_empty() {
            return Ok(());
        }
        let now = self.driver.now();
        // Only what was due when we came: a timer that is set on the way, even for now, has its turn after everything else.
        let mut due = Vec::new();
        while let Some(Reverse((at, i, timer))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            due.push((i, timer));
        }
        for (i, timer) in due {
            if self.clients[i].timer == timer {
                self.fire(i, now)?;
            }
        }
        self.connect_more(now)
    }

    fn fire(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        match self.clients[i].state {
            State::Offline => self.to_connect.push_back(i),
            State::Connecting | State::Handshaking(_) => {
                let what = match self.clients[i].state {
                    State::Connecting => "no connection",
                    _ => "the server took the connection and did not answer",
                };
                let reason = format!("{what} within {}", self.plan.connect_timeout);
                self.connect_failed(i, now, self.cannot_connect(i, reason))?;
            }
            State::Sleeping if self.clients[i].transaction.active => self.drive(i, now)?,
            State::Sleeping => self.next_transaction(i, now)?,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn tell(&mut self, kind: &'static str, i: Token, now: Nanos, text: String) {
        self.events_told += 1;
        if self.events_told <= MAX_EVENTS {
            let at = now - self.origin;
            (self.report)(Report::Event(RunEvent { at, kind, client: self.first_client + i, text }));
        }
    }

    /// The first error of each code is told; all are counted.
    pub(super) fn tell_error(&mut self, i: Token, now: Nanos, code: SqlState, text: &str) {
        if !self.errors_told.contains(&code) {
            self.errors_told.push(code);
            self.tell("first_error", i, now, text.to_owned());
        }
    }
}

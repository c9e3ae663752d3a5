//! The run from its first interval to its last: warm-up, measurement, drain, goodbye.

use super::tally::Used;
use super::{STOP_CHECK, STOP_NOW, Worker};
use crate::client::State;
use crate::driver::{Driver, Event, Token};
use crate::error::EngineError;
use pgdyno_base::Nanos;
use pgdyno_protocol::{Cancel, Conversation, Dialect};
use pgdyno_record::Phase;
use pgdyno_record::interval::Slice;
use std::sync::atomic::Ordering;

/// Maximum time an interrupted run waits for transactions under way.
const STOP_DRAIN: Nanos = Nanos::from_secs(2);
/// Time limit for cancelling statements still under way when a worker ends, for all its clients together.
const CANCEL_PATIENCE: Nanos = Nanos::from_secs(1);
/// Maximum time for the server to close the connection of a cancel request.
const CLOSING_PATIENCE: Nanos = Nanos::from_millis(100);

impl<P: Dialect, D: Driver> Worker<P, D> {
    /// Runs the plan from `origin`, a time of the driver's clock; all clients are connected. Intervals are reported also
    /// when the run ends early.
    pub fn run(&mut self, origin: Nanos) -> Result<(), EngineError> {
        self.stage.running = true;
        self.events.begin(origin);
        let (now, used) = (self.sockets.now(), self.used());
        self.tally.begin(origin, now, used);
        let result = self.run_loop();
        let settled = self.settle();
        let now = self.sockets.now();
        let next = self.tally.close(now, self.plan.measure_until_done);
        self.next_interval(next);
        self.say_goodbye();
        let now = self.sockets.now();
        result.and(settled).and(self.tally.finish(now))
    }

    fn used(&mut self) -> Used {
        Used { cpu: self.sockets.driver.cpu_time(), run_delay: self.sockets.driver.run_delay() }
    }

    fn run_loop(&mut self) -> Result<(), EngineError> {
        let mut events: Vec<Event> = Vec::new();
        // Until the agreed time nothing happens.
        loop {
            let now = self.sockets.now();
            if now >= self.tally.origin || self.stop.load(Ordering::Relaxed) != 0 {
                break;
            }
            self.wait(now, Nanos(self.tally.origin.0.min((now + STOP_CHECK).0)), &mut events)?;
            for event in &events {
                self.handle(*event)?;
            }
        }
        let now = self.sockets.now();
        let share = self.clients.len() as f64 / self.plan.clients as f64;
        let turn = (self.number + 1) as f64 / self.plan.active_workers() as f64;
        self.turns.begin(&self.plan, share, turn, self.tally.origin);
        self.take_turn(now)?;
        // Asked to stop before it began: nothing is begun.
        let begin = self.stop.load(Ordering::Relaxed) == 0;
        for i in 0..self.clients.len() {
            // A client may have been ended by a loss of its connection before the run began.
            let goes_on = self.clients[i].state != State::Finished;
            if begin && goes_on && (self.clients[i].is_online() || self.plan.connect_each) {
                self.next_transaction(i, now)?;
            }
        }
        while self.stage.unfinished > 0 {
            let now = self.sockets.now();
            self.turn_intervals(now)?;
            if !self.stage.ending && now >= self.tally.origin + self.plan.end() {
                self.begin_drain(now, self.plan.drain_timeout)?;
            }
            self.start_due(now)?;
            let stop = self.stop.load(Ordering::Relaxed);
            if stop != 0 && !self.stage.stopping {
                self.stop_early(now, stop)?;
            }
            if now >= self.stage.drain_deadline || stop == STOP_NOW || self.stage.unfinished == 0 {
                break;
            }
            let (due, until) = self.wake_at(now);
            self.wait(now, until, &mut events)?;
            if events.is_empty() && due <= until {
                // Nothing but a timer has woken us: how late, is the machine's doing. Drivers may also come back early.
                let woken = self.sockets.now();
                if woken >= due {
                    self.tally.interval.wakeup_delay.record(woken - due);
                }
            }
            if !events.is_empty() {
                self.end_silence(&events);
            }
            for event in &events {
                self.handle(*event)?;
            }
            self.fire_timers()?;
        }
        Ok(())
    }

    pub(super) fn wait(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> Result<(), EngineError> {
        events.clear();
        self.sockets
            .driver
            .wait(now, until, events)
            .map_err(|e| EngineError::System(format!("waiting for the server failed: {e}")))
    }

    #[inline]
    pub(super) fn fire_timers(&mut self) -> Result<(), EngineError> {
        if self.timers.next().is_none() {
            return Ok(());
        }
        let now = self.sockets.now();
        for (i, timer) in self.timers.due(now) {
            if self.clients[i].timer == timer {
                self.fire(i, now)?;
            }
        }
        self.connect_more(now)
    }

    fn fire(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        let state = self.clients[i].state;
        match state {
            State::Offline => self.reach.waiting.push_back(i),
            State::Connecting | State::Beginning => {
                let what = match state {
                    State::Connecting => "no connection",
                    _ => "the server took the connection and did not answer",
                };
                let reason = format!("{what} within {}", self.plan.connect_timeout);
                self.connect_failed(i, now, self.reach.cannot_connect(i, self.clients[i].address, reason))?;
            }
            State::Sleeping if self.clients[i].transaction.active => self.drive(i, now)?,
            State::Sleeping => self.next_transaction(i, now)?,
            State::Busy { .. } | State::RollingBack => {
                let patience = self.plan.answer_timeout.unwrap_or_default();
                self.lost(i, now, &format!("no answer within {patience}"))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the time at which the next transaction or timer is due, and the time at which the worker must act even
    /// without an event.
    fn wake_at(&self, now: Nanos) -> (Nanos, Nanos) {
        let due = self.timers.next().unwrap_or(Nanos::MAX).min(self.turns.next_due().unwrap_or(Nanos::MAX));
        let end = if self.stage.ending { Nanos::MAX } else { self.tally.origin + self.plan.end() };
        let until = due.min(self.tally.interval_end()).min(end).min(self.stage.drain_deadline).min(now + STOP_CHECK);
        (due, until)
    }

    /// Closes the intervals that are over by `now`: also those in which this worker was not awake, so that no interval
    /// is missing from the series.
    fn turn_intervals(&mut self, now: Nanos) -> Result<(), EngineError> {
        while now >= self.tally.interval_end() {
            let (turn, next) = (self.tally.interval.slice.turn, self.tally.next_slice());
            self.next_interval(next);
            if next.phase == Phase::Drain && !self.stage.ending {
                self.begin_drain(now, self.plan.drain_timeout)?;
            } else if next.turn != turn {
                self.take_turn(now)?;
            }
        }
        Ok(())
    }

    /// Starts the current turn of a duet. The side of this turn continues; clients of other sides stop at the end of
    /// their transaction.
    fn take_turn(&mut self, now: Nanos) -> Result<(), EngineError> {
        let plan = self.plan.clone();
        let Some(duet) = &plan.duet else { return Ok(()) };
        for i in self.turns.take_turn(duet, self.tally.interval.slice.turn) {
            self.next_transaction(i, now)?;
        }
        Ok(())
    }

    /// Answers have come: notes how long those clients, and all others, had waited for one.
    #[inline]
    fn end_silence(&mut self, events: &[Event]) {
        let now = self.sockets.now();
        if let Some(since) = self.tally.silent_since(now)
            && let Some(sent) = events.iter().filter_map(|e| self.clients[e.token].state.sent_at()).min()
        {
            self.tally.silent(since.max(sent), now);
        }
        self.tally.heard(now);
    }

    /// The interval ends while no answer comes.
    fn cut_silence(&mut self) {
        let end = self.tally.interval_end().min(self.sockets.now());
        if let Some(since) = self.tally.silent_since(end)
            && let Some(sent) = self.clients.iter().filter_map(|c| c.state.sent_at()).min()
        {
            self.tally.silent(since.max(sent), end);
        }
    }

    fn next_interval(&mut self, next: Slice) {
        self.cut_silence();
        let used = self.used();
        // With a connection for each transaction, to be without one is no outage.
        let needs = !self.plan.connect_each;
        let disconnected = self.clients.iter().filter(|c| needs && !c.is_online()).count();
        self.tally.turn(next, used, disconnected, &mut self.events);
    }

    /// Begins nothing more, but for what was due before the end.
    fn begin_drain(&mut self, now: Nanos, patience: Nanos) -> Result<(), EngineError> {
        self.stage.ending = true;
        self.stage.drain_deadline = now + patience;
        self.turns.forget_all();
        for i in 0..self.clients.len() {
            // A transaction that connects for itself has begun.
            if self.plan.connect_each && self.clients[i].transaction.active {
                continue;
            }
            match self.clients[i].state {
                State::Offline => self.finish(i),
                State::Connecting | State::Beginning => {
                    self.sockets.driver.close(i);
                    self.reach.connecting -= 1;
                    self.clients[i].disconnect();
                    self.finish(i);
                }
                State::Idle => self.next_transaction(i, now)?,
                // It rests.
                State::Sleeping if !self.clients[i].transaction.active => self.next_transaction(i, now)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn stop_early(&mut self, now: Nanos, stop: u8) -> Result<(), EngineError> {
        self.stage.stopping = true;
        let patience = if stop == STOP_NOW { Nanos::ZERO } else { STOP_DRAIN };
        let patience = patience.min(self.plan.drain_timeout);
        if self.tally.is_draining() {
            self.stage.drain_deadline = self.stage.drain_deadline.min(now + patience);
            return Ok(());
        }
        self.turns.stop(now);
        let next = self.tally.cut(now);
        self.next_interval(next);
        self.begin_drain(now, patience)
    }

    /// Accounts for everything that has not come to its end, so that the outcomes balance.
    fn settle(&mut self) -> Result<(), EngineError> {
        for i in 0..self.clients.len() {
            let t = std::mem::take(&mut self.clients[i].transaction);
            if t.active {
                self.tally.unfinished(&t);
                self.settled_by_fate(i)?;
            }
        }
        if self.plan.begin_what_was_due {
            // Only what was due by now; a run that ends early has not skipped its future.
            let now = self.sockets.now();
            self.turns.stop(now);
            while self.turns.take_left() && self.stop.load(Ordering::Relaxed) != STOP_NOW {
                self.tally.never_begun();
            }
        }
        Ok(())
    }

    /// Ends all sessions; statements still under way are cancelled first, so that nothing goes on in the server.
    fn say_goodbye(&mut self) {
        // For all together: a server that cannot be reached must not keep us a second for each client.
        let deadline = self.sockets.now() + CANCEL_PATIENCE;
        for i in 0..self.clients.len() {
            if matches!(self.clients[i].state, State::Busy { .. } | State::RollingBack) {
                self.cancel(i, deadline);
            }
            if self.clients[i].is_online() {
                let mut goodbye = Vec::new();
                self.clients[i].connection.conversation.goodbye(&mut goodbye);
                let _ = self.sockets.send(i, &mut self.clients[i].connection, &goodbye);
            }
            self.sockets.driver.close(i);
        }
    }

    /// Sends a CancelRequest over a connection of its own, encrypted as the session is, if that can be made until
    /// `deadline`.
    fn cancel(&mut self, i: Token, deadline: Nanos) {
        let token = self.clients.len();
        let Some(address) = self.reach.address(i, self.clients[i].address) else { return };
        if self.sockets.now() >= deadline || self.sockets.driver.connect(token, &address).is_err() {
            return;
        }
        self.send_cancel(i, token, deadline);
        self.sockets.driver.close(token);
    }

    fn send_cancel(&mut self, i: Token, token: Token, deadline: Nanos) -> Option<()> {
        self.wait_for(token, deadline, |e| e.writable)?;
        self.sockets.driver.connected(token).ok()?;
        let connection = &self.clients[i].connection;
        let (process, secret) = connection.backend.clone();
        let mut out = Vec::new();
        let config = self.reach.config(i).clone();
        let (mut cancel, mut done) = P::Cancel::start(config, connection.encrypted, process, secret, &mut out).ok()?;
        if !out.is_empty() {
            self.sockets.driver.send(token, &out).ok()?;
        }
        let mut buffer = [0u8; 4096];
        while !done {
            match self.sockets.driver.recv(token, &mut buffer).ok()? {
                None => self.wait_for(token, deadline, |e| e.readable)?,
                Some(0) => return None,
                Some(n) => {
                    out.clear();
                    done = cancel.feed(&buffer[..n], &mut out).ok()?;
                    if !out.is_empty() {
                        self.sockets.driver.send(token, &out).ok()?;
                    }
                }
            }
        }
        // The server closes when it has passed the request on; until then it must not be cut off. One that does not, must
        // not keep the others from theirs.
        let deadline = deadline.min(self.sockets.now() + CLOSING_PATIENCE);
        while !matches!(self.sockets.driver.recv(token, &mut buffer), Ok(Some(0)) | Err(_)) {
            self.wait_for(token, deadline, |e| e.readable)?;
        }
        Some(())
    }

    /// Waits for an event of a connection that no client has.
    fn wait_for(&mut self, token: Token, deadline: Nanos, wanted: impl Fn(&Event) -> bool) -> Option<()> {
        let mut events = Vec::new();
        loop {
            let now = self.sockets.now();
            if now >= deadline {
                return None;
            }
            self.wait(now, deadline, &mut events).ok()?;
            if events.iter().any(|e| e.token == token && wanted(e)) {
                return Some(());
            }
        }
    }

    /// The client has nothing more to do. Its session ends, so that it holds no locks against those that go on.
    pub(super) fn finish(&mut self, i: Token) {
        if self.clients[i].state == State::Finished {
            return;
        }
        if self.clients[i].is_online() {
            self.hang_up(i);
        }
        let client = &mut self.clients[i];
        client.state = State::Finished;
        client.timer += 1;
        self.stage.unfinished -= 1;
    }
}

//! The run from its first interval to its last: warm-up, measurement, drain, goodbye.

use super::{CANCEL_PATIENCE, Report, STOP_CHECK, STOP_DRAIN, STOP_NOW, Worker};
use crate::client::State;
use crate::driver::{Driver, Event, Token};
use crate::error::EngineError;
use crate::plan::Rate;
use crate::schedule::Arrivals;
use pgdyno_base::Nanos;
use pgdyno_record::interval::Slice;
use pgdyno_record::{Interval, Phase};
use pgdyno_wire::frontend;
use std::cmp::Reverse;
use std::sync::atomic::Ordering;

impl<D: Driver> Worker<D> {
    /// Runs the plan from `origin`, a time of the driver's clock; all clients are connected. Intervals are reported also
    /// when the run ends early.
    pub fn run(&mut self, origin: Nanos) -> Result<(), EngineError> {
        self.origin = origin;
        self.running = true;
        self.cpu_mark = self.driver.cpu_time();
        self.wall_offset = since_1970() - self.driver.now();
        if let Some(log) = &mut self.log {
            log.begin(origin + self.wall_offset);
        }
        let result = self.run_loop();
        self.settle();
        self.close_interval();
        self.say_goodbye();
        let at = self.driver.now() + self.wall_offset;
        let logged = self.log.as_mut().map_or(Ok(()), |log| log.finish(at));
        result.and(logged.map_err(|e| EngineError::System(format!("cannot write the transaction log: {e}"))))
    }

    pub(super) fn run_loop(&mut self) -> Result<(), EngineError> {
        let mut events: Vec<Event> = Vec::new();
        // Until the agreed time nothing happens.
        loop {
            let now = self.driver.now();
            if now >= self.origin || self.stop.load(Ordering::Relaxed) != 0 {
                break;
            }
            events.clear();
            self.wait(now, Nanos(self.origin.0.min((now + STOP_CHECK).0)), &mut events)?;
            for event in &events {
                self.handle(*event)?;
            }
        }
        let now = self.driver.now();
        if let Some(rate) = self.plan.rate {
            let share = self.clients.len() as f64 / self.plan.clients as f64;
            let end = self.origin + self.plan.end();
            let rate = Rate { from: rate.from * share, to: rate.to * share, ..rate };
            let turn = (self.number + 1) as f64 / self.plan.active_workers() as f64;
            self.arrivals = Some(Arrivals::shifted(rate, turn, self.origin, end, self.throttle.clone()));
        }
        // Asked to stop before it began: nothing is begun.
        let begin = self.stop.load(Ordering::Relaxed) == 0;
        for i in 0..self.clients.len() {
            if begin && (self.clients[i].is_online() || self.plan.connect_each) {
                self.next_transaction(i, now)?;
            }
        }
        while self.unfinished > 0 {
            let now = self.driver.now();
            self.turn_intervals(now)?;
            if !self.ending && now >= self.origin + self.plan.end() {
                self.begin_drain(now, self.plan.drain_timeout)?;
            }
            self.start_due(now)?;
            let stop = self.stop.load(Ordering::Relaxed);
            if stop != 0 && !self.stopping {
                self.stop_early(now, stop)?;
            }
            if now >= self.drain_deadline || stop == STOP_NOW {
                break;
            }
            if self.unfinished == 0 {
                break;
            }
            events.clear();
            self.wait(now, self.wake_at(now), &mut events)?;
            for event in &events {
                self.handle(*event)?;
            }
            self.fire_timers()?;
        }
        Ok(())
    }

    pub(super) fn wait(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> Result<(), EngineError> {
        self.driver
            .wait(now, until, events)
            .map_err(|e| EngineError::System(format!("waiting for the server failed: {e}")))
    }

    /// When something has to be done even if nothing happens.
    pub(super) fn wake_at(&self, now: Nanos) -> Nanos {
        let timer = self.timers.peek().map_or(u64::MAX, |Reverse((at, ..))| at.0);
        let slice_end = (self.origin + self.interval.slice.end).0;
        let end = if self.ending { u64::MAX } else { (self.origin + self.plan.end()).0 };
        let due = match &self.arrivals {
            Some(arrivals) if !self.idle.is_empty() => arrivals.peek().map_or(u64::MAX, |at| at.0),
            _ => u64::MAX,
        };
        Nanos(timer.min(slice_end).min(end).min(due).min(self.drain_deadline.0).min((now + STOP_CHECK).0))
    }

    /// Closes the intervals that are over by `now`: also those in which this worker was not awake, so that no interval
    /// is missing from the series.
    pub(super) fn turn_intervals(&mut self, now: Nanos) -> Result<(), EngineError> {
        while now >= self.origin + self.interval.slice.end {
            let next = self.timeline.after(self.interval.slice);
            self.next_interval(next);
            if next.phase == Phase::Drain && !self.ending {
                self.begin_drain(now, self.plan.drain_timeout)?;
            }
        }
        Ok(())
    }

    pub(super) fn next_interval(&mut self, next: Slice) {
        let fresh = Interval::new(next, self.interval.scripts.len(), self.interval.command_latency.len());
        let mut done = std::mem::replace(&mut self.interval, fresh);
        let cpu = self.driver.cpu_time();
        done.cpu = cpu - std::mem::replace(&mut self.cpu_mark, cpu);
        done.busiest = done.cpu;
        // With a connection for each transaction, to be without one is no outage.
        let needs = !self.plan.connect_each;
        done.disconnected = self.clients.iter().filter(|c| needs && !c.is_online()).count() as u64;
        (self.report)(Report::Interval(Box::new(done)));
    }

    /// Begins nothing more, but for what was due before the end.
    pub(super) fn begin_drain(&mut self, now: Nanos, patience: Nanos) -> Result<(), EngineError> {
        self.ending = true;
        self.drain_deadline = now + patience;
        self.idle.clear();
        for i in 0..self.clients.len() {
            // A transaction that connects for itself has begun.
            if self.plan.connect_each && self.clients[i].transaction.active {
                continue;
            }
            match self.clients[i].state {
                State::Offline => self.finish(i),
                State::Connecting | State::Handshaking(_) => {
                    self.driver.close(i);
                    self.connecting -= 1;
                    self.clients[i].disconnect();
                    self.finish(i);
                }
                State::Idle => self.next_transaction(i, now)?,
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn stop_early(&mut self, now: Nanos, stop: u8) -> Result<(), EngineError> {
        self.stopping = true;
        let patience = if stop == STOP_NOW { Nanos::ZERO } else { STOP_DRAIN };
        let patience = Nanos(patience.0.min(self.plan.drain_timeout.0));
        if self.interval.slice.phase == Phase::Drain {
            self.drain_deadline = Nanos(self.drain_deadline.0.min((now + patience).0));
            return Ok(());
        }
        let since = now - self.origin;
        self.interval.slice.end = since;
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.stop(now);
        }
        let next = self.timeline.drain_from(self.interval.slice, since);
        self.next_interval(next);
        self.begin_drain(now, patience)
    }

    /// Accounts for everything that has not come to its end, so that the outcomes balance.
    pub(super) fn settle(&mut self) {
        for client in &mut self.clients {
            let t = std::mem::take(&mut client.transaction);
            if t.active {
                self.interval.count(t.script, |o| o.unfinished += 1);
            }
        }
        let now = self.driver.now();
        let count_skipped = self.plan.begin_what_was_due;
        if let (Some(arrivals), true) = (&mut self.arrivals, count_skipped) {
            // Only what was due by now; a run that ends early has not skipped its future.
            arrivals.stop(now);
            while arrivals.take(Nanos::MAX).is_some() && self.stop.load(Ordering::Relaxed) != STOP_NOW {
                self.interval.outcomes.scheduled += 1;
                self.interval.outcomes.skipped += 1;
            }
        }
    }

    pub(super) fn close_interval(&mut self) {
        let now = self.driver.now() - self.origin;
        // Ended by its transactions or by an error: the interval is as long as it was.
        let end = if self.plan.measure_until_done { now } else { Nanos(self.interval.slice.end.0.min(now.0)) };
        self.interval.slice.end = end.max(self.interval.slice.start);
        let next = self.timeline.drain_from(self.interval.slice, now);
        self.next_interval(next);
    }

    /// Ends all sessions; statements still under way are cancelled first, so that nothing goes on in the server.
    pub(super) fn say_goodbye(&mut self) {
        let mut terminate = Vec::new();
        frontend::terminate(&mut terminate);
        let now = self.driver.now();
        // For all together: a server that cannot be reached must not keep us a second for each client.
        let deadline = now + CANCEL_PATIENCE;
        for i in 0..self.clients.len() {
            if matches!(self.clients[i].state, State::Busy { .. } | State::RollingBack) {
                self.cancel(i, deadline);
            }
            if self.clients[i].is_online() {
                self.running = false;
                let _ = self.put(i, &terminate, now);
            }
            self.driver.close(i);
        }
    }

    /// Sends a CancelRequest over a connection of its own, if that can be made until `deadline`.
    fn cancel(&mut self, i: Token, deadline: Nanos) {
        let token = self.clients.len();
        let Some(address) = self.address(i, self.clients[i].address) else { return };
        if self.driver.now() >= deadline || self.driver.connect(token, &address).is_err() {
            return;
        }
        let mut events = Vec::new();
        while !events.iter().any(|e: &Event| e.token == token && e.writable) {
            let now = self.driver.now();
            if now >= deadline || self.driver.wait(now, deadline, &mut events).is_err() {
                break;
            }
        }
        if self.driver.connected(token).is_ok() {
            let mut out = Vec::new();
            let (process, secret) = &self.clients[i].backend;
            frontend::cancel_request(&mut out, *process, secret);
            let _ = self.driver.send(token, &out);
        }
        self.driver.close(token);
    }

    /// The client has nothing more to do. Its session ends, so that it holds no locks against those that go on.
    pub(super) fn finish(&mut self, i: Token) {
        if matches!(self.clients[i].state, State::Finished) {
            return;
        }
        if self.clients[i].is_online() {
            self.hang_up(i);
        }
        let client = &mut self.clients[i];
        client.state = State::Finished;
        client.timer += 1;
        self.unfinished -= 1;
    }
}

fn since_1970() -> Nanos {
    Nanos::from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default())
}

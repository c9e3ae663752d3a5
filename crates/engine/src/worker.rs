//! A worker: one thread's clients, their driver, their schedule, and the interval that is being recorded.

use crate::client::{Answer, Client, State, Transaction};
use crate::driver::{Address, Driver, Event, Token};
use crate::error::EngineError;
use crate::plan::{Limit, Plan, Protocol};
use crate::schedule::Arrivals;
use crate::workload::{StatementEffect, Workload};
use pgdyno_base::{Nanos, Prng};
use pgdyno_record::interval::Slice;
use pgdyno_record::{Interval, Phase, Timeline};
use pgdyno_script::Step;
use pgdyno_wire::backend::{self, TransactionStatus, next_message, tag};
use pgdyno_wire::handshake::Attempt;
use pgdyno_wire::{Config, Endpoint, Handshake, Progress, ServerError, SqlState, WireError, frontend};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bytes read at a time; shared by all clients of a worker, so that a connection needs almost no memory of its own.
const READ_BUFFER: usize = 64 * 1024;
/// Connections that a worker makes at the same time.
const CONNECTING: usize = 32;
/// How long a worker waits at most before it looks whether it shall stop.
const STOP_CHECK: Nanos = Nanos::from_millis(100);
/// The first pause before a lost connection is made again; doubles up to [`MAX_BACKOFF`].
const MIN_BACKOFF: Nanos = Nanos::from_millis(10);
/// The longest such pause.
const MAX_BACKOFF: Nanos = Nanos::from_secs(1);
/// How long an interrupted run waits for what is under way.
const STOP_DRAIN: Nanos = Nanos::from_secs(2);
/// Events beyond this number are counted in the intervals but not told one by one.
const MAX_EVENTS: u32 = 200;

/// Asks workers to stop. 0: go on; [`STOP_SOON`]: begin nothing more; [`STOP_NOW`]: wait for nothing.
pub type StopFlag = Arc<AtomicU8>;
/// Begin nothing more.
pub const STOP_SOON: u8 = 1;
/// Wait for nothing.
pub const STOP_NOW: u8 = 2;

/// Something that happened at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEvent {
    /// Counted from the run's start.
    pub at: Nanos,
    /// `connection_lost`, `reconnected`, `first_error`, `connect_failed`.
    pub kind: &'static str,
    /// Which client.
    pub client: usize,
    /// In words.
    pub text: String,
}

/// What a worker tells.
pub enum Report {
    /// An interval is over.
    Interval(Box<Interval>),
    /// Something happened.
    Event(RunEvent),
}

/// See the module.
pub struct Worker<D: Driver> {
    driver: D,
    plan: Arc<Plan>,
    config: Arc<Config>,
    workload: Arc<dyn Workload>,
    clients: Vec<Client>,
    /// Number of the first client within the run.
    first_client: usize,
    report: Box<dyn FnMut(Report) + Send>,
    stop: StopFlag,
    /// Newest first: time, client, which of its timers.
    timers: BinaryHeap<Reverse<(Nanos, Token, u64)>>,
    /// Clients that wait for their turn to connect.
    to_connect: VecDeque<Token>,
    connecting: usize,
    arrivals: Option<Arrivals>,
    idle: VecDeque<Token>,
    choose: Prng,
    throttle: Prng,
    jitter: Prng,
    timeline: Timeline,
    /// The driver's time of the run's start.
    origin: Nanos,
    interval: Interval,
    cpu_mark: Nanos,
    /// Set while the run is on: errors of connecting are then survived.
    running: bool,
    drain_deadline: Nanos,
    unfinished: usize,
    buffer: Vec<u8>,
    plain: Vec<u8>,
    out: Vec<u8>,
    events_told: u32,
    errors_told: Vec<SqlState>,
}

/// The random streams of one worker and its clients.
pub struct Streams {
    /// One a client.
    pub clients: Vec<Prng>,
    /// For choosing scripts.
    pub choose: Prng,
    /// For arrivals.
    pub throttle: Prng,
    /// For everything that does not concern what is sent.
    pub jitter: Prng,
    /// The variable of that name.
    pub default_seed: i64,
}

impl<D: Driver> Worker<D> {
    /// A worker for the clients numbered from `first_client`, as many as `streams` has.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        driver: D,
        plan: Arc<Plan>,
        config: Arc<Config>,
        workload: Arc<dyn Workload>,
        first_client: usize,
        streams: Streams,
        stop: StopFlag,
        report: Box<dyn FnMut(Report) + Send>,
    ) -> Worker<D> {
        let statements = workload.statements().len();
        let clients: Vec<Client> = streams
            .clients
            .into_iter()
            .enumerate()
            .map(|(i, rng)| Client::new(workload.actor(first_client + i, rng, streams.default_seed), statements))
            .collect();
        let timeline = plan.timeline();
        Worker {
            driver,
            config,
            interval: Interval::new(timeline.first(), workload.scripts().len(), statements),
            unfinished: clients.len(),
            to_connect: (0..clients.len()).collect(),
            clients,
            first_client,
            report,
            stop,
            timers: BinaryHeap::new(),
            connecting: 0,
            arrivals: None,
            idle: VecDeque::new(),
            choose: streams.choose,
            throttle: streams.throttle,
            jitter: streams.jitter,
            timeline,
            origin: Nanos::ZERO,
            cpu_mark: Nanos::ZERO,
            running: false,
            drain_deadline: Nanos::MAX,
            buffer: vec![0; READ_BUFFER],
            plain: Vec::new(),
            out: Vec::new(),
            events_told: 0,
            errors_told: Vec::new(),
            plan,
            workload,
        }
    }

    /// The driver, for tests that look at the simulated world.
    pub fn driver(&mut self) -> &mut D {
        &mut self.driver
    }

    // ---------------------------------------------------------------- connecting

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

    fn connect_more(&mut self, now: Nanos) -> Result<(), EngineError> {
        while self.connecting < CONNECTING {
            let Some(i) = self.to_connect.pop_front() else { break };
            if matches!(self.clients[i].state, State::Offline) {
                self.open(i, now)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        let address = match &self.config.endpoint {
            Endpoint::Unix(path) => Address::Unix(path.clone()),
            Endpoint::Tcp { host, addresses } => {
                let n = self.clients[i].failures as usize;
                match addresses.get(n % addresses.len().max(1)) {
                    Some(a) => Address::Tcp(*a),
                    None => return Err(self.cannot_connect(format!("{host} has no address"))),
                }
            }
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

    fn cannot_connect(&self, reason: String) -> EngineError {
        EngineError::Connect { endpoint: self.config.endpoint.to_string(), reason }
    }

    /// An attempt is over, without a session.
    fn connect_failed(&mut self, i: Token, now: Nanos, error: EngineError) -> Result<(), EngineError> {
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
    fn back_off(&mut self, i: Token, now: Nanos) {
        let pause = Nanos(MIN_BACKOFF.0 << self.clients[i].failures.min(10)).0.min(MAX_BACKOFF.0);
        let pause = self.jitter.range_u64(pause / 2, pause);
        self.set_timer(i, now + Nanos(pause));
    }

    fn begin_session(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
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

    fn shake_hands(&mut self, i: Token, bytes: &[u8], now: Nanos) -> Result<(), EngineError> {
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
    fn lost(&mut self, i: Token, now: Nanos, reason: &str) -> Result<(), EngineError> {
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

    // ---------------------------------------------------------------- the run

    /// Runs the plan from `origin`, a time of the driver's clock; all clients are connected. Intervals are reported also
    /// when the run ends early.
    pub fn run(&mut self, origin: Nanos) -> Result<(), EngineError> {
        self.origin = origin;
        self.running = true;
        self.cpu_mark = self.driver.cpu_time();
        let result = self.run_loop();
        self.settle();
        self.close_interval();
        self.say_goodbye();
        result
    }

    fn run_loop(&mut self) -> Result<(), EngineError> {
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
            let share = rate * self.clients.len() as f64 / self.plan.clients as f64;
            let end = self.origin + self.timeline.end();
            self.arrivals = Some(Arrivals::poisson(share, self.origin, end, self.throttle.clone()));
        }
        for i in 0..self.clients.len() {
            if self.clients[i].is_online() {
                self.next_transaction(i, now)?;
            }
        }
        while self.unfinished > 0 {
            let now = self.driver.now();
            self.turn_intervals(now)?;
            self.start_due(now)?;
            let stop = self.stop.load(Ordering::Relaxed);
            if stop != 0 && self.interval.slice.phase != Phase::Drain {
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

    fn wait(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> Result<(), EngineError> {
        self.driver
            .wait(now, until, events)
            .map_err(|e| EngineError::System(format!("waiting for the server failed: {e}")))
    }

    /// When something has to be done even if nothing happens.
    fn wake_at(&self, now: Nanos) -> Nanos {
        let timer = self.timers.peek().map_or(u64::MAX, |Reverse((at, ..))| at.0);
        let slice_end = (self.origin + self.interval.slice.end).0;
        let due = match &self.arrivals {
            Some(arrivals) if !self.idle.is_empty() => arrivals.peek().map_or(u64::MAX, |at| at.0),
            _ => u64::MAX,
        };
        Nanos(timer.min(slice_end).min(due).min(self.drain_deadline.0).min((now + STOP_CHECK).0))
    }

    /// Closes the intervals that are over by `now`: also those in which this worker was not awake, so that no interval
    /// is missing from the series.
    fn turn_intervals(&mut self, now: Nanos) -> Result<(), EngineError> {
        while now >= self.origin + self.interval.slice.end {
            let next = self.timeline.after(self.interval.slice);
            self.next_interval(next);
            if next.phase == Phase::Drain {
                self.begin_drain(now, self.plan.drain_timeout)?;
            }
        }
        Ok(())
    }

    fn next_interval(&mut self, next: Slice) {
        let fresh = Interval::new(next, self.interval.scripts.len(), self.interval.statement_latency.len());
        let mut done = std::mem::replace(&mut self.interval, fresh);
        let cpu = self.driver.cpu_time();
        done.cpu = cpu - std::mem::replace(&mut self.cpu_mark, cpu);
        done.disconnected = self.clients.iter().filter(|c| !c.is_online()).count() as u64;
        (self.report)(Report::Interval(Box::new(done)));
    }

    /// Begins nothing more, but for what was due before the end.
    fn begin_drain(&mut self, now: Nanos, patience: Nanos) -> Result<(), EngineError> {
        self.drain_deadline = now + patience;
        self.idle.clear();
        for i in 0..self.clients.len() {
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

    fn stop_early(&mut self, now: Nanos, stop: u8) -> Result<(), EngineError> {
        let since = now - self.origin;
        self.interval.slice.end = since;
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.stop(now);
        }
        let next = self.timeline.drain_from(self.interval.slice, since);
        self.next_interval(next);
        let patience = if stop == STOP_NOW { Nanos::ZERO } else { STOP_DRAIN };
        self.begin_drain(now, Nanos(patience.0.min(self.plan.drain_timeout.0)))
    }

    /// Accounts for everything that has not come to its end, so that the outcomes balance.
    fn settle(&mut self) {
        for client in &mut self.clients {
            if std::mem::take(&mut client.transaction).active {
                self.interval.outcomes.unfinished += 1;
            }
        }
        if let Some(arrivals) = &mut self.arrivals {
            while arrivals.take(Nanos::MAX).is_some() {
                self.interval.outcomes.scheduled += 1;
                self.interval.outcomes.skipped += 1;
            }
        }
    }

    fn close_interval(&mut self) {
        let now = self.driver.now() - self.origin;
        // Ended by its transactions or by an error: the interval is as long as it was.
        self.interval.slice.end = Nanos(self.interval.slice.end.0.min(now.0)).max(self.interval.slice.start);
        let next = self.timeline.drain_from(self.interval.slice, now);
        self.next_interval(next);
    }

    /// Ends all sessions; statements still under way are cancelled first, so that nothing goes on in the server.
    fn say_goodbye(&mut self) {
        let mut terminate = Vec::new();
        frontend::terminate(&mut terminate);
        let now = self.driver.now();
        for i in 0..self.clients.len() {
            if matches!(self.clients[i].state, State::Busy { .. } | State::RollingBack) {
                self.cancel(i);
            }
            if self.clients[i].is_online() {
                self.running = false;
                let _ = self.put(i, &terminate, now);
            }
            self.driver.close(i);
        }
    }

    /// Sends a CancelRequest over a connection of its own; gives it a second.
    fn cancel(&mut self, i: Token) {
        let token = self.clients.len();
        let address = match &self.config.endpoint {
            Endpoint::Unix(path) => Address::Unix(path.clone()),
            Endpoint::Tcp { addresses, .. } => match addresses.first() {
                Some(a) => Address::Tcp(*a),
                None => return,
            },
        };
        if self.driver.connect(token, &address).is_err() {
            return;
        }
        let deadline = self.driver.now() + Nanos::from_secs(1);
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

    fn finish(&mut self, i: Token) {
        let client = &mut self.clients[i];
        if !matches!(client.state, State::Finished) {
            client.state = State::Finished;
            client.timer += 1;
            self.unfinished -= 1;
        }
    }

    // ---------------------------------------------------------------- transactions

    /// Open loop: begins what is due on the clients that are free.
    fn start_due(&mut self, now: Nanos) -> Result<(), EngineError> {
        while let (Some(arrivals), false) = (&mut self.arrivals, self.idle.is_empty()) {
            let Some(due) = arrivals.take(now) else { break };
            let Some(i) = self.idle.pop_front() else { break };
            self.begin(i, due, now);
            self.drive(i, now)?;
        }
        Ok(())
    }

    /// A client is free: gives it the next transaction, at once or when one is due.
    fn next_transaction(&mut self, i: Token, now: Nanos) -> Result<(), EngineError> {
        if self.choose_next(i, now) { self.drive(i, now) } else { Ok(()) }
    }

    /// Begins the next transaction of a free client, if there is one now; else the client waits or is finished.
    fn choose_next(&mut self, i: Token, now: Nanos) -> bool {
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
    fn begin(&mut self, i: Token, due: Nanos, now: Nanos) {
        let client = &mut self.clients[i];
        let script = client.actor.begin(&mut self.choose);
        client.transaction = Transaction { active: true, due, script, sent: false };
        client.begun += 1;
        self.interval.outcomes.scheduled += 1;
        if self.arrivals.is_some() {
            self.interval.lag.record(now - due);
        }
    }

    /// Lets the client's script run until it has to wait for something.
    #[inline]
    fn drive(&mut self, i: Token, mut now: Nanos) -> Result<(), EngineError> {
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
                    let sent = client.transaction.sent;
                    self.complete(i, now);
                    if !self.choose_next(i, now) {
                        return Ok(());
                    }
                    if !sent {
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
                    return self.fail(i, SqlState::SCRIPT, now);
                }
            }
        }
    }

    #[inline]
    fn send_statement(&mut self, i: Token, statement: usize) -> Result<(), EngineError> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let client = &mut self.clients[i];
        let prepare = self.plan.protocol == Protocol::Prepared && !client.prepared[statement];
        client.actor.encode(statement, self.plan.protocol, prepare, &mut out);
        client.transaction.sent = true;
        let sent_at = self.driver.now();
        client.state = State::Busy { statement, sent_at };
        let put = self.put(i, &out, sent_at);
        self.out = out;
        put
    }

    #[inline]
    fn complete(&mut self, i: Token, now: Nanos) {
        let transaction = std::mem::take(&mut self.clients[i].transaction);
        self.interval.outcomes.committed += 1;
        self.interval.scripts[transaction.script].record(now - transaction.due);
    }

    /// The transaction has failed. Inside a block it must be rolled back before the next can begin.
    fn fail(&mut self, i: Token, code: SqlState, now: Nanos) -> Result<(), EngineError> {
        self.interval.outcomes.fail(code.0);
        let client = &mut self.clients[i];
        client.transaction = Transaction::default();
        client.actor.abandon();
        if client.status == TransactionStatus::Idle {
            return self.next_transaction(i, now);
        }
        client.state = State::RollingBack;
        let mut out = Vec::new();
        frontend::query(&mut out, "ROLLBACK");
        self.put(i, &out, now)
    }

    // ---------------------------------------------------------------- bytes

    fn handle(&mut self, event: Event) -> Result<(), EngineError> {
        let i = event.token;
        if i >= self.clients.len() {
            return Ok(());
        }
        if matches!(self.clients[i].state, State::Connecting) {
            if event.writable {
                let now = self.driver.now();
                self.begin_session(i, now)?;
            }
            return Ok(());
        }
        if event.writable && !self.clients[i].unsent.is_empty() {
            self.flush(i)?;
        }
        if event.readable { self.read(i, event.closed) } else { Ok(()) }
    }

    /// Reads all that is there; to the end, when it may have come.
    #[inline]
    fn read(&mut self, i: Token, to_the_end: bool) -> Result<(), EngineError> {
        loop {
            if matches!(self.clients[i].state, State::Offline | State::Finished | State::Connecting) {
                return Ok(());
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let received = self.driver.recv(i, &mut buffer);
            let drained = !matches!(received, Ok(Some(READ_BUFFER)));
            let result = match received {
                Ok(None) => {
                    self.buffer = buffer;
                    return Ok(());
                }
                Ok(Some(0)) => {
                    let now = self.driver.now();
                    self.lost(i, now, "the server closed the connection")
                }
                Ok(Some(n)) => self.bytes(i, &buffer[..n]),
                Err(e) => {
                    let now = self.driver.now();
                    self.lost(i, now, &e.to_string())
                }
            };
            self.buffer = buffer;
            result?;
            // Fewer bytes than asked for: the socket is empty, and its next edge will tell when it no longer is.
            if drained && !to_the_end {
                return Ok(());
            }
        }
    }

    #[inline]
    fn bytes(&mut self, i: Token, bytes: &[u8]) -> Result<(), EngineError> {
        let client = &mut self.clients[i];
        if matches!(client.state, State::Handshaking(_)) {
            let now = self.driver.now();
            return self.shake_hands(i, bytes, now);
        }
        if client.link.is_plain() {
            return self.plain_bytes(i, bytes);
        }
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let mut reply = Vec::new();
        let opened = client.link.open(bytes, &mut plain, &mut reply);
        let result = match opened {
            Ok(()) => self.put_raw(i, &reply).and_then(|()| self.plain_bytes(i, &plain)),
            Err(e) => {
                let now = self.driver.now();
                self.lost(i, now, &e.to_string())
            }
        };
        self.plain = plain;
        result
    }

    #[inline]
    fn plain_bytes(&mut self, i: Token, bytes: &[u8]) -> Result<(), EngineError> {
        if self.clients[i].partial.is_empty() {
            let used = self.messages(i, bytes)?;
            if used < bytes.len() && self.clients[i].is_online() {
                self.clients[i].partial.extend_from_slice(&bytes[used..]);
            }
            return Ok(());
        }
        let mut whole = std::mem::take(&mut self.clients[i].partial);
        whole.extend_from_slice(bytes);
        let used = self.messages(i, &whole)?;
        if used < whole.len() && self.clients[i].is_online() {
            whole.drain(..used);
            self.clients[i].partial = whole;
        }
        Ok(())
    }

    /// Takes the complete messages; returns how many bytes they were.
    #[inline]
    fn messages(&mut self, i: Token, bytes: &[u8]) -> Result<usize, EngineError> {
        let mut at = 0;
        loop {
            match next_message(&bytes[at..]) {
                Ok(Some((message, length))) => {
                    at += length;
                    if !self.message(i, message)? {
                        return Ok(bytes.len());
                    }
                }
                Ok(None) => return Ok(at),
                Err(e) => {
                    let now = self.driver.now();
                    self.lost(i, now, &e.to_string())?;
                    return Ok(bytes.len());
                }
            }
        }
    }

    /// Takes one message; false when the connection is gone.
    #[inline]
    fn message(&mut self, i: Token, message: backend::Message<'_>) -> Result<bool, EngineError> {
        let client = &mut self.clients[i];
        match message.tag {
            tag::BIND_COMPLETE | tag::DATA_ROW => {}
            tag::COMMAND_COMPLETE => client.answer.rolled_back |= message.body.starts_with(b"ROLLBACK"),
            tag::READY_FOR_QUERY => match backend::ready_for_query(message.body) {
                Ok(status) => {
                    client.status = status;
                    self.ready(i)?;
                }
                Err(e) => {
                    let now = self.driver.now();
                    self.lost(i, now, &e.to_string())?;
                    return Ok(false);
                }
            },
            tag::PARSE_COMPLETE => {
                if let State::Busy { statement, .. } = client.state {
                    client.prepared[statement] = true;
                }
            }
            tag::ERROR => {
                let error = ServerError::parse(message.body);
                if client.answer.error.is_none() {
                    client.answer.error = Some((error.state(), error.to_string()));
                }
            }
            tag::COPY_IN_RESPONSE => {
                let mut out = Vec::new();
                frontend::copy_fail(&mut out, "COPY FROM STDIN is not supported in a script");
                if self.plan.protocol != Protocol::Simple {
                    frontend::sync(&mut out);
                }
                let now = self.driver.now();
                self.put(i, &out, now)?;
            }
            _ => {}
        }
        Ok(true)
    }

    /// ReadyForQuery: the statement, or the roll-back, is over.
    #[inline]
    fn ready(&mut self, i: Token) -> Result<(), EngineError> {
        let now = self.driver.now();
        let client = &mut self.clients[i];
        match client.state {
            State::Busy { statement, sent_at } => {
                self.interval.statements += 1;
                if client.answer.error.is_some() || client.answer.rolled_back {
                    return self.statement_failed(i, statement, now);
                }
                self.interval.statement_latency[statement].record(now - sent_at);
                self.drive(i, now)
            }
            State::RollingBack => {
                client.answer = Answer::default();
                self.next_transaction(i, now)
            }
            _ => Ok(()),
        }
    }

    fn statement_failed(&mut self, i: Token, statement: usize, now: Nanos) -> Result<(), EngineError> {
        let answer = std::mem::take(&mut self.clients[i].answer);
        let Some((code, text)) = answer.error else {
            // ROLLBACK as the answer: to the script's own ROLLBACK it is success, to COMMIT it is failure.
            if self.workload.statements()[statement].effect == StatementEffect::Commits {
                let code = SqlState::parse("40000");
                self.tell_error(i, now, code, "COMMIT was answered by ROLLBACK: the transaction had failed");
                return self.fail(i, code, now);
            }
            return self.drive(i, now);
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

    /// Sends protocol bytes.
    #[inline]
    fn put(&mut self, i: Token, bytes: &[u8], now: Nanos) -> Result<(), EngineError> {
        if self.clients[i].link.is_plain() {
            return self.put_raw(i, bytes);
        }
        let mut wire = Vec::new();
        match self.clients[i].link.seal(bytes, &mut wire) {
            Ok(()) => self.put_raw(i, &wire),
            Err(e) => self.lost(i, now, &e.to_string()),
        }
    }

    /// Sends socket bytes; keeps what the socket does not take.
    #[inline]
    fn put_raw(&mut self, i: Token, bytes: &[u8]) -> Result<(), EngineError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.clients[i].unsent.is_empty() {
            self.clients[i].unsent.extend_from_slice(bytes);
            return Ok(());
        }
        match self.driver.send(i, bytes) {
            Ok(n) if n == bytes.len() => Ok(()),
            Ok(n) => {
                self.clients[i].unsent.extend_from_slice(&bytes[n..]);
                self.driver.watch_writable(i, true).map_err(|e| EngineError::System(e.to_string()))
            }
            // The answer that says why (a FATAL error) may still be in the socket: let reading find the end.
            Err(_) if self.running => {
                let now = self.driver.now();
                self.read_last_words(i);
                self.lost(i, now, "the server closed the connection")
            }
            Err(e) => {
                let now = self.driver.now();
                self.lost(i, now, &e.to_string())
            }
        }
    }

    fn flush(&mut self, i: Token) -> Result<(), EngineError> {
        let unsent = std::mem::take(&mut self.clients[i].unsent);
        match self.driver.send(i, &unsent) {
            Ok(n) if n == unsent.len() => {
                self.driver.watch_writable(i, false).map_err(|e| EngineError::System(e.to_string()))
            }
            Ok(n) => {
                self.clients[i].unsent = unsent[n..].to_vec();
                // Edge-triggered: asking again makes the driver look again.
                self.driver.watch_writable(i, true).map_err(|e| EngineError::System(e.to_string()))
            }
            Err(e) => {
                let now = self.driver.now();
                self.lost(i, now, &e.to_string())
            }
        }
    }

    /// What a server that has closed said before, if it is in the clear.
    fn read_last_words(&mut self, i: Token) {
        let mut buffer = [0u8; 4096];
        if let (true, Ok(Some(n))) = (self.clients[i].link.is_plain(), self.driver.recv(i, &mut buffer)) {
            let mut at = 0;
            while let Ok(Some((message, length))) = next_message(&buffer[at..n]) {
                at += length;
                if message.tag == tag::ERROR {
                    let error = ServerError::parse(message.body);
                    self.clients[i].answer.error = Some((error.state(), error.to_string()));
                }
            }
        }
    }

    // ---------------------------------------------------------------- timers and telling

    fn set_timer(&mut self, i: Token, at: Nanos) {
        let client = &mut self.clients[i];
        client.timer += 1;
        self.timers.push(Reverse((at, i, client.timer)));
    }

    #[inline]
    fn fire_timers(&mut self) -> Result<(), EngineError> {
        if self.timers.is_empty() {
            return Ok(());
        }
        let now = self.driver.now();
        while let Some(Reverse((at, i, timer))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            if self.clients[i].timer != timer {
                continue;
            }
            match self.clients[i].state {
                State::Offline => self.to_connect.push_back(i),
                State::Connecting | State::Handshaking(_) => {
                    let what = match self.clients[i].state {
                        State::Connecting => "no connection",
                        _ => "the server took the connection and did not answer",
                    };
                    let reason = format!("{what} within {}", self.plan.connect_timeout);
                    self.connect_failed(i, now, self.cannot_connect(reason))?;
                }
                State::Sleeping => self.drive(i, now)?,
                _ => {}
            }
        }
        self.connect_more(now)
    }

    fn tell(&mut self, kind: &'static str, i: Token, now: Nanos, text: String) {
        self.events_told += 1;
        if self.events_told <= MAX_EVENTS {
            let at = now - self.origin;
            (self.report)(Report::Event(RunEvent { at, kind, client: self.first_client + i, text }));
        }
    }

    /// The first error of each code is told; all are counted.
    fn tell_error(&mut self, i: Token, now: Nanos, code: SqlState, text: &str) {
        if !self.errors_told.contains(&code) {
            self.errors_told.push(code);
            self.tell("first_error", i, now, text.to_owned());
        }
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

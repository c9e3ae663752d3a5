//! What a run shall do: everything but the workload and the target.

use crate::error::EngineError;
use pgdyno_base::Nanos;
use pgdyno_protocol::QueryMode;
use pgdyno_record::{Timeline, log};
use std::path::PathBuf;
use std::str::FromStr;

/// Condition that ends the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Time.
    Duration(Nanos),
    /// Transactions of each client.
    Transactions(u64),
}

/// Mechanism that waits for sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverKind {
    /// The fastest that works here: see [`crate::run`].
    #[default]
    Auto,
    /// Linux epoll, edge-triggered.
    Epoll,
    /// Linux io_uring.
    Uring,
    /// The `polling` library: epoll, kqueue, or what the system has.
    Polling,
}

impl FromStr for DriverKind {
    type Err = String;
    fn from_str(s: &str) -> Result<DriverKind, String> {
        match s {
            "auto" => Ok(DriverKind::Auto),
            "epoll" if cfg!(target_os = "linux") => Ok(DriverKind::Epoll),
            "uring" if cfg!(target_os = "linux") => Ok(DriverKind::Uring),
            "polling" => Ok(DriverKind::Polling),
            other => Err(format!(
                "driver \"{other}\" is not available here; it is auto, polling, or on Linux epoll or uring"
            )),
        }
    }
}

/// Effect of an error that is not retried on the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Permanent errors (a mistake in the script, SQLSTATE class 42 and the like) end the run; all others are counted.
    #[default]
    EndRun,
    /// It is counted, whatever it is.
    Count,
    /// It ends its client, as in pgbench. Serialization failures and deadlocks are counted.
    EndClient,
    /// Like [`OnError::EndClient`], but errors of the server are counted too: pgbench's `--continue-on-error`.
    EndClientUnlessSql,
}

impl OnError {
    /// Returns true if the run is to behave as pgbench's does.
    pub fn ends_clients(self) -> bool {
        matches!(self, OnError::EndClient | OnError::EndClientUnlessSql)
    }
}

/// Arrival rate of transactions in an open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Transactions per second over all clients, at the start.
    pub from: f64,
    /// Transactions per second over all clients, at the end of the ramp and from then on.
    pub to: f64,
    /// Length of the ramp; zero: no ramp.
    pub ramp: Nanos,
    /// Arrivals at even intervals instead of a Poisson process.
    pub constant: bool,
}

impl Rate {
    /// A Poisson process of so many transactions per second.
    pub fn poisson(rate: f64) -> Rate {
        Rate { from: rate, to: rate, ramp: Nanos::ZERO, constant: false }
    }
}

/// Two or more sides, each with its own clients, take turns: one at a time is under load; or all at once. Client `i` is
/// of side `i % sides`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duet {
    /// Time at the beginning of each turn that is not counted.
    pub transition: Nanos,
    /// Sides in the order of their turns, warm-up included. After the last turn the order starts again.
    pub order: Vec<usize>,
    /// Number of sides.
    pub sides: usize,
    /// Every turn is everybody's.
    pub together: bool,
}

impl Duet {
    /// Returns the side of a turn.
    pub fn side_of_turn(&self, turn: u64) -> usize {
        self.order[(turn % self.order.len() as u64) as usize]
    }
}

/// Location and format of the transaction log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPlan {
    /// The file of the first worker; those of the others have their number behind a dot.
    pub path: PathBuf,
    /// Format of the log.
    pub format: log::Format,
}

/// Messages that a run reports besides the figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Voice {
    /// The first of each kind of event.
    #[default]
    Events,
    /// Messages that pgbench writes to standard error, in its wording.
    Pgbench {
        /// Also errors that do not end anything.
        verbose: bool,
        /// Also everything that is sent and received.
        debug: bool,
    },
}

/// No server comes near it; beyond it arrivals would fall on one nanosecond.
const MAX_RATE: f64 = 1e7;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Connections, each with a client.
    pub clients: usize,
    /// Worker threads; at most one a client is used.
    pub workers: usize,
    /// Protocol that carries the statements.
    pub protocol: QueryMode,
    /// Condition that ends the measurement.
    pub limit: Limit,
    /// Recorded but not counted, before the measurement.
    pub warmup: Nanos,
    /// Length of an interval of the time series.
    pub interval: Nanos,
    /// Open loop: how transactions arrive. `None`: closed loop.
    pub rate: Option<Rate>,
    /// Sides that take turns; each interval is a turn.
    pub duet: Option<Duet>,
    /// Above this a committed transaction counts as late, one that is due longer ago is not begun, and none is retried.
    pub latency_limit: Option<Nanos>,
    /// Maximum number of tries of a transaction that meets a serialization failure or a deadlock; 0: no limit.
    pub max_tries: u32,
    /// Each transaction has a connection of its own.
    pub connect_each: bool,
    /// Open loop: what was due before the end is begun after it.
    pub begin_what_was_due: bool,
    /// The measurement goes on until the last transaction is done; there is no drain.
    pub measure_until_done: bool,
    /// Seed of all random streams.
    pub seed: u64,
    /// Maximum time until the session of a connection is ready.
    pub connect_timeout: Nanos,
    /// The longest pause before a lost connection is made again.
    pub longest_pause: Nanos,
    /// Maximum time to wait for an answer before its connection is given up as lost; `None`: no limit.
    pub answer_timeout: Option<Nanos>,
    /// Maximum time to wait for transactions that are under way, or were due, at the end.
    pub drain_timeout: Nanos,
    /// A lost connection is made again; else it ends the run.
    pub reconnect: bool,
    /// Effect of an error that is not retried.
    pub on_error: OnError,
    /// A client that ends early ends the run.
    pub exit_on_abort: bool,
    /// A log of transactions.
    pub log: Option<LogPlan>,
    /// Messages that the run reports besides the figures.
    pub voice: Voice,
    /// Start time, in nanoseconds since 1970; `None`: as soon as all clients are connected. An agreed time lets several
    /// processes or machines run one plan together.
    pub start_at: Option<u64>,
    /// Mechanism that waits for sockets.
    pub driver: DriverKind,
    /// Record how long each command takes.
    pub command_latency: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            clients: 1,
            workers: 1,
            protocol: QueryMode::Prepared,
            limit: Limit::Duration(Nanos::from_secs(10)),
            warmup: Nanos::ZERO,
            interval: Nanos::from_secs(1),
            rate: None,
            duet: None,
            latency_limit: None,
            max_tries: 1,
            connect_each: false,
            begin_what_was_due: true,
            measure_until_done: false,
            seed: 0,
            connect_timeout: Nanos::from_secs(10),
            longest_pause: Nanos::from_secs(1),
            answer_timeout: None,
            drain_timeout: Nanos::from_secs(5),
            reconnect: true,
            on_error: OnError::EndRun,
            exit_on_abort: false,
            log: None,
            voice: Voice::Events,
            start_at: None,
            driver: DriverKind::Auto,
            command_latency: true,
        }
    }
}

impl Plan {
    /// Refuses what makes no sense.
    pub fn validate(&self) -> Result<(), EngineError> {
        let bad = |m: &str| Err(EngineError::Plan(m.to_owned()));
        if self.clients == 0 {
            return bad("clients must be at least 1");
        }
        if self.workers == 0 {
            return bad("workers must be at least 1");
        }
        if self.interval < Nanos::from_millis(10) {
            return bad("interval must be at least 10 ms");
        }
        if matches!(self.limit, Limit::Duration(d) if d < Nanos::from_millis(10)) {
            return bad("duration must be at least 10 ms");
        }
        if matches!(self.limit, Limit::Transactions(0)) {
            return bad("transactions must be at least 1");
        }
        if self.rate.is_some_and(|r| [r.from, r.to].iter().any(|r| !(*r > 0.0 && *r <= MAX_RATE))) {
            return bad("rate must be above 0 and at most 10,000,000 transactions per second");
        }
        if matches!(self.limit, Limit::Transactions(_)) && self.warmup > Nanos::ZERO {
            return bad("a warm-up needs a duration, not a number of transactions");
        }
        self.duet.as_ref().map_or(Ok(()), |duet| self.validate_duet(duet))
    }

    fn validate_duet(&self, duet: &Duet) -> Result<(), EngineError> {
        let bad = |m: &str| Err(EngineError::Plan(m.to_owned()));
        if duet.order.is_empty() || duet.sides < 2 || duet.order.iter().any(|side| *side >= duet.sides) {
            return bad("a duet needs two sides, and turns of these");
        }
        if duet.transition == Nanos::ZERO {
            return bad("a duet needs a transition between its turns");
        }
        if self.clients % duet.sides != 0 {
            return bad("a duet needs as many clients on each side");
        }
        if self.rate.is_some() || self.connect_each || !matches!(self.limit, Limit::Duration(_)) {
            return bad("a duet is a closed loop, by time, over connections that stay");
        }
        Ok(())
    }

    /// Returns the timeline, which defines the position of the intervals.
    pub fn timeline(&self) -> Timeline {
        let duration = match self.limit {
            Limit::Duration(d) if !self.measure_until_done => d,
            _ => Nanos::MAX,
        };
        let transition = self.duet.as_ref().map_or(Nanos::ZERO, |d| d.transition);
        Timeline { warmup: self.warmup, duration, interval: self.interval, transition }
    }

    /// Returns the planned end, counted from the run's start; `Nanos::MAX` for a limit by transactions. No transaction
    /// begins after it, except those that were due before it if `begin_what_was_due` is set.
    pub fn end(&self) -> Nanos {
        match self.limit {
            Limit::Duration(d) => self.warmup + d,
            Limit::Transactions(_) => Nanos::MAX,
        }
    }

    /// Worker threads that have a client.
    pub fn active_workers(&self) -> usize {
        self.workers.min(self.clients)
    }

    /// The clients of each worker: contiguous and as even as can be, dealt as pgbench deals them.
    pub fn deal(&self) -> Vec<std::ops::Range<usize>> {
        let workers = self.active_workers();
        let mut dealt = 0;
        (0..workers)
            .map(|i| {
                let left = workers - i;
                let n = (self.clients - dealt).div_ceil(left);
                dealt += n;
                dealt - n..dealt
            })
            .collect()
    }
}

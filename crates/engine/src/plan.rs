//! What a run shall do: everything but the workload and the target.

use crate::error::EngineError;
use pgdyno_base::Nanos;
use pgdyno_record::Timeline;
use std::str::FromStr;

/// Which of PostgreSQL's query protocols carries the statements (pgbench's `-M`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// One Query message; values are written into the text.
    Simple,
    /// Parse, Bind, Execute each time.
    Extended,
    /// Parse once a connection, then Bind, Execute.
    Prepared,
}

impl FromStr for Protocol {
    type Err = String;
    fn from_str(s: &str) -> Result<Protocol, String> {
        match s {
            "simple" => Ok(Protocol::Simple),
            "extended" => Ok(Protocol::Extended),
            "prepared" => Ok(Protocol::Prepared),
            other => Err(format!("protocol \"{other}\" is unknown; it is simple, extended or prepared")),
        }
    }
}

/// What ends the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Time.
    Duration(Nanos),
    /// Transactions of each client.
    Transactions(u64),
}

/// How sockets are waited for.
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

/// No server comes near it; beyond it arrivals would fall on one nanosecond.
const MAX_RATE: f64 = 1e7;

/// What a run shall do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Connections, each with a client.
    pub clients: usize,
    /// Worker threads; at most one a client is used.
    pub workers: usize,
    /// How statements travel.
    pub protocol: Protocol,
    /// What ends the measurement.
    pub limit: Limit,
    /// Recorded but not counted, before the measurement.
    pub warmup: Nanos,
    /// Length of an interval of the time series.
    pub interval: Nanos,
    /// Open loop: transactions per second over all clients, arriving as a Poisson process. `None`: closed loop.
    pub rate: Option<f64>,
    /// Where all random streams come from.
    pub seed: u64,
    /// How long a connection may take until its session is ready.
    pub connect_timeout: Nanos,
    /// How long transactions that are under way, or were due, at the end are waited for.
    pub drain_timeout: Nanos,
    /// A lost connection is made again; else it ends the run.
    pub reconnect: bool,
    /// Go on although the server says that a statement can never succeed (SQLSTATE class 42 and the like).
    pub continue_on_error: bool,
    /// When to begin, in nanoseconds since 1970; `None`: as soon as all clients are connected. An agreed time lets
    /// several processes or machines run one plan together.
    pub start_at: Option<u64>,
    /// How sockets are waited for.
    pub driver: DriverKind,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            clients: 1,
            workers: 1,
            protocol: Protocol::Prepared,
            limit: Limit::Duration(Nanos::from_secs(10)),
            warmup: Nanos::ZERO,
            interval: Nanos::from_secs(1),
            rate: None,
            seed: 0,
            connect_timeout: Nanos::from_secs(10),
            drain_timeout: Nanos::from_secs(5),
            reconnect: true,
            continue_on_error: false,
            start_at: None,
            driver: DriverKind::Auto,
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
        if self.rate.is_some_and(|r| !(r > 0.0 && r <= MAX_RATE)) {
            return bad("rate must be above 0 and at most 10,000,000 transactions per second");
        }
        if matches!(self.limit, Limit::Transactions(_)) && self.warmup > Nanos::ZERO {
            return bad("a warm-up needs a duration, not a number of transactions");
        }
        Ok(())
    }

    /// Where the intervals lie.
    pub fn timeline(&self) -> Timeline {
        let duration = match self.limit {
            Limit::Duration(d) => d,
            Limit::Transactions(_) => Nanos::MAX,
        };
        Timeline { warmup: self.warmup, duration, interval: self.interval }
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

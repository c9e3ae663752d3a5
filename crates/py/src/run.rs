//! Runs.

use crate::config::{ConnConfig, MySqlConfig};
use crate::errors;
use crate::interval::Interval;
use crate::script::{Command, Workload};
use pgdyno_base::Nanos;
use pgdyno_engine as engine;
use pgdyno_engine::Observation;
use pgdyno_engine::worker::{STOP_NOW, STOP_SOON};
use pgdyno_mysql::MySql;
use pgdyno_postgres::Postgres;
use pgdyno_protocol::{Dialect, Either, OneOf};
use pgdyno_record as record;
use pgdyno_record::Phase;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Interval between checks for signals.
const TICK: Duration = Duration::from_millis(50);

/// Something that happened at a time.
#[pyclass(frozen, get_all, module = "pgdyno._core")]
pub struct Event {
    at_ns: u64,
    kind: &'static str,
    client: usize,
    text: String,
}

/// Names of all kinds of events.
#[pyfunction]
pub fn event_kinds() -> Vec<&'static str> {
    engine::EventKind::ALL.iter().map(|k| k.as_str()).collect()
}

/// Result of a run.
#[pyclass(frozen, module = "pgdyno._core")]
pub struct RunResult {
    summary: engine::Summary,
    raised: Option<PyErr>,
    commands: Vec<Command>,
    scripts: Vec<String>,
}

#[pymethods]
impl RunResult {
    /// Nanoseconds since 1970.
    #[getter]
    fn start_ns(&self) -> u64 {
        self.summary.start
    }

    #[getter]
    fn connect_ns(&self) -> u64 {
        self.summary.connect_time.0
    }

    /// Length of the measurement.
    #[getter]
    fn elapsed_ns(&self) -> u64 {
        self.summary.elapsed.0
    }

    #[getter]
    fn interrupted(&self) -> bool {
        self.summary.interrupted
    }

    /// The exception that stopped the run, if one did: the observer's, or a signal handler's.
    #[getter]
    fn raised(&self, py: Python<'_>) -> Option<PyErr> {
        self.raised.as_ref().map(|e| e.clone_ref(py))
    }

    /// Returns the method that the workers used to wait for their sockets: epoll, io_uring, polling.
    #[getter]
    fn driver(&self) -> &'static str {
        self.summary.driver
    }

    /// Returns the reason the run ended early, or `None` if it did not.
    #[getter]
    fn error(&self) -> Option<String> {
        self.summary.error.as_ref().map(ToString::to_string)
    }

    /// All of a phase (`warmup`, `measure`, `transition`, `drain`), if the run got there.
    fn phase(&self, name: &str) -> Option<Interval> {
        let phase =
            [Phase::Warmup, Phase::Measure, Phase::Transition, Phase::Drain].into_iter().find(|p| p.name() == name)?;
        self.summary.phases.get(&phase).cloned().map(Interval::from)
    }

    /// The server's code of that, if it is a server's error.
    #[getter]
    fn error_sqlstate(&self) -> Option<String> {
        self.summary.error.as_ref().and_then(engine::EngineError::sqlstate).map(|s| s.to_string())
    }

    /// Returns true if a mistake in a script ended the run early.
    #[getter]
    fn error_in_script(&self) -> bool {
        matches!(self.summary.error, Some(engine::EngineError::Script(_)))
    }

    /// Returns the number of the worker in which a client's early end ended the run. Returns `None` if that did not
    /// happen.
    #[getter]
    fn aborted_in(&self) -> Option<usize> {
        match self.summary.error {
            Some(engine::EngineError::Aborted(worker)) => Some(worker),
            _ => None,
        }
    }

    #[getter]
    fn commands(&self) -> Vec<Command> {
        self.commands.clone()
    }

    #[getter]
    fn scripts(&self) -> Vec<String> {
        self.scripts.clone()
    }
}

/// Passes on what the engine shows; holds the request to stop.
struct Channel {
    sender: mpsc::Sender<Observation>,
    stop: Arc<std::sync::atomic::AtomicU8>,
}

impl engine::Observer for Channel {
    fn observe(&mut self, observation: Observation) {
        let _ = self.sender.send(observation);
    }

    fn tick(&mut self) -> u8 {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// `pgdyno.engine.Rate`.
#[derive(Clone, Copy, FromPyObject)]
struct Rate {
    start: f64,
    end: f64,
    ramp_s: f64,
    constant: bool,
}

/// `pgdyno.engine.Duet`.
#[derive(FromPyObject)]
struct Duet {
    transition_s: f64,
    order: Vec<usize>,
    sides: usize,
    together: bool,
}

/// `pgdyno.engine.TransactionLog`.
#[derive(FromPyObject)]
struct TransactionLog {
    path: PathBuf,
    sampling_rate: f64,
    aggregate_s: u64,
    detailed: bool,
    other_failures: bool,
    percentiles: Vec<f64>,
}

/// `pgdyno.engine.Voice`.
#[derive(FromPyObject)]
struct Voice {
    verbose: bool,
    debug: bool,
}

/// `pgdyno.engine.Plan`.
#[derive(FromPyObject)]
pub struct Plan {
    clients: usize,
    workers: usize,
    protocol: String,
    duration_s: Option<f64>,
    transactions: Option<u64>,
    warmup_s: f64,
    interval_s: f64,
    rate: Option<Rate>,
    duet: Option<Duet>,
    seed: u64,
    connect_timeout_s: f64,
    longest_pause_s: f64,
    answer_timeout_s: Option<f64>,
    drain_timeout_s: f64,
    reconnect: bool,
    on_error: String,
    start_at_ns: Option<u64>,
    driver: String,
    latency_limit_s: Option<f64>,
    max_tries: u32,
    connect_each: bool,
    begin_what_was_due: bool,
    measure_until_done: bool,
    command_latency: bool,
    exit_on_abort: bool,
    log: Option<TransactionLog>,
    voice: Option<Voice>,
}

impl Plan {
    fn to_engine(&self) -> PyResult<engine::Plan> {
        let limit = match (self.duration_s, self.transactions) {
            (Some(s), None) => engine::Limit::Duration(Nanos::from_secs_f64(s)),
            (None, Some(n)) => engine::Limit::Transactions(n),
            _ => return Err(errors::other("give either a duration or a number of transactions")),
        };
        let on_error = match self.on_error.as_str() {
            "end_run" => engine::OnError::EndRun,
            "count" => engine::OnError::Count,
            "end_client" => engine::OnError::EndClient,
            "end_client_unless_sql" => engine::OnError::EndClientUnlessSql,
            other => return Err(errors::other(format!("on_error \"{other}\" is unknown"))),
        };
        let log = self.log.as_ref().map(|log| engine::LogPlan {
            path: log.path.clone(),
            format: record::log::Format {
                sampling_rate: log.sampling_rate,
                aggregate: log.aggregate_s,
                throttled: self.rate.is_some(),
                limited: self.latency_limit_s.is_some(),
                retries: self.max_tries != 1,
                detailed: log.detailed,
                other_failures: log.other_failures,
                percentiles: log.percentiles.clone(),
            },
        });
        let voice = match &self.voice {
            Some(v) => engine::Voice::Pgbench { verbose: v.verbose, debug: v.debug },
            None => engine::Voice::Events,
        };
        let rate = self.rate.map(|r| engine::Rate {
            from: r.start,
            to: r.end,
            ramp: Nanos::from_secs_f64(r.ramp_s),
            constant: r.constant,
        });
        Ok(engine::Plan {
            clients: self.clients,
            workers: self.workers,
            protocol: self.protocol.parse().map_err(errors::other)?,
            limit,
            warmup: Nanos::from_secs_f64(self.warmup_s),
            interval: Nanos::from_secs_f64(self.interval_s),
            rate,
            duet: self.duet.as_ref().map(|d| engine::Duet {
                transition: Nanos::from_secs_f64(d.transition_s),
                order: d.order.clone(),
                sides: d.sides,
                together: d.together,
            }),
            seed: self.seed,
            connect_timeout: Nanos::from_secs_f64(self.connect_timeout_s),
            longest_pause: Nanos::from_secs_f64(self.longest_pause_s),
            answer_timeout: self.answer_timeout_s.map(Nanos::from_secs_f64),
            drain_timeout: Nanos::from_secs_f64(self.drain_timeout_s),
            reconnect: self.reconnect,
            on_error,
            exit_on_abort: self.exit_on_abort,
            latency_limit: self.latency_limit_s.map(Nanos::from_secs_f64),
            max_tries: self.max_tries,
            connect_each: self.connect_each,
            begin_what_was_due: self.begin_what_was_due,
            measure_until_done: self.measure_until_done,
            command_latency: self.command_latency,
            log,
            voice,
            start_at: self.start_at_ns,
            driver: self.driver.parse().map_err(errors::other)?,
        })
    }
}

/// An exception that programs catch; not a signal's.
fn is_failure(py: Python<'_>, e: &PyErr) -> bool {
    e.is_instance_of::<PyException>(py)
}

/// A server of one of the products.
#[derive(FromPyObject)]
pub enum Server<'py> {
    Postgres(PyRef<'py, ConnConfig>),
    MySql(PyRef<'py, MySqlConfig>),
}

/// Settings of a server, if it is of this product.
trait SettingsOf: Dialect {
    fn of(server: &Server<'_>) -> Option<Self::Config>;
}

impl SettingsOf for Postgres {
    fn of(server: &Server<'_>) -> Option<Self::Config> {
        match server {
            Server::Postgres(config) => Some(config.inner.clone()),
            Server::MySql(_) => None,
        }
    }
}

impl SettingsOf for MySql {
    fn of(server: &Server<'_>) -> Option<Self::Config> {
        match server {
            Server::MySql(config) => Some(config.inner.clone()),
            Server::Postgres(_) => None,
        }
    }
}

impl SettingsOf for Either<Postgres, MySql> {
    fn of(server: &Server<'_>) -> Option<Self::Config> {
        Some(match server {
            Server::Postgres(config) => OneOf::First(Arc::new(config.inner.clone())),
            Server::MySql(config) => OneOf::Second(Arc::new(config.inner.clone())),
        })
    }
}

type Running = std::thread::JoinHandle<Result<engine::Summary, engine::EngineError>>;

/// Starts the engine on a product's servers.
fn start<P: SettingsOf>(
    servers: &[Server<'_>],
    plan: engine::Plan,
    workload: &Workload,
    seed: u64,
    mut channel: Channel,
) -> PyResult<(Arc<dyn engine::Workload>, Running)> {
    let targets: Option<Vec<P::Config>> = servers.iter().map(P::of).collect();
    let targets = targets.ok_or_else(|| errors::other("the servers of a run are of one product"))?;
    let workload = workload.build::<P>(seed).map_err(errors::other)?;
    let shared = workload.clone();
    Ok((workload, std::thread::spawn(move || engine::run::<P>(plan, targets, shared, &mut channel))))
}

/// Runs `workload` against `configs`, over which the clients are spread. `observer` has methods `started(start_ns,
/// connect_ns)`, `interval(Interval)` and `event(Event)`. An exception in one of them, or from a signal handler, stops the
/// run: transactions under way are brought to their end, a second one does not wait for them. It is then in the result's
/// `raised`.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    configs: Vec<Server<'_>>,
    workload: &Workload,
    observer: &Bound<'_, PyAny>,
    plan: Plan,
) -> PyResult<RunResult> {
    let engine_plan = plan.to_engine()?;
    let (sender, observations) = mpsc::channel();
    let stop = Arc::new(std::sync::atomic::AtomicU8::new(0));
    let channel = Channel { sender, stop: stop.clone() };
    let mysql = configs.iter().filter(|c| matches!(c, Server::MySql(_))).count();
    let (workload, thread) = match mysql {
        0 => start::<Postgres>(&configs, engine_plan, workload, plan.seed, channel)?,
        n if n == configs.len() => start::<MySql>(&configs, engine_plan, workload, plan.seed, channel)?,
        _ => start::<Either<Postgres, MySql>>(&configs, engine_plan, workload, plan.seed, channel)?,
    };

    let observations = Mutex::new(observations);
    let mut raised: Option<PyErr> = None;
    loop {
        let next = py
            .detach(|| observations.lock().map_or(Err(mpsc::RecvTimeoutError::Disconnected), |o| o.recv_timeout(TICK)));
        let step = match next {
            Ok(Observation::Started { start, connect_time }) => {
                observer.call_method1("started", (start, connect_time.0)).map(drop)
            }
            Ok(Observation::Interval(i)) => observer.call_method1("interval", (Interval::from(*i),)).map(drop),
            // The place is kept until the message is printed.
            Ok(Observation::Event(e, _place)) => {
                let event = Event { at_ns: e.at.0, kind: e.kind.as_str(), client: e.client, text: e.text };
                observer.call_method1("event", (event,)).map(drop)
            }
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(()),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        };
        if let Err(e) = step.and_then(|()| py.check_signals()) {
            // The first request to stop lets transactions end; the second does not wait.
            let how = if raised.is_some() { STOP_NOW } else { STOP_SOON };
            stop.fetch_max(how, std::sync::atomic::Ordering::Relaxed);
            // A signal is not lost to what the observer ended the run with, which may be all in order.
            if raised.as_ref().is_none_or(|r| is_failure(py, r) && !is_failure(py, &e)) {
                raised = Some(e);
            }
        }
    }
    let result = py.detach(|| thread.join());
    let result = result.map_err(|_| errors::other("the engine has crashed; this is a defect of pgdyno"))?;
    let summary = match (result, &raised) {
        (Ok(summary), _) => summary,
        (Err(_), Some(e)) => return Err(e.clone_ref(py)),
        (Err(e), None) => return Err(errors::engine(&e)),
    };
    Ok(RunResult {
        raised,
        summary,
        commands: workload.commands().iter().map(Command::from).collect(),
        scripts: workload.scripts(),
    })
}

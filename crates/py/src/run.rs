//! Runs.

use crate::config::ConnConfig;
use crate::errors;
use crate::interval::Interval;
use crate::script::{Command, Workload};
use pgdyno_base::Nanos;
use pgdyno_engine as engine;
use pgdyno_engine::Workload as _;
use pgdyno_engine::worker::{RunEvent, STOP_NOW, STOP_SOON};
use pgdyno_record as record;
use pgdyno_record::Phase;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// Something that happened at a time.
#[pyclass(frozen, get_all, module = "pgdyno._core")]
pub struct Event {
    at_ns: u64,
    kind: &'static str,
    client: usize,
    text: String,
}

/// What a run came to.
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

    /// Why the run ended early, if it did.
    #[getter]
    fn error(&self) -> Option<String> {
        self.summary.error.as_ref().map(ToString::to_string)
    }

    /// All of a phase (`warmup`, `measure`, `drain`), if the run got there.
    fn phase(&self, name: &str) -> Option<Interval> {
        let phase = [Phase::Warmup, Phase::Measure, Phase::Drain].into_iter().find(|p| p.name() == name)?;
        self.summary.phases.get(&phase).cloned().map(Interval::from)
    }

    /// Whether that was a mistake in a script.
    #[getter]
    fn error_in_script(&self) -> bool {
        matches!(self.summary.error, Some(engine::EngineError::Script(_)))
    }

    /// Whether a client's end ended the run, and of which worker it was.
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

enum Told {
    Started(u64, u64),
    Interval(Box<record::Interval>),
    Event(RunEvent),
}

/// Passes on what the engine tells; holds the wish to stop.
struct Channel {
    tell: mpsc::Sender<Told>,
    stop: Arc<std::sync::atomic::AtomicU8>,
}

impl engine::Observer for Channel {
    fn started(&mut self, start: u64, connect_time: Nanos) {
        let _ = self.tell.send(Told::Started(start, connect_time.0));
    }

    fn interval(&mut self, interval: &record::Interval) {
        let _ = self.tell.send(Told::Interval(Box::new(interval.clone())));
    }

    fn event(&mut self, event: &RunEvent) {
        let _ = self.tell.send(Told::Event(event.clone()));
    }

    fn tick(&mut self) -> u8 {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// The rate of an open loop: `(from, to, ramp in seconds, constant)`.
type RateTuple = (f64, f64, f64, bool);

/// The log of transactions: path, sampling rate, seconds in a line (0: a line for each), failures told apart, a third
/// column of failures, percentiles.
type LogTuple = (PathBuf, f64, u64, bool, bool, Vec<f64>);

/// Runs `workload` against `configs`, over which the clients are spread. `observer` has methods `started(start_ns, connect_ns)`, `interval(Interval)` and
/// `event(Event)`. An exception in one of them, or from a signal handler, stops the run: transactions under way
/// are brought to their end, a second one does not wait for them. It is then in the result's `raised`. `on_error`:
/// `end_run`, `count`, `end_client`, `end_client_unless_sql`. `voice`: `events`, `pgbench`, with `+verbose` and `+debug`.
#[pyfunction]
#[pyo3(signature = (configs, workload, observer, *, clients, workers=1, protocol="prepared", duration_s=None,
                    transactions=None, warmup_s=0.0, interval_s=1.0, rate=None, seed=0, connect_timeout_s=10.0,
                    drain_timeout_s=5.0, reconnect=true, on_error="end_run", start_at_ns=None, driver="auto",
                    latency_limit_s=None, max_tries=1, connect_each=false, begin_what_was_due=true,
                    measure_until_done=false, command_latency=true, exit_on_abort=false, log=None, voice="events"))]
#[allow(clippy::too_many_arguments)]
pub fn run(
    py: Python<'_>,
    configs: Vec<PyRef<'_, ConnConfig>>,
    workload: &Workload,
    observer: &Bound<'_, PyAny>,
    clients: usize,
    workers: usize,
    protocol: &str,
    duration_s: Option<f64>,
    transactions: Option<u64>,
    warmup_s: f64,
    interval_s: f64,
    rate: Option<RateTuple>,
    seed: u64,
    connect_timeout_s: f64,
    drain_timeout_s: f64,
    reconnect: bool,
    on_error: &str,
    start_at_ns: Option<u64>,
    driver: &str,
    latency_limit_s: Option<f64>,
    max_tries: u32,
    connect_each: bool,
    begin_what_was_due: bool,
    measure_until_done: bool,
    command_latency: bool,
    exit_on_abort: bool,
    log: Option<LogTuple>,
    voice: &str,
) -> PyResult<RunResult> {
    let limit = match (duration_s, transactions) {
        (Some(s), None) => engine::Limit::Duration(Nanos::from_secs_f64(s)),
        (None, Some(n)) => engine::Limit::Transactions(n),
        _ => return Err(errors::other("give either a duration or a number of transactions")),
    };
    let on_error = match on_error {
        "end_run" => engine::OnError::EndRun,
        "count" => engine::OnError::Count,
        "end_client" => engine::OnError::EndClient,
        "end_client_unless_sql" => engine::OnError::EndClientUnlessSql,
        other => return Err(errors::other(format!("on_error \"{other}\" is unknown"))),
    };
    let rate =
        rate.map(|(from, to, ramp, constant)| engine::Rate { from, to, ramp: Nanos::from_secs_f64(ramp), constant });
    let log = log.map(|(path, sampling_rate, aggregate, detailed, other_failures, percentiles)| engine::LogPlan {
        path,
        format: record::log::Format {
            sampling_rate,
            aggregate,
            throttled: rate.is_some(),
            limited: latency_limit_s.is_some(),
            retries: max_tries != 1,
            detailed,
            other_failures,
            percentiles,
        },
    });
    let voice = match voice.split('+').next() {
        Some("pgbench") => {
            engine::Voice::Pgbench { verbose: voice.contains("+verbose"), debug: voice.contains("+debug") }
        }
        _ => engine::Voice::Events,
    };
    let plan = engine::Plan {
        clients,
        workers,
        protocol: protocol.parse().map_err(errors::other)?,
        limit,
        warmup: Nanos::from_secs_f64(warmup_s),
        interval: Nanos::from_secs_f64(interval_s),
        rate,
        seed,
        connect_timeout: Nanos::from_secs_f64(connect_timeout_s),
        drain_timeout: Nanos::from_secs_f64(drain_timeout_s),
        reconnect,
        on_error,
        exit_on_abort,
        latency_limit: latency_limit_s.map(Nanos::from_secs_f64),
        max_tries,
        connect_each,
        begin_what_was_due,
        measure_until_done,
        command_latency,
        log,
        voice,
        start_at: start_at_ns,
        driver: driver.parse().map_err(errors::other)?,
    };
    let workload = Arc::new(workload.build(seed).map_err(errors::other)?);
    let (tell, told) = mpsc::channel();
    let stop = Arc::new(std::sync::atomic::AtomicU8::new(0));
    let mut channel = Channel { tell, stop: stop.clone() };
    let shared = workload.clone();
    let targets = configs.iter().map(|c| c.inner.clone()).collect();
    let thread = std::thread::spawn(move || engine::run(plan, targets, shared, &mut channel));

    let told = Mutex::new(told);
    let mut raised: Option<PyErr> = None;
    loop {
        let next =
            py.detach(|| told.lock().map_or(Err(mpsc::RecvTimeoutError::Disconnected), |t| t.recv_timeout(TICK)));
        let step = match next {
            Ok(Told::Started(start, connect)) => observer.call_method1("started", (start, connect)).map(drop),
            Ok(Told::Interval(i)) => observer.call_method1("interval", (Interval::from(*i),)).map(drop),
            Ok(Told::Event(e)) => {
                let event = Event { at_ns: e.at.0, kind: e.kind, client: e.client, text: e.text };
                observer.call_method1("event", (event,)).map(drop)
            }
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(()),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        };
        if let Err(e) = step.and_then(|()| py.check_signals()) {
            // The first wish to stop lets transactions end; the second does not wait.
            let wish = if raised.is_some() { STOP_NOW } else { STOP_SOON };
            stop.fetch_max(wish, std::sync::atomic::Ordering::Relaxed);
            raised.get_or_insert(e);
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

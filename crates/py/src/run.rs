//! Runs.

use crate::config::ConnConfig;
use crate::errors;
use crate::interval::{Interval, Statement};
use crate::script::Script;
use pgdyno_base::Nanos;
use pgdyno_engine as engine;
use pgdyno_engine::Workload;
use pgdyno_engine::worker::{RunEvent, STOP_NOW, STOP_SOON};
use pgdyno_record as record;
use pgdyno_record::Phase;
use pyo3::prelude::*;
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
    statements: Vec<Statement>,
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

    #[getter]
    fn statements(&self) -> Vec<Statement> {
        self.statements.clone()
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

/// Runs `scripts` against `config`. `observer` has methods `started(start_ns, connect_ns)`, `interval(Interval)` and
/// `event(Event)`. An exception in one of them, or from a signal handler, stops the run: transactions under way
/// are brought to their end, a second one does not wait for them. It is then in the result's `raised`.
#[pyfunction]
#[pyo3(signature = (config, scripts, observer, *, clients, workers=1, protocol="prepared", duration_s=None,
                    transactions=None, warmup_s=0.0, interval_s=1.0, rate=None, seed=0, connect_timeout_s=10.0,
                    drain_timeout_s=5.0, reconnect=true, continue_on_error=false, start_at_ns=None, driver="auto"))]
#[allow(clippy::too_many_arguments)]
pub fn run(
    py: Python<'_>,
    config: &ConnConfig,
    scripts: Vec<PyRef<'_, Script>>,
    observer: &Bound<'_, PyAny>,
    clients: usize,
    workers: usize,
    protocol: &str,
    duration_s: Option<f64>,
    transactions: Option<u64>,
    warmup_s: f64,
    interval_s: f64,
    rate: Option<f64>,
    seed: u64,
    connect_timeout_s: f64,
    drain_timeout_s: f64,
    reconnect: bool,
    continue_on_error: bool,
    start_at_ns: Option<u64>,
    driver: &str,
) -> PyResult<RunResult> {
    let limit = match (duration_s, transactions) {
        (Some(s), None) => engine::Limit::Duration(Nanos::from_secs_f64(s)),
        (None, Some(n)) => engine::Limit::Transactions(n),
        _ => return Err(errors::other("give either a duration or a number of transactions")),
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
        continue_on_error,
        start_at: start_at_ns,
        driver: driver.parse().map_err(errors::other)?,
    };
    let scripts = scripts.iter().map(|s| engine::Script { program: s.program.clone(), weight: s.weight }).collect();
    let workload = Arc::new(engine::ScriptWorkload::new(scripts, seed).map_err(errors::other)?);
    let (tell, told) = mpsc::channel();
    let stop = Arc::new(std::sync::atomic::AtomicU8::new(0));
    let mut channel = Channel { tell, stop: stop.clone() };
    let (shared, config) = (workload.clone(), config.inner.clone());
    let thread = std::thread::spawn(move || engine::run(plan, config, shared, &mut channel));

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
        statements: workload.statements().iter().map(Statement::from).collect(),
        scripts: workload.scripts(),
    })
}

//! A run: workers on threads, their intervals added up and handed to an observer as they come.

use crate::backlog::{Backlog, Place};
use crate::driver::Driver;
use crate::driver::portable::Portable;
#[cfg(target_os = "linux")]
use crate::driver::{epoll::Epoll, uring::Uring};
use crate::error::EngineError;
use crate::events::{Report, RunEvent};
use crate::plan::{DriverKind, Plan, Voice};
use crate::worker::{STOP_NOW, StopFlag, Streams, Worker};
use crate::workload::WorkloadOn;
use pgdyno_base::{Nanos, Prng};
use pgdyno_protocol::Dialect;
use pgdyno_record::{Interval, Phase, TransactionLog};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Interval at which an observer is asked whether to continue.
const TICK: Duration = Duration::from_millis(50);

/// Behind all intervals: nothing more comes.
const NEVER: (bool, u64) = (true, u64::MAX);

/// Progress that a run reports to its observer.
#[derive(Debug)]
pub enum Observation {
    /// All clients are connected.
    Started {
        /// Start time of the run, in nanoseconds since 1970.
        start: u64,
        /// Elapsed time to connect all clients.
        connect_time: Nanos,
    },
    /// An interval is over on all workers.
    Interval(Box<Interval>),
    /// Something happened. The place is given back when it has been dealt with: in pgbench's voice workers wait for it.
    Event(RunEvent, Place),
}

/// Observer of a run.
pub trait Observer {
    /// Takes what there is to see, in order.
    fn observe(&mut self, observation: Observation);
    /// Called every 50 ms: 0 to go on, else a value for the stop flag.
    fn tick(&mut self) -> u8;
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Start time of the run, in nanoseconds since 1970.
    pub start: u64,
    /// Elapsed time to connect all clients.
    pub connect_time: Nanos,
    /// Length of the measurement.
    pub elapsed: Nanos,
    /// All of each phase that the run reached.
    pub phases: BTreeMap<Phase, Interval>,
    /// An observer asked it to stop.
    pub interrupted: bool,
    /// Name of the driver by which the workers waited for their sockets.
    pub driver: &'static str,
    /// Error that ended the run early, if any. `phases` holds everything measured until then.
    pub error: Option<EngineError>,
}

/// Message from a worker to its conductor.
enum Message {
    /// All its clients are connected; the name of its driver.
    Connected(&'static str),
    /// Interval that is over on one worker, with the worker's number.
    Interval(usize, Box<Interval>),
    /// Something happened.
    Event(RunEvent, Place),
    /// It has come to its end.
    Over(usize, Result<(), EngineError>),
}

/// Gate at which workers wait once they are connected.
#[derive(Default)]
struct Gate {
    go: Mutex<Option<Option<Nanos>>>,
    changed: Condvar,
}

impl Gate {
    fn open(&self, origin: Option<Nanos>) {
        let mut go = self.go.lock().unwrap_or_else(|e| e.into_inner());
        go.get_or_insert(origin);
        self.changed.notify_all();
    }

    /// Waits until the gate opens. Returns the start time; `None`: the run does not start.
    fn pass(&self) -> Option<Nanos> {
        let mut go = self.go.lock().unwrap_or_else(|e| e.into_inner());
        while go.is_none() {
            go = self.changed.wait(go).unwrap_or_else(|e| e.into_inner());
        }
        go.flatten()
    }
}

/// The random streams of a run, in pgbench's order: the clients', then `default_seed`, then three a thread.
pub fn streams(plan: &Plan) -> Vec<Streams> {
    let mut base = Prng::from_seed(plan.seed);
    let mut clients: Vec<Prng> = (0..plan.clients).map(|_| base.split()).collect();
    let default_seed = base.next_u64() as i64;
    let mut jitter = Prng::from_seed(plan.seed ^ 0x6a69_7474_6572);
    plan.deal()
        .into_iter()
        .map(|range| {
            let (choose, throttle, sample) = (base.split(), base.split(), base.split());
            let clients = clients.drain(..range.len()).collect();
            Streams { clients, choose, throttle, sample, jitter: jitter.split(), default_seed }
        })
        .collect()
}

/// Carries out `plan` against one or more targets. An error before the first interval is returned; a later one is in the summary.
pub fn run<P: Dialect>(
    plan: Plan,
    targets: Vec<P::Config>,
    workload: Arc<dyn WorkloadOn<P>>,
    observer: &mut dyn Observer,
) -> Result<Summary, EngineError> {
    plan.validate()?;
    if targets.is_empty() {
        return Err(EngineError::Plan("there is no target".into()));
    }
    allow_descriptors(plan.clients, plan.active_workers())?;
    let origin = Instant::now();
    let driver = chosen(plan.driver, origin);
    let plan = Arc::new(Plan { driver, ..plan });
    let configs: Vec<Arc<P::Config>> = targets.into_iter().map(Arc::new).collect();
    let stop = StopFlag::default();
    let gate = Arc::new(Gate::default());
    let (sender, messages) = mpsc::channel();
    let backlog = matches!(plan.voice, Voice::Pgbench { .. }).then(|| Arc::new(Backlog::new(stop.clone())));
    let mut threads = Vec::new();
    for (number, (range, streams)) in plan.deal().into_iter().zip(streams(&plan)).enumerate() {
        let job = Job {
            number,
            plan: plan.clone(),
            configs: configs.clone(),
            workload: workload.clone(),
            range,
            streams,
            stop: stop.clone(),
            gate: gate.clone(),
            messages: sender.clone(),
            backlog: backlog.clone(),
            origin,
        };
        let spawned = std::thread::Builder::new().name(format!("pgdyno-{}", threads.len())).spawn(move || job.work());
        match spawned {
            Ok(thread) => threads.push(thread),
            Err(e) => {
                stop.store(STOP_NOW, Ordering::Relaxed);
                gate.open(None);
                // Nobody will read what they say: who waits for room finds it.
                drop(messages);
                threads.into_iter().for_each(|t| drop(t.join()));
                return Err(EngineError::System(format!("cannot start a worker thread: {e}")));
            }
        }
    }
    drop(sender);
    let result = Conductor { plan: &plan, stop, gate, origin, workers: threads.len(), observer }.conduct(&messages);
    for thread in threads {
        let _ = thread.join();
    }
    result
}

/// The driver of all workers. The same for any number of clients: figures that are compared, and the levels of a sweep,
/// must not be measured by different means (docs/decisions/0003-io-uring.md).
fn chosen(wanted: DriverKind, origin: Instant) -> DriverKind {
    match wanted {
        #[cfg(target_os = "linux")]
        DriverKind::Auto if Uring::new(origin).is_ok() => DriverKind::Uring,
        #[cfg(target_os = "linux")]
        DriverKind::Auto => DriverKind::Epoll,
        #[cfg(not(target_os = "linux"))]
        DriverKind::Auto => DriverKind::Polling,
        other => other,
    }
}

/// Makes sure that so many connections can be open.
fn allow_descriptors(clients: usize, workers: usize) -> Result<(), EngineError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Standard streams, the driver's descriptors, a Python interpreter's files, connections that carry a cancel request.
    let need = (clients + 4 * workers) as u64 + 100;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|n| n >= need) {
        return Ok(());
    }
    if limit.maximum.is_none_or(|n| n >= need)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(need), maximum: limit.maximum }).is_ok()
    {
        return Ok(());
    }
    Err(EngineError::Limit(format!(
        "{clients} clients need {need} file descriptors and the limit is {}; raise it (ulimit -n {need}) or use fewer \
         clients",
        limit.maximum.or(limit.current).unwrap_or(0)
    )))
}

/// The transaction log of worker `number`.
fn open_log(plan: &Plan, number: usize, sample: &Prng) -> Result<Option<TransactionLog>, EngineError> {
    let Some(log) = &plan.log else { return Ok(None) };
    let mut path = log.path.clone();
    if number > 0 {
        path.as_mut_os_string().push(format!(".{number}"));
    }
    let made = TransactionLog::create(&path, log.format.clone(), sample.clone());
    made.map(Some).map_err(|e| {
        let reason = e.to_string();
        let reason = reason.split(" (os error").next().unwrap_or_default();
        EngineError::System(format!("could not open logfile \"{}\": {reason}", path.display()))
    })
}

fn cannot(e: std::io::Error) -> EngineError {
    EngineError::System(format!("cannot wait for sockets: {e}"))
}

/// Input of a worker thread.
struct Job<P: Dialect> {
    number: usize,
    plan: Arc<Plan>,
    configs: Vec<Arc<P::Config>>,
    workload: Arc<dyn WorkloadOn<P>>,
    range: Range<usize>,
    streams: Streams,
    stop: StopFlag,
    gate: Arc<Gate>,
    messages: Sender<Message>,
    /// Backlog of pgbench's messages, whose number is unlimited. Other events are few and need no backlog.
    backlog: Option<Arc<Backlog>>,
    origin: Instant,
}

impl<P: Dialect> Job<P> {
    fn work(self) {
        let (messages, number) = (self.messages.clone(), self.number);
        // A worker that dies must not look like one that is done.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.run()));
        let crashed = || Err(EngineError::System("a worker thread has crashed; this is a defect of pgdyno".into()));
        let _ = messages.send(Message::Over(number, outcome.unwrap_or_else(|_| crashed())));
    }

    fn run(self) -> Result<(), EngineError> {
        #[cfg(target_os = "linux")]
        match self.plan.driver {
            DriverKind::Epoll => {
                let driver = Epoll::new(self.origin).map_err(cannot)?;
                return self.drive(driver);
            }
            DriverKind::Uring => {
                let driver = Uring::new(self.origin).map_err(|e| {
                    EngineError::System(format!(
                        "io_uring is not available here ({e}); it needs Linux 6.1 and may be forbidden \
                         (sysctl kernel.io_uring_disabled, a container's seccomp filter). Use driver auto or epoll"
                    ))
                })?;
                return self.drive(driver);
            }
            DriverKind::Auto | DriverKind::Polling => {}
        }
        let driver = Portable::new(self.origin).map_err(cannot)?;
        self.drive(driver)
    }

    fn drive<D: Driver>(self, driver: D) -> Result<(), EngineError> {
        let messages = self.messages.clone();
        let (number, name) = (self.number, driver.name());
        let backlog = self.backlog;
        let report = Box::new(move |r| {
            let message = match (r, &backlog) {
                (Report::Interval(interval), _) => Message::Interval(number, interval),
                (Report::Event(e), None) => Message::Event(e, Place::default()),
                (Report::Event(e), Some(backlog)) => match backlog.enter(e.text.len()) {
                    Some(place) => Message::Event(e, place),
                    None => return,
                },
            };
            let _ = messages.send(message);
        });
        let log = open_log(&self.plan, self.number, &self.streams.sample)?;
        let mut worker = Worker::new(
            driver,
            self.plan,
            self.configs,
            self.workload,
            self.range.start,
            self.streams,
            self.stop,
            report,
        )
        .logging(number, log);
        worker.connect()?;
        let _ = self.messages.send(Message::Connected(name));
        match self.gate.pass() {
            Some(origin) => worker.run(origin),
            None => Ok(()),
        }
    }
}

/// Adds up what the workers report.
struct Conductor<'a> {
    plan: &'a Plan,
    stop: StopFlag,
    gate: Arc<Gate>,
    origin: Instant,
    workers: usize,
    observer: &'a mut dyn Observer,
}

impl Conductor<'_> {
    fn conduct(mut self, messages: &Receiver<Message>) -> Result<Summary, EngineError> {
        let mut summary = Summary {
            start: 0,
            connect_time: Nanos::ZERO,
            elapsed: Nanos::ZERO,
            phases: BTreeMap::new(),
            interrupted: false,
            driver: "",
            error: None,
        };
        // Intervals that not all workers have reported yet: their sum so far. Drains are kept apart: workers
        // that are asked to stop may begin theirs in different intervals.
        let mut open: BTreeMap<(bool, u64), Box<Interval>> = BTreeMap::new();
        // The newest interval that each worker has reported; beyond all when it will report no more.
        let mut reached = vec![None; self.workers];
        let (mut connected, mut over, mut last_tick) = (0, 0, Instant::now());
        while over < self.workers {
            match messages.recv_timeout(TICK) {
                Ok(Message::Connected(driver)) => {
                    summary.driver = driver;
                    connected += 1;
                    if connected == self.workers {
                        self.start(&mut summary);
                    }
                }
                Ok(Message::Event(event, place)) => self.observer.observe(Observation::Event(event, place)),
                Ok(Message::Interval(worker, interval)) => {
                    let drain = interval.slice.phase == Phase::Drain;
                    let key = (drain, if drain { 0 } else { interval.slice.index });
                    open.entry(key).and_modify(|sum| sum.join(&interval)).or_insert(interval);
                    reached[worker] = Some(key);
                    self.close_complete(&mut summary, &mut open, &reached);
                }
                Ok(Message::Over(worker, result)) => {
                    over += 1;
                    reached[worker] = Some(NEVER);
                    self.close_complete(&mut summary, &mut open, &reached);
                    if let Err(e) = result {
                        summary.error.get_or_insert(e);
                        self.stop.store(STOP_NOW, Ordering::Relaxed);
                        self.gate.open(None);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if last_tick.elapsed() >= TICK {
                last_tick = Instant::now();
                let stop = self.observer.tick();
                if stop > 0 {
                    summary.interrupted = true;
                    self.stop.fetch_max(stop, Ordering::Relaxed);
                    if connected < self.workers {
                        self.gate.open(None);
                    }
                }
            }
        }
        for sum in open.into_values() {
            self.close(&mut summary, sum);
        }
        debug_assert!(
            summary.error.is_some() || balance(&summary) == 0,
            "outcomes do not balance: {:?}",
            summary.phases.values().map(|i| &i.outcomes).collect::<Vec<_>>()
        );
        match summary.error.take() {
            Some(e) if summary.phases.is_empty() => Err(e),
            error => Ok(Summary { error, ..summary }),
        }
    }

    fn start(&mut self, summary: &mut Summary) {
        let wall = |t: SystemTime| Nanos::from(t.duration_since(UNIX_EPOCH).unwrap_or_default()).0;
        let now = Nanos::from(self.origin.elapsed());
        summary.connect_time = now;
        let wall_now = wall(SystemTime::now());
        let wait = self.plan.start_at.map_or(0, |at| at.saturating_sub(wall_now));
        summary.start = wall_now + wait;
        self.observer.observe(Observation::Started { start: summary.start, connect_time: now });
        self.gate.open(Some(now + Nanos(wait)));
    }

    /// Closes the intervals that no worker will add to any more.
    fn close_complete(
        &mut self,
        summary: &mut Summary,
        open: &mut BTreeMap<(bool, u64), Box<Interval>>,
        reached: &[Option<(bool, u64)>],
    ) {
        while let Some(first) = open.first_entry() {
            if !reached.iter().all(|r| r.is_some_and(|r| r >= *first.key())) {
                break;
            }
            let sum = first.remove();
            self.close(summary, sum);
        }
    }

    fn close(&mut self, summary: &mut Summary, interval: Box<Interval>) {
        if interval.slice.phase == Phase::Measure {
            summary.elapsed += interval.slice.end - interval.slice.start;
        }
        summary
            .phases
            .entry(interval.slice.phase)
            .and_modify(|sum| sum.merge(&interval))
            .or_insert_with(|| (*interval).clone());
        self.observer.observe(Observation::Interval(interval));
    }
}

/// Scheduled less all ends, over all phases: zero.
pub fn balance(summary: &Summary) -> i128 {
    summary.phases.values().map(|i| i.outcomes.balance()).sum()
}

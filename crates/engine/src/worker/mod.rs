//! A worker: one thread's clients, their driver, their schedule, and the interval that is being recorded.

mod bytes;
mod capture;
mod classic;
mod connect;
mod failure;
mod phases;
mod pipeline;
mod timers;
mod transact;

use crate::client::Client;
use crate::driver::{Driver, Token};
use crate::plan::{Plan, Voice};
use crate::schedule::Arrivals;
use crate::workload::{Capturing, Workload};
use pgdyno_base::{Nanos, Prng};
use pgdyno_record::{Interval, Timeline, TransactionLog};
use pgdyno_wire::{Config, SqlState};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

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
/// How long a worker tries to cancel what is still under way when it ends, all clients together.
const CANCEL_PATIENCE: Nanos = Nanos::from_secs(1);
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
    /// `connection_lost`, `reconnected`, `first_error`, `connect_failed`; in pgbench's voice also `error`, `info`, `debug`,
    /// `output`: the levels of its messages.
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
    /// The targets; clients are spread over them in turn.
    configs: Vec<Arc<Config>>,
    workload: Arc<dyn Workload>,
    /// Some statement's result goes into variables.
    captures: bool,
    /// Messages are told in pgbench's words.
    is_classic: bool,
    /// So is everything that is sent and received.
    is_talkative: bool,
    log: Option<TransactionLog>,
    /// Number of this worker within the run.
    number: usize,
    /// Added to the driver's time it gives the time since 1970.
    wall_offset: Nanos,
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
    /// Set when nothing more is begun.
    ending: bool,
    /// Set when it was asked to stop.
    stopping: bool,
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
    /// For choosing what is logged.
    pub sample: Prng,
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
        configs: Vec<Arc<Config>>,
        workload: Arc<dyn Workload>,
        first_client: usize,
        streams: Streams,
        stop: StopFlag,
        report: Box<dyn FnMut(Report) + Send>,
    ) -> Worker<D> {
        let commands = workload.commands().len();
        let clients: Vec<Client> = streams
            .clients
            .into_iter()
            .enumerate()
            .map(|(i, rng)| Client::new(workload.actor(first_client + i, rng, streams.default_seed), commands))
            .collect();
        let timeline = plan.timeline();
        Worker {
            driver,
            configs,
            captures: workload.commands().iter().any(|c| c.capture != Capturing::Nothing),
            is_classic: matches!(plan.voice, Voice::Pgbench { .. }),
            is_talkative: matches!(plan.voice, Voice::Pgbench { debug: true, .. }),
            log: None,
            number: 0,
            wall_offset: Nanos::ZERO,
            interval: Interval::new(timeline.first(), workload.scripts().len(), commands),
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
            ending: false,
            stopping: false,
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

    /// Says which worker of the run this is, and where it logs its transactions.
    pub fn logging(mut self, number: usize, log: Option<TransactionLog>) -> Worker<D> {
        self.number = number;
        self.log = log;
        self
    }

    /// The driver, for tests that look at the simulated world.
    pub fn driver(&mut self) -> &mut D {
        &mut self.driver
    }
}

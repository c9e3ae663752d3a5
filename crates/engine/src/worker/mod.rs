//! A worker: one thread's clients and what drives them. Each part owns its own:
//!
//! - `sockets`: the driver, and the bytes to and from it;
//! - `reach`: which server a client connects to, by which address, and when again;
//! - `turns`: which transaction comes next, and when;
//! - `timers`; `tally`: the interval that is being recorded, the log of transactions; [`crate::events`]: what is reported;
//! - [`crate::policy`]: what is done about trouble.
//!
//! The worker puts them together: `phases` is a run from its beginning to its end, `sessions` makes connections and mourns
//! their loss, `answers` takes what servers say, `drive` lets clients go on, and `trouble` carries out what the policy
//! decides.

mod answers;
mod drive;
mod phases;
mod reach;
mod sessions;
mod sockets;
mod tally;
mod timers;
mod trouble;
mod turns;

use crate::client::Client;
use crate::driver::{Driver, Token};
use crate::events::{Events, Report};
use crate::plan::{Plan, Voice};
use crate::policy::{self, Policy};
use crate::workload::WorkloadOn;
use pgdyno_base::{Nanos, Prng};
use pgdyno_protocol::Dialect;
use pgdyno_record::TransactionLog;
use reach::Reach;
use sockets::Sockets;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use tally::{Tally, Who};
use timers::Timers;
use turns::Turns;

/// Maximum time a worker waits before it checks the stop flag.
const STOP_CHECK: Nanos = Nanos::from_millis(100);

/// Asks workers to stop. 0: go on; [`STOP_SOON`]: begin nothing more; [`STOP_NOW`]: wait for nothing.
pub type StopFlag = Arc<AtomicU8>;
/// Begin nothing more.
pub const STOP_SOON: u8 = 1;
/// Wait for nothing.
pub const STOP_NOW: u8 = 2;

/// Progress of a worker in its run.
struct Stage {
    /// The run is on: errors of connecting are survived.
    running: bool,
    /// Nothing more is begun.
    ending: bool,
    /// It was asked to stop.
    stopping: bool,
    drain_deadline: Nanos,
    /// Clients that have something to do.
    unfinished: usize,
}

/// See the module.
pub struct Worker<P: Dialect, D: Driver> {
    plan: Arc<Plan>,
    workload: Arc<dyn WorkloadOn<P>>,
    policy: Box<dyn Policy>,
    /// Number of this worker within the run.
    number: usize,
    /// Number of its first client within the run.
    first_client: usize,
    stop: StopFlag,
    clients: Vec<Client<P>>,
    sockets: Sockets<D>,
    reach: Reach<P>,
    turns: Turns,
    timers: Timers,
    tally: Tally,
    events: Events,
    stage: Stage,
    /// Lines and requests of the step at hand.
    shown: Vec<String>,
    written: Vec<(usize, bool)>,
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

impl<P: Dialect, D: Driver> Worker<P, D> {
    /// A worker for the clients numbered from `first_client`, as many as `streams` has.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        driver: D,
        plan: Arc<Plan>,
        configs: Vec<Arc<P::Config>>,
        workload: Arc<dyn WorkloadOn<P>>,
        first_client: usize,
        streams: Streams,
        stop: StopFlag,
        report: Box<dyn FnMut(Report) + Send>,
    ) -> Worker<P, D> {
        let (commands, slots) = (workload.commands().len(), workload.slots());
        let clients: Vec<Client<P>> = streams
            .clients
            .into_iter()
            .enumerate()
            .map(|(i, rng)| Client::new(workload.actor(first_client + i, rng, streams.default_seed), slots))
            .collect();
        Worker {
            policy: policy::of(&plan),
            number: 0,
            first_client,
            stop,
            sockets: Sockets::new(driver),
            reach: Reach::new(configs, first_client, clients.len(), streams.jitter),
            turns: Turns::new(first_client, streams.choose, streams.throttle),
            timers: Timers::default(),
            tally: Tally::new(&plan, workload.scripts().len(), commands),
            events: Events::new(report, matches!(plan.voice, Voice::Pgbench { .. })),
            stage: Stage {
                running: false,
                ending: false,
                stopping: false,
                drain_deadline: Nanos::MAX,
                unfinished: clients.len(),
            },
            shown: Vec::new(),
            written: Vec::new(),
            clients,
            plan,
            workload,
        }
    }

    /// Says which worker of the run this is, and where it logs its transactions.
    pub fn logging(mut self, number: usize, log: Option<TransactionLog>) -> Worker<P, D> {
        self.number = number;
        self.tally.log_to(log);
        self
    }

    /// The driver, for tests that look at the simulated world.
    pub fn driver(&mut self) -> &mut D {
        &mut self.sockets.driver
    }

    fn who(&self, i: Token) -> Who {
        Who { client: self.first_client + i, begun: self.clients[i].begun }
    }
}

/// The worker's policy is asked, with the scene and where it says something. A macro, because the scene borrows the
/// worker's clients and the policy speaks through its events.
macro_rules! ask_policy {
    ($worker:expr, $i:expr, $now:expr, $method:ident $(, $argument:expr)*) => {{
        let worker = &mut *$worker;
        let client = &worker.clients[$i];
        let scene = $crate::policy::Scene {
            plan: &worker.plan,
            workload: &*worker.workload,
            client: worker.first_client + $i,
            script: client.actor.as_script(),
            prepared: &client.connection.prepared,
            now: $now,
        };
        worker.policy.$method(&scene, &mut worker.events $(, $argument)*)
    }};
}
use ask_policy;

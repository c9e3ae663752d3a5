//! What the engine's tests share: workloads, the simulated world, and a stub server on a real socket.
#![allow(dead_code)]

use pgdyno_base::Nanos;
use pgdyno_engine::driver::sim::{Sim, SimServer};
use pgdyno_engine::events::{Report, RunEvent};
use pgdyno_engine::stub::{Request, StubSession};
use pgdyno_engine::worker::{StopFlag, Worker};
use pgdyno_engine::{EngineError, Observation, Observer, Plan, Script, ScriptWorkload, WorkloadOn, run};
use pgdyno_postgres::{Config, Endpoint, Postgres};
use pgdyno_record::{Histogram, Interval, Outcomes, Phase};
use pgdyno_script::{Options, Symbols, compile};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

pub const SELECT: &str = "\\set aid random(1, 1000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";
pub const BLOCK: &str = "BEGIN;\nUPDATE t SET a = 1;\nEND;\n";

pub fn workload(text: &str) -> Arc<ScriptWorkload> {
    compiled(text, Options::default())
}

pub fn compiled(text: &str, options: Options) -> Arc<ScriptWorkload> {
    let mut symbols = Symbols::default();
    let program = compile("test.sql", text, &mut symbols, options).unwrap();
    let scripts = vec![Script { program: Arc::new(program), weight: 1, side: 0 }];
    Arc::new(ScriptWorkload::new(scripts, Arc::new(symbols), 1).unwrap())
}

/// All that was recorded of a run.
#[derive(Default)]
pub struct Recorded {
    pub intervals: Vec<Interval>,
    pub events: Vec<RunEvent>,
}

impl Recorded {
    pub fn outcomes(&self) -> Outcomes {
        let mut all = Outcomes::default();
        self.intervals.iter().for_each(|i| all.merge(&i.outcomes));
        all
    }

    pub fn latency(&self) -> Histogram {
        let mut all = Histogram::default();
        self.intervals.iter().filter(|i| i.slice.phase != Phase::Warmup).for_each(|i| all.merge(&i.latency()));
        all
    }

    pub fn sum(&self, what: impl Fn(&Interval) -> u64) -> u64 {
        self.intervals.iter().map(what).sum()
    }

    /// Asserts the invariants of every run.
    pub fn check(&self) {
        let outcomes = self.outcomes();
        assert_eq!(outcomes.balance(), 0, "{outcomes:?}");
        assert_eq!(outcomes.committed, self.sum(|i| i.scripts.iter().map(Histogram::count).sum()));
        for pair in self.intervals.windows(2) {
            assert_eq!(pair[0].slice.end, pair[1].slice.start, "a gap in the time series");
            assert_eq!(pair[0].slice.index + 1, pair[1].slice.index);
        }
    }
}

pub fn config() -> Config {
    Config::plain(Endpoint::Unix("/sim".into()), "postgres", "postgres")
}

/// Runs one worker with all clients in the simulated world.
pub fn simulate(server: SimServer, plan: Plan, text: &str) -> (Result<(), EngineError>, Recorded) {
    let (result, recorded, _) = simulate_and_look(server, plan, text);
    (result, recorded)
}

pub fn simulate_and_look(server: SimServer, plan: Plan, text: &str) -> (Result<(), EngineError>, Recorded, Vec<u32>) {
    // As pgbench compiles, where the run is to behave as pgbench's.
    let workload =
        compiled(text, Options { strict: !plan.on_error.ends_clients(), marks: false, ..Options::default() });
    simulate_workload(server, plan, workload)
}

/// Simulates any workload, like `simulate`. Also returns the connections that were asked to cancel.
pub fn simulate_workload(
    server: SimServer,
    plan: Plan,
    workload: Arc<dyn WorkloadOn<Postgres>>,
) -> (Result<(), EngineError>, Recorded, Vec<u32>) {
    let plan = Plan { workers: 1, ..plan };
    plan.validate().unwrap();
    let recorded = Arc::new(Mutex::new(Recorded::default()));
    let sink = recorded.clone();
    let report = Box::new(move |r| match r {
        Report::Interval(i) => sink.lock().unwrap().intervals.push(*i),
        Report::Event(e) => sink.lock().unwrap().events.push(e),
    });
    let streams = run::streams(&plan).pop().unwrap();
    let (plan, config) = (Arc::new(plan), vec![Arc::new(config())]);
    let mut worker = Worker::new(Sim::new(server), plan, config, workload, 0, streams, StopFlag::default(), report);
    let result = worker.connect().and_then(|()| worker.run(Nanos::from_secs(100)));
    let cancels = worker.driver().cancels.clone();
    drop(worker);
    let recorded = Arc::try_unwrap(recorded).ok().unwrap().into_inner().unwrap();
    (result, recorded, cancels)
}

/// A stub server on a Unix-domain socket, a thread a connection; answers at once.
pub struct StubServer {
    pub path: PathBuf,
    folder: PathBuf,
    connections: Arc<Mutex<Vec<UnixStream>>>,
}

impl StubServer {
    pub fn start(name: &str) -> StubServer {
        let folder = std::env::temp_dir().join(format!("pgdyno-stub-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("s");
        let connections = Arc::new(Mutex::new(Vec::new()));
        serve(&path, connections.clone());
        StubServer { path, folder, connections }
    }

    pub fn config(&self) -> Config {
        Config::plain(Endpoint::Unix(self.path.clone()), "postgres", "postgres")
    }

    /// Says a last word, as a server that is shut down does, and closes all connections; takes new ones.
    pub fn shut_down(&self) {
        let words = pgdyno_engine::stub::error_response("FATAL", "57P01", "terminating connection");
        for mut c in self.connections.lock().unwrap().drain(..) {
            let _ = c.write_all(&words);
            let _ = c.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Cuts all connections; takes new ones.
    pub fn cut(&self) {
        for c in self.connections.lock().unwrap().drain(..) {
            let _ = c.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        self.cut();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A server whose every answer is one row of 1 GB.
pub struct GiantServer(PathBuf);

impl GiantServer {
    pub fn start(name: &str) -> GiantServer {
        let folder = std::env::temp_dir().join(format!("pgdyno-giant-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let listener = UnixListener::bind(folder.join("s")).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                std::thread::spawn(move || {
                    let mut session = StubSession::new(1);
                    let (mut buf, chunk) = ([0; 16384], vec![0x41; 1 << 20]);
                    while let Ok(n @ 1..) = stream.read(&mut buf) {
                        for reply in session.feed(&buf[..n]) {
                            if reply.request != Request::Statements {
                                let _ = stream.write_all(&reply.bytes);
                                continue;
                            }
                            let body: u32 = 1 << 30;
                            // ParseComplete, BindComplete, the row; then its end.
                            let mut head = b"1\0\0\0\x042\0\0\0\x04D".to_vec();
                            head.extend_from_slice(&body.to_be_bytes());
                            let _ = stream.write_all(&head);
                            let mut left = body as usize - 4;
                            while left > 0 {
                                let n = left.min(chunk.len());
                                if stream.write_all(&chunk[..n]).is_err() {
                                    return;
                                }
                                left -= n;
                            }
                            let _ = stream.write_all(b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I");
                        }
                    }
                });
            }
        });
        GiantServer(folder)
    }

    pub fn config(&self) -> Config {
        Config::plain(Endpoint::Unix(self.0.join("s")), "postgres", "postgres")
    }
}

impl Drop for GiantServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Memory that this process has.
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn serve(path: &PathBuf, connections: Arc<Mutex<Vec<UnixStream>>>) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            connections.lock().unwrap().push(stream.try_clone().unwrap());
            std::thread::spawn(move || {
                let mut session = StubSession::new(n as u32 + 1);
                let mut buf = [0; 16384];
                while let Ok(n @ 1..) = stream.read(&mut buf) {
                    for reply in session.feed(&buf[..n]) {
                        if reply.request == Request::Terminate || stream.write_all(&reply.bytes).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
}

/// Called with each interval.
pub type OnInterval = Box<dyn FnMut(&Interval)>;

/// Observes a run, and stops it when asked to.
#[derive(Default)]
pub struct Watcher {
    pub recorded: Recorded,
    pub connect_time: Nanos,
    pub stop_after_intervals: Option<usize>,
    pub on_interval: Option<OnInterval>,
}

impl Observer for Watcher {
    fn observe(&mut self, observation: Observation) {
        match observation {
            Observation::Started { connect_time, .. } => self.connect_time = connect_time,
            Observation::Event(event, _) => self.recorded.events.push(event),
            Observation::Interval(interval) => {
                self.recorded.intervals.push((*interval).clone());
                if let Some(f) = &mut self.on_interval {
                    f(&interval);
                }
            }
        }
    }
    fn tick(&mut self) -> u8 {
        u8::from(self.stop_after_intervals.is_some_and(|n| self.recorded.intervals.len() >= n))
    }
}

pub fn real(
    config: Config,
    plan: Plan,
    workload: Arc<dyn WorkloadOn<Postgres>>,
    watcher: &mut Watcher,
) -> pgdyno_engine::Summary {
    run::run(plan, vec![config], workload, watcher).unwrap()
}

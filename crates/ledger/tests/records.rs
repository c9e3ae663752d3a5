//! What clients write down, in the simulated world: through outages, errors and answers that do not come.

use pgdyno_base::Nanos;
use pgdyno_engine::driver::sim::{Sim, SimServer};
use pgdyno_engine::events::Report;
use pgdyno_engine::worker::{StopFlag, Worker};
use pgdyno_engine::{Limit, OnError, Plan, run};
use pgdyno_ledger::{LedgerWorkload, Options};
use pgdyno_postgres::{Config, Endpoint, Postgres};
use pgdyno_record::Outcomes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Recorded lines by client: outcome and sequence.
type Records = BTreeMap<usize, Vec<(String, u64)>>;

fn plan() -> Plan {
    Plan {
        clients: 4,
        limit: Limit::Duration(Nanos::from_secs(2)),
        on_error: OnError::Count,
        max_tries: 1,
        ..Plan::default()
    }
}

fn simulated(name: &str, server: SimServer, plan: Plan) -> (Records, Outcomes) {
    let folder = std::env::temp_dir().join(format!("pgdyno-ledger-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let workload = Arc::new(LedgerWorkload::new(Options { run: 7, records: Some(folder.clone()) }).unwrap());
    let outcomes = Arc::new(Mutex::new(Outcomes::default()));
    let sink = outcomes.clone();
    let report = Box::new(move |r| {
        if let Report::Interval(i) = r {
            sink.lock().unwrap().merge(&i.outcomes);
        }
    });
    let streams = run::streams(&plan).pop().unwrap();
    let config = vec![Arc::new(Config::plain(Endpoint::Unix("/sim".into()), "postgres", "postgres"))];
    let mut worker: Worker<Postgres, Sim> =
        Worker::new(Sim::new(server), Arc::new(plan), config, workload, 0, streams, StopFlag::default(), report);
    worker.connect().unwrap();
    worker.run(Nanos::from_secs(100)).unwrap();
    drop(worker);
    let records = read(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    (records, outcomes.lock().unwrap().clone())
}

fn read(folder: &PathBuf) -> Records {
    let mut all = Records::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let client = path.file_stem().unwrap().to_str().unwrap().strip_prefix("client-").unwrap().parse().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[0].to_owned(), words[1].parse().unwrap())
        });
        all.insert(client, lines.collect());
    }
    all
}

/// Each transaction that was begun has one line, in order, and the lines are what the engine has counted.
fn check(records: &Records, outcomes: &Outcomes) {
    let count = |what: &str| records.values().flatten().filter(|(outcome, _)| outcome == what).count() as u64;
    for (client, lines) in records {
        let expected: Vec<u64> = (1..=lines.len() as u64).collect();
        assert_eq!(lines.iter().map(|(_, n)| *n).collect::<Vec<_>>(), expected, "client {client}");
    }
    assert_eq!(count("acknowledged"), outcomes.committed);
    // What was under way at the very end is counted apart, and recorded by its fate.
    assert!(count("unknown") >= outcomes.unknown);
    assert!(count("failed") >= outcomes.failed_total());
}

#[test]
fn without_trouble_everything_is_acknowledged() {
    let (records, outcomes) = simulated("calm", SimServer::default(), plan());
    check(&records, &outcomes);
    assert_eq!(records.len(), 4);
    // Three round trips of a millisecond each, for two seconds.
    assert!(records.values().all(|lines| (660..=667).contains(&lines.len())));
}

#[test]
fn a_lost_connection_is_unknown_only_behind_commit() {
    let mut seen = (0, 0);
    for n in 0..20 {
        let at = 500_000 + n * 350;
        let outages = vec![(Nanos(100_000_000_000 + at * 1000), Nanos(100_000_000_000 + (at + 300_000) * 1000))];
        let server = SimServer {
            outages,
            latency: Box::new(|client, n, _| Nanos(1_000_000 + (client as u64 * 7 + n * 13) % 11 * 90_000)),
            ..SimServer::default()
        };
        let (records, outcomes) = simulated(&format!("outage-{n}"), server, plan());
        check(&records, &outcomes);
        seen.0 += outcomes.unknown;
        seen.1 += outcomes.failed_total();
    }
    // Of three statements one is COMMIT: both happen.
    assert!(seen.0 > 5 && seen.1 > 20, "{seen:?}");
}

#[test]
fn an_error_is_a_failure_and_the_next_goes_on() {
    let server = SimServer { fail: Box::new(|_, n| (n % 10 == 5).then_some("40001")), ..SimServer::default() };
    let (records, outcomes) = simulated("errors", server, plan());
    check(&records, &outcomes);
    assert!(outcomes.failed_total() > 100);
}

#[test]
fn an_answer_that_does_not_come_is_given_up() {
    // From half a second on COMMIT hangs, as one that waits for a standby.
    let hang = |_, n: u64, now: Nanos| {
        let late = now > Nanos::from_millis(100_500) && n % 3 == 0;
        Nanos::from_millis(if late { 60_000 } else { 1 })
    };
    let server = SimServer { latency: Box::new(hang), ..SimServer::default() };
    let patient = Plan { answer_timeout: Some(Nanos::from_millis(200)), ..plan() };
    let (records, outcomes) = simulated("hang", server, patient);
    check(&records, &outcomes);
    let unknown = records.values().flatten().filter(|(outcome, _)| outcome == "unknown").count();
    assert!(unknown >= 4, "{unknown}");
    // Nobody waits a minute.
    assert!(records.values().all(|lines| lines.len() > 160));
}

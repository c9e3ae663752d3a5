//! The engine alone, without Python: one worker. `drive SOCKET DATABASE CLIENTS SECONDS [DRIVER [SCRIPT [PROTOCOL [mysql]]]]`
//! prints transactions and seconds; without a script, of point selects.

use pgdyno_base::Nanos;
use pgdyno_engine::{Limit, Observation, Observer, Plan, Script, ScriptWorkload, run};
use pgdyno_mysql::MySql;
use pgdyno_postgres::{Config, Endpoint, Postgres};
use pgdyno_record::Phase;
use pgdyno_script::{Flavour, Options, Symbols, Value, compile};
use std::sync::Arc;

struct Silent;

impl Observer for Silent {
    fn observe(&mut self, observation: Observation) {
        if let Observation::Event(event, _) = observation {
            eprintln!("{event:?}");
        }
    }
    fn tick(&mut self) -> u8 {
        0
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, socket, database, clients, seconds, rest @ ..] = args.as_slice() else {
        panic!("usage: drive SOCKET DATABASE CLIENTS SECONDS [DRIVER [SCRIPT [PROTOCOL [mysql]]]]")
    };
    let script = match rest.get(1) {
        Some(path) => std::fs::read_to_string(path).expect("a readable script"),
        None => {
            "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n".into()
        }
    };
    let variables = [("scale".to_owned(), Value::Int(100)), ("range".to_owned(), Value::Int(10_000_000))];
    let mut symbols = Symbols::new(&variables.into());
    let is_mysql = rest.get(3).is_some_and(|d| d == "mysql");
    let flavour = if is_mysql { Flavour::MySql } else { Flavour::Postgres };
    let options = Options { flavour, ..Options::default() };
    let program = compile("select.sql", &script, &mut symbols, options).expect("the script is right");
    let scripts = vec![Script { program: Arc::new(program), weight: 1, side: 0 }];
    let workload = ScriptWorkload::new(scripts, Arc::new(symbols), 1).expect("one script");
    let plan = Plan {
        clients: clients.parse().expect("a number of clients"),
        limit: Limit::Duration(Nanos::from_secs_f64(seconds.parse().expect("seconds"))),
        driver: rest.first().map_or("auto", String::as_str).parse().expect("a driver"),
        protocol: rest.get(2).map_or("prepared", String::as_str).parse().expect("a protocol"),
        seed: 1,
        ..Plan::default()
    };
    let (endpoint, workload) = (Endpoint::Unix(socket.into()), Arc::new(workload));
    let summary = if is_mysql {
        let config = pgdyno_mysql::Config::plain(endpoint, "root", database);
        run::<MySql>(plan, vec![config], workload, &mut Silent)
    } else {
        run::<Postgres>(plan, vec![Config::plain(endpoint, "postgres", database)], workload, &mut Silent)
    };
    let summary = summary.expect("a run");
    if let Some(e) = &summary.error {
        panic!("{e}");
    }
    let measured = &summary.phases[&Phase::Measure];
    pgdyno_benches::report(measured.outcomes.committed, summary.elapsed.as_secs_f64());
}

//! A workload that is ordinary code: what a native one needs, and that it needs no more.

mod common;

use common::simulate_workload;
use pgdyno_base::Prng;
use pgdyno_engine::driver::sim::SimServer;
use pgdyno_engine::workload::{Actor, Awaited, CommandInfo, Failure, Piece, Requests, Statement, Step};
use pgdyno_engine::{Limit, Plan, QueryMode, Workload, WorkloadOn};
use pgdyno_postgres::{Effect, Given, Postgres, ProtocolError};
use pgdyno_script::ScriptError;
use std::sync::{Arc, Mutex};

const STATEMENTS: [&str; 4] = ["BEGIN", "SELECT stock AS s FROM t WHERE i = $1", "UPDATE t SET stock = $1", "COMMIT"];

/// Takes some items from stock, as many as chance says: a loop, which no script has.
struct Orders(Vec<CommandInfo>);

impl Orders {
    fn new() -> Orders {
        let info = |(number, sql): (usize, &&str)| CommandInfo {
            text: sql.to_string(),
            sql: sql.to_string(),
            name: "SQL".into(),
            script: 0,
            number,
            line: number + 1,
            is_sql: true,
            effect: Effect::of(sql),
            reads: number == 1,
            parameters: usize::from(sql.contains("$1")),
        };
        Orders(STATEMENTS.iter().enumerate().map(info).collect())
    }
}

impl WorkloadOn<Postgres> for Orders {
    fn actor(&self, _: usize, rng: Prng, _: i64) -> Box<dyn Actor<Postgres>> {
        Box::new(Client { rng: rng.clone(), at_begin: rng, left: 0, next: 0, stock: None, read: Arc::default() })
    }
}

impl Workload for Orders {
    fn scripts(&self) -> Vec<String> {
        vec!["orders".into()]
    }
    fn commands(&self) -> &[CommandInfo] {
        &self.0
    }

    fn locate(&self, command: usize, message: &str) -> ScriptError {
        ScriptError::at("orders", STATEMENTS[command], 0, message, "")
    }
}

struct Client {
    rng: Prng,
    at_begin: Prng,
    left: u64,
    next: usize,
    stock: Option<i64>,
    read: Arc<Mutex<u64>>,
}

impl Actor<Postgres> for Client {
    fn begin(&mut self, _: &mut Prng) -> usize {
        self.at_begin = self.rng.clone();
        self.retry();
        0
    }

    fn step(&mut self, requests: &mut Requests<'_, Postgres>) -> Result<Step, Box<Failure>> {
        let (command, value) = match self.next {
            4 => return Ok(Step::Done),
            1 if self.left == 0 => (3, None),
            1 => (1, Some(self.left as i64)),
            2 => (2, Some(self.stock.take().expect("the row was read") - 1)),
            n => (n, None),
        };
        self.next = match command {
            2 => {
                self.left -= 1;
                1
            }
            n => n + 1,
        };
        let statement = Statement {
            command,
            slot: command,
            name: ["b", "s", "u", "c"][command],
            text: STATEMENTS[command],
            parameters: usize::from(value.is_some()),
            effect: Effect::of(STATEMENTS[command]),
            reads: command == 1,
            names: false,
        };
        let text = value.map_or(String::new(), |v| v.to_string());
        requests.statement(
            &statement,
            false,
            |o| o.extend_from_slice(STATEMENTS[command].replace("$1", &text).as_bytes()),
            |_, o| {
                o.extend_from_slice(text.as_bytes());
                Given::Integer
            },
        );
        Ok(Step::Wait { command, what: Awaited::Statement })
    }

    fn read(&mut self, _: usize, piece: Piece<'_>) -> Result<(), ProtocolError> {
        if let Piece::Row(mut values) = piece {
            let value = values.next().flatten().expect("not null");
            let text = std::str::from_utf8(value).expect("digits");
            self.stock = text.parse().ok();
            *self.read.lock().unwrap() += 1;
        }
        Ok(())
    }

    fn here(&self) -> usize {
        self.next.min(3)
    }

    fn abandon(&mut self) {
        self.next = 0;
    }

    fn retry(&mut self) {
        self.rng = self.at_begin.clone();
        (self.next, self.left, self.stock) = (0, self.rng.range_u64(1, 5), None);
    }
}

#[test]
fn code_drives_transactions_and_reads_what_comes() {
    for protocol in [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared] {
        let plan = Plan { clients: 3, limit: Limit::Transactions(200), protocol, max_tries: 5, ..Plan::default() };
        let server = SimServer { fail: Box::new(|_, n| (n % 50 == 0).then_some("40001")), ..SimServer::default() };
        let (result, recorded, _) = simulate_workload(server, plan, Arc::new(Orders::new()));
        result.unwrap();
        recorded.check();
        let o = recorded.outcomes();
        assert_eq!((o.committed, o.failed_total()), (600, 0), "{protocol:?}");
        assert!(o.retries > 30);
        // Each item is read and then updated, whatever was tried again.
        let of = |n: usize| recorded.sum(|i| i.command_latency[n].count());
        assert!(of(1) >= of(2) && of(2) > 1500 && of(3) >= 600, "{} {} {}", of(1), of(2), of(3));
    }
}

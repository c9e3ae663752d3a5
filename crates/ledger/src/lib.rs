//! The ledger of drills: numbered rows, and the record of what each client was told.
//!
//! The ledger: each client inserts rows with its number, a sequence and a content that follows from both, one a
//! transaction, and writes down what it was told of each. After a failover the rows that are there are compared with
//! these records. The same transaction updates a register of the client's to the sequence, and deletes and inserts its
//! token, so that what became of updates and deletes is seen as well: all three must agree.
//!
//! A record is a file of its client, a line for each transaction, written when its outcome is known:
//!
//! ```text
//! acknowledged 17 1763859000123456789
//! acknowledged 18 1763859000123999999 warned
//! unknown 19 1763859000987654321
//! ```
//!
//! Outcome, sequence, nanoseconds since 1970. `acknowledged`: the client has the answer to its COMMIT; `warned`: behind a
//! warning of the server's, which says of a cancelled wait that the commit may be only local. `failed`: nothing was
//! committed. `unknown`: the connection was lost, or given up, between COMMIT and its answer. Of sequences without a line
//! at most the one behind the last was begun: pgdyno ended before its outcome was known.

use pgdyno_base::Prng;
use pgdyno_engine::workload::{Actor, Awaited, CommandInfo, Failure, Requests, Settled, Statement, Step};
use pgdyno_engine::{Workload, WorkloadOn};
use pgdyno_protocol::{Dialect, Effect, Given, ServerError};
use pgdyno_script::ScriptError;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The workload's name.
pub const NAME: &str = "ledger";
/// The table.
pub const TABLE: &str = "pgdyno_ledger";
/// Its statements, each a command: what it is, its text, how many parameters.
const STATEMENTS: [(&str, &str, usize); 3] = [
    ("begin", "begin", 0),
    (
        "insert",
        "with row as (insert into pgdyno_ledger (run, client, sequence, content) values ($1, $2, $3, $4)), \
         register as (insert into pgdyno_ledger_register as r (run, client, sequence) values ($1, $2, $3) \
         on conflict (run, client) do update set sequence = excluded.sequence), \
         gone as (delete from pgdyno_ledger_token where run = $1 and client = $2) \
         insert into pgdyno_ledger_token (run, client, sequence) values ($1, $2, $3)",
        4,
    ),
    ("commit", "commit", 0),
];
const NAMES: [&str; 3] = ["ledger_begin", "ledger_insert", "ledger_commit"];

/// The content of a row: any bit of its key changes about half of it. The finalizer of splitmix64 (Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
pub fn content(run: i64, client: i64, sequence: i64) -> i64 {
    let mut z = (run as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ (client as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
        ^ (sequence as u64);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as i64
}

/// Options of the clients.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tells rows of one run from those of another.
    pub run: i64,
    /// Folder of the records: one file per client, `client-0.log`. `None`: nothing is recorded.
    pub records: Option<PathBuf>,
}

/// See the module.
pub struct LedgerWorkload {
    options: Options,
    commands: Arc<Vec<CommandInfo>>,
}

impl LedgerWorkload {
    /// Fails where the folder of the records cannot be written to.
    pub fn new(options: Options) -> io::Result<LedgerWorkload> {
        if let Some(folder) = &options.records {
            std::fs::create_dir_all(folder)?;
        }
        let info = |(number, (name, sql, parameters)): (usize, &(&str, &str, usize))| CommandInfo {
            text: (*sql).to_owned(),
            sql: (*sql).to_owned(),
            name: (*name).to_owned(),
            script: 0,
            number,
            line: number + 1,
            is_sql: true,
            effect: Effect::of(sql),
            reads: false,
            parameters: *parameters,
        };
        let commands = Arc::new(STATEMENTS.iter().enumerate().map(info).collect());
        Ok(LedgerWorkload { options, commands })
    }
}

impl<P: Dialect> WorkloadOn<P> for LedgerWorkload {
    fn actor(&self, client: usize, _: Prng, _: i64) -> Box<dyn Actor<P>> {
        let path = self.options.records.as_ref().map(|folder| folder.join(format!("client-{client}.log")));
        let values = [self.options.run, client as i64, 0, 0];
        Box::new(Client { commands: self.commands.clone(), path, record: None, values, next: 0, warned: false })
    }
}

impl Workload for LedgerWorkload {
    fn scripts(&self) -> Vec<String> {
        vec![NAME.to_owned()]
    }

    fn commands(&self) -> &[CommandInfo] {
        &self.commands
    }

    fn reads_notices(&self) -> bool {
        true
    }

    fn locate(&self, command: usize, message: &str) -> ScriptError {
        let all: Vec<&str> = STATEMENTS.iter().map(|(_, sql, _)| *sql).collect();
        let offset = all[..command.min(all.len())].iter().map(|sql| sql.len() + 2).sum();
        ScriptError::at(NAME, &all.join(";\n"), offset, message, format!("Is {TABLE} there, with its columns?"))
    }
}

struct Client {
    commands: Arc<Vec<CommandInfo>>,
    path: Option<PathBuf>,
    /// Opened at the first outcome: what an earlier run has written stays.
    record: Option<File>,
    /// Run, client, sequence, content.
    values: [i64; 4],
    /// The statement that comes next.
    next: usize,
    /// A warning has come since the transaction began.
    warned: bool,
}

impl Client {
    fn write(&mut self, line: &str) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if self.record.is_none() {
            self.record = Some(OpenOptions::new().create(true).append(true).open(path)?);
        }
        // One write a line: it stands whole whatever becomes of us behind it.
        self.record.as_mut().map_or(Ok(()), |file| file.write_all(line.as_bytes()))
    }
}

impl<P: Dialect> Actor<P> for Client {
    fn begin(&mut self, _: &mut Prng) -> usize {
        self.values[2] += 1;
        let [run, client, sequence, _] = self.values;
        self.values[3] = content(run, client, sequence);
        (self.next, self.warned) = (0, false);
        0
    }

    fn step(&mut self, requests: &mut Requests<'_, P>) -> Result<Step, Box<Failure>> {
        let Some((_, text, parameters)) = STATEMENTS.get(self.next) else { return Ok(Step::Done) };
        if requests.is_dry_run() {
            // Anything but the end.
            return Ok(Step::Wait { command: self.next, what: Awaited::Statement });
        }
        let (command, values) = (self.next, self.values);
        let statement = Statement {
            command,
            slot: command,
            name: NAMES[command],
            text,
            parameters: *parameters,
            effect: self.commands[command].effect,
            reads: false,
            names: false,
        };
        let whole = |out: &mut Vec<u8>| {
            let mut sql = (*text).to_owned();
            (0..*parameters).for_each(|n| sql = sql.replace(&format!("${}", n + 1), &values[n].to_string()));
            out.extend_from_slice(sql.as_bytes());
        };
        requests.statement(&statement, false, whole, |n, out| {
            out.extend_from_slice(values[n].to_string().as_bytes());
            Given::Integer
        });
        self.next += 1;
        Ok(Step::Wait { command, what: Awaited::Statement })
    }

    fn again(&mut self, requests: &mut Requests<'_, P>) -> Result<Step, Box<Failure>> {
        self.next = self.next.saturating_sub(1);
        self.step(requests)
    }

    fn here(&self) -> usize {
        self.next.min(STATEMENTS.len() - 1)
    }

    fn abandon(&mut self) {
        self.next = 0;
    }

    fn retry(&mut self) {
        self.next = 0;
    }

    fn settled(&mut self, outcome: Settled) -> io::Result<()> {
        let outcome = match outcome {
            Settled::Committed => "acknowledged",
            Settled::Failed => "failed",
            Settled::Unknown => "unknown",
        };
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let warned = if self.warned { " warned" } else { "" };
        self.write(&format!("{outcome} {} {at}{warned}\n", self.values[2]))
    }

    fn noticed(&mut self, notice: &ServerError) {
        self.warned |= notice.severity == "WARNING";
    }
}

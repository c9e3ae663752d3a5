//! Workloads: compiled scripts over one set of variables.

use crate::errors;
use pgdyno_base::{Nanos, Prng};
use pgdyno_engine as engine;
use pgdyno_ledger as ledger;
use pgdyno_postgres::Postgres;
use pgdyno_protocol::Dialect;
use pgdyno_script::vm::Step;
use pgdyno_script::{Flavour, Options, Sample, Symbols, Value, Vm, compile};
use pgdyno_tpcc as tpcc;
use pgdyno_tpcc::transactions::KINDS;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A command of the workload.
#[pyclass(frozen, get_all, module = "pgdyno._core")]
#[derive(Clone)]
pub struct Command {
    text: String,
    sql: String,
    name: String,
    script: usize,
    number: usize,
    line: usize,
    is_sql: bool,
    parameters: usize,
}

impl From<&engine::workload::CommandInfo> for Command {
    fn from(c: &engine::workload::CommandInfo) -> Command {
        Command {
            text: c.text.clone(),
            sql: c.sql.clone(),
            name: c.name.clone(),
            script: c.script,
            number: c.number,
            line: c.line,
            is_sql: c.is_sql,
            parameters: c.parameters,
        }
    }
}

/// Weighted scripts, and the variables that their clients begin with; or TPC-C; or the ledger.
#[pyclass(module = "pgdyno._core")]
pub struct Workload {
    symbols: Symbols,
    scripts: Vec<engine::Script>,
    sides: Vec<engine::Side>,
    options: Options,
    /// Transactions of each client and their times, in place of weights.
    schedule: Option<Vec<Vec<engine::Scheduled>>>,
    /// Options of TPC-C by side; if there are any, there are no scripts.
    tpcc: Vec<tpcc::Options>,
    /// Options of the ledger; if present, there is nothing else.
    ledger: Option<ledger::Options>,
}

impl Workload {
    /// Returns the workload that the engine runs.
    pub fn build<P: Dialect>(&self, random_seed: u64) -> Result<Arc<dyn engine::WorkloadOn<P>>, String> {
        if let Some(options) = &self.ledger {
            let built = ledger::LedgerWorkload::new(options.clone());
            return Ok(Arc::new(built.map_err(|e| format!("cannot write the ledger's records: {e}"))?));
        }
        if !self.tpcc.is_empty() {
            return Ok(Arc::new(tpcc::TpccWorkload::new(self.tpcc.clone())?));
        }
        let symbols = Arc::new(self.symbols.clone());
        let scripts = engine::ScriptWorkload::of_sides(self.scripts.clone(), self.sides.clone(), symbols, random_seed)?;
        Ok(match &self.schedule {
            None => Arc::new(scripts),
            Some(schedule) => Arc::new(scripts.scheduled(schedule.clone())?),
        })
    }

    fn of_flavour(
        variables: Option<BTreeMap<String, String>>,
        strict: bool,
        marks: bool,
        flavour: Flavour,
    ) -> Workload {
        let given = variables.unwrap_or_default();
        let given = given.into_iter().map(|(k, v)| (k, Value::text_of(v.as_bytes()))).collect();
        Workload {
            symbols: Symbols::new(&given),
            scripts: Vec::new(),
            sides: vec![engine::Side::default()],
            options: Options { strict, marks, flavour },
            schedule: None,
            tpcc: Vec::new(),
            ledger: None,
        }
    }
}

/// `pgdyno.engine.Tpcc`.
#[derive(FromPyObject)]
pub struct Tpcc {
    warehouses: u32,
    sets: u32,
    data_seed: u64,
    weights: [u64; 5],
    round_trips: String,
    home: String,
    isolation: String,
    waits: f64,
    orders: Option<std::path::PathBuf>,
}

impl Tpcc {
    fn to_options(&self) -> PyResult<tpcc::Options> {
        if !(self.waits.is_finite() && self.waits >= 0.0) {
            return Err(errors::other("waits is a factor from 0 on"));
        }
        Ok(tpcc::Options {
            warehouses: self.warehouses,
            sets: self.sets,
            data_seed: self.data_seed,
            weights: self.weights,
            round_trips: self.round_trips.parse().map_err(|e| errors::other(format!("round_trips: {e}")))?,
            home: self.home.parse().map_err(|e| errors::other(format!("home: {e}")))?,
            isolation: self.isolation.clone(),
            waits: self.waits,
            orders: self.orders.clone(),
            counts: Arc::default(),
        })
    }
}

/// `pgdyno.engine.Sample`.
#[derive(FromPyObject)]
struct Rows {
    name: String,
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
    is_scheduled: bool,
}

impl Rows {
    fn to_sample(&self) -> PyResult<Sample> {
        let mut sample = Sample::new(&self.name, self.columns.clone(), &self.rows).map_err(errors::other)?;
        sample.is_scheduled = self.is_scheduled;
        Ok(sample)
    }
}

/// TPC-C's transactions for people to read: of each its name and its statements under their names, as `options` have it.
#[pyfunction]
pub fn tpcc_transactions(options: Tpcc) -> PyResult<Vec<(&'static str, String)>> {
    let options = options.to_options()?;
    Ok(KINDS.iter().map(|kind| (kind.name(), tpcc::listing::listing(*kind, &options))).collect())
}

/// CREATE FUNCTION of TPC-C's transactions, for set `set` (from 0) of `sets`.
#[pyfunction]
pub fn tpcc_functions(set: u32, sets: u32) -> Vec<String> {
    KINDS.iter().map(|kind| tpcc::schema::with_names(kind.function(), set, sets)).collect()
}

/// The constants of NURand that go with a seed of the data: for last names in the load and in runs, for customers, for items.
#[pyfunction]
pub fn tpcc_constants(data_seed: u64) -> (u64, u64, u64, u64) {
    let c = tpcc::random::Constants::of_seed(data_seed);
    (c.last_name_load, c.last_name_run, c.customer, c.item)
}

fn flavour(dialect: &str) -> PyResult<Flavour> {
    match dialect {
        "postgresql" => Ok(Flavour::Postgres),
        "mysql" => Ok(Flavour::MySql),
        other => Err(errors::other(format!("dialect \"{other}\" is unknown; it is postgresql or mysql"))),
    }
}

#[pymethods]
impl Workload {
    /// No scripts yet; `variables` are given as on pgbench's command line (`-D name=value`). Without `strict`, what
    /// pgbench finds out while it runs is found out while it runs. `marks`: meta-commands are timed too.
    #[new]
    #[pyo3(signature = (variables=None, *, strict=true, marks=false, dialect="postgresql"))]
    fn new(
        variables: Option<BTreeMap<String, String>>,
        strict: bool,
        marks: bool,
        dialect: &str,
    ) -> PyResult<Workload> {
        Ok(Workload::of_flavour(variables, strict, marks, flavour(dialect)?))
    }

    /// The ledger: numbered rows of `run`; each client's record is appended to a file in the folder `records`.
    #[staticmethod]
    #[pyo3(signature = (run, records=None))]
    fn ledger(run: i64, records: Option<std::path::PathBuf>) -> Workload {
        let mut workload = Workload::of_flavour(None, true, false, Flavour::Postgres);
        workload.ledger = Some(ledger::Options { run, records });
        workload
    }

    /// TPC-C, of one side or of two of a duet.
    #[staticmethod]
    fn tpcc(sides: Vec<Tpcc>) -> PyResult<Workload> {
        let mut workload = Workload::of_flavour(None, true, false, Flavour::Postgres);
        workload.tpcc = sides.iter().map(Tpcc::to_options).collect::<PyResult<_>>()?;
        workload.build::<Postgres>(0).map_err(errors::other)?;
        Ok(workload)
    }

    /// Returns, for TPC-C, the counts by side of what its clients have drawn in all runs so far.
    #[getter]
    fn drawn(&self) -> Vec<BTreeMap<&'static str, u64>> {
        self.tpcc.iter().map(|o| o.counts.named().into_iter().collect()).collect()
    }

    /// Scripts that are added from now on are those of another side of a duet; its clients have these variables over
    /// those that all have, which must have them too, and pick from these samples, likewise. `dialect` is its SQL.
    #[pyo3(signature = (variables, samples=Vec::new(), *, dialect="postgresql"))]
    fn other_side(&mut self, variables: BTreeMap<String, String>, samples: Vec<Rows>, dialect: &str) -> PyResult<()> {
        self.options.flavour = flavour(dialect)?;
        let variables = variables.into_iter().map(|(k, v)| (k, Value::text_of(v.as_bytes()))).collect();
        let samples = samples.iter().map(|s| s.to_sample().map(Arc::new)).collect::<PyResult<_>>()?;
        self.sides.push(engine::Side { variables, samples });
        Ok(())
    }

    /// Lets the scripts that are added from now on `\\pick` from a sample.
    fn add_sample(&mut self, sample: Rows) -> PyResult<()> {
        self.symbols.add_sample(sample.to_sample()?);
        Ok(())
    }

    /// Sets a schedule in place of weights.
    ///
    /// It lists the transactions of each client. Each has its script, its start time (nanoseconds from the start of the
    /// run), and the row of scheduled samples. A client that cannot begin a transaction in time begins it when it is
    /// free.
    fn schedule(&mut self, clients: Vec<Vec<(usize, u64, u64)>>) {
        let of = |own: Vec<(usize, u64, u64)>| {
            let one = |(script, due, row)| engine::Scheduled { script, due: Nanos(due), row };
            own.into_iter().map(one).collect()
        };
        self.schedule = Some(clients.into_iter().map(of).collect());
    }

    /// Compiles a script and adds it.
    #[pyo3(signature = (name, text, weight=1))]
    fn add(&mut self, name: &str, text: &str, weight: u64) -> PyResult<()> {
        let program = compile(name, text, &mut self.symbols, self.options).map_err(|e| errors::script(&e))?;
        let side = self.sides.len() - 1;
        self.scripts.push(engine::Script { program: Arc::new(program), weight, side });
        Ok(())
    }

    /// Gives a variable a value that all clients begin with, unless it has one.
    fn preset(&mut self, name: &str, value: i64) {
        self.symbols.preset(name, Value::Int(value));
    }

    /// One transaction of a script with values drawn from `seed`: of each statement the number of its command in the
    /// script, its text with `$1`, `$2` ... for the variables, and with their values. Ends early where only a server's
    /// answer, or a program, says how it goes on.
    fn sample(&self, script: usize, seed: u64) -> Vec<(usize, String, String)> {
        /// Limit on steps, which stops a loop that never ends.
        const MOST: usize = 10_000;
        if let Some(options) = self.tpcc.get(script / KINDS.len()) {
            return tpcc::listing::sample(KINDS[script % KINDS.len()], options, seed);
        }
        let Some(script) = self.scripts.get(script) else { return Vec::new() };
        let mut symbols = self.symbols.clone();
        for name in ["client_id", "random_seed", "default_seed"] {
            symbols.preset(name, Value::Int(0));
        }
        let mut vm = Vm::new(&Arc::new(symbols));
        for (name, value) in &self.sides[script.side].variables {
            vm.set(name, value.clone());
        }
        for sample in &self.sides[script.side].samples {
            vm.use_sample(sample);
        }
        let (mut rng, mut found) = (Prng::from_seed(seed), Vec::new());
        for _ in 0..MOST {
            match vm.step(&script.program, &mut rng) {
                Ok(Step::Send(n)) => {
                    let s = &script.program.statements[n];
                    let unset =
                        (0..s.parameters.len()).any(|i| matches!(vm.parameter(&script.program, n, i), Value::Unset));
                    let mut text = Vec::new();
                    vm.substitute(&script.program, n, &mut text);
                    if unset {
                        break;
                    }
                    found.push((s.command, s.prepared.clone(), String::from_utf8_lossy(&text).into_owned()));
                }
                Ok(Step::Done | Step::Shell(_)) | Err(_) => break,
                Ok(_) => {}
            }
        }
        found
    }

    /// Names and weights.
    #[getter]
    fn scripts(&self) -> Vec<(String, u64)> {
        let own = self.tpcc.iter().flat_map(|o| KINDS.iter().zip(o.weights).map(|(k, w)| (k.name().to_owned(), w)));
        self.scripts.iter().map(|s| (s.program.name.clone(), s.weight)).chain(own).collect()
    }

    /// All commands, of all scripts.
    #[getter]
    fn commands(&self) -> PyResult<Vec<Command>> {
        if self.scripts.is_empty() && self.tpcc.is_empty() && self.ledger.is_none() {
            return Ok(Vec::new());
        }
        let built = self.build::<Postgres>(0).map_err(errors::other)?;
        Ok(built.commands().iter().map(Command::from).collect())
    }
}

/// Compiles a script as pgbench does, over no variables but those it sets; for checking its syntax.
#[pyfunction]
pub fn check_script(name: &str, text: &str) -> PyResult<()> {
    let options = Options { strict: false, marks: false, ..Options::default() };
    compile(name, text, &mut Symbols::default(), options).map(drop).map_err(|e| errors::script(&e))
}

/// Returns the content of a row of the ledger.
#[pyfunction]
pub fn ledger_content(run: i64, client: i64, sequence: i64) -> i64 {
    ledger::content(run, client, sequence)
}

/// PostgreSQL's name of an SQLSTATE, where pgdyno knows it.
#[pyfunction]
pub fn sqlstate_name(code: &str) -> Option<&'static str> {
    pgdyno_protocol::SqlState::parse(code).name()
}
